//! What the control plane's end does with what makes no sense.

use super::*;
use crate::stream::HEARTBEAT;
use bytes::Bytes;

const SETTINGS: Settings = Settings { heartbeat: HEARTBEAT };

fn drain(link: &mut CpStream) -> Vec<Effect> {
    let effects = std::iter::from_fn(|| link.poll_effect()).collect();
    assert_eq!(link.broken_invariant(), None);
    effects
}

fn say(link: &mut CpStream, now: Moment, message: &FromDp) -> Vec<Effect> {
    link.handle_frame(now, &message.encode());
    drain(link)
}

fn serving(version: u64) -> CpStream {
    let mut link = CpStream::new(Duration::ZERO, SETTINGS);
    say(&mut link, Duration::ZERO, &FromDp::Hello(Box::default()));
    let (store_id, start) = ("s".to_owned(), Start::From(version));
    link.handle_command(Duration::ZERO, Command::Admit { store_id, newest: version, start, withheld: None });
    drain(&mut link);
    link
}

#[test]
fn anything_but_a_hello_ends_the_link() {
    let mut link = CpStream::new(Duration::ZERO, SETTINGS);
    let effects = say(&mut link, Duration::ZERO, &FromDp::Taken { pieces: 1 });
    assert_eq!(effects, [Effect::HangUp(Reason::PeerNoHello)]);
    let mut link = CpStream::new(Duration::ZERO, SETTINGS);
    link.handle_timeout(HELLO_LIMIT);
    assert_eq!(drain(&mut link), [Effect::HangUp(Reason::PeerSlow)]);
    let mut link = CpStream::new(Duration::ZERO, SETTINGS);
    link.handle_frame(Duration::ZERO, &Frame::Binary(Bytes::from_static(b"\x81junk")));
    assert!(matches!(drain(&mut link)[..], [Effect::HangUp(Reason::PeerMessage(_))]));
}

#[test]
fn a_node_that_answers_nothing_is_sent_a_window_of_changes() {
    let mut link = serving(1);
    for version in 2..40 {
        link.handle_command(Duration::ZERO, Command::Newest(version));
        for effect in drain(&mut link) {
            if let Effect::Fetch { from } = effect {
                let frame = FromCp::Unknown(1).encode();
                let outcome = Fetched::Changes { to: version, frame };
                link.handle_command(Duration::ZERO, Command::Fetched { from, outcome });
            }
        }
        drain(&mut link);
    }
    assert_eq!(link.unanswered.len(), CHANGES_WINDOW);
    let report = FromDp::Report(Applied { version: 5, ..Applied::default() });
    assert!(say(&mut link, Duration::ZERO, &report).contains(&Effect::Fetch { from: 5 }));
}

#[test]
fn a_silent_node_is_given_up_and_a_ping_is_answered() {
    let mut link = serving(1);
    link.handle_frame(Duration::from_secs(1), &Frame::Ping(Bytes::new()));
    assert_eq!(drain(&mut link), [Effect::Send(Frame::Pong(Bytes::new())), Effect::Alive]);
    let at = link.next_timeout().unwrap();
    assert_eq!(at, Duration::from_secs(1) + HEARTBEAT * LOST_BEATS);
    link.handle_timeout(at);
    assert_eq!(drain(&mut link), [Effect::HangUp(Reason::PeerSilent(HEARTBEAT * LOST_BEATS))]);
}

#[test]
fn goodbyes_go_both_ways() {
    let mut link = serving(1);
    assert_eq!(say(&mut link, Duration::ZERO, &FromDp::Goodbye), [Effect::Left, Effect::HangUp(Reason::PeerLeaves)]);
    let mut link = serving(1);
    link.handle_command(Duration::ZERO, Command::Stop { reconnect_after: Duration::from_millis(40) });
    let goodbye = FromCp::Goodbye { reconnect_after_ms: 40 }.encode();
    assert_eq!(drain(&mut link), [Effect::Send(goodbye), Effect::HangUp(Reason::Stopped)]);
}

#[test]
fn copies_asked_for_again_and_again_have_a_pause_between_them() {
    let mut link = serving(1);
    let ask = FromDp::WantSnapshot { why: "x".to_owned() };
    assert!(say(&mut link, Duration::ZERO, &ask).contains(&Effect::Begin));
    link.handle_command(Duration::ZERO, Command::Begun(Ok(1)));
    drain(&mut link);
    link.handle_command(Duration::ZERO, Command::Copied(Copied::End { version: 1, digest: String::new() }));
    drain(&mut link);
    assert!(!say(&mut link, Duration::ZERO, &ask).contains(&Effect::Begin));
    assert_eq!(link.next_timeout(), Some(COPY_PAUSE));
    link.handle_timeout(COPY_PAUSE);
    assert!(drain(&mut link).contains(&Effect::Begin));
}

#[test]
fn a_log_that_always_overtakes_ends_the_link() {
    let mut link = serving(1);
    let mut now = Duration::ZERO;
    say(&mut link, now, &FromDp::WantSnapshot { why: "x".to_owned() });
    for _ in 0..=COPIES_OVERTAKEN {
        link.handle_command(now, Command::Begun(Ok(1)));
        link.handle_command(now, Command::Copied(Copied::Overtaken));
        now += COPY_PAUSE;
        link.handle_frame(now, &Frame::Ping(Bytes::new()));
        link.handle_timeout(now);
    }
    assert!(link.is_closed());
    assert!(std::iter::from_fn(|| link.poll_effect()).any(|effect| effect == Effect::HangUp(Reason::Overtaken)));
}

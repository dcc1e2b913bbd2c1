//! What the control plane's end does with what makes no sense.

use super::*;
use crate::stream::message::Applied;
use crate::stream::{COPY_PAUSE, HEARTBEAT};
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

#[test]
fn a_question_is_answered_in_time_or_ends_with_a_fault() {
    let mut link = serving(1);
    for key in [5, 6, 7] {
        link.handle_command(Duration::ZERO, Command::Ask { key, asked: Asked::Get });
    }
    assert_eq!(drain(&mut link).len(), 3);
    let answer = |id, fault: Option<&str>| {
        let fault = fault.map(str::to_owned);
        FromDp::Answer(crate::stream::message::Answer { id, result: Value::from(8), fault })
    };
    let ended = |effects: Vec<Effect>| match effects.into_iter().next() {
        Some(Effect::Asked { key, outcome }) => (key, outcome.map_err(|error| error.message)),
        other => panic!("{other:?}"),
    };
    assert_eq!(ended(say(&mut link, Duration::ZERO, &answer(6, None))), (6, Ok(Value::from(8))));
    assert_eq!(ended(say(&mut link, Duration::ZERO, &answer(5, Some("no")))), (5, Err("no".to_owned())));
    assert!(!matches!(say(&mut link, Duration::ZERO, &answer(5, None))[0], Effect::Asked { .. }), "once");
    link.handle_timeout(CALL_LIMIT);
    assert!(ended(drain(&mut link)).1.is_err_and(|why| why.contains("within 5 s")));
    link.handle_command(Duration::ZERO, Command::Ask { key: 9, asked: Asked::Get });
    drain(&mut link);
    link.handle_lost("cut".to_owned());
    assert_eq!(ended(drain(&mut link)).0, 9);
    link.handle_command(Duration::ZERO, Command::Ask { key: 10, asked: Asked::Get });
    assert_eq!(ended(drain(&mut link)).0, 10);
}

//! What the data plane's end does with what makes no sense.

use super::*;

fn greeted(held: Option<u64>) -> DpStream {
    let held = held.map(|version| Held { store_id: "s".to_owned(), version, digest: "d".to_owned() });
    let mut link = DpStream::new(Duration::ZERO, Hello { held, ..Hello::default() });
    let welcome = FromCp::Welcome { store_id: "s".to_owned(), version: 9, heartbeat_ms: 5000 };
    link.handle_frame(Duration::ZERO, &welcome.encode());
    drain(&mut link);
    link
}

fn drain(link: &mut DpStream) -> Vec<Effect> {
    let effects = std::iter::from_fn(|| link.poll_effect()).collect();
    assert_eq!(link.broken_invariant(), None);
    effects
}

fn say(link: &mut DpStream, message: &FromCp) -> Vec<Effect> {
    link.handle_frame(Duration::ZERO, &message.encode());
    drain(link)
}

fn changes(from: u64) -> FromCp {
    FromCp::Changes(Changes { from, to: from + 1, ..Changes::default() })
}

fn ends_with(effects: &[Effect], reason: &Reason) -> bool {
    effects.last() == Some(&Effect::HangUp(reason.clone()))
}

#[test]
fn anything_but_a_welcome_ends_the_greeting() {
    let mut link = DpStream::new(Duration::ZERO, Hello::default());
    assert!(ends_with(&say(&mut link, &changes(1)), &Reason::PeerNoWelcome));
    let mut link = DpStream::new(Duration::ZERO, Hello::default());
    drain(&mut link);
    link.handle_timeout(HELLO_LIMIT);
    assert!(ends_with(&drain(&mut link), &Reason::PeerSlow));
    assert!(say(&mut link, &changes(1)).is_empty(), "nothing follows");
}

#[test]
fn changes_that_do_not_fit_are_asked_for_as_a_copy_once() {
    let mut link = greeted(Some(3));
    let effects = say(&mut link, &changes(5));
    let asks =
        |effect: &Effect| matches!(effect, Effect::Report(Report::WantsSnapshot { why }) if why.contains("version 3"));
    assert!(effects.iter().any(asks), "{effects:?}");
    assert!(say(&mut link, &changes(6)).is_empty());
    assert!(say(&mut link, &changes(3)).is_empty(), "the copy is on its way");
    let begin = FromCp::SnapshotBegin { version: 9, why: String::new() };
    assert!(say(&mut link, &begin).contains(&Effect::Work(Work::Begin)));
}

#[test]
fn versions_of_another_store_do_not_fit() {
    let mut link = DpStream::new(
        Duration::ZERO,
        Hello { held: Some(Held { store_id: "other".to_owned(), version: 3, ..Held::default() }), ..Hello::default() },
    );
    say(&mut link, &FromCp::Welcome { store_id: "s".to_owned(), version: 9, heartbeat_ms: 0 });
    let effects = say(&mut link, &changes(3));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Work(_))), "{effects:?}");
}

#[test]
fn more_than_the_windows_allow_is_a_flood() {
    let mut link = greeted(Some(1));
    let mut last = Vec::new();
    for version in 1..=(LINE_LIMIT as u64 + 2) {
        last = say(&mut link, &changes(version));
    }
    assert!(ends_with(&last, &Reason::PeerFlood));
}

#[test]
fn pieces_without_a_beginning_and_later_kinds_are_ignored() {
    let mut link = greeted(Some(1));
    assert!(say(&mut link, &FromCp::SnapshotRows { rows: Vec::new() }).is_empty());
    assert!(say(&mut link, &FromCp::SnapshotEnd { version: 2, digest: String::new() }).is_empty());
    assert!(say(&mut link, &FromCp::Unknown(77)).is_empty());
    assert!(!link.is_closed());
    link.handle_frame(Duration::ZERO, &Frame::Text(Bytes::from_static(b"{}")));
    assert!(matches!(drain(&mut link).last(), Some(Effect::HangUp(Reason::PeerMessage(_)))));
}

#[test]
fn a_heartbeat_too_fast_is_bounded() {
    let mut link = DpStream::new(Duration::ZERO, Hello::default());
    say(&mut link, &FromCp::Welcome { store_id: "s".to_owned(), version: 9, heartbeat_ms: 1 });
    assert_eq!(link.next_timeout(), Some(HEARTBEAT_BOUNDS.0));
}

#[test]
fn a_stopping_node_says_goodbye() {
    let mut link = greeted(None);
    link.handle_command(Command::Stop);
    let effects = drain(&mut link);
    assert_eq!(effects, [Effect::Send(FromDp::Goodbye.encode()), Effect::HangUp(Reason::Stopped)]);
}

#[test]
fn a_question_about_the_log_level_is_handed_on_and_any_other_answered_at_once() {
    let mut link = greeted(None);
    let ask = |method: &str, params: Vec<Value>| FromCp::Ask { id: 3, method: method.to_owned(), params };
    let get = crate::v2::log_level::GET;
    assert_eq!(say(&mut link, &ask(get, Vec::new())), [Effect::LogLevel { id: 3, asked: Asked::Get }]);
    link.handle_command(Command::Answer { id: 3, outcome: Ok(Value::from(8)) });
    let answer = Answer { id: 3, result: Value::from(8), fault: None };
    assert_eq!(drain(&mut link), [Effect::Send(FromDp::Answer(answer).encode())]);
    let unknown = Answer { id: 3, result: Value::Null, fault: Some("Method not found".to_owned()) };
    assert_eq!(say(&mut link, &ask("x.y", Vec::new())), [Effect::Send(FromDp::Answer(unknown).encode())]);
}

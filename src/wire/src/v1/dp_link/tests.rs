//! The data plane's table, row by row, and its invariants over random inputs.

use super::*;
use crate::backoff::{FIRST_DELAY, NEXT_ADDRESS_DELAY};
use proptest::prelude::*;

const START: Moment = Duration::from_secs(1000);

fn link(control_planes: usize) -> DpLink {
    DpLink::new(Settings {
        control_planes,
        basic_info: Bytes::from_static(b"info"),
        hash: ConfigHash::zero(),
        seed: 11,
    })
}

fn effects(link: &mut DpLink) -> Vec<Effect> {
    std::iter::from_fn(|| link.poll_effect()).collect()
}

fn ping(hash: &str) -> Effect {
    Effect::Send(Frame::Ping(Bytes::copy_from_slice(hash.as_bytes())))
}

fn zero_ping() -> Effect {
    ping(ConfigHash::zero().as_str())
}

fn payload(text: &'static str) -> Frame {
    Frame::Binary(Bytes::from_static(text.as_bytes()))
}

fn applied(link: &mut DpLink, now: Moment, outcome: Outcome) -> Vec<Effect> {
    link.handle_command(now, Command::Applied(outcome));
    effects(link)
}

/// A link that is live since `START`, its first effects taken.
fn live() -> DpLink {
    let mut link = link(1);
    link.handle_command(START, Command::Start);
    link.handle_opened(START);
    effects(&mut link);
    link
}

fn retry_in(effects: &[Effect]) -> Duration {
    let retry = |effect: &Effect| match effect {
        Effect::Report(Report::Disconnected { retry_in, .. }) => Some(*retry_in),
        _ => None,
    };
    effects.iter().find_map(retry).unwrap()
}

#[test]
fn start_dials_and_an_open_link_says_what_it_is_and_pings_at_once() {
    let mut link = link(1);
    assert_eq!(link.next_timeout(), None);
    link.handle_command(START, Command::Start);
    assert_eq!(effects(&mut link), [Effect::Dial { control_plane: 0 }]);
    assert_eq!(link.next_timeout(), Some(START + DIAL_LIMIT));
    link.handle_opened(START);
    let expected = [
        Effect::Report(Report::Connected { control_plane: 0 }),
        Effect::Send(Frame::Binary(Bytes::from_static(b"info"))),
        zero_ping(),
    ];
    assert_eq!(effects(&mut link), expected);
    assert_eq!(link.next_timeout(), Some(START + PING_INTERVAL));
}

#[test]
fn a_ping_goes_out_every_thirty_seconds_while_pongs_come() {
    let mut link = live();
    for round in 1..=10 {
        let now = START + PING_INTERVAL * round;
        link.handle_timeout(now - Duration::from_millis(1));
        assert_eq!(effects(&mut link), []);
        link.handle_timeout(now);
        assert_eq!(effects(&mut link), [zero_ping()]);
        link.handle_frame(now, Frame::Pong(Bytes::new()));
    }
    assert!(link.is_live());
}

#[test]
fn silence_ends_the_link_and_it_redials_within_kongs_window() {
    let mut link = live();
    link.handle_timeout(START + PING_INTERVAL);
    effects(&mut link);
    assert_eq!(link.next_timeout(), Some(START + SILENCE_LIMIT));
    link.handle_timeout(START + SILENCE_LIMIT);
    let ended = effects(&mut link);
    assert_eq!(ended[0], Effect::HangUp(Reason::PeerSilent));
    let delay = retry_in(&ended);
    assert!((FIRST_DELAY..=FIRST_DELAY * 2).contains(&delay), "{delay:?}");
    link.handle_timeout(START + SILENCE_LIMIT + delay);
    assert_eq!(effects(&mut link), [Effect::Dial { control_plane: 0 }]);
}

#[test]
fn any_frame_counts_as_a_sign_of_life_and_unknown_ones_are_ignored() {
    let mut link = live();
    let later = START + Duration::from_secs(20);
    link.handle_frame(later, Frame::Ping(Bytes::from_static(b"x")));
    link.handle_frame(later, Frame::Text(Bytes::new()));
    let ignored = |kind| Effect::Report(Report::Ignored { kind });
    assert_eq!(effects(&mut link), [ignored("ping"), ignored("text")]);
    link.handle_timeout(START + PING_INTERVAL);
    link.handle_timeout(START + PING_INTERVAL * 2);
    assert_eq!(link.next_timeout(), Some(later + SILENCE_LIMIT));
}

#[test]
fn ping_follows_an_apply_at_once_with_the_new_hash() {
    let mut link = live();
    link.handle_frame(START, payload("one"));
    let apply = Effect::Apply { payload: Bytes::from_static(b"one"), in_force: ConfigHash::zero() };
    assert_eq!(effects(&mut link), [apply]);
    let later = START + Duration::from_secs(3);
    let done = applied(&mut link, later, Outcome::Applied("new".into()));
    assert_eq!(done, [Effect::Report(Report::Applied { hash: "new".into() }), ping("new")]);
    assert_eq!(link.next_timeout(), Some(later + PING_INTERVAL));
}

#[test]
fn the_newest_payload_wins_and_one_is_applied_at_a_time() {
    let mut link = live();
    for text in ["one", "two", "three"] {
        link.handle_frame(START, payload(text));
    }
    assert_eq!(effects(&mut link).len(), 1);
    let done = applied(&mut link, START, Outcome::Applied("1".into()));
    let apply = Effect::Apply { payload: Bytes::from_static(b"three"), in_force: "1".into() };
    assert_eq!(done.last(), Some(&apply));
    assert_eq!(applied(&mut link, START, Outcome::Unchanged), [ping("1")]);
}

#[test]
fn of_payloads_in_a_row_only_the_last_hash_is_told() {
    let mut link = live();
    link.handle_frame(START, payload("one"));
    link.handle_frame(START, payload("two"));
    effects(&mut link);
    let first = applied(&mut link, START, Outcome::Applied("1".into()));
    assert!(!first.iter().any(|effect| matches!(effect, Effect::Send(_))), "{first:?}");
    let last = applied(&mut link, START, Outcome::Refused("bad".into()));
    assert_eq!(last.last(), Some(&ping("1")), "the one in force is told, also when the last is refused");
}

#[test]
fn a_refused_payload_keeps_the_old_hash_and_a_skipped_one_is_no_news() {
    let mut link = live();
    link.handle_frame(START, payload("bad"));
    effects(&mut link);
    let refused = applied(&mut link, START, Outcome::Refused("no".to_owned()));
    assert_eq!(refused, [Effect::Report(Report::Refused { fault: "no".to_owned() })]);
    assert!(link.hash().is_zero() && link.is_live());
    link.handle_frame(START, payload("other"));
    effects(&mut link);
    assert_eq!(applied(&mut link, START, Outcome::Skipped), []);
}

#[test]
fn an_undecodable_payload_ends_the_link_it_came_on_but_not_a_later_one() {
    let mut link = live();
    link.handle_frame(START, payload("junk"));
    effects(&mut link);
    let ended = applied(&mut link, START, Outcome::Undecodable("junk".to_owned()));
    assert_eq!(ended[0], Effect::HangUp(Reason::PeerUndecodable("junk".to_owned())));

    let mut link = live();
    link.handle_frame(START, payload("junk"));
    link.handle_lost(START, Reason::PeerLost("reset".to_owned()));
    let redial = link.next_timeout().unwrap();
    link.handle_timeout(redial);
    link.handle_opened(redial);
    effects(&mut link);
    let reported = applied(&mut link, redial, Outcome::Undecodable("junk".to_owned()));
    assert_eq!(reported, [Effect::Report(Report::Refused { fault: "junk".to_owned() })]);
    assert!(link.is_live());
}

#[test]
fn a_payload_that_cannot_be_stored_is_asked_for_again_by_a_new_link() {
    let mut link = live();
    link.handle_frame(START, payload("one"));
    effects(&mut link);
    let ended = applied(&mut link, START, Outcome::NotStored("disk full".to_owned()));
    assert_eq!(ended[0], Effect::Report(Report::Refused { fault: "disk full".to_owned() }));
    assert_eq!(ended[1], Effect::HangUp(Reason::IoNotStored("disk full".to_owned())));
    let redial = link.next_timeout().unwrap();
    link.handle_timeout(redial);
    assert!(effects(&mut link).iter().any(|effect| matches!(effect, Effect::Dial { .. })));
}

#[test]
fn a_payload_outlives_its_link() {
    let mut link = live();
    link.handle_frame(START, payload("one"));
    link.handle_frame(START, payload("two"));
    link.handle_lost(START, Reason::PeerLost("reset".to_owned()));
    effects(&mut link);
    let done = applied(&mut link, START, Outcome::Applied("1".into()));
    let apply = Effect::Apply { payload: Bytes::from_static(b"two"), in_force: "1".into() };
    assert_eq!(done, [Effect::Report(Report::Applied { hash: "1".into() }), apply]);
}

#[test]
fn a_close_frame_is_answered_by_hanging_up() {
    let mut link = live();
    link.handle_frame(START, Frame::Close);
    assert_eq!(effects(&mut link)[0], Effect::HangUp(Reason::PeerClosed));
}

#[test]
fn a_dial_without_answer_is_given_up() {
    let mut link = link(1);
    link.handle_command(START, Command::Start);
    link.handle_timeout(START + DIAL_LIMIT);
    assert_eq!(effects(&mut link)[1], Effect::HangUp(Reason::PeerSlow));
}

#[test]
fn every_address_is_tried_soon_before_the_long_wait() {
    let mut link = link(3);
    let mut now = START;
    link.handle_command(now, Command::Start);
    for round in 0..2 {
        for address in 0..3 {
            assert_eq!(effects(&mut link), [Effect::Dial { control_plane: address }], "round {round}");
            link.handle_lost(now, Reason::PeerLost("refused".to_owned()));
            let delay = retry_in(&effects(&mut link));
            let lowest = if address < 2 { NEXT_ADDRESS_DELAY } else { FIRST_DELAY };
            assert!((lowest..=lowest * 2).contains(&delay), "{delay:?}");
            now += delay;
            link.handle_timeout(now);
        }
    }
}

#[test]
fn a_node_that_is_refused_after_each_upgrade_slows_down_until_a_link_lasts() {
    let mut link = link(1);
    let mut now = START;
    link.handle_command(now, Command::Start);
    for _ in 0..10 {
        link.handle_opened(now);
        link.handle_frame(now, Frame::Close);
        now = link.next_timeout().unwrap();
        link.handle_timeout(now);
    }
    effects(&mut link);
    link.handle_lost(now, Reason::PeerLost("refused".to_owned()));
    assert!(retry_in(&effects(&mut link)) > FIRST_DELAY * 2);
    now = link.next_timeout().unwrap();
    link.handle_timeout(now);
    link.handle_opened(now);
    link.handle_frame(now, payload("good"));
    link.handle_command(now, Command::Applied(Outcome::Applied("1".into())));
    link.handle_lost(now, Reason::PeerLost("reset".to_owned()));
    assert!(retry_in(&effects(&mut link)) <= FIRST_DELAY * 2);
}

#[test]
fn stop_hangs_up_and_nothing_follows() {
    let mut link = live();
    link.handle_command(START, Command::Stop);
    assert_eq!(effects(&mut link), [Effect::HangUp(Reason::Stopped)]);
    link.handle_command(START, Command::Start);
    link.handle_frame(START, payload("late"));
    link.handle_opened(START);
    assert_eq!(effects(&mut link), []);
    assert_eq!(link.next_timeout(), None);
}

#[test]
fn a_diverted_connection_is_another_protocols_until_it_is_lost() {
    let mut link = link(2);
    link.handle_command(START, Command::Start);
    link.handle_diverted(START);
    effects(&mut link);
    assert_eq!(link.next_timeout(), None);
    link.handle_frame(START, payload("not for this machine"));
    link.handle_opened(START);
    assert_eq!(effects(&mut link), []);
    link.handle_served(START);
    link.set_hash("a".repeat(32).as_str().into());
    link.handle_lost(START, Reason::PeerLost("cut".to_owned()));
    let lost = effects(&mut link);
    assert!(matches!(lost[0], Effect::HangUp(Reason::PeerLost(_))));
    assert!(retry_in(&lost) <= Duration::from_secs(2), "the next address");
    link.handle_timeout(link.next_timeout().unwrap());
    assert_eq!(effects(&mut link), [Effect::Dial { control_plane: 1 }]);
    link.handle_opened(START);
    let hash = Frame::Ping(Bytes::from("a".repeat(32)));
    assert!(effects(&mut link).contains(&Effect::Send(hash)), "what the other protocol put in force is told");
}

#[test]
fn a_farewell_is_followed_by_the_wait_it_asks_for() {
    let mut link = link(1);
    link.handle_command(START, Command::Start);
    link.handle_diverted(START);
    effects(&mut link);
    let reconnect_after = Duration::from_secs(20);
    link.handle_lost(START, Reason::PeerLeft { reconnect_after });
    let wait = retry_in(&effects(&mut link));
    assert!((reconnect_after..=Duration::from_secs(25)).contains(&wait), "{wait:?}");
    link.handle_command(START, Command::Stop);
    assert!(link.is_closed());
}

#[derive(Debug, Clone)]
enum Event {
    Command(Command),
    Opened,
    Diverted,
    Served,
    Frame(Frame),
    Lost,
    Left(u64),
    /// Wait until the timer, and a little longer or shorter.
    Timeout(i64),
}

fn event() -> impl Strategy<Value = Event> {
    let outcome = prop_oneof![
        Just(Outcome::Applied("a".repeat(32).as_str().into())),
        Just(Outcome::Unchanged),
        Just(Outcome::Skipped),
        Just(Outcome::Refused("r".to_owned())),
        Just(Outcome::Undecodable("u".to_owned())),
        Just(Outcome::NotStored("n".to_owned())),
    ];
    prop_oneof![
        2 => Just(Event::Command(Command::Start)),
        4 => outcome.prop_map(|outcome| Event::Command(Command::Applied(outcome))),
        1 => Just(Event::Command(Command::Stop)),
        6 => Just(Event::Opened),
        2 => Just(Event::Diverted),
        1 => Just(Event::Served),
        1 => (0_u64..100_000).prop_map(Event::Left),
        6 => Just(Event::Frame(payload("payload"))),
        3 => Just(Event::Frame(Frame::Pong(Bytes::new()))),
        1 => Just(Event::Frame(Frame::Close)),
        2 => Just(Event::Lost),
        8 => (-2000_i64..2000).prop_map(Event::Timeout),
    ]
}

proptest! {
    #[test]
    fn no_row_of_inputs_breaks_the_machine(control_planes in 1_usize..4, events in proptest::collection::vec(event(), 0..200)) {
        let mut link = link(control_planes);
        let mut now = START;
        let (mut applying, mut hash) = (0_u32, ConfigHash::zero());
        for event in events {
            match event {
                Event::Command(command) => {
                    if let Command::Applied(outcome) = &command && applying > 0 && !link.is_closed() {
                        applying -= 1;
                        if let Outcome::Applied(new) = outcome {
                            hash = new.clone();
                        }
                    }
                    link.handle_command(now, command);
                }
                Event::Opened => link.handle_opened(now),
                Event::Diverted => link.handle_diverted(now),
                Event::Served => link.handle_served(now),
                Event::Left(millis) => {
                    let reconnect_after = Duration::from_millis(millis);
                    link.handle_lost(now, Reason::PeerLeft { reconnect_after });
                }
                Event::Frame(frame) => link.handle_frame(now, frame),
                Event::Lost => link.handle_lost(now, Reason::PeerLost("lost".to_owned())),
                Event::Timeout(shift) => {
                    let at = link.next_timeout().unwrap_or(now);
                    now = now.max(at.saturating_add(Duration::from_millis(shift.max(0).unsigned_abs())));
                    link.handle_timeout(now);
                }
            }
            let live = link.is_live();
            for effect in effects(&mut link) {
                match effect {
                    Effect::Apply { .. } => applying += 1,
                    Effect::Send(Frame::Ping(payload)) => prop_assert_eq!(&payload[..], hash.as_str().as_bytes()),
                    Effect::Send(frame) => prop_assert!(live && matches!(frame, Frame::Binary(_))),
                    Effect::Dial { control_plane } => prop_assert!(control_plane < control_planes),
                    Effect::HangUp(_) => prop_assert!(!live),
                    Effect::Report(_) => {}
                }
            }
            prop_assert!(applying <= 1, "{} payloads applied at once", applying);
            prop_assert_eq!(link.broken_invariant(), None);
        }
    }
}

//! The control plane's table, row by row, and its invariants over random inputs.

use super::*;
use crate::compat::Verdict;
use crate::v1::PluginVersion;
use proptest::prelude::*;
use serde_json::Map;
use std::collections::BTreeMap;

const START: Moment = Duration::from_secs(1000);
const OWN: Version = Version::new(3, 9, 1);
const HASH: &str = "0123456789abcdef0123456789abcdef";

fn info() -> BasicInfo {
    let acl = PluginVersion { name: "acl".to_owned(), version: Some("3.9.1".to_owned()) };
    BasicInfo { plugins: vec![acl], ..BasicInfo::default() }
}

fn info_frame() -> Frame {
    Frame::Binary(info().encode(&Map::new()))
}

fn ping() -> Frame {
    Frame::Ping(Bytes::from_static(HASH.as_bytes()))
}

fn pong() -> Effect {
    Effect::Send(Frame::Pong(Bytes::new()))
}

/// A payload that uses these plugins.
fn payload(plugins: &[&str]) -> Command {
    let plugins: BTreeMap<_, _> = plugins.iter().map(|name| ((*name).to_owned(), Some("3.9.1".to_owned()))).collect();
    Command::Payload(Arc::new(PayloadProfile { plugins, ..PayloadProfile::default() }))
}

fn effects(link: &mut CpLink) -> Vec<Effect> {
    std::iter::from_fn(|| link.poll_effect()).collect()
}

fn record(status: SyncStatus, hash: &str) -> Effect {
    Effect::Record(NodeRecord { sync_status: status, config_hash: hash.into(), info: Arc::new(info()) })
}

fn vetting() -> CpLink {
    let mut link = CpLink::new(START, "3.9.1", OWN);
    link.handle_frame(START, info_frame());
    assert_eq!(effects(&mut link), [Effect::WantPayload { info: Arc::new(info()) }]);
    link
}

/// A link that has had its first push.
fn live() -> CpLink {
    let mut link = vetting();
    link.handle_command(START, payload(&["acl"]));
    assert_eq!(effects(&mut link), [Effect::Push]);
    link.handle_command(START, Command::Written);
    link
}

fn hung_up(link: &mut CpLink) -> Reason {
    match effects(link).pop() {
        Some(Effect::HangUp(reason)) => {
            assert!(link.is_closed());
            reason
        }
        other => panic!("expected to hang up, got {other:?}"),
    }
}

#[test]
fn a_node_that_fits_is_pushed_to_and_its_pings_are_answered() {
    let mut link = live();
    link.handle_frame(START, ping());
    assert_eq!(effects(&mut link), [record(SyncStatus::Normal, HASH), pong()]);
}

#[test]
fn no_basic_info_within_five_seconds_ends_the_link() {
    let mut link = CpLink::new(START, "3.9.1", OWN);
    assert_eq!(link.next_timeout(), Some(START + INFO_LIMIT));
    link.handle_timeout(START + INFO_LIMIT);
    assert_eq!(hung_up(&mut link), Reason::PeerSlow);
}

#[test]
fn a_first_frame_that_is_no_basic_info_ends_the_link() {
    for frame in [ping(), Frame::Text(Bytes::new()), Frame::Binary(Bytes::from_static(b"not json"))] {
        let mut link = CpLink::new(START, "3.9.1", OWN);
        link.handle_frame(START, frame);
        assert!(matches!(hung_up(&mut link), Reason::PeerBasicInfo(_)));
    }
}

#[test]
fn a_version_that_does_not_fit_is_recorded_and_refused() {
    let mut link = CpLink::new(START, "3.10.0", OWN);
    link.handle_frame(START, info_frame());
    let ended = effects(&mut link);
    assert_eq!(ended[0], record(SyncStatus::KongVersionIncompatible, ConfigHash::zero().as_str()));
    assert!(matches!(ended[1], Effect::HangUp(Reason::PeerVersion(_))));
}

#[test]
fn only_pings_of_32_bytes_are_taken() {
    let bytes = |length: usize| Bytes::from(vec![b'x'; length]);
    let wrong_length = [Frame::Ping(bytes(3)), Frame::Ping(bytes(0)), Frame::Binary(bytes(41)), Frame::Pong(bytes(0))];
    for frame in wrong_length {
        let mut link = live();
        link.handle_frame(START, frame);
        assert!(matches!(hung_up(&mut link), Reason::PeerBadHash { .. }));
    }
    for frame in [Frame::Binary(bytes(32)), Frame::Text(bytes(32)), Frame::Pong(bytes(32))] {
        let mut link = live();
        link.handle_frame(START, frame);
        assert!(matches!(hung_up(&mut link), Reason::PeerFrameKind { .. }));
    }
}

#[test]
fn forty_five_seconds_without_a_ping_end_the_link() {
    let mut link = live();
    let later = START + Duration::from_secs(30);
    link.handle_frame(later, ping());
    effects(&mut link);
    assert_eq!(link.next_timeout(), Some(later + PING_LIMIT));
    link.handle_timeout(later + PING_LIMIT);
    assert_eq!(hung_up(&mut link), Reason::PeerSilent);
}

#[test]
fn pongs_wait_behind_the_push_and_changes_meanwhile_are_one_push() {
    let mut link = vetting();
    link.handle_frame(START, ping());
    assert_eq!(effects(&mut link), [record(SyncStatus::Unknown, HASH)]);
    link.handle_command(START, payload(&["acl"]));
    assert_eq!(effects(&mut link), [pong()]);
    link.handle_command(START, payload(&["acl"]));
    link.handle_command(START, payload(&[]));
    link.handle_frame(START, ping());
    effects(&mut link);
    link.handle_command(START, Command::Written);
    assert_eq!(effects(&mut link), [Effect::Push]);
    link.handle_command(START, Command::Written);
    assert_eq!(effects(&mut link), [pong()]);
    link.handle_command(START, Command::Written);
    assert_eq!(effects(&mut link), []);
}

#[test]
fn a_node_that_lacks_a_plugin_keeps_its_link_and_is_sent_nothing_until_it_fits() {
    let mut link = vetting();
    link.handle_command(START, payload(&["acl", "mine"]));
    let withheld = effects(&mut link);
    assert!(matches!(withheld[0], Effect::Withhold(Verdict::PluginMissing { .. })));
    assert_eq!(withheld[1], record(SyncStatus::PluginSetIncompatible, ConfigHash::zero().as_str()));
    link.handle_command(START, payload(&["acl", "mine"]));
    assert!(matches!(effects(&mut link)[..], [Effect::Withhold(_)]), "an unchanged status is not recorded again");
    link.handle_frame(START, ping());
    assert_eq!(effects(&mut link), [record(SyncStatus::PluginSetIncompatible, HASH), pong()]);
    link.handle_command(START, Command::Written);
    link.handle_command(START, payload(&["acl"]));
    assert_eq!(effects(&mut link), [Effect::Push]);
    link.handle_frame(START, ping());
    assert_eq!(effects(&mut link)[0], record(SyncStatus::Normal, HASH));
}

#[test]
fn without_a_payload_the_pings_are_still_answered() {
    let mut link = vetting();
    link.handle_frame(START, ping());
    link.handle_command(START, Command::NoPayload);
    assert_eq!(effects(&mut link), [record(SyncStatus::Unknown, HASH), pong()]);
}

#[test]
fn a_payload_before_the_basic_info_is_asked_for_again() {
    let mut link = CpLink::new(START, "3.9.1", OWN);
    link.handle_command(START, payload(&["acl"]));
    assert_eq!(effects(&mut link), []);
    link.handle_frame(START, info_frame());
    assert_eq!(effects(&mut link), [Effect::WantPayload { info: Arc::new(info()) }]);
}

#[test]
fn a_flood_of_pings_on_a_stuck_write_ends_the_link() {
    let mut link = vetting();
    link.handle_command(START, payload(&["acl"]));
    for _ in 0..PONG_LIMIT {
        link.handle_frame(START, ping());
    }
    assert!(!link.is_closed());
    effects(&mut link);
    link.handle_frame(START, ping());
    assert_eq!(hung_up(&mut link), Reason::PeerFlood);
}

#[test]
fn close_loss_and_stop_end_the_link_and_nothing_follows() {
    type End = (fn(&mut CpLink), Reason);
    let ends: [End; 3] = [
        (|link| link.handle_frame(START, Frame::Close), Reason::PeerClosed),
        (|link| link.handle_lost(START, Reason::PeerLost("reset".to_owned())), Reason::PeerLost("reset".to_owned())),
        (|link| link.handle_command(START, Command::Stop), Reason::Stopped),
    ];
    for (end, reason) in ends {
        let mut link = live();
        end(&mut link);
        assert_eq!(hung_up(&mut link), reason);
        link.handle_frame(START, ping());
        link.handle_command(START, payload(&["acl"]));
        link.handle_command(START, Command::Written);
        assert_eq!(effects(&mut link), []);
        assert_eq!(link.next_timeout(), None);
    }
}

#[derive(Debug, Clone)]
enum Event {
    Frame(Frame),
    Payload(bool),
    NoPayload,
    Written,
    Lost,
    Stop,
    Timeout,
    Wait(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => Just(Event::Frame(info_frame())),
        20 => Just(Event::Frame(ping())),
        1 => Just(Event::Frame(Frame::Pong(Bytes::new()))),
        1 => Just(Event::Frame(Frame::Close)),
        8 => any::<bool>().prop_map(Event::Payload),
        1 => Just(Event::NoPayload),
        12 => Just(Event::Written),
        1 => Just(Event::Lost),
        1 => Just(Event::Stop),
        1 => Just(Event::Timeout),
        6 => (0_u64..20_000).prop_map(Event::Wait),
    ]
}

proptest! {
    #[test]
    fn no_row_of_inputs_breaks_the_machine(events in proptest::collection::vec(event(), 0..200)) {
        let mut link = CpLink::new(START, "3.9.1", OWN);
        link.handle_frame(START, info_frame());
        let mut now = START;
        let (mut writing, mut ended) = (false, false);
        for event in events {
            match event {
                Event::Frame(frame) => link.handle_frame(now, frame),
                Event::Payload(fits) => link.handle_command(now, payload(if fits { &["acl"] } else { &["mine"] })),
                Event::NoPayload => link.handle_command(now, Command::NoPayload),
                Event::Written => {
                    writing = false;
                    link.handle_command(now, Command::Written);
                }
                Event::Lost => link.handle_lost(now, Reason::PeerLost("lost".to_owned())),
                Event::Stop => link.handle_command(now, Command::Stop),
                Event::Timeout => {
                    now = now.max(link.next_timeout().unwrap_or(now));
                    link.handle_timeout(now);
                }
                Event::Wait(millis) => now += Duration::from_millis(millis),
            }
            for effect in effects(&mut link) {
                prop_assert!(!ended, "{:?} after the end", effect);
                match effect {
                    Effect::Send(_) | Effect::Push => {
                        prop_assert!(!writing, "two writes at once");
                        writing = true;
                    }
                    Effect::HangUp(_) => ended = true,
                    Effect::WantPayload { .. } | Effect::Record(_) | Effect::Withhold(_) => {}
                }
            }
            prop_assert_eq!(link.broken_invariant(), None);
            prop_assert_eq!(link.is_closed(), ended);
        }
    }
}

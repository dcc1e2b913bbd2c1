//! The data plane's side by itself.

use super::*;
use crate::v2::{Hello, Refusal};
use proptest::prelude::*;
use serde_json::json;

const SECOND: Duration = Duration::from_secs(1);
const LIMIT: usize = 1 << 20;

fn link(control_planes: usize) -> DpLink {
    of_version(control_planes, "3.9.1")
}

fn settings(control_planes: usize, version: &str) -> Settings {
    let capabilities = [sync::CAPABILITY, log_level::CAPABILITY].map(str::to_owned).to_vec();
    let hello = Hello { capabilities, version: version.to_owned(), ..Hello::default() };
    Settings { control_planes, hello, version: 0, limit: LIMIT, sync: true, seed: 7 }
}

fn of_version(control_planes: usize, version: &str) -> DpLink {
    let mut link = DpLink::new(settings(control_planes, version));
    link.handle_command(Duration::ZERO, Command::Start);
    assert_eq!(effects(&mut link), [Effect::Dial { control_plane: 0 }]);
    link
}

fn effects(link: &mut DpLink) -> Vec<Effect> {
    assert_eq!(link.broken_invariant(), None);
    std::iter::from_fn(|| link.poll_effect()).collect()
}

fn welcome(capabilities: &[&str]) -> Frame {
    welcome_of(capabilities, None)
}

fn welcome_of(capabilities: &[&str], cluster_id: Option<&str>) -> Frame {
    let capabilities = capabilities.iter().map(|name| (*name).to_owned()).collect();
    Welcome { capabilities, cluster_id: cluster_id.map(str::to_owned) }.encode()
}

fn has(version: u64) -> Standing {
    Standing { version, cluster_id: None }
}

/// A live link that has asked for the changes since 0 under id 0.
fn live() -> DpLink {
    let mut link = link(1);
    link.handle_opened(Duration::ZERO, has(0));
    assert!(matches!(effects(&mut link).as_slice(), [Effect::Send(_)]));
    link.handle_frame(Duration::ZERO, welcome(&[sync::CAPABILITY]));
    assert_eq!(pulls(&effects(&mut link)), [(0, 0)]);
    link
}

/// Id and version of each pull sent.
fn pulls(effects: &[Effect]) -> Vec<(u64, u64)> {
    let calls = effects.iter().filter_map(|effect| match effect {
        Effect::Send(frame @ Frame::Binary(_)) => match Message::decode(frame, LIMIT) {
            Ok(Message::Call { id, params, .. }) => {
                let version = &params[0]["default"]["version"];
                Some((id?.as_u64()?, Dialect::read(version)?.0))
            }
            _ => None,
        },
        _ => None,
    });
    calls.collect()
}

fn answer(id: u64, versions: &[u64], wipe: bool) -> Frame {
    let rows: Vec<Value> =
        versions.iter().map(|version| json!({"type": "services", "entity": {"id": "a"}, "version": version})).collect();
    rpc::answer(&json!(id), &json!({"default": {"deltas": rows, "wipe": wipe}}).to_string()).unwrap()
}

fn notify(id: u64, version: u64) -> Frame {
    rpc::call(id, sync::NOTIFY, &sync::notify_params(version, Dialect::Integers)).unwrap()
}

fn applied(link: &mut DpLink, now: Moment, version: u64) -> Vec<Effect> {
    link.handle_command(now, Command::Applied(Outcome::Applied(version)));
    effects(link)
}

/// A live link at rest with version 5.
fn at_rest() -> DpLink {
    let mut link = live();
    link.handle_frame(SECOND, answer(0, &[5], true));
    assert!(matches!(effects(&mut link).as_slice(), [Effect::Apply { base: 0, .. }]));
    assert_eq!(pulls(&applied(&mut link, SECOND, 5)), [(1, 5)]);
    link.handle_frame(SECOND, answer(1, &[], false));
    assert_eq!(effects(&mut link), []);
    link
}

#[test]
fn joining_pulls_applies_and_tells_the_version_in_a_second_round() {
    let link = at_rest();
    assert_eq!(link.version(), 5);
    assert!(link.is_synced());
}

#[test]
fn a_newer_version_is_pulled_and_an_older_one_only_acknowledged() {
    let mut link = at_rest();
    for (version, pulled) in [(4, vec![]), (5, vec![]), (6, vec![(2, 5)])] {
        link.handle_frame(SECOND * 2, notify(9, version));
        let done = effects(&mut link);
        let Some(Effect::Send(frame)) = done.first() else { panic!("no answer for {version}") };
        let acknowledged = Message::Answer { id: Some(9), outcome: Ok(json!(true)) };
        assert_eq!(Message::decode(frame, LIMIT).unwrap(), acknowledged);
        assert_eq!(pulls(&done[1..]), pulled, "{version}");
    }
}

#[test]
fn calls_that_make_no_sense_are_answered_with_errors() {
    let mut link = at_rest();
    let ask = |link: &mut DpLink, method: &str, params: Value| {
        link.handle_frame(SECOND, rpc::call(3, method, &params).unwrap());
        match Message::decode(
            &match &effects(link)[..] {
                [Effect::Send(frame)] => frame.clone(),
                other => panic!("{other:?}"),
            },
            LIMIT,
        ) {
            Ok(Message::Answer { outcome: Err(error), .. }) => error,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ask(&mut link, sync::NOTIFY, json!({})).message, "default namespace does not exist inside params");
    assert_eq!(ask(&mut link, sync::NOTIFY, json!({"default": {}})).message, "'new_version' key does not exist");
    assert_eq!(ask(&mut link, "kong.x.y", json!({})), RpcError::method_not_found());
}

#[test]
fn a_version_told_while_a_pull_is_under_way_is_pulled_after_it() {
    let mut link = at_rest();
    link.handle_frame(SECOND, notify(0, 6));
    assert_eq!(pulls(&effects(&mut link)), [(2, 5)]);
    link.handle_frame(SECOND, answer(2, &[6], false));
    link.handle_frame(SECOND, notify(1, 7));
    effects(&mut link);
    assert_eq!(pulls(&applied(&mut link, SECOND, 6)), [(3, 6)]);
    link.handle_frame(SECOND, notify(2, 8));
    link.handle_frame(SECOND, answer(3, &[], false));
    assert_eq!(pulls(&effects(&mut link)), [(4, 6)], "8 may have come after the answer was made");
}

#[test]
fn an_unanswered_pull_is_repeated_once_and_a_late_answer_is_of_use() {
    let mut link = live();
    link.handle_timeout(CALL_LIMIT);
    assert_eq!(pulls(&effects(&mut link)), [(1, 0)]);
    link.handle_timeout(CALL_LIMIT * 2);
    assert_eq!(effects(&mut link), [Effect::Report(Report::PullUnanswered)]);
    link.handle_frame(SECOND * 12, answer(0, &[5], true));
    assert!(matches!(effects(&mut link).as_slice(), [Effect::Apply { .. }]));
    link.handle_frame(SECOND * 12, answer(1, &[5], true));
    assert_eq!(effects(&mut link), [], "one apply at a time");
    assert_eq!(pulls(&applied(&mut link, SECOND * 13, 5)), [(2, 5)]);
}

#[test]
fn refused_rows_end_the_pull_and_everything_is_asked_for_once() {
    let mut link = at_rest();
    let mut asked = Vec::new();
    for number in 1..=3 {
        // At the last moment of a poll, on a link that is not silent.
        let now = POLL.1 * number;
        link.handle_frame(now, Frame::Pong(Bytes::new()));
        link.handle_timeout(now);
        let done = effects(&mut link);
        asked.extend(pulls(&done).into_iter().map(|(_, version)| version));
        let (id, version) = pulls(&done)[0];
        link.handle_frame(now, answer(id, &[6], version == 0));
        assert!(matches!(effects(&mut link).as_slice(), [Effect::Apply { base: 5, .. }]));
        link.handle_command(now, Command::Applied(Outcome::Refused("bad".to_owned())));
        let done = effects(&mut link);
        assert!(pulls(&done).is_empty(), "{done:?}");
    }
    assert_eq!(link.version(), 5);
    assert_eq!(asked, [5, 0, 5]);
}

#[test]
fn a_refusal_is_told_to_a_control_plane_that_wants_to_hear_it() {
    for wanted in [true, false] {
        let mut link = link(1);
        link.handle_opened(Duration::ZERO, has(0));
        let capabilities: &[&str] = if wanted { &[sync::CAPABILITY, report::CAPABILITY] } else { &[sync::CAPABILITY] };
        link.handle_frame(Duration::ZERO, welcome(capabilities));
        link.handle_frame(SECOND, answer(0, &[5], true));
        effects(&mut link);
        link.handle_command(SECOND, Command::Applied(Outcome::Refused("bad".to_owned())));
        let told = effects(&mut link).into_iter().find_map(|effect| match effect {
            Effect::Send(frame) => match Message::decode(&frame, LIMIT).unwrap() {
                Message::Call { id: None, params, .. } => Some(Refusal::read(&params).unwrap().fault),
                other => panic!("{other:?}"),
            },
            _ => None,
        });
        assert_eq!(told.as_deref(), wanted.then_some("bad"));
    }
}

#[test]
fn a_control_plane_of_kong_3_10_is_spoken_to_in_its_words() {
    let mut link = of_version(1, "3.10.0");
    link.handle_opened(Duration::ZERO, has(3));
    effects(&mut link);
    link.handle_frame(Duration::ZERO, welcome(&[sync::CAPABILITY]));
    let said = |effects: &[Effect]| {
        let calls = effects.iter().filter_map(|effect| match effect {
            Effect::Send(frame) => match Message::decode(frame, LIMIT) {
                Ok(Message::Call { id, method, params }) => Some((id.is_some(), method, params)),
                _ => None,
            },
            _ => None,
        });
        calls.last()
    };
    let pull = |text: &str| Some((true, sync::GET_DELTA.to_owned(), json!([{"default": {"version": text}}])));
    assert_eq!(said(&effects(&mut link)), pull("v02_0000000000000000000000000003"));
    let version = "v02_0000000000000000000000000005";
    let rows = json!([{"type": "services", "entity": {"id": "a"}, "version": version}]);
    let full = json!({"default": {"full_sync": true, "deltas": rows}}).to_string();
    link.handle_frame(SECOND, rpc::answer(&json!(0), &full).unwrap());
    let [Effect::Apply { deltas, base: 3 }] = &effects(&mut link)[..] else { panic!("no rows to apply") };
    assert_eq!((deltas.wipe, deltas.version(), deltas.dialect), (true, Some(5), Dialect::Texts));
    assert_eq!(said(&applied(&mut link, SECOND, 5)), pull(version));
    link.handle_frame(SECOND, rpc::answer(&json!(1), r#"{"default":{"full_sync":false,"deltas":{}}}"#).unwrap());
    assert_eq!(effects(&mut link), []);
    let batch = json!([{"jsonrpc": "2.0", "method": sync::NOTIFY, "id": 0,
        "params": [{"default": {"new_version": "v02_0000000000000000000000000006"}}]}]);
    link.handle_frame(SECOND, Frame::Binary(crate::v2::block::pack(batch.to_string().as_bytes()).unwrap()));
    assert_eq!(said(&effects(&mut link)), pull(version));
    link.handle_frame(SECOND, rpc::answer(&json!(2), &full).unwrap());
    link.handle_command(SECOND, Command::Applied(Outcome::Refused("bad".to_owned())));
    let (answered, method, params) = said(&effects(&mut link)).expect("the refusal is told");
    assert_eq!((answered, method.as_str()), (false, sync::INVALID));
    assert_eq!(Refusal::read_kong(&params), Ok(Refusal { version: 5, fault: "bad".to_owned() }));
}

#[test]
fn rows_of_another_cluster_are_replaced_whatever_its_version_is() {
    for (its, ours, asked) in
        [(Some("a"), Some("a"), 5), (None, Some("a"), 5), (Some("a"), None, 5), (Some("b"), Some("a"), 0)]
    {
        let mut link = link(1);
        link.handle_opened(Duration::ZERO, Standing { version: 5, cluster_id: ours.map(str::to_owned) });
        effects(&mut link);
        link.handle_frame(Duration::ZERO, welcome_of(&[sync::CAPABILITY], its));
        let done = effects(&mut link);
        assert_eq!(pulls(&done), [(0, asked)], "{its:?} {ours:?}");
        assert_eq!(done.contains(&Effect::Report(Report::AnotherCluster)), asked == 0);
    }
    let mut link = link(1);
    link.handle_opened(Duration::ZERO, Standing { version: 5, cluster_id: Some("a".to_owned()) });
    link.handle_frame(Duration::ZERO, welcome_of(&[sync::CAPABILITY], Some("b")));
    effects(&mut link);
    for _ in 0..3 {
        link.handle_frame(SECOND, answer(0, &[2], true));
        effects(&mut link);
        link.handle_command(SECOND, Command::Applied(Outcome::Refused("bad".to_owned())));
        effects(&mut link);
        link.handle_timeout(POLL.1);
    }
    link.handle_frame(SECOND, answer(1, &[2], true));
    effects(&mut link);
    assert_eq!(pulls(&applied(&mut link, SECOND, 2)), [(2, 2)], "never the changes since a version of the other");
}

#[test]
fn a_node_that_does_not_want_sync_uses_v1_from_the_start_and_answers_calls() {
    let mut link = DpLink::new(Settings { sync: false, ..settings(1, "3.9.1") });
    link.handle_command(Duration::ZERO, Command::Start);
    assert_eq!(effects(&mut link), [Effect::Dial { control_plane: 0 }, Effect::Fallback(true)]);
    link.handle_opened(Duration::ZERO, has(0));
    link.handle_frame(Duration::ZERO, welcome(&[sync::CAPABILITY]));
    let done = effects(&mut link);
    assert!(pulls(&done).is_empty() && !done.contains(&Effect::Fallback(false)), "{done:?}");
    link.handle_frame(SECOND, rpc::call_with(4, log_level::GET, &[]).unwrap());
    assert_eq!(effects(&mut link), [Effect::LogLevel { id: json!(4), asked: Asked::Get }]);
    link.handle_command(SECOND, Command::Answer { id: json!(4), outcome: Ok(json!("x")) });
    assert_eq!(effects(&mut link), [Effect::Send(rpc::answer(&json!(4), "\"x\"").unwrap())]);
}

#[test]
fn nonsense_in_an_answer_is_refused_and_keeps_the_link() {
    let mut link = live();
    link.handle_frame(SECOND, rpc::answer(&json!(0), "{}").unwrap());
    let refused = Report::Refused { fault: "the default namespace is missing".to_owned() };
    assert_eq!(effects(&mut link), [Effect::Report(refused)]);
    assert!(link.is_synced());
    link.handle_frame(SECOND, Frame::Text(Bytes::from_static(b"x")));
    assert!(matches!(effects(&mut link).first(), Some(Effect::HangUp(Reason::PeerMessage(_)))));
}

#[test]
fn two_refusals_bring_v1_and_the_capability_ends_it() {
    let mut link = link(1);
    let mut now = Duration::ZERO;
    for round in 1..=3 {
        link.handle_lost(now, Reason::PeerRefused("404".to_owned()));
        let fallen = effects(&mut link).contains(&Effect::Fallback(true));
        assert_eq!((fallen, link.is_fallen_back()), (round == 2, round >= 2));
        now = link.next_timeout().unwrap();
        link.handle_timeout(now);
        effects(&mut link);
    }
    link.handle_opened(now, has(0));
    link.handle_frame(now, welcome(&[sync::CAPABILITY]));
    assert!(effects(&mut link).contains(&Effect::Fallback(false)));
}

#[test]
fn a_control_plane_without_the_capability_brings_v1_at_once_and_is_not_pulled() {
    let mut link = link(1);
    link.handle_opened(Duration::ZERO, has(0));
    effects(&mut link);
    link.handle_frame(Duration::ZERO, welcome(&[]));
    let done = effects(&mut link);
    assert!(done.contains(&Effect::Fallback(true)) && pulls(&done).is_empty(), "{done:?}");
    link.handle_frame(SECOND, notify(0, 6));
    assert!(pulls(&effects(&mut link)).is_empty());
}

#[test]
fn a_control_plane_out_of_reach_does_not_bring_v1() {
    let mut link = link(2);
    for _ in 0..20 {
        let now = link.next_timeout().unwrap();
        link.handle_timeout(now);
        link.handle_lost(now, Reason::PeerLost("refused".to_owned()));
        assert!(!link.is_fallen_back());
    }
}

#[test]
fn an_apply_outlives_its_link() {
    let mut link = live();
    link.handle_frame(SECOND, answer(0, &[5], true));
    link.handle_lost(SECOND, Reason::PeerLost("cut".to_owned()));
    effects(&mut link);
    assert!(pulls(&applied(&mut link, SECOND * 2, 5)).is_empty());
    assert_eq!(link.version(), 5);
}

#[test]
fn a_diverted_connection_ends_protocol_v1_and_is_left_alone_until_it_is_lost() {
    let mut link = link(1);
    link.handle_command(Duration::ZERO, Command::Start);
    for _ in 0..REFUSALS_BEFORE_FALLBACK {
        link.handle_lost(Duration::ZERO, Reason::PeerRefused("404".to_owned()));
        link.handle_timeout(link.next_timeout().unwrap());
    }
    assert!(link.is_fallen_back());
    effects(&mut link);
    link.handle_diverted();
    assert_eq!(effects(&mut link), [Effect::Fallback(false)]);
    assert_eq!(link.next_timeout(), None);
    link.handle_frame(Duration::ZERO, Frame::Close);
    assert_eq!(effects(&mut link), []);
    let reconnect_after = Duration::from_secs(20);
    link.handle_lost(Duration::ZERO, Reason::PeerLeft { reconnect_after });
    assert!((reconnect_after..=reconnect_after * 5 / 4).contains(&link.next_timeout().unwrap()));
}

#[derive(Debug, Clone)]
enum Act {
    Frame(Frame),
    Opened(u64),
    Diverted,
    Served,
    Lost(bool),
    Left(u64),
    Applied(Option<u64>),
    Wait(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (0_u64..6, proptest::collection::vec(0_u64..9, 0..3), any::<bool>())
            .prop_map(|(id, versions, wipe)| Act::Frame(answer(id, &versions, wipe))),
        2 => (0_u64..9).prop_map(|version| Act::Frame(notify(0, version))),
        1 => (0_u64..9).prop_map(|version| {
            Act::Frame(rpc::call(0, sync::NOTIFY, &sync::notify_params(version, Dialect::Texts)).unwrap())
        }),
        2 => any::<bool>().prop_map(|sync| Act::Frame(if sync { welcome(&[sync::CAPABILITY]) } else { welcome(&[]) })),
        1 => Just(Act::Frame(welcome_of(&[sync::CAPABILITY], Some("b")))),
        1 => proptest::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Act::Frame(Frame::Binary(Bytes::from(bytes)))),
        1 => Just(Act::Frame(Frame::Close)),
        1 => Just(Act::Frame(Frame::Ping(Bytes::new()))),
        3 => (0_u64..9).prop_map(Act::Opened),
        1 => Just(Act::Diverted),
        1 => Just(Act::Served),
        1 => (0_u64..100_000).prop_map(Act::Left),
        1 => any::<bool>().prop_map(Act::Lost),
        3 => proptest::option::of(0_u64..9).prop_map(Act::Applied),
        3 => (0_u64..40_000).prop_map(Act::Wait),
    ]
}

proptest! {
    #[test]
    fn no_row_of_inputs_breaks_an_invariant(acts in proptest::collection::vec(act(), 0..80)) {
        let mut link = link(2);
        let mut now = Duration::ZERO;
        let mut applying = 0;
        for act in acts {
            match act {
                Act::Frame(frame) => link.handle_frame(now, frame),
                Act::Opened(version) => {
                    link.handle_opened(now, Standing { version, cluster_id: Some("a".to_owned()) });
                }
                Act::Diverted => link.handle_diverted(),
                Act::Served => link.handle_served(now),
                Act::Left(millis) => {
                    let reconnect_after = Duration::from_millis(millis);
                    link.handle_lost(now, Reason::PeerLeft { reconnect_after });
                }
                Act::Lost(true) => link.handle_lost(now, Reason::PeerRefused("404".to_owned())),
                Act::Lost(false) => link.handle_lost(now, Reason::PeerLost("cut".to_owned())),
                Act::Applied(outcome) => {
                    applying = 0;
                    let refused = || Outcome::Refused("bad".to_owned());
                    link.handle_command(now, Command::Applied(outcome.map_or_else(refused, Outcome::Applied)));
                }
                Act::Wait(millis) => {
                    now += Duration::from_millis(millis);
                    while let Some(at) = link.next_timeout().filter(|at| *at <= now) {
                        link.handle_timeout(at);
                        prop_assert_eq!(link.broken_invariant(), None);
                    }
                }
            }
            prop_assert_eq!(link.broken_invariant(), None);
            while let Some(effect) = link.poll_effect() {
                applying += u32::from(matches!(effect, Effect::Apply { .. }));
            }
            prop_assert!(applying <= 1, "two applies at once");
        }
    }
}

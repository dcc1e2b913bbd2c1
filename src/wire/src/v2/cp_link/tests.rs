//! The control plane's side by itself.

use super::*;
use crate::v2::SILENCE_LIMIT;
use proptest::prelude::*;
use serde_json::json;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const LIMIT: usize = 1 << 20;
const SETTINGS: Settings = Settings { version: 7, sync: true, limit: LIMIT, frame_limit: LIMIT, cluster_id: None };
const ID: &str = "00000000-0000-4000-8000-000000000001";

fn hello(version: &str, capabilities: &[&str]) -> Frame {
    let capabilities = capabilities.iter().map(|name| (*name).to_owned()).collect();
    let (node_id, hostname) = ("d".to_owned(), "h".to_owned());
    Hello { capabilities, version: version.to_owned(), node_id, hostname, ..Hello::default() }.encode()
}

fn open() -> CpLink {
    open_to("3.9.1", &[sync::CAPABILITY])
}

fn open_to(version: &str, capabilities: &[&str]) -> CpLink {
    let mut link = CpLink::new(Duration::ZERO, SETTINGS);
    link.handle_frame(Duration::ZERO, hello(version, capabilities));
    assert!(matches!(effects(&mut link).as_slice(), [Effect::Send(_), Effect::Joined(_)]));
    link
}

fn effects(link: &mut CpLink) -> Vec<Effect> {
    assert_eq!(link.broken_invariant(), None);
    std::iter::from_fn(|| link.poll_effect()).collect()
}

fn sent(effects: &[Effect]) -> Vec<Message> {
    let frames = effects.iter().filter_map(|effect| match effect {
        Effect::Send(frame) => Some(Message::decode(frame, LIMIT).unwrap()),
        _ => None,
    });
    frames.collect()
}

fn call(id: Option<Value>, method: &str, params: Value) -> Frame {
    let mut call = json!({"jsonrpc": "2.0", "method": method, "params": params});
    if let Some(id) = id {
        call["id"] = id;
    }
    Frame::Binary(crate::v2::block::pack(call.to_string().as_bytes()).unwrap())
}

fn pull_params(version: u64) -> Value {
    sync::pull_params(version, Dialect::Integers)
}

fn notified(effects: &[Effect]) -> Vec<u64> {
    let calls = sent(effects).into_iter().filter_map(|message| match message {
        Message::Call { params, .. } => Some(sync::notified_version(&params).unwrap().0),
        Message::Answer { .. } => None,
    });
    calls.collect()
}

#[test]
fn a_hello_is_answered_with_the_capability_and_news_come_in_the_dialect_of_the_node() {
    let versions = [("3.9.1", Dialect::Integers), ("3.8.0", Dialect::Integers), ("3.10.0", Dialect::Texts)];
    for (version, dialect) in versions {
        let mut link = CpLink::new(Duration::ZERO, SETTINGS);
        link.handle_frame(Duration::ZERO, hello(version, &[sync::CAPABILITY]));
        let Some(Effect::Send(welcome)) = link.poll_effect() else { panic!("no answer to {version}") };
        assert!(Welcome::decode(&welcome).unwrap().offers(sync::CAPABILITY), "{version}");
        link.handle_command(SECOND, Command::NewVersion(8));
        let [Message::Call { params, .. }] = &sent(&effects(&mut link))[..] else { panic!("no news to {version}") };
        assert_eq!(sync::notified_version(params), Ok((8, dialect)), "{version}");
    }
}

#[test]
fn a_node_of_kong_3_10_is_recorded_with_what_it_names_and_answered_in_its_words() {
    let mut link = open_to("3.10.0", &[sync::CAPABILITY]);
    let pull = |text: &str| json!([{"default": {"version": text}}]);
    for (text, version) in [("v02_0000000000000000000000000003", 3), ("8dd89138b0eac8dc78edbcae31b2d3b9", 0)] {
        link.handle_frame(SECOND, call(Some(json!(0)), sync::GET_DELTA, pull(text)));
        let held = Held { version, hash: text.into(), dialect: Dialect::Texts };
        let wanted = Effect::Pull { id: json!(0), version, dialect: Dialect::Texts };
        assert_eq!(effects(&mut link), [Effect::Record(held.clone()), wanted]);
        link.handle_frame(SECOND, call(None, sync::GET_DELTA, pull(text)));
        assert_eq!(effects(&mut link), [Effect::Record(held)], "a call without an id tells what it has");
    }
    let invalid = json!([{"version": "x", "error": {"message": "bad"}}]);
    link.handle_frame(SECOND, call(None, sync::INVALID, invalid.clone()));
    assert_eq!(effects(&mut link), [Effect::Refused(Refusal { version: 0, fault: "bad".to_owned() })]);
    let mut older = open();
    older.handle_frame(SECOND, call(None, sync::INVALID, invalid));
    assert_eq!(effects(&mut older), []);
}

#[test]
fn a_newer_node_that_writes_integers_is_answered_and_told_in_integers() {
    let mut link = open_to("4.0.0", &[sync::CAPABILITY]);
    link.handle_frame(SECOND, call(Some(json!(0)), sync::GET_DELTA, json!([pull_params(3)])));
    let [Effect::Record(held), Effect::Pull { dialect, .. }] = &effects(&mut link)[..] else { panic!("no pull") };
    assert_eq!((held.hash.clone(), *dialect), (Dialect::Integers.hash(3), Dialect::Integers));
    link.handle_command(SECOND, Command::NewVersion(8));
    let [Message::Call { params, .. }] = &sent(&effects(&mut link))[..] else { panic!("no news") };
    assert_eq!(sync::notified_version(params), Ok((8, Dialect::Integers)));
}

#[test]
fn batches_are_spoken_with_kong_3_10_only() {
    let batch = |calls: Value| Frame::Binary(crate::v2::block::pack(calls.to_string().as_bytes()).unwrap());
    let unknown = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "kong.nope.v1.x", "params": []});
    let mut link = open_to("3.10.0", &[]);
    link.handle_frame(SECOND, batch(json!([unknown(1), unknown(2)])));
    assert_eq!(sent(&effects(&mut link)).len(), 2);
    link.handle_frame(SECOND, batch(json!([])));
    let [Message::Answer { id: None, outcome: Err(error) }] = &sent(&effects(&mut link))[..] else {
        panic!("no error")
    };
    assert_eq!(error, &RpcError::invalid_request());
    let mut link = open();
    link.handle_frame(SECOND, batch(json!([unknown(1)])));
    assert!(matches!(effects(&mut link).as_slice(), [Effect::HangUp(Reason::PeerMessage(_))]));
}

#[test]
fn the_cluster_is_named_to_nodes_of_gwctl_only() {
    for ours in [true, false] {
        let settings = Settings { cluster_id: Some(ID.into()), ..SETTINGS };
        let mut link = CpLink::new(Duration::ZERO, settings);
        let capabilities: &[&str] = if ours { &[sync::CAPABILITY, report::CAPABILITY] } else { &[sync::CAPABILITY] };
        link.handle_frame(Duration::ZERO, hello("3.9.1", capabilities));
        let Some(Effect::Send(welcome)) = link.poll_effect() else { panic!("no answer") };
        assert_eq!(Welcome::decode(&welcome).unwrap().cluster_id.as_deref(), ours.then_some(ID));
    }
}

#[test]
fn a_node_that_lists_the_group_is_asked_for_its_log_level_and_the_answer_comes_back() {
    let ended = |effects: Vec<Effect>| match effects.into_iter().next() {
        Some(Effect::Asked { key, outcome }) => (key, outcome),
        other => panic!("{other:?}"),
    };
    let mut link = open_to("3.9.1", &[log_level::CAPABILITY]);
    for key in [5, 6] {
        link.handle_command(SECOND, Command::Ask { key, asked: Asked::Get });
    }
    assert_eq!(sent(&effects(&mut link)).len(), 2);
    link.handle_frame(SECOND, rpc::answer(&json!(1), "7").unwrap());
    assert_eq!(ended(effects(&mut link)), (6, Ok(json!(7))));
    link.handle_timeout(SECOND + CALL_LIMIT);
    let (key, outcome) = ended(effects(&mut link));
    assert_eq!((key, outcome.unwrap_err().message.as_str()), (5, "no answer from the data plane within 5 s"));
    link.handle_command(SECOND * 8, Command::Ask { key: 8, asked: Asked::Get });
    effects(&mut link);
    link.handle_frame(SECOND * 8, Frame::Close);
    assert_eq!(ended(effects(&mut link)).0, 8, "the end of the link ends its calls");
    let mut other = open();
    other.handle_command(SECOND, Command::Ask { key: 1, asked: Asked::Get });
    assert!(ended(effects(&mut other)).1.is_err());
}

#[test]
fn whoever_says_no_hello_in_time_is_left() {
    let mut late = CpLink::new(Duration::ZERO, SETTINGS);
    late.handle_timeout(CALL_LIMIT - SECOND);
    assert!(!late.is_closed());
    late.handle_timeout(CALL_LIMIT);
    assert_eq!(effects(&mut late), [Effect::HangUp(Reason::PeerSlow)]);
    for frame in
        [Frame::Ping(Bytes::new()), Frame::Text(Bytes::new()), call(Some(json!(1)), sync::GET_DELTA, json!([]))]
    {
        let mut link = CpLink::new(Duration::ZERO, SETTINGS);
        link.handle_frame(Duration::ZERO, frame);
        assert!(matches!(effects(&mut link).as_slice(), [Effect::HangUp(Reason::PeerHello(_))]));
    }
}

#[test]
fn a_pull_is_recorded_and_answered_under_its_id() {
    let mut link = open();
    for id in [json!(0), json!("abc")] {
        link.handle_frame(SECOND, call(Some(id.clone()), sync::GET_DELTA, json!([pull_params(3)])));
        let held = Held { version: 3, hash: Dialect::Integers.hash(3), dialect: Dialect::Integers };
        let pull = Effect::Pull { id: id.clone(), version: 3, dialect: Dialect::Integers };
        assert_eq!(effects(&mut link), [Effect::Record(held), pull]);
        link.handle_command(SECOND, Command::Answer { id: id.clone(), outcome: Ok(r#"{"default":5}"#.into()) });
        let [Message::Answer { outcome, .. }] = &sent(&effects(&mut link))[..] else { panic!("no answer") };
        assert_eq!(outcome, &Ok(json!({"default": 5})));
    }
}

#[test]
fn an_answer_over_the_limit_is_an_error_and_keeps_the_link() {
    let mut link = CpLink::new(Duration::ZERO, Settings { frame_limit: 300, ..SETTINGS });
    link.handle_frame(Duration::ZERO, hello("3.9.1", &[sync::CAPABILITY]));
    effects(&mut link);
    link.handle_frame(SECOND, call(Some(json!(0)), sync::GET_DELTA, json!([pull_params(3)])));
    effects(&mut link);
    // What repeats packs well.
    let long: String = (0..2000_u32).map(|number| number.wrapping_mul(2_654_435_761).to_string()).collect();
    let outcome = Ok(json!(long).to_string().into());
    link.handle_command(SECOND, Command::Answer { id: json!(0), outcome });
    let done = effects(&mut link);
    assert!(matches!(done[0], Effect::Report(Report::AnswerTooLong { actual: 1000.., limit: 300 })), "{done:?}");
    let [Message::Answer { id: Some(0), outcome: Err(error) }] = &sent(&done)[..] else { panic!("{done:?}") };
    assert!(error.message.contains("cluster_max_payload"), "{error}");
    assert!(link.is_open());
}

#[test]
fn wrong_calls_are_answered_with_kongs_codes_and_notifications_not_at_all() {
    let mut link = open();
    for (method, params, code) in [
        ("kong.nope.v1.x", json!([]), -32601),
        (sync::NOTIFY, json!([sync::notify_params(3, Dialect::Integers)]), -32601),
        (sync::GET_DELTA, json!([{}]), -32000),
        (sync::GET_DELTA, json!([]), -32602),
    ] {
        link.handle_frame(SECOND, call(Some(json!(4)), method, params));
        let [Message::Answer { id: Some(4), outcome: Err(error) }] = &sent(&effects(&mut link))[..] else {
            panic!("no error for {method}")
        };
        assert_eq!(error.code, code, "{method}");
    }
    link.handle_frame(SECOND, call(None, "kong.nope.v1.x", json!([pull_params(3)])));
    link.handle_frame(SECOND, rpc::answer(&json!(77), "true").unwrap());
    assert_eq!(effects(&mut link), []);
}

#[test]
fn a_silent_node_is_told_of_the_newest_version_only() {
    let mut link = open();
    link.handle_command(SECOND, Command::NewVersion(8));
    assert_eq!(notified(&effects(&mut link)), [8]);
    for version in 9..20 {
        link.handle_command(SECOND, Command::NewVersion(version));
    }
    assert_eq!(effects(&mut link), []);
    link.handle_timeout(SECOND + CALL_LIMIT);
    let told = effects(&mut link);
    assert_eq!(told[0], Effect::Report(Report::NotifyUnanswered));
    assert_eq!(notified(&told), [19]);
    // The answer frees the way for the next, an error as well.
    link.handle_command(SECOND * 7, Command::NewVersion(20));
    link.handle_frame(SECOND * 7, rpc::failure(&json!(1), &RpcError::failed("boom")).unwrap());
    let told = effects(&mut link);
    assert_eq!(told[0], Effect::Report(Report::NotifyFailed(RpcError::failed("boom"))));
    assert_eq!(notified(&told), [20]);
}

#[test]
fn a_node_that_does_not_ask_after_its_hello_is_told_of_the_version_there_is() {
    let told = |link: &mut CpLink, at: Duration| {
        link.handle_timeout(at);
        notified(&effects(link))
    };
    let mut link = open();
    assert!(told(&mut link, CALL_LIMIT - SECOND).is_empty());
    assert_eq!(told(&mut link, CALL_LIMIT), [7]);
    link.handle_frame(CALL_LIMIT, rpc::answer(&json!(0), "true").unwrap());
    assert_eq!(effects(&mut link), []);
    assert!(told(&mut link, CALL_LIMIT * 2).is_empty(), "once");
    let mut asking = open();
    asking.handle_frame(SECOND, call(Some(json!(0)), sync::GET_DELTA, json!([pull_params(3)])));
    effects(&mut asking);
    assert!(told(&mut asking, CALL_LIMIT).is_empty());
    let mut newer = open();
    newer.handle_command(SECOND, Command::NewVersion(8));
    assert_eq!(notified(&effects(&mut newer)), [8]);
    newer.handle_frame(SECOND, rpc::answer(&json!(0), "true").unwrap());
    assert!(told(&mut newer, CALL_LIMIT).is_empty(), "it knows");
    assert!(told(&mut open_to("3.9.1", &[]), CALL_LIMIT).is_empty(), "it would not understand");
}

#[test]
fn a_refusal_is_heard_from_nodes_that_were_offered_to_tell_it() {
    let refusal = Refusal { version: 5, fault: "bad".to_owned() };
    for told in [true, false] {
        let mut link = CpLink::new(Duration::ZERO, SETTINGS);
        let capabilities: &[&str] = if told { &[sync::CAPABILITY, report::CAPABILITY] } else { &[sync::CAPABILITY] };
        link.handle_frame(Duration::ZERO, hello("3.9.1", capabilities));
        let Some(Effect::Send(welcome)) = link.poll_effect() else { panic!("no answer") };
        assert_eq!(Welcome::decode(&welcome).unwrap().offers(report::CAPABILITY), told);
        effects(&mut link);
        link.handle_frame(SECOND, rpc::notification(report::REFUSED, &refusal.params()).unwrap());
        let heard = if told { vec![Effect::Refused(refusal.clone())] } else { Vec::new() };
        assert_eq!(effects(&mut link), heard);
    }
}

#[test]
fn with_the_setting_off_nothing_is_offered_told_or_answered() {
    let mut link = CpLink::new(Duration::ZERO, Settings { sync: false, ..SETTINGS });
    link.handle_frame(Duration::ZERO, hello("3.9.1", &[sync::CAPABILITY]));
    let Some(Effect::Send(welcome)) = link.poll_effect() else { panic!("no answer") };
    assert!(!Welcome::decode(&welcome).unwrap().offers(sync::CAPABILITY));
    effects(&mut link);
    link.handle_command(SECOND, Command::NewVersion(8));
    assert_eq!(effects(&mut link), []);
    link.handle_frame(SECOND, call(Some(json!(0)), sync::GET_DELTA, json!([pull_params(3)])));
    let [Message::Answer { outcome: Err(error), .. }] = &sent(&effects(&mut link))[..] else { panic!("no error") };
    assert_eq!(error, &RpcError::method_not_found());
}

#[test]
fn a_node_without_the_capability_is_not_notified() {
    let mut link = CpLink::new(Duration::ZERO, SETTINGS);
    link.handle_frame(Duration::ZERO, hello("3.9.1", &[]));
    effects(&mut link);
    link.handle_command(SECOND, Command::NewVersion(8));
    assert_eq!(effects(&mut link), []);
}

#[test]
fn an_idle_link_is_pinged_and_a_silent_one_given_up() {
    let mut link = open_to("3.9.1", &[]);
    let mut pings = 0;
    while !link.is_closed() {
        let at = link.next_timeout().unwrap();
        assert!(at <= SILENCE_LIMIT);
        link.handle_timeout(at);
        pings += effects(&mut link).iter().filter(|effect| matches!(effect, Effect::Send(Frame::Ping(_)))).count();
    }
    assert_eq!(pings, 3);
    let mut link = open_to("3.9.1", &[]);
    link.handle_frame(SECOND * 20, Frame::Ping(Bytes::from_static(b"abc")));
    assert_eq!(effects(&mut link), [Effect::Send(Frame::Pong(Bytes::new()))]);
    assert_eq!(link.next_timeout(), Some(SECOND * 50));
}

#[test]
fn a_flood_of_calls_ends_the_link() {
    let mut link = open();
    for id in 0..=CALLS_LIMIT {
        link.handle_frame(SECOND, call(Some(json!(id)), sync::GET_DELTA, json!([pull_params(3)])));
    }
    assert_eq!(effects(&mut link).last(), Some(&Effect::HangUp(Reason::PeerFlood)));
    assert_eq!(link.next_timeout(), None);
}

fn input() -> impl Strategy<Value = Frame> {
    prop_oneof![
        Just(hello("3.9.1", &[sync::CAPABILITY])),
        Just(call(None, sync::GET_DELTA, json!([{"default": {"version": "v02_0000000000000000000000000003"}}]))),
        (0_u64..30).prop_map(|version| call(Some(json!(version)), sync::GET_DELTA, json!([pull_params(version)]))),
        (0_u64..5).prop_map(|id| rpc::answer(&json!(id), "true").unwrap()),
        Just(Frame::Ping(Bytes::new())),
        Just(Frame::Pong(Bytes::new())),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Frame::Binary(Bytes::from(bytes))),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Frame::Text(Bytes::from(bytes))),
        Just(Frame::Close),
    ]
}

proptest! {
    #[test]
    fn no_row_of_inputs_breaks_an_invariant(
        begun in proptest::option::of(prop_oneof![Just("3.9.1"), Just("3.10.0")]),
        inputs in proptest::collection::vec((input(), 0_u64..20_000, proptest::option::of(0_u64..30)), 0..40),
    ) {
        let mut link = CpLink::new(Duration::ZERO, SETTINGS);
        let mut now = Duration::ZERO;
        if let Some(version) = begun {
            link.handle_frame(now, hello(version, &[sync::CAPABILITY, log_level::CAPABILITY]));
        }
        for (frame, pause, version) in inputs {
            now += Duration::from_millis(pause);
            while let Some(at) = link.next_timeout().filter(|at| *at <= now) {
                link.handle_timeout(at);
                prop_assert_eq!(link.broken_invariant(), None);
            }
            link.handle_frame(now, frame);
            prop_assert_eq!(link.broken_invariant(), None);
            if let Some(version) = version {
                link.handle_command(now, Command::NewVersion(version));
                prop_assert_eq!(link.broken_invariant(), None);
                link.handle_command(now, Command::Ask { key: version, asked: Asked::Get });
                prop_assert_eq!(link.broken_invariant(), None);
            }
            while let Some(effect) = link.poll_effect() {
                if let Effect::Pull { id, .. } = effect {
                    link.handle_command(now, Command::Answer { id, outcome: Ok("{}".into()) });
                }
            }
        }
    }
}

//! Peers with the right certificate and bad manners by the protocols that bring changes: gwctl's own sync and protocol v2,
//! in both directions.

use super::peers_of_control_plane::{self as at_control_plane, Attacked, BINARY, upgraded_by};
use super::peers_of_data_plane::{Impostor, frame, orphan_with, redialed};
use super::wire::until_end;
use super::{GWCTL, is_well, peak_memory};
use gwctl_testkit::{Cluster, NodeOptions, get, wait_until};
use gwctl_wire::Frame;
use gwctl_wire::stream::message::{Changes, FromCp, FromDp, Hello, Row};
use gwctl_wire::v2::{self, rpc, sync};
use serde_json::{Value, json};
use std::io::{ErrorKind, Write};
use std::time::{Duration, Instant};

const OWN_SYNC: &str = "Gwctl-Sync: 1\r\n";
/// Time until a flood is cut: buffers fill, then the time for a write passes.
const FLOOD_LIMIT: Duration = Duration::from_secs(300);
const NODE: &str = "00000000-0000-4000-8000-0000000000ee";
const V2: &str = "Sec-WebSocket-Protocol: kong.meta.v1\r\n";

fn payload(frame: &Frame) -> Vec<u8> {
    match frame {
        Frame::Binary(payload) | Frame::Text(payload) => payload.to_vec(),
        other => panic!("{other:?} has no message"),
    }
}

/// JSON that is deeper than any reader should follow.
fn deep(kind: u8) -> Vec<u8> {
    [&[kind], "[".repeat(100_000).as_bytes()].concat()
}

fn v2_on(options: NodeOptions) -> NodeOptions {
    options.set("cluster_rpc", "on").set("cluster_incremental_sync", "on").set("cluster_gwctl_sync", "off")
}

/// Sends each case on a link of its own, behind what opens it, and waits for the control plane to end it.
fn attack(attacked: &Attacked, protocol: &str, headers: &str, opening: &[u8], cases: &[(&str, Vec<u8>)]) {
    for (number, (name, bytes)) in cases.iter().enumerate() {
        let mut stream = upgraded_by(&attacked.cluster, number, protocol, headers);
        stream.write_all(opening).unwrap();
        // The link may be ended before everything is out.
        let _ = stream.write_all(bytes);
        let _ = stream.flush();
        until_end(&mut stream);
        assert!(!attacked.cp.log().contains("panicked"), "{name}: {}", attacked.cp.log());
    }
    let log = attacked.cp.log();
    assert!(!log.contains("no hello within"), "it is refused for what it is, not for being slow: {log}");
    let peak = peak_memory(&attacked.cp);
    assert!(peak < 200, "{peak} MiB");
    attacked.still_serves(&format!("after-{}", opening.len()));
}

#[test]
fn messages_of_our_own_sync_without_sense_end_their_own_link_only() {
    let attacked = Attacked::start_with(|options| options);
    attacked.still_serves("before");
    let say = |payload: &[u8]| at_control_plane::frame(BINARY, payload);
    let tell = |message: &FromDp| say(&payload(&message.encode()));
    let hello = Hello {
        node_id: NODE.to_owned(),
        hostname: "evil".to_owned(),
        version: "0.1.0".to_owned(),
        kong_version: "3.9.1".to_owned(),
        ..Hello::default()
    };
    // 64 MiB of one letter are some KiB on the wire; a data plane may say 1 MiB.
    let bomb = tell(&FromDp::WantSnapshot { why: "a".repeat(64 << 20) });
    assert!(bomb.len() < 1 << 20, "the bomb passes as a frame: {}", bomb.len());
    let header = |length: u64| [&[BINARY, 0xFF], length.to_be_bytes().as_slice(), &[0; 4]].concat();
    let cases = vec![
        ("an empty message", say(b"")),
        ("a text", at_control_plane::frame(0x81, b"{}")),
        ("noise", say(&[1, b'x', 0xff])),
        ("noise to be unpacked", say(&[0x81, 7, 7, 7, 7, 7])),
        ("deep JSON", say(&deep(1))),
        ("a report before the hello", tell(&FromDp::Taken { pieces: 1 })),
        ("a bomb", bomb.clone()),
        ("a length beyond memory", header(u64::MAX)),
        ("a length of 1 GiB", header(1 << 30)),
    ];
    attack(&attacked, "v1", OWN_SYNC, &[], &cases);
    let after = vec![
        ("a deep report", say(&deep(2))),
        ("a report of another shape", say(b"\x02{\"version\":-1,\"digest\":[]}")),
        ("a bomb", bomb),
        ("a refusal of another shape", say(b"\x03[]")),
    ];
    attack(&attacked, "v1", OWN_SYNC, &tell(&FromDp::Hello(Box::new(hello))), &after);
}

#[test]
fn reports_that_cannot_be_right_harm_only_the_row_of_who_tells_them() {
    let attacked = Attacked::start_with(|options| options);
    let tell = |message: &FromDp| at_control_plane::frame(BINARY, &payload(&message.encode()));
    let hello = Hello {
        node_id: "00000000-0000-4000-8000-0000000000ef".to_owned(),
        hostname: "evil".to_owned(),
        version: "0.1.0".to_owned(),
        kong_version: "3.9.1".to_owned(),
        ..Hello::default()
    };
    let began = Instant::now();
    let mut link = upgraded_by(&attacked.cluster, 1, "v1", OWN_SYNC);
    link.write_all(&tell(&FromDp::Hello(Box::new(hello)))).unwrap();
    for _ in 0..2000 {
        link.write_all(&tell(&FromDp::Taken { pieces: u64::MAX })).unwrap();
        link.write_all(&tell(&FromDp::WantSnapshot { why: "again".to_owned() })).unwrap();
    }
    link.flush().unwrap();
    attacked.still_serves("during");
    let copies = attacked.cp.log().matches("data plane is sent the whole configuration").count();
    // One each five seconds at most.
    let most = 9 + began.elapsed().as_secs() / 5;
    assert!(copies as u64 <= most, "{copies} copies for the asking");
    drop(link);
    attacked.still_serves("after");
}

/// Sends frames without end and reads nothing; comes back once the control plane has cut the connection.
fn flood_until_cut(mut stream: at_control_plane::Stream, opening: &[u8], frame: &[u8]) {
    stream.write_all(opening).unwrap();
    let (many, mut at) = (frame.repeat(300), 0);
    let until = Instant::now() + FLOOD_LIMIT;
    loop {
        match stream.write(&many[at..]) {
            Ok(length) => at = (at + length) % many.len(),
            // The control plane takes no more for now.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
        assert!(Instant::now() < until, "a peer that reads nothing is held for ever");
    }
}

#[test]
fn peers_that_flood_and_read_nothing_are_cut_by_every_protocol() {
    let attacked =
        Attacked::start_with(|options| options.set("cluster_rpc", "on").set("cluster_incremental_sync", "on"));
    attacked.still_serves("before");
    let own = Hello {
        node_id: NODE.to_owned(),
        hostname: "evil".to_owned(),
        kong_version: "3.9.1".to_owned(),
        ..Hello::default()
    };
    let floods = [
        ("v1", "", at_control_plane::frame(BINARY, br#"{"type":"basic_info","plugins":[]}"#), [b'0'; 32].as_slice()),
        ("v1", OWN_SYNC, at_control_plane::frame(BINARY, &payload(&FromDp::Hello(Box::new(own)).encode())), &[7; 125]),
        ("v2", V2, v2_opening(), &[7; 125]),
    ];
    std::thread::scope(|scope| {
        for (number, (protocol, headers, opening, ping)) in floods.iter().enumerate() {
            let stream = upgraded_by(&attacked.cluster, number + 1, protocol, headers);
            scope.spawn(move || flood_until_cut(stream, opening, &at_control_plane::frame(0x89, ping)));
        }
        attacked.still_serves("during");
    });
    let peak = peak_memory(&attacked.cp);
    assert!(peak < 200, "{peak} MiB");
    // A connection is told of when it has ended.
    wait_until("the reasons to be told", || {
        let log = attacked.cp.log();
        log.matches("peer reads nothing for 30 s").count() == 2
            && log.matches("pings while the data plane read nothing").count() == 1
    });
    attacked.still_serves("after");
}

/// What a data plane says first by protocol v2.
fn v2_opening() -> Vec<u8> {
    let hello = v2::Hello {
        capabilities: vec![sync::CAPABILITY.to_owned()],
        version: "3.9.1".to_owned(),
        node_id: NODE.to_owned(),
        hostname: "evil".to_owned(),
        conf: serde_json::Map::new(),
    };
    let frame = hello.encode();
    let kind = if let Frame::Text(_) = frame { 0x81 } else { BINARY };
    at_control_plane::frame(kind, &payload(&frame))
}

#[test]
fn messages_of_protocol_v2_without_sense_end_their_own_link_only() {
    let attacked = Attacked::start_with(v2_on);
    let say = |payload: &[u8]| at_control_plane::frame(BINARY, payload);
    let opening = v2_opening();
    let nested = (0..300).fold(Value::Null, |inner, _| json!([inner]));
    let cases = vec![
        ("noise", say(&[0xff; 500])),
        ("a block that claims 4 GiB", say(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0, b'a'])),
        ("deep JSON", say(&payload(&rpc::call(1, sync::GET_DELTA, &nested).unwrap()))),
        ("a length beyond memory", [&[BINARY, 0xFF], u64::MAX.to_be_bytes().as_slice(), &[0; 4]].concat()),
    ];
    attack(&attacked, "v2", V2, &[], &cases);
    attack(&attacked, "v2", V2, &opening, &cases);
}

/// Sends each case to the data plane on a link of its own; it says why it refuses and serves what it had.
fn attack_data_plane(headers: &'static str, set: fn(NodeOptions) -> NodeOptions, cases: Vec<(&str, Vec<u8>, &str)>) {
    let cluster = Cluster::new(GWCTL);
    let (mut dp, _upstream) = orphan_with(&cluster, set);
    let impostor = Impostor::with(&cluster, headers);
    for (name, bytes, says) in cases {
        let mut link = redialed(&mut dp, &impostor);
        let before = dp.log().len();
        let _ = link.write_all(&bytes);
        let _ = link.flush();
        wait_until(&format!("{name} to be refused"), || dp.log()[before..].contains(says));
        assert_eq!(get(dp.proxy(), "/good").status, 200, "{name}");
        let peak = peak_memory(&dp);
        assert!(peak < 300, "{name}: {peak} MiB");
        is_well(&dp);
    }
}

#[test]
fn a_data_plane_refuses_what_makes_no_sense_by_our_own_sync_and_serves_on() {
    let tell = |message: &FromCp| frame(&payload(&message.encode()));
    let welcome = tell(&FromCp::Welcome { store_id: "s".to_owned(), version: 9, heartbeat_ms: 1000 });
    let after_welcome = |frames: &[Vec<u8>]| [welcome.clone(), frames.concat()].concat();
    let bomb = tell(&FromCp::Withheld { status: "s".to_owned(), words: "a".repeat(64 << 20) });
    let begin = tell(&FromCp::SnapshotBegin { version: 9, why: "test".to_owned() });
    let end = |digest: &str| tell(&FromCp::SnapshotEnd { version: 9, digest: digest.to_owned() });
    let stranger = Row { entity: "nothing".to_owned(), id: "1".to_owned(), new: json!({"id": 1}).as_object().cloned() };
    let nonsense =
        Row { entity: "services".to_owned(), id: "1".to_owned(), new: json!({"id": 7}).as_object().cloned() };
    let changes = Changes { from: 7, to: 9, ..Changes::default() };
    let cases = vec![
        ("no welcome", begin.clone(), "something else than an answer to the hello"),
        ("an empty message", after_welcome(&[frame(b"")]), "an empty one"),
        ("noise", after_welcome(&[frame(&[0x91, 7, 7, 7, 7])]), "cannot be unpacked"),
        ("a bomb", after_welcome(&[bomb]), "bytes when unpacked"),
        ("deep JSON", after_welcome(&[frame(&deep(17))]), "is not the JSON it should be"),
        ("a header of 1 GiB", [&[0x82, 127], (1_u64 << 30).to_be_bytes().as_slice()].concat(), "cluster_max_payload"),
        (
            "a row of no entity",
            after_welcome(&[begin.clone(), tell(&FromCp::SnapshotRows { rows: vec![stranger] })]),
            "no entity this node knows",
        ),
        (
            "a row without sense",
            after_welcome(&[begin.clone(), tell(&FromCp::SnapshotRows { rows: vec![nonsense] })]),
            "changes refused",
        ),
        ("another digest", after_welcome(&[begin.clone(), end(&"1".repeat(32))]), "the rows lead to the digest"),
        ("a digest that is none", after_welcome(&[begin.clone(), end("none")]), "changes refused"),
        (
            "changes of nowhere",
            after_welcome(&[tell(&FromCp::Changes(changes))]),
            "the whole configuration is asked for",
        ),
        ("a flood", after_welcome(&vec![begin; 3000]), "than it may send unanswered"),
    ];
    attack_data_plane(OWN_SYNC, |options| options, cases);
}

#[test]
fn a_data_plane_refuses_what_makes_no_sense_by_protocol_v2_and_serves_on() {
    let nested = (0..300).fold(Value::Null, |inner, _| json!([inner]));
    let deep = payload(&rpc::call(1, sync::NOTIFY, &nested).unwrap());
    let cases = vec![
        ("noise", frame(&[0xff; 500]), "no connection to control plane"),
        (
            "a block that claims 4 GiB",
            frame(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0, b'a']),
            "no connection to control plane",
        ),
        ("deep JSON", frame(&deep), "no connection to control plane"),
        ("a header of 1 GiB", [&[0x82, 127], (1_u64 << 30).to_be_bytes().as_slice()].concat(), "cluster_max_payload"),
    ];
    attack_data_plane(V2, v2_on, cases);
}

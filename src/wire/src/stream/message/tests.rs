//! What is said arrives, and what is hostile does no harm.

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn row(number: u64, text: &str) -> Row {
    let new = json!({"id": number.to_string(), "name": text, "weight": 0.1, "tags": null});
    Row { entity: "services".to_owned(), id: number.to_string(), new: new.as_object().cloned() }
}

fn from_dp() -> Vec<FromDp> {
    let held = Some(Held { store_id: "s".to_owned(), version: 7, digest: "d".to_owned() });
    let plugins = vec![PluginVersion { name: "acl".to_owned(), version: Some("3.9.1".to_owned()) }];
    let hello = Hello { node_id: "n".to_owned(), plugins, held, ..Hello::default() };
    vec![
        FromDp::Hello(Box::new(hello)),
        FromDp::Report(Applied { version: 7, digest: "d".to_owned(), stored_us: 5, active_us: 6 }),
        FromDp::Refused(Refused { version: 8, serving: Some(7), fault: "bad".to_owned(), ..Refused::default() }),
        FromDp::WantSnapshot { why: "gap".to_owned() },
        FromDp::Taken { pieces: 3 },
        FromDp::Goodbye,
        FromDp::Unknown(99),
    ]
}

fn from_cp() -> Vec<FromCp> {
    let digest = "d".to_owned();
    let rows = vec![row(1, "a"), Row { new: None, ..row(2, "") }];
    vec![
        FromCp::Welcome { store_id: "s".to_owned(), version: 7, heartbeat_ms: 5000 },
        FromCp::Changes(Changes { from: 7, to: 9, digest: digest.clone(), committed_millis: 1, rows: rows.clone() }),
        FromCp::Same { version: 9, digest: digest.clone() },
        FromCp::SnapshotBegin { version: 9, why: "nothing held".to_owned() },
        FromCp::SnapshotRows { rows },
        FromCp::SnapshotEnd { version: 9, digest },
        FromCp::Withheld { status: "plugin_set_incompatible".to_owned(), words: "lacks acl".to_owned() },
        FromCp::Goodbye { reconnect_after_ms: 250 },
        FromCp::Unknown(100),
    ]
}

#[test]
fn every_message_comes_out_as_it_went_in() {
    for message in from_dp() {
        assert_eq!(FromDp::decode(&message.encode()).unwrap(), message);
    }
    for message in from_cp() {
        assert_eq!(FromCp::decode(&message.encode()).unwrap(), message);
    }
}

#[test]
fn short_messages_are_plain_and_long_ones_compressed() {
    let first = |frame: &Frame| match frame {
        Frame::Binary(payload) => payload[0],
        _ => panic!("a binary frame"),
    };
    assert_eq!(FromDp::Goodbye.encode(), Frame::Binary(Bytes::from_static(b"\x06{}")));
    let long = FromCp::SnapshotRows { rows: (0..100).map(|number| row(number, "name")).collect() };
    assert_eq!(first(&long.encode()), 19 | COMPRESSED);
    assert!(long.encode().payload_len() < 1500, "{}", long.encode().payload_len());
    assert_eq!(FromCp::decode(&long.encode()).unwrap(), long);
}

#[test]
fn a_bomb_is_noticed_while_it_unpacks() {
    let zeros = vec![b' '; CP_LIMIT + 1];
    let bomb = zstd::bulk::compress(&zeros, 19).unwrap();
    assert!(bomb.len() < 10_000);
    let frame = |kind: u8| Frame::Binary([&[kind | COMPRESSED], bomb.as_slice()].concat().into());
    assert_eq!(FromCp::decode(&frame(19)), Err(MessageError::PeerTooLong { kind: 19, limit: CP_LIMIT }));
    assert_eq!(FromDp::decode(&frame(1)), Err(MessageError::PeerTooLong { kind: 1, limit: DP_LIMIT }));
    let plain = Frame::Binary([&[1_u8], zeros.as_slice()].concat().into());
    assert_eq!(FromDp::decode(&plain), Err(MessageError::PeerTooLong { kind: 1, limit: DP_LIMIT }));
}

#[test]
fn deep_json_wrong_types_and_wrong_frames_are_refused_without_their_content() {
    let of = |kind: u8, json: &str| Frame::Binary([&[kind], json.as_bytes()].concat().into());
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    for json in [deep.as_str(), "", "null", "{\"from\":-1}", "{\"from\":1e99,\"to\":2}", "{\"rows\":{}}", "secret"] {
        let error = FromCp::decode(&of(17, json)).unwrap_err();
        assert!(matches!(error, MessageError::PeerJson { kind: 17, .. }), "{error}");
        assert!(!error.to_string().contains("secret"));
    }
    for frame in [Frame::Text(Bytes::from_static(b"x")), Frame::Close, Frame::Binary(Bytes::new())] {
        assert!(matches!(FromDp::decode(&frame), Err(MessageError::PeerFrame { .. })));
    }
    assert!(matches!(FromDp::decode(&of(0x81, "{}")), Err(MessageError::PeerDamaged { kind: 1, .. })));
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let frame = Frame::Binary(bytes.into());
        let _ = (FromCp::decode(&frame), FromDp::decode(&frame));
    }

    #[test]
    fn damaged_messages_never_panic(which in 0_usize..9, at: prop::sample::Index, byte: u8, cut: prop::sample::Index) {
        let long = FromCp::SnapshotRows { rows: (0..40).map(|number| row(number, "name")).collect() };
        for message in [from_cp()[which].clone(), long] {
            let Frame::Binary(payload) = message.encode() else { panic!("a binary frame") };
            let mut bytes = payload.to_vec();
            let place = at.index(bytes.len());
            bytes[place] = byte;
            bytes.truncate(cut.index(bytes.len()) + 1);
            let frame = Frame::Binary(bytes.into());
            let _ = (FromCp::decode(&frame), FromDp::decode(&frame));
        }
    }

    #[test]
    fn rows_keep_every_number_and_text(number: f64, integer: i64, text: String) {
        prop_assume!(number.is_finite());
        let new = json!({"float": number, "integer": integer, "text": text});
        let row = Row { entity: "services".to_owned(), id: "1".to_owned(), new: new.as_object().cloned() };
        let message = FromCp::SnapshotRows { rows: vec![row] };
        let Frame::Binary(payload) = message.encode() else { panic!("a binary frame") };
        let again = FromCp::decode(&Frame::Binary(payload.clone())).unwrap();
        prop_assert_eq!(again.encode(), Frame::Binary(payload), "equal bytes at both ends");
        prop_assert_eq!(again, message);
    }
}

//! Frames and copies from a real store.

use super::*;
use crate::start::bootstrap;
use gwctl_entities::{NodeKind, RegistryOptions};
use gwctl_store::{Digest, LmdbOptions, LmdbStore, Origin};
use gwctl_wire::stream::Held;
use gwctl_wire::v1::PluginVersion;
use serde_json::{Value, json};

struct Stage {
    publisher: Arc<Publisher>,
    store: Arc<dyn Store>,
    _folder: tempfile::TempDir,
}

fn stage() -> Stage {
    let folder = tempfile::tempdir().expect("a folder");
    let registry = Arc::new(Registry::bundled(&RegistryOptions {
        kind: NodeKind::ControlPlane,
        router_flavor: "traditional_compatible".to_owned(),
        plugins: None,
    }));
    let store = LmdbStore::open(folder.path(), registry, LmdbOptions::default()).expect("a store");
    let store: Arc<dyn Store> = Arc::new(store);
    bootstrap(&*store).expect("the first rows");
    let publisher = Publisher::new(store.clone(), Version::new(3, 9, 1), |_, _, _| {}).expect("a publisher");
    Stage { publisher: Arc::new(publisher), store, _folder: folder }
}

fn id(number: u64) -> String {
    format!("00000001-0000-4000-8000-{number:012}")
}

impl Stage {
    fn put(&self, number: u64, host: &str) {
        let row = json!({"id": id(number), "name": format!("s{number}"), "host": host});
        let row = row.as_object().cloned().expect("an object");
        let write = |write: &mut dyn gwctl_entities::Write| match write.get("services", &id(number))? {
            Some(_) => write.replace("services", row.clone()),
            None => write.insert("services", row.clone()),
        };
        self.store.write(&Origin::new("", "test"), &mut |batch| write(batch)).expect("a commit");
    }

    fn plugin(&self, number: u64, name: &str, enabled: bool) {
        let row = json!({"id": id(number), "name": name, "enabled": enabled});
        let row = row.as_object().cloned().expect("an object");
        let write = |write: &mut dyn gwctl_entities::Write| match write.get("plugins", &id(number))? {
            Some(_) => write.replace("plugins", row.clone()),
            None => write.insert("plugins", row.clone()),
        };
        self.store.write(&Origin::new("", "test"), &mut |batch| write(batch)).expect("a commit");
    }

    fn publish(&self) {
        let (before, newest) = (*self.publisher.newest.borrow(), self.store.version());
        self.publisher.take(before, newest).expect("the store answers");
        self.publisher.newest.send_replace(newest);
    }

    fn fetch(&self, from: u64) -> message::Changes {
        match self.publisher.fetch(from) {
            Fetched::Changes { to, frame } => match FromCp::decode(&frame) {
                Ok(FromCp::Changes(changes)) => {
                    assert_eq!((changes.from, changes.to), (from, to));
                    changes
                }
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    fn hello(&self, held: Option<Held>) -> Hello {
        Hello { kong_version: "3.9.1".to_owned(), held, ..Hello::default() }
    }

    fn held(&self, version: u64) -> Held {
        let digest = self.store.digest_at(version).expect("the store answers").unwrap_or_default().to_string();
        Held { store_id: self.store.id().to_owned(), version, digest }
    }
}

#[test]
fn the_frame_of_a_version_is_made_once_and_the_same_for_all() {
    let stage = stage();
    let _listening = stage.publisher.versions();
    let before = stage.store.version();
    stage.put(1, "a");
    stage.publish();
    let Some(Fetched::Changes { frame: Frame::Binary(first), .. }) = stage.publisher.ready(before) else {
        panic!("it is at hand")
    };
    let Some(Fetched::Changes { frame: Frame::Binary(second), .. }) = stage.publisher.ready(before) else {
        panic!("it is at hand")
    };
    assert_eq!(first.as_ptr(), second.as_ptr(), "the same bytes");
    assert_eq!(stage.fetch(before).digest, stage.held(before + 1).digest);
}

#[test]
fn versions_are_joined_to_the_last_state_of_each_row() {
    let stage = stage();
    let before = stage.store.version();
    (0..9).for_each(|number| stage.put(number % 2, &format!("h{number}")));
    stage.publish();
    let changes = stage.fetch(before);
    assert_eq!((changes.to, changes.digest), (before + 9, stage.held(before + 9).digest));
    let hosts: Vec<Value> = changes.rows.iter().map(|row| row.new.as_ref().expect("a row")["host"].clone()).collect();
    assert_eq!(hosts, [json!("h8"), json!("h7")]);
}

#[test]
fn what_the_log_forgot_or_is_too_large_is_copied() {
    let stage = stage();
    let before = stage.store.version();
    stage.put(1, "a");
    stage.put(1, "b");
    stage.store.trim_log(1).expect("trimmed");
    assert!(matches!(stage.publisher.fetch(before), Fetched::Snapshot { why } if why.contains("no longer holds")));
    let before = stage.store.version();
    let path = format!("/{}", "x".repeat(1 << 20));
    let row = |number: u64| json!({"id": id(number), "name": format!("s{number}"), "host": "h", "path": path});
    let rows: Vec<_> = (10..15).filter_map(|number| row(number).as_object().cloned()).collect();
    let insert =
        |write: &mut dyn gwctl_entities::Write| rows.iter().try_for_each(|row| write.insert("services", row.clone()));
    stage.store.write(&Origin::new("", "test"), &mut |batch| insert(batch)).expect("a commit");
    assert!(matches!(stage.publisher.fetch(before), Fetched::Snapshot { why } if why.contains("5 rows at once")));
    assert!(matches!(stage.publisher.fetch(before + 9), Fetched::Snapshot { .. }), "of another store");
}

#[test]
fn a_copy_made_while_rows_change_comes_to_the_digest_it_ends_with() {
    let stage = stage();
    let long = "h".repeat(2000);
    (0..400).for_each(|number| stage.put(number, &long));
    let mut cursor = Cursor::Rows { begun: stage.publisher.begin(), after: None };
    let (mut rows, mut pieces) = (BTreeMap::new(), 0);
    let end = loop {
        match stage.publisher.piece(cursor).expect("the store answers") {
            Copied::Piece { frame, next } => {
                let Ok(FromCp::SnapshotRows { rows: piece }) = FromCp::decode(&frame) else { panic!("a piece") };
                rows.extend(piece.into_iter().map(|row| ((row.entity, row.id), row.new)));
                pieces += 1;
                cursor = next;
                if pieces < 9 {
                    stage.put(pieces * 40, "changed");
                    stage
                        .store
                        .write(&Origin::new("", "test"), &mut |write| {
                            write.delete("services", &id(pieces * 40 + 1)).map(drop)
                        })
                        .expect("a commit");
                }
            }
            Copied::End { version, digest } => break (version, digest),
            other => panic!("{other:?}"),
        }
    };
    assert!(pieces >= 4, "{pieces} pieces");
    let mut digest = Digest::default();
    for ((entity, id), row) in rows.iter().filter_map(|(place, row)| Some((place, row.as_ref()?))) {
        digest.add(entity, id, row);
    }
    assert_eq!((end.0 <= stage.store.version(), end.1), (true, digest.to_string()));
}

#[test]
fn a_node_begins_with_what_it_holds_if_this_store_had_it() {
    let stage = stage();
    let first = stage.held(stage.store.version());
    stage.put(1, "a");
    let start = |held: Option<Held>| stage.publisher.start(&stage.hello(held)).expect("the store answers").1;
    assert_eq!(start(Some(first.clone())), Start::From(first.version));
    assert!(matches!(start(None), Start::Snapshot { .. }));
    let newest = stage.held(stage.store.version());
    let renamed = Held { store_id: "other".to_owned(), version: 77, ..newest.clone() };
    assert_eq!(start(Some(renamed)), Start::Same { version: newest.version, digest: newest.digest.clone() });
    let branched = Held { digest: newest.digest, ..first };
    assert!(matches!(start(Some(branched.clone())), Start::Same { .. }));
    let strange = Held { digest: "0".repeat(32), version: 1, ..branched };
    assert!(matches!(start(Some(strange)), Start::Snapshot { .. }));
}

#[test]
fn a_node_without_a_plugin_in_use_is_withheld_the_configuration() {
    let stage = stage();
    let hello = Hello {
        plugins: vec![PluginVersion { name: "cors".to_owned(), version: Some("3.9.1".to_owned()) }],
        ..stage.hello(None)
    };
    assert_eq!(stage.publisher.judge(&hello), None);
    let listening = stage.publisher.versions();
    stage.plugin(9, "acl", true);
    stage.publish();
    let withheld = stage.publisher.judge(&hello).expect("it lacks acl");
    assert_eq!(withheld.status, "plugin_set_incompatible");
    assert!(withheld.words.contains("acl"), "{}", withheld.words);
    let newer = Hello { kong_version: "4.0.0".to_owned(), ..hello.clone() };
    assert_eq!(stage.publisher.judge(&newer).expect("too new").status, "kong_version_incompatible");
    stage.plugin(8, "cors", true);
    stage.plugin(9, "acl", false);
    stage.publish();
    assert_eq!(stage.publisher.judge(&hello), None, "it is out of use");
    drop(listening);
    stage.plugin(9, "acl", true);
    stage.publish();
    let _listening = stage.publisher.versions();
    stage.publisher.start(&hello).expect("the store answers");
    assert!(stage.publisher.judge(&hello).is_some(), "what happened before there was a node is known to the first");
}

#[test]
fn a_version_of_any_size_follows_a_copy_in_pieces() {
    let stage = stage();
    let before = stage.store.version();
    let path = format!("/{}", "x".repeat(PIECE_BYTES / 3));
    let row = |number: u64| json!({"id": id(number), "name": format!("s{number}"), "host": "h", "path": path});
    let rows: Vec<_> = (10..20).filter_map(|number| row(number).as_object().cloned()).collect();
    let insert =
        |write: &mut dyn gwctl_entities::Write| rows.iter().try_for_each(|row| write.insert("services", row.clone()));
    stage.store.write(&Origin::new("", "test"), &mut |batch| insert(batch)).expect("a commit");
    stage.put(30, "small");
    let mut cursor = Cursor::Log { version: before, sent: 0, until: before + 2 };
    let mut sizes = Vec::new();
    while let Copied::Piece { frame, next } = stage.publisher.piece(cursor).expect("the store answers") {
        let Ok(FromCp::SnapshotRows { rows }) = FromCp::decode(&frame) else { panic!("a piece") };
        sizes.push(rows.len());
        cursor = next;
    }
    assert_eq!(sizes.iter().sum::<usize>(), 11);
    assert!(sizes.iter().all(|size| (1..=4).contains(size)), "{sizes:?}");
}

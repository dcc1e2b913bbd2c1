//! Answers from a real store.

use super::*;
use crate::start::bootstrap;
use gwctl_entities::{NodeKind, RegistryOptions, Write};
use gwctl_store::{LmdbOptions, LmdbStore, Origin};
use gwctl_wire::v2::Deltas;
use serde_json::json;

struct Stage {
    answers: Answers,
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
    Stage { answers: Answers::new(store.clone(), true).expect("answers"), store, _folder: folder }
}

const SERVICE: &str = "00000001-0000-4000-8000-000000000001";
const ROUTE: &str = "00000002-0000-4000-8000-000000000001";

impl Stage {
    fn write(&self, work: impl Fn(&mut dyn Write) -> Result<(), EntityError>) -> u64 {
        let commit = self.store.write(&Origin::new("", "test"), &mut |write| work(write)).expect("a commit");
        commit.version
    }

    fn insert(&self, entity: &str, row: &Value) -> u64 {
        self.write(|write| write.insert(entity, row.as_object().cloned().unwrap_or_default()))
    }

    fn since(&self, version: u64) -> Deltas {
        self.since_in(version, Dialect::Integers)
    }

    fn since_in(&self, version: u64, dialect: Dialect) -> Deltas {
        let text = self.answers.since(version, dialect).expect("an answer");
        Deltas::read(serde_json::from_str(&text).expect("JSON")).expect("deltas")
    }

    fn a_route(&self) {
        self.insert("services", &json!({"id": SERVICE, "name": "s", "host": "h", "enabled": false}));
        self.insert("routes", &json!({"id": ROUTE, "paths": ["/x"], "service": {"id": SERVICE}}));
    }
}

#[test]
fn changes_come_in_order_with_foreign_keys_as_objects_and_deletions_by_key() {
    let stage = stage();
    stage.a_route();
    stage.write(|write| write.delete("routes", ROUTE).map(drop));
    let deltas = stage.since(1);
    assert!(!deltas.wipe);
    let kinds: Vec<_> = deltas.deltas.iter().map(|delta| (delta.kind.as_str(), delta.version)).collect();
    assert_eq!(kinds, [("services", 2), ("routes", 3), ("routes", 4)]);
    let route = deltas.deltas[1].entity.as_ref().expect("a row");
    assert_eq!((&route["service"], &route["methods"]), (&json!({"id": SERVICE}), &Value::Null));
    assert_eq!((&deltas.deltas[2].entity, &deltas.deltas[2].pk["id"]), (&None, &json!(ROUTE)));
    assert_eq!(stage.since(3).deltas.len(), 1);
    assert_eq!(stage.since(4), Deltas::default());
}

#[test]
fn whoever_has_nothing_is_ahead_or_far_behind_is_sent_everything_disabled_rows_too() {
    let stage = stage();
    stage.a_route();
    for version in [0, 99, u64::MAX] {
        let deltas = stage.since(version);
        let kinds: Vec<_> = deltas.deltas.iter().map(|delta| delta.kind.as_str()).collect();
        assert_eq!(kinds, ["workspaces", "parameters", "services", "routes"], "{version}");
        assert!(deltas.wipe && deltas.deltas.iter().all(|delta| delta.version == 3));
    }
    stage.store.trim_log(1).expect("a shorter log");
    assert!(stage.since(1).wipe, "the log no longer leads on from there");
    assert!(!stage.since(2).wipe);
    assert_eq!(since(1, 1 + FULL_SYNC_BEHIND, Dialect::Integers), 1);
    assert_eq!(since(1, 2 + FULL_SYNC_BEHIND, Dialect::Integers), 0);
}

#[test]
fn a_node_of_kong_3_10_is_sent_everything_or_nothing() {
    let stage = stage();
    stage.a_route();
    for version in [0, 1, 2, 99] {
        let deltas = stage.since_in(version, Dialect::Texts);
        assert!(deltas.wipe && deltas.dialect == Dialect::Texts && deltas.version() == Some(3), "{version}");
    }
    let nothing = stage.since_in(3, Dialect::Texts);
    assert_eq!(nothing, Deltas { dialect: Dialect::Texts, ..Deltas::default() });
    assert_eq!(stage.since(3), Deltas::default(), "each dialect has its own answers");
}

#[test]
fn a_time_to_live_is_the_second_of_expiry_in_changes_and_in_everything() {
    let stage = stage();
    let (consumer, key) = ("00000004-0000-4000-8000-000000000001", "00000005-0000-4000-8000-000000000001");
    stage.insert("consumers", &json!({"id": consumer, "username": "u"}));
    let expires = gwctl_store::unix_millis() as f64 / 1000.0 + 500.0;
    let row = json!({"id": key, "key": "k", "consumer": {"id": consumer}, "ttl": expires});
    let version = stage.insert("keyauth_credentials", &row);
    for since in [version - 1, 0] {
        let deltas = stage.since(since).deltas;
        let sent = deltas.iter().find(|delta| delta.kind == "keyauth_credentials").expect("the credential");
        let ttl = sent.entity.as_ref().and_then(|row| row["ttl"].as_f64()).expect("a time");
        assert!((ttl - expires).abs() < 1.5, "{ttl} of {expires}");
    }
}

#[test]
fn an_answer_is_kept_until_the_next_version() {
    let stage = stage();
    stage.a_route();
    assert!(stage.answers.ready(2, Dialect::Integers).is_none());
    let made = stage.answers.since(2, Dialect::Integers).expect("an answer");
    assert!(stage.answers.ready(2, Dialect::Integers).is_some_and(|kept| Arc::ptr_eq(&kept, &made)));
    stage.write(|write| write.delete("routes", ROUTE).map(drop));
    assert!(stage.answers.ready(2, Dialect::Integers).is_none());
    assert_eq!(stage.since(2).deltas.len(), 2);
}

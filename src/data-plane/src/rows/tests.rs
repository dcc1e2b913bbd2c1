//! Rows against a cache and a gateway.

use super::*;
use crate::directory::RecordDirectory;
use crate::gateway::Gateway;
use gwctl_entities::{NodeKind, Record, RegistryOptions};
use gwctl_plugins::{Natives, Node};
use gwctl_proxy::SnapshotOptions;
use gwctl_router::Flavor;
use gwctl_store::{DataPlaneCache, Digest, Portion};
use gwctl_wire::v1::reconfigure::Limits;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

struct Stage {
    configured: Configured,
    start: Instant,
    _folder: tempfile::TempDir,
}

fn stage() -> Stage {
    let folder = tempfile::tempdir().unwrap();
    let registry = Arc::new(Registry::bundled(&RegistryOptions {
        kind: NodeKind::DataPlane,
        router_flavor: "traditional_compatible".to_owned(),
        plugins: None,
    }));
    let cache = Arc::new(DataPlaneCache::open(folder.path(), registry.clone(), "tag").unwrap());
    let node = Arc::new(Node::new("node", "host", Arc::new(RecordDirectory::new(cache.clone()))));
    let options = SnapshotOptions {
        flavor: Flavor::TraditionalCompatible,
        hosts: vec![Arc::new(Natives)],
        node,
        upstream_tls: Arc::default(),
    };
    let gateway = Arc::new(Gateway::new(options));
    let configured = Configured::new(registry, cache, gateway, Limits::default());
    Stage { configured, start: Instant::now(), _folder: folder }
}

fn id(kind: u8, number: u8) -> String {
    format!("{kind:08x}-0000-4000-8000-0000000000{number:02x}")
}

fn row(entity: &str, new: &Value) -> Row {
    let id = new["id"].as_str().unwrap().to_owned();
    Row { entity: entity.to_owned(), id, new: new.as_object().cloned() }
}

fn service(number: u8, port: u16) -> Row {
    let (id, name) = (id(1, number), format!("s{number}"));
    let times = (1_700_000_000, 1_700_000_000);
    row(
        "services",
        &json!({"id": id, "name": name, "host": "127.0.0.1", "port": port, "protocol": "http", "retries": 5,
            "connect_timeout": 60000, "read_timeout": 60000, "write_timeout": 60000, "enabled": true,
            "created_at": times.0, "updated_at": times.1}),
    )
}

fn route(number: u8, service: u8, regex: &str) -> Row {
    let (own, parent) = (id(2, number), id(1, service));
    row(
        "routes",
        &json!({"id": own, "paths": [regex], "service": {"id": parent}, "protocols": ["http"],
            "created_at": 1_700_000_000, "updated_at": 1_700_000_000}),
    )
}

/// Rows and the digest they come to.
#[derive(Default)]
struct Model(BTreeMap<(String, String), Record>);

impl Model {
    fn put(&mut self, rows: &[Row]) -> String {
        for row in rows {
            let place = (row.entity.clone(), row.id.clone());
            match &row.new {
                Some(new) => _ = self.0.insert(place, new.clone()),
                None => _ = self.0.remove(&place),
            }
        }
        let mut digest = Digest::default();
        self.0.iter().for_each(|((entity, id), record)| digest.add(entity, id, record));
        digest.to_string()
    }
}

impl Stage {
    fn work(&self, work: Work) -> Outcome {
        self.configured.work(work, self.start)
    }

    fn copy(&self, version: u64, rows: Vec<Row>, digest: String) -> Outcome {
        assert_eq!(self.work(Work::Begin), Outcome::Taken);
        for row in rows {
            let outcome = self.work(Work::Rows(vec![row]));
            if outcome != Outcome::Taken {
                return outcome;
            }
        }
        self.work(Work::Finish { held: Held { store_id: "s".to_owned(), version, digest } })
    }

    fn change(&self, from: u64, rows: Vec<Row>, digest: String) -> Outcome {
        self.work(Work::Change(Changes { from, to: from + 1, digest, committed_millis: 0, rows }))
    }

    fn ports(&self) -> Vec<u64> {
        let loaded = self.configured.cache.load(Portion::Whole).unwrap().unwrap_or_default();
        loaded.records.get("services").into_iter().flatten().map(|row| row["port"].as_u64().unwrap()).collect()
    }
}

fn applied(outcome: &Outcome, version: u64) -> bool {
    matches!(outcome, Outcome::Applied { held, .. } if held.version == version)
}

#[test]
fn a_copy_and_the_changes_after_it_are_in_force_and_in_the_cache() {
    let (stage, mut model) = (stage(), Model::default());
    assert_eq!(stage.configured.held(), None);
    let rows = vec![service(1, 80), route(1, 1, "/a")];
    let digest = model.put(&rows);
    assert!(applied(&stage.copy(7, rows, digest.clone()), 7));
    assert_eq!(stage.configured.held(), Some(Held { store_id: "s".to_owned(), version: 7, digest }));
    let rows = vec![service(1, 81), Row { new: None, ..route(1, 1, "/a") }];
    let digest = model.put(&rows);
    assert!(applied(&stage.change(7, rows, digest.clone()), 8));
    assert_eq!(stage.ports(), [81]);
    assert_eq!(stage.configured.hash(), Some(ConfigHash::from(digest.as_str())));
    assert_eq!(stage.configured.cache.damage().unwrap(), None);
}

#[test]
fn a_bad_row_is_named_and_leaves_everything_as_it_was() {
    let (stage, mut model) = (stage(), Model::default());
    let rows = vec![service(1, 80)];
    let digest = model.put(&rows);
    stage.copy(1, rows, digest.clone());
    let held = stage.configured.held();
    let mut bad = service(2, 80);
    bad.new.as_mut().unwrap().insert("port".to_owned(), json!(99_999));
    let outcome = stage.change(1, vec![service(1, 90), bad.clone()], digest.clone());
    let Outcome::Refused { row: Some(place), fault } = outcome else { panic!("{outcome:?}") };
    assert_eq!(place, ("services".to_owned(), id(1, 2)));
    assert!(fault.contains("port"), "{fault}");
    let Outcome::Refused { row: Some(place), .. } = stage.copy(2, vec![service(1, 90), bad], digest.clone()) else {
        panic!("refused")
    };
    assert_eq!(place.1, id(1, 2));
    let stranger = Row { entity: "strangers".to_owned(), ..service(3, 1) };
    assert!(matches!(stage.change(1, vec![stranger], digest.clone()), Outcome::Refused { row: Some(_), .. }));
    let other_key = Row { id: id(1, 9), ..service(3, 1) };
    assert!(matches!(stage.change(1, vec![other_key], digest.clone()), Outcome::Refused { row: Some(_), .. }));
    let unbuildable = vec![route(1, 1, "~/(unclosed")];
    assert!(matches!(stage.change(1, unbuildable, digest), Outcome::Refused { .. }));
    assert_eq!((stage.configured.held(), stage.ports()), (held, vec![80]));
}

#[test]
fn rows_that_lead_elsewhere_are_told_and_not_kept() {
    let (stage, mut model) = (stage(), Model::default());
    let rows = vec![service(1, 80)];
    let digest = model.put(&rows);
    assert!(applied(&stage.copy(1, rows, digest.clone()), 1));
    let found = Model::default().put(&[service(1, 81)]);
    assert_eq!(stage.change(1, vec![service(1, 81)], digest.clone()), Outcome::Diverged { found: found.clone() });
    assert_eq!(stage.copy(2, vec![service(1, 81)], digest.clone()), Outcome::Diverged { found });
    assert!(matches!(stage.change(5, vec![service(1, 81)], digest.clone()), Outcome::Diverged { .. }));
    let adopted = Held { store_id: "t".to_owned(), version: 40, digest: "1".repeat(32) };
    assert!(matches!(stage.work(Work::Adopt { held: adopted }), Outcome::Diverged { .. }));
    assert_eq!(stage.ports(), [80]);
    let adopted = Held { store_id: "t".to_owned(), version: 40, digest };
    assert!(applied(&stage.work(Work::Adopt { held: adopted.clone() }), 40));
    assert_eq!(stage.configured.held(), Some(adopted));
}

#[test]
fn a_digest_that_is_none_is_refused() {
    let stage = stage();
    assert!(matches!(stage.copy(1, vec![service(1, 80)], "none".to_owned()), Outcome::Refused { row: None, .. }));
}

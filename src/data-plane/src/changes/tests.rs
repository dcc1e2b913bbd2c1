//! Batches against a cache, and nodes built by changes against nodes built at once.

use super::*;
use crate::directory::RecordDirectory;
use crate::gateway::Gateway;
use gwctl_entities::{NodeKind, RegistryOptions};
use gwctl_plugins::{Natives, Node};
use gwctl_proxy::SnapshotOptions;
use gwctl_router::Flavor;
use gwctl_store::{DataPlaneCache, Portion};
use gwctl_wire::v1::reconfigure::Limits;
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;

/// A node that nobody sends requests to.
struct Stage {
    configured: Configured,
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
    Stage { configured: Configured::new(registry, cache, gateway, Limits::default()), _folder: folder }
}

impl Stage {
    fn apply(&self, wipe: bool, rows: &[(u64, Value)]) -> Outcome {
        let deltas: Vec<Value> = rows
            .iter()
            .map(|(version, row)| {
                let mut row = row.clone();
                row["version"] = json!(version);
                row
            })
            .collect();
        let deltas = Deltas::read(json!({"default": {"deltas": deltas, "wipe": wipe}})).unwrap();
        self.configured.apply_deltas(deltas, self.configured.version())
    }

    fn refusal(&self, wipe: bool, rows: &[(u64, Value)]) -> String {
        match self.apply(wipe, rows) {
            Outcome::Refused(fault) => fault,
            other => panic!("{other:?}"),
        }
    }

    fn content(&self) -> CachedConfiguration {
        self.configured.cache.load(Portion::Whole).unwrap().unwrap()
    }
}

fn id(kind: u8, number: u8) -> String {
    format!("{kind:08x}-0000-4000-8000-0000000000{number:02x}")
}

fn service(number: u8, port: u16) -> Value {
    let (id, name) = (id(1, number), format!("s{number}"));
    json!({"type": "services", "entity": {"id": id, "name": name, "host": "127.0.0.1", "port": port, "protocol": "http"}})
}

fn route(number: u8, service: u8) -> Value {
    let (own, parent, path) = (id(2, number), id(1, service), format!("/r{number}"));
    json!({"type": "routes", "entity": {"id": own, "paths": [path], "service": {"id": parent}, "protocols": ["http"]}})
}

fn plugin(number: u8, route: u8) -> Value {
    let (own, parent) = (id(3, number), id(2, route));
    json!({"type": "plugins", "entity": {"id": own, "name": "cors", "route": {"id": parent}, "protocols": ["http"]}})
}

fn deleted(kind: &str, id: String) -> Value {
    json!({"type": kind, "pk": {"id": id}, "entity": null})
}

#[test]
fn a_start_from_the_cache_serves_what_was_applied() {
    let stage = stage();
    stage.apply(true, &[(1, service(1, 80)), (1, route(1, 1)), (1, plugin(1, 1))]);
    stage.apply(false, &[(2, route(2, 1))]);
    let Configured { registry, cache, .. } = &stage.configured;
    let node = Arc::new(Node::new("node", "host", Arc::new(RecordDirectory::new(cache.clone()))));
    let options = SnapshotOptions {
        flavor: Flavor::TraditionalCompatible,
        hosts: vec![Arc::new(Natives)],
        node,
        upstream_tls: Arc::default(),
    };
    let gateway = Arc::new(Gateway::new(options));
    let started = Configured::new(registry.clone(), cache.clone(), gateway, Limits::default());
    started.start_from_cache();
    assert_eq!((started.version(), started.hash()), (2, stage.configured.hash()));
    // The rows are there: one more route of the service is a change like any other.
    let rows = json!({"default": {"wipe": false, "deltas": [{
        "type": "routes", "entity": route(3, 1)["entity"].clone(), "version": 3,
    }]}});
    assert_eq!(started.apply_deltas(Deltas::read(rows).unwrap(), 2), Outcome::Applied(3));
}

#[test]
fn changes_build_on_what_is_there_and_their_last_version_counts() {
    let stage = stage();
    assert_eq!(stage.apply(true, &[(5, service(1, 80)), (5, route(1, 1))]), Outcome::Applied(5));
    assert_eq!(stage.configured.version(), 5);
    let rows = [(6, service(1, 81)), (7, route(2, 1)), (8, service(1, 82)), (9, deleted("routes", id(2, 1)))];
    assert_eq!(stage.apply(false, &rows), Outcome::Applied(9));
    let content = stage.content();
    assert_eq!(content.hash, "00000000000000000000000000000009");
    assert_eq!(content.records["services"][0]["port"], json!(82));
    assert_eq!(content.records["routes"].iter().map(|row| &row["id"]).collect::<Vec<_>>(), [&json!(id(2, 2))]);
}

#[test]
fn a_deleted_workspace_is_a_row_like_any_other() {
    let stage = stage();
    let workspace = json!({"type": "workspaces", "entity": {"id": id(6, 1), "name": "default"}});
    assert_eq!(stage.apply(true, &[(5, workspace), (5, service(1, 80))]), Outcome::Applied(5));
    let rows = [(6, deleted("workspaces", id(6, 1))), (7, service(1, 81))];
    assert_eq!(stage.apply(false, &rows), Outcome::Applied(7));
    assert_eq!(stage.content().records["services"][0]["port"], json!(81));
}

#[test]
fn a_batch_with_one_bad_row_changes_nothing_and_names_it() {
    let stage = stage();
    stage.apply(true, &[(5, service(1, 80)), (5, route(1, 1))]);
    let before = stage.content();
    let flat = json!({"type": "routes", "entity": {"id": id(2, 3), "paths": ["/x"], "service": id(1, 1)}});
    let cases = [
        (json!({"type": "nopes", "entity": {"id": "x"}}), "`nopes` is no entity this node knows"),
        (
            service(2, 0)
                .pointer("/entity")
                .map(|_| json!({"type": "services", "entity": {"id": id(1, 2), "host": "h", "port": 99_999}}))
                .unwrap(),
            "port",
        ),
        (json!({"type": "services", "entity": {"id": id(1, 2), "host": "h", "nope": 1}}), "nope"),
        (route(3, 9), "service 00000001-0000-4000-8000-000000000009 does not exist"),
        (flat, "service is a text"),
        (deleted("services", id(1, 1)), "routes 00000002-0000-4000-8000-000000000001 refers to it still"),
        (json!({"type": "services", "entity": {"id": id(1, 2), "host": "h", "name": "s1"}}), "name is that of"),
    ];
    for (row, fault) in cases {
        let refusal = stage.refusal(false, &[(6, service(1, 81)), (7, row)]);
        assert!(refusal.contains(fault), "{refusal}");
        assert_eq!(stage.content(), before);
        assert_eq!(stage.configured.version(), 5);
    }
    let refusal = stage.refusal(true, &[(9, route(1, 1))]);
    assert!(refusal.contains("service"), "{refusal}");
    assert_eq!(stage.content(), before);
}

#[test]
fn a_parent_and_its_children_may_come_and_go_in_one_batch() {
    let stage = stage();
    stage.apply(true, &[(1, service(1, 80))]);
    let born = [(2, plugin(1, 1)), (3, route(1, 2)), (4, service(2, 80))];
    assert_eq!(stage.apply(false, &born), Outcome::Applied(4), "the order does not matter");
    let gone = [deleted("services", id(1, 2)), deleted("routes", id(2, 1)), deleted("plugins", id(3, 1))];
    let gone: Vec<_> = gone.into_iter().map(|row| (5, row)).collect();
    assert_eq!(stage.apply(false, &gone), Outcome::Applied(5));
    assert!(!stage.content().records.contains_key("routes"));
    assert_eq!(stage.apply(false, &[(6, deleted("routes", id(2, 1)))]), Outcome::Applied(6), "gone already");
}

#[test]
fn rows_for_another_version_are_refused_but_not_such_that_replace_everything() {
    let stage = stage();
    stage.apply(true, &[(5, service(1, 80))]);
    let deltas = |wipe| Deltas {
        wipe,
        ..Deltas::read(
            json!({"default": {"deltas": [{"type": "services", "version": 3, "entity": service(1, 81)["entity"]}]}}),
        )
        .unwrap()
    };
    assert!(matches!(stage.configured.apply_deltas(deltas(false), 4), Outcome::Refused(_)));
    assert_eq!(stage.configured.apply_deltas(deltas(true), 4), Outcome::Applied(3));
}

#[test]
fn seconds_left_become_the_second_of_expiry() {
    let stage = stage();
    let consumer = json!({"type": "consumers", "entity": {"id": id(4, 1), "username": "u"}});
    stage.apply(true, &[(1, consumer)]);
    let key = |ttl: f64| json!({"type": "keyauth_credentials", "entity": {"id": id(5, 1), "key": "k", "consumer": {"id": id(4, 1)}, "ttl": ttl}});
    let stored = || stage.content().records["keyauth_credentials"][0]["ttl"].as_f64().unwrap();
    let now = unix_millis() as f64 / 1000.0;
    assert_eq!(stage.apply(false, &[(2, key(60.0))]), Outcome::Applied(2));
    assert!((stored() - now - 60.0).abs() < 30.0);
    assert_eq!(stage.apply(false, &[(3, key(9_000_000_000.0))]), Outcome::Applied(3));
    assert_eq!(stored(), 9_000_000_000.0);
}

#[test]
fn a_removal_looks_at_no_more_of_those_left_behind_than_it_tells_of() {
    let stage = stage();
    let routes = (0..30).map(|number| (1, route(number, 1)));
    let all: Vec<_> = std::iter::once((1, service(1, 80))).chain(routes).collect();
    assert_eq!(stage.apply(true, &all), Outcome::Applied(1));
    let some = (0..3).map(|number| (2, deleted("routes", id(2, number))));
    let most = (0..28).map(|number| (2, deleted("routes", id(2, number))));
    let gone = || std::iter::once((2, deleted("services", id(1, 1))));
    let refusal = stage.refusal(false, &gone().chain(some).collect::<Vec<_>>());
    assert!(refusal.ends_with("; and at least 1 more"), "{refusal}");
    let refusal = stage.refusal(false, &gone().chain(most).collect::<Vec<_>>());
    assert_eq!(refusal.matches("refers to it still").count(), 2, "{refusal}");
    let all: Vec<_> = gone().chain((0..30).map(|number| (2, deleted("routes", id(2, number))))).collect();
    assert_eq!(stage.apply(false, &all), Outcome::Applied(2));
}

/// A change of a small world: two services that stay, routes and plugins that come, change and go.
#[derive(Debug, Clone)]
enum Act {
    Service(u8, u16),
    Route(u8, u8),
    Plugin(u8, u8),
    DeleteRoute(u8),
    DeletePlugin(u8),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0_u8..2, 1_u16..9).prop_map(|(number, port)| Act::Service(number, port)),
        (0_u8..6, 0_u8..2).prop_map(|(number, service)| Act::Route(number, service)),
        (0_u8..6).prop_map(|number| Act::Plugin(number, number)),
        (0_u8..6).prop_map(Act::DeleteRoute),
        (0_u8..6).prop_map(Act::DeletePlugin),
    ]
}

/// The rows of a change, as a control plane with the world would log them.
fn rows(world: &mut BTreeMap<(u8, u8), Value>, act: &Act) -> Vec<Value> {
    let mut put = |kind: u8, number: u8, row: Value| {
        world.insert((kind, number), row.clone());
        vec![row]
    };
    match *act {
        Act::Service(number, port) => put(1, number, service(number, port)),
        Act::Route(number, parent) => put(2, number, route(number, parent)),
        Act::Plugin(number, parent) if world.contains_key(&(2, parent)) => {
            let row = plugin(number, parent);
            world.insert((3, number), row.clone());
            vec![row]
        }
        Act::Plugin(..) => Vec::new(),
        Act::DeleteRoute(number) => {
            let plugin = world.remove(&(3, number)).map(|_| deleted("plugins", id(3, number)));
            let route = world.remove(&(2, number)).map(|_| deleted("routes", id(2, number)));
            plugin.into_iter().chain(route).collect()
        }
        Act::DeletePlugin(number) => {
            world.remove(&(3, number)).map(|_| deleted("plugins", id(3, number))).into_iter().collect()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// However changes are gathered into batches, they lead to what a full answer leads to.
    #[test]
    fn a_node_built_by_changes_equals_one_built_at_once(acts in proptest::collection::vec((act(), any::<bool>()), 1..40)) {
        let (changed, replaced) = (stage(), stage());
        let mut world: BTreeMap<(u8, u8), Value> = (0..2).map(|number| ((1, number), service(number, 80))).collect();
        let first: Vec<_> = world.values().map(|row| (1, row.clone())).collect();
        prop_assert_eq!(changed.apply(true, &first), Outcome::Applied(1));
        let (mut version, mut batch) = (1, Vec::new());
        for (act, flush) in acts {
            let rows = rows(&mut world, &act);
            if !rows.is_empty() {
                version += 1;
                batch.extend(rows.into_iter().map(|row| (version, row)));
            }
            if flush && !batch.is_empty() {
                prop_assert_eq!(changed.apply(false, &std::mem::take(&mut batch)), Outcome::Applied(version));
            }
        }
        if !batch.is_empty() {
            prop_assert_eq!(changed.apply(false, &batch), Outcome::Applied(version));
        }
        let everything: Vec<_> = world.values().map(|row| (version, row.clone())).collect();
        prop_assert_eq!(replaced.apply(true, &everything), Outcome::Applied(version));
        let (mut one, mut other) = (changed.content(), replaced.content());
        // Times that the rows do not carry are filled in when they arrive.
        for content in [&mut one, &mut other] {
            content.records.remove("workspaces");
            for row in content.records.values_mut().flatten() {
                row.retain(|name, _| !name.ends_with("_at"));
            }
        }
        prop_assert_eq!(one, other);
    }
}

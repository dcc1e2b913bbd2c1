//! A data plane that lived through a few hundred random changes equals one that just started.

use super::{applied, fleet, v2};
use gwctl_entities::{NodeKind, Registry, RegistryOptions};
use gwctl_store::{CachedConfiguration, DataPlaneCache, Portion};
use gwctl_testkit::{Random, delete, patch, post};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

const CHANGES: usize = 300;

/// What exists, by collection.
#[derive(Default)]
struct World {
    services: Vec<String>,
    routes: Vec<String>,
    consumers: Vec<String>,
    upstreams: Vec<String>,
}

fn made(admin: u16, path: &str, body: &Value) -> Option<String> {
    let answer = post(admin, path, body);
    assert!(matches!(answer.status, 201 | 409), "{path} {body}: {} {}", answer.status, answer.body);
    (answer.status == 201).then(|| answer.json()["id"].as_str().unwrap().to_owned())
}

impl World {
    /// One random change through the Admin API.
    fn change(&mut self, admin: u16, random: &mut Random, number: usize, port: u16) {
        let some = |random: &mut Random, ids: &[String]| (!ids.is_empty()).then(|| random.below(ids.len()));
        match random.below(12) {
            0 => {
                let enabled = random.below(4) > 0;
                let service =
                    json!({"host": "127.0.0.1", "port": port, "name": format!("s{number}"), "enabled": enabled});
                self.services.extend(made(admin, "/services", &service));
            }
            1..=3 => {
                let Some(at) = some(random, &self.services) else { return };
                let route = json!({"paths": [format!("/r{number}")], "tags": [format!("t{}", number % 7)]});
                self.routes.extend(made(admin, &format!("/services/{}/routes", self.services[at]), &route));
            }
            4 => {
                let Some(at) = some(random, &self.routes) else { return };
                let change = json!({"strip_path": number.is_multiple_of(2), "methods": ["GET", "POST"]});
                assert_eq!(patch(admin, &format!("/routes/{}", self.routes[at]), &change).status, 200);
            }
            5 => {
                let Some(at) = some(random, &self.routes) else { return };
                let plugin = match random.below(3) {
                    0 => json!({"name": "key-auth"}),
                    1 => json!({"name": "cors", "enabled": random.below(2) > 0}),
                    _ => json!({"name": "rate-limiting", "config": {"minute": 1000, "policy": "local"}}),
                };
                made(admin, &format!("/routes/{}/plugins", self.routes[at]), &plugin);
            }
            6 => self.consumers.extend(made(admin, "/consumers", &json!({"username": format!("u{number}")}))),
            7 => {
                let Some(at) = some(random, &self.consumers) else { return };
                let key = json!({"key": format!("key-{number}"), "ttl": 100_000});
                made(admin, &format!("/consumers/{}/key-auth", self.consumers[at]), &key);
            }
            8 => self.upstreams.extend(made(admin, "/upstreams", &json!({"name": format!("u{number}.local")}))),
            9 => {
                let Some(at) = some(random, &self.upstreams) else { return };
                let target = json!({"target": format!("127.0.0.1:{}", 1000 + number), "weight": 10});
                made(admin, &format!("/upstreams/{}/targets", self.upstreams[at]), &target);
            }
            10 => {
                let Some(at) = some(random, &self.routes) else { return };
                assert_eq!(delete(admin, &format!("/routes/{}", self.routes.swap_remove(at))).status, 204);
            }
            _ => {
                let (path, ids) = match random.below(2) {
                    0 => ("consumers", &mut self.consumers),
                    _ => ("upstreams", &mut self.upstreams),
                };
                let Some(at) = some(random, ids) else { return };
                assert_eq!(delete(admin, &format!("/{path}/{}", ids.swap_remove(at))).status, 204);
            }
        }
    }
}

/// What a stopped data plane holds.
fn content(prefix: &Path) -> CachedConfiguration {
    let registry = Registry::bundled(&RegistryOptions {
        kind: NodeKind::DataPlane,
        router_flavor: "traditional_compatible".to_owned(),
        plugins: None,
    });
    let cache = DataPlaneCache::open(&prefix.join("dbless.lmdb"), Arc::new(registry), DataPlaneCache::FORMAT).unwrap();
    cache.load(Portion::Whole).unwrap().expect("a configuration")
}

#[test]
fn a_node_built_by_changes_equals_one_that_was_given_everything() {
    let mut fleet = fleet(1);
    fleet.in_sync();
    let mut random = Random(20);
    let mut world = World::default();
    for number in 0..CHANGES {
        world.change(fleet.cp.admin(), &mut random, number, fleet.upstream.port);
        // Versions that come faster than a node takes them are joined: some have to come alone.
        if number.is_multiple_of(20) {
            fleet.in_sync();
        }
    }
    let fresh = fleet.cluster.start(&v2(fleet.cluster.options("fresh", "data_plane")));
    fleet.dps.push(fresh);
    fleet.in_sync();
    let (changes, anew) = applied(&fleet.dps[0].log());
    assert!(changes > 10 && anew == 1, "{changes} changes, {anew} times everything");
    assert_eq!(applied(&fleet.dps[1].log()), (0, 1));

    let mut served = 0;
    for number in 0..CHANGES {
        let path = format!("/r{number}");
        let [one, other] = [&fleet.dps[0], &fleet.dps[1]].map(|dp| dp.ask(&path).status);
        assert_eq!(one, other, "{path}");
        served += usize::from(one != 404);
    }
    assert!(served > 10, "only {served} routes are left to compare");

    for dp in &mut fleet.dps {
        assert!(dp.stop().success());
    }
    let [one, other] = ["dp-0", "fresh"].map(|name| content(&fleet.cluster.path(name)));
    assert_eq!(one.hash, other.hash);
    assert!(one.records.len() > 6, "{:?}", one.records.keys());
    for (entity, rows) in &one.records {
        assert_eq!(Some(rows), other.records.get(entity), "{entity}");
    }
    assert_eq!(one.records.len(), other.records.len());
}

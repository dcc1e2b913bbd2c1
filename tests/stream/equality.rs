//! A data plane that lived through ten thousand random operations equals one that was just given everything: by digest, and
//! by what it answers.

use super::fleet;
use gwctl_testkit::{Node, Random, Request, post, request, wait_until};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const OPERATIONS: usize = 10_000;
/// Operations of one version.
const BATCH: usize = 20;
const ROUTES: usize = 200;
const CONSUMERS: usize = 60;

/// What exists, by entity and name.
#[derive(Default)]
struct World(BTreeSet<(&'static str, usize)>);

fn id(kind: u8, number: usize) -> String {
    format!("{kind:08x}-0000-4000-8000-{number:012x}")
}

impl World {
    fn put(&mut self, entity: &'static str, number: usize, key: String, body: Value) -> Option<Value> {
        self.0.insert((entity, number));
        Some(json!({"action": "upsert", "entity": entity, "key": key, "body": body}))
    }

    fn has(&self, entity: &'static str, number: usize) -> bool {
        self.0.contains(&(entity, number))
    }

    /// An operation that the control plane takes; None: what it would need is not there.
    fn operation(&mut self, random: &mut Random, port: u16) -> Option<Value> {
        let (route, consumer, other) = (random.below(ROUTES), random.below(CONSUMERS), random.below(10));
        match random.below(16) {
            0 => {
                let body = json!({"host": "127.0.0.1", "port": port, "path": format!("/at/{}", random.below(100)),
                    "enabled": random.below(8) > 0});
                self.put("services", other, format!("s{other}"), body)
            }
            1..=5 => {
                let path = format!("/r/{route}{}", ["", "/deep", "/deep/er"][random.below(3)]);
                let methods = [json!(null), json!(["GET"]), json!(["POST"])][random.below(3)].clone();
                let body = json!({"paths": [path, format!("/alias/{}", random.below(ROUTES))], "methods": methods,
                    "strip_path": random.below(2) > 0, "service": {"name": format!("s{other}")}});
                self.has("services", other).then(|| self.put("routes", route, format!("r{route}"), body))?
            }
            6 | 7 => {
                let (name, config) = match random.below(3) {
                    0 => ("key-auth", json!({})),
                    1 => ("request-termination", json!({"status_code": 418})),
                    _ => ("cors", json!({"max_age": random.below(1000)})),
                };
                // One of a kind for each route.
                let kind = name.len() as u8;
                let body = json!({"name": name, "route": {"name": format!("r{route}")}, "config": config,
                    "enabled": random.below(4) > 0});
                let key = id(kind, route);
                self.has("routes", route)
                    .then(|| json!({"action": "upsert", "entity": "plugins", "key": key, "body": body}))
            }
            8 => self.put("consumers", consumer, format!("c{consumer}"), json!({"tags": [format!("t{other}")]})),
            9 | 10 => {
                let body = json!({"key": format!("key-{consumer}"), "consumer": {"username": format!("c{consumer}")}});
                let operation =
                    json!({"action": "upsert", "entity": "key-auths", "key": id(2, consumer), "body": body});
                self.has("consumers", consumer).then_some(operation)
            }
            11 => self.put("upstreams", other, format!("u{other}.test"), json!({"slots": 100 + random.below(50)})),
            12 => {
                let body = json!({"weight": random.below(100), "upstream": {"name": format!("u{other}.test")}});
                // The key of a target is its address, which belongs to one upstream here.
                let key = format!("127.0.0.1:{}", 1000 + other * ROUTES + route);
                self.has("upstreams", other)
                    .then(|| json!({"action": "upsert", "entity": "targets", "key": key, "body": body}))
            }
            // What belongs to them goes with them.
            kind => {
                let (entity, number, key) = match kind {
                    13 | 14 => ("routes", route, format!("r{route}")),
                    _ if random.below(2) == 0 => ("consumers", consumer, format!("c{consumer}")),
                    _ => ("upstreams", other, format!("u{other}.test")),
                };
                self.0.remove(&(entity, number)).then(|| json!({"action": "delete", "entity": entity, "key": key}))
            }
        }
    }
}

/// Status, and the path the upstream saw.
fn behaviour(dp: &Node, method: &str, path: &str, key: &str) -> (u16, Value) {
    let asked = Request { method, path, headers: &[("apikey", key)], body: None };
    let answer = request(dp.proxy(), &asked).unwrap();
    let seen = if answer.status == 200 { answer.json()["path"].clone() } else { Value::Null };
    (answer.status, seen)
}

#[test]
fn a_node_built_by_changes_equals_one_that_was_given_everything() {
    let mut fleet = fleet(1);
    fleet.in_sync();
    let (mut random, mut world, mut done) = (Random(4), World::default(), 0);
    while done < OPERATIONS {
        let operations: Vec<Value> = std::iter::from_fn(|| Some(world.operation(&mut random, fleet.upstream.port)))
            .flatten()
            .take(BATCH)
            .collect();
        let answer = post(fleet.cp.admin(), "/gwctl/changes?results=none", &json!({"operations": operations}));
        assert_eq!(answer.status, 200, "{}", answer.body);
        done += operations.len();
        if done.is_multiple_of(10 * BATCH) {
            fleet.in_sync();
        }
    }
    let fresh = fleet.cluster.options("fresh", "data_plane");
    fleet.join(&fresh);
    // Both by the digest of every row, which each of them makes of what it has.
    fleet.in_sync();
    wait_until("the changes to be logged", || fleet.dps[0].log().matches("configuration in force").count() > 50);
    assert_eq!(fleet.copies(&fleet.dps[0].log()), 1, "{}", fleet.dps[0].log());

    let mut statuses = BTreeSet::new();
    for number in 0..ROUTES {
        for path in [format!("/r/{number}/deep/er/x"), format!("/alias/{number}")] {
            let (method, key) = ([("GET"), ("POST")][number % 2], format!("key-{}", number % CONSUMERS));
            let [one, other] = [&fleet.dps[0], &fleet.dps[1]].map(|dp| behaviour(dp, method, &path, &key));
            assert_eq!(one, other, "{method} {path}");
            statuses.insert(one.0);
        }
    }
    assert!([200, 401, 404, 418].iter().all(|status| statuses.contains(status)), "{statuses:?}");
}

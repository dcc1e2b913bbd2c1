//! The way back to a version, on a real store and out to a data plane.

use super::{control_plane, version};
use gwctl_testkit::{delete, get, patch, post, wait_until};
use serde_json::{Value, json};

#[test]
fn names_that_changed_hands_come_back_in_one_version_and_reach_data_planes() {
    let (cp, cluster) = control_plane();
    let dp = cluster.start(&cluster.options("dp", "data_plane"));
    let port = cp.admin();
    let service = |host: &str| json!({"name": "orders", "host": host});
    assert_eq!(post(port, "/services", &service("one.test")).status, 201);
    let route = json!({"name": "list", "paths": ["/orders"]});
    assert_eq!(post(port, "/services/orders/routes", &route).status, 201);
    assert_eq!(post(port, "/routes/list/plugins", &json!({"name": "key-auth"})).status, 201);
    for name in ["ada", "bob"] {
        assert_eq!(post(port, "/consumers", &json!({"username": name})).status, 201);
        let key = json!({"key": format!("{name}-key")});
        assert_eq!(post(port, &format!("/consumers/{name}/key-auth"), &key).status, 201);
    }
    let then = version(port);
    let before = get(port, &format!("/gwctl/versions/{then}?secrets=1")).json()["entities"].clone();
    // A name passes to another consumer, its key too, and a service of the same name takes the place of the first.
    assert_eq!(patch(port, "/consumers/ada", &json!({"username": "gone"})).status, 200);
    assert_eq!(patch(port, "/consumers/bob", &json!({"username": "ada"})).status, 200);
    assert_eq!(delete(port, "/key-auths/ada-key").status, 204);
    assert_eq!(patch(port, "/key-auths/bob-key", &json!({"key": "ada-key"})).status, 200);
    assert_eq!(delete(port, "/routes/list").status, 204);
    assert_eq!(delete(port, "/services/orders").status, 204);
    assert_eq!(post(port, "/services", &service("two.test")).status, 201);
    assert_eq!(post(port, "/services/orders/routes", &json!({"paths": ["/other"]})).status, 201);
    wait_until("the data plane to serve the other route", || get(dp.proxy(), "/other").status != 404);
    let last = version(port);
    let done = post(port, "/gwctl/rollback", &json!({ "version": then }));
    assert_eq!((done.status, &done.json()["version"]), (200, &json!(last + 1)), "{}", done.body);
    assert!(!done.body.contains("ada-key"), "{}", done.body);
    let after = get(port, &format!("/gwctl/versions/{}?secrets=1", last + 1)).json()["entities"].clone();
    assert_eq!(after, before);
    wait_until("the data plane to serve the route of then", || {
        get(dp.proxy(), "/other").status == 404 && get(dp.proxy(), "/orders").status == 401
    });
    let row = get(port, "/gwctl/history?size=1&records=2").json()["data"][0].clone();
    assert!(row["from"].as_str().is_some_and(|from| from.ends_with(&format!("(rollback to {then})"))), "{row}");
    assert!(row["counts"]["created"].is_u64() && row["records"].as_array().map(Vec::len) == Some(2), "{row}");
}

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// An operation on one of a few records that fight over a few names.
fn operation(numbers: &mut Numbers) -> Value {
    let id = |kind: u64, number: u64| format!("aaaaaaaa-0000-4000-800{kind}-{number:012}");
    let (number, name) = (numbers.below(4), ["a", "b", "c", "d", "e"][numbers.below(5) as usize]);
    let parent = numbers.below(4);
    let (kind, entity, body) = match numbers.below(5) {
        0 => (0, "services", json!({"name": name, "host": format!("{name}.test")})),
        1 => (1, "routes", json!({"name": name, "paths": ["/x"], "service": {"id": id(0, parent)}})),
        2 => (2, "consumers", json!({"username": name})),
        3 => (3, "keyauth_credentials", json!({"key": format!("key-{name}"), "consumer": {"id": id(2, parent)}})),
        _ => (4, "plugins", json!({"name": "cors", "instance_name": name, "service": {"id": id(0, parent)}})),
    };
    let action = if numbers.below(4) == 0 { "delete" } else { "upsert" };
    let mut operation = json!({"action": action, "entity": entity, "id": id(kind, number)});
    if action == "upsert" {
        operation["body"] = body;
    }
    operation
}

#[test]
fn every_version_of_a_wild_past_comes_back_whole() {
    let (cp, _cluster) = control_plane();
    let port = cp.admin();
    let mut numbers = Numbers(7);
    let at = |version: u64| get(port, &format!("/gwctl/versions/{version}?secrets=1")).json()["entities"].clone();
    let first = version(port);
    for _ in 0..150 {
        // Refused ones (a name in use, a parent that is missing) change nothing.
        let operations: Vec<Value> = (0..=numbers.below(3)).map(|_| operation(&mut numbers)).collect();
        post(port, "/gwctl/changes", &json!({ "operations": operations }));
    }
    let last = version(port);
    assert!(last > first + 40, "too few of the operations were accepted: {first} to {last}");
    let mut changed = 0;
    for _ in 0..40 {
        let to = first + numbers.below(last - first);
        let wanted = at(to);
        let done = post(port, "/gwctl/rollback", &json!({ "version": to }));
        assert_eq!(done.status, 200, "to {to}: {}", done.body);
        changed += usize::from(done.json()["changes"] != json!([]));
        assert_eq!(at(version(port)), wanted, "to {to}");
    }
    assert!(changed > 20, "only {changed} rollbacks had something to do");
}

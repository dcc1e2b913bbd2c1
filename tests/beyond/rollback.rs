//! The way back to a version, on a real store and out to a data plane.

use super::{control_plane, version};
use gwctl_testkit::{delete, get, patch, post, wait_until};
use serde_json::json;

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

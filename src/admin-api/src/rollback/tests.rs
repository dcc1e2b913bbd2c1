use crate::Face;
use crate::api::Api;
use crate::fake::{Client, Fake};
use crate::serve::ServeOptions;
use gwctl_entities::{NodeKind, Value};
use serde_json::json;
use std::sync::Arc;

fn made(client: &Client, path: &str, body: Value) -> Value {
    client.expect(201, "POST", path, body)
}

fn back(client: &Client, status: u16, target: &str, version: u64) -> Value {
    client.expect(status, "POST", target, json!({ "version": version }))
}

/// The configuration of a version, without its number.
fn then(client: &Client, version: u64) -> Value {
    client.get(&format!("/gwctl/versions/{version}?secrets=1")).1["entities"].clone()
}

#[test]
fn everything_is_as_it_was_and_the_history_says_why() {
    let client = Client::of(NodeKind::ControlPlane);
    let service = made(&client, "/services", json!({"name": "a", "host": "one.test"}));
    made(&client, "/services/a/routes", json!({"name": "r", "paths": ["/r"]}));
    made(&client, "/services/a/plugins", json!({"name": "key-auth"}));
    made(&client, "/consumers", json!({"username": "u"}));
    made(&client, "/consumers/u/key-auth", json!({"key": "hidden"}));
    client.expect(200, "PATCH", "/services/a", json!({"host": "two.test"}));
    client.expect(200, "PATCH", "/key-auths/hidden", json!({"key": "other"}));
    assert_eq!(client.send("DELETE", "/routes/r", None).0, 204);
    made(&client, "/consumers", json!({"username": "late"}));
    let tried = back(&client, 200, "/gwctl/rollback?dry_run=1", 5);
    assert_eq!((&tried["dry_run"], &tried["version"]), (&json!(true), &json!(9)));
    let done = back(&client, 200, "/gwctl/rollback", 5);
    assert_eq!(
        (&done["version"], &done["rolled_back_to"], &done["changes"]),
        (&json!(10), &json!(5), &tried["changes"])
    );
    assert_eq!((&done["created"], &done["updated"], &done["deleted"]), (&json!(1), &json!(2), &json!(1)));
    assert!(!done.to_string().contains("hidden") && !done.to_string().contains("other"), "{done}");
    assert_eq!(then(&client, 10), then(&client, 5));
    assert_eq!(client.get("/services/a").1["created_at"], service["created_at"]);
    let heading = client.get("/gwctl/history?size=1").1["data"][0].clone();
    assert!(heading["from"].as_str().is_some_and(|from| from.ends_with("(rollback to 5)")), "{heading}");
}

#[test]
fn names_that_changed_hands_are_given_back() {
    let client = Client::of(NodeKind::ControlPlane);
    made(&client, "/consumers", json!({"username": "a"}));
    made(&client, "/consumers", json!({"username": "b"}));
    made(&client, "/consumers/a/key-auth", json!({"key": "one"}));
    made(&client, "/consumers/b/key-auth", json!({"key": "two"}));
    let before = then(&client, 4);
    // The names and the keys of two change places.
    for (path, from, to, field) in [
        ("/consumers", "a", "c", "username"),
        ("/consumers", "b", "a", "username"),
        ("/consumers", "c", "b", "username"),
        ("/key-auths", "one", "none", "key"),
        ("/key-auths", "two", "one", "key"),
        ("/key-auths", "none", "two", "key"),
    ] {
        client.expect(200, "PATCH", &format!("{path}/{from}"), json!({ field: to }));
    }
    // Another takes the name of one that went.
    let made_again = made(&client, "/services", json!({"name": "s", "host": "one.test"}));
    assert_eq!(client.send("DELETE", "/services/s", None).0, 204);
    made(&client, "/services", json!({"name": "s", "host": "two.test"}));
    back(&client, 200, "/gwctl/rollback", 11);
    assert_eq!(client.get("/services/s").1, made_again);
    back(&client, 200, "/gwctl/rollback", 4);
    assert_eq!(then(&client, 15), before);
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let mut client = Client::of(NodeKind::ControlPlane);
    made(&client, "/services", json!({"name": "a", "host": "one.test"}));
    assert!(back(&client, 404, "/gwctl/rollback", 9)["message"].as_str().unwrap().contains("the newest is 1"));
    let told = client.expect(400, "POST", "/gwctl/rollback", json!({"versoin": 1}));
    assert_eq!(told["message"], "version: expected a version, a whole number; versoin: unknown field");
    client.if_version = Some(7);
    back(&client, 412, "/gwctl/rollback", 0);
    client.if_version = Some(1);
    back(&client, 200, "/gwctl/rollback", 0);
    assert_eq!(then(&client, 2), json!({}));
}

#[test]
fn a_version_that_the_log_no_longer_reaches_is_told_with_how_far_it_goes() {
    let fake = Arc::new(Fake::new(NodeKind::ControlPlane));
    let mut client = Client::of(NodeKind::ControlPlane);
    client.api = Api::new(Face::Admin, fake.clone(), &ServeOptions::default());
    for name in ["a", "b", "c"] {
        made(&client, "/consumers", json!({"username": name}));
    }
    fake.oldest.store(2, std::sync::atomic::Ordering::SeqCst);
    let told = back(&client, 410, "/gwctl/rollback", 1);
    assert_eq!(told["message"], "version 1 is forgotten, the log reaches back to version 2");
    back(&client, 200, "/gwctl/rollback", 2);
    let rows = client.get("/gwctl/history?records=5").1;
    assert_eq!(rows["data"][0]["records"][0]["name"], "c");
    assert!(rows["data"][3].get("records").is_none(), "what is forgotten has a heading only: {rows}");
}

#[test]
fn what_has_ended_meanwhile_does_not_come_back() {
    let client = Client::of(NodeKind::ControlPlane);
    made(&client, "/consumers", json!({"username": "u"}));
    made(&client, "/consumers/u/key-auth", json!({"key": "short", "ttl": 5}));
    assert_eq!(client.send("DELETE", "/key-auths/short", None).0, 204);
    let done = back(&client, 200, "/gwctl/rollback?dry_run=1", 2);
    assert_eq!(done["created"], 1, "its end is still to come");
    let gone = json!({"ttl": 1_799_999_999});
    let schema = client.api.backend.registry();
    let keys = schema.entity("keyauth_credentials").unwrap();
    assert!(super::ended(1_800_000_000_000, keys, gone.as_object().unwrap()));
}

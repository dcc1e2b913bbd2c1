use crate::fake::Client;
use gwctl_entities::{NodeKind, Value};
use proptest::prelude::*;
use serde_json::json;

const SERVICE: &str = "aaaaaaaa-0000-4000-8000-000000000001";

fn control_plane() -> Client {
    Client::of(NodeKind::ControlPlane)
}

fn version(client: &Client) -> u64 {
    client.api.backend.read().unwrap().version()
}

#[test]
fn many_operations_are_one_version_and_see_each_other() {
    let client = control_plane();
    let before = version(&client);
    let done = client.expect(
        200,
        "POST",
        "/gwctl/changes",
        json!({"operations": [
            {"action": "create", "entity": "services", "id": SERVICE, "body": {"name": "a", "host": "a.test"}},
            {"action": "upsert", "entity": "routes", "key": "r", "body": {"paths": ["/x"], "service": {"name": "a"}}},
            {"action": "update", "entity": "services", "key": "a", "body": {"retries": 1}},
            {"action": "create", "entity": "consumers", "body": {"username": "u"}},
            {"action": "create", "entity": "key-auths", "body": {"key": "k", "consumer": {"username": "u"}}},
            {"action": "delete", "entity": "consumers", "key": "u"},
            {"action": "delete", "entity": "consumers", "key": "nobody"},
        ]}),
    );
    assert_eq!(version(&client), before + 1);
    assert_eq!((&done["version"], &done["created"], &done["updated"]), (&json!(before + 1), &json!(4), &json!(1)));
    assert_eq!((&done["deleted"], &done["absent"]), (&json!(1), &json!(1)));
    assert_eq!(done["results"][0], json!({"action": "created", "entity": "services", "id": SERVICE}));
    assert_eq!(done["results"][6], json!({"action": "absent", "entity": "consumers", "id": null}));
    assert_eq!(client.get("/services/a").1["retries"], 1);
    assert_eq!(client.get("/routes/r").1["service"]["id"], SERVICE);
}

#[test]
fn what_is_no_record_of_its_own_is_no_entity_to_change() {
    let client = control_plane();
    for entity in ["tags", "workspaces", "parameters", "clustering_data_planes"] {
        let body =
            json!({"tag": "x", "entity_name": "services", "entity_id": SERVICE, "name": "x", "key": "k", "value": "v"});
        let operations = json!({"operations": [{"action": "create", "entity": entity, "body": body}]});
        let refused = client.expect(400, "POST", "/gwctl/changes", operations);
        assert_eq!(refused["errors"][0]["error"]["message"], format!("no entity named '{entity}'"));
    }
}

#[test]
fn every_mistake_is_told_with_its_index_and_nothing_is_changed() {
    let client = control_plane();
    let (status, refused) = client.send(
        "POST",
        "/gwctl/changes",
        Some(json!({"operations": [
            {"action": "create", "entity": "services", "body": {"name": "good", "host": "a.test"}},
            {"action": "create", "entity": "services", "id": SERVICE, "body": {"name": "bad"}},
            {"action": "create", "entity": "routes", "body": {"paths": ["/x"], "service": {"id": SERVICE}}},
            {"action": "destroy", "entity": "services", "more": 1},
            {"action": "update", "entity": "services", "key": "nobody", "body": {"retries": 1}},
            {"action": "create", "entity": "nothings", "body": {}},
            {"action": "delete", "entity": "services"},
            7,
        ]})),
    );
    assert_eq!(status, 400, "{refused}");
    assert_eq!(refused["message"], "7 of 8 operations refused, nothing was changed");
    let errors = refused["errors"].as_array().unwrap();
    let indexes: Vec<&Value> = errors.iter().map(|error| &error["index"]).collect();
    assert_eq!(indexes, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!((&errors[0]["status"], &errors[0]["error"]["code"]), (&json!(400), &json!(2)));
    assert_eq!(errors[1]["because_of"], 1, "the route fails for want of the service before it");
    assert_eq!(
        errors[2]["error"]["message"],
        "action: expected one of create, upsert, update, delete; more: unknown member"
    );
    assert_eq!((&errors[3]["status"], &errors[3]["key"]), (&json!(404), &json!("nobody")));
    assert_eq!(errors[5]["error"]["message"], "needs `id` or `key` of the services record");
    assert_eq!(errors[6]["error"]["message"], "expected an object");
    assert_eq!(client.get("/services").1["data"], json!([]));
}

#[test]
fn a_body_that_is_no_list_of_operations_is_refused() {
    let client = control_plane();
    for body in [json!({}), json!({"operation": []}), json!({"operations": 1}), json!({"operations": [], "x": 1})] {
        let (status, refused) = client.send("POST", "/gwctl/changes", Some(body.clone()));
        assert_eq!(status, 400, "{body}: {refused}");
    }
    assert_eq!(client.raw("/gwctl/changes", b"[{\"action\":").0, 400);
    assert_eq!(client.raw("/gwctl/changes", b"[] []").0, 400);
    assert_eq!(client.raw("/gwctl/changes", b"[]").0, 200, "the bare list will do");
}

#[test]
fn a_dry_run_tells_what_would_be_and_changes_nothing() {
    let client = control_plane();
    let before = version(&client);
    let operation = json!({"action": "upsert", "entity": "services", "key": "a", "body": {"host": "a.test"}});
    let target = "/gwctl/changes?dry_run=1&results=records";
    let told = client.expect(200, "POST", target, json!({"operations": [operation]}));
    assert_eq!((&told["dry_run"], &told["version"]), (&json!(true), &json!(before)));
    assert_eq!(told["results"][0]["record"]["retries"], 5);
    assert_eq!((version(&client), client.get("/services/a").0), (before, 404));
}

#[test]
fn a_dry_run_works_on_every_write_of_an_entity() {
    let client = control_plane();
    client.expect(201, "POST", "/services", json!({"name": "a", "host": "a.test"}));
    let before = version(&client);
    assert_eq!(client.expect(201, "POST", "/services?dry_run=1", json!({"host": "b.test"}))["retries"], 5);
    client.expect(400, "POST", "/services?dry_run=1", json!({"name": "bad host"}));
    client.expect(200, "PUT", "/services/c?dry_run=1", json!({"host": "c.test"}));
    assert_eq!(client.expect(200, "PATCH", "/services/a?dry_run=1", json!({"retries": 9}))["retries"], 9);
    client.expect(201, "POST", "/services/a/routes?dry_run", json!({"paths": ["/x"]}));
    assert_eq!(client.send("DELETE", "/services/a?dry_run=1", None).0, 204);
    assert_eq!(version(&client), before);
    assert_eq!(client.get("/services/a").1["retries"], 5);
    assert_eq!(client.get("/services").1["data"].as_array().unwrap().len(), 1);
    let (status, refused) = client.send("PUT", "/debug/node/log-level/info?dry_run=1", None);
    assert_eq!(status, 400, "{refused}");
}

#[test]
fn a_stored_hash_is_kept_as_it_is_when_the_operation_says_so() {
    let client = control_plane();
    client.expect(201, "POST", "/consumers", json!({"username": "u"}));
    client.expect(201, "POST", "/consumers/u/basic-auth", json!({"username": "first", "password": "p"}));
    let hash = client.get("/consumers/u/basic-auth/first").1["password"].clone();
    let send = |status: u16, password: &Value, transform: Value| {
        let body = json!({"username": "second", "password": password, "consumer": {"username": "u"}});
        let operation = json!({
            "action": "upsert", "entity": "basic-auths", "id": SERVICE, "body": body, "transform": transform,
        });
        client.expect(status, "POST", "/gwctl/changes", json!({ "operations": [operation] }))
    };
    send(200, &hash, json!(false));
    assert_eq!(client.get("/consumers/u/basic-auth/second").1["password"], hash);
    send(200, &hash, json!(null));
    assert_ne!(client.get("/consumers/u/basic-auth/second").1["password"], hash, "hashed again");
    for (password, transform) in [(json!("p"), json!(false)), (hash, json!("no"))] {
        let refused = send(400, &password, transform);
        assert_eq!(refused["refused"], 1, "{refused}");
    }
}

#[test]
fn a_batch_meant_for_another_version_is_refused_as_a_whole() {
    let mut client = control_plane();
    client.if_version = Some(version(&client) + 5);
    let operation = json!({"action": "create", "entity": "consumers", "body": {"username": "u"}});
    client.expect(412, "POST", "/gwctl/changes", json!({"operations": [operation]}));
    client.if_version = None;
    assert_eq!(client.get("/consumers/u").0, 404);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_body_panics_and_a_refused_one_changes_nothing(
        action in "create|upsert|update|delete|x",
        entity in "services|routes|keyauth_credentials|certificates|acls|workspaces|x",
        key in proptest::option::of("[a-z]{0,3}"),
        name in "name|host|paths|cert|group|id",
        value in prop_oneof![Just(json!(null)), Just(json!(1)), Just(json!("a")), Just(json!([])), Just(json!({"id": 1}))],
    ) {
        let client = control_plane();
        let before = version(&client);
        let operation = json!({"action": action, "entity": entity, "key": key, "body": {name: value}});
        let (status, _) = client.send("POST", "/gwctl/changes", Some(json!([operation])));
        prop_assert!(status == 200 || status == 400);
        prop_assert!(status == 200 || version(&client) == before);
    }
}

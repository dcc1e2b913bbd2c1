use crate::caller::Caller;
use crate::fake::Client;
use crate::token::Role;
use gwctl_entities::{NodeKind, Value};
use serde_json::json;

/// Versions 1 to 4: a service made, changed and deleted, and a consumer with a key.
fn with_past() -> Client {
    let client = Client::of(NodeKind::ControlPlane);
    client.expect(201, "POST", "/services", json!({"name": "a", "host": "one.test"}));
    client.expect(200, "PATCH", "/services/a", json!({"host": "two.test"}));
    let operations = json!([
        {"action": "create", "entity": "consumers", "body": {"username": "u"}},
        {"action": "create", "entity": "keyauth_credentials", "body": {"key": "hidden", "consumer": {"username": "u"}}},
    ]);
    client.expect(200, "POST", "/gwctl/changes", json!({ "operations": operations }));
    assert_eq!(client.send("DELETE", "/services/a", None).0, 204);
    client
}

fn read(client: &Client, target: &str) -> Value {
    let (status, body) = client.get(target);
    assert_eq!(status, 200, "{target}: {body}");
    body
}

fn versions(page: &Value) -> Vec<u64> {
    page["data"].as_array().unwrap().iter().map(|row| row["version"].as_u64().unwrap()).collect()
}

#[test]
fn the_history_is_paged_newest_first() {
    let client = with_past();
    let first = read(&client, "/gwctl/history?size=3");
    assert_eq!((versions(&first), &first["data"][1]["changes"]), (vec![4, 3, 2], &json!(2)));
    let last = read(&client, first["next"].as_str().unwrap());
    assert_eq!((versions(&last), &last["next"]), (vec![1], &Value::Null));
    assert_eq!(client.get("/gwctl/history?before=x").0, 400);
}

#[test]
fn a_version_shows_the_configuration_as_it_was() {
    let client = with_past();
    let host = |version: u64| {
        let then = read(&client, &format!("/gwctl/versions/{version}"));
        (then["version"] == version, then["entities"]["services"][0]["host"].clone())
    };
    assert_eq!(host(1), (true, json!("one.test")));
    assert_eq!(host(2), (true, json!("two.test")));
    assert_eq!(host(3), (true, json!("two.test")));
    assert_eq!(host(4), (true, Value::Null));
    assert_eq!(read(&client, "/gwctl/versions/0")["entities"], json!({}));
    let only = read(&client, "/gwctl/versions/3?entity=consumers");
    assert_eq!(only["entities"].as_object().unwrap().keys().collect::<Vec<_>>(), ["consumers"]);
    assert_eq!(client.get("/gwctl/versions/9").0, 404);
    assert_eq!(client.get("/gwctl/versions/x").0, 400);
}

#[test]
fn a_version_is_a_declarative_file_when_asked_for() {
    let client = with_past();
    let text = read(&client, "/gwctl/versions/2?format=declarative");
    assert!(text.as_str().is_some_and(|text| text.contains("_format_version") && text.contains("two.test")), "{text}");
}

#[test]
fn the_changes_between_versions_name_the_fields_and_hide_secrets() {
    let client = with_past();
    let page = read(&client, "/gwctl/versions/1..3");
    assert_eq!(versions(&page), [2, 3]);
    let change = &page["data"][0]["changes"][0];
    assert_eq!((&change["action"], &change["entity"]), (&json!("updated"), &json!("services")));
    assert!(change["fields"].as_array().unwrap().contains(&json!("host")), "{change}");
    assert_eq!((&change["old"]["host"], &change["new"]["host"]), (&json!("one.test"), &json!("two.test")));
    assert!(!page.to_string().contains("hidden"), "{page}");
    assert!(read(&client, "/gwctl/versions/1..3?secrets=1").to_string().contains("hidden"));
    let first = read(&client, "/gwctl/versions/0..4?size=1");
    assert_eq!(versions(&read(&client, first["next"].as_str().unwrap())), [2]);
    assert_eq!(client.get("/gwctl/versions/3..1").0, 400);
    assert_eq!(client.get("/gwctl/versions/3..9").0, 404);
}

#[test]
fn a_reader_sees_no_secret_anywhere() {
    let mut client = with_past();
    client.caller = Caller::Token { id: String::new(), name: "reader".to_owned(), role: Role::Read };
    assert_eq!(client.get("/gwctl/versions/3?secrets=1").0, 403);
    for target in ["/key-auths", "/consumers/u/key-auth", "/gwctl/versions/3", "/gwctl/versions/0..4"] {
        assert!(!read(&client, target).to_string().contains("hidden"), "{target}");
    }
    client.caller = Caller::Token { id: String::new(), name: "writer".to_owned(), role: Role::Write };
    assert!(read(&client, "/key-auths").to_string().contains("hidden"));
}

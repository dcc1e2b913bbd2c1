//! From client input to stored records, and the refusals on the way.

use crate::support::{Memory, NOW, Steady, record, registry, registry_of};
use gwctl_entities::{EntityError, NodeKind, Record, Value};
use serde_json::json;

fn insert(entity: &str, input: Value) -> Result<Record, EntityError> {
    insert_with(&Memory::default(), entity, input)
}

fn insert_with(memory: &Memory, entity: &str, input: Value) -> Result<Record, EntityError> {
    registry().process_insert(entity, record(input), &mut Steady::default(), memory)
}

fn update(entity: &str, stored: &Record, input: Value) -> Result<Record, EntityError> {
    registry().process_update(entity, stored, record(input), &mut Steady::default(), &Memory::default())
}

fn message(outcome: Result<Record, EntityError>) -> String {
    let body = outcome.unwrap_err().body();
    body["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_new_service_gets_every_field() {
    let service = insert("services", json!({"url": "https://u:p@api.test/v1?x=1", "tags": ["a", "b", "a"]})).unwrap();
    let expected = json!({
        "id": "00000000-0000-4000-8000-000000000001", "created_at": NOW, "updated_at": NOW, "name": null,
        "retries": 5, "protocol": "https", "host": "api.test", "port": 443, "path": "/v1",
        "connect_timeout": 60000, "write_timeout": 60000, "read_timeout": 60000, "tags": ["a", "b"],
        "client_certificate": null, "tls_verify": null, "tls_verify_depth": null, "ca_certificates": null,
        "enabled": true,
    });
    assert_eq!(Value::Object(service), expected);
}

#[test]
fn explicit_null_is_kept_where_a_default_exists() {
    let service = insert("services", json!({"host": "a.test", "retries": null})).unwrap();
    assert_eq!(service["retries"], Value::Null);
}

#[test]
fn whole_numbers_with_fraction_are_integers() {
    let service = insert("services", json!({"host": "a.test", "port": 81.0})).unwrap();
    assert_eq!(service["port"].to_string(), "81");
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let refused = insert("services", json!({"host": 5, "port": 70000, "zzz": 1, "tags": ["ok", "a,b"]})).unwrap_err();
    assert_eq!(refused.status(), 400);
    let body = refused.body();
    assert_eq!(body["code"], 2);
    assert_eq!(body["fields"]["tags"][0], Value::Null);
    assert_eq!(
        body["message"],
        "4 schema violations (host: expected a string; port: value should be between 0 and 65535; tags.2: invalid \
         tag 'a,b': expected printable ascii (except `,` and `/`) or valid utf-8 sequences; zzz: unknown field)"
    );
}

#[test]
fn deep_errors_are_printed_as_lua_tables() {
    let input = json!({"name": "u.local", "healthchecks": {"active": {"healthy": {"http_statuses": [200, 1]}}}});
    assert_eq!(
        message(insert("upstreams", input)),
        "schema violation (healthchecks.active: {\n  healthy = {\n    http_statuses = {\n      [2] = \"value should be \
         between 100 and 999\"\n    }\n  }\n})"
    );
}

#[test]
fn conditions_name_the_field_that_decides() {
    let body = insert("services", json!({"host": "a.test", "tls_verify": true})).unwrap_err().body();
    assert_eq!(
        body["fields"],
        json!({
            "@entity": ["failed conditional validation given value of field 'protocol'"],
            "tls_verify": "value must be null",
        })
    );
}

#[test]
fn routes_are_judged_by_their_first_protocol() {
    for (input, expected) in [
        (
            json!({"protocols": ["tcp"], "paths": ["/a"]}),
            "2 schema violations (must set one of 'sources', 'destinations', 'snis' when 'protocols' is 'tcp', 'tls' or \
             'udp'; paths: cannot set 'paths' when 'protocols' is 'tcp', 'tls', 'tls_passthrough' or 'udp')",
        ),
        (json!({"protocols": ["ws"]}), "schema violation (protocols: unknown type: ws)"),
        (json!({"protocols": [], "paths": ["/a"]}), "schema violation (protocols: unknown type: nil)"),
        (json!({"protocols": [1], "paths": ["/a"]}), "schema violation (protocols: unknown type: 1)"),
        (
            json!({"protocols": ["ws", "http"], "paths": ["/a"]}),
            "schema violation (protocols.1: expected one of: grpc, grpcs, http, https, tcp, tls, tls_passthrough, udp)",
        ),
        (
            json!({"protocols": ["http", "grpc"], "paths": ["/a"]}),
            "schema violation (protocols: these sets are mutually exclusive: ('http', 'https'), ('grpc', 'grpcs'))",
        ),
    ] {
        assert_eq!(message(insert("routes", input)), expected);
    }
    let grpc = insert("routes", json!({"protocols": ["grpc"], "paths": ["/a"]})).unwrap();
    assert_eq!(grpc["strip_path"], false);
}

#[test]
fn expression_routes_exist_only_in_their_flavor() {
    let input = json!({"expression": "http.path == \"/\"", "priority": 3});
    assert!(message(insert("routes", input.clone())).contains("expression: unknown field"));
    let registry = registry_of(NodeKind::ControlPlane, "expressions");
    let route = registry.process_insert("routes", record(input), &mut Steady::default(), &Memory::default()).unwrap();
    assert_eq!(route["priority"], 3);
}

#[test]
fn the_router_may_judge_routes_too() {
    let mut registry = registry();
    registry.set_route_check(std::sync::Arc::new(|route| Err(format!("cannot compile {}", route["name"]))));
    let input = record(json!({"name": "r", "paths": ["/a"]}));
    let refused = registry.process_insert("routes", input, &mut Steady::default(), &Memory::default());
    assert_eq!(message(refused), "schema violation (cannot compile \"r\")");
}

#[test]
fn plugins_are_completed_by_their_own_schema() {
    let plugin = insert("plugins", json!({"name": "rate-limiting", "config": {"minute": 5}})).unwrap();
    assert_eq!(plugin["config"]["policy"], "local");
    assert_eq!(plugin["config"]["redis"]["port"], 6379);
    assert_eq!(plugin["protocols"], json!(["grpc", "grpcs", "http", "https"]));
    let unknown = insert("plugins", json!({"name": "nope"}));
    assert_eq!(
        message(unknown),
        "schema violation (name: plugin 'nope' not enabled; add it to the 'plugins' configuration property)"
    );
    let scoped = json!({"name": "key-auth", "consumer": {"id": "00000000-0000-4000-8000-000000000001"}});
    assert_eq!(message(insert("plugins", scoped)), "schema violation (consumer: value must be null)");
}

#[test]
fn policies_that_need_a_database_depend_on_the_node() {
    let input = record(json!({"name": "rate-limiting", "config": {"minute": 5, "policy": "cluster"}}));
    for (kind, accepted) in [(NodeKind::Traditional, true), (NodeKind::ControlPlane, false), (NodeKind::DbLess, false)]
    {
        let registry = registry_of(kind, "traditional_compatible");
        let outcome = registry.process_insert("plugins", input.clone(), &mut Steady::default(), &Memory::default());
        assert_eq!(outcome.is_ok(), accepted, "{kind:?}");
    }
}

#[test]
fn renamed_fields_fill_their_replacement_and_are_echoed() {
    let config = json!({"minute": 5, "redis_host": "r.test", "redis": {"port": 1}});
    let plugin = insert("plugins", json!({"name": "rate-limiting", "config": config})).unwrap();
    assert_eq!(plugin["config"]["redis"]["host"], "r.test");
    assert!(plugin["config"].get("redis_host").is_none());
    let shown = registry().present("plugins", &plugin, NOW * 1000);
    assert_eq!(shown["config"]["redis_host"], "r.test");
    assert_eq!(shown["config"]["redis_port"], 1);
    let again = insert("plugins", Value::Object(shown)).unwrap();
    assert_eq!(again["config"], plugin["config"]);
}

#[test]
fn renamed_fields_must_agree_with_their_replacement() {
    let config = json!({"minute": 5, "redis_host": "r.test", "redis": {"host": "other.test"}});
    let body = insert("plugins", json!({"name": "rate-limiting", "config": config})).unwrap_err().body();
    assert!(body["fields"]["redis_host"].is_string(), "{body}");
    assert!(body["fields"].get("config").is_none(), "{body}");
}

#[test]
fn plugin_protocols_must_meet_those_of_the_route() {
    let mut memory = Memory::default();
    let route = insert("routes", json!({"paths": ["/a"]})).unwrap();
    let id = route["id"].clone();
    memory.put("routes", route);
    let config = json!({"host": "a.test", "port": 1});
    let tcp = json!({"name": "tcp-log", "protocols": ["tcp"], "route": {"id": id}, "config": config});
    assert_eq!(
        message(insert_with(&memory, "plugins", tcp)),
        "schema violation (protocols: must match the associated route's protocols)"
    );
    let http = json!({"name": "tcp-log", "protocols": ["http"], "route": {"id": id}, "config": config});
    assert!(insert_with(&memory, "plugins", http).is_ok());
}

#[test]
fn hashing_and_algorithm_choose_each_other() {
    for (input, algorithm, hash_on) in [
        (json!({"hash_on": "ip"}), "consistent-hashing", "ip"),
        (json!({"hash_on": "none"}), "round-robin", "none"),
        (json!({"algorithm": "least-connections", "hash_on": "ip"}), "least-connections", "none"),
        (json!({"algorithm": "latency"}), "latency", "none"),
        (json!({}), "round-robin", "none"),
    ] {
        let mut whole = record(input);
        whole.insert("name".to_owned(), json!("u.local"));
        let upstream = insert("upstreams", Value::Object(whole)).unwrap();
        assert_eq!((&upstream["algorithm"], &upstream["hash_on"]), (&json!(algorithm), &json!(hash_on)));
    }
}

#[test]
fn targets_are_normalised_and_keep_milliseconds() {
    let upstream = json!({"id": "00000000-0000-4000-8000-000000000009"});
    let target = insert("targets", json!({"target": "[::1]", "upstream": upstream})).unwrap();
    assert_eq!(target["target"], "[0000:0000:0000:0000:0000:0000:0000:0001]:8000");
    assert_eq!(target["created_at"], 1_700_000_000.25);
    assert_eq!(
        message(insert("targets", json!({"target": "a b", "weight": -1, "upstream": upstream}))),
        "schema violation (target: Invalid target; not a valid hostname or ip address)"
    );
}

#[test]
fn credentials_are_generated_and_hashed() {
    let consumer = json!({"id": "00000000-0000-4000-8000-000000000004"});
    let key = insert("keyauth_credentials", json!({"consumer": consumer, "ttl": 60})).unwrap();
    assert_eq!(key["key"].as_str().unwrap().len(), 32);
    assert_eq!(key["ttl"], NOW + 60);
    assert_eq!(registry().present("keyauth_credentials", &key, NOW * 1000 + 300)["ttl"], 59);
    let input = json!({"consumer": consumer, "username": "u", "password": "p"});
    let basic = insert("basicauth_credentials", input).unwrap();
    assert_eq!(basic["password"].as_str().unwrap().len(), 40);
    let oauth = insert("oauth2_credentials", json!({"consumer": consumer, "name": "a", "hash_secret": true})).unwrap();
    assert!(oauth["client_secret"].as_str().unwrap().starts_with("$pbkdf2-sha512$i=10000,l=32$"));
}

#[test]
fn a_time_to_live_out_of_range_is_an_invalid_option() {
    let consumer = json!({"id": "00000000-0000-4000-8000-000000000004"});
    let refused = insert("keyauth_credentials", json!({"consumer": consumer, "ttl": -1})).unwrap_err();
    assert_eq!(refused.body()["code"], 11);
    let none = insert("keyauth_credentials", json!({"consumer": consumer, "ttl": 0})).unwrap();
    assert_eq!(none["ttl"], Value::Null);
}

#[test]
fn references_by_unique_field_become_ids() {
    let mut memory = Memory::default();
    memory.put("consumers", insert("consumers", json!({"username": "u", "custom_id": "c"})).unwrap());
    for reference in [json!({"username": "u"}), json!({"custom_id": "c"})] {
        let acl = insert_with(&memory, "acls", json!({"group": "g", "consumer": reference})).unwrap();
        assert_eq!(acl["consumer"], json!({"id": "00000000-0000-4000-8000-000000000001"}));
    }
    let unknown = insert_with(&memory, "acls", json!({"group": "g", "consumer": {"username": "x"}}));
    let body = unknown.unwrap_err().body();
    assert_eq!(body["code"], 13);
    assert_eq!(
        body["message"],
        "foreign key unresolved (consumer.username: the foreign key cannot be resolved with '{username=\"x\"}' for an \
         existing 'consumers' entity)"
    );
    let shapeless = insert_with(&memory, "acls", json!({"group": "g", "consumer": "u"}));
    assert_eq!(message(shapeless), "schema violation (consumer.id: missing primary key)");
}

#[test]
fn updates_merge_records_and_replace_the_rest() {
    let stored = insert("upstreams", json!({"name": "u.local", "tags": ["a", "b"]})).unwrap();
    let patch = json!({"healthchecks": {"active": {"timeout": 3}}, "tags": ["c"], "id": "ignored"});
    let updated = update("upstreams", &stored, patch).unwrap();
    assert_eq!(updated["healthchecks"]["active"]["timeout"], 3);
    assert_eq!(updated["healthchecks"]["active"]["concurrency"], 10);
    assert_eq!(updated["tags"], json!(["c"]));
    assert_eq!(updated["id"], stored["id"]);
}

#[test]
fn updates_cannot_clear_what_is_required() {
    let stored = insert("consumers", json!({"username": "u"})).unwrap();
    assert_eq!(
        message(update("consumers", &stored, json!({"username": null}))),
        "schema violation (when updating, at least one of these fields must be non-empty: 'custom_id', 'username')"
    );
    let service = insert("services", json!({"host": "a.test"})).unwrap();
    assert_eq!(
        message(update("services", &service, json!({"host": null}))),
        "schema violation (host: required field missing)"
    );
}

#[test]
fn a_new_password_needs_its_consumer() {
    let consumer = json!({"id": "00000000-0000-4000-8000-000000000004"});
    let input = json!({"consumer": consumer, "username": "u", "password": "p"});
    let stored = insert("basicauth_credentials", input).unwrap();
    assert!(update("basicauth_credentials", &stored, json!({"password": "q"})).is_err());
    let both = json!({"password": "q", "consumer": consumer});
    let changed = update("basicauth_credentials", &stored, both).unwrap();
    assert_ne!(changed["password"], stored["password"]);
    let renamed = update("basicauth_credentials", &stored, json!({"username": "v"})).unwrap();
    assert_eq!(renamed["password"], stored["password"]);
}

#[test]
fn vault_references_stand_for_values_that_may_be_secret() {
    let config = json!({"minute": 1, "redis": {"password": "{vault://env/redis}"}});
    assert!(insert("plugins", json!({"name": "rate-limiting", "config": config})).is_ok());
    assert!(insert("certificates", json!({"cert": "{vault://env/cert}", "key": "{vault://env/key}"})).is_ok());
    assert!(insert("services", json!({"host": "{vault://env/host}"})).is_err());
}

#[test]
fn exported_rows_are_flat_and_come_back_whole() {
    let registry = registry();
    let service = json!({"id": "00000000-0000-4000-8000-000000000005"});
    let config = json!({"minute": 5, "redis": {"host": "r.test"}});
    let plugin = insert("plugins", json!({"name": "rate-limiting", "service": service, "config": config})).unwrap();
    let row = registry.export_row("plugins", &plugin);
    assert_eq!(row["service"], "00000000-0000-4000-8000-000000000005");
    assert_eq!(row["config"]["redis_host"], "r.test");
    let mut received = row.clone();
    received.insert("of_a_newer_version".to_owned(), Value::Null);
    let back = registry.import_row("plugins", received, &mut Steady::default()).unwrap();
    assert_eq!(back, plugin);
    let mut bad = row;
    bad.insert("of_a_newer_version".to_owned(), json!(1));
    assert!(registry.import_row("plugins", bad, &mut Steady::default()).is_err());
}

#[test]
fn empty_tables_take_the_type_of_their_field() {
    let registry = registry();
    let stored = insert("plugins", json!({"name": "acl", "tags": {}, "config": {"allow": ["a"], "deny": {}}})).unwrap();
    assert_eq!((&stored["tags"], &stored["config"]["deny"]), (&json!([]), &json!([])));
    let mut row = registry.export_row("upstreams", &insert("upstreams", json!({"name": "u.local"})).unwrap());
    row["healthchecks"]["active"]["healthy"]["http_statuses"] = json!({});
    row["healthchecks"]["active"]["headers"] = json!([]);
    let received = registry.import_row("upstreams", row, &mut Steady::default()).unwrap();
    assert_eq!(received["healthchecks"]["active"]["healthy"]["http_statuses"], json!([]));
    assert_eq!(received["healthchecks"]["active"]["headers"], json!({}));
}

#[test]
fn stored_choices_of_an_upstream_survive_an_import() {
    let stored = insert("upstreams", json!({"name": "u.local", "algorithm": "consistent-hashing"})).unwrap();
    assert_eq!(stored["hash_on"], "none");
    let row = registry().export_row("upstreams", &stored);
    assert_eq!(registry().import_row("upstreams", row, &mut Steady::default()).unwrap(), stored);
}

#[test]
fn path_segments_are_judged_by_their_field() {
    let registry = registry();
    assert!(registry.validate_field("services", "name", &json!("a")).is_ok());
    assert!(registry.validate_field("services", "name", &json!("a b")).is_err());
    assert_eq!(registry.validate_field("snis", "name", &json!("a b")), Err(json!("invalid value: a b")));
}

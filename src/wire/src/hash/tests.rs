//! Hashes that Kong 3.9.1 computed.

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn of(table: &Value) -> Hashes {
    Hashes::of(table.as_object().unwrap())
}

fn service() -> Value {
    json!({
        "id": "3c1b1b3a-0000-4000-8000-000000000001", "name": "svc-a", "host": "example.com", "port": 80,
        "protocol": "http", "path": null, "enabled": true, "retries": 5, "tags": null, "created_at": 1700000000,
    })
}

fn id(last: u32) -> String {
    format!("3c1b1b3a-0000-4000-8000-00000000000{last}")
}

#[test]
fn single_values_hash_as_in_kong() {
    let cases = [
        (json!(null), "5bf07a8b7343015026657d1108d8206e"),
        (json!(10), "d3d9446802a44259755d38e6d163e820"),
        (json!(0.9), "a894124cc6d5c5c71afe060d5dde0762"),
        (json!(""), "d41d8cd98f00b204e9800998ecf8427e"),
        (json!(true), "b326b5062b2f0e69046810717534cb09"),
        (json!(false), "68934a3e9455fa72420237eb05902327"),
        (json!([]), "99914b932bd37a50b983c5e7c90ae93b"),
        (json!({}), "99914b932bd37a50b983c5e7c90ae93b"),
    ];
    for (value, expected) in cases {
        assert_eq!(part(Some(&value)).as_str(), expected, "{value}");
    }
    assert!(part(None).is_zero());
}

#[test]
fn small_tables_hash_as_in_kong() {
    let cases = [
        (json!({}), "2da3c26e4dbd6dd6ea3ab60a3dd7fb3e"),
        (json!({"_format_version": "3.0", "_transform": false}), "3ba837da99e14dfab883d867101d37f6"),
        (json!({"routes": [], "services": [], "plugins": []}), "81aac97a81ad03c0cf0b36663806488e"),
        (json!({"upstreams": [], "targets": []}), "4d60dd9998ea4314039da5ca2f1db96f"),
    ];
    for (table, expected) in cases {
        assert_eq!(of(&table).config.as_str(), expected, "{table}");
    }
}

#[test]
fn a_text_of_more_than_a_million_bytes_folds() {
    let hashes = of(&json!({"services": vec!["0123456789"; 200_000]}));
    assert_eq!(hashes.services.as_str(), "409a6a613419b11fe7f3d0bde791cbb1");
    assert_eq!(hashes.config.as_str(), "357c37603f21f4ef1c5007670971d3b1");
}

#[test]
fn a_service_and_a_workspace_hash_as_in_kong() {
    let hashes = of(&json!({
        "_format_version": "3.0", "_transform": false,
        "workspaces": [{
            "id": "0dc6f45b-8f8d-40d2-a504-473544ee190b", "name": "default", "comment": null, "config": {},
            "meta": {}, "created_at": 1700000000, "updated_at": 1700000000,
        }],
        "services": [service()],
    }));
    assert_eq!(hashes.services.as_str(), "cbf296f07d79e34883bbab28b65ef352");
    assert_eq!(hashes.config.as_str(), "8dd89138b0eac8dc78edbcae31b2d3b9");
    assert!(hashes.routes.is_zero() && hashes.router().is_zero() && hashes.balancer().is_zero());
}

#[test]
fn every_part_hashes_as_in_kong() {
    let hashes = of(&json!({
        "_format_version": "3.0", "_transform": false, "services": [service()],
        "routes": [
            {"id": id(2), "name": "r1", "service": id(1), "paths": ["/a"], "methods": null,
             "protocols": ["http", "https"], "strip_path": true, "regex_priority": 0},
            {"id": id(3), "name": "r2", "service": null, "hosts": [], "protocols": ["http"], "strip_path": false,
             "headers": {"x-b": ["1", "2", "3", "4", "5", "6"], "x-a": ["z"]}},
        ],
        "upstreams": [{"id": id(4), "name": "up", "slots": 10000}],
        "targets": [{"id": id(5), "upstream": id(4), "target": "10.0.0.1:80", "weight": 100,
                     "created_at": 1700000000.123}],
        "plugins": [{"id": id(6), "name": "key-auth", "enabled": true, "config": {
            "key_names": ["apikey"], "hide_credentials": false, "anonymous": null, "ratio": 0.5, "big": 1e15, "neg": -1,
        }}],
    }));
    assert_eq!(hashes.routes.as_str(), "e72ac95c7128b9b90cc0122dec04fffd");
    assert_eq!(hashes.services.as_str(), "cbf296f07d79e34883bbab28b65ef352");
    assert_eq!(hashes.plugins.as_str(), "85e279b5985891ee725207e89a38f33f");
    assert_eq!(hashes.upstreams.as_str(), "2ee4284de4f3a077c18d6a5942958431");
    assert_eq!(hashes.targets.as_str(), "b507c45a968b0fc72d8f8ef1c1ef00f1");
    assert_eq!(hashes.config.as_str(), "4bae001c1c2b39299eb79eb7b04634cb");
    assert_eq!(hashes.router().as_str(), "cdc2c964cc90bf1815b44b98fb199b34");
    assert_eq!(hashes.balancer().as_str(), "b718e6f1c18bdd10a6d780f3ebcdfb7a");
}

#[test]
fn the_form_is_not_injective_and_need_not_be() {
    let hash = |value: Value| part(Some(&value));
    assert_eq!(hash(json!(["a;b"])), hash(json!(["a", "b"])));
    assert_eq!(hash(json!(["a"])), hash(json!("a")));
    assert_eq!(hash(json!(1)), hash(json!("1")));
}

#[test]
fn a_part_known_from_before_counts_as_if_computed() {
    let table = json!({"plugins": [{"id": "a"}], "services": [service()]});
    let whole = of(&table);
    let mut hasher = TableHasher::new();
    assert!(hasher.known_part("plugins", whole.plugins.clone()));
    assert!(!hasher.known_part("consumers", whole.plugins.clone()));
    hasher.member("services", &table["services"]);
    assert_eq!(hasher.finish(), whole);
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 8, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            proptest::collection::btree_map("[a-z_]{1,4}", inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The recipe written down plainly, with a buffer.
fn plain(value: &Value, buffer: &mut Vec<u8>) {
    match value {
        Value::Null => buffer.extend_from_slice(b"/null/"),
        Value::Bool(flag) => buffer.extend_from_slice(flag.to_string().as_bytes()),
        Value::Number(number) => number::write_number(number, buffer),
        Value::String(text) => buffer.extend_from_slice(text.as_bytes()),
        Value::Array(elements) if elements.is_empty() => buffer.extend_from_slice(b"{}"),
        Value::Object(members) if members.is_empty() => buffer.extend_from_slice(b"{}"),
        Value::Array(elements) => {
            for element in elements {
                plain(element, buffer);
                buffer.push(b';');
            }
            if elements.len() <= 5 {
                buffer.pop();
            }
        }
        Value::Object(members) => {
            for (key, value) in members {
                buffer.extend_from_slice(key.as_bytes());
                buffer.push(b':');
                plain(value, buffer);
                buffer.push(b';');
            }
        }
    }
}

proptest! {
    #[test]
    fn streaming_gives_the_hash_of_the_plain_recipe(value in json_value()) {
        let mut buffer = Vec::new();
        plain(&value, &mut buffer);
        let expected = part(Some(&Value::String(String::from_utf8(buffer).unwrap())));
        prop_assert_eq!(part(Some(&value)), expected);
    }

    #[test]
    fn rows_and_values_hash_alike(rows in proptest::collection::vec("[a-z]{0,3}", 0..12)) {
        let rows: Vec<Value> = rows.into_iter().map(|name| json!({"id": name})).collect();
        let records: Vec<Record> = rows.iter().map(|row| row.as_object().unwrap().clone()).collect();
        for entity in ["consumers", "routes"] {
            let mut streamed = TableHasher::new();
            streamed.rows(entity, &records);
            let mut whole = TableHasher::new();
            whole.member(entity, &Value::from(rows.clone()));
            prop_assert_eq!(streamed.finish(), whole.finish());
        }
    }
}

//! What the benchmark stores: services with what belongs to them, and consumers with their keys.

use serde_json::{Value, json};

/// Entities that belong to one service, itself included: two routes, two plugins, an upstream with a target, one and a half
/// consumers with a key each.
pub(crate) const EACH: usize = 10;

/// An id as random as those that are drawn, and the same in each run.
pub(crate) fn id(kind: u64, number: usize) -> String {
    let high = mixed(kind << 40 | number as u64);
    let low = mixed(high);
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0xfff,
        low & 0xffff_ffff_ffff
    )
}

/// SplitMix64.
fn mixed(number: u64) -> u64 {
    let mut word = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

fn service(number: usize, path: &str) -> Value {
    json!({
        "name": format!("service-{number}"), "host": format!("service-{number}.example"), "port": 8080, "path": path,
        "tags": ["team-a", format!("group-{}", number % 50)],
    })
}

fn routes(number: usize) -> [Value; 2] {
    [
        json!({"name": format!("list-{number}"), "paths": [format!("/s{number}/list")], "methods": ["GET"]}),
        json!({"name": format!("edit-{number}"), "paths": [format!("/s{number}/edit")], "methods": ["POST", "PUT"]}),
    ]
}

fn plugins() -> [Value; 2] {
    [
        json!({"name": "key-auth", "config": {"key_names": ["apikey"]}}),
        json!({"name": "rate-limiting", "config": {"minute": 100, "policy": "local"}}),
    ]
}

fn upstream(number: usize) -> Value {
    json!({"name": format!("service-{number}.example")})
}

fn target(number: usize) -> Value {
    json!({"target": format!("10.{}.{}.{}:80", number / 62_500, number / 250 % 250, number % 250)})
}

/// Consumers beside so many services.
fn consumers(services: usize) -> usize {
    services * 3 / 2
}

/// The operations that create so many services and what belongs to them, parents first.
pub(crate) fn operations(services: usize) -> Vec<Value> {
    let create = |entity: &str, id: String, parent: Option<(&str, String)>, mut body: Value| {
        body["id"] = Value::from(id);
        if let Some((field, parent)) = parent {
            body[field] = json!({ "id": parent });
        }
        json!({"action": "create", "entity": entity, "body": body})
    };
    let mut operations = Vec::with_capacity(services * EACH);
    for number in 0..services {
        let parent = id(0, number);
        let below = || Some(("service", parent.clone()));
        operations.push(create("services", parent.clone(), None, service(number, "/base")));
        for (place, route) in routes(number).into_iter().enumerate() {
            operations.push(create("routes", id(1, number * 2 + place), below(), route));
        }
        for (place, plugin) in plugins().into_iter().enumerate() {
            operations.push(create("plugins", id(2, number * 2 + place), below(), plugin));
        }
        operations.push(create("upstreams", id(3, number), None, upstream(number)));
        operations.push(create("targets", id(4, number), Some(("upstream", id(3, number))), target(number)));
    }
    for number in 0..consumers(services) {
        operations.push(create("consumers", id(5, number), None, json!({"username": format!("user-{number}")})));
        let key = json!({"key": format!("secret-{number}")});
        operations.push(create("keyauth_credentials", id(6, number), Some(("consumer", id(5, number))), key));
    }
    operations
}

/// The operations that create one consumer of a large directory with its two keys.
pub(crate) fn member(number: usize) -> [Value; 3] {
    let consumer = id(7, number);
    let key = |place: usize| {
        let body =
            json!({"id": id(8, number * 2 + place), "key": key_text(number, place), "consumer": {"id": consumer}});
        json!({"action": "create", "entity": "keyauth_credentials", "body": body})
    };
    let body = json!({"id": consumer, "username": member_name(number), "custom_id": format!("crm-{number}")});
    [json!({"action": "create", "entity": "consumers", "body": body}), key(0), key(1)]
}

pub(crate) fn member_name(number: usize) -> String {
    format!("member-{number}")
}

pub(crate) fn key_text(number: usize, place: usize) -> String {
    format!("{:016x}{:016x}", mixed(number as u64), mixed(mixed(number as u64) + place as u64))
}

/// A declarative document of so many services and what belongs to them. In the other one every tenth service has
/// another path, some are gone and some are new.
pub(crate) fn document(services: usize, other: bool) -> Value {
    let from = if other { services / 20 } else { 0 };
    let with = |mut parent: Value, children: &[(&str, Value)]| {
        for (name, list) in children {
            parent[*name] = list.clone();
        }
        parent
    };
    let service = |number: usize| {
        let path = if other && number.is_multiple_of(10) { "/other" } else { "/base" };
        with(service(number, path), &[("routes", json!(routes(number))), ("plugins", json!(plugins()))])
    };
    let upstream = |number: usize| with(upstream(number), &[("targets", json!([target(number)]))]);
    let consumer = |number: usize| json!({"username": format!("user-{number}"), "keyauth_credentials": [{"key": format!("secret-{number}")}]});
    let numbers = from..from + services;
    json!({
        "_format_version": "3.0",
        "services": numbers.clone().map(service).collect::<Vec<_>>(),
        "upstreams": numbers.map(upstream).collect::<Vec<_>>(),
        "consumers": (from..from + consumers(services)).map(consumer).collect::<Vec<_>>(),
    })
}

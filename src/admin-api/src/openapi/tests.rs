use super::document;
use gwctl_entities::{NodeKind, Registry, RegistryOptions, Value};
use std::collections::BTreeSet;

fn of(kind: NodeKind) -> Value {
    let options = RegistryOptions { kind, router_flavor: "traditional_compatible".to_owned(), plugins: None };
    document(&Registry::bundled(&options), kind, true, "/")
}

/// Calls `seen` with every value below.
fn walk<'a>(value: &'a Value, seen: &mut impl FnMut(&'a Value)) {
    seen(value);
    match value {
        Value::Object(members) => members.values().for_each(|member| walk(member, seen)),
        Value::Array(items) => items.iter().for_each(|item| walk(item, seen)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_operation_has_a_name_of_its_own() {
    for kind in [NodeKind::ControlPlane, NodeKind::Traditional, NodeKind::DbLess] {
        let document = of(kind);
        let mut names = BTreeSet::new();
        walk(&document, &mut |value| {
            if let Some(target) = value.get("$ref").and_then(Value::as_str) {
                assert!(document.pointer(target.trim_start_matches('#')).is_some(), "{target} leads nowhere");
            }
            if let Some(name) = value.get("operationId").and_then(Value::as_str) {
                assert!(names.insert(name), "two operations are named {name}");
            }
        });
        assert!(names.len() > 50, "{kind:?}: {}", names.len());
    }
}

#[test]
fn every_variable_of_a_path_is_described() {
    let document = of(NodeKind::ControlPlane);
    for (path, endpoint) in document["paths"].as_object().unwrap() {
        for variable in path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}')) {
            let named =
                |list: &Value| list.as_array().is_some_and(|list| list.iter().any(|one| one["name"] == variable));
            let methods = endpoint.as_object().unwrap().values().filter(|method| method.get("operationId").is_some());
            for method in methods {
                assert!(named(&endpoint["parameters"]) || named(&method["parameters"]), "{path}: {variable}");
            }
        }
    }
}

#[test]
fn a_schema_tells_what_the_engine_asks_for() {
    let document = of(NodeKind::ControlPlane);
    let service = &document["components"]["schemas"]["services_input"];
    assert_eq!(service["required"], serde_json::json!(["host"]));
    assert_eq!(service["additionalProperties"], false);
    let port = &service["properties"]["port"];
    assert_eq!((&port["maximum"], &port["default"]), (&serde_json::json!(65535), &serde_json::json!(80)));
    assert!(service["properties"]["protocol"]["enum"].as_array().unwrap().contains(&"https".into()));
    let names = document["components"]["schemas"]["plugins_input"]["properties"]["name"]["enum"].as_array().unwrap();
    assert!(names.contains(&"rate-limiting".into()));
}

#[test]
fn a_node_without_a_store_offers_no_writes() {
    let document = of(NodeKind::DbLess);
    let services = document["paths"]["/services"].as_object().unwrap();
    assert_eq!(services.keys().collect::<Vec<_>>(), ["get"]);
    assert!(document["paths"].get("/gwctl/changes").is_none());
}

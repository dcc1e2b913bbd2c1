//! What a registry knows about entities and plugins.

use crate::support::{Memory, Steady, record, registry, registry_of};
use gwctl_entities::{FieldType, NodeKind, OnDelete, PluginSchema, Registry, RegistryOptions};
use serde_json::json;
use std::collections::BTreeSet;

#[test]
fn every_schema_reads_for_every_kind_of_node() {
    for kind in [NodeKind::Traditional, NodeKind::DbLess, NodeKind::ControlPlane, NodeKind::DataPlane] {
        for flavor in ["traditional", "traditional_compatible", "expressions"] {
            let registry = registry_of(kind, flavor);
            assert_eq!(registry.entities().count(), 28, "{kind:?} {flavor}");
            assert_eq!(registry.plugin_names().count(), 45, "{kind:?} {flavor}");
        }
    }
}

#[test]
fn parents_stand_before_their_children() {
    let registry = registry();
    let mut seen = BTreeSet::new();
    for entity in registry.entities() {
        for key in &entity.foreign_keys {
            assert!(seen.contains(&key.references), "{} before {}", entity.name, key.references);
        }
        seen.insert(entity.name.clone());
    }
}

#[test]
fn entities_are_found_by_name_and_endpoint() {
    let registry = registry();
    let keys = registry.by_endpoint("key-auths").unwrap();
    assert_eq!(keys.name, "keyauth_credentials");
    assert_eq!(keys.nested_name, "key-auth");
    assert_eq!(registry.entity("vaults").unwrap().table, "sm_vaults");
    assert!(registry.by_endpoint("targets").is_none());
    let referring: Vec<_> =
        registry.referenced_by("services").iter().map(|(name, key)| (name.as_str(), key.on_delete)).collect();
    assert!(referring.contains(&("routes", OnDelete::Restrict)));
    assert!(referring.contains(&("plugins", OnDelete::Cascade)));
}

#[test]
fn cache_keys_join_values_and_foreign_ids() {
    let registry = registry();
    let plugins = registry.entity("plugins").unwrap();
    let plugin = record(json!({"name": "cors", "route": null, "service": {"id": "s"}, "consumer": null}));
    assert_eq!(plugins.cache_key_of(&plugin).as_deref(), Some("plugins:cors::s:"));
    let keys = registry.entity("keyauth_credentials").unwrap();
    assert_eq!(keys.cache_key_of(&record(json!({"key": null}))), None);
    assert_eq!(registry.entity("services").unwrap().cache_key_of(&record(json!({"name": "a"}))), None);
}

#[test]
fn composite_keys_join_their_parts() {
    let registry = registry();
    let metrics = registry.entity("ratelimiting_metrics").unwrap();
    let row = json!({"identifier": "i", "period": "minute", "period_date": 60, "service_id": "s", "route_id": "r"});
    assert_eq!(metrics.id_of(&record(row)).as_deref(), Some("i:minute:60:s:r"));
}

#[test]
fn a_plugin_left_out_takes_its_entities_along() {
    let plugins = Some(BTreeSet::from(["cors".to_owned()]));
    let registry = Registry::bundled(&RegistryOptions {
        kind: NodeKind::ControlPlane,
        router_flavor: "traditional_compatible".to_owned(),
        plugins,
    });
    assert_eq!(registry.plugin_names().collect::<Vec<_>>(), ["cors"]);
    assert!(registry.entity("keyauth_credentials").is_none());
    assert!(registry.plugin_schema_json("key-auth").is_none());
}

#[test]
fn schema_answers_hide_what_is_ours() {
    let registry = registry();
    let services = registry.schema_json("services").unwrap();
    let host = services["fields"].as_array().unwrap().iter().find_map(|field| field.get("host")).unwrap();
    assert_eq!(*host, json!({"type": "string", "required": true}));
    let key = registry.plugin_schema_json("acl").unwrap();
    assert_eq!(key["fields"][0], json!({"consumer": {"type": "foreign", "reference": "consumers", "eq": null}}));
    assert!(registry.vault_schema_json("env").unwrap()["fields"][0].get("config").is_some());
    assert!(registry.schema_json("nope").is_none());
}

#[test]
fn the_secret_of_the_node_is_the_default_of_sessions() {
    let options = registry().options().clone();
    let registry = Registry::bundled_with_secret(&options, "of this node");
    let input = record(json!({"name": "session"}));
    let plugin = registry.process_insert("plugins", input, &mut Steady::default(), &Memory::default()).unwrap();
    assert_eq!(plugin["config"]["secret"], "of this node");
    let shown = registry.plugin_schema_json("session").unwrap().to_string();
    assert!(shown.contains("of this node"));
}

#[test]
fn schemas_of_lua_plugins_join() {
    let schema = json!({
        "version": "0.1", "priority": 7.5,
        "fields": [
            {"consumer": {"type": "foreign", "reference": "consumers", "eq": null}},
            {"config": {"type": "record", "required": true, "fields": [
                {"greeting": {"type": "string", "default": "hi", "match": "^%l+$"}},
                {"times": {"type": "integer", "required": true, "between": [1, 9]}},
            ]}},
        ],
    });
    let mut registry = registry();
    registry.add_plugin(PluginSchema::from_json("hello", &schema).unwrap());
    assert_eq!(registry.plugin_facts("hello"), Some(("0.1", json!(7.5))));
    let input = record(json!({"name": "hello", "config": {"times": 2}}));
    let plugin = registry.process_insert("plugins", input, &mut Steady::default(), &Memory::default()).unwrap();
    assert_eq!(plugin["config"], json!({"greeting": "hi", "times": 2}));
    let bad = record(json!({"name": "hello", "config": {"times": 10, "greeting": "HI"}}));
    assert!(registry.process_insert("plugins", bad, &mut Steady::default(), &Memory::default()).is_err());
    assert!(PluginSchema::from_json("hello", &json!({"fields": [{"config": {"type": "recrod"}}]})).is_err());
}

#[test]
fn fields_tell_their_types_for_forms() {
    let registry = registry();
    let plugins = registry.entity("plugins").unwrap();
    let schema = plugins.schema_of(&record(json!({"name": "rate-limiting"})));
    assert_eq!(schema.field_at("config.redis.port").unwrap().kind, FieldType::Integer);
    let services = &registry.entity("services").unwrap().schema;
    assert_eq!(services.shorthand("url").unwrap().kind, FieldType::String);
}

//! Properties of the engine over generated input.

use crate::support::{Memory, Steady, registry};
use gwctl_entities::{EntitySchema, Field, FieldType, Map, Record, Registry, Schema, Value};
use proptest::prelude::*;
use serde_json::json;
use std::sync::LazyLock;

static REGISTRY: LazyLock<Registry> = LazyLock::new(registry);

/// Takes decisions from bytes; the end of the bytes decides for zero.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn below(&mut self, limit: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % limit.max(1)
    }
}

/// A record that has good chances to be valid.
fn plausible_record(schema: &Schema, choices: &mut Choices<'_>) -> Map<String, Value> {
    let mut record = Map::new();
    for field in schema.fields() {
        let wanted = field.required && field.default.is_none() && !field.auto;
        if wanted || choices.below(3) == 1 {
            record.insert(field.name.clone(), plausible(field, choices));
        }
    }
    record
}

fn plausible(field: &Field, choices: &mut Choices<'_>) -> Value {
    if field.rules.eq == Some(Value::Null) {
        return Value::Null;
    }
    if let Some(allowed) = &field.rules.one_of {
        return allowed.get(choices.below(allowed.len())).cloned().unwrap_or_default();
    }
    match field.kind {
        FieldType::Boolean => Value::from(choices.below(2) == 1),
        FieldType::Integer | FieldType::Number => {
            let least = field.rules.between.map_or(1.0, |(low, _)| low.max(0.0).ceil());
            Value::from(least as u64 + choices.below(3) as u64)
        }
        FieldType::Array | FieldType::Set => {
            let elements = field.elements.as_ref().unwrap();
            (0..=choices.below(2)).map(|_| plausible(elements, choices)).collect()
        }
        FieldType::Map => {
            let value = field.values.as_ref().map(|values| plausible(values, choices)).unwrap_or_default();
            json!({ "x-a": value })
        }
        FieldType::Record => {
            field.record.as_ref().map_or(json!({}), |schema| Value::Object(plausible_record(schema, choices)))
        }
        FieldType::Foreign => json!({ "id": "00000000-0000-4000-8000-00000000000f" }),
        FieldType::String => Value::from(plausible_text(field, choices)),
        FieldType::Json | FieldType::Any => Value::Null,
    }
}

fn plausible_text(field: &Field, choices: &mut Choices<'_>) -> &'static str {
    if field.uuid {
        return "00000000-0000-4000-8000-00000000000e";
    }
    match field.validator.as_deref() {
        _ if field.name == "methods" || field.rules.match_.as_deref() == Some("^%u+$") => "GET",
        Some("uri_path" | "route_path") => ["/a", "/b/c"][choices.below(2)],
        Some("url" | "redirect_uri") => "https://a.test/x",
        Some("ip_or_cidr") => "10.0.0.0/8",
        Some("ip") => "10.0.0.1",
        _ if field.rules.match_.as_deref().is_some_and(|pattern| pattern.contains(':')) => "a:b",
        Some("host" | "sni" | "wildcard_host" | "upstream_name" | "route_host" | "target_address") => {
            ["a.test", "b.test"][choices.below(2)]
        }
        _ => ["a", "bc"][choices.below(2)],
    }
}

/// Entities whose generated records have a chance: those with certificates inside do not.
fn generated(entity: &EntitySchema, choices: &mut Choices<'_>) -> Record {
    let mut start = Map::new();
    let names: Vec<&str> = entity.variant_names().collect();
    if let (Some(key), Some(name)) = (&entity.subschema_key, names.get(choices.below(names.len()))) {
        let value = if key == "protocols" { json!([name]) } else { json!(name) };
        start.insert(key.clone(), value);
    }
    let mut record = plausible_record(entity.schema_of(&start), choices);
    record.remove("ttl");
    record.extend(start);
    record
}

fn entity_names() -> Vec<String> {
    REGISTRY.entities().map(|entity| entity.name.clone()).collect()
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        prop::sample::select(vec!["{vault://env/a}", "http", "ip", "none", "rate-limiting", "[::1]:1", "//", "~/("])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_@.]{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Any JSON under names the schema knows, and some it does not.
fn any_record(entity: String) -> impl Strategy<Value = (String, Record)> {
    let schema = &REGISTRY.entity(&entity).unwrap().schema;
    let mut names: Vec<String> = schema.fields().chain(schema.shorthands()).map(|field| field.name.clone()).collect();
    names.extend(["ttl", "zzz", "config"].map(str::to_owned));
    let plugin = prop::sample::select(REGISTRY.plugin_names().map(str::to_owned).collect::<Vec<_>>());
    let members = prop::collection::btree_map(prop::sample::select(names), any_json(), 0..8);
    (members, plugin, any::<bool>()).prop_map(move |(members, plugin, named)| {
        let mut record: Record = members.into_iter().collect();
        if named && entity == "plugins" {
            record.insert("name".to_owned(), Value::from(plugin));
        }
        (entity.clone(), record)
    })
}

#[test]
fn plausible_records_are_often_valid() {
    // Guards the property below against testing nothing.
    let memory = Memory::default();
    let valid = |entity: &&EntitySchema| {
        (0..40u8).any(|seed| {
            let bytes: Vec<u8> =
                (0..200u8).map(|step| step.wrapping_mul(31).wrapping_add(seed).rotate_left(3)).collect();
            let record = generated(entity, &mut Choices(bytes.iter()));
            REGISTRY.process_insert(&entity.name, record, &mut Steady::default(), &memory).is_ok()
        })
    };
    let count = REGISTRY.entities().filter(valid).count();
    assert!(count >= 20, "only {count} entities had a valid record");
}

proptest! {
    #[test]
    fn an_empty_update_changes_nothing_but_the_time(
        name in prop::sample::select(entity_names()),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let memory = Memory::default();
        let entity = REGISTRY.entity(&name).unwrap();
        let input = generated(entity, &mut Choices(bytes.iter()));
        if let Ok(mut stored) = REGISTRY.process_insert(&name, input, &mut Steady::default(), &memory) {
            let updated = REGISTRY.process_update(&name, &stored, Record::new(), &mut Steady::default(), &memory);
            if let Some(time) = stored.get_mut("updated_at") {
                *time = updated.as_ref().unwrap()["updated_at"].clone();
            }
            prop_assert_eq!(updated.unwrap(), stored);
        }
    }

    #[test]
    fn what_is_exported_comes_back_the_same(
        name in prop::sample::select(entity_names()),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let entity = REGISTRY.entity(&name).unwrap();
        let input = generated(entity, &mut Choices(bytes.iter()));
        if let Ok(stored) = REGISTRY.process_insert(&name, input, &mut Steady::default(), &Memory::default()) {
            let row = REGISTRY.export_row(&name, &stored);
            let back = REGISTRY.import_row(&name, row, &mut Steady::default());
            prop_assert_eq!(back.unwrap(), stored);
        }
    }

    #[test]
    fn any_json_is_answered_without_panic(
        (name, input) in prop::sample::select(entity_names()).prop_flat_map(any_record),
    ) {
        let memory = Memory::default();
        let mut fill = Steady::default();
        let inserted = REGISTRY.process_insert(&name, input.clone(), &mut fill, &memory);
        if let Err(error) = inserted {
            prop_assert!(error.body()["message"].is_string());
        }
        let _ = REGISTRY.process_update(&name, &input, input.clone(), &mut fill, &memory);
        let _ = REGISTRY.import_row(&name, input.clone(), &mut fill);
        let _ = REGISTRY.export_row(&name, &input);
        let _ = REGISTRY.present(&name, &input, 0);
    }
}

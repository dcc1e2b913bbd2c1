//! Answers of `GET /schemas/*`.

use super::{Field, Schema};
use serde_json::{Map, Value, json};

/// `{"fields": [{"<name>": {...}}], "entity_checks": [...]}`. Entity-level shorthands are not shown.
pub(crate) fn schema_json(schema: &Schema) -> Value {
    json!({ "fields": named(schema.fields()), "entity_checks": schema.checks_json })
}

fn named<'a>(fields: impl Iterator<Item = &'a Field>) -> Value {
    fields
        .map(|field| {
            let mut entry = Map::new();
            entry.insert(field.name.clone(), attributes(field));
            Value::Object(entry)
        })
        .collect()
}

fn attributes(field: &Field) -> Value {
    let mut shown = field.attributes.clone();
    for (name, nested) in [("elements", &field.elements), ("keys", &field.keys), ("values", &field.values)] {
        if let Some(nested) = nested {
            shown.insert(name.to_owned(), attributes(nested));
        }
    }
    if let Some(record) = &field.record {
        shown.insert("fields".to_owned(), named(record.fields()));
        if !record.checks_json.is_empty() {
            shown.insert("entity_checks".to_owned(), Value::Array(record.checks_json.clone()));
        }
        if record.shorthands().next().is_some() {
            shown.insert("shorthand_fields".to_owned(), named(record.shorthands()));
        }
    }
    Value::Object(shown)
}

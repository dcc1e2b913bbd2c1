//! Records without what the schema says anyway.

use gwctl_entities::schema::{Field, FieldType, Schema};
use gwctl_entities::{EntitySchema, Fill, Record, Registry, Value};

/// The record without defaults, nulls and times, as people write it. Reading it gives the same record: where it would
/// not, for a setting that depends on another one, the record stays whole.
pub(crate) fn compact(registry: &Registry, schema: &EntitySchema, record: &Record, fill: &mut dyn Fill) -> Record {
    let mut small = without_defaults(schema.schema_of(record), record);
    // Which plugin or vault it is decides what the rest means.
    for name in schema.subschema_key.iter().chain(&schema.primary_key) {
        if let Some(value) = record.get(name).filter(|value| value.is_string()) {
            small.insert(name.clone(), value.clone());
        }
    }
    let timeless = |record: &Record| {
        let mut record = record.clone();
        for time in ["created_at", "updated_at", "ws_id"] {
            record.remove(time);
        }
        record
    };
    let back = registry.import_row(&schema.name, small.clone(), fill);
    if back.is_ok_and(|back| timeless(&back) == timeless(record)) { small } else { whole(record) }
}

/// The record with all its values except times.
pub(crate) fn whole(record: &Record) -> Record {
    let mut record = record.clone();
    for time in ["created_at", "updated_at", "ws_id"] {
        record.remove(time);
    }
    if record.get("ttl").is_some_and(Value::is_null) {
        record.remove("ttl");
    }
    record
}

fn without_defaults(schema: &Schema, record: &Record) -> Record {
    let mut small = Record::new();
    for (name, value) in record {
        if matches!(name.as_str(), "created_at" | "updated_at" | "ws_id") {
            continue;
        }
        let kept = match schema.field(name) {
            Some(field) => of_field(field, value),
            None => Some(value.clone()).filter(|value| !value.is_null()),
        };
        if let Some(value) = kept {
            small.insert(name.clone(), value);
        }
    }
    small
}

/// What of a value must be written; None when leaving it out says the same.
fn of_field(field: &Field, value: &Value) -> Option<Value> {
    let unset = Value::Null;
    let filled = field.kind == FieldType::Record && field.required && field.default.is_none();
    match (&field.record, value) {
        (Some(schema), Value::Object(inner)) => {
            let small = Value::Object(without_defaults(schema, inner));
            let empty = small.as_object().is_some_and(Record::is_empty);
            let default = field.default.as_ref();
            if empty && (filled || default.is_some_and(|default| default.as_object().is_some_and(Record::is_empty))) {
                return None;
            }
            // A default that has members fills the record only when it is absent as a whole.
            if default == Some(value) { None } else { Some(small) }
        }
        _ if filled => Some(value.clone()),
        _ if value == field.default.as_ref().unwrap_or(&unset) => None,
        _ => Some(value.clone()),
    }
}

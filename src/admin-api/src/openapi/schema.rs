//! Fields of the schema engine as JSON Schema.

use gwctl_entities::schema::{Field, FieldType, Rules, Schema};
use gwctl_entities::{EntitySchema, Map, Value};
use serde_json::json;

/// Which side of the API a schema is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// What a client may send.
    Input,
    /// What it is shown.
    Shown,
}

const UUID: &str = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$";

/// The schema of an entity's records.
pub(super) fn entity(entity: &EntitySchema, side: Side) -> Value {
    let mut object = record(&entity.schema, side);
    let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) else { return object };
    if entity.ttl {
        let ttl = match side {
            Side::Input => json!({"type": ["integer", "null"], "minimum": 0, "maximum": 100_000_000}),
            Side::Shown => json!({"type": ["integer", "null"]}),
        };
        properties.insert("ttl".to_owned(), ttl);
    }
    if entity.subschema_key.as_deref() == Some("name") {
        // What stands in `config` depends on the name: `GET /schemas/plugins/{name}` tells.
        properties.insert("config".to_owned(), json!({"type": ["object", "null"]}));
        let names: Vec<&str> = entity.variant_names().collect();
        properties.insert("name".to_owned(), json!({"type": "string", "enum": names}));
    }
    object
}

/// A record with fixed members.
fn record(schema: &Schema, side: Side) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in schema.fields() {
        properties.insert(field.name.clone(), value(field, side));
        let given = field.auto || field.default_token || field.default.as_ref().is_some_and(|value| !value.is_null());
        if field.required && !given && side == Side::Input {
            required.push(Value::from(field.name.as_str()));
        }
    }
    for field in schema.shorthands() {
        if properties.contains_key(&field.name) {
            continue;
        }
        if side == Side::Input || field.echo {
            let mut shown = value(field, side);
            shown["deprecated"] = Value::from(field.deprecated);
            properties.insert(field.name.clone(), shown);
        }
    }
    let mut object = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        object["required"] = Value::Array(required);
    }
    if side == Side::Input {
        object["additionalProperties"] = Value::from(false);
    }
    object
}

/// A value; null stands for unset wherever a value may be absent.
fn value(field: &Field, side: Side) -> Value {
    let mut schema = typed(field, side);
    let null = side == Side::Shown || !field.required || field.auto;
    if null {
        allow_null(&mut schema);
    }
    if let Some(default) = field.default.as_ref().filter(|value| !value.is_null()) {
        schema["default"] = default.clone();
    }
    if field.auto && side == Side::Input {
        schema["description"] = Value::from("made by the server when absent");
    }
    schema
}

fn allow_null(schema: &mut Value) {
    if let Some(kind) = schema.get("type").and_then(Value::as_str).map(str::to_owned) {
        schema["type"] = json!([kind, "null"]);
    }
    if let Some(allowed) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        allowed.push(Value::Null);
    }
}

fn typed(field: &Field, side: Side) -> Value {
    let part = |part: &Option<std::sync::Arc<Field>>| part.as_ref().map_or_else(|| json!({}), |part| bare(part, side));
    let mut schema = match field.kind {
        FieldType::String => json!({"type": "string"}),
        FieldType::Number => json!({"type": "number"}),
        FieldType::Integer => json!({"type": "integer"}),
        FieldType::Boolean => json!({"type": "boolean"}),
        FieldType::Array | FieldType::Set => match side {
            Side::Input => json!({"type": "array", "items": part(&field.elements)}),
            // An empty list is written as an empty object in places, as Lua does.
            Side::Shown => json!({"type": "array"}),
        },
        FieldType::Map => match side {
            Side::Input => json!({"type": "object", "additionalProperties": part(&field.values)}),
            Side::Shown => json!({"type": "object"}),
        },
        FieldType::Record => match &field.record {
            Some(schema) => record(schema, side),
            None => json!({"type": "object"}),
        },
        FieldType::Foreign => match side {
            Side::Input => {
                json!({"type": "object", "properties": {"id": {"type": "string", "pattern": UUID}}, "required": ["id"]})
            }
            Side::Shown => json!({"type": "object", "properties": {"id": {"type": "string"}}}),
        },
        FieldType::Json | FieldType::Any => json!({}),
    };
    if side == Side::Input {
        if field.uuid {
            schema["pattern"] = Value::from(UUID);
        }
        if field.timestamp {
            schema["minimum"] = Value::from(0);
        }
        limit(&mut schema, field.kind, &field.rules);
        if field.encrypted || field.referenceable {
            schema["description"] = Value::from("may be a reference to a vault: {vault://...}");
        }
    }
    schema
}

fn bare(field: &Field, side: Side) -> Value {
    typed(field, side)
}

fn limit(schema: &mut Value, kind: FieldType, rules: &Rules) {
    if let Some(allowed) = &rules.one_of {
        schema["enum"] = Value::Array(allowed.clone());
    }
    if let Some(only) = rules.eq.as_ref().filter(|only| !only.is_null()) {
        schema["const"] = only.clone();
    }
    if let Some((least, most)) = rules.between {
        schema["minimum"] = number(least);
        schema["maximum"] = number(most);
    }
    if let Some(bound) = rules.gt {
        schema["exclusiveMinimum"] = number(bound);
    }
    let (least, most) = match kind {
        FieldType::String => ("minLength", "maxLength"),
        FieldType::Array | FieldType::Set => ("minItems", "maxItems"),
        FieldType::Map => ("minProperties", "maxProperties"),
        _ => return,
    };
    // A text without a least length of its own may not be empty.
    let shortest = rules.len_min.or_else(|| (kind == FieldType::String).then_some(1));
    if let Some(length) = rules.len_eq.or(shortest).filter(|length| *length > 0) {
        schema[least] = Value::from(length);
    }
    if let Some(length) = rules.len_eq.or(rules.len_max) {
        schema[most] = Value::from(length);
    }
    if let Some(start) = &rules.starts_with {
        schema["pattern"] = Value::from(format!("^{}", escaped(start)));
    }
}

fn number(value: f64) -> Value {
    let mut number = Value::from(value);
    crate::answer::tidy_numbers(&mut number);
    number
}

/// A text as a regular expression that matches it.
fn escaped(text: &str) -> String {
    let special = |letter: char| r"\.+*?()|[]{}^$".contains(letter);
    text.chars().flat_map(|letter| special(letter).then_some('\\').into_iter().chain([letter])).collect()
}

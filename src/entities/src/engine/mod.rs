//! Works on records with a schema: fills them, validates them, checks fields against each other.

pub(crate) mod checks;
pub(crate) mod fill;
pub(crate) mod rules;
pub(crate) mod shorthand;
pub(crate) mod validate;

use crate::schema::{Field, FieldType};
use serde_json::{Map, Number, Value};

/// Errors of a record: field name to message or nested errors.
pub(crate) type Errors = Map<String, Value>;

/// The value at a dotted path through objects; Null when there is none.
pub(crate) fn value_at<'a>(record: &'a Map<String, Value>, path: &str) -> &'a Value {
    if let Some(value) = record.get(path) {
        return value;
    }
    let mut steps = path.split('.');
    let first = steps.next().and_then(|name| record.get(name)).unwrap_or(&Value::Null);
    steps.fold(first, |value, name| value.get(name).unwrap_or(&Value::Null))
}

/// Puts a value at a path, making objects on the way.
pub(crate) fn set_at<'a>(record: &mut Map<String, Value>, mut path: impl Iterator<Item = &'a str>, value: Value) {
    let Some(name) = path.next() else { return };
    let rest: Vec<&str> = path.collect();
    if rest.is_empty() {
        record.insert(name.to_owned(), value);
        return;
    }
    let member = record.entry(name).or_insert(Value::Null);
    if !member.is_object() {
        *member = Value::Object(Map::new());
    }
    if let Value::Object(object) = member {
        set_at(object, rest.into_iter(), value);
    }
}

/// Null, "", [] and {} count as empty in entity checks.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        _ => false,
    }
}

/// A text like `{vault://env/name}`.
pub(crate) fn is_vault_reference(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.starts_with("{vault://") && text.ends_with('}'))
}

/// Whole numbers written with a fraction (`80.0`) become integers, at any depth.
pub(crate) fn normalise_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            if float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0 {
                // In range: the bound above is 2^53.
                *number = Number::from(float as i64);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(normalise_numbers),
        Value::Object(object) => object.values_mut().for_each(normalise_numbers),
        _ => {}
    }
}

/// A value as Lua's `tostring` writes it.
pub(crate) fn lua_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number_text(number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}

pub(crate) fn number_text(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 { format!("{number:.0}") } else { number.to_string() }
}

/// Is the value's array or object shape one whose parts are walked with this field's definitions?
pub(crate) fn each_part_mut(field: &Field, value: &mut Value, mut visit: impl FnMut(&Field, &mut Value)) {
    match (field.kind, value) {
        (FieldType::Array | FieldType::Set, Value::Array(list)) => {
            if let Some(elements) = &field.elements {
                list.iter_mut().for_each(|element| visit(elements, element));
            }
        }
        (FieldType::Map, Value::Object(map)) => {
            if let Some(values) = &field.values {
                map.values_mut().for_each(|value| visit(values, value));
            }
        }
        _ => {}
    }
}

//! Shorthands, automatic fields and defaults, before validation.

use super::{Errors, each_part_mut, shorthand};
use crate::Fill;
use crate::schema::{Field, FieldType, Schema};
use serde_json::{Map, Value};

/// What the fields are filled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A new or replacing record: absent fields get automatic values and defaults.
    Insert,
    /// A row from elsewhere: as for an insert, but what it carries stays, nulls and times included.
    Import,
    /// A stored record after a merge: absent members get defaults, nothing is generated.
    Complete,
}

/// Expands shorthands at every depth. Failures are collected under the shorthand's name, whatever its depth.
pub(crate) fn expand_shorthands(schema: &Schema, record: &mut Map<String, Value>, errors: &mut Errors) {
    for field in schema.shorthands() {
        shorthand::expand(field, record, errors);
    }
    // Only what has parts can have shorthands inside.
    let composed = |field: &&Field| field.record.is_some() || field.elements.is_some() || field.values.is_some();
    for field in schema.fields().filter(composed) {
        if let Some(value) = record.get_mut(&field.name) {
            expand_inside(field, value, errors);
        }
    }
}

/// As [`expand_shorthands`] for a record in stored form: fields that choose each other's values have done so before.
pub(crate) fn expand_stored(schema: &Schema, record: &mut Map<String, Value>, errors: &mut Errors) {
    let chosen: Vec<(String, Value)> = schema
        .shorthands()
        .filter(|shorthand| schema.field(&shorthand.name).is_some())
        .filter_map(|shorthand| record.remove_entry(&shorthand.name))
        .collect();
    expand_shorthands(schema, record, errors);
    record.extend(chosen);
}

fn expand_inside(field: &Field, value: &mut Value, errors: &mut Errors) {
    if let (Some(schema), Value::Object(record)) = (&field.record, &mut *value) {
        expand_shorthands(schema, record, errors);
    }
    each_part_mut(field, value, |part, value| expand_inside(part, value, errors));
}

/// Fills absent fields of a record and drops duplicates of sets.
///
/// Members and fields are walked side by side, both by name, and the record is made anew from what comes out: that
/// takes half the time and room of as many insertions.
pub(crate) fn fill_record(schema: &Schema, record: &mut Map<String, Value>, purpose: Purpose, fill: &mut dyn Fill) {
    let fields = schema.fields_by_name();
    let mut filled: Vec<(String, Value)> = Vec::with_capacity(fields.len().max(record.len()));
    let mut given = std::mem::take(record).into_iter().peekable();
    for field in fields {
        while let Some(stranger) = given.next_if(|(name, _)| *name < field.name) {
            filled.push(stranger);
        }
        let (name, given) = match given.next_if(|(name, _)| *name == field.name) {
            Some((name, value)) => (name, Some(value)),
            None => (field.name.clone(), None),
        };
        let made = match purpose {
            Purpose::Insert => automatic(field, given.as_ref(), fill),
            Purpose::Import if given.is_none() => automatic(field, None, fill),
            Purpose::Import | Purpose::Complete => None,
        };
        let mut value = made.or(given).unwrap_or_else(|| absent_value(field, purpose, fill));
        fill_value(field, &mut value, purpose, fill);
        filled.push((name, value));
    }
    filled.extend(given);
    *record = filled.into_iter().collect();
}

fn fill_value(field: &Field, value: &mut Value, purpose: Purpose, fill: &mut dyn Fill) {
    type_empty_table(field, value);
    if let (Some(schema), Value::Object(record)) = (&field.record, &mut *value) {
        fill_record(schema, record, purpose, fill);
    }
    if let (FieldType::Set, Value::Array(list)) = (field.kind, &mut *value) {
        drop_duplicates(list);
    }
    if let (true, Value::String(text)) = (field.uuid, &mut *value) {
        text.make_ascii_lowercase();
    }
    each_part_mut(field, value, |part, value| fill_value(part, value, purpose, fill));
}

/// Lua does not tell an empty list from an empty object; the field does.
fn type_empty_table(field: &Field, value: &mut Value) {
    let typed = match (field.kind, &*value) {
        (FieldType::Array | FieldType::Set, Value::Object(object)) if object.is_empty() => Value::Array(Vec::new()),
        (FieldType::Map | FieldType::Record, Value::Array(list)) if list.is_empty() => Value::Object(Map::new()),
        _ => return,
    };
    *value = typed;
}

fn absent_value(field: &Field, purpose: Purpose, fill: &mut dyn Fill) -> Value {
    if let Some(default) = &field.default {
        return default.clone();
    }
    if field.default_token && purpose != Purpose::Complete {
        return Value::from(secret(fill));
    }
    if field.kind == FieldType::Record && field.required && !field.is_abstract {
        return Value::Object(Map::new());
    }
    Value::Null
}

/// As long as the secrets Kong draws: 44 characters.
fn secret(fill: &mut dyn Fill) -> String {
    let mut text = fill.token();
    text.extend(fill.token().chars().take(12));
    text
}

/// The value that the engine gives a field; None: what was given stays.
fn automatic(field: &Field, given: Option<&Value>, fill: &mut dyn Fill) -> Option<Value> {
    if !field.auto {
        return None;
    }
    let unset = given.is_none_or(Value::is_null);
    match (field.kind, field.name.as_str()) {
        // A null id would be no id.
        (FieldType::String, _) if field.uuid && unset => Some(Value::from(fill.uuid())),
        (FieldType::String, _) if given.is_some() => None,
        (FieldType::String, _) => Some(Value::from(fill.token())),
        (_, "updated_at") => Some(now(field, fill)),
        _ if unset => Some(now(field, fill)),
        _ => None,
    }
}

/// The current time as the field holds it: whole seconds, or seconds with milliseconds for `number` fields.
pub(crate) fn now(field: &Field, fill: &mut dyn Fill) -> Value {
    let millis = fill.now_millis();
    match field.kind {
        FieldType::Number if !millis.is_multiple_of(1000) => Value::from(millis as f64 / 1000.0),
        _ => Value::from(millis / 1000),
    }
}

fn drop_duplicates(list: &mut Vec<Value>) {
    // Most sets are short, and then comparing each with each is the cheapest.
    if list.len() <= 8 {
        let repeats = |list: &[Value], at: usize| list[..at].contains(&list[at]);
        for at in (1..list.len()).rev() {
            if repeats(list, at) {
                list.remove(at);
            }
        }
        return;
    }
    let mut seen = std::collections::BTreeSet::new();
    list.retain(|value| seen.insert(value.to_string()));
}

//! What differs between two records of one entity.

use super::Change;
use crate::secret::is_secret;
use gwctl_entities::schema::{Field, FieldType, Schema};
use gwctl_entities::{Record, Value};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Fields the server makes; they never count as a difference.
const SERVER_MADE: [&str; 4] = ["id", "created_at", "updated_at", "ws_id"];

/// The fields that differ. Sets compare without order, numbers by value, an absent field equals null.
pub(super) fn changes<'a>(schema: &Schema, before: &'a Record, after: &'a Record) -> Vec<Change> {
    let mut found = Vec::new();
    // Both by name, side by side.
    let (mut old, mut new) = (before.iter().peekable(), after.iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return found,
            (Some((before, _)), Some((after, _))) => before.cmp(after),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
        };
        let before = if order.is_le() { old.next() } else { None };
        let after = if order.is_ge() { new.next() } else { None };
        let Some((name, _)) = before.or(after) else { return found };
        let value = |member: Option<(&String, &'a Value)>| member.map_or(&Value::Null, |(_, value)| value);
        let (before, after) = (value(before), value(after));
        // Seconds that remain shrink by themselves: only having an end or not is a difference.
        let shrinks = name == "ttl" && before.is_null() == after.is_null();
        if before != after && !shrinks && !SERVER_MADE.contains(&name.as_str()) {
            compare(&mut found, schema.field(name), name.clone(), before, after);
        }
    }
}

/// The fields of a new record that say something: neither null nor the default.
pub(super) fn settings(schema: &Schema, after: &Record) -> Vec<Change> {
    let mut found = Vec::new();
    for (name, value) in after.iter().filter(|(name, _)| !SERVER_MADE.contains(&name.as_str())) {
        let field = schema.field(name);
        compare(&mut found, field, name.clone(), default_of(field), value);
    }
    found.retain(|change| !is_empty(&change.after));
    for change in &mut found {
        change.before = Value::Null;
    }
    found
}

fn default_of(field: Option<&Field>) -> &Value {
    field.and_then(|field| field.default.as_ref()).unwrap_or(&Value::Null)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn of<'a>(record: &'a Record, name: &str) -> &'a Value {
    record.get(name).unwrap_or(&Value::Null)
}

fn compare(found: &mut Vec<Change>, field: Option<&Field>, path: String, before: &Value, after: &Value) {
    let record = field.and_then(|field| field.record.as_ref());
    if let (Some(schema), Some(_), true) = (record, after.as_object(), before.is_object() || before.is_null()) {
        let (none, after) = (Record::new(), after.as_object());
        let (before, after) = (before.as_object(), after.unwrap_or(&none));
        let names: BTreeSet<&String> = before.into_iter().flat_map(|map| map.keys()).chain(after.keys()).collect();
        for name in names {
            let field = schema.field(name);
            let old = match before {
                Some(before) => of(before, name),
                None => default_of(field),
            };
            compare(found, field, format!("{path}.{name}"), old, of(after, name));
        }
        return;
    }
    if !same(field, before, after) {
        let secret = is_secret(field, &path);
        found.push(Change { field: path, before: before.clone(), after: after.clone(), secret });
    }
}

fn same(field: Option<&Field>, before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Array(old), Value::Array(new)) if field.is_some_and(|field| field.kind == FieldType::Set) => {
            let sorted = |list: &[Value]| {
                let mut texts: Vec<String> = list.iter().map(Value::to_string).collect();
                texts.sort_unstable();
                texts
            };
            sorted(old) == sorted(new)
        }
        (Value::Array(old), Value::Array(new)) => {
            let elements = field.and_then(|field| field.elements.as_deref());
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same(elements, old, new))
        }
        (Value::Object(old), Value::Object(new)) => {
            let member = |name: &str| match field {
                Some(Field { record: Some(schema), .. }) => schema.field(name),
                Some(field) => field.values.as_deref(),
                None => None,
            };
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            names.into_iter().all(|name| same(member(name), of(old, name), of(new, name)))
        }
        (Value::Number(old), Value::Number(new)) => old == new || old.as_f64() == new.as_f64(),
        _ => before == after,
    }
}

//! Which index entries a record has. Pure: schema and record in, keys out.

use crate::keys;
use gwctl_entities::{EntitySchema, Map, Record, Value};
use std::collections::BTreeSet;

/// Name of the pseudo field under which cache keys are indexed.
pub(crate) const CACHE_KEY: &str = "cache_key";

/// Lists of ids that are no foreign keys in the schema but keep what they list from being deleted:
/// entity, path of the list, the entity listed.
pub(crate) const LISTED: &[(&str, &[&str], &str)] = &[
    ("services", &["ca_certificates"], "ca_certificates"),
    ("plugins", &["config", "ca_certificates"], "ca_certificates"),
];

/// The index entries of one record.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// In the order in which collisions are reported: unique fields, then the cache key.
    pub(crate) unique: Vec<Unique>,
    pub(crate) references: BTreeSet<Vec<u8>>,
    pub(crate) tags: BTreeSet<Vec<u8>>,
    pub(crate) expiry: Option<Vec<u8>>,
}

/// A value that may occur once.
#[derive(Debug)]
pub(crate) struct Unique {
    pub(crate) key: Vec<u8>,
    /// The fields that collide when it occurs twice.
    fields: Vec<String>,
}

impl Unique {
    /// Fields and values of this record for the refusal, nulls included.
    pub(crate) fn fields_of(&self, record: &Record) -> Map<String, Value> {
        self.fields.iter().map(|field| (field.clone(), record.get(field).cloned().unwrap_or(Value::Null))).collect()
    }
}

impl Entries {
    /// The entries of this record.
    pub(crate) fn of(schema: &EntitySchema, id: &str, record: &Record) -> Entries {
        let entity = schema.name.as_str();
        Entries {
            unique: unique(schema, record),
            references: references(schema, id, record),
            tags: texts(record.get("tags")).map(|tag| keys::key(&[entity, tag, id])).collect(),
            expiry: expires_at(schema, record).map(|millis| expiry_key(millis, entity, id)),
        }
    }

    /// Keys of the unique index.
    pub(crate) fn unique_keys(&self) -> BTreeSet<Vec<u8>> {
        self.unique.iter().map(|unique| unique.key.clone()).collect()
    }
}

fn unique(schema: &EntitySchema, record: &Record) -> Vec<Unique> {
    let entity = schema.name.as_str();
    let mut found: Vec<Unique> = schema
        .unique_fields
        .iter()
        .filter_map(|unique| {
            let value = index_text(record.get(&unique.field)?)?;
            Some(Unique { key: keys::key(&[entity, &unique.field, &value]), fields: vec![unique.field.clone()] })
        })
        .collect();
    // A cache key of one field is that field's own uniqueness, by which any number of records may have null.
    if let Some(text) = schema.cache_key_of(record).filter(|_| schema.cache_key.len() > 1) {
        found.push(Unique { key: keys::key(&[entity, CACHE_KEY, &text]), fields: schema.cache_key.clone() });
    }
    found
}

fn references(schema: &EntitySchema, id: &str, record: &Record) -> BTreeSet<Vec<u8>> {
    let entity = schema.name.as_str();
    let foreign = schema.foreign_keys.iter().filter_map(|foreign| {
        let parent = schema.foreign_id(record, &foreign.field)?;
        Some(keys::key(&[entity, &foreign.field, parent, id]))
    });
    let named = lookup_field(schema).into_iter().filter_map(|field| {
        let value = index_text(record.get(field)?)?;
        Some(keys::key(&[entity, field, &value, id]))
    });
    let listed = LISTED.iter().filter(|(lister, ..)| *lister == entity).flat_map(|(_, path, listed)| {
        let mut value = path.first().and_then(|field| record.get(*field));
        for step in path.iter().skip(1) {
            value = value.and_then(|value| value.get(step));
        }
        texts(value).map(|other| keys::key(&[entity, listed, other, id])).collect::<Vec<_>>()
    });
    foreign.chain(named).chain(listed).collect()
}

/// The endpoint key where it is not unique by itself (`target` of targets): found through the references.
pub(crate) fn lookup_field(schema: &EntitySchema) -> Option<&str> {
    let field = schema.endpoint_key.as_deref()?;
    let unique = schema.unique_fields.iter().any(|unique| unique.field == field);
    (!unique && schema.primary_key != [field]).then_some(field)
}

/// The text under which a value is indexed; None for null.
fn index_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Object(foreign) => match foreign.get("id") {
            Some(Value::String(id)) => Some(id.clone()),
            _ => Some(value.to_string()),
        },
        other => Some(other.to_string()),
    }
}

fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Unix millisecond from which on the record is invisible; None: never.
pub(crate) fn expires_at(schema: &EntitySchema, record: &Record) -> Option<u64> {
    if !schema.ttl {
        return None;
    }
    let ttl = record.get("ttl")?;
    match ttl.as_u64() {
        Some(seconds) => Some(seconds.saturating_mul(1000)),
        // A fraction, or below zero: the cast saturates, so anything before 1970 is expired.
        None => ttl.as_f64().map(|seconds| (seconds * 1000.0) as u64),
    }
}

/// Key of the expiry table.
fn expiry_key(millis: u64, entity: &str, id: &str) -> Vec<u8> {
    let mut key = millis.to_be_bytes().to_vec();
    key.extend(keys::key(&[entity, id]));
    key
}

//! Ids of stored records by what identifies them.

use super::Table;
use gwctl_entities::{EntitySchema, Record, Registry, Value};
use std::collections::BTreeMap;

/// Stored records, to keep the ids of those a document names without id.
#[derive(Debug, Clone, Default)]
pub struct Existing {
    ids: BTreeMap<String, String>,
}

impl Existing {
    /// Indexes stored records by unique fields (names), by place (cache key) and certificates by their text.
    pub fn new(registry: &Registry, tables: &[Table]) -> Existing {
        let mut ids = BTreeMap::new();
        for table in tables {
            let Some(schema) = registry.entity(&table.entity) else { continue };
            for record in &table.records {
                let Some(id) = schema.id_of(record) else { continue };
                ids.insert(format!("{} id {id}", schema.name), id.clone());
                for key in keys(schema, record) {
                    ids.entry(key).or_insert_with(|| id.clone());
                }
            }
        }
        Existing { ids }
    }

    /// The id of the stored record with the same key.
    pub(crate) fn find(&self, schema: &EntitySchema, record: &Record) -> Option<&str> {
        keys(schema, record).iter().find_map(|key| self.ids.get(key)).map(String::as_str)
    }

    /// The id of the stored record a reference names by endpoint key or id.
    pub(crate) fn refer(&self, schema: &EntitySchema, text: &str) -> Option<&str> {
        let named = schema.endpoint_key.as_ref().and_then(|key| self.ids.get(&format!("{} {key} {text}", schema.name)));
        named.or_else(|| self.ids.get(&format!("{} id {text}", schema.name))).map(String::as_str)
    }
}

/// What identifies a record besides its id, the strongest first.
fn keys(schema: &EntitySchema, record: &Record) -> Vec<String> {
    let text = |field: &str| record.get(field).and_then(Value::as_str);
    let endpoint = schema.endpoint_key.as_deref();
    let unique = schema.unique_fields.iter().map(|unique| unique.field.as_str());
    let named =
        unique.clone().filter(|field| Some(*field) == endpoint).chain(unique.filter(|field| Some(*field) != endpoint));
    let mut keys: Vec<String> =
        named.filter_map(|field| Some(format!("{} {field} {}", schema.name, text(field)?))).collect();
    keys.extend(schema.cache_key_of(record));
    if schema.name == "certificates"
        && let (Some(cert), Some(key)) = (text("cert"), text("key"))
    {
        keys.push(format!("certificates {cert} {key}"));
    }
    keys
}

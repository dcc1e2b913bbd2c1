//! Ids of stored records by what identifies them.

use super::Table;
use gwctl_entities::{EntitySchema, Record, Registry, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Stored records, to keep the ids of those a document names without id.
#[derive(Debug, Clone, Default)]
pub struct Existing {
    /// By entity.
    entities: BTreeMap<String, Known>,
}

/// The keys of one entity.
#[derive(Debug, Clone, Default)]
struct Known {
    ids: BTreeSet<String>,
    /// Per unique field: value to id.
    fields: BTreeMap<String, BTreeMap<String, String>>,
    /// Where the record is unique by several fields, or a certificate by its text.
    places: BTreeMap<String, String>,
}

impl Existing {
    /// Indexes stored records by unique fields (names), by place (cache key) and certificates by their text.
    pub fn new(registry: &Registry, tables: &[Table]) -> Existing {
        let mut existing = Existing::default();
        for table in tables {
            let Some(schema) = registry.entity(&table.entity) else { continue };
            let known = existing.entities.entry(table.entity.clone()).or_default();
            for record in &table.records {
                let Some(id) = schema.id_of(record) else { continue };
                for (field, value) in unique_values(schema, record) {
                    if !known.fields.contains_key(field) {
                        known.fields.insert(field.to_owned(), BTreeMap::new());
                    }
                    if let Some(ids) = known.fields.get_mut(field) {
                        ids.entry(value.to_owned()).or_insert_with(|| id.clone());
                    }
                }
                if let Some(place) = place(schema, record) {
                    known.places.entry(place).or_insert_with(|| id.clone());
                }
                known.ids.insert(id);
            }
        }
        existing
    }

    /// The id of the stored record with the same key: the endpoint key first, then other unique fields, then the
    /// place.
    pub(crate) fn find(&self, schema: &EntitySchema, record: &Record) -> Option<&str> {
        let known = self.entities.get(&schema.name)?;
        let by_field = unique_values(schema, record).find_map(|(field, value)| known.fields.get(field)?.get(value));
        let found = match by_field {
            Some(id) => Some(id),
            None => known.places.get(&place(schema, record)?),
        };
        found.map(String::as_str)
    }

    /// The id of the stored record a reference names by endpoint key or id.
    pub(crate) fn refer(&self, schema: &EntitySchema, text: &str) -> Option<&str> {
        let known = self.entities.get(&schema.name)?;
        let named = schema.endpoint_key.as_ref().and_then(|key| known.fields.get(key)?.get(text));
        named.or_else(|| known.ids.get(text)).map(String::as_str)
    }
}

/// Unique fields and their values, the endpoint key first.
fn unique_values<'a>(schema: &'a EntitySchema, record: &'a Record) -> impl Iterator<Item = (&'a str, &'a str)> {
    let endpoint = schema.endpoint_key.as_deref();
    let unique = schema.unique_fields.iter().map(|unique| unique.field.as_str());
    let first = unique.clone().filter(move |field| Some(*field) == endpoint);
    let fields = first.chain(unique.filter(move |field| Some(*field) != endpoint));
    fields.filter_map(|field| Some((field, record.get(field)?.as_str()?)))
}

fn place(schema: &EntitySchema, record: &Record) -> Option<String> {
    let text = |field: &str| record.get(field).and_then(Value::as_str);
    match schema.name.as_str() {
        "certificates" => Some(format!("{} {}", text("cert")?, text("key")?)),
        _ => schema.cache_key_of(record),
    }
}

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

impl Known {
    fn new(schema: &EntitySchema, records: &[Record]) -> Known {
        // Maps made of lists are sorted once; of equal keys they keep the last, so the first record comes last.
        let mut fields: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
        let (mut ids, mut places) = (Vec::with_capacity(records.len()), Vec::new());
        for record in records.iter().rev() {
            let Some(id) = schema.id_of(record) else { continue };
            for (field, value) in unique_values(schema, record) {
                fields.entry(field).or_default().push((value.to_owned(), id.clone()));
            }
            places.extend(place(schema, record).map(|place| (place, id.clone())));
            ids.push(id);
        }
        let fields = fields.into_iter().map(|(field, values)| (field.to_owned(), values.into_iter().collect()));
        Known { ids: ids.into_iter().collect(), fields: fields.collect(), places: places.into_iter().collect() }
    }
}

impl Existing {
    /// Indexes stored records by unique fields (names), by place (cache key) and certificates by their text.
    pub fn new(registry: &Registry, tables: &[Table]) -> Existing {
        let entities = tables.iter().filter_map(|table| {
            let schema = registry.entity(&table.entity)?;
            Some((table.entity.clone(), Known::new(schema, &table.records)))
        });
        Existing { entities: entities.collect() }
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

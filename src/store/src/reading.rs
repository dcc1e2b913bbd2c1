//! Reading records through any transaction: the store's snapshots, its write batches and the data plane's cache.

use crate::contract::{Place, Rows as Chunk};
use crate::fault::{Fault, misuse};
use crate::index::{self, CACHE_KEY};
use crate::keys;
use crate::tables::{Table, Tables, decode, text};
use gwctl_entities::{EntitySchema, Page, PageQuery, Record, Registry, TagFilter};
use heed::RoTxn;

/// The records as one transaction sees them at one moment.
#[derive(Clone, Copy)]
pub(crate) struct View<'t> {
    pub(crate) txn: &'t RoTxn<'t>,
    pub(crate) tables: &'t Tables,
    pub(crate) registry: &'t Registry,
    /// Unix time in milliseconds by which rows expire.
    pub(crate) now: u64,
}

/// The schema of an entity.
pub(crate) fn schema_of<'r>(registry: &'r Registry, entity: &str) -> Result<&'r EntitySchema, Fault> {
    registry.entity(entity).ok_or_else(|| misuse(format!("no schema for entity {entity}")))
}

impl<'t> View<'t> {
    /// The visible record with this id.
    pub(crate) fn get(&self, entity: &str, id: &str) -> Result<Option<Record>, Fault> {
        let schema = schema_of(self.registry, entity)?;
        Ok(self.tables.record(self.txn, entity, id)?.filter(|record| self.visible(schema, record)))
    }

    /// Whether a visible record with this id exists; cheaper than [`View::get`].
    pub(crate) fn exists(&self, entity: &str, id: &str) -> Result<bool, Fault> {
        if schema_of(self.registry, entity)?.ttl {
            return Ok(self.get(entity, id)?.is_some());
        }
        Ok(self.tables.records.get(self.txn, &keys::key(&[entity, id]))?.is_some())
    }

    /// Whether the record has not expired.
    pub(crate) fn visible(&self, schema: &EntitySchema, record: &Record) -> bool {
        index::expires_at(schema, record).is_none_or(|millis| self.now < millis)
    }

    /// The visible record with this value in a unique field, endpoint key or cache key.
    pub(crate) fn get_by(&self, entity: &str, field: &str, value: &str) -> Result<Option<Record>, Fault> {
        let schema = schema_of(self.registry, entity)?;
        if let (CACHE_KEY, [only]) = (field, schema.cache_key.as_slice()) {
            let value = value.strip_prefix(entity).and_then(|rest| rest.strip_prefix(':'));
            return value.map_or(Ok(None), |value| self.get_by(entity, only, value));
        }
        let unique = field == CACHE_KEY || schema.unique_fields.iter().any(|unique| unique.field == field);
        if unique {
            let owner = self.tables.unique.get(self.txn, &keys::key(&[entity, field, value]))?;
            return match owner {
                Some(id) => self.get(entity, text(id)?),
                None => Ok(None),
            };
        }
        if schema.primary_key == [field] {
            return self.get(entity, value);
        }
        if index::lookup_field(schema) != Some(field) {
            return Err(misuse(format!("{entity} cannot be looked up by {field}")));
        }
        let prefix = keys::prefix(&[entity, field, value]);
        for entry in self.tables.references.prefix_iter(self.txn, &prefix)? {
            let found = self.get(entity, text(entry?.1)?)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Ids, expired rows included, of the records whose field refers to a parent.
    pub(crate) fn children(&self, entity: &str, field: &str, parent: &str) -> Result<Vec<String>, Fault> {
        let prefix = keys::prefix(&[entity, field, parent]);
        let mut ids = Vec::new();
        for entry in self.tables.references.prefix_iter(self.txn, &prefix)? {
            ids.push(text(entry?.1)?.to_owned());
        }
        Ok(ids)
    }

    /// Visits the records of an entity as they are stored, expired ones included.
    pub(crate) fn each(&self, entity: &str, visit: &mut dyn FnMut(&[u8])) -> Result<(), Fault> {
        for entry in self.tables.records.prefix_iter(self.txn, &keys::prefix(&[entity]))? {
            visit(entry?.1);
        }
        Ok(())
    }

    /// One page; see [`gwctl_entities::Read::page`]. Costs a seek per row and condition, whatever the table's size.
    pub(crate) fn page(&self, entity: &str, query: &PageQuery) -> Result<Page, Fault> {
        let schema = schema_of(self.registry, entity)?;
        let mut rows = Rows { view: self, schema, wanted: query.size.saturating_add(1), rows: Vec::new() };
        let from = query.from.as_deref().map(keys::part).unwrap_or_default();
        let conditions = self.conditions(schema, query)?;
        if conditions.is_empty() {
            rows.all(&from)?;
        } else {
            rows.meeting(&conditions, from)?;
        }
        let mut rows = rows.rows;
        let next = if rows.len() > query.size { rows.pop().and_then(|row| schema.id_of(&row)) } else { None };
        Ok(Page { rows, next })
    }

    fn conditions(&self, schema: &EntitySchema, query: &PageQuery) -> Result<Vec<Condition<'t>>, Fault> {
        let entity = schema.name.as_str();
        let mut conditions = Vec::new();
        if let Some((field, parent)) = &query.parent {
            if !schema.foreign_keys.iter().any(|foreign| foreign.field == *field) {
                return Err(misuse(format!("{entity} has no foreign field {field}")));
            }
            let prefixes = vec![keys::prefix(&[entity, field, parent])];
            conditions.push(Condition { table: &self.tables.references, prefixes });
        }
        let by_tag = |tags: &[String]| Condition {
            table: &self.tables.tags,
            prefixes: tags.iter().map(|tag| keys::prefix(&[entity, tag])).collect(),
        };
        match &query.tags {
            Some(TagFilter::All(tags)) => conditions.extend(tags.iter().map(|tag| by_tag(std::slice::from_ref(tag)))),
            Some(TagFilter::Any(tags)) => conditions.push(by_tag(tags)),
            None => {}
        }
        Ok(conditions)
    }
}

/// Rows that have an index entry below one of the prefixes. In every table the id ends the key, in the same form.
struct Condition<'t> {
    table: &'t Table,
    prefixes: Vec<Vec<u8>>,
}

impl Condition<'_> {
    /// The first id, as it stands in keys, at or after `from` that meets the condition.
    fn first_from(&self, txn: &RoTxn<'_>, from: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        let mut first: Option<Vec<u8>> = None;
        for prefix in &self.prefixes {
            let start = [prefix.as_slice(), from].concat();
            let Some((key, _)) = self.table.get_greater_than_or_equal_to(txn, &start)? else { continue };
            let Some(id) = key.strip_prefix(prefix.as_slice()) else { continue };
            if first.as_deref().is_none_or(|first| id < first) {
                first = Some(id.to_vec());
            }
        }
        Ok(first)
    }
}

/// See [`crate::Store::rows_after`].
pub(crate) fn exported_rows(
    txn: &RoTxn<'_>,
    tables: &Tables,
    registry: &Registry,
    after: Option<&Place>,
    bytes: usize,
) -> Result<Chunk, Fault> {
    let (mut chunk, mut size) = (Chunk::default(), 0);
    let passed = |schema: &&EntitySchema| after.is_some_and(|place| schema.name != place.entity);
    for schema in registry.entities().skip_while(passed).filter(|schema| schema.db_export) {
        let prefix = keys::prefix(&[&schema.name]);
        let start = match after.filter(|place| place.entity == schema.name) {
            Some(place) => keys::key(&[&place.entity, &place.id]),
            None => prefix.clone(),
        };
        let range = (std::ops::Bound::Excluded(start.as_slice()), std::ops::Bound::Unbounded);
        for entry in tables.records.range(txn, &range)? {
            let (key, value) = entry?;
            if !key.starts_with(&prefix) {
                break;
            }
            if size >= bytes {
                return Ok(chunk);
            }
            let record: Record = decode(&schema.name, value)?;
            let id = schema.id_of(&record).unwrap_or_default();
            size += value.len();
            chunk.rows.push((Place { entity: schema.name.clone(), id }, record));
        }
    }
    chunk.last = true;
    Ok(chunk)
}

/// Gathers the rows of a page.
struct Rows<'v, 't> {
    view: &'v View<'t>,
    schema: &'v EntitySchema,
    wanted: usize,
    rows: Vec<Record>,
}

impl Rows<'_, '_> {
    fn all(&mut self, from: &[u8]) -> Result<(), Fault> {
        let prefix = keys::prefix(&[&self.schema.name]);
        let start = [prefix.as_slice(), from].concat();
        let range = (std::ops::Bound::Included(start.as_slice()), std::ops::Bound::Unbounded);
        for entry in self.view.tables.records.range(self.view.txn, &range)? {
            let (key, bytes) = entry?;
            if !key.starts_with(&prefix) || !self.take(bytes)? {
                break;
            }
        }
        Ok(())
    }

    /// Leaps from condition to condition until all agree on an id.
    fn meeting(&mut self, conditions: &[Condition<'_>], from: Vec<u8>) -> Result<(), Fault> {
        let prefix = keys::prefix(&[&self.schema.name]);
        let mut candidate = from;
        'rows: loop {
            let mut agreed = 0;
            while agreed < conditions.len() {
                for condition in conditions {
                    let Some(found) = condition.first_from(self.view.txn, &candidate)? else { return Ok(()) };
                    agreed = if found == candidate { agreed + 1 } else { 1 };
                    candidate = found;
                    if agreed >= conditions.len() {
                        break;
                    }
                }
            }
            let key = [prefix.as_slice(), &candidate].concat();
            let Some(bytes) = self.view.tables.records.get(self.view.txn, &key)? else {
                return Err(Fault::Damaged(format!("index of {} names a record that is not there", self.schema.name)));
            };
            if !self.take(bytes)? {
                break 'rows;
            }
            // The least key after this one.
            candidate.push(0);
        }
        Ok(())
    }

    /// Takes a row if visible. False once enough are there.
    fn take(&mut self, bytes: &[u8]) -> Result<bool, Fault> {
        let record: Record = decode(&self.schema.name, bytes)?;
        if self.view.visible(self.schema, &record) {
            self.rows.push(record);
        }
        Ok(self.rows.len() < self.wanted)
    }
}

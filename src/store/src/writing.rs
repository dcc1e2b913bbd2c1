//! A write batch: one transaction, its rules and its deltas.

use crate::fault::{Fault, misuse};
use crate::index::{Entries, LISTED};
use crate::keys;
use crate::log::Changed;
use crate::reading::{View, schema_of};
use crate::tables::{Tables, decode, place_of};
use gwctl_entities::{EntityError, EntitySchema, Map, OnDelete, Page, PageQuery, Read, Record, Registry, Value, Write};
use heed::RwTxn;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What the batch began with, as stored, by entity and id. What it has now lies in the tables, so a batch of any size holds
/// little more than the names of what it touched.
type Touched<'s> = BTreeMap<(&'s str, Box<str>), Option<Box<[u8]>>>;

/// An open batch. Each call checks all rules before it changes anything, so a refused call leaves no trace.
pub(crate) struct Batch<'s> {
    pub(crate) txn: RwTxn<'s>,
    pub(crate) tables: &'s Tables,
    registry: &'s Registry,
    folder: &'s Path,
    now: u64,
    version: u64,
    touched: Touched<'s>,
    /// The map was too small: nothing more is written, the store grows it and starts over.
    pub(crate) outgrown: bool,
}

impl<'s> Batch<'s> {
    pub(crate) fn new(
        txn: RwTxn<'s>,
        tables: &'s Tables,
        registry: &'s Registry,
        folder: &'s Path,
        now: u64,
        version: u64,
    ) -> Batch<'s> {
        Batch { txn, tables, registry, folder, now, version, touched: Touched::new(), outgrown: false }
    }

    fn view(&self) -> View<'_> {
        View { txn: &self.txn, tables: self.tables, registry: self.registry, now: self.now }
    }

    /// Empties the store; what is not put back by the end of the batch counts as deleted.
    pub(crate) fn clear(&mut self) -> Result<(), Fault> {
        for schema in self.registry.entities() {
            // Expired rows too: their deletion is a change like any other.
            for entry in self.tables.records.prefix_iter(&self.txn, &keys::prefix(&[&schema.name]))? {
                let bytes = entry?.1;
                let id = id_of(schema, &decode(&schema.name, bytes)?)?;
                self.touched.entry((&schema.name, id.into())).or_insert_with(|| Some(bytes.into()));
            }
        }
        Ok(self.tables.clear_records(&mut self.txn)?)
    }

    /// Deletes rows that have expired, at most `limit`.
    pub(crate) fn purge(&mut self, limit: usize) -> Result<(), Fault> {
        let mut expired = Vec::new();
        for entry in self.tables.expiry.iter(&self.txn)? {
            let (key, place) = entry?;
            let millis = key.first_chunk().copied().map(u64::from_be_bytes);
            if expired.len() >= limit || millis.is_none_or(|millis| self.now < millis) {
                break;
            }
            expired.push(place_of(place)?);
        }
        for (entity, id) in expired {
            self.remove(&entity, &id)?;
        }
        Ok(())
    }

    fn try_insert(&mut self, entity: &str, record: Record) -> Result<(), Fault> {
        let schema = schema_of(self.registry, entity)?;
        let id = id_of(schema, &record)?;
        if self.view().exists(entity, &id)? {
            return Err(EntityError::PrimaryKeyViolation { key: primary_key(schema, &record) }.into());
        }
        let expired = self.check(schema, &id, &record, None)?;
        self.remove_all(expired)?;
        if schema.ttl {
            // An expired row with this id may still lie there.
            self.remove(entity, &id)?;
        }
        self.put(schema, &id, None, Some(&record))
    }

    fn try_replace(&mut self, entity: &str, record: Record) -> Result<(), Fault> {
        let schema = schema_of(self.registry, entity)?;
        let id = id_of(schema, &record)?;
        let Some(old) = self.view().get(entity, &id)? else {
            return Err(EntityError::NotFound { key: primary_key(schema, &record), primary: true }.into());
        };
        if old == record {
            return Ok(());
        }
        let expired = self.check(schema, &id, &record, Some(&old))?;
        self.remove_all(expired)?;
        self.put(schema, &id, Some(&old), Some(&record))
    }

    fn try_delete(&mut self, entity: &str, id: &str) -> Result<bool, Fault> {
        if !self.view().exists(entity, id)? {
            return Ok(false);
        }
        self.remove(entity, id)?;
        Ok(true)
    }

    /// Uniqueness, then foreign keys. Gives expired rows that hold a value this record needs.
    fn check(
        &self,
        schema: &EntitySchema,
        id: &str,
        record: &Record,
        old: Option<&Record>,
    ) -> Result<Vec<(String, String)>, Fault> {
        let view = self.view();
        let mut expired = Vec::new();
        for unique in Entries::of(schema, id, record).unique {
            let Some(owner) = self.tables.unique.get(&self.txn, &unique.key)? else { continue };
            let owner = crate::tables::text(owner)?;
            if owner == id {
                continue;
            }
            if view.exists(&schema.name, owner)? {
                return Err(EntityError::UniqueViolation { fields: unique.fields_of(record) }.into());
            }
            expired.push((schema.name.clone(), owner.to_owned()));
        }
        for foreign in &schema.foreign_keys {
            let Some(parent) = schema.foreign_id(record, &foreign.field) else { continue };
            let unchanged = old.is_some_and(|old| schema.foreign_id(old, &foreign.field) == Some(parent));
            if !unchanged && !view.exists(&foreign.references, parent)? {
                let key = Map::from_iter([("id".to_owned(), Value::String(parent.to_owned()))]);
                let (field, entity) = (foreign.field.clone(), foreign.references.clone());
                return Err(EntityError::ForeignKeyMissing { field, entity, key }.into());
            }
        }
        Ok(expired)
    }

    /// Removes a row, expired or not, and what goes with it; nothing when there is none.
    fn remove(&mut self, entity: &str, id: &str) -> Result<(), Fault> {
        let doomed = self.doomed_with(entity, id)?;
        self.remove_all(doomed)
    }

    fn remove_all(&mut self, doomed: Vec<(String, String)>) -> Result<(), Fault> {
        for (entity, id) in doomed {
            if let Some(old) = self.tables.record(&self.txn, &entity, &id)? {
                self.put(schema_of(self.registry, &entity)?, &id, Some(&old), None)?;
            }
        }
        Ok(())
    }

    /// The rows that go when this one goes, itself first. Refuses when a rule keeps one of them.
    fn doomed_with(&self, entity: &str, id: &str) -> Result<Vec<(String, String)>, Fault> {
        let view = self.view();
        let first = (entity.to_owned(), id.to_owned());
        let mut seen = BTreeSet::from([first.clone()]);
        let mut doomed = vec![first];
        let mut next = 0;
        while let Some((entity, id)) = doomed.get(next).cloned() {
            next += 1;
            self.refuse_listed(&view, &entity, &id)?;
            for (child, foreign) in self.registry.referenced_by(&entity) {
                let keeps = foreign.on_delete == OnDelete::Restrict && !goes_first(&entity, child);
                for child_id in view.children(child, &foreign.field, &id)? {
                    let place = (child.clone(), child_id);
                    if seen.contains(&place) {
                        continue;
                    }
                    if keeps && view.exists(child, &place.1)? {
                        return Err(EntityError::ForeignKeyRestrict { entity, by: child.clone() }.into());
                    }
                    seen.insert(place.clone());
                    doomed.push(place);
                }
            }
        }
        Ok(doomed)
    }

    /// A CA certificate that others list stays. The texts are the halves of the Admin API's message.
    fn refuse_listed(&self, view: &View<'_>, entity: &str, id: &str) -> Result<(), Fault> {
        for (lister, _, listed) in LISTED.iter().filter(|(_, _, listed)| *listed == entity) {
            if self.registry.entity(lister).is_none() {
                continue;
            }
            if let Some(other) = view.children(lister, listed, id)?.first() {
                let entity = format!("{} {id}", listed.trim_end_matches('s').replace('_', " "));
                let by = format!("{lister} (id = {other})");
                return Err(EntityError::ReferencedByOthers { entity, by }.into());
            }
        }
        Ok(())
    }

    fn put(
        &mut self,
        schema: &'s EntitySchema,
        id: &str,
        old: Option<&Record>,
        new: Option<&Record>,
    ) -> Result<(), Fault> {
        if let Entry::Vacant(untouched) = self.touched.entry((&schema.name, id.into())) {
            let stored = match old {
                Some(_) => self.tables.records.get(&self.txn, &keys::key(&[&schema.name, id]))?,
                None => None,
            };
            untouched.insert(stored.map(Box::from));
        }
        self.tables.put(&mut self.txn, schema, id, (old, new), None)
    }

    /// What the batch changed in sum, in the order of [`crate::Change`].
    pub(crate) fn changed(&mut self, ranks: &BTreeMap<String, usize>) -> Result<Vec<Changed<'s>>, Fault> {
        let mut changed = Vec::new();
        for ((entity, id), old) in std::mem::take(&mut self.touched) {
            let new = self.tables.records.get(&self.txn, &keys::key(&[entity, &id]))?;
            if new != old.as_deref() {
                changed.push(Changed { entity, id, old, deleted: new.is_none() });
            }
        }
        let rank = |changed: &Changed<'_>| ranks.get(changed.entity).copied().unwrap_or(usize::MAX);
        // Stable, so ids stay ascending within an entity.
        changed.sort_by_key(|changed| match changed.deleted {
            true => (0, usize::MAX - rank(changed)),
            false => (1, rank(changed)),
        });
        Ok(changed)
    }

    /// Runs one call unless the batch has already failed, and notes when the map is too small.
    pub(crate) fn guarded<T>(&mut self, call: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, EntityError> {
        if self.outgrown {
            return Err(outgrown(self.folder));
        }
        call(self).map_err(|fault| {
            self.outgrown |= fault.is_outgrown();
            EntityError::from(fault.at(self.folder))
        })
    }
}

/// What `work` sees once the map is too small; the store retries, so it reaches nobody else.
fn outgrown(folder: &Path) -> EntityError {
    EntityError::Database(format!("the map of the store in {} must grow first", folder.display()))
}

/// Kong deletes the SNIs of a certificate with it, although their schema says restrict.
fn goes_first(parent: &str, child: &str) -> bool {
    parent == "certificates" && child == "snis"
}

fn id_of(schema: &EntitySchema, record: &Record) -> Result<String, Fault> {
    schema.id_of(record).ok_or_else(|| misuse(format!("record of {} without primary key", schema.name)))
}

fn primary_key(schema: &EntitySchema, record: &Record) -> Map<String, Value> {
    schema.primary_key.iter().map(|field| (field.clone(), record.get(field).cloned().unwrap_or(Value::Null))).collect()
}

impl Read for Batch<'_> {
    fn version(&self) -> u64 {
        self.version
    }

    fn get(&self, entity: &str, id: &str) -> Result<Option<Record>, EntityError> {
        self.view().get(entity, id).map_err(|fault| fault.at(self.folder).into())
    }

    fn get_by(&self, entity: &str, field: &str, value: &str) -> Result<Option<Record>, EntityError> {
        self.view().get_by(entity, field, value).map_err(|fault| fault.at(self.folder).into())
    }

    fn page(&self, entity: &str, query: &PageQuery) -> Result<Page, EntityError> {
        self.view().page(entity, query).map_err(|fault| fault.at(self.folder).into())
    }
}

impl Write for Batch<'_> {
    fn insert(&mut self, entity: &str, record: Record) -> Result<(), EntityError> {
        self.guarded(|batch| batch.try_insert(entity, record))
    }

    fn replace(&mut self, entity: &str, record: Record) -> Result<(), EntityError> {
        self.guarded(|batch| batch.try_replace(entity, record))
    }

    fn delete(&mut self, entity: &str, id: &str) -> Result<bool, EntityError> {
        self.guarded(|batch| batch.try_delete(entity, id))
    }

    fn as_read(&self) -> &dyn Read {
        self
    }
}

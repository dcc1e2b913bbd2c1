//! From rows of protocol v2 to the configuration in force: verify, build, store, swap, like a whole payload. A batch
//! with one bad row is refused as a whole.

use crate::apply::{Configured, not_stored};
use gwctl_entities::{EntityError, EntitySchema, Map, PageQuery, Read, Record, Registry, Value};
use gwctl_store::{CachedConfiguration, Delta, StoreError, SystemFill, unix_millis};
use gwctl_wire::ConfigHash;
use gwctl_wire::v2::dialect::version_of;
use gwctl_wire::v2::dp_link::{Outcome, Standing};
use gwctl_wire::v2::{self, Deltas};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Faults told of one batch.
const FAULTS_SHOWN: usize = 5;

/// Times to live below this are seconds left, as Kong 3.9 sends them with changes; above, the second of expiry.
const LONGEST_REMAINING: f64 = 1e9;

impl Configured {
    /// Applies the rows if the version they build on is in force, or if they replace everything.
    pub(crate) fn apply_deltas(&self, deltas: Deltas, base: u64) -> Outcome {
        let _turn = self.turn();
        let in_force = self.version();
        if !deltas.wipe && in_force != base {
            return Outcome::Refused(format!("the rows build on version {base}, version {in_force} is in force"));
        }
        let Some(version) = deltas.version() else { return Outcome::Refused("no rows".to_owned()) };
        let (began, rows) = (Instant::now(), deltas.deltas.len());
        let (wipe, hash) = (deltas.wipe, deltas.dialect.hash(version));
        let applied = if wipe { self.replace(deltas, &hash) } else { self.change_rows(deltas, &hash) };
        if let Err(outcome) = applied {
            return outcome;
        }
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(version, rows, wipe, took_ms, "changes applied");
        // Whoever sees the hash finds its line in the log.
        self.set_hash(hash);
        Outcome::Applied(version)
    }

    /// What is in force, for the control plane of a new connection.
    pub(crate) fn standing(&self) -> Standing {
        let cluster = self.cache.read().and_then(|view| view.get("parameters", "cluster_id"));
        let cluster_id = match cluster {
            Ok(row) => row.and_then(|row| row.get("value").and_then(Value::as_str).map(str::to_owned)),
            Err(error) => {
                tracing::warn!(%error, "cannot read of which cluster the cached configuration is");
                None
            }
        };
        Standing { version: self.version(), cluster_id }
    }

    /// The version in force; 0 when there is none, or a configuration of protocol v1.
    pub(crate) fn version(&self) -> u64 {
        self.hash().map_or(0, |hash| version_of(hash.as_str()))
    }

    /// The rows are everything: verified like a payload of protocol v1.
    fn replace(&self, deltas: Deltas, hash: &ConfigHash) -> Result<(), Outcome> {
        let loaded = table(&self.registry, deltas).and_then(|table| self.verify(Value::Object(table)));
        let tables = loaded.map_err(Outcome::Refused)?.tables;
        let records: BTreeMap<_, _> = tables.into_iter().map(|table| (table.entity, table.records)).collect();
        let prepared = self.gateway.prepare(|entity| records.get(entity).into_iter().flatten());
        let prepared = prepared.map_err(Outcome::Refused)?;
        stored(self.cache.apply(&CachedConfiguration { hash: hash.to_string(), records }))?;
        self.gateway.install(prepared);
        Ok(())
    }

    fn change_rows(&self, deltas: Deltas, hash: &ConfigHash) -> Result<(), Outcome> {
        let batch = Batch::read(&self.registry, deltas).map_err(Outcome::Refused)?;
        {
            let view = self.cache.read().map_err(|error| Outcome::NotStored(error.to_string()))?;
            batch.check_links(&self.registry, &*view).map_err(Outcome::Refused)?;
        }
        let prepared = self.gateway.prepare_changes(&batch.deltas).map_err(Outcome::Refused)?;
        stored(self.cache.apply_deltas(hash.as_str(), &batch.deltas))?;
        self.gateway.install(prepared);
        Ok(())
    }
}

fn stored(outcome: Result<Duration, StoreError>) -> Result<(), Outcome> {
    outcome.map(drop).map_err(|error| not_stored(&error, Outcome::Refused, Outcome::NotStored))
}

/// A full answer as the table that protocol v1 sends.
fn table(registry: &Registry, deltas: Deltas) -> Result<Map<String, Value>, String> {
    let mut table = Map::new();
    let mut faults = Faults::default();
    for delta in deltas.deltas {
        let Some(schema) = registry.entity(&delta.kind) else {
            faults.add(unknown(&delta.kind));
            continue;
        };
        let Some(mut row) = delta.entity else { continue };
        for key in &schema.foreign_keys {
            match row.get_mut(&key.field) {
                Some(Value::String(_)) => faults.add(flat_key(schema, &row, &key.field)),
                Some(Value::Object(parent)) => {
                    let id = parent.remove("id").unwrap_or_default();
                    row.insert(key.field.clone(), id);
                }
                _ => {}
            }
        }
        if let Value::Array(rows) = table.entry(delta.kind).or_insert_with(|| Value::Array(Vec::new())) {
            rows.push(Value::Object(row));
        }
    }
    faults.done()?;
    table.insert("_format_version".to_owned(), "3.0".into());
    table.insert("_transform".to_owned(), false.into());
    Ok(table)
}

/// Ids by entity, unique field and value.
type Holders<'a> = BTreeMap<(&'a str, &'a str, &'a str), &'a str>;

/// What a batch comes to: of several changes of one row the last.
struct Batch {
    deltas: Vec<Delta>,
    /// Places in `deltas` by entity and id.
    places: BTreeMap<(String, String), usize>,
    /// How many rows of each entity it changes.
    counts: BTreeMap<String, usize>,
}

impl Batch {
    fn read(registry: &Registry, deltas: Deltas) -> Result<Self, String> {
        let mut last: BTreeMap<(String, String), v2::Delta> = BTreeMap::new();
        let mut faults = Faults::default();
        for delta in deltas.deltas {
            match registry.entity(&delta.kind).map(|schema| schema.id_of(&delta.pk)) {
                Some(Some(id)) => _ = last.insert((delta.kind.clone(), id), delta),
                Some(None) => faults.add(format!("{}: a change names no row", delta.kind)),
                None => faults.add(unknown(&delta.kind)),
            }
        }
        let mut batch =
            Self { deltas: Vec::with_capacity(last.len()), places: BTreeMap::new(), counts: BTreeMap::new() };
        for ((entity, id), delta) in last {
            let new = match delta.entity.map(|row| received(registry, &entity, row)).transpose() {
                Ok(new) => new,
                Err(fault) => {
                    faults.add(format!("{entity} {id}: {fault}"));
                    continue;
                }
            };
            batch.places.insert((entity.clone(), id.clone()), batch.deltas.len());
            *batch.counts.entry(entity.clone()).or_default() += 1;
            batch.deltas.push(Delta { version: delta.version, entity, id, old: None, new });
        }
        faults.done()?;
        Ok(batch)
    }

    fn get(&self, entity: &str, id: &str) -> Option<&Delta> {
        self.places.get(&(entity.to_owned(), id.to_owned())).and_then(|place| self.deltas.get(*place))
    }

    /// Who has which unique value in the batch: of two rows with the same one the later.
    fn holders<'a>(&'a self, registry: &'a Registry) -> Holders<'a> {
        let mut holders = Holders::new();
        for delta in &self.deltas {
            let (Some(schema), Some(record)) = (registry.entity(&delta.entity), &delta.new) else { continue };
            for unique in &schema.unique_fields {
                if let Some(value) = record.get(&unique.field).and_then(Value::as_str) {
                    holders.insert((&delta.entity, &unique.field, value), &delta.id);
                }
            }
        }
        holders
    }

    /// Every reference leads to a row, no row is left that refers to a deleted one, and no unique value occurs twice.
    fn check_links(&self, registry: &Registry, view: &dyn Read) -> Result<(), String> {
        let (holders, mut faults) = (self.holders(registry), Faults::default());
        for delta in &self.deltas {
            let Some(schema) = registry.entity(&delta.entity) else { continue };
            let checked = match &delta.new {
                Some(record) => self.check_row(schema, delta, record, &holders, view, &mut faults),
                None => self.check_removal(registry, delta, view, &mut faults),
            };
            checked.map_err(|error| error.to_string())?;
        }
        faults.done()
    }

    fn check_row(
        &self,
        schema: &EntitySchema,
        delta: &Delta,
        record: &Record,
        holders: &Holders<'_>,
        view: &dyn Read,
        faults: &mut Faults,
    ) -> Result<(), EntityError> {
        for key in &schema.foreign_keys {
            let Some(parent) = schema.foreign_id(record, &key.field) else { continue };
            let there = match self.get(&key.references, parent) {
                Some(changed) => changed.new.is_some(),
                None => view.get(&key.references, parent)?.is_some(),
            };
            if !there {
                faults.add(format!("{} {}: {} {parent} does not exist", schema.name, delta.id, key.field));
            }
        }
        let other = |field: &str, value: &str| {
            let holder = holders.get(&(schema.name.as_str(), field, value)).filter(|holder| **holder != delta.id);
            holder.map(|holder| (*holder).to_owned())
        };
        for unique in &schema.unique_fields {
            let Some(value) = record.get(&unique.field).and_then(Value::as_str) else { continue };
            let stored = view.get_by(&schema.name, &unique.field, value)?.and_then(|row| schema.id_of(&row));
            // A holder that the batch changes as well is found among the batch's own rows.
            let stored = stored.filter(|holder| self.get(&schema.name, holder).is_none());
            if let Some(holder) = stored.or_else(|| other(unique.field.as_str(), value)) {
                faults.add(format!("{} {}: {} is that of {holder} already", schema.name, delta.id, unique.field));
            }
        }
        Ok(())
    }

    fn check_removal(
        &self,
        registry: &Registry,
        delta: &Delta,
        view: &dyn Read,
        faults: &mut Faults,
    ) -> Result<(), EntityError> {
        for child in registry.entities().filter(|child| child.db_export) {
            for key in child.foreign_keys.iter().filter(|key| key.references == delta.entity) {
                let parent = Some((key.field.clone(), delta.id.clone()));
                // Enough to find a child that the batch leaves out, however many there are.
                let size = self.counts.get(&child.name).unwrap_or(&0) + FAULTS_SHOWN + 1;
                let page = view.page(&child.name, &PageQuery { size, parent, ..PageQuery::default() })?;
                faults.untold |= page.next.is_some();
                for id in page.rows.iter().filter_map(|row| child.id_of(row)) {
                    // A child that the batch changes refers to something else now, or is judged by itself.
                    if self.get(&child.name, &id).is_none() {
                        faults.add(format!("{} {}: {} {id} refers to it still", delta.entity, delta.id, child.name));
                    }
                }
            }
        }
        Ok(())
    }
}

/// A received row in the form it is stored in.
fn received(registry: &Registry, entity: &str, mut row: Record) -> Result<Record, String> {
    let Some(schema) = registry.entity(entity) else { return Err(unknown(entity)) };
    if let Some(key) = schema.foreign_keys.iter().find(|key| row.get(&key.field).is_some_and(Value::is_string)) {
        return Err(flat_key(schema, &row, &key.field));
    }
    if schema.ttl
        && let Some(left) = row.get("ttl").and_then(Value::as_f64).filter(|left| *left < LONGEST_REMAINING)
    {
        row.insert("ttl".to_owned(), Value::from(unix_millis() as f64 / 1000.0 + left));
    }
    registry.import_row(entity, row, &mut SystemFill).map_err(|error| match &error {
        EntityError::SchemaViolation { fields } => Value::Object(fields.clone()).to_string(),
        other => other.to_string(),
    })
}

fn unknown(kind: &str) -> String {
    format!("`{kind}` is no entity this node knows")
}

fn flat_key(schema: &EntitySchema, row: &Record, field: &str) -> String {
    let id = schema.id_of(row).unwrap_or_default();
    format!("{} {id}: {field} is a text where protocol v2 has an object with the id", schema.name)
}

/// The first faults, and how many there are.
#[derive(Default)]
struct Faults {
    shown: Vec<String>,
    count: usize,
    /// There are more than were counted.
    untold: bool,
}

impl Faults {
    fn add(&mut self, fault: String) {
        self.count += 1;
        if self.shown.len() < FAULTS_SHOWN {
            self.shown.push(fault);
        }
    }

    fn done(self) -> Result<(), String> {
        match self.count {
            0 => Ok(()),
            count if count > FAULTS_SHOWN => {
                let least = if self.untold { "at least " } else { "" };
                Err(format!("{}; and {least}{} more", self.shown.join("; "), count - FAULTS_SHOWN))
            }
            _ => Err(self.shown.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests;

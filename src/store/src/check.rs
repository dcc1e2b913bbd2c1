//! Does everything in a store fit together? Reads all of it.

use crate::fault::Fault;
use crate::index::Entries;
use crate::log;
use crate::tables::{Tables, decode, place_text};
use crate::{contract::Changes, keys};
use gwctl_entities::{EntitySchema, Record, Registry};
use heed::RoTxn;
use std::collections::{BTreeMap, BTreeSet};

/// What does not fit, one line each.
pub(crate) fn problems(txn: &RoTxn<'_>, tables: &Tables, registry: &Registry) -> Result<Vec<String>, Fault> {
    let mut problems = Vec::new();
    let expected = expected_indexes(txn, tables, registry, &mut problems)?;
    let named = [
        ("unique", &tables.unique, &expected.unique),
        ("references", &tables.references, &expected.references),
        ("tags", &tables.tags, &expected.tags),
        ("expiry", &tables.expiry, &expected.expiry),
    ];
    for (name, table, expected) in named {
        let mut found = BTreeMap::new();
        for entry in table.iter(txn)? {
            let (key, value) = entry?;
            found.insert(key.to_vec(), value.to_vec());
        }
        for (key, value) in expected {
            match found.get(key) {
                Some(stored) if stored == value => {}
                Some(_) => problems.push(format!("{name}: entry {} leads to another record", shown(key))),
                None => problems.push(format!("{name}: entry {} is missing", shown(key))),
            }
        }
        let stray = found.keys().filter(|key| !expected.contains_key(*key));
        problems.extend(stray.map(|key| format!("{name}: entry {} belongs to no record", shown(key))));
    }
    problems.extend(log_problems(txn, tables)?);
    let (kept, found) = (log::position(txn, tables)?.digest, log::digest_from_scratch(txn, tables, registry)?);
    if log::has_digest(txn, tables, registry)? && kept != found {
        problems.push(format!("digest: {kept} is kept, the records come to {found}"));
    }
    Ok(problems)
}

/// Keys and values the index tables should hold.
#[derive(Default)]
struct Indexes {
    unique: BTreeMap<Vec<u8>, Vec<u8>>,
    references: BTreeMap<Vec<u8>, Vec<u8>>,
    tags: BTreeMap<Vec<u8>, Vec<u8>>,
    expiry: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Indexes {
    fn add(&mut self, schema: &EntitySchema, id: &str, record: &Record) {
        let entries = Entries::of(schema, id, record);
        let pairs = |keys: BTreeSet<Vec<u8>>| keys.into_iter().map(|key| (key, id.as_bytes().to_vec()));
        self.unique.extend(pairs(entries.unique_keys()));
        self.references.extend(pairs(entries.references));
        self.tags.extend(pairs(entries.tags));
        self.expiry.extend(entries.expiry.map(|key| (key, place_text(&schema.name, id))));
    }
}

fn expected_indexes(
    txn: &RoTxn<'_>,
    tables: &Tables,
    registry: &Registry,
    problems: &mut Vec<String>,
) -> Result<Indexes, Fault> {
    let mut expected = Indexes::default();
    for schema in registry.entities() {
        for entry in tables.records.prefix_iter(txn, &keys::prefix(&[&schema.name]))? {
            let (key, bytes) = entry?;
            let record: Record = decode(&schema.name, bytes)?;
            let Some(id) = schema.id_of(&record).filter(|id| keys::key(&[&schema.name, id]) == key) else {
                problems.push(format!("records: {} does not hold the record it names", shown(key)));
                continue;
            };
            expected.add(schema, &id, &record);
            for foreign in &schema.foreign_keys {
                let Some(parent) = schema.foreign_id(&record, &foreign.field) else { continue };
                if tables.records.get(txn, &keys::key(&[&foreign.references, parent]))?.is_none() {
                    problems.push(format!("records: {} {id} refers to nothing by {}", schema.name, foreign.field));
                }
            }
        }
    }
    Ok(expected)
}

/// Versions count up by one to the counter, and each has all its deltas.
fn log_problems(txn: &RoTxn<'_>, tables: &Tables) -> Result<Vec<String>, Fault> {
    let newest = log::version(txn, tables)?;
    let mut problems = Vec::new();
    let oldest = match log::since(txn, tables, 0, 0)? {
        Changes::TooOld { oldest } => oldest,
        Changes::Deltas(_) => 0,
    };
    let mut at = oldest;
    while at < newest {
        at += 1;
        if log::change(txn, tables, at)?.is_none() {
            problems.push(format!("log: version {at} is missing, the newest is {newest}"));
        }
    }
    let logged = tables.heads.len(txn)?;
    if logged != newest - oldest {
        problems.push(format!("log: {logged} versions from {oldest} to {newest}"));
    }
    Ok(problems)
}

/// A key for people; values that may be secret (unique values) are cut.
fn shown(key: &[u8]) -> String {
    let parts: Vec<_> = key.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    match parts.as_slice() {
        [entity, field, value] if !value.is_empty() => format!("{entity}/{field}/{}…", prefix_of(value)),
        parts => parts.join("/"),
    }
}

fn prefix_of(value: &str) -> String {
    value.chars().take(4).collect()
}

//! Records in memory, and a clock and randomness that never change their mind.

use gwctl_entities::{EntityError, Fill, NodeKind, Page, PageQuery, Read, Record, Registry, RegistryOptions, Value};
use std::collections::BTreeMap;

/// Stored rows by entity and id.
#[derive(Default)]
pub(crate) struct Memory(BTreeMap<String, BTreeMap<String, Record>>);

impl Memory {
    pub(crate) fn put(&mut self, entity: &str, record: Record) {
        let id = record["id"].as_str().expect("a record has an id").to_owned();
        self.0.entry(entity.to_owned()).or_default().insert(id, record);
    }

    fn rows(&self, entity: &str) -> impl Iterator<Item = &Record> {
        self.0.get(entity).into_iter().flat_map(BTreeMap::values)
    }
}

impl Read for Memory {
    fn version(&self) -> u64 {
        0
    }

    fn get(&self, entity: &str, id: &str) -> Result<Option<Record>, EntityError> {
        Ok(self.0.get(entity).and_then(|rows| rows.get(id)).cloned())
    }

    fn get_by(&self, entity: &str, field: &str, value: &str) -> Result<Option<Record>, EntityError> {
        let found = self.rows(entity).find(|row| row.get(field).and_then(Value::as_str) == Some(value));
        Ok(found.cloned())
    }

    fn page(&self, entity: &str, query: &PageQuery) -> Result<Page, EntityError> {
        let child = |row: &&Record| match &query.parent {
            Some((field, id)) => row.get(field).and_then(|parent| parent.get("id")) == Some(&Value::from(id.as_str())),
            None => true,
        };
        Ok(Page { rows: self.rows(entity).filter(child).cloned().collect(), next: None })
    }
}

/// Counts ids up; the time is 1700000000.25 s.
#[derive(Default)]
pub(crate) struct Steady(u64);

pub(crate) const NOW: u64 = 1_700_000_000;

impl Fill for Steady {
    fn now_millis(&mut self) -> u64 {
        NOW * 1000 + 250
    }

    fn uuid(&mut self) -> String {
        self.0 += 1;
        format!("00000000-0000-4000-8000-{:012}", self.0)
    }

    fn token(&mut self) -> String {
        "0123456789abcdefghijklmnopqrstuv".to_owned()
    }
}

pub(crate) fn registry() -> Registry {
    registry_of(NodeKind::ControlPlane, "traditional_compatible")
}

pub(crate) fn registry_of(kind: NodeKind, flavor: &str) -> Registry {
    Registry::bundled(&RegistryOptions { kind, router_flavor: flavor.to_owned(), plugins: None })
}

pub(crate) fn record(value: Value) -> Record {
    match value {
        Value::Object(record) => record,
        other => panic!("{other} is no record"),
    }
}

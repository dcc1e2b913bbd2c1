//! Records and calls the cases are written with.

use crate::{Commit, Origin, Store};
use gwctl_entities::{EntityError, NodeKind, Page, PageQuery, Record, Registry, RegistryOptions, Value};
use serde_json::json;
use std::sync::{Arc, OnceLock};

/// 2026-01-01T00:00:00Z in seconds, where the store's clock stands.
pub(crate) const NOW: u64 = 1_767_225_600;

/// The schemas of a control plane with every bundled plugin.
pub(crate) fn registry() -> Arc<Registry> {
    static REGISTRY: OnceLock<Arc<Registry>> = OnceLock::new();
    let options = RegistryOptions {
        kind: NodeKind::ControlPlane,
        router_flavor: "traditional_compatible".to_owned(),
        plugins: None,
    };
    Arc::clone(REGISTRY.get_or_init(|| Arc::new(Registry::bundled(&options))))
}

/// A record from JSON.
pub(crate) fn record(value: Value) -> Record {
    match value {
        Value::Object(record) => record,
        other => panic!("a record is an object, not {other}"),
    }
}

/// An id made of a number, as UUID text.
pub(crate) fn id(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// A service.
pub(crate) fn service(number: u64, name: &str) -> Record {
    record(json!({"id": id(number), "name": name, "host": "example.com", "client_certificate": null, "tags": null,
        "ca_certificates": null}))
}

/// A route to a service.
pub(crate) fn route(number: u64, service: u64) -> Record {
    record(json!({"id": id(number), "name": format!("route {number}"), "service": {"id": id(service)}}))
}

/// A plugin of a service, or a global one.
pub(crate) fn plugin(number: u64, name: &str, service: Option<u64>) -> Record {
    let service = service.map(|number| json!({"id": id(number)}));
    record(json!({"id": id(number), "name": name, "service": service, "route": null, "consumer": null,
        "instance_name": null, "config": {}}))
}

pub(crate) fn consumer(number: u64, username: &str) -> Record {
    record(json!({"id": id(number), "username": username, "custom_id": null, "tags": null}))
}

pub(crate) fn key_auth(number: u64, consumer: u64, key: &str, ttl: Value) -> Record {
    record(json!({"id": id(number), "consumer": {"id": id(consumer)}, "key": key, "ttl": ttl, "tags": null}))
}

pub(crate) fn origin() -> Origin {
    Origin::new("tester", "suite")
}

/// Inserts records as one batch.
pub(crate) fn insert(store: &dyn Store, records: Vec<(&str, Record)>) -> Result<Commit, EntityError> {
    store.write(&origin(), &mut |write| {
        for (entity, record) in &records {
            write.insert(entity, record.clone())?;
        }
        Ok(())
    })
}

pub(crate) fn delete(store: &dyn Store, entity: &str, number: u64) -> Result<(bool, Commit), EntityError> {
    store.transact(&origin(), |write| write.delete(entity, &id(number)))
}

pub(crate) fn replace(store: &dyn Store, entity: &str, record: &Record) -> Result<Commit, EntityError> {
    store.write(&origin(), &mut |write| write.replace(entity, record.clone()))
}

pub(crate) fn page(store: &dyn Store, entity: &str, query: &PageQuery) -> Page {
    store.read().unwrap().page(entity, query).unwrap()
}

/// Numbers of the ids that [`id`] made.
pub(crate) fn numbers(page: &Page) -> Vec<u64> {
    page.rows.iter().map(|row| number_of(row["id"].as_str().unwrap_or_default())).collect()
}

fn number_of(id: &str) -> u64 {
    id.rsplit('-').next().unwrap_or_default().parse().unwrap()
}

/// Each delta of the commit as a sign (`+` new, `-` gone, `~` changed), entity and number.
pub(crate) fn what(store: &dyn Store, commit: &Commit) -> Vec<String> {
    let sign = |old: bool, new: bool| match (old, new) {
        (false, _) => '+',
        (_, false) => '-',
        _ => '~',
    };
    if commit.changes == 0 {
        return Vec::new();
    }
    let logged = store.change(commit.version).unwrap().unwrap();
    logged
        .deltas
        .iter()
        .map(|delta| {
            let number = number_of(&delta.id);
            format!("{}{} {number}", sign(delta.old.is_some(), delta.new.is_some()), delta.entity)
        })
        .collect()
}

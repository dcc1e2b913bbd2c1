//! What the request path needs of the configuration, as typed rows.

use gwctl_entities::Record;
use gwctl_entities::view::{Certificate, Plugin, Route, Service, Sni, Target, Upstream, from_record};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows by id.
pub type Table<T> = BTreeMap<Arc<str>, Arc<T>>;

/// A row that the request path cannot use. A record that passed the schema engine never gives one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{entity} {id}: {reason}")]
pub struct Problem {
    /// Schema name.
    pub entity: String,
    /// Id of the row.
    pub id: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Problem {
    pub(crate) fn new(entity: &str, id: impl Into<String>, reason: impl ToString) -> Problem {
        Problem { entity: entity.to_owned(), id: id.into(), reason: reason.to_string() }
    }
}

/// An authority that upstreams may be verified by.
#[derive(Debug, Clone, Deserialize)]
pub struct CaCertificate {
    /// Id of the row.
    pub id: Arc<str>,
    /// The certificate in PEM.
    pub cert: String,
}

/// The entities a snapshot is made of. Kept by the owner between snapshots and changed row by row: rows that did not
/// change keep their `Arc`, by which the parts of the old snapshot are found and taken over.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    pub services: Table<Service>,
    pub routes: Table<Route>,
    pub plugins: Table<Plugin>,
    pub upstreams: Table<Upstream>,
    pub targets: Table<Target>,
    pub certificates: Table<Certificate>,
    pub snis: Table<Sni>,
    pub ca_certificates: Table<CaCertificate>,
}

impl Tables {
    /// Names of the entities held here.
    pub const ENTITIES: [&str; 8] =
        ["services", "routes", "plugins", "upstreams", "targets", "certificates", "snis", "ca_certificates"];

    /// Reads whole tables: `rows` gives the records of an entity.
    ///
    /// # Errors
    /// All rows that cannot be read.
    pub fn read<R: IntoIterator<Item = Record>>(mut rows: impl FnMut(&str) -> R) -> Result<Tables, Vec<Problem>> {
        let mut tables = Tables::default();
        let mut problems = Vec::new();
        for entity in Self::ENTITIES {
            for record in rows(entity) {
                if let Err(problem) = tables.put(entity, &record) {
                    problems.push(problem);
                }
            }
        }
        if problems.is_empty() { Ok(tables) } else { Err(problems) }
    }

    /// Adds or replaces a row. False when the request path has no use for the entity.
    ///
    /// # Errors
    /// When the record cannot be read; the row held before stays.
    pub fn put(&mut self, entity: &str, record: &Record) -> Result<bool, Problem> {
        match entity {
            "services" => put(&mut self.services, entity, record),
            "routes" => put(&mut self.routes, entity, record),
            "plugins" => put(&mut self.plugins, entity, record),
            "upstreams" => put(&mut self.upstreams, entity, record),
            "targets" => put(&mut self.targets, entity, record),
            "certificates" => put(&mut self.certificates, entity, record),
            "snis" => put(&mut self.snis, entity, record),
            "ca_certificates" => put(&mut self.ca_certificates, entity, record),
            _ => Ok(false),
        }
    }

    /// Removes a row. False when there was none.
    pub fn remove(&mut self, entity: &str, id: &str) -> bool {
        match entity {
            "services" => self.services.remove(id).is_some(),
            "routes" => self.routes.remove(id).is_some(),
            "plugins" => self.plugins.remove(id).is_some(),
            "upstreams" => self.upstreams.remove(id).is_some(),
            "targets" => self.targets.remove(id).is_some(),
            "certificates" => self.certificates.remove(id).is_some(),
            "snis" => self.snis.remove(id).is_some(),
            "ca_certificates" => self.ca_certificates.remove(id).is_some(),
            _ => false,
        }
    }
}

fn put<T: DeserializeOwned>(table: &mut Table<T>, entity: &str, record: &Record) -> Result<bool, Problem> {
    let id = record.get("id").and_then(|id| id.as_str()).ok_or_else(|| Problem::new(entity, "?", "it has no id"))?;
    let row = from_record(record).map_err(|error| Problem::new(entity, id, error))?;
    table.insert(id.into(), Arc::new(row));
    Ok(true)
}

//! What the request path needs of the configuration, as typed rows.
//!
//! Tables are persistent maps: a copy costs nothing, a changed row costs the few nodes on its path, and two tables that
//! came from each other are told apart by looking only where they differ.

use gwctl_entities::Record;
use gwctl_entities::view::{Certificate, Plugin, Route, Service, Sni, Target, Upstream, from_record};
use imbl::ordmap::DiffItem;
use imbl::{OrdMap, OrdSet};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::borrow::Borrow;
use std::sync::Arc;

/// Rows by id.
pub type Table<T> = OrdMap<Arc<str>, Arc<T>>;

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
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CaCertificate {
    /// Id of the row.
    pub id: Arc<str>,
    /// The certificate in PEM.
    pub cert: String,
}

/// The entities a snapshot is made of. The owner changes a copy of those in force row by row and builds the next
/// snapshot from it.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    pub(crate) services: Table<Service>,
    pub(crate) routes: Table<Route>,
    pub(crate) plugins: Table<Plugin>,
    pub(crate) upstreams: Table<Upstream>,
    pub(crate) targets: Table<Target>,
    pub(crate) certificates: Table<Certificate>,
    pub(crate) snis: Table<Sni>,
    pub(crate) ca_certificates: Table<CaCertificate>,
    /// Which rows refer to which: kind, id of the row referred to, id of the row that refers.
    links: OrdSet<(Link, Arc<str>, Arc<str>)>,
}

/// A way to refer to another row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Link {
    RouteOfService,
    ServiceOfAuthority,
    ServiceOfCertificate,
    SniOfCertificate,
    TargetOfUpstream,
    UpstreamOfCertificate,
}

/// A row of one of the tables.
pub(crate) trait Row: DeserializeOwned + PartialEq {
    fn id(&self) -> &Arc<str>;
    fn table(tables: &Tables) -> &Table<Self>;
    fn table_mut(tables: &mut Tables) -> &mut Table<Self>;
    /// What the row refers to.
    fn links(&self) -> Vec<(Link, &Arc<str>)>;
}

macro_rules! rows {
    ($($row:ident in $table:ident, $this:ident => $links:expr;)*) => {
        $(impl Row for $row {
            fn id(&self) -> &Arc<str> {
                &self.id
            }
            fn table(tables: &Tables) -> &Table<Self> {
                &tables.$table
            }
            fn table_mut(tables: &mut Tables) -> &mut Table<Self> {
                &mut tables.$table
            }
            fn links(&self) -> Vec<(Link, &Arc<str>)> {
                let $this = self;
                $links.collect()
            }
        })*
    };
}

rows! {
    Service in services, row => {
        let own = row.client_certificate.iter().map(|id| (Link::ServiceOfCertificate, id));
        own.chain(row.ca_certificates.iter().flatten().map(|id| (Link::ServiceOfAuthority, id)))
    };
    Route in routes, row => row.service.iter().map(|id| (Link::RouteOfService, id));
    Plugin in plugins, _row => std::iter::empty();
    Upstream in upstreams, row => row.client_certificate.iter().map(|id| (Link::UpstreamOfCertificate, id));
    Target in targets, row => row.upstream.iter().map(|id| (Link::TargetOfUpstream, id));
    Certificate in certificates, _row => std::iter::empty();
    Sni in snis, row => row.certificate.iter().map(|id| (Link::SniOfCertificate, id));
    CaCertificate in ca_certificates, _row => std::iter::empty();
}

/// Calls a function with the type of an entity's rows.
macro_rules! by_entity {
    ($entity:expr, $row:ident => $call:expr, else $other:expr) => {
        match $entity {
            "services" => {
                type $row = Service;
                $call
            }
            "routes" => {
                type $row = Route;
                $call
            }
            "plugins" => {
                type $row = Plugin;
                $call
            }
            "upstreams" => {
                type $row = Upstream;
                $call
            }
            "targets" => {
                type $row = Target;
                $call
            }
            "certificates" => {
                type $row = Certificate;
                $call
            }
            "snis" => {
                type $row = Sni;
                $call
            }
            "ca_certificates" => {
                type $row = CaCertificate;
                $call
            }
            _ => $other,
        }
    };
}

impl Tables {
    /// Names of the entities held here.
    pub const ENTITIES: [&str; 8] =
        ["services", "routes", "plugins", "upstreams", "targets", "certificates", "snis", "ca_certificates"];

    /// Reads whole tables: `rows` gives the records of an entity.
    ///
    /// # Errors
    /// All rows that cannot be read.
    pub fn read<R>(mut rows: impl FnMut(&str) -> R) -> Result<Tables, Vec<Problem>>
    where
        R: IntoIterator<Item: Borrow<Record>>,
    {
        let mut tables = Tables::default();
        let mut problems = Vec::new();
        for entity in Self::ENTITIES {
            for record in rows(entity) {
                if let Err(problem) = tables.put(entity, record.borrow()) {
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
        by_entity!(entity, Kind => self.set::<Kind>(entity, record).map(|()| true), else Ok(false))
    }

    /// Adds or replaces a row that is given as JSON.
    ///
    /// # Errors
    /// When it cannot be read; the row held before stays.
    pub fn put_json(&mut self, entity: &str, row: &[u8]) -> Result<bool, Problem> {
        by_entity!(entity, Kind => {
            let row: Kind = serde_json::from_slice(row).map_err(|error| Problem::new(entity, "?", error))?;
            self.insert(Arc::new(row));
            Ok(true)
        }, else Ok(false))
    }

    /// Removes a row. False when there was none.
    pub fn remove(&mut self, entity: &str, id: &str) -> bool {
        by_entity!(entity, Kind => self.unset::<Kind>(id), else false)
    }

    fn set<T: Row>(&mut self, entity: &str, record: &Record) -> Result<(), Problem> {
        let id = record.get("id").and_then(|id| id.as_str()).unwrap_or("?");
        let row: T = from_record(record).map_err(|error| Problem::new(entity, id, error))?;
        self.insert(Arc::new(row));
        Ok(())
    }

    fn insert<T: Row>(&mut self, row: Arc<T>) {
        let id = row.id().clone();
        let old = T::table_mut(self).insert(id.clone(), row.clone());
        let (old, new) = (old.iter().flat_map(|old| old.links()).collect::<Vec<_>>(), row.links());
        for (link, to) in old.iter().filter(|link| !new.contains(link)) {
            self.links.remove(&(*link, (*to).clone(), id.clone()));
        }
        for (link, to) in new.iter().filter(|link| !old.contains(link)) {
            self.links.insert((*link, (*to).clone(), id.clone()));
        }
    }

    fn unset<T: Row>(&mut self, id: &str) -> bool {
        let Some(old) = T::table_mut(self).remove(id) else { return false };
        for (link, to) in old.links() {
            self.links.remove(&(link, to.clone(), old.id().clone()));
        }
        true
    }

    /// Ids of the rows that refer to a row in one way, ascending.
    pub(crate) fn linked(&self, link: Link, to: &Arc<str>) -> impl Iterator<Item = &Arc<str>> {
        let from = (link, to.clone(), Arc::from(""));
        let rows = self.links.range(from..).take_while(move |(kind, id, _)| *kind == link && id == to);
        rows.map(|(_, _, id)| id)
    }

    fn is_empty(&self) -> bool {
        Self::ENTITIES.iter().all(|entity| by_entity!(*entity, Kind => Kind::table(self).is_empty(), else true))
    }

    /// These tables in terms of older ones: rows that say the same are those of `old`, so that both share them.
    pub(crate) fn settled(self, old: &Tables) -> Tables {
        if old.is_empty() {
            return self;
        }
        let mut settled = old.clone();
        for entity in Self::ENTITIES {
            by_entity!(entity, Kind => settled.follow::<Kind>(old, &self), else ());
        }
        settled
    }

    fn follow<T: Row>(&mut self, old: &Tables, new: &Tables) {
        for change in changes::<T>(old, new) {
            match change.new {
                Some(row) => self.insert(row),
                None => _ = self.unset::<T>(&change.id),
            }
        }
    }
}

/// A row before and after.
pub(crate) struct Change<T> {
    pub(crate) id: Arc<str>,
    pub(crate) old: Option<Arc<T>>,
    pub(crate) new: Option<Arc<T>>,
}

/// The rows in which tables differ. Costs what they do not share.
pub(crate) fn changes<T: Row>(old: &Tables, new: &Tables) -> Vec<Change<T>> {
    let change = |item: DiffItem<'_, '_, Arc<str>, Arc<T>>| match item {
        DiffItem::Add(id, new) => Change { id: id.clone(), old: None, new: Some(new.clone()) },
        DiffItem::Update { old: (_, old), new: (id, new) } => {
            Change { id: id.clone(), old: Some(old.clone()), new: Some(new.clone()) }
        }
        DiffItem::Remove(id, old) => Change { id: id.clone(), old: Some(old.clone()), new: None },
    };
    T::table(old).diff(T::table(new)).map(change).collect()
}

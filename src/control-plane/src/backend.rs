//! The node behind the Admin API: a store, the fleet, and what the process tells of itself.

use crate::calls::CallError;
use crate::declarative::DeclarativeState;
use crate::fleet::FleetTable;
use gwctl_admin_api::{
    Backend, ChangesAfter, DataPlaneRow, DeclarativeDocument, DeclarativeLoaded, DeclarativeOptions, FleetNews,
    LogScope, MarkRefusal, NodeFacts, Origin, RecordChange, StatusFacts, SummaryAfter, VersionChanges, VersionHeading,
    VersionSummary,
};
use gwctl_entities::fleet::Fleet;
use gwctl_entities::{EntityError, Fill, Read, Registry, Value, Write};
use gwctl_store::{Change, Changes, HistoryEntry, Part, Store, SystemFill, unix_millis};
use gwctl_wire::v2::log_level::Asked;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{broadcast, watch};

/// Bytes of a version that are read at once to sum it up.
const PART_BYTES: usize = 256 * 1024;

/// What the rest of the process answers for the Admin API.
pub trait Process: Send + Sync + 'static {
    /// Counters of the proxy; zero where none runs.
    fn status(&self) -> StatusFacts;
    /// Whether everything beside the store is ready; the reason when not.
    fn readiness(&self) -> Result<(), String>;
    /// Figures of the process, for Prometheus.
    fn metrics(&self) -> String;
    /// Level in force, in Kong's words.
    fn log_level(&self) -> String;
    /// Sets the level for so many seconds (0: for good).
    fn set_log_level(&self, level: &str, seconds: u64) -> Result<(), String>;

    /// See [`Backend::upstream_health`]; None where no proxy runs.
    fn upstream_health(&self, _upstream_id: &str) -> Option<BTreeMap<String, Value>> {
        None
    }

    /// See [`Backend::balancer_health`]; None where no proxy runs.
    fn balancer_health(&self, _upstream_id: &str) -> Option<Value> {
        None
    }

    /// See [`Backend::set_target_health`].
    fn set_target_health(
        &self,
        _upstream_id: &str,
        _target_id: &str,
        _address: Option<&str>,
        _healthy: bool,
    ) -> Result<(), MarkRefusal> {
        Err(MarkRefusal::NoBalancer)
    }
}

/// [`Backend`] on a store: control planes, traditional nodes and nodes without a store of their own (whose
/// configuration is kept in the same engine and replaced as a whole).
pub struct StoreBackend {
    store: Arc<dyn Store>,
    facts: NodeFacts,
    process: Arc<dyn Process>,
    fleet: Option<Arc<FleetTable>>,
    declarative: Option<DeclarativeState>,
    draining: AtomicBool,
}

impl StoreBackend {
    /// `fleet` on control planes, `declarative` on nodes without a store.
    pub fn new(
        store: Arc<dyn Store>,
        facts: NodeFacts,
        process: Arc<dyn Process>,
        fleet: Option<Arc<FleetTable>>,
        declarative: Option<DeclarativeState>,
    ) -> Self {
        Self { store, facts, process, fleet, declarative, draining: AtomicBool::new(false) }
    }
}

impl Backend for StoreBackend {
    fn registry(&self) -> Arc<Registry> {
        self.store.registry().clone()
    }

    fn node(&self) -> NodeFacts {
        self.facts.clone()
    }

    fn read(&self) -> Result<Box<dyn Read + '_>, EntityError> {
        self.store.read()
    }

    fn write(
        &self,
        origin: &Origin,
        work: &mut dyn FnMut(&mut dyn Write) -> Result<(), EntityError>,
    ) -> Result<u64, EntityError> {
        let origin = gwctl_store::Origin::new(&origin.who, format!("admin-api {}", origin.from));
        Ok(self.store.write(&origin, work)?.version)
    }

    fn now_millis(&self) -> u64 {
        unix_millis()
    }

    fn new_uuid(&self) -> String {
        SystemFill.uuid()
    }

    fn new_token(&self) -> String {
        SystemFill.token()
    }

    fn data_planes(&self) -> Result<Vec<DataPlaneRow>, EntityError> {
        Ok(self.fleet.as_ref().map(|fleet| fleet.rows()).unwrap_or_default())
    }

    fn fleet(&self) -> Result<Fleet, EntityError> {
        let version = self.store.version();
        let empty = Fleet { kind: Fleet::KIND.to_owned(), version, now_millis: unix_millis(), ..Fleet::default() };
        Ok(self.fleet.as_ref().map_or(empty, |fleet| fleet.fleet(version)))
    }

    fn history(&self, before: Option<u64>, limit: usize) -> Result<Vec<VersionHeading>, EntityError> {
        let rows = self.store.history(before, limit)?;
        let heading = |row: HistoryEntry| heading(row.version, row.time_millis, row.origin, row.deltas);
        Ok(rows.into_iter().map(heading).collect())
    }

    fn changes_after(&self, version: u64, limit: usize) -> Result<ChangesAfter, EntityError> {
        Ok(match self.store.changes_since(version, limit)? {
            Changes::Deltas(changes) => ChangesAfter::Versions(changes.into_iter().map(version_changes).collect()),
            Changes::TooOld { oldest } => ChangesAfter::Forgotten { oldest },
        })
    }

    fn summary_after(&self, version: u64, named: usize) -> Result<SummaryAfter, EntityError> {
        if let Some(summary) = self.summary(version + 1, named)? {
            return Ok(SummaryAfter::Version(Box::new(summary)));
        }
        // Whether it is yet to come or was forgotten.
        Ok(match self.store.changes_since(version, 0)? {
            Changes::Deltas(_) => SummaryAfter::Nothing,
            Changes::TooOld { oldest } => SummaryAfter::Forgotten { oldest },
        })
    }

    fn data_plane_log_level(&self, id: &str, change: Option<(&str, u64)>) -> Result<Value, EntityError> {
        let asked = match change {
            None => Asked::Get,
            Some((level, seconds)) => Asked::Set { level: level.to_owned(), seconds },
        };
        let answered = match &self.fleet {
            Some(fleet) => fleet.calls().ask(id, asked),
            None => Err(CallError::NotConnected),
        };
        answered.map_err(|error| EntityError::Bare { status: 500, message: error.to_string() })
    }

    fn versions(&self) -> Option<watch::Receiver<u64>> {
        Some(self.store.watch())
    }

    fn fleet_news(&self) -> Option<broadcast::Receiver<FleetNews>> {
        self.fleet.as_ref().map(|fleet| fleet.news())
    }

    fn setting(&self, key: &str) -> Result<Option<String>, EntityError> {
        self.store.setting(key)
    }

    fn set_setting(&self, key: &str, value: &str) -> Result<(), EntityError> {
        self.store.set_setting(key, Some(value))
    }

    fn status(&self) -> StatusFacts {
        let mut facts = self.process.status();
        match &self.declarative {
            Some(declarative) => facts.configuration_hash = Some(declarative.hash()),
            None => facts.database_reachable = Some(self.store.read().is_ok()),
        }
        facts
    }

    fn readiness(&self) -> Result<(), String> {
        if self.draining.load(Ordering::Relaxed) {
            return Err("draining".to_owned());
        }
        match &self.declarative {
            Some(declarative) => declarative.readiness()?,
            None => self.store.read().map(drop).map_err(|error| format!("the store does not answer: {error}"))?,
        }
        self.process.readiness()
    }

    fn metrics(&self) -> Option<String> {
        let mut text = self.process.metrics();
        let fleet = self.fleet.as_ref().map(|fleet| fleet.fleet(self.store.version()));
        crate::metrics::write(&mut text, &*self.store, fleet.as_ref());
        Some(text)
    }

    fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    fn load_declarative(
        &self,
        document: DeclarativeDocument,
        options: DeclarativeOptions,
    ) -> Result<DeclarativeLoaded, EntityError> {
        match &self.declarative {
            Some(declarative) => declarative.load(&*self.store, document, options),
            None => Err(with_a_store()),
        }
    }

    fn export_declarative(&self) -> Result<String, EntityError> {
        match &self.declarative {
            Some(_) => crate::declarative::export(&*self.store),
            None => Err(with_a_store()),
        }
    }

    fn log_level(&self) -> String {
        self.process.log_level()
    }

    fn upstream_health(&self, upstream_id: &str) -> Option<BTreeMap<String, Value>> {
        self.process.upstream_health(upstream_id)
    }

    fn balancer_health(&self, upstream_id: &str) -> Option<Value> {
        self.process.balancer_health(upstream_id)
    }

    fn set_target_health(
        &self,
        upstream_id: &str,
        target_id: &str,
        address: Option<&str>,
        healthy: bool,
    ) -> Result<(), MarkRefusal> {
        self.process.set_target_health(upstream_id, target_id, address, healthy)
    }

    fn set_log_level(&self, _scope: LogScope, level: &str, seconds: u64) -> Result<(), EntityError> {
        self.process.set_log_level(level, seconds).map_err(|message| EntityError::Bare { status: 500, message })
    }
}

impl StoreBackend {
    /// Reads a version part by part, so that one of any size costs no memory; None when the log does not hold it.
    fn summary(&self, version: u64, named: usize) -> Result<Option<VersionSummary>, EntityError> {
        let mut summary: Option<VersionSummary> = None;
        let mut seen = 0;
        loop {
            let Some(part) = self.store.part_of_change(version, seen, PART_BYTES)? else { return Ok(None) };
            let Part { change: Change { time_millis, origin, deltas, .. }, total, last } = part;
            let summary =
                summary.get_or_insert_with(|| VersionSummary::new(heading(version, time_millis, origin, total), named));
            seen += deltas.len();
            for delta in deltas.iter() {
                summary.add(&delta.entity, &delta.id, delta.old.as_ref(), delta.new.as_ref());
            }
            if last || deltas.is_empty() {
                break;
            }
        }
        Ok(summary)
    }
}

fn heading(version: u64, time_millis: u64, origin: gwctl_store::Origin, changes: usize) -> VersionHeading {
    VersionHeading { version, time_millis, who: origin.who, from: origin.from, changes }
}

fn version_changes(change: Change) -> VersionChanges {
    let changes = change.deltas.iter().map(|delta| RecordChange {
        entity: delta.entity.clone(),
        id: delta.id.clone(),
        old: delta.old.clone(),
        new: delta.new.clone(),
    });
    let changes: Vec<RecordChange> = changes.collect();
    VersionChanges { heading: heading(change.version, change.time_millis, change.origin, changes.len()), changes }
}

fn with_a_store() -> EntityError {
    EntityError::Bare {
        status: 400,
        message: "this endpoint is only available when Kong is configured to not use a database".to_owned(),
    }
}

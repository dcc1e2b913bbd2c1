//! What the Admin and Status APIs need of the node they speak for.
//!
//! A control plane, a traditional node, a node without a store and a data plane each implement [`Backend`]. Every
//! method may block: the HTTP side calls them on a blocking thread, never on the runtime's own.

use crate::record_log::{ChangesAfter, FleetNews, SummaryAfter, VersionChanges, VersionHeading, VersionSummary};
use gwctl_entities::fleet::Fleet;
use gwctl_entities::{EntityError, NodeKind, Read, Registry, Value, Write};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::{broadcast, watch};

/// Who asked for a change, for the history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Name of its token, else the name the client gave for itself (header `Gwctl-User`), else its `User-Agent`, else `admin-api`.
    pub who: String,
    /// Address of the client.
    pub from: String,
}

/// Settings as `GET /` shows them. Clones share them: what a reload changes shows at once.
#[derive(Debug, Clone, Default)]
pub struct ShownSettings(Arc<RwLock<Value>>);

impl ShownSettings {
    /// Settings by name.
    pub fn new(settings: Value) -> Self {
        Self(Arc::new(RwLock::new(settings)))
    }

    /// Puts others in their place.
    pub fn set(&self, settings: Value) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// The settings now.
    pub fn now(&self) -> Value {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What `GET /` tells about the node, and what the answers of other endpoints depend on.
#[derive(Debug, Clone)]
pub struct NodeFacts {
    /// UUID of the node.
    pub id: String,
    pub hostname: String,
    /// Version announced to clients, of the Kong release spoken (`3.9.1`).
    pub version: String,
    pub kind: NodeKind,
    /// Answer of `GET /`, member `configuration`: every effective setting by name, secrets already masked.
    pub configuration: ShownSettings,
    /// Process id of the node.
    pub process_id: u32,
    /// Process ids of its workers; the node's own where workers are threads.
    pub worker_ids: Vec<u32>,
    /// Origins of the dashboard (`admin_gui_url`), for CORS; empty: any origin.
    pub admin_gui_origins: Vec<String>,
    /// Answer with a `Server` header (`headers` contains `server_tokens`).
    pub server_header: bool,
    /// Answer with `X-Kong-Admin-Latency` (`headers` contains `latency_tokens`).
    pub latency_header: bool,
}

/// Counters and memory as `GET /status` shows them.
#[derive(Debug, Clone, Default)]
pub struct StatusFacts {
    pub connections_accepted: u64,
    pub connections_handled: u64,
    pub connections_active: u64,
    pub connections_reading: u64,
    pub connections_writing: u64,
    pub connections_waiting: u64,
    pub total_requests: u64,
    /// The store answers; None on a node without one.
    pub database_reachable: Option<bool>,
    /// Hash of the configuration in force, for nodes without a store and data planes.
    pub configuration_hash: Option<String>,
    /// Bytes of heap of each worker, by process id.
    pub worker_heaps: Vec<(u32, u64)>,
    /// Shared memory: name, bytes of capacity, bytes in use.
    pub shared_memory: Vec<(String, u64, u64)>,
}

/// One row of `GET /clustering/data-planes`. Times in Unix seconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DataPlaneRow {
    /// Node id, a UUID.
    pub id: String,
    pub hostname: String,
    pub ip: String,
    pub version: String,
    pub sync_status: String,
    /// 32 hexadecimal digits.
    pub config_hash: String,
    pub last_seen: u64,
    pub updated_at: u64,
    /// None shows null.
    pub labels: Option<BTreeMap<String, String>>,
    /// `expiry_timestamp` of `cert_details`: outer None shows `cert_details` as null, inner None a null inside.
    pub certificate_expires_at: Option<Option<u64>>,
    pub rpc_capabilities: Vec<String>,
    /// Seconds until the row is purged.
    pub ttl: u64,
}

/// A declarative configuration as it came in.
#[derive(Debug, Clone, PartialEq)]
pub enum DeclarativeDocument {
    /// YAML or JSON text; its MD5 is the configuration hash.
    Text(String),
    /// A JSON body that is the configuration itself.
    Parsed(Value),
}

/// Arguments of `POST /config`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeclarativeOptions {
    /// Load nothing when text input has the hash in force.
    pub check_hash: bool,
    /// Errors grouped by entity.
    pub flatten_errors: bool,
    /// Validate and answer, load nothing.
    pub dry_run: bool,
}

/// Outcome of `POST /config`.
#[derive(Debug, Clone, PartialEq)]
pub enum DeclarativeLoaded {
    /// Loaded; the body of the 201 answer.
    Applied(Value),
    /// The hash was in force already: 304.
    Unchanged,
}

/// Why the health of a target cannot be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkRefusal {
    /// No balancer knows the upstream.
    NoBalancer,
    /// The upstream's health checks are off.
    NoChecks,
}

/// Where a log level is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogScope {
    /// This node.
    Node,
    /// All nodes on the same store.
    Cluster,
}

fn no_log() -> EntityError {
    EntityError::Bare { status: 400, message: "this node has no log of changes: ask a control plane".to_owned() }
}

/// The node behind the Admin and Status APIs.
pub trait Backend: Send + Sync + 'static {
    /// The schemas in force.
    fn registry(&self) -> Arc<Registry>;

    /// What the node says of itself. Asked once for each listener, when serving begins.
    fn node(&self) -> NodeFacts;

    /// A consistent view of the records.
    fn read(&self) -> Result<Box<dyn Read + '_>, EntityError>;

    /// Runs `work` in one write transaction and commits it; the new version. `work` may be run again from the
    /// start when the store asks for it (two control planes writing at once), and nothing is kept when it fails.
    fn write(
        &self,
        origin: &Origin,
        work: &mut dyn FnMut(&mut dyn Write) -> Result<(), EntityError>,
    ) -> Result<u64, EntityError>;

    /// Unix time in milliseconds.
    fn now_millis(&self) -> u64;

    /// A random UUID, version 4, lower case.
    fn new_uuid(&self) -> String;

    /// 32 random characters from letters and digits.
    fn new_token(&self) -> String;

    /// Data planes not yet purged, ascending by id. Only asked of control planes.
    fn data_planes(&self) -> Result<Vec<DataPlaneRow>, EntityError> {
        Ok(Vec::new())
    }

    /// The fleet for `GET /gwctl/fleet`. Only asked of control planes.
    fn fleet(&self) -> Result<Fleet, EntityError> {
        Ok(Fleet { kind: Fleet::KIND.to_owned(), now_millis: self.now_millis(), ..Fleet::default() })
    }

    /// Headings of the log of changes, newest first, at most `limit`, all below `before` when given.
    fn history(&self, _before: Option<u64>, _limit: usize) -> Result<Vec<VersionHeading>, EntityError> {
        Err(no_log())
    }

    /// The versions after `version` with what they did, oldest first, at most `limit`.
    fn changes_after(&self, _version: u64, _limit: usize) -> Result<ChangesAfter, EntityError> {
        Err(no_log())
    }

    /// The version after `version` with its counts and its first changes, at most `named`.
    ///
    /// To be overridden where a version may be larger than anyone wants to hold.
    fn summary_after(&self, version: u64, named: usize) -> Result<SummaryAfter, EntityError> {
        Ok(match self.changes_after(version, 1)? {
            ChangesAfter::Forgotten { oldest } => SummaryAfter::Forgotten { oldest },
            ChangesAfter::Versions(found) => match found.into_iter().next() {
                None => SummaryAfter::Nothing,
                Some(VersionChanges { heading, changes }) => {
                    let mut summary = VersionSummary::new(heading, named);
                    for change in &changes {
                        summary.add(&change.entity, &change.id, change.old.as_ref(), change.new.as_ref());
                    }
                    SummaryAfter::Version(Box::new(summary))
                }
            },
        })
    }

    /// Tells of each new version; None where there is no log of changes.
    fn versions(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// Tells what data planes do; None where there are none.
    fn fleet_news(&self) -> Option<broadcast::Receiver<FleetNews>> {
        None
    }

    /// A value kept beside the configuration, without version.
    fn setting(&self, _key: &str) -> Result<Option<String>, EntityError> {
        Ok(None)
    }

    /// Sets such a value.
    fn set_setting(&self, _key: &str, _value: &str) -> Result<(), EntityError> {
        Err(EntityError::Unsupported("settings are not kept on this node".to_owned()))
    }

    /// Counters and memory.
    fn status(&self) -> StatusFacts;

    /// Whether the node can do its work; the reason when not (`draining`, `no configuration ...`).
    fn readiness(&self) -> Result<(), String>;

    /// From now on [`Backend::readiness`] fails with `draining`.
    fn drain(&self) {}

    /// `POST /config` of a node without a store.
    fn load_declarative(
        &self,
        _document: DeclarativeDocument,
        _options: DeclarativeOptions,
    ) -> Result<DeclarativeLoaded, EntityError> {
        Err(EntityError::Unsupported("declarative configuration is not available on this node".to_owned()))
    }

    /// `GET /config` of a node without a store: the YAML text.
    fn export_declarative(&self) -> Result<String, EntityError> {
        Err(EntityError::Unsupported("declarative configuration is not available on this node".to_owned()))
    }

    /// Asks a data plane for its log levels, or sets its level for so many seconds (0: its own level comes back). The
    /// answer is the data plane's.
    fn data_plane_log_level(&self, _id: &str, _change: Option<(&str, u64)>) -> Result<Value, EntityError> {
        Err(EntityError::Bare { status: 404, message: "Not found".to_owned() })
    }

    /// Level in force: debug, info, notice, warn, error, crit, alert or emerg.
    fn log_level(&self) -> String {
        "notice".to_owned()
    }

    /// Sets the level for so many seconds (0: for good), then back.
    fn set_log_level(&self, _scope: LogScope, _level: &str, _seconds: u64) -> Result<(), EntityError> {
        Ok(())
    }

    /// Health of an upstream's targets as the balancer sees it: by target id, members to add to the target's row
    /// (`health`, `data`). None where no balancer runs or it does not know the upstream.
    fn upstream_health(&self, _upstream_id: &str) -> Option<BTreeMap<String, Value>> {
        None
    }

    /// Health of an upstream as a whole (`?balancer_health=1`).
    fn balancer_health(&self, _upstream_id: &str) -> Option<Value> {
        None
    }

    /// Marks a target (or one of its addresses) healthy or unhealthy.
    fn set_target_health(
        &self,
        _upstream_id: &str,
        _target_id: &str,
        _address: Option<&str>,
        _healthy: bool,
    ) -> Result<(), MarkRefusal> {
        Err(MarkRefusal::NoBalancer)
    }

    /// Text exposition of `GET /metrics`.
    fn metrics(&self) -> Option<String> {
        None
    }
}

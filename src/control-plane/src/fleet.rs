//! What the control plane knows of its data planes: who they are, when they were last heard, what they serve.
//!
//! Rows live in memory and are written to a setting of the store now and then, so that a restarted control plane shows
//! its fleet at once. They are no configuration: they have no version, and nothing is pushed when they change.

use crate::calls::Calls;
use gwctl_admin_api::{DataPlaneRow, FleetNews};
use gwctl_entities::EntityError;
use gwctl_entities::fleet::{Fleet, FleetMember, FleetRefusal};
use gwctl_store::{Store, unix_millis};
use gwctl_wire::ConfigHash;
use gwctl_wire::compat::SyncStatus;
use gwctl_wire::stream::message::{Applied, Refused};
use gwctl_wire::stream::{HEARTBEAT, LATE_BEATS};
use gwctl_wire::v1::cp_link::NodeRecord;
use gwctl_wire::v2::dialect::version_of;
use gwctl_wire::v2::{Dialect, Held, Hello};
use lags::Recent;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast;

mod lags;

/// Setting of the store that holds the rows.
const SETTING: &str = "fleet";

/// News waiting for a listener at most; a slower one is told that it missed some.
const NEWS: usize = 1024;

/// Payloads remembered to tell how far behind a reported hash is.
const REMEMBERED: usize = 1024;

/// What the upgrade request and the connection said of a data plane.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    pub id: String,
    pub hostname: String,
    pub ip: String,
    pub version: String,
    /// End of its certificate, Unix seconds.
    pub certificate_expires_at: Option<u64>,
    pub protocol: Protocol,
    /// Why this protocol and no other, in words.
    pub reason: &'static str,
}

/// What a connection is there for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Whole configurations.
    #[default]
    V1,
    /// Changes.
    V2,
    /// Our own sync.
    Stream,
    /// Calls only, beside a connection that brings the configuration.
    Calls,
}

impl Protocol {
    /// Its name in rows; None where it says nothing about the way of the configuration.
    fn name(self) -> Option<&'static str> {
        match self {
            Self::V1 => Some("v1"),
            Self::V2 => Some("v2"),
            Self::Stream => Some("gwctl"),
            Self::Calls => None,
        }
    }
}

/// One data plane as stored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Member {
    hostname: String,
    ip: String,
    version: String,
    sync_status: String,
    sync_detail: Option<String>,
    config_hash: String,
    last_seen_millis: u64,
    labels: BTreeMap<String, String>,
    certificate_expires_at: Option<u64>,
    protocol: String,
    /// Groups of methods it answers; written by protocol v2 only.
    rpc_capabilities: Vec<String>,
    /// Why it refused what it was sent last; it serves what it had.
    last_error: Option<String>,
    /// Names of its plugins; told by protocol v1 only.
    plugins: Option<Vec<String>>,
    /// Its link has reported something; before, Kong's table has no row of it.
    recorded: bool,
    /// Version it serves; told by our own sync only.
    applied_version: Option<u64>,
    stored_micros: Option<u64>,
    active_micros: Option<u64>,
    refusal: Option<FleetRefusal>,
    divergences: u64,
    /// It said goodbye.
    left: bool,
    #[serde(skip)]
    protocol_reason: Option<&'static str>,
    #[serde(skip)]
    connected_millis: u64,
    #[serde(skip)]
    lags: Recent,
    #[serde(skip)]
    connections: usize,
}

impl Member {
    /// `online`, `late`, `offline` or `left`.
    fn state(&self, now_millis: u64) -> &'static str {
        // By Kong's protocols a node pings every 30 s.
        let heartbeat = if self.protocol == "gwctl" { HEARTBEAT } else { Duration::from_secs(30) };
        let late = u64::try_from((heartbeat * LATE_BEATS).as_millis()).unwrap_or(u64::MAX);
        match self.connections {
            0 if self.left => "left",
            0 => "offline",
            _ if now_millis.saturating_sub(self.last_seen_millis) >= late => "late",
            _ => "online",
        }
    }

    /// The version it serves where it is told as such.
    fn version(&self) -> Option<u64> {
        match self.protocol.as_str() {
            "v2" => Some(version_of(&self.config_hash)),
            "gwctl" => self.applied_version,
            _ => None,
        }
    }
}

/// A payload that was made: its hash, the version it holds and when it was ready.
#[derive(Debug, Clone)]
struct Made {
    hash: ConfigHash,
    version: u64,
    since_millis: u64,
}

#[derive(Debug, Default)]
struct State {
    members: BTreeMap<String, Member>,
    made: VecDeque<Made>,
    /// There is a newer configuration than the last payload shows; nobody needed one of it.
    unmade: bool,
    /// Versions and when they were committed, as far as a data plane with protocol v2 was there to be told.
    committed: VecDeque<(u64, u64)>,
    /// Capabilities of nodes that said hello, as long as they are connected by protocol v2.
    capabilities: BTreeMap<String, Vec<String>>,
    /// Newest version and its digest, which is the hash of nodes with our own sync.
    digest: Option<(u64, String)>,
    dirty: bool,
}

/// The table of data planes.
#[derive(Debug)]
pub struct FleetTable {
    state: Mutex<State>,
    purge_delay: Duration,
    news: broadcast::Sender<FleetNews>,
    calls: Calls,
}

impl FleetTable {
    /// The rows the store remembers. Rows unheard of for `purge_delay` are gone.
    pub fn load(store: &dyn Store, purge_delay: Duration) -> Result<Self, EntityError> {
        let members = match store.setting(SETTING)? {
            None => BTreeMap::new(),
            Some(text) => serde_json::from_str(&text).unwrap_or_else(|error| {
                tracing::warn!(%error, "the stored table of data planes is unreadable, starting with an empty one");
                BTreeMap::new()
            }),
        };
        let state = State { members, ..State::default() };
        let (news, calls) = (broadcast::Sender::new(NEWS), Calls::default());
        Ok(Self { state: Mutex::new(state), purge_delay, news, calls })
    }

    /// The way to ask a data plane.
    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// What data planes do from now on.
    pub fn news(&self) -> broadcast::Receiver<FleetNews> {
        self.news.subscribe()
    }

    fn tell(&self, what: &'static str, id: &str, member: &Member, made: &VecDeque<Made>) {
        let served = match member.protocol.as_str() {
            "v2" | "gwctl" => member.version().filter(|version| *version > 0),
            _ => made.iter().rfind(|made| made.hash.as_str() == member.config_hash).map(|made| made.version),
        };
        // Nobody listening is no fault.
        let _ = self.news.send(FleetNews {
            what,
            id: id.to_owned(),
            hostname: member.hostname.clone(),
            sync_status: member.sync_status.clone(),
            config_hash: member.config_hash.clone(),
            version: served,
            detail: member.sync_detail.clone().or_else(|| member.last_error.clone()),
        });
    }

    /// Writes the rows to the store when they changed; blocking.
    pub fn save(&self, store: &dyn Store) -> Result<(), EntityError> {
        let text = {
            let mut state = self.lock();
            self.purge(&mut state);
            if !std::mem::take(&mut state.dirty) {
                return Ok(());
            }
            serde_json::to_string(&state.members).map_err(|error| EntityError::Database(error.to_string()))?
        };
        store.set_setting(SETTING, Some(&text))
    }

    /// A payload of this version is what data planes are meant to have from now on. A version that left the hash as it
    /// was is one they have already.
    pub fn payload_made(&self, hash: &ConfigHash, version: u64) {
        let mut state = self.lock();
        state.unmade = false;
        if let Some(newest) = state.made.back_mut().filter(|newest| newest.hash == *hash) {
            newest.version = version;
            return;
        }
        if state.made.len() == REMEMBERED {
            state.made.pop_front();
        }
        state.made.push_back(Made { hash: hash.clone(), version, since_millis: unix_millis() });
    }

    /// Whether one of the data planes known is sent whole configurations (protocol v1).
    pub fn expects_payloads(&self) -> bool {
        self.lock().members.values().any(|member| !matches!(member.protocol.as_str(), "v2" | "gwctl"))
    }

    /// There is a new version of which no payload is made.
    pub fn payload_not_made(&self) {
        self.lock().unmade = true;
    }

    /// A version was committed just now; without effect when it has been told already.
    pub fn committed(&self, version: u64) {
        self.committed_at(version, unix_millis());
    }

    /// A version was committed at this moment; without effect when it has been told already.
    pub fn committed_at(&self, version: u64, millis: u64) {
        let mut state = self.lock();
        if state.committed.back().is_none_or(|(newest, _)| *newest < version) {
            if state.committed.len() == REMEMBERED {
                state.committed.pop_front();
            }
            state.committed.push_back((version, millis));
        }
    }

    /// The digest of the newest version.
    pub fn digest(&self, version: u64, digest: String) {
        self.lock().digest = Some((version, digest));
    }

    /// A connection of this node was accepted. One for calls only leaves its row alone.
    pub fn connected(&self, identity: &Identity) {
        let Some(protocol) = identity.protocol.name() else { return };
        let mut guard = self.lock();
        let state = &mut *guard;
        let member = state.members.entry(identity.id.clone()).or_default();
        member.connections += 1;
        member.hostname.clone_from(&identity.hostname);
        member.ip.clone_from(&identity.ip);
        member.version.clone_from(&identity.version);
        member.certificate_expires_at = identity.certificate_expires_at;
        protocol.clone_into(&mut member.protocol);
        member.protocol_reason = Some(identity.reason);
        member.left = false;
        member.last_seen_millis = unix_millis();
        member.connected_millis = member.last_seen_millis;
        if let Some(capabilities) = state.capabilities.get(&identity.id) {
            member.rpc_capabilities.clone_from(capabilities);
        }
        if member.sync_status.is_empty() {
            "unknown".clone_into(&mut member.sync_status);
            ConfigHash::zero().as_str().clone_into(&mut member.config_hash);
        }
        // Kong nodes have a connection for each of their workers.
        if member.connections == 1 {
            self.tell("joined", &identity.id, member, &state.made);
        }
        state.dirty = true;
    }

    /// What a node with protocol v2 said of itself, whatever its connection is for.
    pub fn said_hello(&self, hello: &Hello) {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.capabilities.insert(hello.node_id.clone(), hello.capabilities.clone());
        if let Some(member) = state.members.get_mut(&hello.node_id) {
            member.rpc_capabilities.clone_from(&hello.capabilities);
            let labels = hello.labels();
            // A node whose settings do not say them may have told them by protocol v1.
            if !labels.is_empty() {
                member.labels = labels;
            }
            state.dirty = true;
        }
    }

    /// A connection of this node ended; its row stays.
    pub fn disconnected(&self, id: &str, protocol: Protocol) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if matches!(protocol, Protocol::V2 | Protocol::Calls) {
            state.capabilities.remove(id);
        }
        if protocol == Protocol::Calls {
            return;
        }
        if let Some(member) = state.members.get_mut(id) {
            member.connections = member.connections.saturating_sub(1);
            if member.connections == 0 {
                self.tell("left", id, member, &state.made);
            }
            state.dirty = true;
        }
    }

    /// News of a node from its link; `listed`: from now on Kong's own table shows it.
    pub fn record(&self, id: &str, record: &NodeRecord, detail: Option<String>, listed: bool) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(member) = state.members.get_mut(id) {
            let applied = member.config_hash != record.config_hash.as_str() && record.config_hash != ConfigHash::zero();
            let refused = member.sync_status != record.sync_status.as_str()
                && !matches!(record.sync_status, SyncStatus::Normal | SyncStatus::Unknown);
            record.sync_status.as_str().clone_into(&mut member.sync_status);
            member.sync_detail = detail;
            record.config_hash.as_str().clone_into(&mut member.config_hash);
            member.labels.clone_from(&record.info.labels);
            let plugins = record.info.plugins.iter().map(|plugin| plugin.name.clone()).collect::<Vec<_>>();
            member.plugins = (!plugins.is_empty()).then_some(plugins);
            member.last_seen_millis = unix_millis();
            member.recorded |= listed;
            if refused {
                self.tell("refused", id, member, &state.made);
            } else if applied {
                self.tell("applied", id, member, &state.made);
            }
            state.dirty = true;
        }
    }

    /// A node with protocol v2 asks for the changes since this version: that is what it has.
    pub fn pulled(&self, id: &str, held: &Held) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(member) = state.members.get_mut(id) {
            // After a refusal it asks for everything, but serves what it had.
            let asks_everything = held.version == 0 && member.last_error.is_some();
            let hash = if asks_everything { ConfigHash::from(member.config_hash.as_str()) } else { held.hash.clone() };
            let applied = member.config_hash != hash.as_str() && held.version > 0;
            SyncStatus::Normal.as_str().clone_into(&mut member.sync_status);
            member.sync_detail = None;
            hash.as_str().clone_into(&mut member.config_hash);
            // What an earlier connection by protocol v1 told may be of another installation.
            member.plugins = None;
            member.last_seen_millis = unix_millis();
            member.recorded = true;
            if applied {
                member.last_error = None;
                self.tell("applied", id, member, &state.made);
            }
            state.dirty = true;
        }
    }

    /// What a node with our own sync said of itself.
    pub fn introduced(&self, id: &str, labels: &BTreeMap<String, String>, plugins: Vec<String>) {
        self.change(id, |member| {
            member.labels.clone_from(labels);
            member.plugins = Some(plugins);
            member.recorded = true;
            None
        });
    }

    /// A node with our own sync may be sent the configuration (None), or may not: Kong's status and the reason.
    pub fn judged(&self, id: &str, withheld: Option<(&str, &str)>) {
        self.change(id, |member| {
            let status = withheld.map_or(SyncStatus::Normal.as_str(), |(status, _)| status);
            let refused = withheld.is_some() && member.sync_status != status;
            status.clone_into(&mut member.sync_status);
            member.sync_detail = withheld.map(|(_, words)| words.to_owned());
            refused.then_some("refused")
        });
    }

    /// A node with our own sync came with this version.
    pub fn holds(&self, id: &str, version: u64, digest: &str) {
        self.change(id, |member| {
            member.applied_version = Some(version);
            digest.clone_into(&mut member.config_hash);
            None
        });
    }

    /// A node with our own sync has put a version in force.
    pub fn applied(&self, id: &str, applied: &Applied) {
        let committed = self.first_committed(id, applied.version);
        self.change(id, |member| {
            let now = unix_millis();
            // What was committed while it was away says nothing about how fast changes travel.
            if let Some(committed) = committed.filter(|committed| *committed >= member.connected_millis) {
                member.lags.add(now, now.saturating_sub(committed));
            }
            member.applied_version = Some(applied.version);
            member.config_hash.clone_from(&applied.digest);
            (member.stored_micros, member.active_micros) = (Some(applied.stored_us), Some(applied.active_us));
            (member.last_error, member.refusal) = (None, None);
            member.last_seen_millis = now;
            Some("applied")
        });
    }

    /// When the oldest version was committed that a node had not yet put in force, up to this one.
    fn first_committed(&self, id: &str, version: u64) -> Option<u64> {
        let state = self.lock();
        let before = state.members.get(id)?.applied_version.unwrap_or(0);
        let missing = state.committed.iter().find(|(committed, _)| *committed > before);
        missing.filter(|(committed, _)| *committed <= version).map(|(_, millis)| *millis)
    }

    /// A node with our own sync refused a version and serves what it had.
    pub fn refused_rows(&self, id: &str, refused: &Refused) {
        self.change(id, |member| {
            let row = match (&refused.entity, &refused.id) {
                (Some(entity), Some(id)) => format!("{entity} {id}: "),
                _ => String::new(),
            };
            member.last_error = Some(format!("version {}: {row}{}", refused.version, refused.fault));
            member.refusal = Some(FleetRefusal {
                version: refused.version,
                entity: refused.entity.clone(),
                id: refused.id.clone(),
                fault: refused.fault.clone(),
            });
            Some("refused")
        });
    }

    /// A node with our own sync asked for everything, since what it held did not fit.
    pub fn diverged(&self, id: &str) {
        self.change(id, |member| {
            member.divergences += 1;
            None
        });
    }

    /// A node was heard.
    pub fn alive(&self, id: &str) {
        self.change(id, |member| {
            member.last_seen_millis = unix_millis();
            None
        });
    }

    /// A node stops on purpose.
    pub fn says_goodbye(&self, id: &str) {
        self.change(id, |member| {
            member.left = true;
            None
        });
    }

    /// How many nodes have a connection.
    pub fn connected_nodes(&self) -> usize {
        self.lock().members.values().filter(|member| member.connections > 0).count()
    }

    /// Changes a row, and tells what it did if it is worth telling.
    fn change(&self, id: &str, change: impl FnOnce(&mut Member) -> Option<&'static str>) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(member) = state.members.get_mut(id) {
            if let Some(what) = change(member) {
                self.tell(what, id, member, &state.made);
            }
            state.dirty = true;
        }
    }

    /// A node refused what it was sent and serves what it had.
    pub fn refused(&self, id: &str, fault: String) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(member) = state.members.get_mut(id) {
            member.last_error = Some(fault);
            self.tell("refused", id, member, &state.made);
            state.dirty = true;
        }
    }

    /// Rows of `GET /clustering/data-planes`, ascending by id.
    pub fn rows(&self) -> Vec<DataPlaneRow> {
        let mut state = self.lock();
        self.purge(&mut state);
        let now = unix_millis() / 1000;
        let delay = self.purge_delay.as_secs();
        let recorded = state.members.iter().filter(|(_, member)| member.recorded);
        recorded.map(|(id, member)| row(id, member, now, delay)).collect()
    }

    /// Answer of `GET /gwctl/fleet`.
    pub fn fleet(&self, version: u64) -> Fleet {
        let mut state = self.lock();
        self.purge(&mut state);
        let now_millis = unix_millis();
        let items = state.members.iter().map(|(id, row)| member(id, row, &state, version, now_millis)).collect();
        let config_hash = hash_in_force(&state, version);
        Fleet { kind: Fleet::KIND.to_owned(), version, config_hash, now_millis, items }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The table holds plain values; one that panicked while writing left a readable row.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn purge(&self, state: &mut State) {
        let oldest = unix_millis().saturating_sub(u64::try_from(self.purge_delay.as_millis()).unwrap_or(u64::MAX));
        let before = state.members.len();
        state.members.retain(|_, member| member.connections > 0 || member.last_seen_millis > oldest);
        state.dirty |= state.members.len() != before;
    }
}

/// Kong's row of a node with protocol v2 has its id for a host name, and up to Kong 3.9 no end of the certificate.
fn row(id: &str, member: &Member, now: u64, purge_delay: u64) -> DataPlaneRow {
    let last_seen = member.last_seen_millis / 1000;
    let pulls = member.protocol == "v2";
    let dated = !pulls || Dialect::of(&member.version) == Dialect::Texts;
    DataPlaneRow {
        id: id.to_owned(),
        hostname: if pulls { id.to_owned() } else { member.hostname.clone() },
        ip: member.ip.clone(),
        version: member.version.clone(),
        sync_status: member.sync_status.clone(),
        config_hash: member.config_hash.clone(),
        last_seen,
        updated_at: last_seen,
        labels: (!member.labels.is_empty()).then(|| member.labels.clone()),
        certificate_expires_at: Some(member.certificate_expires_at.filter(|_| dated)),
        rpc_capabilities: member.rpc_capabilities.clone(),
        ttl: (last_seen + purge_delay).saturating_sub(now),
    }
}

/// The version a data plane has, and since when the oldest change it lacks has been waiting.
fn progress(row: &Member, state: &State, version: u64, now_millis: u64) -> (Option<u64>, Option<u64>) {
    let since = |millis: u64| now_millis.saturating_sub(millis);
    if matches!(row.protocol.as_str(), "v2" | "gwctl") {
        let applied = row.version();
        let missing = state.committed.iter().find(|(version, _)| Some(*version) > applied);
        // Of versions from before this process the moment is not known.
        let lag = if applied >= Some(version) { Some(0) } else { missing.map(|(_, millis)| since(*millis)) };
        return (applied, lag);
    }
    let position = state.made.iter().rposition(|payload| payload.hash.as_str() == row.config_hash);
    let first_missing = match position {
        Some(position) => state.made.get(position + 1),
        None => state.made.front(),
    };
    let applied = position.and_then(|position| Some(state.made.get(position)?.version));
    (applied, Some(first_missing.map_or(0, |payload| since(payload.since_millis))))
}

/// What the nodes should have: the digest where all that are connected have our own sync, else the hash of the payload.
fn hash_in_force(state: &State, version: u64) -> Option<String> {
    let connected =
        |protocol: &str| state.members.values().any(|member| member.connections > 0 && member.protocol == protocol);
    if connected("gwctl") && !connected("v1") {
        return state.digest.as_ref().filter(|(newest, _)| *newest == version).map(|(_, digest)| digest.clone());
    }
    state.made.back().filter(|_| !state.unmade).map(|made| made.hash.to_string())
}

fn member(id: &str, row: &Member, state: &State, version: u64, now_millis: u64) -> FleetMember {
    let (applied_version, lag_millis) = progress(row, state, version, now_millis);
    FleetMember {
        id: id.to_owned(),
        name: row.hostname.clone(),
        hostname: row.hostname.clone(),
        labels: row.labels.clone(),
        address: row.ip.clone(),
        version: row.version.clone(),
        sync_status: row.sync_status.clone(),
        sync_detail: row.sync_detail.clone(),
        connected: row.connections > 0,
        last_error: row.last_error.clone(),
        protocol: Some(row.protocol.clone()),
        last_seen_millis: row.last_seen_millis,
        config_hash: Some(row.config_hash.clone()),
        applied_version,
        target_version: Some(version),
        lag_millis,
        certificate_expires_at: row.certificate_expires_at,
        plugins: row.plugins.clone(),
        state: Some(row.state(now_millis).to_owned()),
        protocol_reason: row.protocol_reason.map(str::to_owned),
        lags: row.lags.over(now_millis),
        stored_micros: row.stored_micros,
        active_micros: row.active_micros,
        apply_millis: row.active_micros.map(|micros| micros.div_ceil(1000)),
        refusal: row.refusal.clone(),
        divergences: (row.divergences > 0).then_some(row.divergences),
        ..FleetMember::default()
    }
}

#[cfg(test)]
mod tests;

//! What the control plane knows of its data planes: who they are, when they were last heard, what they serve.
//!
//! Rows live in memory and are written to a setting of the store now and then, so that a restarted control plane shows
//! its fleet at once. They are no configuration: they have no version, and nothing is pushed when they change.

use crate::calls::Calls;
use gwctl_admin_api::FleetNews;
use gwctl_entities::EntityError;
use gwctl_store::{Store, unix_millis};
use gwctl_wire::ConfigHash;
use gwctl_wire::compat::SyncStatus;
use gwctl_wire::v1::cp_link::NodeRecord;
use gwctl_wire::v2::{Held, Hello};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast;

mod bounds;
mod lags;
mod member;
mod own_sync;
mod views;

use member::Member;
pub use member::{Identity, Protocol};
pub use own_sync::Seat;

/// Setting of the store that holds the rows.
const SETTING: &str = "fleet";

/// News waiting for a listener at most; a slower one is told that it missed some.
const NEWS: usize = 1024;

/// Payloads remembered to tell how far behind a reported hash is.
const REMEMBERED: usize = 1024;

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
    /// Why the newest configuration cannot be sent as a whole.
    failed: Option<String>,
    /// Versions of this process's time and when they were committed.
    committed: VecDeque<(u64, u64)>,
    /// What nodes answer by protocol v2, and how many connections of theirs said so: Kong nodes have one for each worker.
    capabilities: BTreeMap<String, (usize, Vec<String>)>,
    /// Newest version and its digest, which is the hash of nodes with our own sync.
    digest: Option<(u64, String)>,
    dirty: bool,
    /// Connections so far.
    seats: u64,
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
        (state.unmade, state.failed) = (false, None);
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
        self.lock().members.values().any(|member| !member.names_versions())
    }

    /// There is a new version of which no payload is made.
    pub fn payload_not_made(&self) {
        self.lock().unmade = true;
    }

    /// No payload can be made of the newest version.
    pub fn payload_failed(&self, why: String) {
        self.lock().failed = Some(why);
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
    pub fn connected(&self, identity: &Identity) -> Seat {
        let Some(protocol) = identity.protocol.name() else { return Seat::default() };
        let mut guard = self.lock();
        let state = &mut *guard;
        state.seats += 1;
        if !state.members.contains_key(&identity.id) {
            bounds::make_room(&mut state.members);
        }
        let member = state.members.entry(identity.id.clone()).or_default();
        member.connections += 1;
        member.newest = state.seats;
        member.hostname.clone_from(&identity.hostname);
        member.ip.clone_from(&identity.ip);
        member.version.clone_from(&identity.version);
        member.certificate_expires_at = identity.certificate_expires_at;
        protocol.clone_into(&mut member.protocol);
        member.protocol_reason = Some(identity.reason);
        member.left = false;
        member.last_seen_millis = unix_millis();
        member.connected_millis = member.last_seen_millis;
        // What it answered in earlier times says nothing.
        let said = state.capabilities.get(&identity.id);
        member.rpc_capabilities = said.map(|(_, capabilities)| capabilities.clone()).unwrap_or_default();
        if member.sync_status.is_empty() {
            "unknown".clone_into(&mut member.sync_status);
            ConfigHash::zero().as_str().clone_into(&mut member.config_hash);
        }
        // Kong nodes have a connection for each of their workers.
        if member.connections == 1 {
            self.tell("joined", &identity.id, member, &state.made);
        }
        state.dirty = true;
        Seat { id: identity.id.clone(), number: state.seats }
    }

    /// What a node with protocol v2 said of itself on a new connection, whatever it is for; to be told of its end as well.
    pub fn said_hello(&self, hello: &Hello) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let capabilities = bounds::names(&hello.capabilities);
        let said = state.capabilities.entry(hello.node_id.clone()).or_default();
        *said = (said.0 + 1, capabilities.clone());
        if let Some(member) = state.members.get_mut(&hello.node_id) {
            member.rpc_capabilities = capabilities;
            let labels = bounds::labels(&hello.labels());
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
        if matches!(protocol, Protocol::V2 | Protocol::Calls)
            && let Some((connections, _)) = state.capabilities.get_mut(id)
        {
            *connections -= 1;
            if *connections == 0 {
                state.capabilities.remove(id);
            }
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
            member.labels = bounds::labels(&record.info.labels);
            let plugins = bounds::names(record.info.plugins.iter().map(|plugin| &plugin.name));
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

    /// A node with protocol v2 cannot be sent what it asked for.
    pub fn not_sent(&self, id: &str, why: String) {
        let mut state = self.lock();
        if let Some(member) = state.members.get_mut(id) {
            member.sync_detail = Some(why);
        }
    }

    /// How many nodes have a connection.
    pub fn connected_nodes(&self) -> usize {
        self.lock().members.values().filter(|member| member.connections > 0).count()
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

#[cfg(test)]
mod tests;

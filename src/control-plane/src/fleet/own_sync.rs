//! What is told by our own sync. A report is told once, so one that arrives late, by a connection the node has given up,
//! must not stand in the place of a later one.

use super::{FleetTable, Member, bounds};
use gwctl_entities::fleet::FleetRefusal;
use gwctl_store::unix_millis;
use gwctl_wire::compat::SyncStatus;
use gwctl_wire::stream::message::{Applied, Refused};
use std::collections::BTreeMap;

/// How long, in milliseconds, the end of a connection may be heard beside the next one of the same node.
const UNDER_WAY: u64 = 10_000;

/// What is told of two nodes with one id.
pub(super) const SHARED_ID: &str = "another data plane is connected under the same id (kong.id copied, or node_id set for \
                                    several): what is shown is mostly of the one that came last";

/// The place of one connection in the table.
#[derive(Debug, Clone, Default)]
pub struct Seat {
    pub(super) id: String,
    pub(super) number: u64,
}

impl FleetTable {
    /// What a node with our own sync said of itself.
    pub fn introduced(&self, seat: &Seat, labels: &BTreeMap<String, String>, plugins: &[String]) {
        self.change(seat, |member| {
            member.labels = bounds::labels(labels);
            member.plugins = Some(bounds::names(plugins));
            member.recorded = true;
            None
        });
    }

    /// A node with our own sync may be sent the configuration (None), or may not: Kong's status and the reason.
    pub fn judged(&self, seat: &Seat, withheld: Option<(&str, &str)>) {
        self.change(seat, |member| {
            let status = withheld.map_or(SyncStatus::Normal.as_str(), |(status, _)| status);
            let refused = withheld.is_some() && member.sync_status != status;
            status.clone_into(&mut member.sync_status);
            member.sync_detail = withheld.map(|(_, words)| words.to_owned());
            refused.then_some("refused")
        });
    }

    /// A node with our own sync came with this version.
    pub fn holds(&self, seat: &Seat, version: u64, digest: &str) {
        self.change(seat, |member| {
            member.applied_version = Some(version);
            member.config_hash = bounds::explanation(digest);
            None
        });
    }

    /// A node with our own sync has put a version in force.
    pub fn applied(&self, seat: &Seat, applied: &Applied) {
        let committed = self.first_committed(&seat.id, applied.version);
        self.change(seat, |member| {
            let now = unix_millis();
            // What was committed while it was away says nothing about how fast changes travel.
            if let Some(committed) = committed.filter(|committed| *committed >= member.connected_millis) {
                member.lags.add(now, now.saturating_sub(committed));
            }
            member.applied_version = Some(applied.version);
            member.config_hash = bounds::explanation(&applied.digest);
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
    pub fn refused_rows(&self, seat: &Seat, refused: &Refused) {
        self.change(seat, |member| {
            let cut = |said: &Option<String>| said.as_deref().map(bounds::explanation);
            let (entity, id, fault) = (cut(&refused.entity), cut(&refused.id), bounds::explanation(&refused.fault));
            let row = match (&entity, &id) {
                (Some(entity), Some(id)) => format!("{entity} {id}: "),
                _ => String::new(),
            };
            member.last_error = Some(format!("version {}: {row}{fault}", refused.version));
            member.refusal = Some(FleetRefusal { version: refused.version, entity, id, fault });
            Some("refused")
        });
    }

    /// A node with our own sync asked for everything, since what it held did not fit.
    pub fn diverged(&self, seat: &Seat) {
        self.change(seat, |member| {
            member.divergences += 1;
            None
        });
    }

    /// A node was heard.
    pub fn alive(&self, seat: &Seat) {
        self.change(seat, |member| {
            member.last_seen_millis = unix_millis();
            None
        });
        self.heard(seat);
    }

    /// A connection was heard of a protocol by which a node has only one. What the one before had still under way when it
    /// ended is heard soon after the newest began; later it is another node with the same id.
    pub fn heard(&self, seat: &Seat) {
        let (now, mut state) = (unix_millis(), self.lock());
        let older = |member: &&mut Member| {
            member.newest > seat.number && now.saturating_sub(member.connected_millis) >= UNDER_WAY
        };
        let Some(member) = state.members.get_mut(&seat.id).filter(older) else { return };
        if !member.shares_id(now) {
            tracing::warn!(node = seat.id, address = member.ip, "{SHARED_ID}");
        }
        member.twin_millis = now;
    }

    /// A node stops on purpose.
    pub fn says_goodbye(&self, seat: &Seat) {
        self.change(seat, |member| {
            member.left = true;
            None
        });
    }

    /// Changes a row, and tells what it did if it is worth telling. What an earlier connection still
    /// brings is of the past.
    fn change(&self, seat: &Seat, change: impl FnOnce(&mut Member) -> Option<&'static str>) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let member = state.members.get_mut(&seat.id).filter(|member| member.newest == seat.number);
        if let Some(member) = member {
            if let Some(what) = change(member) {
                self.tell(what, &seat.id, member, &state.made);
            }
            state.dirty = true;
        }
    }
}

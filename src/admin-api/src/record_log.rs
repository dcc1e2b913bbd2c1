//! The log of changes as the API shows it, and the news of data planes.

use gwctl_entities::Record;
use std::collections::BTreeMap;

/// Heading of one version of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionHeading {
    /// Its number.
    pub version: u64,
    /// Unix time of the commit in milliseconds.
    pub time_millis: u64,
    /// Name of the token, user or program.
    pub who: String,
    /// Door and address.
    pub from: String,
    /// How many records it changed.
    pub changes: usize,
}

/// What a version did to one record.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordChange {
    /// Schema name of the entity.
    pub entity: String,
    /// Primary key text.
    pub id: String,
    /// The record before; None when it was created.
    pub old: Option<Record>,
    /// The record after; None when it was deleted.
    pub new: Option<Record>,
}

impl RecordChange {
    /// `created`, `updated` or `deleted`.
    pub(crate) fn action(&self) -> &'static str {
        action(self.old.as_ref(), self.new.as_ref())
    }
}

fn action(old: Option<&Record>, new: Option<&Record>) -> &'static str {
    match (old, new) {
        (None, _) => "created",
        (_, None) => "deleted",
        _ => "updated",
    }
}

/// One version with what it did.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionChanges {
    /// Heading of the version.
    pub heading: VersionHeading,
    /// Deletions first.
    pub changes: Vec<RecordChange>,
}

/// One version in short: a version may hold a whole configuration, and many may ask for it.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionSummary {
    /// Heading of the version.
    pub heading: VersionHeading,
    /// The first changes, as many as were asked for.
    pub named: Vec<RecordChange>,
    /// How many records it created, updated and deleted; without those it did not.
    pub counts: BTreeMap<&'static str, usize>,
    /// How many changes may be named.
    limit: usize,
}

impl VersionSummary {
    /// Of nothing yet; `limit` changes will be named.
    pub fn new(heading: VersionHeading, limit: usize) -> Self {
        Self { heading, named: Vec::new(), counts: BTreeMap::new(), limit }
    }

    /// Counts a change of a record, and names it while there is room.
    pub fn add(&mut self, entity: &str, id: &str, old: Option<&Record>, new: Option<&Record>) {
        *self.counts.entry(action(old, new)).or_default() += 1;
        if self.named.len() < self.limit {
            let (entity, id) = (entity.to_owned(), id.to_owned());
            self.named.push(RecordChange { entity, id, old: old.cloned(), new: new.cloned() });
        }
    }
}

/// The version after another, in short.
#[derive(Debug, Clone, PartialEq)]
pub enum SummaryAfter {
    /// There is none yet.
    Nothing,
    /// This one.
    Version(Box<VersionSummary>),
    /// The log does not reach so far back.
    Forgotten {
        /// The oldest version the changes after which are still known.
        oldest: u64,
    },
}

/// The versions after another.
#[derive(Debug, Clone, PartialEq)]
pub enum ChangesAfter {
    /// Oldest first; empty when there are none.
    Versions(Vec<VersionChanges>),
    /// The log does not reach so far back.
    Forgotten {
        /// The oldest version the changes after which are still known.
        oldest: u64,
    },
}

/// Something a data plane did, for `GET /gwctl/events`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetNews {
    /// `joined`, `left`, `applied` or `refused`.
    pub what: &'static str,
    /// Node id.
    pub id: String,
    /// Its host.
    pub hostname: String,
    /// Its sync status, in Kong's words.
    pub sync_status: String,
    /// Hash of the configuration it serves.
    pub config_hash: String,
    /// Version it serves, where known.
    pub version: Option<u64>,
    /// Why it is refused.
    pub detail: Option<String>,
}

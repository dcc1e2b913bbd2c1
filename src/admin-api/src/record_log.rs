//! The log of changes as the API shows it, and the news of data planes.

use gwctl_entities::Record;

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
        match (&self.old, &self.new) {
            (None, _) => "created",
            (_, None) => "deleted",
            _ => "updated",
        }
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

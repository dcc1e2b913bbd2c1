//! What every storage engine promises, and the values that cross the promise.

use crate::digest::Digest;
use gwctl_entities::{EntityError, Read, Record, Registry, Write};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::sync::watch;

/// The body of a write: runs inside one transaction.
///
/// It may be called more than once (the engine starts over when the map had to grow or when another writer was
/// faster), so it must not consume what it captured. It must not write to the same store by another way: batches run
/// one after another.
pub type Work<'a> = dyn FnMut(&mut dyn Write) -> Result<(), EntityError> + 'a;

/// A store of records with a change log. All calls block: asynchronous callers use a blocking thread.
pub trait Store: Send + Sync {
    /// The schemas by which records are indexed and checked.
    fn registry(&self) -> &Arc<Registry>;

    /// Number of the last committed batch, 0 for a store never written.
    fn version(&self) -> u64;

    /// A consistent view as of now. Let it go soon: pages it can see are not reused, and the map cannot grow.
    /// Do not call [`Store::write`] while holding one on the same thread.
    fn read(&self) -> Result<Box<dyn Read + '_>, EntityError>;

    /// Runs `work` as one atomic batch: durable when this returns, or as if it had never begun when `work` fails.
    ///
    /// A batch that in sum changed nothing gets no version.
    fn write(&self, origin: &Origin, work: &mut Work<'_>) -> Result<Commit, EntityError>;

    /// Like [`Store::write`], but `work` starts from an empty store. Records it puts back unchanged make no delta.
    fn replace_all(&self, origin: &Origin, work: &mut Work<'_>) -> Result<Commit, EntityError>;

    /// The versions after `version`, oldest first, at most `limit` of them.
    fn changes_since(&self, version: u64, limit: usize) -> Result<Changes, EntityError>;

    /// One version with its deltas; None when it is not in the log (any more).
    fn change(&self, version: u64) -> Result<Option<Change>, EntityError>;

    /// The deltas of one version from number `skip` on, until `bytes` of what is stored of them are passed (one at least);
    /// None when it is not in the log (any more). For those who must bear a version of any size.
    fn part_of_change(&self, version: u64, skip: usize, bytes: usize) -> Result<Option<Part>, EntityError>;

    /// What tells this store from every other, whatever their versions; made with the store.
    fn id(&self) -> &str;

    /// The newest version and the digest of what it left, as of the same moment.
    fn position(&self) -> Result<Position, EntityError>;

    /// Digest of what this version left; None when the log does not hold it (any more).
    fn digest_at(&self, version: u64) -> Result<Option<Digest>, EntityError>;

    /// The rows that data planes get, as stored, parents before children, ids ascending, expired ones included: those
    /// behind `after`, until `bytes` of JSON are passed. Each call is a short read of its own.
    fn rows_after(&self, after: Option<&Place>, bytes: usize) -> Result<Rows, EntityError>;

    /// Headings of the log, newest first, at most `limit`, all below `before` when given.
    fn history(&self, before: Option<u64>, limit: usize) -> Result<Vec<HistoryEntry>, EntityError>;

    /// Tells of each new version once it is durable; the value is the newest version, so readers may skip some.
    fn watch(&self) -> watch::Receiver<u64>;

    /// Deletes rows whose `ttl` has passed, as a batch of its own. At most `limit` rows.
    ///
    /// Reads never show such rows; this gives their space back and tells the data planes.
    fn purge_expired(&self, limit: usize) -> Result<Commit, EntityError>;

    /// Forgets all but the newest `keep` versions of the log; how many were forgotten.
    ///
    /// Writes do this by themselves, a few versions at a time, when more are there than the store is set to keep.
    fn trim_log(&self, keep: u64) -> Result<u64, EntityError>;

    /// A value the node keeps outside the configuration (`cluster_id`), without version or delta.
    fn setting(&self, key: &str) -> Result<Option<String>, EntityError>;

    /// Sets such a value, or removes it.
    fn set_setting(&self, key: &str, value: Option<&str>) -> Result<(), EntityError>;

    /// The stored value, or `value`, which is stored first, when there was none. Two nodes get the same answer.
    fn setting_or_set(&self, key: &str, value: &str) -> Result<String, EntityError>;
}

impl dyn Store + '_ {
    /// [`Store::write`] with a result: what the last run of `work` gave, and the commit.
    pub fn transact<T>(
        &self,
        origin: &Origin,
        mut work: impl FnMut(&mut dyn Write) -> Result<T, EntityError>,
    ) -> Result<(T, Commit), EntityError> {
        let mut value = None;
        let commit = self.write(origin, &mut |write| {
            value = Some(work(write)?);
            Ok(())
        })?;
        let value =
            value.ok_or_else(|| EntityError::Database("the store committed without running the work".into()))?;
        Ok((value, commit))
    }
}

/// Where a configuration stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// Number of the newest version.
    pub version: u64,
    /// Digest of the rows it left.
    pub digest: Digest,
}

/// The place of a row among all that data planes get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Schema name of the entity.
    pub entity: String,
    /// Primary key text.
    pub id: String,
}

/// Some rows in a row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// Each with its place.
    pub rows: Vec<(Place, Record)>,
    /// No row follows.
    pub last: bool,
}

/// Who caused a batch and through which door, for history and audit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The person, token or program, as far as known; empty when not.
    pub who: String,
    /// The door and address: `admin-api 127.0.0.1`, `config file`, `rollback to 41`.
    pub from: String,
}

impl Origin {
    /// An origin from its two texts.
    pub fn new(who: impl Into<String>, from: impl Into<String>) -> Origin {
        Origin { who: who.into(), from: from.into() }
    }
}

/// What one batch did to one record. Several changes of a record in a batch are one delta.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delta {
    /// The version that made the change.
    pub version: u64,
    /// Schema name of the entity.
    pub entity: String,
    /// Primary key text.
    pub id: String,
    /// The record before; None when it was created.
    pub old: Option<Record>,
    /// The record after; None when it was deleted.
    pub new: Option<Record>,
}

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// The version of this batch; when nothing changed, the version there was already.
    pub version: u64,
    /// How many records it changed; [`Store::change`] tells which. 0: nothing changed.
    pub changes: usize,
}

/// One version of the log.
#[derive(Debug, Clone)]
pub struct Change {
    /// Its number: versions count up by one.
    pub version: u64,
    /// Unix time of the commit in milliseconds.
    pub time_millis: u64,
    /// Who and through which door.
    pub origin: Origin,
    /// Digest of what it left; None for versions from before digests were kept.
    pub digest: Option<Digest>,
    /// Deletions first, children before parents; then the others, parents before children.
    pub deltas: Arc<[Delta]>,
}

/// Some deltas of one version.
#[derive(Debug, Clone)]
pub struct Part {
    /// The version with just these deltas.
    pub change: Change,
    /// How many deltas the version has in all.
    pub total: usize,
    /// None of them follows.
    pub last: bool,
}

/// Answer of [`Store::changes_since`].
#[derive(Debug, Clone)]
pub enum Changes {
    /// The versions that follow, oldest first; empty when there are none.
    Deltas(Vec<Change>),
    /// The log cannot lead on from that version (forgotten, or never committed here): take a full snapshot.
    TooOld {
        /// The oldest version one can ask the changes since.
        oldest: u64,
    },
}

/// Heading of one version in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Its number.
    pub version: u64,
    /// Unix time of the commit in milliseconds.
    pub time_millis: u64,
    /// Who and through which door.
    pub origin: Origin,
    /// How many records it changed.
    pub deltas: usize,
}

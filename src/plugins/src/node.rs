//! What all requests of a node share.

use crate::{Counters, Exports};
use gwctl_entities::Record;
use std::sync::Arc;

/// A record could not be read. Plugins fail closed: the request is answered with status 500.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {entity}: {reason}")]
pub struct DirectoryError {
    /// Schema name.
    pub entity: String,
    /// What the store said.
    pub reason: String,
}

/// Records that are read by key at request time (consumers, credentials, groups), not held in the snapshot.
///
/// Reads are short and block (a point read of a memory-mapped file, with a cache in front); they see the newest
/// configuration. `entity` is always a schema name (`keyauth_credentials`).
pub trait Directory: Send + Sync {
    /// By primary key.
    fn get(&self, entity: &str, id: &str) -> Result<Option<Arc<Record>>, DirectoryError>;

    /// By unique field, endpoint key or cache key.
    fn find(&self, entity: &str, field: &str, value: &str) -> Result<Option<Arc<Record>>, DirectoryError>;

    /// All rows whose foreign field `field` refers to `id` (the groups of a consumer, its basic-auth credentials).
    fn children(&self, entity: &str, field: &str, id: &str) -> Result<Vec<Arc<Record>>, DirectoryError>;
}

/// A directory without records.
#[derive(Debug, Clone, Copy, Default)]
pub struct EmptyDirectory;

impl Directory for EmptyDirectory {
    fn get(&self, _entity: &str, _id: &str) -> Result<Option<Arc<Record>>, DirectoryError> {
        Ok(None)
    }

    fn find(&self, _entity: &str, _field: &str, _value: &str) -> Result<Option<Arc<Record>>, DirectoryError> {
        Ok(None)
    }

    fn children(&self, _entity: &str, _field: &str, _id: &str) -> Result<Vec<Arc<Record>>, DirectoryError> {
        Ok(Vec::new())
    }
}

/// The node as plugins see it, the same object for all workers and snapshots.
pub struct Node {
    /// Node id (UUID).
    pub id: String,
    /// Host name, empty when unknown.
    pub hostname: String,
    /// Records read by key.
    pub directory: Arc<dyn Directory>,
    /// Counters shared by all workers.
    pub counters: Counters,
    /// Queues of what plugins send to other servers.
    pub exports: Exports,
    /// Authorities in PEM that plugins trust in other servers, beside those of the system.
    pub authorities: Arc<[String]>,
}

impl Node {
    /// A node with fresh counters.
    pub fn new(id: impl Into<String>, hostname: impl Into<String>, directory: Arc<dyn Directory>) -> Node {
        Node {
            id: id.into(),
            hostname: hostname.into(),
            directory,
            counters: Counters::default(),
            exports: Exports::default(),
            authorities: Arc::default(),
        }
    }

    /// Trusts these authorities in other servers as well, each a text in PEM.
    pub fn trusting<'a>(self, authorities: impl IntoIterator<Item = &'a str>) -> Node {
        Node { authorities: authorities.into_iter().map(str::to_owned).collect(), ..self }
    }
}

//! What all requests of a node share.

use crate::{Counters, Exports};
use gwctl_entities::Record;
use std::sync::{Arc, PoisonError, RwLock};

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

/// Authorities, each a text in PEM; a reload may change them. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Authorities(Arc<RwLock<Arc<[String]>>>);

impl Authorities {
    /// Those in force; the same object until they change.
    pub fn now(&self) -> Arc<[String]> {
        // Whoever panicked while holding it held whole values.
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts others in force.
    pub fn set<'a>(&self, authorities: impl IntoIterator<Item = &'a str>) {
        let authorities: Arc<[String]> = authorities.into_iter().map(str::to_owned).collect();
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if *held != authorities {
            *held = authorities;
        }
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
    pub authorities: Authorities,
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
            authorities: Authorities::default(),
        }
    }

    /// Trusts these authorities in other servers as well, each a text in PEM.
    pub fn trusting<'a>(self, authorities: impl IntoIterator<Item = &'a str>) -> Node {
        self.authorities.set(authorities);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_the_same_object_until_they_are_others() {
        let node = Node::new("a", "b", Arc::new(EmptyDirectory)).trusting(["one"]);
        let first = node.authorities.now();
        node.authorities.set(["one"]);
        assert!(Arc::ptr_eq(&first, &node.authorities.now()));
        node.authorities.clone().set(["one", "two"]);
        assert_eq!(&*node.authorities.now(), ["one", "two"]);
    }
}

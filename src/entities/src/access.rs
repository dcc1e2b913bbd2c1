//! How stored records are read and written: the contract between the store and everything above it.
//!
//! All calls block; asynchronous callers run them on a blocking thread. `entity` is always a schema name
//! (`keyauth_credentials`, not `key-auths`); an unknown one is a bug of the caller and answers
//! [`EntityError::Database`].

use crate::{EntityError, Record};

/// Filter of a list by tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TagFilter {
    /// Has all of them (`a,b`).
    All(Vec<String>),
    /// Has at least one of them (`a/b`).
    Any(Vec<String>),
}

/// What a list asks for.
#[derive(Debug, Clone, Default)]
pub struct PageQuery {
    /// Rows at most, 1 to 1000 through the Admin API; internal callers may ask for more.
    pub size: usize,
    /// Primary key (`id`) of the first row wanted: rows with an id equal or greater follow. None: from the start.
    pub from: Option<String>,
    /// Only rows whose foreign field (first) refers to the id (second).
    pub parent: Option<(String, String)>,
    /// Only rows with these tags.
    pub tags: Option<TagFilter>,
}

/// One page of a list, ascending by primary key.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The rows, at most `size`.
    pub rows: Vec<Record>,
    /// Id of the first row of the next page; None on the last page.
    pub next: Option<String>,
}

/// A consistent view of the stored records. Rows whose `ttl` has passed are invisible.
pub trait Read {
    /// The version this view shows: number of the last committed batch, 0 for a store never written.
    fn version(&self) -> u64;
    /// The record with this primary key (`id`; for `parameters` its `key`).
    fn get(&self, entity: &str, id: &str) -> Result<Option<Record>, EntityError>;
    /// The record whose unique field, endpoint key or cache key (`field` = `cache_key`) has this value.
    fn get_by(&self, entity: &str, field: &str, value: &str) -> Result<Option<Record>, EntityError>;
    /// One page, ascending by primary key.
    fn page(&self, entity: &str, query: &PageQuery) -> Result<Page, EntityError>;
}

impl dyn Read + '_ {
    /// Every row of an entity, ascending by primary key.
    pub fn all_rows(&self, entity: &str) -> Result<Vec<Record>, EntityError> {
        let page = self.page(entity, &PageQuery { size: usize::MAX, ..PageQuery::default() })?;
        Ok(page.rows)
    }
}

/// A write transaction: sees its own changes; nothing is visible to others until it commits as a whole.
///
/// Records given must have passed the schema engine. Uniqueness (fields and cache key), foreign keys and
/// on-delete rules are enforced here.
pub trait Write: Read {
    /// Adds a record. Fails with code 3 (id in use), 5 (unique field in use) or 4 (foreign key to nothing).
    fn insert(&mut self, entity: &str, record: Record) -> Result<(), EntityError>;
    /// Replaces the record with the same id. Fails with code 6 when absent, else like `insert`.
    fn replace(&mut self, entity: &str, record: Record) -> Result<(), EntityError>;
    /// Deletes and cascades. False when there was none. Fails with code 4 when a restricting reference exists.
    fn delete(&mut self, entity: &str, id: &str) -> Result<bool, EntityError>;
    /// The `Write` as a plain reader (for functions that take `&dyn Read`).
    fn as_read(&self) -> &dyn Read;
}

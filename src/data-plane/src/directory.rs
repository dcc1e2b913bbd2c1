//! Records that plugins read by key: consumers and credentials, of which there may be millions.
//!
//! What was read last is remembered, decoded, until the configuration changes: most requests come from few clients.

mod remembered;

use gwctl_entities::{EntityError, PageQuery, Read, Record};
use gwctl_plugins::{Directory, DirectoryError};
use gwctl_store::{DataPlaneCache, Store};
use remembered::Remembered;
use std::sync::Arc;

/// Where the records are.
pub trait RecordSource: Send + Sync + 'static {
    /// A consistent view of the newest configuration.
    fn view(&self) -> Result<Box<dyn Read + '_>, EntityError>;

    /// Moves with every change of the configuration, not before a view shows it.
    fn generation(&self) -> u64;
}

impl RecordSource for DataPlaneCache {
    fn view(&self) -> Result<Box<dyn Read + '_>, EntityError> {
        self.read()
    }

    fn generation(&self) -> u64 {
        self.transactions()
    }
}

impl RecordSource for Arc<dyn Store> {
    fn view(&self) -> Result<Box<dyn Read + '_>, EntityError> {
        self.read()
    }

    fn generation(&self) -> u64 {
        self.version()
    }
}

/// [`Directory`] on a store or cache.
pub struct RecordDirectory<S> {
    source: Arc<S>,
    remembered: Remembered,
}

/// What stands for the primary key where a field is named.
const PRIMARY_KEY: &str = "";

impl<S: RecordSource> RecordDirectory<S> {
    /// Remembers nothing yet.
    pub fn new(source: Arc<S>) -> RecordDirectory<S> {
        RecordDirectory { source, remembered: Remembered::default() }
    }

    fn look<T>(
        &self,
        entity: &str,
        look: impl FnOnce(&dyn Read) -> Result<T, EntityError>,
    ) -> Result<T, DirectoryError> {
        let found = self.source.view().and_then(|view| look(&*view));
        found.map_err(|error| DirectoryError { entity: entity.to_owned(), reason: error.to_string() })
    }

    fn one(
        &self,
        key: [&str; 3],
        look: impl FnOnce(&dyn Read) -> Result<Option<Record>, EntityError>,
    ) -> Result<Option<Arc<Record>>, DirectoryError> {
        // Asked before the view is opened: what the view shows is never older than what it is remembered under.
        let generation = self.source.generation();
        if let Some(record) = self.remembered.get(key, generation) {
            return Ok(Some(record));
        }
        let [entity, ..] = key;
        let found = self.look(entity, look)?.map(Arc::new);
        if let Some(record) = &found {
            self.remembered.put(key, generation, record);
        }
        Ok(found)
    }
}

impl<S: RecordSource> Directory for RecordDirectory<S> {
    fn get(&self, entity: &str, id: &str) -> Result<Option<Arc<Record>>, DirectoryError> {
        self.one([entity, PRIMARY_KEY, id], |view| view.get(entity, id))
    }

    fn find(&self, entity: &str, field: &str, value: &str) -> Result<Option<Arc<Record>>, DirectoryError> {
        self.one([entity, field, value], |view| view.get_by(entity, field, value))
    }

    fn children(&self, entity: &str, field: &str, id: &str) -> Result<Vec<Arc<Record>>, DirectoryError> {
        let parent = Some((field.to_owned(), id.to_owned()));
        let query = PageQuery { size: usize::MAX, parent, ..PageQuery::default() };
        self.look(entity, |view| Ok(view.page(entity, &query)?.rows.into_iter().map(Arc::new).collect()))
    }
}

#[cfg(test)]
mod tests;

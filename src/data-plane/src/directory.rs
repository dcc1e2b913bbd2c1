//! Records that plugins read by key: consumers and credentials, of which there may be millions.

use gwctl_entities::{EntityError, PageQuery, Read, Record};
use gwctl_plugins::{Directory, DirectoryError};
use gwctl_store::{DataPlaneCache, Store};
use std::sync::Arc;

/// Where the records are.
pub trait RecordSource: Send + Sync + 'static {
    /// A consistent view of the newest configuration.
    fn view(&self) -> Result<Box<dyn Read + '_>, EntityError>;
}

impl RecordSource for DataPlaneCache {
    fn view(&self) -> Result<Box<dyn Read + '_>, EntityError> {
        self.read()
    }
}

impl RecordSource for Arc<dyn Store> {
    fn view(&self) -> Result<Box<dyn Read + '_>, EntityError> {
        self.read()
    }
}

/// [`Directory`] on a store or cache.
pub struct RecordDirectory<S>(pub Arc<S>);

impl<S: RecordSource> RecordDirectory<S> {
    fn look<T>(
        &self,
        entity: &str,
        look: impl FnOnce(&dyn Read) -> Result<T, EntityError>,
    ) -> Result<T, DirectoryError> {
        let found = self.0.view().and_then(|view| look(&*view));
        found.map_err(|error| DirectoryError { entity: entity.to_owned(), reason: error.to_string() })
    }
}

impl<S: RecordSource> Directory for RecordDirectory<S> {
    fn get(&self, entity: &str, id: &str) -> Result<Option<Arc<Record>>, DirectoryError> {
        self.look(entity, |view| Ok(view.get(entity, id)?.map(Arc::new)))
    }

    fn find(&self, entity: &str, field: &str, value: &str) -> Result<Option<Arc<Record>>, DirectoryError> {
        self.look(entity, |view| Ok(view.get_by(entity, field, value)?.map(Arc::new)))
    }

    fn children(&self, entity: &str, field: &str, id: &str) -> Result<Vec<Arc<Record>>, DirectoryError> {
        let parent = Some((field.to_owned(), id.to_owned()));
        let query = PageQuery { size: usize::MAX, parent, ..PageQuery::default() };
        self.look(entity, |view| Ok(view.page(entity, &query)?.rows.into_iter().map(Arc::new).collect()))
    }
}

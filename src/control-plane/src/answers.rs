//! What data planes with protocol v2 get when they ask for the changes since a version: the rows of the change log,
//! or everything. Each answer is made once and kept until the next version, since a fleet asks for the same.

use gwctl_entities::{DEFAULT_WORKSPACE, EntityError, EntitySchema, Map, Record, Registry, Value};
use gwctl_store::{Changes, Store};
use gwctl_wire::v2::sync::{self, FULL_SYNC_BEHIND, SentDelta};
use gwctl_wire::v2::{Dialect, RpcError};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Answers kept for the newest version. A fleet asks from a handful of versions.
const KEPT: usize = 64;

/// Maker of answers to `get_delta`.
pub(crate) struct Answers {
    store: Arc<dyn Store>,
    workspace: String,
    cluster_id: Arc<str>,
    /// `cluster_incremental_sync`; off, the links of protocol v2 have nothing to do.
    sync: bool,
    kept: Mutex<Kept>,
}

/// Answers that lead to one version, by their words and the version they start from; 0 is the full one.
#[derive(Default)]
struct Kept {
    version: u64,
    since: BTreeMap<(Dialect, u64), Arc<str>>,
}

#[derive(Debug, thiserror::Error)]
enum AnswerError {
    #[error(transparent)]
    Store(#[from] EntityError),
    #[error("cannot write rows as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Answers {
    pub(crate) fn new(store: Arc<dyn Store>, sync: bool) -> Result<Self, EntityError> {
        let workspace = store.setting_or_set("default_workspace", DEFAULT_WORKSPACE)?;
        let cluster_id = store.setting("cluster_id")?.unwrap_or_default().into();
        Ok(Self { store, workspace, cluster_id, sync, kept: Mutex::default() })
    }

    /// Which cluster this is.
    pub(crate) fn cluster_id(&self) -> Arc<str> {
        self.cluster_id.clone()
    }

    /// Whether data planes are offered `kong.sync.v2`.
    pub(crate) fn sync(&self) -> bool {
        self.sync
    }

    /// Tells of new versions.
    pub(crate) fn versions(&self) -> watch::Receiver<u64> {
        self.store.watch()
    }

    /// The result if it is at hand; does not block.
    pub(crate) fn ready(&self, version: u64, dialect: Dialect) -> Option<Arc<str>> {
        let newest = self.store.version();
        let kept = self.kept.try_lock().ok().filter(|kept| kept.version == newest)?;
        kept.since.get(&(dialect, since(version, newest, dialect))).cloned()
    }

    /// The result for a node that has `version`, as JSON text. Blocks.
    pub(crate) fn since(&self, version: u64, dialect: Dialect) -> Result<Arc<str>, RpcError> {
        // One thread makes an answer, the others wait for it.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = self.store.version();
        let since = since(version, newest, dialect);
        if kept.version != newest {
            *kept = Kept { version: newest, since: BTreeMap::new() };
        }
        if let Some(answer) = kept.since.get(&(dialect, since)) {
            return Ok(answer.clone());
        }
        let made = self.make(since, dialect).map_err(|error| {
            tracing::error!(%error, version, "cannot answer a data plane that asks for changes");
            RpcError::failed("the store of the control plane does not answer")
        });
        let (leads_to, answer) = made?;
        // Something may have been committed in the meantime; such an answer is right, but not kept.
        if leads_to == newest && kept.since.len() < KEPT {
            kept.since.insert((dialect, since), answer.clone());
        }
        Ok(answer)
    }

    /// The answer, and the version it leads to.
    fn make(&self, since: u64, dialect: Dialect) -> Result<(u64, Arc<str>), AnswerError> {
        if since > 0
            && let Changes::Deltas(changes) = self.store.changes_since(since, usize::MAX)?
        {
            let leads_to = changes.last().map_or(since, |change| change.version);
            let rows = changes.iter().flat_map(|change| change.deltas.iter());
            let rows: Vec<_> = rows.filter_map(|delta| self.changed(delta)).collect();
            return Ok((leads_to, sync::result(&rows, false, dialect)?.into()));
        }
        self.everything(dialect)
    }

    fn registry(&self) -> &Registry {
        self.store.registry()
    }

    fn changed<'a>(&'a self, delta: &'a gwctl_store::Delta) -> Option<SentDelta<'a>> {
        let schema = self.registry().entity(&delta.entity).filter(|schema| schema.db_export)?;
        let known = delta.new.as_ref().or(delta.old.as_ref())?;
        Some(SentDelta {
            kind: &schema.name,
            entity: delta.new.as_ref().map(|record| sent(self.registry(), schema, record)),
            pk: Some(primary_key(schema, known)),
            ws_id: &self.workspace,
            version: delta.version,
        })
    }

    fn everything(&self, dialect: Dialect) -> Result<(u64, Arc<str>), AnswerError> {
        let registry = self.registry();
        let mut schemas: Vec<_> = registry.entities().filter(|schema| schema.db_export).collect();
        schemas.sort_by(|one, other| sync::order(&one.name).cmp(&sync::order(&other.name)));
        let read = self.store.read()?;
        let version = read.version();
        let mut rows = Vec::new();
        for schema in schemas {
            for record in read.all_rows(&schema.name)? {
                let entity = Some(sent(registry, schema, &record));
                rows.push(SentDelta { kind: &schema.name, entity, pk: None, ws_id: &self.workspace, version });
            }
        }
        drop(read);
        let answer = sync::result(&rows, true, dialect)?;
        Ok((version, answer.into()))
    }
}

/// What a node is sent the changes since; 0: it has nothing or is far behind, so that everything is sent. Versions that the
/// log does not lead on from (forgotten, or of another store) come to the same when they are looked up.
///
/// Nodes of Kong 3.10 are sent everything at each change, as Kong does: the way they apply changes has no use there.
fn since(version: u64, newest: u64, dialect: Dialect) -> u64 {
    let leads_on = match dialect {
        Dialect::Integers => newest.saturating_sub(version) <= FULL_SYNC_BEHIND,
        Dialect::Texts => version == newest,
    };
    if leads_on { version } else { 0 }
}

/// A row as it is sent: complete, foreign keys as objects, `ttl` as the second of expiry.
fn sent(registry: &Registry, schema: &EntitySchema, record: &Record) -> Map<String, Value> {
    let mut row = registry.export_row(&schema.name, record);
    for key in &schema.foreign_keys {
        if let Some(value) = row.get_mut(&key.field).filter(|value| value.is_string()) {
            *value = Value::Object(Map::from_iter([("id".to_owned(), value.take())]));
        }
    }
    row
}

fn primary_key(schema: &EntitySchema, record: &Record) -> Map<String, Value> {
    let fields = schema.primary_key.iter();
    fields.map(|field| (field.clone(), record.get(field).cloned().unwrap_or_default())).collect()
}

#[cfg(test)]
mod tests;

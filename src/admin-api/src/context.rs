//! What the handling of one request has at hand.

use crate::answer::{bare, unexpected};
use crate::backend::{Backend, NodeFacts, Origin};
use crate::form;
use crate::mask::masked;
use crate::request::{Body, Request};
use gwctl_entities::{
    EntityError, EntitySchema, Fill, NodeKind, Page, PageQuery, Read, Record, Registry, Value, Write,
};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// State of one API that outlives requests.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Creation time given to the latest target. Targets are listed newest first, so two of one millisecond would
    /// have no order; each is made at least a millisecond younger than the one before.
    last_target_millis: AtomicU64,
    tokens: Mutex<()>,
}

impl Memory {
    /// Held from reading the tokens to writing them, so that no change is lost to another.
    pub(crate) fn changing_tokens(&self) -> MutexGuard<'_, ()> {
        // There is nothing behind the lock that a panic could leave half done.
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request being handled.
pub(crate) struct Context<'a> {
    pub(crate) backend: &'a dyn Backend,
    pub(crate) registry: Arc<Registry>,
    pub(crate) node: &'a NodeFacts,
    pub(crate) request: &'a Request,
    pub(crate) memory: &'a Memory,
    /// Requests must carry a token.
    pub(crate) asks_for_tokens: bool,
    /// Version of the records seen or written, for the answer's header.
    pub(crate) version: Cell<Option<u64>>,
}

impl Context<'_> {
    /// The schema of an entity that a resolved path named.
    pub(crate) fn schema(&self, entity: &str) -> Result<&EntitySchema, EntityError> {
        self.registry.entity(entity).ok_or_else(|| EntityError::Database(format!("no schema for {entity}")))
    }

    /// A consistent view of the records.
    pub(crate) fn read(&self) -> Result<Box<dyn Read + '_>, EntityError> {
        let read = self.backend.read()?;
        self.version.set(Some(read.version()));
        Ok(read)
    }

    pub(crate) fn filler(&self) -> Filler<'_> {
        Filler { backend: self.backend, now_millis: self.backend.now_millis() }
    }

    /// A filler whose time is later than that of any target made before.
    pub(crate) fn target_filler(&self) -> Filler<'_> {
        let now = self.backend.now_millis();
        let mut given = now;
        // The closure always gives a value, so the update cannot fail.
        let _ = self.memory.last_target_millis.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| {
            given = now.max(last + 1);
            Some(given)
        });
        Filler { backend: self.backend, now_millis: given }
    }

    pub(crate) fn present(&self, entity: &str, record: &Record) -> Record {
        let shown = self.registry.present(entity, record, self.backend.now_millis());
        if self.request.caller.sees_secrets() { shown } else { masked(&self.registry, entity, &shown) }
    }

    /// Records cannot be changed through the API of such a node.
    pub(crate) fn storeless(&self) -> bool {
        matches!(self.node.kind, NodeKind::DbLess | NodeKind::DataPlane)
    }

    /// The body as a record for `entity`. `stored` names the variant (plugin) a form without a name of its own is for.
    pub(crate) fn input(&self, schema: &EntitySchema, stored: Option<&Record>) -> Record {
        match &self.request.body {
            Body::Json(record) => record.clone(),
            Body::Form(pairs) => convert_form(schema, pairs, stored),
            Body::Empty | Body::Text(_) | Body::Raw(_) => Record::new(),
        }
    }

    /// Runs `work` in one transaction and gives its outcome. On a node without a store `work` runs on a view whose
    /// writes answer `unsupported`, so that everything checked before a write is checked there too.
    pub(crate) fn transact<T>(
        &self,
        unsupported: &str,
        work: impl FnMut(&mut dyn Write) -> Result<T, EntityError>,
    ) -> Result<T, EntityError> {
        self.transact_as(&self.request.origin, unsupported, work)
    }

    /// [`Self::transact`], signed in the history as given.
    pub(crate) fn transact_as<T>(
        &self,
        origin: &Origin,
        unsupported: &str,
        mut work: impl FnMut(&mut dyn Write) -> Result<T, EntityError>,
    ) -> Result<T, EntityError> {
        if self.storeless() {
            return work(&mut ReadOnly { read: self.backend.read()?, refusal: unsupported });
        }
        let (mut outcome, dry_run) = (None, self.request.dry_run);
        let written = self.backend.write(origin, &mut |write| {
            // A refusal tells the version it was judged by, a success the one it made.
            self.version.set(Some(write.version()));
            self.check_version(write.version())?;
            outcome = Some(work(write)?);
            // A failed batch leaves nothing behind, which is just what a dry run wants.
            if dry_run { Err(rolled_back(write.version())) } else { Ok(()) }
        });
        match written {
            Ok(version) => self.version.set(Some(version)),
            Err(EntityError::Bare { status: ROLLED_BACK, message }) => self.version.set(message.parse().ok()),
            Err(error) => return Err(error),
        }
        outcome.ok_or_else(unexpected)
    }

    /// Refuses a write that was meant for another version than the one in force (`If-Match`).
    fn check_version(&self, found: u64) -> Result<(), EntityError> {
        match &self.request.if_versions {
            Some(wanted) if !wanted.contains(&found) => Err(bare(
                412,
                format!("If-Match names another version than {found}, the one in force: read again and repeat"),
            )),
            _ => Ok(()),
        }
    }
}

/// Status of the error that ends the transaction of a dry run; it reaches nobody.
const ROLLED_BACK: u16 = 0;

/// Ends the transaction of a dry run, telling the version it began with.
fn rolled_back(version: u64) -> EntityError {
    bare(ROLLED_BACK, version.to_string())
}

/// A form as a record of the entity; plugins and vaults are read by the schema of the type the form names.
fn convert_form(schema: &EntitySchema, pairs: &[(String, form::Given)], stored: Option<&Record>) -> Record {
    let mut selector = Record::new();
    if let Some(key) = schema.subschema_key.as_deref().filter(|key| *key == "name") {
        let given = pairs.iter().find_map(|(name, given)| match given {
            form::Given::Text(text) if name == key => Some(Value::from(text.as_str())),
            _ => None,
        });
        let value = given.or_else(|| stored?.get(key).cloned()).unwrap_or(Value::Null);
        selector.insert(key.to_owned(), value);
    }
    let mut record = form::record(pairs, schema.schema_of(&selector));
    if let Some(Value::String(text)) = record.get("ttl")
        && let Some(seconds) = text.parse::<u64>().ok().filter(|_| schema.ttl)
    {
        record.insert("ttl".to_owned(), Value::from(seconds));
    }
    record
}

/// Generated values of one request: time stands still.
pub(crate) struct Filler<'a> {
    backend: &'a dyn Backend,
    now_millis: u64,
}

impl Fill for Filler<'_> {
    fn now_millis(&mut self) -> u64 {
        self.now_millis
    }

    fn uuid(&mut self) -> String {
        self.backend.new_uuid()
    }

    fn token(&mut self) -> String {
        self.backend.new_token()
    }
}

/// Records that can be looked at but not changed.
struct ReadOnly<'a> {
    read: Box<dyn Read + 'a>,
    refusal: &'a str,
}

impl ReadOnly<'_> {
    fn refuse<T>(&self) -> Result<T, EntityError> {
        Err(EntityError::Unsupported(self.refusal.to_owned()))
    }
}

impl Read for ReadOnly<'_> {
    fn version(&self) -> u64 {
        self.read.version()
    }

    fn get(&self, entity: &str, id: &str) -> Result<Option<Record>, EntityError> {
        self.read.get(entity, id)
    }

    fn get_by(&self, entity: &str, field: &str, value: &str) -> Result<Option<Record>, EntityError> {
        self.read.get_by(entity, field, value)
    }

    fn page(&self, entity: &str, query: &PageQuery) -> Result<Page, EntityError> {
        self.read.page(entity, query)
    }
}

impl Write for ReadOnly<'_> {
    fn insert(&mut self, _entity: &str, _record: Record) -> Result<(), EntityError> {
        self.refuse()
    }

    fn replace(&mut self, _entity: &str, _record: Record) -> Result<(), EntityError> {
        self.refuse()
    }

    fn delete(&mut self, _entity: &str, _id: &str) -> Result<bool, EntityError> {
        self.refuse()
    }

    fn as_read(&self) -> &dyn Read {
        self
    }
}

//! The embedded store: one folder, no server, crash-safe.

use crate::contract::{Change, Changes, Commit, HistoryEntry, Origin, Part, Place, Position, Rows, Store, Work};
use crate::digest::Digest;
use crate::environment::{Environment, FolderLock, MapSize, Reading, claim};
use crate::fault::{Fault, StoreError};
use crate::reading::View;
use crate::tables::Tables;
use crate::writing::Batch;
use crate::{check, log, reading};
use gwctl_entities::{EntityError, Page, PageQuery, Read, Record, Registry, Write};
use gwctl_lifecycle::{Clock, SystemClock};
use heed::{RoTxn, RwTxn};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Settings of an [`LmdbStore`].
#[derive(Clone)]
pub struct LmdbOptions {
    /// Sizes of the memory map.
    pub map_size: MapSize,
    /// Versions the change log keeps; at least 1.
    pub keep_versions: u64,
    /// Changes of records the log keeps, all versions together. Oldest versions are forgotten first, the newest never.
    pub keep_changes: u64,
    /// The clock by which rows expire and versions are dated.
    pub clock: Arc<dyn Clock>,
}

impl Default for LmdbOptions {
    /// The default map sizes, 100 000 versions of four million changes (some gigabytes), the system's clock.
    fn default() -> LmdbOptions {
        let map_size = MapSize::default();
        LmdbOptions { map_size, keep_versions: 100_000, keep_changes: 4_000_000, clock: Arc::new(SystemClock) }
    }
}

/// Unix time in milliseconds.
pub(crate) fn millis(clock: &dyn Clock) -> u64 {
    u64::try_from(clock.unix().as_millis()).unwrap_or(u64::MAX)
}

/// A [`Store`] in an LMDB folder.
///
/// Every commit is synced to disk before it is acknowledged. One process at a time may have a folder open.
pub struct LmdbStore {
    environment: Environment,
    registry: Arc<Registry>,
    /// Place of each entity in the order parents before children.
    ranks: BTreeMap<String, usize>,
    options: LmdbOptions,
    /// True once another process has the folder for itself.
    writer: Mutex<bool>,
    newest: watch::Sender<u64>,
    id: String,
}

/// Setting that holds the store's id.
const ID: &str = "store_id";

/// How one run of a batch ended.
enum Run {
    Done(Commit),
    Outgrown,
}

impl LmdbStore {
    /// Opens the store in `folder`, creating it (mode 700) when there is none.
    pub fn open(folder: &Path, registry: Arc<Registry>, options: LmdbOptions) -> Result<LmdbStore, StoreError> {
        LmdbStore::open_locked(folder, registry, options, claim(folder)?)
    }

    /// As [`LmdbStore::open`], under a lock that is held already.
    pub fn open_locked(
        folder: &Path,
        registry: Arc<Registry>,
        options: LmdbOptions,
        lock: FolderLock,
    ) -> Result<LmdbStore, StoreError> {
        let environment = Environment::open_claimed(folder, options.map_size, lock)?;
        let reading = environment.reading()?;
        let version = log::version(&reading.txn, &environment.tables).map_err(|fault| fault.at(folder))?;
        drop(reading);
        let ranks = registry.entities().enumerate().map(|(rank, schema)| (schema.name.clone(), rank)).collect();
        let newest = watch::Sender::new(version);
        let id = String::new();
        let mut store = LmdbStore { environment, registry, ranks, options, writer: Mutex::new(false), newest, id };
        store.settle()?;
        Ok(store)
    }

    /// Gives a new store its id, and a store of an older gwctl its digest.
    fn settle(&mut self) -> Result<(), StoreError> {
        let tables = &self.environment.tables;
        let (id, digest) =
            self.reading(|txn| Ok((tables.setting(txn, ID)?, log::has_digest(txn, tables, &self.registry)?)))?;
        let fresh = id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        if id.is_none() || !digest {
            self.maintain(|txn| {
                tables.set_setting(txn, ID, Some(&fresh))?;
                if digest { Ok(()) } else { log::make_digest(txn, tables, &self.registry) }
            })?;
        }
        self.id = fresh;
        Ok(())
    }

    /// Looks for versions that another process has written, as the one before this does until it hands the store over.
    /// Those who watch are told of them.
    pub fn refresh(&self) -> Result<(), StoreError> {
        let version = self.reading(|txn| log::version(txn, &self.environment.tables))?;
        self.newest.send_if_modified(|newest| {
            // A write of this process may have come in between.
            let later = version > *newest;
            *newest = version.max(*newest);
            later
        });
        Ok(())
    }

    /// Reads everything and tells what does not fit: records against indexes, the log against its counter.
    /// Empty when all is well.
    pub fn verify(&self) -> Result<Vec<String>, StoreError> {
        self.reading(|txn| check::problems(txn, &self.environment.tables, &self.registry))
    }

    /// Copies the store as it is now into a new file (mode 600), without empty pages, while others read and write.
    ///
    /// To restore it, put it as `data.mdb` into a folder of its own and open that.
    pub fn backup(&self, file: &Path) -> Result<(), StoreError> {
        self.environment.copy_to(file)
    }

    fn reading<T>(&self, call: impl FnOnce(&RoTxn<'_>) -> Result<T, Fault>) -> Result<T, StoreError> {
        let reading = self.environment.reading()?;
        call(&reading.txn).map_err(|fault| self.at(fault))
    }

    fn at(&self, fault: Fault) -> StoreError {
        fault.at(&self.environment.folder)
    }

    /// Waits for the write that is under way and refuses every later one: from here on the folder belongs to the process
    /// that takes this one's place. Blocks.
    pub fn close(&self) {
        *self.turn() = true;
    }

    fn turn(&self) -> MutexGuard<'_, bool> {
        // A panic inside `work` aborted its transaction, so there is nothing half done behind the lock.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn one_writer(&self) -> Result<MutexGuard<'_, bool>, StoreError> {
        let closed = self.turn();
        match *closed {
            false => Ok(closed),
            true => Err(StoreError::HandedOver { folder: self.environment.folder.clone() }),
        }
    }

    /// Runs a batch, as often as the map must grow for it.
    fn batch(
        &self,
        origin: &Origin,
        work: &mut dyn FnMut(&mut Batch<'_>) -> Result<(), EntityError>,
    ) -> Result<Commit, EntityError> {
        let _writer = self.one_writer()?;
        loop {
            match self.run(origin, work)? {
                Run::Done(commit) => return Ok(commit),
                Run::Outgrown => self.environment.grow()?,
            }
        }
    }

    fn run(
        &self,
        origin: &Origin,
        work: &mut dyn FnMut(&mut Batch<'_>) -> Result<(), EntityError>,
    ) -> Result<Run, EntityError> {
        let txn = self.environment.writing()?;
        let tables = &self.environment.tables;
        let version = log::version(&txn, tables).map_err(|fault| self.at(fault))?;
        let now = millis(self.options.clock.as_ref());
        let mut batch = Batch::new(txn, tables, &self.registry, &self.environment.folder, now, version);
        let worked = work(&mut batch);
        if batch.outgrown {
            return Ok(Run::Outgrown);
        }
        worked?;
        let changed = batch.changed(&self.ranks).map_err(|fault| self.at(fault))?;
        let changes = changed.len();
        if changes == 0 {
            return Ok(Run::Done(Commit { version, changes }));
        }
        let version = version + 1;
        let mut txn = batch.txn;
        let keep = log::Keep { versions: self.options.keep_versions, changes: self.options.keep_changes };
        let written = log::append(&mut txn, tables, &self.registry, version, now, origin, &changed)
            .and_then(|()| log::trim_in_passing(&mut txn, tables, keep, changes))
            .and_then(|()| Ok(txn.commit()?));
        match written {
            Ok(()) => {
                self.newest.send_replace(version);
                Ok(Run::Done(Commit { version, changes }))
            }
            Err(fault) if fault.is_outgrown() => Ok(Run::Outgrown),
            Err(fault) => Err(self.at(fault).into()),
        }
    }

    /// Runs something that makes no version, as often as the map must grow for it.
    fn maintain<T>(&self, work: impl Fn(&mut RwTxn<'_>) -> Result<T, Fault>) -> Result<T, StoreError> {
        let _writer = self.one_writer()?;
        loop {
            let mut txn = self.environment.writing()?;
            let done = work(&mut txn).and_then(|value| {
                txn.commit()?;
                Ok(value)
            });
            match done {
                Ok(value) => return Ok(value),
                Err(fault) if fault.is_outgrown() => self.environment.grow()?,
                Err(fault) => return Err(self.at(fault)),
            }
        }
    }

    /// Changes in the log, those that wait to be swept up included.
    #[cfg(test)]
    pub(crate) fn logged_changes(&self) -> u64 {
        self.reading(|txn| Ok(self.environment.tables.deltas.len(txn)?)).expect("the store can be read")
    }

    #[cfg(test)]
    pub(crate) fn map_size(&self) -> usize {
        self.environment.map_size()
    }
}

impl Store for LmdbStore {
    fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    fn version(&self) -> u64 {
        *self.newest.borrow()
    }

    fn read(&self) -> Result<Box<dyn Read + '_>, EntityError> {
        let now = millis(self.options.clock.as_ref());
        Ok(Box::new(Snapshot::new(&self.environment, &self.registry, now)?))
    }

    fn write(&self, origin: &Origin, work: &mut Work<'_>) -> Result<Commit, EntityError> {
        self.batch(origin, &mut |batch| work(batch as &mut dyn Write))
    }

    fn replace_all(&self, origin: &Origin, work: &mut Work<'_>) -> Result<Commit, EntityError> {
        self.batch(origin, &mut |batch| {
            batch.guarded(Batch::clear)?;
            work(batch as &mut dyn Write)
        })
    }

    fn changes_since(&self, version: u64, limit: usize) -> Result<Changes, EntityError> {
        Ok(self.reading(|txn| log::since(txn, &self.environment.tables, version, limit))?)
    }

    fn change(&self, version: u64) -> Result<Option<Change>, EntityError> {
        Ok(self.reading(|txn| log::change(txn, &self.environment.tables, version))?)
    }

    fn part_of_change(&self, version: u64, skip: usize, bytes: usize) -> Result<Option<Part>, EntityError> {
        Ok(self.reading(|txn| log::part(txn, &self.environment.tables, version, skip, bytes))?)
    }

    fn id(&self) -> &str {
        &self.id
    }

    fn position(&self) -> Result<Position, EntityError> {
        Ok(self.reading(|txn| log::position(txn, &self.environment.tables))?)
    }

    fn digest_at(&self, version: u64) -> Result<Option<Digest>, EntityError> {
        Ok(self.reading(|txn| log::digest_at(txn, &self.environment.tables, version))?)
    }

    fn rows_after(&self, after: Option<&Place>, bytes: usize) -> Result<Rows, EntityError> {
        Ok(self.reading(|txn| reading::exported_rows(txn, &self.environment.tables, &self.registry, after, bytes))?)
    }

    fn history(&self, before: Option<u64>, limit: usize) -> Result<Vec<HistoryEntry>, EntityError> {
        Ok(self.reading(|txn| log::history(txn, &self.environment.tables, before, limit))?)
    }

    fn watch(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    fn purge_expired(&self, limit: usize) -> Result<Commit, EntityError> {
        self.batch(&Origin::new("gwctl", "expiry"), &mut |batch| batch.guarded(|batch| batch.purge(limit)))
    }

    fn trim_log(&self, keep: u64) -> Result<u64, EntityError> {
        Ok(self.maintain(|txn| log::trim(txn, &self.environment.tables, keep))?)
    }

    fn setting(&self, key: &str) -> Result<Option<String>, EntityError> {
        Ok(self.reading(|txn| self.environment.tables.setting(txn, key))?)
    }

    fn set_setting(&self, key: &str, value: Option<&str>) -> Result<(), EntityError> {
        Ok(self.maintain(|txn| self.environment.tables.set_setting(txn, key, value))?)
    }

    fn setting_or_set(&self, key: &str, value: &str) -> Result<String, EntityError> {
        Ok(self.maintain(|txn| match self.environment.tables.setting(txn, key)? {
            Some(stored) => Ok(stored),
            None => {
                self.environment.tables.set_setting(txn, key, Some(value))?;
                Ok(value.to_owned())
            }
        })?)
    }
}

/// A consistent view for [`Read`]: one read transaction and the moment by which rows expire.
pub(crate) struct Snapshot<'s> {
    reading: Reading<'s>,
    tables: &'s Tables,
    folder: &'s Path,
    registry: &'s Registry,
    now: u64,
    version: u64,
}

impl<'s> Snapshot<'s> {
    /// Begins to read.
    pub(crate) fn new(
        environment: &'s Environment,
        registry: &'s Registry,
        now: u64,
    ) -> Result<Snapshot<'s>, StoreError> {
        Snapshot::of(environment, registry, now, |_| Ok(&environment.tables))
    }

    /// Begins to read the set of tables that is chosen.
    pub(crate) fn of(
        environment: &'s Environment,
        registry: &'s Registry,
        now: u64,
        choose: impl FnOnce(&RoTxn<'_>) -> Result<&'s Tables, Fault>,
    ) -> Result<Snapshot<'s>, StoreError> {
        let folder = environment.folder.as_path();
        let reading = environment.reading()?;
        let tables = choose(&reading.txn).map_err(|fault| fault.at(folder))?;
        let version = log::version(&reading.txn, tables).map_err(|fault| fault.at(folder))?;
        Ok(Snapshot { reading, tables, folder, registry, now, version })
    }

    /// Runs a look-up.
    pub(crate) fn look<T>(&self, call: impl FnOnce(View<'_>) -> Result<T, Fault>) -> Result<T, StoreError> {
        let view = View { txn: &self.reading.txn, tables: self.tables, registry: self.registry, now: self.now };
        call(view).map_err(|fault| fault.at(self.folder))
    }
}

impl Read for Snapshot<'_> {
    fn version(&self) -> u64 {
        self.version
    }

    fn get(&self, entity: &str, id: &str) -> Result<Option<Record>, EntityError> {
        Ok(self.look(|view| view.get(entity, id))?)
    }

    fn get_by(&self, entity: &str, field: &str, value: &str) -> Result<Option<Record>, EntityError> {
        Ok(self.look(|view| view.get_by(entity, field, value))?)
    }

    fn page(&self, entity: &str, query: &PageQuery) -> Result<Page, EntityError> {
        Ok(self.look(|view| view.page(entity, query))?)
    }
}

#[cfg(test)]
mod tests;

//! The data plane's own copy of its configuration: it starts from it when no control plane answers, and reads
//! consumers and credentials from it while it runs.

use crate::checksum::Checksum;
use crate::environment::{Environment, FolderLock, MapSize, claim};
use crate::fault::{Fault, StoreError, misuse};
use crate::lmdb::{Snapshot, millis};
use crate::reading::schema_of;
use crate::tables::Tables;
use crate::{Delta, Digest};
use gwctl_entities::{EntityError, Page, PageQuery, Read, Record, Registry};
use gwctl_lifecycle::{Clock, SystemClock};
use heed::RwTxn;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

mod incoming;
mod seal;

pub use incoming::{Applied, Stand};

/// Setting that holds the hash of the configuration.
const HASH: &str = "config_hash";
/// Setting that holds the tag.
const TAG: &str = "tag";

/// Tags of caches with the same rows from before they had a seal.
const UNSEALED: [&str; 2] = ["3.9", "rows 1"];

/// File that counts the starts which have not yet read the cache to its end.
const OPENING: &str = "opening";
/// Unfinished starts after which the cache counts as damaged. One may be an operator's kill.
const UNFINISHED_LIMIT: u32 = 2;

/// A whole configuration and its hash.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CachedConfiguration {
    /// The hash by which control plane and data plane compare configurations.
    pub hash: String,
    /// The records by entity, ascending by id when they come from the cache.
    pub records: BTreeMap<String, Vec<Record>>,
}

/// What [`DataPlaneCache::load`] brings into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Portion {
    /// Everything.
    Whole,
    /// All but consumers and what cannot be without one (credentials, group memberships), which may be millions.
    WithoutConsumers,
}

/// What [`DataPlaneCache::open`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// A configuration, with this hash.
    Warm(String),
    /// Nothing yet.
    Empty,
    /// Something that could not be used and was thrown away; the text says why.
    Discarded(String),
}

/// An LMDB folder with the configuration of one data plane. All calls block, for microseconds where they read.
pub struct DataPlaneCache {
    environment: Environment,
    /// Records and indexes once more; see [`incoming`].
    second: Tables,
    registry: Arc<Registry>,
    clock: Arc<dyn Clock>,
    opening: Opening,
    /// True once another process has the folder for itself.
    writer: Mutex<bool>,
    /// Transactions since it was opened.
    transactions: AtomicU64,
}

impl DataPlaneCache {
    /// The tag of caches whose rows are written as this program writes them. It changes with that and not with the
    /// version of the program, so that an update finds its configuration.
    pub const FORMAT: &str = "rows 2";

    /// Opens or creates the cache. `tag` names what the content depends on, [`DataPlaneCache::FORMAT`] as a rule:
    /// content with another tag, or damaged content, is thrown away; [`DataPlaneCache::opening`] tells.
    pub fn open(folder: &Path, registry: Arc<Registry>, tag: &str) -> Result<DataPlaneCache, StoreError> {
        DataPlaneCache::open_with(folder, registry, tag, MapSize::default(), Arc::new(SystemClock))
    }

    /// [`DataPlaneCache::open`] with map sizes and clock of one's own.
    pub fn open_with(
        folder: &Path,
        registry: Arc<Registry>,
        tag: &str,
        size: MapSize,
        clock: Arc<dyn Clock>,
    ) -> Result<DataPlaneCache, StoreError> {
        DataPlaneCache::open_locked(folder, registry, tag, size, clock, claim(folder)?)
    }

    /// As [`DataPlaneCache::open_with`], under a lock that is held already.
    pub fn open_locked(
        folder: &Path,
        registry: Arc<Registry>,
        tag: &str,
        size: MapSize,
        clock: Arc<dyn Clock>,
        lock: FolderLock,
    ) -> Result<DataPlaneCache, StoreError> {
        let handed = lock.is_handed();
        let crashed = if handed { None } else { throw_away_after_crashes(folder)? };
        let again = || {
            let failed = |source| StoreError::Io { action: "keep the lock of", path: folder.to_owned(), source };
            lock.again().map_err(failed)
        };
        let opened = |lock| {
            let environment = Environment::open_claimed(folder, size, lock)?;
            DataPlaneCache::of(environment, registry.clone(), clock.clone(), tag)
        };
        let (mut cache, damage) = match opened(again()?) {
            Err(error @ (StoreError::Damaged { .. } | StoreError::Format { .. })) if !handed => {
                remove_files(folder)?;
                (opened(again()?)?, Some(error.to_string()))
            }
            opened => (opened?, crashed),
        };
        if let Some(reason) = damage {
            cache.opening = Opening::Discarded(reason);
        }
        if let Opening::Discarded(reason) = &cache.opening {
            let hint = "nothing while a control plane can be reached: it sends everything again. Without one, stop the \
                        node and put back a copy of the folder; if this happens again, look for faults of disk or memory";
            let folder = folder.display();
            tracing::warn!(%folder, error = reason, hint, "the cached configuration cannot be used, starting empty");
        }
        Ok(cache)
    }

    fn of(
        environment: Environment,
        registry: Arc<Registry>,
        clock: Arc<dyn Clock>,
        tag: &str,
    ) -> Result<DataPlaneCache, StoreError> {
        let second = environment.second_tables()?;
        let (writer, transactions) = Default::default();
        let (opening, handed) = (Opening::Empty, environment.is_handed());
        let mut cache = DataPlaneCache { environment, second, registry, clock, opening, writer, transactions };
        cache.opening = cache.settle(tag, handed)?;
        Ok(cache)
    }

    /// Compares the tag and the seal; a stranger's content goes, unless another process serves by it still.
    ///
    /// # Errors
    /// Damage, among others.
    fn settle(&self, tag: &str, handed: bool) -> Result<Opening, StoreError> {
        let (stored, hash) = self.reading(|tables, txn| Ok((tables.setting(txn, TAG)?, tables.setting(txn, HASH)?)))?;
        let warm = |hash: Option<String>| hash.map_or(Opening::Empty, Opening::Warm);
        let unsealed = tag == Self::FORMAT && stored.as_deref().is_some_and(|stored| UNSEALED.contains(&stored));
        if unsealed || stored.as_deref() == Some(tag) {
            if let Some(detail) = self.damage()? {
                return Err(StoreError::Damaged { folder: self.environment.folder.clone(), detail });
            }
            // What another process writes still is sealed once it writes no more.
            if unsealed && !handed {
                self.seal_unsealed()?;
            }
            return Ok(warm(hash));
        }
        if let Some(stored) = stored.as_ref().filter(|_| handed) {
            let detail =
                format!("its format is {stored}, this gwctl reads {tag}: restart the node in place of an upgrade");
            return Err(StoreError::Damaged { folder: self.environment.folder.clone(), detail });
        }
        self.transaction(|tables, txn, sum| {
            tables.clear_records(txn)?;
            *sum = Checksum::default();
            incoming::forget(tables, txn)?;
            tables.set_setting(txn, HASH, None)?;
            tables.set_setting(txn, TAG, Some(tag))
        })?;
        Ok(stored.map_or(Opening::Empty, |stored| {
            Opening::Discarded(format!(
                "its format is {stored}, this gwctl reads {tag}; the control plane sends everything again"
            ))
        }))
    }

    /// What was found when the cache was opened.
    pub fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Hash of the configuration held, None when there is none.
    pub fn hash(&self) -> Result<Option<String>, StoreError> {
        self.reading(|tables, txn| tables.setting(txn, HASH))
    }

    /// Replaces everything, in one transaction that is on disk when this returns. Gives the time it took.
    ///
    /// Rules between records are not checked: the control plane has done so.
    pub fn apply(&self, configuration: &CachedConfiguration) -> Result<Duration, StoreError> {
        self.transaction(|tables, txn, sum| {
            tables.clear_records(txn)?;
            *sum = Checksum::default();
            for (entity, records) in &configuration.records {
                let schema = schema_of(&self.registry, entity)?;
                for record in records {
                    let id = schema.id_of(record).ok_or_else(|| no_id(entity))?;
                    // The same id twice: the later one counts, and the earlier one's index entries go with it.
                    let old = tables.record(txn, entity, &id)?;
                    tables.put(txn, schema, &id, (old.as_ref(), Some(record)), Some(sum))?;
                }
            }
            incoming::forget(tables, txn)?;
            tables.set_setting(txn, HASH, Some(&configuration.hash))
        })
    }

    /// Brings in changes and the hash they lead to, in one transaction. Gives the time it took.
    ///
    /// Of each delta only entity, id and the new record count; the order does not matter.
    pub fn apply_deltas(&self, hash: &str, deltas: &[Delta]) -> Result<Duration, StoreError> {
        self.transaction(|tables, txn, sum| {
            self.put_rows(tables, txn, deltas, &mut Digest::default(), sum)?;
            incoming::forget(tables, txn)?;
            tables.set_setting(txn, HASH, Some(hash))
        })
    }

    /// The configuration held; None when there is none.
    ///
    /// Once it returns, the start counts as finished: LMDB maps its file, so reading a damaged one may end the process,
    /// and a node that is started again and again must not read it for ever.
    pub fn load(&self, portion: Portion) -> Result<Option<CachedConfiguration>, StoreError> {
        let loaded = self.load_records(portion)?;
        // A file that stays costs at most the cache, which is filled again.
        let _ = std::fs::remove_file(self.environment.folder.join(OPENING));
        Ok(loaded)
    }

    /// Visits the records of some entities as they are stored, in JSON, in one consistent view. Gives the hash of the
    /// configuration held; None when there is none. For a start: the records never are in memory all at once, and the
    /// start counts as finished as by [`DataPlaneCache::load`].
    pub fn scan(&self, entities: &[&str], visit: &mut dyn FnMut(&str, &[u8])) -> Result<Option<String>, StoreError> {
        let snapshot = self.snapshot()?;
        let hash = snapshot.look(|view| view.tables.setting(view.txn, HASH))?;
        for entity in entities.iter().filter(|_| hash.is_some()) {
            snapshot.look(|view| view.each(entity, &mut |bytes| visit(entity, bytes)))?;
        }
        let _ = std::fs::remove_file(self.environment.folder.join(OPENING));
        Ok(hash)
    }

    fn load_records(&self, portion: Portion) -> Result<Option<CachedConfiguration>, StoreError> {
        let snapshot = self.snapshot()?;
        let Some(hash) = snapshot.look(|view| view.tables.setting(view.txn, HASH))? else { return Ok(None) };
        let left_out = match portion {
            Portion::Whole => BTreeSet::new(),
            Portion::WithoutConsumers => with_consumers(&self.registry),
        };
        let mut records = BTreeMap::new();
        for schema in self.registry.entities().filter(|schema| !left_out.contains(schema.name.as_str())) {
            let everything = PageQuery { size: usize::MAX, ..PageQuery::default() };
            let rows = snapshot.look(|view| view.page(&schema.name, &everything))?.rows;
            if !rows.is_empty() {
                records.insert(schema.name.clone(), rows);
            }
        }
        Ok(Some(CachedConfiguration { hash, records }))
    }

    /// Moves with every change of the content, and tells nothing else: for those who remember what they read.
    pub fn transactions(&self) -> u64 {
        self.transactions.load(Ordering::Acquire)
    }

    /// Another process may have written, and writes no more: what was remembered until now counts no longer.
    ///
    /// # Errors
    /// What it wrote cannot be read or sealed.
    pub fn written_elsewhere(&self) -> Result<(), StoreError> {
        self.transactions.fetch_add(1, Ordering::Release);
        self.seal_unsealed()
    }

    /// A consistent view for several look-ups. Let it go soon.
    pub fn read(&self) -> Result<Box<dyn Read + '_>, EntityError> {
        Ok(Box::new(self.snapshot()?))
    }

    fn snapshot(&self) -> Result<Snapshot<'_>, StoreError> {
        Snapshot::of(&self.environment, &self.registry, millis(self.clock.as_ref()), |txn| self.in_force(txn))
    }

    /// The record with this primary key.
    pub fn get(&self, entity: &str, id: &str) -> Result<Option<Record>, EntityError> {
        self.read()?.get(entity, id)
    }

    /// The record with this value in a unique field, endpoint key or cache key.
    pub fn get_by(&self, entity: &str, field: &str, value: &str) -> Result<Option<Record>, EntityError> {
        self.read()?.get_by(entity, field, value)
    }

    /// The records whose foreign field refers to this id, ascending by their own.
    pub fn by_parent(&self, entity: &str, field: &str, id: &str) -> Result<Vec<Record>, EntityError> {
        let parent = Some((field.to_owned(), id.to_owned()));
        let Page { rows, .. } =
            self.read()?.page(entity, &PageQuery { size: usize::MAX, parent, ..Default::default() })?;
        Ok(rows)
    }

    /// Waits for the change that is being written and refuses every later one: from here on the folder belongs to the
    /// process that takes this one's place. Blocks.
    pub fn close(&self) {
        *self.turn() = true;
    }

    fn turn(&self) -> MutexGuard<'_, bool> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reading<T>(&self, call: impl FnOnce(&Tables, &heed::RoTxn<'_>) -> Result<T, Fault>) -> Result<T, StoreError> {
        let reading = self.environment.reading()?;
        let called = self.in_force(&reading.txn).and_then(|tables| call(tables, &reading.txn));
        called.map_err(|fault| fault.at(&self.environment.folder))
    }

    /// Runs one transaction, as often as the map must grow for it. What the work changes in the set in force it counts
    /// in the checksum.
    fn transaction(
        &self,
        work: impl Fn(&Tables, &mut RwTxn<'_>, &mut Checksum) -> Result<(), Fault>,
    ) -> Result<Duration, StoreError> {
        let started = Instant::now();
        self.transaction_if(|tables, txn, sum| work(tables, txn, sum).map(|()| true)).map(drop)?;
        Ok(started.elapsed())
    }

    /// The same for work that may find at its end that it should not be kept: None.
    fn transaction_if(
        &self,
        mut work: impl FnMut(&Tables, &mut RwTxn<'_>, &mut Checksum) -> Result<bool, Fault>,
    ) -> Result<Option<Duration>, StoreError> {
        let started = Instant::now();
        let closed = self.turn();
        if *closed {
            return Err(StoreError::HandedOver { folder: self.environment.folder.clone() });
        }
        let mut attempt = |txn: &mut RwTxn<'_>| -> Result<bool, Fault> {
            let (tables, mut sum) = (self.in_force(txn)?, seal::checksum(&self.environment.tables, txn)?);
            let keep = work(tables, txn, &mut sum)?;
            if keep {
                seal::write(tables, txn, sum, millis(self.clock.as_ref()))?;
            }
            Ok(keep)
        };
        loop {
            let mut txn = self.environment.writing()?;
            let worked = attempt(&mut txn).and_then(|keep| {
                if keep {
                    txn.commit()?;
                    self.transactions.fetch_add(1, Ordering::Release);
                }
                Ok(keep)
            });
            match worked {
                Ok(keep) => return Ok(keep.then(|| started.elapsed())),
                Err(fault) if fault.is_outgrown() => self.environment.grow()?,
                Err(fault) => return Err(fault.at(&self.environment.folder)),
            }
        }
    }
}

/// Counts this start; after too many that did not come to their end the files go and the reason is given.
fn throw_away_after_crashes(folder: &Path) -> Result<Option<String>, StoreError> {
    let path = folder.join(OPENING);
    let unfinished = std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0_u32);
    let crashed = unfinished >= UNFINISHED_LIMIT;
    if crashed {
        remove_files(folder)?;
    }
    // On a full disk the count stays as it is, which is no reason not to start.
    let _ = std::fs::write(&path, if crashed { 1 } else { unfinished + 1 }.to_string());
    Ok(crashed.then(|| format!("the last {unfinished} starts ended while reading it")))
}

fn remove_files(folder: &Path) -> Result<(), StoreError> {
    for name in ["data.mdb", "lock.mdb"] {
        let path = folder.join(name);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(StoreError::Io { action: "remove the damaged file", path, source });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Consumers and every entity that must refer to one, directly or through others.
fn with_consumers(registry: &Registry) -> BTreeSet<&str> {
    let mut left_out = BTreeSet::from(["consumers"]);
    // Parents come before children, so one pass suffices.
    for schema in registry.entities() {
        let bound = |references: &str| left_out.contains(references);
        if schema.foreign_keys.iter().any(|foreign| foreign.required && bound(&foreign.references)) {
            left_out.insert(&schema.name);
        }
    }
    left_out
}

fn no_id(entity: &str) -> Fault {
    misuse(format!("record of {entity} without primary key"))
}

#[cfg(test)]
mod tests;

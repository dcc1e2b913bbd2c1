//! The folder of a store: its lock, its LMDB environment, and how the map grows.

use crate::fault::{Fault, StoreError};
use crate::gate::{Gate, Pass};
use crate::pages;
use crate::tables::{self, Tables};
use heed::{CompactionOption, Env, EnvOpenOptions, RoTxn, RwTxn, WithoutTls};
use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Number of the layout of [`Tables`]; raised when older programs could not read it.
const FORMAT: u32 = 1;
/// Key of the format number in the meta table.
const FORMAT_KEY: &[u8] = b"format";
/// Readers at once. A slot takes 64 bytes of the lock file.
const READERS: u32 = 4096;
/// How long growing waits for readers to end before the write is refused.
const PATIENCE: Duration = Duration::from_secs(5);
/// Map sizes are multiples of this, which is a multiple of every page size in use.
const STEP: usize = 64 * 1024;

/// Sizes of the memory map. Address space only: the file holds no more than what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapSize {
    /// Size at first, in bytes. It doubles whenever it does not suffice.
    pub initial: usize,
    /// Size it never exceeds, in bytes.
    pub limit: usize,
}

impl Default for MapSize {
    /// 1 GiB at first, so that few stores ever grow; 256 GiB at most.
    fn default() -> MapSize {
        MapSize { initial: 1 << 30, limit: 1 << 38 }
    }
}

impl MapSize {
    /// Kong's default of `lmdb_map_size`, which says nothing of what an operator wants.
    const UNSET: u64 = 2 << 30;

    /// For the setting `lmdb_map_size` in bytes. Its default leaves the limit as it is by default.
    pub fn up_to(limit: u64) -> MapSize {
        let default = MapSize::default();
        match usize::try_from(limit) {
            Ok(limit) if limit as u64 != MapSize::UNSET => MapSize { initial: default.initial.min(limit), limit },
            _ => default,
        }
    }
}

/// An open folder. One process at a time has it.
pub(crate) struct Environment {
    // Fields drop in this order: the environment closes before the folder is free for others.
    env: Env<WithoutTls>,
    /// The table of readers. The system takes every lock of this process on a file back when any descriptor of it is
    /// closed, LMDB's own with it; the process that takes this one's place would make the table and the writers' lock
    /// anew under this one's hands.
    _readers: Option<File>,
    pub(crate) tables: Tables,
    gate: Gate,
    limit: usize,
    pub(crate) folder: PathBuf,
    lock: FolderLock,
}

/// A read transaction and the leave to have one.
pub(crate) struct Reading<'e> {
    // Ends before the pass is given back.
    pub(crate) txn: RoTxn<'e, WithoutTls>,
    _pass: Pass<'e>,
}

impl Environment {
    /// Opens or creates the store in `folder`.
    #[cfg(test)]
    pub(crate) fn open(folder: &Path, size: MapSize) -> Result<Environment, StoreError> {
        let lock = claim(folder)?;
        Environment::open_claimed(folder, size, lock)
    }

    /// Opens or creates it under a lock that is held already.
    pub(crate) fn open_claimed(folder: &Path, size: MapSize, lock: FolderLock) -> Result<Environment, StoreError> {
        let at = |error: heed::Error| Fault::from(error).at(folder);
        let limit = size.limit.max(STEP);
        let file = std::fs::metadata(folder.join("data.mdb")).map_or(0, |data| data.len());
        // Twice the file: then it hardly ever grows while readers are about.
        let doubled = usize::try_from(file).unwrap_or(usize::MAX).saturating_mul(2);
        let map = size.initial.max(doubled).min(limit).next_multiple_of(STEP);
        refuse_damaged(folder)?;
        let env = open_env(folder, map).map_err(at)?;
        refuse_truncated(&env, folder, file)?;
        let readers = reserve_readers(folder);
        // What a process left that was killed while others had the folder open keeps pages from being used again.
        env.clear_stale_readers().map_err(at)?;
        let tables = Tables::open(&env).map_err(at)?;
        let (gate, folder) = (Gate::default(), folder.to_owned());
        let environment = Environment { env, _readers: readers, tables, gate, limit, folder, lock };
        environment.check_format()?;
        Ok(environment)
    }

    /// Whether another process works in the folder still, or did when this one began.
    pub(crate) fn is_handed(&self) -> bool {
        self.lock.is_handed()
    }

    fn check_format(&self) -> Result<(), StoreError> {
        let reading = self.reading()?;
        let at = |error: heed::Error| Fault::from(error).at(&self.folder);
        let found = self.tables.meta.get(&reading.txn, FORMAT_KEY).map_err(at)?.map(<[u8]>::to_vec);
        drop(reading);
        match found {
            Some(found) if found == FORMAT.to_string().as_bytes() => Ok(()),
            Some(found) => {
                let found = String::from_utf8_lossy(&found).into_owned();
                Err(StoreError::Format { folder: self.folder.clone(), found, known: FORMAT })
            }
            None => {
                let mut txn = self.env.write_txn().map_err(at)?;
                self.tables.meta.put(&mut txn, FORMAT_KEY, FORMAT.to_string().as_bytes()).map_err(at)?;
                txn.commit().map_err(at)
            }
        }
    }

    /// Opens a second set of records and indexes.
    pub(crate) fn second_tables(&self) -> Result<Tables, StoreError> {
        self.tables.open_second(&self.env).map_err(|error| Fault::from(error).at(&self.folder))
    }

    /// Begins to read.
    pub(crate) fn reading(&self) -> Result<Reading<'_>, StoreError> {
        let begin = || {
            let pass = self.gate.enter();
            self.env.read_txn().map(|txn| Reading { txn, _pass: pass })
        };
        let begun = match begin() {
            Err(heed::Error::Mdb(heed::MdbError::MapResized)) => {
                self.follow_growth()?;
                begin()
            }
            begun => begun,
        };
        begun.map_err(|error| Fault::from(error).at(&self.folder))
    }

    /// Takes over the size that the process before or after this one has given the map, during a change of the binary.
    fn follow_growth(&self) -> Result<(), StoreError> {
        let _closed = self.gate.close(PATIENCE).map_err(|readers| {
            let folder = self.folder.clone();
            StoreError::ReadersOpen { folder, readers }
        })?;
        resize(&self.env, 0).map_err(|error| Fault::from(error).at(&self.folder))
    }

    /// Begins to write; waits for the writer before.
    pub(crate) fn writing(&self) -> Result<RwTxn<'_>, StoreError> {
        let begun = match self.env.write_txn() {
            Err(heed::Error::Mdb(heed::MdbError::MapResized)) => {
                self.follow_growth()?;
                self.env.write_txn()
            }
            begun => begun,
        };
        begun.map_err(|error| Fault::from(error).at(&self.folder))
    }

    /// Copies everything into a new file that is on disk when this returns.
    pub(crate) fn copy_to(&self, path: &Path) -> Result<(), StoreError> {
        let io = |action, source| StoreError::Io { action, path: path.to_owned(), source };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(path).map_err(|error| io("create the backup", error))?;
        // The copy reads, so the map must stay where it is meanwhile.
        let _pass = self.gate.enter();
        match self.env.copy_to_file(&mut file, CompactionOption::Enabled) {
            Ok(()) => file.sync_all().map_err(|error| io("write the backup", error)),
            Err(error) => {
                // Half a copy is worth nothing.
                let _ = std::fs::remove_file(path);
                Err(Fault::from(error).at(&self.folder))
            }
        }
    }

    /// Doubles the map. The caller has no transaction open and keeps other writers away.
    pub(crate) fn grow(&self) -> Result<(), StoreError> {
        let size = self.env.info().map_size;
        if size >= self.limit {
            return Err(StoreError::Full { folder: self.folder.clone(), limit: self.limit });
        }
        let new = size.saturating_mul(2).min(self.limit).next_multiple_of(STEP);
        let _closed = self.gate.close(PATIENCE).map_err(|readers| {
            let folder = self.folder.clone();
            StoreError::ReadersOpen { folder, readers }
        })?;
        tracing::info!(folder = %self.folder.display(), from = size, to = new, "the store's map grows");
        resize(&self.env, new).map_err(|error| Fault::from(error).at(&self.folder))
    }

    /// Whether the map is about to grow and waits for readers.
    #[cfg(test)]
    pub(crate) fn is_closing(&self) -> bool {
        self.gate.is_closed()
    }

    /// Size of the map in bytes.
    #[cfg(test)]
    pub(crate) fn map_size(&self) -> usize {
        self.env.info().map_size
    }
}

#[expect(unsafe_code, reason = "LMDB maps a file, which Rust cannot vouch for")]
fn open_env(folder: &Path, map: usize) -> Result<Env<WithoutTls>, heed::Error> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(map).max_dbs(tables::COUNT).max_readers(READERS);
    // SAFETY: `claim` keeps every other gwctl from changing the files under the map, the files have mode 600, and no
    // flag is set that would weaken LMDB's own locking or syncing.
    unsafe { options.open(folder) }
}

#[expect(unsafe_code, reason = "LMDB cannot tell by itself that no transaction is open")]
fn resize(env: &Env<WithoutTls>, size: usize) -> Result<(), heed::Error> {
    // SAFETY: the callers have closed the gate, so no read transaction is open or can be begun, and hold the writer's
    // lock without a transaction, or have failed to begin one.
    unsafe { env.resize(size) }
}

fn refuse_damaged(folder: &Path) -> Result<(), StoreError> {
    let path = folder.join("data.mdb");
    match pages::damage(&path) {
        Ok(None) => Ok(()),
        Ok(Some(detail)) => Err(StoreError::Damaged { folder: folder.to_owned(), detail }),
        Err(source) => Err(StoreError::Io { action: "read", path, source }),
    }
}

/// A file shorter than its own account of itself would end the process (SIGBUS) at the first touch of what is missing.
fn refuse_truncated(env: &Env<WithoutTls>, folder: &Path, file: u64) -> Result<(), StoreError> {
    let page = u64::from(env.unnamed_database_stat().page_size);
    let pages = u64::try_from(env.info().last_page_number).unwrap_or(u64::MAX).saturating_add(1);
    let needed = pages.saturating_mul(page);
    // The process whose place this one takes may have made it longer since.
    let now = std::fs::metadata(folder.join("data.mdb")).map_or(file, |data| data.len());
    if file > 0 && now < needed {
        let detail = format!("data.mdb is cut short: {now} bytes of {needed}");
        return Err(StoreError::Damaged { folder: folder.to_owned(), detail });
    }
    Ok(())
}

/// Takes the disk space of the readers' table now. LMDB maps the file with holes; filling one while the disk is full
/// would end the process (SIGBUS) at the first read by more readers than ever before. The file is to be kept open for as
/// long as the environment.
fn reserve_readers(folder: &Path) -> Option<File> {
    let path = folder.join("lock.mdb");
    let reserve = |file: &File| -> std::io::Result<()> {
        let length = file.metadata()?.len();
        Ok(rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, length)?)
    };
    let (file, reserved) = match OpenOptions::new().write(true).open(&path) {
        Ok(file) => {
            let reserved = reserve(&file);
            (Some(file), reserved)
        }
        Err(error) => (None, Err(error)),
    };
    match reserved {
        // Some file systems cannot; they are no worse off than before.
        Err(error) if error.kind() != std::io::ErrorKind::Unsupported => {
            tracing::warn!(path = %path.display(), %error, "cannot reserve the space of the table of readers; free space on the disk and restart");
        }
        _ => {}
    }
    file
}

/// The right to use a folder: one process at a time has it, and may hand it to the process that takes its place. It ends
/// with the last process that holds it.
#[derive(Debug)]
pub struct FolderLock {
    file: File,
    /// Another process works in the folder still: nothing in it may be thrown away.
    handed: bool,
}

impl FolderLock {
    /// Creates the folder if need be (mode 700) and takes its lock.
    ///
    /// # Errors
    /// Another process has it, or the folder cannot be made.
    pub fn claim(folder: &Path) -> Result<Self, StoreError> {
        claim(folder)
    }

    /// The lock that another process hands over.
    pub fn handed(file: File) -> Self {
        Self { file, handed: true }
    }

    /// Whether this is the lock of a folder, by whatever path.
    pub fn is_of(&self, folder: &Path) -> bool {
        let files = (self.file.metadata(), std::fs::metadata(folder.join(LOCK_FILE)));
        matches!(files, (Ok(held), Ok(named)) if (held.dev(), held.ino()) == (named.dev(), named.ino()))
    }

    /// Whether a process has the lock of this folder, as far as can be told.
    pub fn is_held(folder: &Path) -> bool {
        match File::open(folder.join(LOCK_FILE)) {
            Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK),
            // Nodes of earlier versions have none.
            Err(_) => true,
        }
    }

    /// The same lock once more, to be handed over.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn share(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }

    /// The same lock once more, for another part of this process.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn again(&self) -> std::io::Result<Self> {
        Ok(Self { file: self.share()?, handed: self.handed })
    }

    pub(crate) fn is_handed(&self) -> bool {
        self.handed
    }

    /// Writes the number of this process into the lock's file, for people.
    pub fn sign(&self) {
        let mut file = &self.file;
        // The lock holds without it, so a full disk is no reason to refuse here.
        let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| write!(file, "{}", std::process::id()));
    }
}

/// Longer than [`FolderLock::is_held`] takes.
const GLANCE: Duration = Duration::from_millis(5);

/// Name of the lock's file.
const LOCK_FILE: &str = "gwctl.lock";

/// Creates the folder if need be (mode 700) and takes its lock, which ends with the process at the latest.
pub(crate) fn claim(folder: &Path) -> Result<FolderLock, StoreError> {
    let io = |action, path: &Path, source| StoreError::Io { action, path: path.to_owned(), source };
    if !folder.is_dir() {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(folder).map_err(|error| io("create the folder", folder, error))?;
    }
    let path = folder.join(LOCK_FILE);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(&path).map_err(|error| io("open", &path, error))?;
    let take = || flock(&file, FlockOperation::NonBlockingLockExclusive);
    // Who only looks whether it is held has it for a moment.
    let taken = take().or_else(|_| {
        std::thread::sleep(GLANCE);
        take()
    });
    if let Err(error) = taken {
        if error != rustix::io::Errno::WOULDBLOCK {
            return Err(io("lock", &path, error.into()));
        }
        let mut holder = String::new();
        let _ = file.read_to_string(&mut holder);
        let holder = match holder.trim() {
            "" => "process unknown".to_owned(),
            id => format!("process {id}"),
        };
        return Err(StoreError::InUse { folder: folder.to_owned(), holder });
    }
    let lock = FolderLock { file, handed: false };
    lock.sign();
    Ok(lock)
}

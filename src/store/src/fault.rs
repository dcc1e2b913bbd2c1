//! What can go wrong with a store, in words for people.

use gwctl_entities::EntityError;
use heed::MdbError;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Why a store or cache could not be opened or used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused a file or folder.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// What was tried: `create the folder`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Another process has the folder open for writing.
    #[error("another gwctl ({holder}) holds {folder}", folder = folder.display())]
    InUse {
        /// The folder of the store.
        folder: PathBuf,
        /// `process 4711`, or `process unknown`.
        holder: String,
    },
    /// The folder was written by a gwctl with another layout.
    #[error("{folder} has format {found}, this gwctl reads format {known}", folder = folder.display())]
    Format {
        /// The folder of the store.
        folder: PathBuf,
        /// The format number found.
        found: String,
        /// The format number this program writes.
        known: u32,
    },
    /// The files hold something that no gwctl has written, or only a part of it.
    #[error("the store in {folder} is damaged: {detail}", folder = folder.display())]
    Damaged {
        /// The folder of the store.
        folder: PathBuf,
        /// What does not fit.
        detail: String,
    },
    /// The store may not grow any further.
    #[error("the store in {folder} has reached its limit of {limit} bytes", folder = folder.display())]
    Full {
        /// The folder of the store.
        folder: PathBuf,
        /// The configured limit.
        limit: usize,
    },
    /// The map must grow but readers do not end.
    #[error("the store in {folder} cannot grow: {readers} readers are still open", folder = folder.display())]
    ReadersOpen {
        /// The folder of the store.
        folder: PathBuf,
        /// How many there are.
        readers: usize,
    },
    /// Another process has taken over, and this one may write no more.
    #[error("another process has taken over {folder}", folder = folder.display())]
    HandedOver {
        /// The folder of the store.
        folder: PathBuf,
    },
    /// The engine failed in another way.
    #[error("LMDB failed in {folder}: {source}", folder = folder.display())]
    Engine {
        /// The folder of the store.
        folder: PathBuf,
        /// The engine's answer.
        source: heed::Error,
    },
    /// A record or call does not fit the schemas.
    #[error("{0}")]
    Refused(EntityError),
}

impl StoreError {
    /// What to try.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Io { source, .. } => io_hint(source)?.to_owned(),
            Self::Engine { source: heed::Error::Io(source), folder } => {
                let hint = io_hint(source)?;
                if self.found_no_room() { format!("{hint} ({})", room(folder)) } else { hint.to_owned() }
            }
            Self::Engine { source: heed::Error::Mdb(MdbError::ReadersFull), .. } => {
                "too many readers at once; end long reads or restart".to_owned()
            }
            Self::InUse { .. } => "stop the other one, or give this node a folder of its own".to_owned(),
            Self::Format { .. } => "run the gwctl release that wrote it, or import an export of it".to_owned(),
            Self::Damaged { folder, .. } => {
                format!("move {} away and restore a backup or import an export", folder.display())
            }
            Self::Full { .. } => "raise lmdb_map_size; nothing acknowledged is lost".to_owned(),
            Self::ReadersOpen { .. } => "try again; a reader must not be held while writing".to_owned(),
            Self::HandedOver { .. } => "try again: the other process answers".to_owned(),
            Self::Engine { .. } | Self::Refused(_) => return None,
        })
    }
}

impl StoreError {
    /// Whether the disk, or the limit set for the store, leaves no room. A write that LMDB finds cut short in the
    /// middle comes as EIO, which is a full disk far more often than a broken one.
    fn found_no_room(&self) -> bool {
        let full = |error: &std::io::Error| {
            matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
                || error.raw_os_error() == Some(Errno::IO.raw_os_error())
        };
        match self {
            Self::Full { .. } => true,
            Self::Engine { source: heed::Error::Io(source), .. } => full(source),
            _ => false,
        }
    }
}

/// How much can still be written in a folder.
fn room(folder: &Path) -> String {
    let disk = match rustix::fs::statvfs(folder) {
        Ok(disk) => format!("{} bytes are free there", disk.f_bavail.saturating_mul(disk.f_frsize)),
        Err(error) => format!("how much is free there cannot be told: {error}"),
    };
    match getrlimit(Resource::Fsize).current {
        Some(limit) => format!("{disk}, and no file may be longer than {limit} bytes by `ulimit -f`"),
        None => disk,
    }
}

fn io_hint(error: &std::io::Error) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::PermissionDenied => Some("run gwctl as the owner of the folder, or change its owner or mode"),
        ErrorKind::ReadOnlyFilesystem => Some("choose a folder on a file system that is mounted writable"),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Some("free space on the disk; nothing acknowledged is lost")
        }
        ErrorKind::FileTooLarge => Some("raise the file size limit (ulimit -f); nothing acknowledged is lost"),
        // A write cut short in the middle, which LMDB reports so.
        _ if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
            Some("free space on the disk, or look for its faults in the system log; nothing acknowledged is lost")
        }
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => Some("a file is in the way; choose another folder"),
        _ => None,
    }
}

/// Status of a write that came while the node changed its process.
const SERVICE_UNAVAILABLE: u16 = 503;

/// Status of a write that found no room (RFC 4918, 507 Insufficient Storage).
const INSUFFICIENT_STORAGE: u16 = 507;

impl From<StoreError> for EntityError {
    /// A write that found no room is told to the client, without the folder: who asks can do something about it.
    fn from(error: StoreError) -> EntityError {
        let hint = error.hint();
        if error.found_no_room() {
            tracing::error!(%error, hint, "the store cannot be written");
            let reason = match &error {
                StoreError::Full { limit, .. } => {
                    format!("the configuration store has reached its limit of {limit} bytes; raise lmdb_map_size")
                }
                _ => "the disk of the configuration store is full or failing; free space on this node and try again"
                    .to_owned(),
            };
            let message = format!("the change was refused and nothing was changed: {reason}");
            return EntityError::Bare { status: INSUFFICIENT_STORAGE, message };
        }
        match (hint, error) {
            (_, StoreError::Refused(refusal)) => refusal,
            (_, StoreError::HandedOver { .. }) => {
                let message = "nothing was changed: another process is taking over this node; try again".to_owned();
                EntityError::Bare { status: SERVICE_UNAVAILABLE, message }
            }
            (Some(hint), error) => EntityError::Database(format!("{error}; {hint}")),
            (None, error) => EntityError::Database(error.to_string()),
        }
    }
}

/// A failure inside a transaction, before the folder is named.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A rule refuses the change.
    Refused(EntityError),
    /// The engine failed.
    Engine(heed::Error),
    /// Stored bytes make no sense.
    Damaged(String),
}

impl Fault {
    /// The map is too small for what is being written: grow it and start over.
    pub(crate) fn is_outgrown(&self) -> bool {
        matches!(self, Self::Engine(heed::Error::Mdb(MdbError::MapFull)))
    }

    /// Names the folder.
    pub(crate) fn at(self, folder: &Path) -> StoreError {
        let folder = folder.to_owned();
        match self {
            Self::Refused(error) => StoreError::Refused(error),
            Self::Damaged(detail) => StoreError::Damaged { folder, detail },
            Self::Engine(heed::Error::Mdb(
                kind @ (MdbError::Invalid
                | MdbError::Corrupted
                | MdbError::PageNotFound
                | MdbError::VersionMismatch
                | MdbError::Incompatible),
            )) => StoreError::Damaged { folder, detail: kind.to_string() },
            Self::Engine(source) => StoreError::Engine { folder, source },
        }
    }
}

impl From<heed::Error> for Fault {
    fn from(error: heed::Error) -> Fault {
        Fault::Engine(error)
    }
}

impl From<EntityError> for Fault {
    fn from(error: EntityError) -> Fault {
        Fault::Refused(error)
    }
}

/// The caller named something the schemas do not have: a bug above, answered as a failed store.
pub(crate) fn misuse(text: impl Into<String>) -> Fault {
    Fault::Refused(EntityError::Database(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_refuses_comes_with_place_reason_and_remedy() {
        let refused = |errno: Errno| {
            let source = std::io::Error::from(errno);
            let path = PathBuf::from("/var/lib/gwctl");
            match EntityError::from(StoreError::Io { action: "create the folder", path, source }) {
                EntityError::Database(text) => text,
                other => panic!("{other}"),
            }
        };
        for (errno, reason, remedy) in [
            (Errno::ACCESS, "Permission denied", "change its owner or mode"),
            (Errno::ROFS, "Read-only file system", "mounted writable"),
            (Errno::NOSPC, "No space left on device", "free space on the disk"),
            (Errno::IO, "Input/output error", "free space on the disk"),
            (Errno::NOTDIR, "Not a directory", "choose another folder"),
        ] {
            let text = refused(errno);
            assert!(text.starts_with("cannot create the folder /var/lib/gwctl: "), "{text}");
            assert!(text.contains(reason) && text.contains(remedy), "{text}");
        }
    }

    #[test]
    fn a_write_without_room_is_told_to_the_client_but_not_the_folder() {
        for errno in [Errno::NOSPC, Errno::IO, Errno::DQUOT] {
            let fault = Fault::from(heed::Error::Io(errno.into())).at(Path::new("/var/lib/gwctl"));
            let EntityError::Bare { status: 507, message } = EntityError::from(fault) else { panic!("{errno}") };
            assert!(message.contains("nothing was changed") && message.contains("free space"), "{message}");
            assert!(!message.contains("/var"), "{message}");
        }
        let limit = StoreError::Full { folder: "/x".into(), limit: 1 };
        assert!(matches!(EntityError::from(limit), EntityError::Bare { status: 507, .. }));
    }

    #[test]
    fn a_refusal_keeps_its_code() {
        let missing = EntityError::NotFound { key: gwctl_entities::Map::new(), primary: true };
        assert_eq!(EntityError::from(Fault::from(missing.clone()).at(Path::new("/x"))), missing);
    }
}

//! What the control plane's end is told from above.

use super::Cursor;
use crate::Frame;
use crate::v2::log_level::Asked;
use std::time::Duration;

/// Where a node begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// It holds this version of this store.
    From(u64),
    /// It holds the newest version under the name of another store or version.
    Same {
        /// The version.
        version: u64,
        /// Its digest.
        digest: String,
    },
    /// It needs a copy.
    Snapshot {
        /// Why, in words.
        why: String,
    },
}

/// Why a configuration is withheld.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    /// Kong's word for it.
    pub status: String,
    /// In words.
    pub words: String,
}

/// The answer to [`Effect::Fetch`](super::Effect::Fetch).
#[derive(Debug, Clone, PartialEq)]
pub enum Fetched {
    /// The encoded changes and the version they lead to.
    Changes {
        /// The version.
        to: u64,
        /// [`FromCp::Changes`](crate::stream::FromCp::Changes).
        frame: Frame,
    },
    /// The log does not lead on from there, or a copy is cheaper.
    Snapshot {
        /// Why, in words.
        why: String,
    },
    /// The store does not answer.
    Failed(String),
}

/// The answer to [`Effect::Copy`](super::Effect::Copy).
#[derive(Debug, Clone, PartialEq)]
pub enum Copied {
    /// An encoded piece, and where the next one begins.
    Piece {
        /// [`FromCp::SnapshotRows`](crate::stream::FromCp::SnapshotRows).
        frame: Frame,
        /// Where the next one begins.
        next: Cursor,
    },
    /// Everything was sent.
    End {
        /// The version of the copy.
        version: u64,
        /// Its digest.
        digest: String,
    },
    /// The log no longer reaches the version the copy began with.
    Overtaken,
    /// The store does not answer.
    Failed(String),
}

/// What is told to the machine from above.
#[derive(Debug, Clone)]
pub enum Command {
    /// The answer to [`Effect::Judge`](super::Effect::Judge).
    Admit {
        /// Id of the store.
        store_id: String,
        /// Newest version.
        newest: u64,
        /// Where the node begins.
        start: Start,
        /// Why the configuration is withheld from it, if it is.
        withheld: Option<Withheld>,
    },
    /// The node may be sent the configuration (None), or not.
    Verdict(Option<Withheld>),
    /// There is a new version.
    Newest(u64),
    /// The answer to [`Effect::Fetch`](super::Effect::Fetch).
    Fetched {
        /// The version asked from.
        from: u64,
        /// What came of it.
        outcome: Fetched,
    },
    /// The answer to [`Effect::Begin`](super::Effect::Begin).
    Begun(Result<u64, String>),
    /// The answer to [`Effect::Copy`](super::Effect::Copy).
    Copied(Copied),
    /// Ask the node; [`Effect::Asked`](super::Effect::Asked) with the same key follows.
    Ask {
        /// Tells this question from others.
        key: u64,
        /// What is asked.
        asked: Asked,
    },
    /// End the link; the node should come back after so long.
    Stop {
        /// Zero: at once, with its own delays.
        reconnect_after: Duration,
    },
}

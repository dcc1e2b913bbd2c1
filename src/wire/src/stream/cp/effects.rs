//! What the control plane's end wants done.

use super::super::HELLO_LIMIT;
use super::super::message::{Applied, Hello, MessageError, Refused};
use crate::Frame;
use crate::v2::RpcError;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Where in a copy its maker is. The copy is fuzzy: rows are read one piece after another while they change, and what
/// changed since the beginning is sent behind them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cursor {
    /// At the rows, behind the one of this entity and id.
    Rows {
        /// Version when the copy began.
        begun: u64,
        /// The last row that was read; None: none yet.
        after: Option<(String, String)>,
    },
    /// At the changes since then.
    Log {
        /// Version whose changes are sent next.
        version: u64,
        /// How many of them were sent already.
        sent: usize,
        /// The last version that is sent.
        until: u64,
    },
}

/// What the driver should do, in the order given.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Send the frame.
    Send(Frame),
    /// The node said hello: answer with [`Command::Admit`](super::Command::Admit).
    Judge(Arc<Hello>),
    /// Make the changes behind this version: answer with [`Command::Fetched`](super::Command::Fetched).
    Fetch {
        /// The version.
        from: u64,
    },
    /// Begin a copy: answer with [`Command::Begun`](super::Command::Begun).
    Begin,
    /// Make the next piece of the copy: answer with [`Command::Copied`](super::Command::Copied).
    Copy(Cursor),
    /// The node was heard.
    Alive,
    /// A version is in force at the node.
    Applied(Applied),
    /// The node refused something.
    Refused(Refused),
    /// Worth a log line.
    Report(Report),
    /// A question of [`Command::Ask`](super::Command::Ask) has been dealt with.
    Asked {
        /// Its key.
        key: u64,
        /// The answer, or why there is none.
        outcome: Result<Value, RpcError>,
    },
    /// The node stops on purpose.
    Left,
    /// Send an empty close frame if the connection is open, then drop it. Nothing follows.
    HangUp(Reason),
}

/// News for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// A copy begins.
    Copying {
        /// Why, in words.
        why: String,
    },
    /// The node asked for a copy.
    Diverged {
        /// Why, in words.
        why: String,
    },
    /// Changes or a piece could not be made; tried again later.
    NotMade {
        /// Why, in words.
        fault: String,
    },
}

/// Why a link ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The connection broke; the driver's words.
    #[error("connection lost: {0}")]
    PeerLost(String),
    /// The data plane sent a close frame.
    #[error("the data plane closed the connection")]
    PeerClosed,
    /// The data plane stops on purpose.
    #[error("the data plane says goodbye")]
    PeerLeaves,
    /// No hello in time.
    #[error("no hello within {} s", HELLO_LIMIT.as_secs())]
    PeerSlow,
    /// The first message is no hello.
    #[error("the first message of the data plane is no hello")]
    PeerNoHello,
    /// A frame that is no message.
    #[error(transparent)]
    PeerMessage(#[from] MessageError),
    /// No frame for [`LOST_BEATS`](crate::stream::LOST_BEATS) heartbeats.
    #[error("no frame from the data plane for {} ms", .0.as_millis())]
    PeerSilent(Duration),
    /// The log no longer reached the beginning of a copy, several times in a row.
    #[error("the configuration changes faster than it can be copied")]
    Overtaken,
    /// The control plane stops.
    #[error("this control plane is stopping")]
    Stopped,
}

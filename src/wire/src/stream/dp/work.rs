//! What the data plane's end wants done, and what it is told.

use super::super::HELLO_LIMIT;
use super::super::message::{Applied, Changes, Held, MessageError, Refused, Row};
use crate::v2::RpcError;
use crate::v2::log_level::Asked;
use crate::{Frame, Moment};
use serde_json::Value;
use std::time::Duration;

/// Something to be done off the link's thread; answered with [`Command::Done`]. One at a time.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Verify the rows, store them with the version and digest they lead to, put them in force.
    Change(Changes),
    /// What is held is this version of this store, if it has this digest.
    Adopt {
        /// What it is from now on.
        held: Held,
    },
    /// A copy begins: make room beside what is in force.
    Begin,
    /// Verify the rows and add them to the copy.
    Rows(Vec<Row>),
    /// The copy is whole: put it in force, if it has this digest.
    Finish {
        /// What it is.
        held: Held,
    },
}

/// What came of a [`Work`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Stored and in force.
    Applied {
        /// What is held now.
        held: Held,
        /// When it was on disk.
        stored: Moment,
        /// When requests saw it.
        active: Moment,
    },
    /// The piece of the copy was added.
    Taken,
    /// The rows are not valid; what was there stays.
    Refused {
        /// The row at fault, as entity and id.
        row: Option<(String, String)>,
        /// What is wrong, in words.
        fault: String,
    },
    /// The rows lead to another digest than they should; what was there stays.
    Diverged {
        /// The digest they lead to.
        found: String,
    },
    /// This node cannot store them; what was there stays.
    NotStored {
        /// Why, in words.
        fault: String,
    },
}

/// What the driver should do, in the order given.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Send the frame.
    Send(Frame),
    /// Do this.
    Work(Work),
    /// Worth a log line or a place in the node's status.
    Report(Report),
    /// Read or set the log level, then answer with [`Command::Answer`].
    LogLevel {
        /// Id of the question.
        id: u64,
        /// What is asked.
        asked: Asked,
    },
    /// Send an empty close frame if the connection is open, then drop it. Nothing follows.
    HangUp(Reason),
}

/// News for the log and the status of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The control plane answered the hello.
    Welcomed {
        /// Id of its store.
        store_id: String,
        /// Its newest version.
        version: u64,
    },
    /// A copy is on its way.
    Copying {
        /// Why, in words.
        why: String,
    },
    /// A version is in force.
    Applied(Applied),
    /// Something was refused.
    Refused(Refused),
    /// Everything was asked for.
    WantsSnapshot {
        /// Why, in words.
        why: String,
    },
    /// The control plane withholds its configuration.
    Withheld {
        /// Kong's word for it.
        status: String,
        /// Why, in words.
        words: String,
    },
}

/// Why the connection ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The connection broke; the driver's words.
    #[error("connection lost: {0}")]
    PeerLost(String),
    /// The control plane sent a close frame.
    #[error("the control plane closed the connection")]
    PeerClosed,
    /// The control plane stops on purpose.
    #[error("the control plane says goodbye")]
    PeerLeaves {
        /// How long to wait before dialing it again.
        reconnect_after: Duration,
    },
    /// No answer to the hello.
    #[error("no answer to the hello within {} s", HELLO_LIMIT.as_secs())]
    PeerSlow,
    /// Something else than an answer to the hello.
    #[error("something else than an answer to the hello")]
    PeerNoWelcome,
    /// A frame that is no message.
    #[error(transparent)]
    PeerMessage(#[from] MessageError),
    /// No frame for too long.
    #[error("no frame from the control plane for {} ms", .0.as_millis())]
    PeerSilent(Duration),
    /// More messages than the windows allow.
    #[error("more messages of the control plane than it may send unanswered")]
    PeerFlood,
    /// The node stops.
    #[error("this node is stopping")]
    Stopped,
}

/// What is told to the machine from above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The work handed out last has been done.
    Done(Outcome),
    /// The answer of [`Effect::LogLevel`].
    Answer {
        /// Id of the question.
        id: u64,
        /// The result, or why there is none.
        outcome: Result<Value, RpcError>,
    },
    /// End the connection.
    Stop,
}

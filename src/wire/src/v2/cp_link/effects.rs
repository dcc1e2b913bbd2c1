//! What the control plane's side wants done, and what it is told.

use super::CALLS_LIMIT;
use crate::Frame;
use crate::v2::log_level::Asked;
use crate::v2::rpc::{MessageError, RpcError};
use crate::v2::{CALL_LIMIT, Dialect, Held, Hello, HelloError, Refusal, SILENCE_LIMIT};
use serde_json::Value;
use std::sync::Arc;

/// What the driver should do, in the order given.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// The node is accepted: tell the link of new versions ([`Command::NewVersion`]) from now on.
    Joined(Arc<Hello>),
    /// Send the frame.
    Send(Frame),
    /// Make the answer for a node that has this version, then give [`Command::Answer`] with the same id.
    Pull {
        /// Id of the call.
        id: Value,
        /// Version the node has; 0: none that leads on.
        version: u64,
        /// Words of the answer.
        dialect: Dialect,
    },
    /// Store what is known of the node: it has this.
    Record(Held),
    /// A call of [`Command::Ask`] has ended.
    Asked {
        /// Key of the call.
        key: u64,
        /// The result, or why there is none.
        outcome: Result<Value, RpcError>,
    },
    /// The node refused rows.
    Refused(Refusal),
    /// Worth a log line.
    Report(Report),
    /// Send an empty close frame if the connection is open, then drop it. Nothing follows.
    HangUp(Reason),
}

/// News for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The node answered a notification with an error.
    NotifyFailed(RpcError),
    /// The node did not answer a notification in time.
    NotifyUnanswered,
    /// An answer is too long for a frame; the node is told so.
    AnswerTooLong {
        /// Its bytes, packed.
        actual: usize,
        /// Bytes allowed.
        limit: usize,
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
    /// No hello in time.
    #[error("no hello within {} s", CALL_LIMIT.as_secs())]
    PeerSlow,
    /// The first frame is no hello.
    #[error(transparent)]
    PeerHello(#[from] HelloError),
    /// A frame that is no message.
    #[error(transparent)]
    PeerMessage(#[from] MessageError),
    /// No frame for [`SILENCE_LIMIT`].
    #[error("no frame from the data plane for {} s", SILENCE_LIMIT.as_secs())]
    PeerSilent,
    /// More than [`CALLS_LIMIT`] calls at once.
    #[error("more than {CALLS_LIMIT} calls of the data plane at once")]
    PeerFlood,
    /// An answer cannot be packed.
    #[error("cannot pack an answer: {0}")]
    Answer(String),
    /// The control plane stops.
    #[error("this control plane is stopping")]
    Stopped,
}

/// What is told to the machine from above.
#[derive(Debug, Clone)]
pub enum Command {
    /// The configuration has this version now.
    NewVersion(u64),
    /// The answer of [`Effect::Pull`]: the result as JSON text.
    Answer {
        /// Id of the call.
        id: Value,
        /// The result, or why there is none.
        outcome: Result<Arc<str>, RpcError>,
    },
    /// Ask the node; [`Effect::Asked`] with the same key follows.
    Ask {
        /// Tells this call from others.
        key: u64,
        /// What is asked.
        asked: Asked,
    },
    /// End the link.
    Stop,
}

/// What the machine is told at its making.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Version of the configuration.
    pub version: u64,
    /// Offer `kong.sync.v2` (`cluster_incremental_sync`).
    pub sync: bool,
    /// Longest message in bytes when unpacked.
    pub limit: usize,
    /// Longest frame in bytes (`cluster_max_payload`). An answer over it is an error, not the end of the link: the node
    /// would come back and ask again.
    pub frame_limit: usize,
    /// Which cluster this is; said to nodes of gwctl.
    pub cluster_id: Option<Arc<str>>,
}

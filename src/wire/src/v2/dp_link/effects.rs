//! What the data plane's side wants done, and what it is told.

use super::DIAL_LIMIT;
use crate::Frame;
use crate::v2::log_level::Asked;
use crate::v2::rpc::{MessageError, RpcError};
use crate::v2::{CALL_LIMIT, Deltas, Hello, HelloError, SILENCE_LIMIT};
use serde_json::Value;
use std::time::Duration;

/// What the driver should do, in the order given.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Connect and upgrade to the control plane with this index in the configured list; answer with
    /// [`DpLink::handle_opened`](super::DpLink::handle_opened) or [`DpLink::handle_lost`](super::DpLink::handle_lost).
    Dial {
        /// Index into the list of control planes.
        control_plane: usize,
    },
    /// Send the frame.
    Send(Frame),
    /// Verify and apply the rows off the link's thread, then answer with [`Command::Applied`]. At most one is under way.
    Apply {
        /// The rows.
        deltas: Deltas,
        /// The version they build on.
        base: u64,
    },
    /// Begin (true) or end (false) to be configured over protocol v1.
    Fallback(bool),
    /// Read or set the log level, then answer with [`Command::Answer`].
    LogLevel {
        /// Id of the call.
        id: Value,
        /// What is asked.
        asked: Asked,
    },
    /// Send an empty close frame if the connection is open, then drop it (or stop dialing).
    HangUp(Reason),
    /// Something worth a log line or a place in the node's status.
    Report(Report),
}

/// Why a link ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The dial or the connection failed; the driver's words.
    #[error("connection failed: {0}")]
    PeerLost(String),
    /// The peer answers but does not speak v2; the driver's words.
    #[error("protocol v2 is not offered: {0}")]
    PeerRefused(String),
    /// The control plane sent a close frame.
    #[error("the control plane closed the connection")]
    PeerClosed,
    /// No upgrade within [`DIAL_LIMIT`].
    #[error("no answer within {} s of dialing", DIAL_LIMIT.as_secs())]
    PeerSlow,
    /// No answer to the hello in time.
    #[error("no answer to the hello within {} s", CALL_LIMIT.as_secs())]
    PeerNoHello,
    /// An answer to the hello that makes no sense.
    #[error(transparent)]
    PeerHello(#[from] HelloError),
    /// A frame that is no message.
    #[error(transparent)]
    PeerMessage(#[from] MessageError),
    /// No frame for [`SILENCE_LIMIT`].
    #[error("no frame from the control plane for {} s", SILENCE_LIMIT.as_secs())]
    PeerSilent,
    /// A call cannot be packed.
    #[error("cannot pack a call: {0}")]
    Call(String),
    /// The control plane said goodbye and when to come back.
    #[error("the control plane says goodbye")]
    PeerLeft {
        /// How long to wait before dialing again.
        reconnect_after: Duration,
    },
    /// The node stops.
    #[error("this node is stopping")]
    Stopped,
}

/// News for the log and the status of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The link to this control plane is live.
    Connected {
        /// Index into the list of control planes.
        control_plane: usize,
        /// It offers `kong.sync.v2`.
        sync: bool,
    },
    /// The link ended, or never came to be.
    Disconnected {
        /// Index into the list of control planes.
        control_plane: usize,
        /// Why.
        reason: Reason,
        /// Wait until the next attempt.
        retry_in: Duration,
    },
    /// What is here is of another cluster than the control plane's: everything is asked for.
    AnotherCluster,
    /// A version is in force now.
    Applied {
        /// Its number.
        version: u64,
    },
    /// Rows were refused; the old configuration stays in force.
    Refused {
        /// What is wrong with them.
        fault: String,
    },
    /// A pull was answered with an error.
    PullFailed(RpcError),
    /// A pull was not answered in time.
    PullUnanswered,
}

/// What the driver reports about rows it was told to apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// They are stored and in force.
    Applied(u64),
    /// They are not valid; the old configuration stays.
    Refused(String),
    /// They are valid, but this node could not store them (disk full); the old configuration stays.
    NotStored(String),
}

/// What is told to the machine from above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Begin; without effect once begun.
    Start,
    /// The rows of [`Effect::Apply`] have been dealt with.
    Applied(Outcome),
    /// The answer of [`Effect::LogLevel`].
    Answer {
        /// Id of the call.
        id: Value,
        /// The result, or why there is none.
        outcome: Result<Value, RpcError>,
    },
    /// End for good.
    Stop,
}

/// What the machine is told at its making.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Number of control planes to choose from, at least 1.
    pub control_planes: usize,
    /// What the node says of itself.
    pub hello: Hello,
    /// Version of the configuration loaded at start; 0 when none.
    pub version: u64,
    /// Longest message in bytes when unpacked.
    pub limit: usize,
    /// Take the configuration by v2 where it is offered (`cluster_incremental_sync`). Otherwise v1 brings it, and v2 is
    /// there for calls.
    pub sync: bool,
    /// Seed of the jitter.
    pub seed: u64,
}

/// What a node has when a connection opens. Protocol v1 may have changed it since the last one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// The version in force; 0 when none.
    pub version: u64,
    /// The cluster it is of.
    pub cluster_id: Option<String>,
}

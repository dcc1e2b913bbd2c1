//! What the data plane's side wants done, and what it is told.

use super::{DIAL_LIMIT, SILENCE_LIMIT};
use crate::{ConfigHash, Frame};
use bytes::Bytes;
use std::time::Duration;

/// What the driver should do, in the order given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Connect and upgrade to the control plane with this index in the configured list; answer with
    /// [`DpLink::handle_opened`](super::DpLink::handle_opened) or [`DpLink::handle_lost`](super::DpLink::handle_lost).
    Dial {
        /// Index into the list of control planes.
        control_plane: usize,
    },
    /// Send the frame.
    Send(Frame),
    /// Examine and apply the payload off the link's thread ([`crate::v1::reconfigure::examine`]), then answer with
    /// [`Command::Applied`]. At most one is under way.
    Apply {
        /// The compressed message as it came.
        payload: Bytes,
        /// The hash in force, for the comparison.
        in_force: ConfigHash,
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
    /// The control plane sent a close frame.
    #[error("the control plane closed the connection")]
    PeerClosed,
    /// No upgrade within [`DIAL_LIMIT`].
    #[error("no answer within {} s of dialing", DIAL_LIMIT.as_secs())]
    PeerSlow,
    /// No frame for [`SILENCE_LIMIT`].
    #[error("no frame from the control plane for {} s", SILENCE_LIMIT.as_secs())]
    PeerSilent,
    /// The payload could not be read at all.
    #[error("undecodable payload: {0}")]
    PeerUndecodable(String),
    /// The payload could not be stored here.
    #[error("{0}; the configuration will be asked for again")]
    IoNotStored(String),
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
    /// A payload is in force now.
    Applied {
        /// Its hash.
        hash: ConfigHash,
    },
    /// A payload was refused; the old configuration stays in force.
    Refused {
        /// What is wrong with it.
        fault: String,
    },
    /// A frame that a data plane has no use for was ignored.
    Ignored {
        /// Its kind.
        kind: &'static str,
    },
}

/// What the driver reports about a payload it was told to apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is stored and in force under this hash.
    Applied(ConfigHash),
    /// It carries the hash already in force; nothing was done.
    Unchanged,
    /// It is a message of an unknown type; nothing was done.
    Skipped,
    /// It decodes but is not valid; the old configuration stays.
    Refused(String),
    /// It is valid, but this node could not store it (disk full); the old configuration stays. The link is opened anew
    /// later, upon which the control plane sends its configuration again: nothing else would, until the next change.
    NotStored(String),
    /// It is not compressed JSON, or breaks a limit.
    Undecodable(String),
}

/// What is told to the machine from above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Begin; without effect once begun.
    Start,
    /// The payload of [`Effect::Apply`] has been dealt with.
    Applied(Outcome),
    /// End for good.
    Stop,
}

/// What the machine is told at its making.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Number of control planes to choose from, at least 1.
    pub control_planes: usize,
    /// The encoded basic info ([`crate::v1::BasicInfo::encode`]).
    pub basic_info: Bytes,
    /// Hash of the configuration loaded at start; zero when none.
    pub hash: ConfigHash,
    /// Seed of the jitter.
    pub seed: u64,
}

//! What the control plane's side wants done, and what it is told.

use super::{INFO_LIMIT, PING_LIMIT, PONG_LIMIT};
use crate::compat::{PayloadProfile, SyncStatus, Verdict, VersionError};
use crate::v1::{BasicInfo, BasicInfoError};
use crate::{ConfigHash, Frame};
use std::sync::Arc;

/// What the driver should do, in the order given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The node is accepted: register the link for changes and hand in the payload ([`Command::Payload`], or
    /// [`Command::NoPayload`] when there is none).
    WantPayload {
        /// What the node said of itself.
        info: Arc<BasicInfo>,
    },
    /// Write the frame, then give [`Command::Written`].
    Send(Frame),
    /// Write the payload whose profile was handed in last, in the variant for this node's version
    /// ([`crate::compat::rewrite`]), then give [`Command::Written`].
    Push,
    /// Store what is known of the node.
    Record(NodeRecord),
    /// The newest payload is not sent to this node.
    Withhold(Verdict),
    /// Send an empty close frame if the connection is open, then drop it. Nothing follows.
    HangUp(Reason),
}

/// What the control plane keeps of a data plane, beside what its request said (id, host name, version, address).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord {
    /// Whether it can be sent the configuration.
    pub sync_status: SyncStatus,
    /// The hash of its latest ping; zero before the first.
    pub config_hash: ConfigHash,
    /// Its labels.
    pub info: Arc<BasicInfo>,
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
    /// No basic info within [`INFO_LIMIT`].
    #[error("no basic info within {} s", INFO_LIMIT.as_secs())]
    PeerSlow,
    /// The first frame is no basic info.
    #[error(transparent)]
    PeerBasicInfo(#[from] BasicInfoError),
    /// The node's Kong version does not fit.
    #[error(transparent)]
    PeerVersion(#[from] VersionError),
    /// A ping whose payload is not 32 bytes.
    #[error("expected a ping with a hash of 32 bytes, got a {kind} frame of {length} bytes")]
    PeerBadHash {
        /// Kind of the frame.
        kind: &'static str,
        /// Bytes of payload.
        length: usize,
    },
    /// A frame that is no ping.
    #[error("expected a ping, got a {actual} frame")]
    PeerFrameKind {
        /// Kind of the frame.
        actual: &'static str,
    },
    /// No ping for [`PING_LIMIT`].
    #[error("no ping from the data plane for {} s", PING_LIMIT.as_secs())]
    PeerSilent,
    /// More than [`PONG_LIMIT`] pings while one write was under way.
    #[error("more than {PONG_LIMIT} pings while the data plane read nothing")]
    PeerFlood,
    /// The control plane stops.
    #[error("this control plane is stopping")]
    Stopped,
}

/// What is told to the machine from above.
#[derive(Debug, Clone)]
pub enum Command {
    /// A payload is ready: the first, or a newer one.
    Payload(Arc<PayloadProfile>),
    /// Asked for by [`Effect::WantPayload`], but none can be made now; the next change will bring one.
    NoPayload,
    /// The write of the latest [`Effect::Send`] or [`Effect::Push`] is complete.
    Written,
    /// End the link.
    Stop,
}

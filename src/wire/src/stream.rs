//! `gwctl.sync.v1`: our own sync between a control plane and a data plane of gwctl.
//!
//! It needs no path of its own: the data plane adds the header [`HEADER`] to the upgrade request it makes anyway, the
//! control plane repeats it in its answer, and from then on the connection carries the frames of [`message`] in place of
//! those of v1 or v2. A peer that does not know the header ignores it, and the connection goes on as it always did.
//!
//! A configuration is a set of rows with a version and a digest. The data plane says what it holds; the control plane
//! sends what changed since then, one frame for each version or for several that are joined, or a copy of everything in
//! pieces. Every frame of changes names the version it builds on and the digest it leads to, so neither end can go
//! astray unseen. The data plane answers each with a report or a refusal. [`cp`] and [`dp`] hold the two ends as
//! machines without sockets.

pub mod cp;
pub mod dp;
pub mod message;
#[cfg(test)]
mod pair;

pub use cp::CpStream;
pub use dp::DpStream;
pub use message::{FromCp, FromDp, Held, Hello, MessageError, Row};

use crate::Moment;
use std::time::Duration;

/// Header of the upgrade request and of its answer that offers and accepts this protocol.
pub const HEADER: &str = "Gwctl-Sync";

/// Value of [`HEADER`]: the generation of the protocol.
pub const GENERATION: &str = "1";

/// Longest wait for the hello and for its answer.
pub const HELLO_LIMIT: Duration = Duration::from_secs(10);

/// Time between two pings of a data plane unless the control plane asks for another.
pub const HEARTBEAT: Duration = Duration::from_secs(5);

/// Shortest and longest time between two pings that a data plane agrees to.
pub const HEARTBEAT_BOUNDS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

/// Heartbeats without a sign of life after which a node counts as late.
pub const LATE_BEATS: u32 = 2;

/// Heartbeats without a sign of life after which the link is given up.
pub const LOST_BEATS: u32 = 4;

/// Frames of changes that may be on their way without an answer. What is committed meanwhile is joined into the next
/// one, so a slow node costs no memory.
pub const CHANGES_WINDOW: usize = 4;

/// Pieces of a copy that may be on their way without being taken.
pub const PIECES_WINDOW: usize = 8;

/// Bytes of JSON a piece of a copy aims at. It holds one row at least.
pub const PIECE_BYTES: usize = 256 * 1024;

/// Bytes of JSON that several versions are joined up to. A single version may be larger, up to
/// [`LARGEST_CHANGE`].
pub const JOINED_BYTES: usize = 1024 * 1024;

/// Bytes of JSON of changes above which a copy is sent instead.
pub const LARGEST_CHANGE: usize = 4 * 1024 * 1024;

/// Wait between two copies for the same node that follow each other because something does not fit.
pub const COPY_PAUSE: Duration = Duration::from_secs(5);

/// Longest wait before dialing again that a control plane may ask for when it says goodbye.
pub const LONGEST_FAREWELL: Duration = Duration::from_secs(60);

/// When an end last heard its peer. Any frame counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Heard {
    at: Moment,
    heartbeat: Duration,
}

impl Heard {
    fn lost_at(&self) -> Moment {
        self.at + self.heartbeat * LOST_BEATS
    }
}

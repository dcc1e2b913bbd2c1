//! Protocol v2: JSON-RPC over one WebSocket on `/v2/outlet`, changes instead of whole configurations.
//!
//! The data plane says what it is and can ([`hello`]); after that every binary frame is one compressed block
//! ([`block`]) with one JSON-RPC message ([`rpc`]). Both ends call: the data plane pulls changes, the control plane
//! tells of new versions ([`sync`]) and sets the level of the data plane's log ([`log_level`]). Between nodes of gwctl the
//! data plane also says what it refused ([`report`]). [`cp_link`] and [`dp_link`] hold the two sides as machines without
//! sockets.
//!
//! Kong 3.9 and 3.10 use the same names with other words; [`dialect`] has the difference.

pub mod block;
pub mod cp_link;
pub mod dialect;
pub mod dp_link;
pub mod hello;
pub mod log_level;
#[cfg(test)]
mod pair;
pub mod report;
pub mod rpc;
pub mod sync;

pub use cp_link::CpLink;
pub use dialect::Dialect;
pub use dp_link::DpLink;
pub use hello::{Hello, HelloError, Welcome};
pub use report::Refusal;
pub use rpc::{Message, MessageError, RpcError};
pub use sync::{Delta, Deltas, Held};

use std::time::Duration;

/// Subprotocol of the WebSocket, offered alone and echoed.
pub const SUBPROTOCOL: &str = "kong.meta.v1";

/// Longest wait for the hello, for its answer, and for the answer of any call.
///
/// Source: Kong 3.9.1 `kong/clustering/rpc/manager.lua`, `socket.lua`.
pub const CALL_LIMIT: Duration = Duration::from_secs(5);

/// Silence after which an end pings.
///
/// Source: Kong 3.9.1 `kong/clustering/rpc/socket.lua`, `CLUSTERING_PING_INTERVAL`.
pub const PING_AFTER: Duration = Duration::from_secs(30);

/// Time between two pings on a link that stays silent.
pub const PING_AGAIN: Duration = Duration::from_secs(5);

/// Silence after which an end gives the link up.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(45);

/// When an end last heard its peer, and what follows from it. Any frame counts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Heard {
    at: crate::Moment,
    ping_at: crate::Moment,
}

impl Heard {
    fn now(now: crate::Moment) -> Self {
        Self { at: now, ping_at: now + PING_AFTER }
    }

    fn pinged(&mut self, now: crate::Moment) {
        self.ping_at = now + PING_AGAIN;
    }

    fn silent_at(&self) -> crate::Moment {
        self.at + SILENCE_LIMIT
    }
}

//! The cluster protocols of Kong hybrid mode, without sockets.
//!
//! Frames and clocks go in, frames and effects come out; sockets, threads and timers belong to the roles. The pieces
//! that every protocol generation shares stand at the top, each generation has its own module.
//!
//! - [`frame`]: WebSocket frames as data; [`moment`]: time as an argument.
//! - [`hash`]: config hash and part hashes ([`ConfigHash`], [`Hashes`]), the values a node derives from them.
//! - [`table`]: the configuration table a data plane receives ([`ConfigTable`]); [`export`]: how it is made.
//! - [`compat`]: which versions and plugins fit together, and the rewrite of the table for older nodes.
//! - [`backoff`]: when a data plane dials again.
//! - [`v1`]: full push on `/v1/outlet`: `basic_info`, `reconfigure`, the link machines of both sides.
//! - [`stream`]: our own sync between nodes of gwctl, in place of v1 and v2 where both ends have it.
//! - [`v2`]: changes on `/v2/outlet`: JSON-RPC, `kong.sync.v2`, the link machines of both sides.

#![warn(missing_docs)]
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test may panic"))]

pub mod backoff;
pub mod compat;
pub mod export;
pub mod frame;
pub mod hash;
pub mod moment;
#[cfg(test)]
mod network;
pub mod stream;
pub mod table;
pub mod v1;
pub mod v2;

pub use frame::Frame;
pub use hash::{ConfigHash, Hashes};
pub use moment::Moment;
pub use table::ConfigTable;

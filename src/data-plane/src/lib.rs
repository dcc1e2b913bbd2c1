//! The data plane role: the serving part of a node, its cache, and the link that keeps it up to date.
//!
//! - [`gateway`]: configuration to snapshot to workers; also the serving part of traditional nodes.
//! - [`directory`]: records read by key at request time.
//! - [`DataPlane`]: cache, link and status of a node that is configured by a control plane.

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod apply;
mod changes;
mod connection;
pub mod directory;
pub mod gateway;
mod link;
mod rows;
mod start;
mod status;
mod stream;
mod sync;

pub use apply::Configured;
pub use directory::{RecordDirectory, RecordSource};
pub use gateway::Gateway;
pub use gwctl_wire::v2::log_level::Levels;
pub use start::{DataPlane, DataPlaneOptions, Joined, LinkTls, StartError};
pub use sync::LogLevels;

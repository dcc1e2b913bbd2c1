//! The control plane role: a store with its Admin API, and the cluster listener that keeps data planes up to date.
//!
//! - [`backend`]: the node behind the Admin API, also for traditional nodes and nodes without a store.
//! - [`fleet`]: what is known of the data planes.
//! - [`start_cluster`]: the cluster listener with everything behind it.

mod answers;
pub mod backend;
mod calls;
mod connection;
mod credentials;
pub mod declarative;
mod first_token;
pub mod fleet;
mod listener;
mod metrics;
mod payload;
mod publisher;
mod revocation;
mod session;
mod start;
mod stream_session;
mod sync_session;

pub use backend::{Process, StoreBackend};
pub use credentials::ClusterCredentials;
pub use first_token::{FirstTokenError, first_token};
pub use fleet::FleetTable;
pub use start::{Cluster, ClusterSockets, StartError, bootstrap, purge_expired, start_cluster};

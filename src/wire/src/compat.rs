//! Which nodes and plugins fit together, and what older nodes are sent.
//!
//! - [`check_version`]: Kong versions, once for each connection.
//! - [`vet`]: configured plugins, filters and routes, before every push.

mod status;
mod version;
mod vetting;

pub use status::SyncStatus;
pub use version::{Version, VersionError, check_version};
pub use vetting::{PayloadProfile, Verdict, vet};

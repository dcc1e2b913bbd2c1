//! Which nodes and plugins fit together, and what older nodes are sent.
//!
//! - [`check_version`]: Kong versions, once for each connection.
//! - [`vet`]: configured plugins, filters and routes, before every push.
//! - [`rewrite`]: the table without what an older node does not know, one for each [`Variant`].

mod removed;
mod rewrite;
mod status;
mod steps;
#[cfg(test)]
mod tests;
mod version;
mod vetting;

pub use rewrite::{Rewritten, Variant, rewrite};
pub use status::SyncStatus;
pub use version::{Version, VersionError, check_version};
pub use vetting::{PayloadProfile, Verdict, vet};

//! The store: where configuration lives, and the log of how it changed.
//!
//! - [`contract`]: [`Store`], the trait every engine implements, and what its calls give back.

pub mod contract;
mod fill;

pub use contract::{Change, Changes, Commit, Delta, HistoryEntry, Origin, Store, Work};
pub use fill::{SystemFill, unix_millis};

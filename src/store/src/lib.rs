//! The store: where configuration lives, and the log of how it changed.
//!
//! - [`contract`]: [`Store`], the trait every engine implements, and what its calls give back.
//! - [`lmdb`]: [`LmdbStore`], the embedded engine.
//! - [`digest`]: [`Digest`], one number for the whole configuration.
//! - [`cache`]: [`DataPlaneCache`], what a data plane keeps of its configuration.
//!
//! Both keep records and indexes in the same tables by the same code; the store adds rules and the change log.
#![warn(missing_docs)]
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test fails by panicking"))]

pub mod cache;
mod check;
mod checksum;
pub mod contract;
pub mod digest;
mod environment;
mod fault;
mod fill;
mod gate;
mod index;
mod keys;
pub mod lmdb;
mod log;
mod pages;
mod reading;
#[cfg(test)]
mod suite;
mod tables;
mod writing;

pub use cache::{Applied, CachedConfiguration, DataPlaneCache, Opening, Portion, Stand};
pub use contract::{Change, Changes, Commit, Delta, HistoryEntry, Origin, Part, Place, Position, Rows, Store, Work};
pub use digest::Digest;
pub use environment::{FolderLock, MapSize};
pub use fault::StoreError;
pub use fill::{SystemFill, unix_millis};
pub use lmdb::{LmdbOptions, LmdbStore};

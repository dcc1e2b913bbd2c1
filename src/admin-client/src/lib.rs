//! Typed client of the Admin API, of gwctl and of Kong.
//!
//! [`Client`] sends single requests, follows the pages of lists and reads the fleet. Every error says which control
//! plane was asked for what, carries Kong's own message, code and fields, and tells what to try
//! ([`ClientError::hint`]). It never retries a write.
#![warn(missing_docs)]
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod changes;
mod client;
mod error;
mod fleet;
mod history;
mod list;
#[cfg(test)]
mod tests;

pub use changes::{ChangeOperation, ChangesDone};
pub use client::{Client, Options, Token};
pub use error::{ClientError, Refusal};
pub use history::{HistoryRow, NamedRecord, RecordDelta, RolledBack, VersionDeltas};
pub use list::{ListQuery, PAGE_SIZE, escape};

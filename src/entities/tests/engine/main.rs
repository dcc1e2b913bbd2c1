//! The schema engine as its callers see it.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod keys;
mod lookups;
mod processing;
mod properties;
mod support;

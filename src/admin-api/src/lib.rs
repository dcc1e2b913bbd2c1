//! Kong's Admin API and Status API over HTTP, on a [`Backend`].
//!
//! - [`backend`]: what the node behind the API must offer.
//! - [`mod@serve`]: listeners; [`serve::Listener::bind`] first, then [`serve::serve`].
//!
//! Beyond Kong: everything below `/gwctl`; the version as `ETag` on answers that show or change records; `If-Match` with
//! such a version on a write, which is refused with 412 when another write came first; `?dry_run=1` on every write;
//! `Gwctl-User` for the history.

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod answer;
mod api;
pub mod backend;
mod caller;
mod certificate;
mod changes;
mod clustering;
mod context;
mod entity;
mod events;
#[cfg(test)]
mod fake;
mod form;
#[doc(hidden)]
pub mod fuzzing;
mod history;
mod http;
mod list;
mod lookup;
mod mask;
mod multipart;
mod node;
mod openapi;
mod patience;
mod place;
mod record_log;
mod request;
mod rollback;
mod schemas;
pub mod serve;
mod status;
mod tags;
mod target;
#[cfg(test)]
mod tests;
mod token;
mod write;

pub use backend::{
    Backend, DataPlaneRow, DeclarativeDocument, DeclarativeLoaded, DeclarativeOptions, LogScope, MarkRefusal,
    NodeFacts, Origin, ShownSettings, StatusFacts,
};
pub use record_log::{
    ChangesAfter, FleetNews, RecordChange, SummaryAfter, VersionChanges, VersionHeading, VersionSummary,
};
pub use serve::{BindError, Face, Limits, ListenOptions, Listener, ServeOptions, serve, serve_with};
pub use token::{Role, TOKENS_SETTING, Token, Tokens, token_hash, token_secret};

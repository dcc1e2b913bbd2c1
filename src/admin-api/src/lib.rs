//! Kong's Admin API and Status API over HTTP, on a [`Backend`].
//!
//! - [`backend`]: what the node behind the API must offer.
//! - [`mod@serve`]: listeners; [`serve::Listener::bind`] first, then [`serve::serve`].
//!
//! Beyond Kong: `GET /gwctl/fleet`; the header `gwctl-version` on answers that show or change records; `If-Match` with
//! such a version on a write, which is refused with 412 when another write came first; `Gwctl-User` for the history.

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod answer;
mod api;
pub mod backend;
mod certificate;
mod clustering;
mod context;
mod entity;
#[cfg(test)]
mod fake;
mod form;
mod http;
mod list;
mod lookup;
mod multipart;
mod node;
mod place;
mod request;
mod schemas;
pub mod serve;
mod status;
mod tags;
mod target;
#[cfg(test)]
mod tests;
mod write;

pub use backend::{
    Backend, DataPlaneRow, DeclarativeDocument, DeclarativeLoaded, DeclarativeOptions, LogScope, NodeFacts, Origin,
    StatusFacts,
};
pub use serve::{BindError, Face, ListenOptions, Listener, serve};

//! Kong's Admin API and Status API over HTTP, on a [`Backend`].
//!
//! - [`backend`]: what the node behind the API must offer.
//! - [`serve`]: listeners; [`serve::Listener::bind`] first, then [`serve::serve`].

pub mod backend;
pub mod serve;

pub use backend::{
    Backend, DataPlaneRow, DeclarativeDocument, DeclarativeLoaded, DeclarativeOptions, LogScope, NodeFacts, Origin,
    StatusFacts,
};
pub use serve::{BindError, Face, ListenOptions, Listener, serve};

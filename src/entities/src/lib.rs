//! Schema engine of gwctl: what can be configured, and whether it is valid.
//!
//! Everything that is configured (services, routes, plugins and their settings, credentials ...) is a [`Record`],
//! a JSON-like map validated by its schema. One engine gives validation with Kong-shaped error trees, defaults,
//! `GET /schemas/*`, foreign keys and uniqueness; the Admin API, the declarative format and the store read the
//! same schemas. This crate is pure: clock, randomness and stored records are arguments.
//!
//! - [`registry`]: every schema a node knows; the entry point ([`Registry`]).
//! - [`schema`]: fields and their rules as data ([`Schema`], [`Field`]).
//! - [`access`]: how stored records are read and written ([`Read`], [`Write`]); the store implements it.
//! - [`error`]: the coded errors of the Admin API ([`EntityError`]).
//! - [`fleet`]: the fleet document of `GET /gwctl/fleet`.
//! - [`view`]: typed structs of records for the request path.

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test"))]

mod engine;
mod keys;
mod lua_pattern;
mod message;
mod transform;
mod validators;

pub mod access;
pub mod error;
pub mod fill;
pub mod fleet;
pub mod registry;
pub mod schema;
pub mod view;

pub use access::{Page, PageQuery, Read, TagFilter, Write};
pub use error::EntityError;
pub use fill::Fill;
pub use registry::{
    EntitySchema, ForeignKey, NodeKind, OnDelete, PluginSchema, Registry, RegistryOptions, RouteJudge, UniqueField,
    ValidateMode,
};
pub use schema::{Field, FieldType, Schema};
pub use serde_json::{Map, Value};
pub use transform::normalised_target;

/// One configured thing as stored: field name to value, every schema field present, `null` when unset.
///
/// Foreign fields hold `{"id": "<uuid>"}` or null. `ttl`, where the entity has one, holds the absolute Unix second
/// of expiry (see [`Registry::present`] for what the Admin API shows instead).
pub type Record = Map<String, Value>;

/// Id of the default workspace when a configuration does not name one.
///
/// Source: Kong 3.9.1, declarative configuration without a `workspaces` entry.
pub const DEFAULT_WORKSPACE: &str = "0dc6f45b-8f8d-40d2-a504-473544ee190b";

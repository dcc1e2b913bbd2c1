//! Declarative files: read, write, ids, ordered diff.
//!
//! A declarative document describes a whole configuration (services with their routes and plugins, consumers with
//! their credentials ...). This crate reads its text, turns it into validated records, writes records back as text
//! and compares two configurations. It is pure: clock and randomness are arguments, and so is the number of threads
//! that may share the work on large documents for the time of a call.
//!
//! - [`text`]: YAML 1.1 and JSON text to a value, with line and column in errors ([`parse`]).
//! - [`yaml`]: a value as YAML text in a stable order ([`to_yaml`]).
//! - [`load`](mod@load): a document to records: placement, references, generated ids, validation ([`load()`]).
//! - [`bundle`]: several files, of Kong's or decK's dialect, as one document; where in them mistakes stand ([`Bundle`]).
//! - [`deck`]: what decK's files have beside the entities.
//! - [`dump`](mod@dump): stored records as a file for people ([`dump()`]), one dialect as the other ([`convert`]).
//! - [`answer`]: bodies and hash of `POST /config` and `GET /config`.
//! - [`plan`](mod@plan): the ordered operations that lead from one configuration to another ([`plan()`], [`diff`]).
//! - [`secret`]: which values must not be shown.
//! - [`render`]: a plan as text and JSON, secrets masked.

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a failed test may panic"))]

pub mod answer;
pub mod bundle;
mod compact;
pub mod deck;
pub mod dump;
pub mod load;
pub mod online;
pub mod plan;
pub mod render;
pub mod secret;
mod shape;
mod share;
pub mod text;
pub mod yaml;

pub use answer::{EMPTY_HASH, config_answer, export_document, export_text, md5_of, object_hash, text_hash};
pub use bundle::{Bundle, Finding};
pub use dump::{DumpOptions, Written, convert, dump};
pub use load::{Existing, LoadOptions, Loaded, Mistake, MistakeKind, Mode, Refusal, Table, load, load_located};
pub use online::{ToSend, records_to_send};
pub use plan::{
    Action, Change, DiffOptions, Operation, Parent, Plan, Recorded, changed_secrets, diff, is_planned, name_of, plan,
    recorded,
};
pub use shape::Dialect;
pub use text::{Limits, TextError, TextForm, parse};
pub use yaml::to_yaml;

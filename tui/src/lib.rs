//! The terminal dashboard: model, update, view.
//!
//! Pure: no sockets, no terminal, no clock. A driver feeds [`Event`]s to [`update`], carries out the [`Action`]s it
//! answers with, and draws [`view`] after each.
//!
//! - [`state`]: what a data plane's row says of it ([`State`]); the command line uses it too.
//! - [`keys`]: the one table that both the key handler and the help screen read.
//! - [`print`](mod@print): a frame as text, for `--once` and for tests.
#![warn(missing_docs)]
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod columns;
mod event;
mod filter;
pub mod format;
pub mod keys;
mod model;
pub mod print;
pub mod state;
#[cfg(test)]
mod tests;
mod theme;
mod update;
mod view;

pub use event::{Action, Event, Fault, Key};
pub use model::{Model, Options};
pub use print::frame_text;
pub use state::State;
pub use update::update;
pub use view::{view, whole_width};

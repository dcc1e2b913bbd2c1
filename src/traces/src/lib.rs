//! Distributed traces: what a request says of the trace it belongs to, what it is to say to the next server, and what a
//! collector is told of it.
//!
//! - [`id`]: ids of traces and spans.
//! - [`propagation`]: which formats are read and written, in which order ([`Propagation`]), and what they carry
//!   ([`Incoming`], [`Outgoing`]).
//! - `formats`: one file for each format of headers.
//! - [`tracestate`]: the other header of W3C trace context.
//! - [`span`], [`otlp`]: steps of a request, and how a collector is told of them.
#![warn(missing_docs)]
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod formats;
pub mod id;
pub mod otlp;
pub mod propagation;
pub mod span;
pub mod tracestate;

pub use id::{SpanId, TraceId};
pub use propagation::{Format, Incoming, Injection, Outgoing, Propagation};
pub use span::{Attribute, Kind, Span, Value};

#[cfg(test)]
mod tests;

//! HTTP/1 as bytes: heads, the framing of bodies, chunks. No socket, no clock: callers bring the bytes.
//!
//! The way in: [`read_request`] and [`read_response`] take a head off a buffer and say how its body is framed; a
//! [`Decoder`] takes the body. The way out: [`write_request`], [`write_response`], [`write_chunk_size`] and
//! [`write_last_chunk`].
//!
//! Strict where a message could be read in two ways (RFC 9112, sections 5 to 7 and 11.2): such a message is refused,
//! never repaired. [`Headers`] keep their order and the case of their names.

#![warn(missing_docs)]
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod chunks;
mod decode;
mod encode;
mod fault;
mod framing;
mod head;
mod headers;
pub mod names;
mod plain;
mod value;

#[cfg(test)]
mod tests;

pub use decode::{Decoder, Piece};
pub use encode::{
    Fields, Persistence, write_chunk_size, write_last_chunk, write_request, write_request_with, write_response,
};
pub use fault::Fault;
pub use framing::{Framing, has_token, keeps_alive, request_framing, response_framing};
pub use head::{Limits, RequestHead, ResponseHead, read_request, read_response};
pub use headers::{Fate, Headers, Iter, Line};
pub use names::{IntoName, Name, Names, ValidName};
pub use value::{AsValue, Digits, Hex, Value};

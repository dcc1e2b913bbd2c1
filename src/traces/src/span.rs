//! What is told of one step of a request.

use crate::id::{SpanId, TraceId};

/// Which side of a conversation a span is; the numbers are those of OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Work inside the node.
    Internal = 1,
    /// A request that was answered.
    Server = 2,
    /// A request that was made.
    Client = 3,
}

/// Value of an attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// A text.
    Text(&'a str),
    /// A whole number.
    Whole(i64),
    /// A truth value.
    Truth(bool),
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(text)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Whole(number)
    }
}

impl From<u16> for Value<'_> {
    fn from(number: u16) -> Self {
        Value::Whole(i64::from(number))
    }
}

/// A name and what it says.
pub type Attribute<'a> = (&'a str, Value<'a>);

/// One step of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Span<'a> {
    /// The trace it belongs to.
    pub trace: TraceId,
    /// Its own id.
    pub id: SpanId,
    /// The span it is a part of.
    pub parent: Option<SpanId>,
    /// What is done, the same for all requests.
    pub name: &'a str,
    /// See [`Kind`].
    pub kind: Kind,
    /// Unix time in nanoseconds.
    pub started: u64,
    /// Unix time in nanoseconds.
    pub ended: u64,
    /// What is known of it.
    pub attributes: &'a [Attribute<'a>],
    /// What went wrong; None: nothing.
    pub failure: Option<&'a str>,
}

//! Ids of traces and spans: never zero, which all formats keep for "none".

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};

/// Id of a trace: 16 bytes, read as one big-endian number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(NonZeroU128);

/// Id of a span: 8 bytes, read as one big-endian number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(NonZeroU64);

impl TraceId {
    /// The id of this number; None for zero.
    pub const fn new(number: u128) -> Option<TraceId> {
        match NonZeroU128::new(number) {
            Some(number) => Some(TraceId(number)),
            None => None,
        }
    }

    /// From 1 to 32 hexadecimal digits of either case; shorter ids are those of systems with fewer bits.
    pub fn from_hex(text: &str) -> Option<TraceId> {
        is_hex(text, 32).then(|| u128::from_str_radix(text, 16).ok()).flatten().and_then(TraceId::new)
    }

    /// The number.
    pub const fn number(self) -> u128 {
        self.0.get()
    }

    /// The bytes, as OTLP carries them.
    pub const fn bytes(self) -> [u8; 16] {
        self.0.get().to_be_bytes()
    }

    /// The lower half, all that systems with ids of 64 bits see of it.
    pub const fn low(self) -> u64 {
        // The cast takes the lower half.
        self.0.get() as u64
    }

    /// Whether a trace is in the share `rate` (0 to 1) of traces that are kept. All nodes that have the same rate, those
    /// of Kong among them, choose the same traces.
    ///
    /// Source: Kong 3.9.1 `kong/pdk/tracing.lua`: the first 8 bytes as a number of the processor's byte order.
    pub fn is_chosen(self, rate: f64) -> bool {
        let [a, b, c, d, e, f, g, h, ..] = self.bytes();
        let number = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        // 2^64: a number of 64 bits is below it.
        rate >= 1.0 || (number as f64) < rate * 18_446_744_073_709_551_616.0
    }
}

impl SpanId {
    /// The id of this number; None for zero.
    pub const fn new(number: u64) -> Option<SpanId> {
        match NonZeroU64::new(number) {
            Some(number) => Some(SpanId(number)),
            None => None,
        }
    }

    /// From 1 to 16 hexadecimal digits of either case.
    pub fn from_hex(text: &str) -> Option<SpanId> {
        is_hex(text, 16).then(|| u64::from_str_radix(text, 16).ok()).flatten().and_then(SpanId::new)
    }

    /// The number.
    pub const fn number(self) -> u64 {
        self.0.get()
    }

    /// The bytes, as OTLP carries them.
    pub const fn bytes(self) -> [u8; 8] {
        self.0.get().to_be_bytes()
    }
}

/// Whether a text has from 1 to `most` characters, all of them hexadecimal digits.
fn is_hex(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// 32 hexadecimal digits in lower case.
impl fmt::Display for TraceId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

/// 16 hexadecimal digits in lower case.
impl fmt::Display for SpanId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "TraceId({self})")
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SpanId({self})")
    }
}

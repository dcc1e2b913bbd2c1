//! Values of headers.

use crate::plain::is_without_controls;
use http::header::HeaderValue;
use std::fmt;

/// The value of a header: no control characters but tabs.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Value<'v>(pub(crate) &'v [u8]);

/// What can be the value of a header.
pub trait AsValue {
    /// The value.
    fn as_value(&self) -> Value<'_>;
}

impl<'v> Value<'v> {
    /// A text, if it can be a value.
    pub fn new(bytes: &'v [u8]) -> Option<Value<'v>> {
        (is_without_controls(bytes) || is_value(bytes)).then_some(Value(bytes))
    }

    /// Its bytes.
    pub const fn as_bytes(self) -> &'v [u8] {
        self.0
    }

    /// Its text, if it is of visible ASCII characters, blanks and tabs.
    pub fn to_str(self) -> Option<&'v str> {
        // Other control characters are in no value.
        if self.0.is_ascii() { std::str::from_utf8(self.0).ok() } else { None }
    }

    /// Whether it is this word, in any case. Most write it as it is given.
    #[inline]
    pub fn is_word(self, lower: &[u8]) -> bool {
        self.0 == lower || self.0.eq_ignore_ascii_case(lower)
    }

    /// Its length in bytes.
    pub const fn len(self) -> usize {
        self.0.len()
    }

    /// Whether it is empty.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// A copy of its own.
    pub fn to_owned(self) -> HeaderValue {
        HeaderValue::from_bytes(self.0).unwrap_or(HeaderValue::from_static(""))
    }
}

impl Value<'static> {
    /// A value known when this is compiled.
    ///
    /// # Panics
    /// When it cannot be a value: use it for constants.
    pub const fn from_static(text: &'static str) -> Value<'static> {
        assert!(is_value(text.as_bytes()), "a control character in a value");
        Value(text.as_bytes())
    }
}

const fn is_value(bytes: &[u8]) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        if (bytes[at] < b' ' && bytes[at] != b'\t') || bytes[at] == 127 {
            return false;
        }
        at += 1;
    }
    true
}

/// A number as the value of a header.
#[derive(Clone, Copy)]
pub struct Digits {
    digits: [u8; 20],
    start: u8,
}

impl Digits {
    /// In decimal.
    pub fn of(number: u64) -> Digits {
        // A u64 has at most 20 digits.
        let (mut digits, mut start, mut rest) = ([0; 20], 20, number);
        loop {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        Digits { digits, start: start as u8 }
    }

    /// Its text.
    pub fn as_bytes(&self) -> &[u8] {
        self.digits.get(usize::from(self.start)..).unwrap_or_default()
    }
}

impl AsValue for Digits {
    fn as_value(&self) -> Value<'_> {
        Value(self.as_bytes())
    }
}

/// A number of 128 bits as the value of a header: 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hex([u8; 32]);

impl Hex {
    /// Of its upper and its lower half.
    pub fn of(upper: u64, lower: u64) -> Hex {
        let mut digits = [0; 32];
        let bytes = upper.to_be_bytes().into_iter().chain(lower.to_be_bytes());
        for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
            pair.copy_from_slice(&PAIRS[usize::from(byte)]);
        }
        Hex(digits)
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        // Digits are ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The same as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Each byte as two hexadecimal digits.
const PAIRS: [[u8; 2]; 256] = {
    let (mut pairs, mut byte) = ([[0; 2]; 256], 0);
    while byte < pairs.len() {
        pairs[byte] = [b"0123456789abcdef"[byte >> 4], b"0123456789abcdef"[byte & 15]];
        byte += 1;
    }
    pairs
};

impl AsValue for Hex {
    fn as_value(&self) -> Value<'_> {
        Value(&self.0)
    }
}

impl fmt::Debug for Hex {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\"{}\"", self.0.escape_ascii())
    }
}

impl PartialEq<str> for Value<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Value<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl AsValue for Value<'_> {
    fn as_value(&self) -> Value<'_> {
        *self
    }
}

impl AsValue for HeaderValue {
    fn as_value(&self) -> Value<'_> {
        Value(self.as_bytes())
    }
}

impl<V: AsValue + ?Sized> AsValue for &V {
    fn as_value(&self) -> Value<'_> {
        (**self).as_value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_128_bits_are_written_with_all_their_digits() {
        assert_eq!(Hex::of(0x0123_4567_89ab_cdef, 0xff).as_str(), "0123456789abcdef00000000000000ff");
        assert_eq!(Hex::of(0, 0).as_value(), Value(&[b'0'; 32]));
    }
}

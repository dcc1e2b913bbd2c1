//! Heads in the form that nearly all of them have, read in one pass.
//!
//! Only what can be read in one way is read here: lines that end in CR and LF, one blank where one is usual, no empty
//! value, no long name. Everything else, what is malformed or not whole as well, is left to the reader that knows it all.

use crate::head::{RequestLine, StatusLine, Tokens};
use crate::headers::{Field, REGULAR, Reason};
use crate::names::{TOKEN, number};
use http::{Method, StatusCode, Version};

/// Fields that a list has room for from the start, those that will be added included.
const ROOM: usize = 16;

/// Reads the head of a request with so many fields at most.
pub(crate) fn request(bytes: &[u8], most: usize) -> Option<Tokens<RequestLine>> {
    let (method, start) = if bytes.starts_with(b"GET ") {
        (Method::GET, 4)
    } else {
        let end = bytes.iter().take(16).position(|byte| !byte.is_ascii_uppercase())?;
        (Method::from_bytes(&bytes[..end]).ok()?, end + 1)
    };
    let end = skip(bytes, start, target_end)?;
    if bytes.get(start - 1) != Some(&b' ') || end == start || bytes.get(end..end + 11)? != b" HTTP/1.1\r\n" {
        return None;
    }
    let (length, fields) = lines(bytes, end + 11, most)?;
    Some(Tokens { length, fields, plain: true, first: (method, (start, end), Version::HTTP_11) })
}

/// Reads the head of a response.
pub(crate) fn response(bytes: &[u8], most: usize) -> Option<Tokens<StatusLine>> {
    const START: usize = 13;
    if !bytes.starts_with(b"HTTP/1.1 ") || bytes.get(START - 1) != Some(&b' ') {
        return None;
    }
    let status = StatusCode::from_bytes(bytes.get(9..12)?).ok()?;
    let end = skip(bytes, START, value_end)?;
    let reason = bytes.get(START..end)?;
    if reason.is_empty() || !reason.is_ascii() || bytes.get(end..end + 2)? != b"\r\n" {
        return None;
    }
    let (length, fields) = lines(bytes, end + 2, most)?;
    let reason = Reason { status, start: START as u32, length: reason.len() as u32 };
    Some(Tokens { length, fields, plain: true, first: (status, Some(reason), Version::HTTP_11) })
}

/// The lines from here to the empty one, and where that ends.
fn lines(bytes: &[u8], mut at: usize, most: usize) -> Option<(usize, Vec<Field>)> {
    let mut fields = Vec::with_capacity(ROOM);
    loop {
        let start = at;
        at = skip(bytes, start, name_end)?;
        let name = &bytes[start..at];
        if name.is_empty() {
            return (bytes.get(at..at + 2)? == b"\r\n").then_some((at + 2, fields));
        }
        let (known, value) = (number(name), at + 2);
        // Letter by letter only where it is not clear that it is a name.
        let is_name = known != 0 || name.iter().all(|byte| TOKEN[usize::from(*byte)]);
        if !is_name || bytes.get(at..value)? != b": " || fields.len() == most {
            return None;
        }
        let end = skip(bytes, value, value_end)?;
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let plain = bytes.get(value..end)?.first().is_some_and(|byte| !is_blank(byte)) && !is_blank(&bytes[end - 1]);
        if !plain || bytes.get(end..end + 2)? != b"\r\n" {
            return None;
        }
        fields.push(Field {
            name: start as u32,
            value: value as u32,
            value_length: (end - value) as u32,
            name_length: u16::try_from(name.len()).ok()?,
            known,
            state: REGULAR,
        });
        at = end + 2;
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

/// Marks the bytes below `least`. Right up to the first that is marked, as all of these.
fn below(word: u64, least: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(least)) & !word & TOPS
}

/// Marks the bytes that are this one.
fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (ONES * u64::from(byte)), 1)
}

/// Marks what ends a name: a colon, blanks, control characters, whatever is not ASCII.
fn name_end(word: u64) -> u64 {
    target_end(word) | equal(word, b':')
}

/// Marks what ends a target: blanks, control characters, whatever is not ASCII.
fn target_end(word: u64) -> u64 {
    below(word, b'!') | equal(word, 127) | (word & TOPS)
}

/// Marks what ends a value: control characters. A tab ends it, too, and so makes the head one that is not plain.
fn value_end(word: u64) -> u64 {
    below(word, b' ') | equal(word, 127)
}

/// Whether no control character is in a text, a tab included.
pub(crate) fn is_without_controls(text: &[u8]) -> bool {
    skip(text, 0, value_end).is_none()
}

/// The first byte from here that is marked, eight looked at together; None when there is none.
#[inline]
fn skip(bytes: &[u8], mut at: usize, marks: impl Fn(u64) -> u64) -> Option<usize> {
    let first = |eight| match marks(u64::from_le_bytes(eight)) {
        0 => None,
        marks => Some(marks.trailing_zeros() as usize / 8),
    };
    let mut rest = bytes.get(at..)?;
    while let Some((eight, after)) = rest.split_first_chunk() {
        if let Some(place) = first(*eight) {
            return Some(at + place);
        }
        (rest, at) = (after, at + 8);
    }
    let mut last = [b'a'; 8];
    last[..rest.len()].copy_from_slice(rest);
    first(last).map(|place| at + place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_ends_what_it_should() {
        for byte in 0..=255_u8 {
            for place in 0..19 {
                let mut bytes = [b'a'; 19];
                bytes[place] = byte;
                let value = (byte < 32 || byte == 127).then_some(place);
                let target = (byte <= 32 || byte >= 127).then_some(place);
                assert_eq!(skip(&bytes, 0, value_end), value, "{byte} at {place}");
                let name = if byte == b':' { Some(place) } else { target };
                assert_eq!(skip(&bytes, 0, target_end), target, "{byte} at {place}");
                assert_eq!(skip(&bytes, 0, name_end), name, "{byte} at {place}");
            }
        }
        assert_eq!(skip(b"abc", 4, value_end), None);
    }

    #[test]
    fn usual_heads_are_plain_and_odd_ones_are_not() {
        let is_plain = |text: &str| request(text.as_bytes(), 3).is_some();
        for text in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nA: b\u{e9}\r\nC: d e\r\n\r\nbody",
            "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        ] {
            assert!(is_plain(text), "{text:?}");
        }
        for text in [
            "\r\nGET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.0\r\n\r\n",
            "GET  / HTTP/1.1\r\n\r\n",
            "get / HTTP/1.1\r\n\r\n",
            "GET /\u{e9} HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\n\r\n",
            "GET / HTTP/1.1\r\nA:b\r\n\r\n",
            "GET / HTTP/1.1\r\nA:  b\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b \r\n\r\n",
            "GET / HTTP/1.1\r\nA: \r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\tc\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\n\r\n",
            "GET / HTTP/1.1\r\nA : b\r\n\r\n",
            "GET / HTTP/1.1\r\n: b\r\n\r\n",
            "GET / HTTP/1.1\r\nA(B: c\r\n\r\n",
            "GET / HTTP/1.1\r\nKeep\rAlive: b\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
            "GET / HTTP/1.1\r\nA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\r\n",
        ] {
            assert!(!is_plain(text), "{text:?}");
        }
        assert!(response(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n", 3).is_some());
        for text in
            ["HTTP/1.1 200\r\n\r\n", "HTTP/1.1 200 \r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.1 20x OK\r\n\r\n"]
        {
            assert!(response(text.as_bytes(), 3).is_none(), "{text:?}");
        }
    }
}

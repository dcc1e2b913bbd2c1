//! How long a body is, by the head of its message (RFC 9112 section 6.3), and whether the connection goes on.

use crate::names::{CONNECTION, CONTENT_LENGTH, IntoName, TRANSFER_ENCODING};
use crate::{Fault, Headers, Value};
use http::{Method, StatusCode, Version};

/// Where a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    None,
    /// After so many bytes.
    Length(u64),
    /// After the last chunk and its trailers.
    Chunked,
    /// Where the peer closes; responses only.
    UntilClose,
}

/// Framing of a request's body.
///
/// # Errors
/// Whatever another reader might understand in another way: both framings, a length that is not one number, codings
/// that do not end in one `chunked`, codings in HTTP/1.0. Unknown codings before `chunked` are a fault of their own.
pub fn request_framing(version: Version, headers: &Headers) -> Result<Framing, Fault> {
    let length = length(headers)?;
    if !headers.contains(TRANSFER_ENCODING) {
        return Ok(match length {
            None | Some(0) => Framing::None,
            Some(length) => Framing::Length(length),
        });
    }
    if version == Version::HTTP_10 {
        return Err(Fault::Encoding);
    }
    only_chunked(headers)?;
    if length.is_some() { Err(Fault::TwoFramings) } else { Ok(Framing::Chunked) }
}

/// Framing of the body of a response to a request with this method. `CONNECT` and 101 leave no body: what follows is
/// no HTTP.
///
/// # Errors
/// As [`request_framing`], but chunks in HTTP/1.0 are read.
pub fn response_framing(method: &Method, status: StatusCode, headers: &Headers) -> Result<Framing, Fault> {
    if status.is_informational() || matches!(status.as_u16(), 204 | 304) || method == Method::HEAD {
        return Ok(Framing::None);
    }
    if method == Method::CONNECT && status.is_success() {
        return Ok(Framing::None);
    }
    let length = length(headers)?;
    if !headers.contains(TRANSFER_ENCODING) {
        return Ok(match length {
            None => Framing::UntilClose,
            Some(0) => Framing::None,
            Some(length) => Framing::Length(length),
        });
    }
    only_chunked(headers)?;
    if length.is_some() { Err(Fault::TwoFramings) } else { Ok(Framing::Chunked) }
}

/// The one `Content-Length`, if there is one.
fn length(headers: &Headers) -> Result<Option<u64>, Fault> {
    let mut values = headers.get_all(CONTENT_LENGTH);
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Fault::Length);
    }
    digits(value.as_bytes()).map(Some).ok_or(Fault::Length)
}

fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// Checks that the codings are `chunked` and nothing else.
fn only_chunked(headers: &Headers) -> Result<(), Fault> {
    let mut values = headers.get_all(TRANSFER_ENCODING);
    let first = values.next().map_or(&b""[..], Value::as_bytes);
    if values.next().is_none() && first.eq_ignore_ascii_case(b"chunked") {
        return Ok(());
    }
    let codings = headers.get_all(TRANSFER_ENCODING).flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let mut chunked: Vec<bool> = codings.map(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"chunked")).collect();
    let last = chunked.pop().unwrap_or(false);
    if last && !chunked.contains(&true) { Err(Fault::UnknownCoding) } else { Err(Fault::Encoding) }
}

/// Whether the peer that sent this head will take another message after this one.
pub fn keeps_alive(version: Version, headers: &Headers) -> bool {
    if !headers.contains(CONNECTION) {
        return version == Version::HTTP_11;
    }
    if headers.get_all(CONNECTION).all(|value| value.is_word(b"keep-alive")) {
        return true;
    }
    !has_token(headers, CONNECTION, b"close")
        && (version == Version::HTTP_11 || has_token(headers, CONNECTION, b"keep-alive"))
}

/// Whether a header that holds a list holds this token, in any case.
pub fn has_token<'h>(headers: &'h Headers, name: impl IntoName<'h>, token: &[u8]) -> bool {
    let mut parts = headers.get_all(name).flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    parts.any(|part| part.trim_ascii().eq_ignore_ascii_case(token))
}

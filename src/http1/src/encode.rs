//! Heads and chunks on their way out.

use crate::spelling::{Cursor, write_reason};
use crate::{Framing, Spelling};
use bytes::BytesMut;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::{Method, StatusCode, Uri};

/// What a response says of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// It goes on, as is usual with HTTP/1.1: nothing is said.
    Usual,
    /// It goes on, and a client of HTTP/1.0 must be told.
    Told,
    /// It ends.
    Close,
    /// It goes on as something else: `Connection` stands among the headers.
    Upgrade,
}

/// Takes the headers of a request one by one.
pub struct Fields<'a> {
    out: &'a mut BytesMut,
    cursor: Cursor<'a>,
}

impl Fields<'_> {
    /// Writes a header whose value comes in parts. The name is in lower case; name and value must have been checked.
    pub fn write(&mut self, name: &str, value: &[&[u8]]) {
        self.cursor.write(self.out, name);
        self.out.extend_from_slice(b": ");
        value.iter().for_each(|part| self.out.extend_from_slice(part));
        self.out.extend_from_slice(b"\r\n");
    }
}

/// Writes the head of a request of HTTP/1.1.
///
/// Headers that frame the body are written by `framing` and not from the map; `Host` comes first. A length of 0 is
/// written for methods that are expected to have a body.
pub fn write_request(
    out: &mut BytesMut,
    method: &Method,
    target: &Uri,
    headers: &HeaderMap,
    spelling: &Spelling,
    framing: Framing,
) {
    out.reserve(64 + target.path().len() + 48 * headers.len());
    write_request_with(out, method, target, spelling, framing, |fields| {
        if let Some(host) = headers.get(HOST) {
            fields.write(HOST.as_str(), &[host.as_bytes()]);
        }
        for (name, value) in headers {
            if name != HOST && name != CONTENT_LENGTH && name != TRANSFER_ENCODING {
                fields.write(name.as_str(), &[value.as_bytes()]);
            }
        }
    });
}

/// The same with headers that stand in no map. `write` is called once; it gives `Host` and none that frame the body.
pub fn write_request_with(
    out: &mut BytesMut,
    method: &Method,
    target: &Uri,
    spelling: &Spelling,
    framing: Framing,
    write: impl FnOnce(&mut Fields<'_>),
) {
    out.extend_from_slice(method.as_str().as_bytes());
    out.extend_from_slice(b" ");
    let path = target.path_and_query().map_or("/", |target| target.as_str());
    if path.starts_with('?') {
        // An absolute target without a path.
        out.extend_from_slice(b"/");
    }
    out.extend_from_slice(path.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    let mut fields = Fields { out, cursor: spelling.cursor() };
    write(&mut fields);
    let Fields { out, mut cursor } = fields;
    match framing {
        Framing::None if matches!(*method, Method::POST | Method::PUT | Method::PATCH) => {
            write_length(out, &mut cursor, 0);
        }
        Framing::None | Framing::UntilClose => {}
        Framing::Length(length) => write_length(out, &mut cursor, length),
        Framing::Chunked => write_chunked(out, &mut cursor),
    }
    out.extend_from_slice(b"\r\n");
}

/// Writes the head of a response. The version is 1.1 whatever the client's is.
///
/// With `Framing::None` a `Content-Length` among the headers is written as it stands (an answer to `HEAD`, 304);
/// otherwise the framing says. `date` is written where the headers have none.
pub fn write_response(
    out: &mut BytesMut,
    status: StatusCode,
    headers: &HeaderMap,
    spelling: &Spelling,
    framing: Framing,
    persistence: Persistence,
    date: &[u8],
) {
    out.reserve(128 + 48 * headers.len());
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.extend_from_slice(b" ");
    write_reason(out, status, spelling);
    out.extend_from_slice(b"\r\n");
    let mut cursor = spelling.cursor();
    let (mut measured, mut dated) = (false, false);
    for (name, value) in headers {
        if name == CONTENT_LENGTH {
            match framing {
                Framing::None => {}
                Framing::Length(length) if !measured => {
                    measured = true;
                    write_length(out, &mut cursor, length);
                    continue;
                }
                _ => continue,
            }
        } else if name == TRANSFER_ENCODING || (name == CONNECTION && is_ours(value, persistence)) {
            continue;
        } else if name == DATE {
            dated = true;
        }
        write_field(out, &mut cursor, name, value);
    }
    if !dated {
        cursor.write(out, "date");
        out.extend_from_slice(b": ");
        out.extend_from_slice(date);
        out.extend_from_slice(b"\r\n");
    }
    match framing {
        Framing::Length(length) if !measured => write_length(out, &mut cursor, length),
        Framing::Chunked => write_chunked(out, &mut cursor),
        _ => {}
    }
    out.extend_from_slice(match persistence {
        Persistence::Usual | Persistence::Upgrade => b"\r\n",
        Persistence::Told => b"Connection: keep-alive\r\n\r\n".as_slice(),
        Persistence::Close => b"Connection: close\r\n\r\n",
    });
}

/// Whether a `Connection` among the headers is left out since the persistence says it.
fn is_ours(value: &HeaderValue, persistence: Persistence) -> bool {
    let value = value.as_bytes();
    persistence != Persistence::Upgrade
        && (value.eq_ignore_ascii_case(b"close") || value.eq_ignore_ascii_case(b"keep-alive"))
}

fn write_field(out: &mut BytesMut, cursor: &mut Cursor<'_>, name: &HeaderName, value: &HeaderValue) {
    cursor.write(out, name.as_str());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn write_length(out: &mut BytesMut, cursor: &mut Cursor<'_>, length: u64) {
    cursor.write(out, CONTENT_LENGTH.as_str());
    out.extend_from_slice(b": ");
    // A u64 has at most 20 digits.
    let (mut digits, mut start, mut rest) = ([0; 20], 20, length);
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
    out.extend_from_slice(b"\r\n");
}

fn write_chunked(out: &mut BytesMut, cursor: &mut Cursor<'_>) {
    cursor.write(out, TRANSFER_ENCODING.as_str());
    out.extend_from_slice(b": chunked\r\n");
}

/// Writes the size line of a chunk. The data follows, then CR and LF. A size of 0 would end the body.
pub fn write_chunk_size(out: &mut BytesMut, size: usize) {
    let (mut digits, mut start, mut rest) = ([0; 16], 16, size);
    loop {
        start -= 1;
        digits[start] = b"0123456789abcdef"[rest & 15];
        rest >>= 4;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
    out.extend_from_slice(b"\r\n");
}

/// Writes the end of a chunked body, with trailers if there are any.
pub fn write_last_chunk(out: &mut BytesMut, trailers: Option<&HeaderMap>) {
    out.extend_from_slice(b"0\r\n");
    if let Some(trailers) = trailers {
        let spelling = Spelling::lower_case();
        let mut cursor = spelling.cursor();
        for (name, value) in trailers {
            write_field(out, &mut cursor, name, value);
        }
    }
    out.extend_from_slice(b"\r\n");
}

//! Heads and chunks on their way out.

use crate::names::{CONNECTION, CONTENT_LENGTH, DATE, HOST, IntoName, Name, TRANSFER_ENCODING, write_usual};
use crate::{Digits, Fate, Framing, Headers, Line, Names, Value};
use bytes::BytesMut;
use http::{HeaderMap, Method, StatusCode, Uri};

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

/// Takes the headers of a request.
pub struct Fields<'a> {
    out: &'a mut BytesMut,
    headers: &'a Headers,
}

impl Fields<'_> {
    /// Writes those that the client sent, each as its fate is.
    pub fn pass<'v>(&mut self, fate: impl FnMut(Line<'_>) -> Fate<'v>) {
        self.headers.write(self.out, fate);
    }

    /// Writes a header whose value comes in parts, which must have been checked.
    #[inline]
    pub fn write(&mut self, name: Name<'_>, value: &[&[u8]]) {
        self.headers.write_name(self.out, name);
        value.iter().for_each(|part| self.out.extend_from_slice(part));
        self.out.extend_from_slice(b"\r\n");
    }
}

/// Writes the head of a request of HTTP/1.1.
///
/// Headers that frame the body are written by `framing` and not from the list; `Host` comes first. A length of 0 is
/// written for methods that are expected to have a body.
pub fn write_request(out: &mut BytesMut, method: &Method, target: &Uri, headers: &Headers, framing: Framing) {
    out.reserve(64 + target.path().len() + headers.size() + 4 * headers.len());
    let path = target.path_and_query().map_or("/", |target| target.as_str());
    // An absolute target may have no path.
    let root = if path.starts_with('?') { "/" } else { "" };
    write_request_with(out, method, &[root, path], headers, framing, |fields| {
        if let Some(host) = headers.get(HOST) {
            fields.write(HOST, &[host.as_bytes()]);
        }
        fields.pass(|line| {
            let apart = const { Names::of(&[HOST, CONTENT_LENGTH, TRANSFER_ENCODING]) };
            if line.is_in(apart) { Fate::LeftOut } else { Fate::Kept }
        });
    });
}

/// The same with a target in parts, which must have been checked, with a choice of the headers that the client sent and with
/// others besides. `write` is called once; it gives `Host` first, and none that frame the body.
pub fn write_request_with(
    out: &mut BytesMut,
    method: &Method,
    target: &[&str],
    headers: &Headers,
    framing: Framing,
    write: impl FnOnce(&mut Fields<'_>),
) {
    out.extend_from_slice(method.as_str().as_bytes());
    out.extend_from_slice(b" ");
    target.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
    out.extend_from_slice(b" HTTP/1.1\r\n");
    write(&mut Fields { out, headers });
    match framing {
        Framing::None if matches!(*method, Method::POST | Method::PUT | Method::PATCH) => {
            write_length(out, headers, 0);
        }
        Framing::None | Framing::UntilClose => {}
        Framing::Length(length) => write_length(out, headers, length),
        Framing::Chunked => write_chunked(out, headers),
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
    headers: &Headers,
    framing: Framing,
    persistence: Persistence,
    date: &[u8],
) {
    out.reserve(128 + headers.size() + 4 * headers.len());
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.extend_from_slice(b" ");
    let usual = || status.canonical_reason().unwrap_or("").as_bytes();
    out.extend_from_slice(headers.reason(status).unwrap_or_else(usual));
    // Before the headers, as a server of nginx does: whoever takes the last of two by one name reads theirs.
    out.extend_from_slice(match persistence {
        Persistence::Usual | Persistence::Upgrade => b"\r\n".as_slice(),
        Persistence::Told => b"\r\nConnection: keep-alive\r\n",
        Persistence::Close => b"\r\nConnection: close\r\n",
    });
    let mut measured = false;
    let length = if let Framing::Length(length) = framing { Digits::of(length) } else { Digits::of(0) };
    headers.write(out, |line| {
        if !line.is_in(const { Names::of(&[CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION]) }) {
            Fate::Kept
        } else if line.is(CONTENT_LENGTH) {
            match framing {
                Framing::None => Fate::Kept,
                Framing::Length(_) if !measured => {
                    measured = true;
                    if line.value().as_bytes() == length.as_bytes() {
                        Fate::Kept
                    } else {
                        Fate::Changed(length.as_bytes())
                    }
                }
                _ => Fate::LeftOut,
            }
        } else if line.is(TRANSFER_ENCODING) || (line.is(CONNECTION) && is_ours(line.value(), persistence)) {
            Fate::LeftOut
        } else {
            Fate::Kept
        }
    });
    if !headers.contains(DATE) {
        headers.write_name(out, DATE);
        out.extend_from_slice(date);
        out.extend_from_slice(b"\r\n");
    }
    match framing {
        Framing::Length(length) if !measured => write_length(out, headers, length),
        Framing::Chunked => write_chunked(out, headers),
        _ => {}
    }
    out.extend_from_slice(b"\r\n");
}

/// Whether a `Connection` among the headers is left out since the persistence says it.
fn is_ours(value: Value<'_>, persistence: Persistence) -> bool {
    persistence != Persistence::Upgrade && (value.is_word(b"close") || value.is_word(b"keep-alive"))
}

fn write_length(out: &mut BytesMut, headers: &Headers, length: u64) {
    headers.write_name(out, CONTENT_LENGTH);
    out.extend_from_slice(Digits::of(length).as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn write_chunked(out: &mut BytesMut, headers: &Headers) {
    headers.write_name(out, TRANSFER_ENCODING);
    out.extend_from_slice(b"chunked\r\n");
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
        for (name, value) in trailers {
            write_usual(out, name.into_name(), true);
            out.extend_from_slice(value.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
    out.extend_from_slice(b"\r\n");
}

//! The case of header names.
//!
//! `http::HeaderMap` knows names in lower case only. A head that was read keeps its bytes, and what is written looks up
//! how a name was spelled there. Names that were not there are written in the usual way.

use bytes::{Bytes, BytesMut};
use http::StatusCode;

/// Where a header line stands in its head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) name: u32,
    pub(crate) name_length: u32,
    pub(crate) value: u32,
    pub(crate) value_length: u32,
}

/// Where the words after a status stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reason {
    pub(crate) status: StatusCode,
    pub(crate) start: u32,
    pub(crate) length: u32,
}

/// How the names of a head were spelled, and the words after its status.
#[derive(Debug, Clone, Default)]
pub struct Spelling {
    head: Bytes,
    lines: Vec<Span>,
    reason: Option<Reason>,
    lower: bool,
}

impl Spelling {
    pub(crate) fn new(head: Bytes, lines: Vec<Span>, reason: Option<Reason>) -> Spelling {
        Spelling { head, lines, reason, lower: false }
    }

    /// Of a head that came over HTTP/2: what is not well known stays in lower case.
    pub fn lower_case() -> Spelling {
        Spelling { lower: true, ..Spelling::default() }
    }

    fn name(&self, index: usize) -> Option<&[u8]> {
        let line = self.lines.get(index)?;
        self.head.get(line.name as usize..(line.name + line.name_length) as usize)
    }

    /// The words after this status as they came; None when it came with none.
    fn reason(&self, status: StatusCode) -> Option<&[u8]> {
        let reason = self.reason.filter(|reason| reason.status == status)?;
        self.head.get(reason.start as usize..(reason.start + reason.length) as usize)
    }

    pub(crate) fn cursor(&self) -> Cursor<'_> {
        Cursor { spelling: self, next: 0 }
    }
}

/// Looks names up in about the order they came in, which is the order they are mostly written in.
pub(crate) struct Cursor<'a> {
    spelling: &'a Spelling,
    next: usize,
}

impl Cursor<'_> {
    /// Writes a name, given in lower case.
    pub(crate) fn write(&mut self, out: &mut BytesMut, name: &str) {
        let name = name.as_bytes();
        let count = self.spelling.lines.len();
        for step in 0..count {
            let mut index = self.next + step;
            if index >= count {
                index -= count;
            }
            match self.spelling.name(index) {
                Some(spelled) if spelled.eq_ignore_ascii_case(name) => {
                    self.next = if index + 1 == count { 0 } else { index + 1 };
                    return out.extend_from_slice(spelled);
                }
                _ => {}
            }
        }
        write_usual(out, name, self.spelling.lower);
    }
}

/// Names whose usual form is not each word with a capital.
fn usual(name: &[u8]) -> Option<&'static [u8]> {
    Some(match name {
        b"etag" => b"ETag",
        b"te" => b"TE",
        b"dnt" => b"DNT",
        b"www-authenticate" => b"WWW-Authenticate",
        b"content-md5" => b"Content-MD5",
        b"x-real-ip" => b"X-Real-IP",
        b"x-ratelimit-limit" => b"X-RateLimit-Limit",
        b"x-ratelimit-remaining" => b"X-RateLimit-Remaining",
        b"x-ratelimit-reset" => b"X-RateLimit-Reset",
        b"ratelimit-limit" => b"RateLimit-Limit",
        b"ratelimit-remaining" => b"RateLimit-Remaining",
        b"ratelimit-reset" => b"RateLimit-Reset",
        b"sec-websocket-accept" => b"Sec-WebSocket-Accept",
        b"sec-websocket-key" => b"Sec-WebSocket-Key",
        b"sec-websocket-protocol" => b"Sec-WebSocket-Protocol",
        b"sec-websocket-version" => b"Sec-WebSocket-Version",
        b"sec-websocket-extensions" => b"Sec-WebSocket-Extensions",
        _ => return None,
    })
}

/// Names that HTTP/1 itself or the gateway adds; they look the same whatever the client speaks.
fn ours(name: &[u8]) -> bool {
    let known: [&[u8]; 11] = [
        b"host",
        b"connection",
        b"upgrade",
        b"te",
        b"content-length",
        b"transfer-encoding",
        b"via",
        b"date",
        b"server",
        b"x-real-ip",
        b"trailer",
    ];
    known.contains(&name) || name.starts_with(b"x-forwarded-") || name.starts_with(b"x-kong-")
}

fn write_usual(out: &mut BytesMut, name: &[u8], lower: bool) {
    if lower && !ours(name) {
        return out.extend_from_slice(name);
    }
    if let Some(usual) = usual(name) {
        return out.extend_from_slice(usual);
    }
    let start = out.len();
    let (prefix, from) = match name.strip_prefix(b"x-ratelimit-") {
        Some(_) => (&b"X-RateLimit-"[..], b"x-ratelimit-".len()),
        None => (&b""[..], 0),
    };
    out.extend_from_slice(name);
    out[start..start + from].copy_from_slice(prefix);
    let mut begins = true;
    for byte in &mut out[start + from..] {
        if begins {
            byte.make_ascii_uppercase();
        }
        begins = *byte == b'-';
    }
}

/// Writes the words after a status: those that came with it, or else the usual ones.
pub(crate) fn write_reason(out: &mut BytesMut, status: StatusCode, spelling: &Spelling) {
    match spelling.reason(status) {
        Some(reason) => out.extend_from_slice(reason),
        None => out.extend_from_slice(status.canonical_reason().unwrap_or("").as_bytes()),
    }
}

//! Request paths: normalising, refusing, escaping.

use std::borrow::Cow;

/// A request path as the router compares it: normalised, without the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPath<'q> {
    path: Form<'q>,
    /// As sent, without its question mark.
    query: &'q [u8],
}

/// Known once to be text or not: routes ask for it more than once.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Form<'q> {
    Text(Cow<'q, str>),
    Bytes(Cow<'q, [u8]>),
}

impl<'q> From<Cow<'q, [u8]>> for Form<'q> {
    fn from(path: Cow<'q, [u8]>) -> Self {
        match path {
            Cow::Borrowed(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Form::Text(text.into()),
                Err(_) => Form::Bytes(bytes.into()),
            },
            Cow::Owned(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Form::Text(text.into()),
                Err(error) => Form::Bytes(error.into_bytes().into()),
            },
        }
    }
}

impl<'q> RequestPath<'q> {
    /// Normalises a raw request target; everything from the first `?` after the first byte is left out.
    ///
    /// Percent-encoded bytes are decoded unless they stand for a reserved character (those keep their escape, in upper
    /// case), dot segments are resolved and runs of slashes merged. Allocates only when there is something to change.
    /// Source: Kong 3.9.1 `kong/tools/uri.lua`, `normalize`.
    pub fn normalise(target: &'q [u8]) -> Self {
        let (end, is_normal) = look(target);
        let query = target.get(end + 1..).unwrap_or_default();
        if is_normal {
            return RequestPath { path: Cow::Borrowed(&target[..end]).into(), query };
        }
        let decoded = decode(&target[..end]);
        let bytes = if needs_resolving(&decoded) { Cow::Owned(resolve(&decoded)) } else { decoded };
        RequestPath { path: bytes.into(), query }
    }

    /// The path as text; None when it is not UTF-8, which no route with paths can match.
    pub fn as_str(&self) -> Option<&str> {
        match &self.path {
            Form::Text(text) => Some(text),
            Form::Bytes(_) => None,
        }
    }

    /// The values of a query parameter, decoded; a name that stands alone has an empty one.
    pub fn query_values<'n>(&self, name: &'n str) -> impl Iterator<Item = Cow<'q, [u8]>> + use<'q, 'n> {
        let pairs = self.query.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()).take(MAX_PARAMETERS);
        pairs.filter_map(move |pair| {
            let mut halves = pair.splitn(2, |byte| *byte == b'=');
            let key = unescape(halves.next().unwrap_or_default());
            (*key == *name.as_bytes()).then(|| unescape(halves.next().unwrap_or_default()))
        })
    }

    /// The path as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.path {
            Form::Text(text) => text.as_bytes(),
            Form::Bytes(bytes) => bytes,
        }
    }
}

/// Where the path ends, and whether it is certain that nothing of it is to be changed: most paths are looked at once.
fn look(target: &[u8]) -> (usize, bool) {
    let (mut is_normal, mut last) = (true, 0);
    for (at, byte) in target.iter().enumerate() {
        match byte {
            b'?' if at > 0 => return (at, is_normal),
            b'/' if last == b'/' => is_normal = false,
            b'%' | b'.' | 0x80.. => is_normal = false,
            _ => {}
        }
        last = *byte;
    }
    (target.len(), is_normal)
}

/// As many parameters of a query are looked at.
const MAX_PARAMETERS: usize = 100;

/// Decodes a part of a query: escapes, and `+` for a space.
fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.first() {
        let (byte, taken) = match (escaped(rest), first) {
            (Some(byte), _) => (byte, 3),
            (None, b'+') => (b' ', 1),
            (None, plain) => (*plain, 1),
        };
        out.push(byte);
        rest = &rest[taken..];
    }
    Cow::Owned(out)
}

fn hex(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|digit| digit as u8)
}

/// The byte that a valid escape at the start of `text` stands for.
fn escaped(text: &[u8]) -> Option<u8> {
    match text {
        [b'%', high, low, ..] => Some(hex(*high)? << 4 | hex(*low)?),
        _ => None,
    }
}

fn is_reserved(byte: u8) -> bool {
    b"!*'();:@&=+$,/?%#[]".contains(&byte)
}

fn decode(path: &[u8]) -> Cow<'_, [u8]> {
    if !path.contains(&b'%') {
        return Cow::Borrowed(path);
    }
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some(first) = rest.first() {
        let taken = match escaped(rest) {
            Some(byte) if is_reserved(byte) => {
                out.extend(rest[..3].iter().map(u8::to_ascii_uppercase));
                3
            }
            Some(byte) => {
                out.push(byte);
                3
            }
            None => {
                out.push(*first);
                1
            }
        };
        rest = &rest[taken..];
    }
    Cow::Owned(out)
}

fn needs_resolving(path: &[u8]) -> bool {
    path.contains(&b'.') || path.windows(2).any(|pair| pair == b"//")
}

/// Resolves dot segments and merges slashes. `starts` remembers where each kept segment begins, so `..` can drop it.
fn resolve(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut starts = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        match rest {
            b"." | b".." => rest = b"",
            b"/." => rest = b"/",
            b"/.." => {
                drop_segment(&mut out, &mut starts);
                rest = b"/";
            }
            [b'.', b'.', b'/', tail @ ..] | [b'.', b'/', tail @ ..] => rest = tail,
            [b'/', b'.', b'/', ..] => rest = &rest[2..],
            [b'/', b'.', b'.', b'/', ..] => {
                drop_segment(&mut out, &mut starts);
                rest = &rest[3..];
            }
            [b'/', b'/', ..] => rest = &rest[1..],
            _ => {
                let end = rest.iter().skip(1).position(|byte| *byte == b'/').map_or(rest.len(), |index| index + 1);
                starts.push(out.len());
                out.extend_from_slice(&rest[..end]);
                rest = &rest[end..];
            }
        }
    }
    out
}

fn drop_segment(out: &mut Vec<u8>, starts: &mut Vec<usize>) {
    if let Some(start) = starts.pop() {
        out.truncate(start);
    }
}

/// Why a request target is answered with 400 before any route is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathRefusal {
    /// A `%` without two hexadecimal digits after it.
    #[error("a percent sign is not followed by two hexadecimal digits")]
    BadEscape,
    /// An encoded or plain zero byte.
    #[error("the path holds a zero byte")]
    ZeroByte,
    /// More `..` than segments before them.
    #[error("the path climbs above its root")]
    AboveRoot,
}

/// Checks a raw request target as the HTTP server in front of Kong's router does; a refusal is answered with 400.
pub fn check_target(target: &[u8]) -> Result<(), PathRefusal> {
    let is_odd = |byte: &u8| matches!(byte, b'?' | b'#' | b'%' | b'.' | 0);
    match target.iter().find(|byte| is_odd(byte)) {
        None | Some(b'?' | b'#') => return Ok(()),
        Some(_) => {}
    }
    let path = target.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default();
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some(first) = rest.first() {
        let byte = if *first == b'%' { escaped(rest).ok_or(PathRefusal::BadEscape)? } else { *first };
        if byte == 0 {
            return Err(PathRefusal::ZeroByte);
        }
        plain.push(byte);
        rest = &rest[if *first == b'%' { 3 } else { 1 }..];
    }
    let mut depth = 0_usize;
    for segment in plain.split(|byte| *byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => depth = depth.checked_sub(1).ok_or(PathRefusal::AboveRoot)?,
            _ => depth += 1,
        }
    }
    Ok(())
}

/// What may stand in a request target as it is.
static PLAIN: [bool; 256] = {
    let (mut plain, marks) = ([false; 256], b"!#$&'()*+,/:;=?@[]-_.~%");
    let mut at = 0;
    while at < marks.len() {
        plain[marks[at] as usize] = true;
        at += 1;
    }
    let mut byte = 0;
    while byte < plain.len() {
        plain[byte] |= (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    plain
};

/// Appends bytes to a request target, escaping what may not stand in one; existing escapes stay.
///
/// Source: Kong 3.9.1 `kong/tools/uri.lua`, `escape`.
pub(crate) fn push_escaped(out: &mut String, bytes: &[u8]) {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    for byte in bytes {
        if PLAIN[usize::from(*byte)] {
            out.push(*byte as char);
        } else {
            out.extend(['%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised() {
        for (target, expected) in [
            ("/", "/"),
            ("/?/a", "/"),
            ("/a?b=/c/..", "/a"),
            ("/a//b///c", "/a/b/c"),
            ("/a/./b/../c", "/a/c"),
            ("/a/b/..", "/a/"),
            ("/a/.", "/a/"),
            ("/../../a", "/a"),
            ("/%61%2fb%2F", "/a%2Fb%2F"),
            ("/%7Eu%20x", "/~u x"),
            ("/%2e%2e/a/%2e/b", "/a/b"),
            ("/%C3%BC", "/\u{fc}"),
            ("/%zz%", "/%zz%"),
            ("", ""),
        ] {
            assert_eq!(RequestPath::normalise(target.as_bytes()).as_str(), Some(expected), "{target}");
        }
        assert!(matches!(RequestPath::normalise(b"/plain").path, Form::Text(Cow::Borrowed(_))));
        let broken = RequestPath::normalise(b"/%FF");
        assert_eq!((broken.as_str(), broken.as_bytes()), (None, b"/\xff".as_slice()));
    }

    #[test]
    fn query_values_are_decoded() {
        let path = RequestPath::normalise(b"/a?x=1&y&x=a%20b+c&%78=%zz&x&xx=2?&=3");
        let values = |name: &str| {
            path.query_values(name).map(|value| String::from_utf8_lossy(&value).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(values("x"), ["1", "a b c", "%zz", ""]);
        assert_eq!((values("y"), values("xx"), values("z")), (vec![String::new()], vec!["2?".to_owned()], vec![]));
    }

    #[test]
    fn targets_are_refused_before_routing() {
        for (target, expected) in [
            ("/a/../b?%zz", Ok(())),
            ("/a/%2e%2e/", Ok(())),
            ("/a%2", Err(PathRefusal::BadEscape)),
            ("/%zz", Err(PathRefusal::BadEscape)),
            ("/a%00b", Err(PathRefusal::ZeroByte)),
            ("/a/../../b", Err(PathRefusal::AboveRoot)),
            ("/%2e%2e/b", Err(PathRefusal::AboveRoot)),
        ] {
            assert_eq!(check_target(target.as_bytes()), expected, "{target}");
        }
    }
}

//! The upgrade request and its answer.

use base64::Engine;
use sha1::{Digest, Sha1};

/// Longest head accepted, request line and headers together.
const HEAD_LIMIT: usize = 16 * 1024;
const HEADERS_LIMIT: usize = 64;

/// Why a head is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    #[error("malformed HTTP head: {0}")]
    Malformed(String),
    #[error("HTTP head is longer than {HEAD_LIMIT} bytes")]
    TooLong,
}

/// An upgrade request as it came; header names in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// Query arguments in order, taken as they are: Kong neither encodes nor decodes them.
    pub query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
}

impl Request {
    /// First value of a header, name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// First value of a query argument.
    pub fn argument(&self, name: &str) -> Option<&str> {
        find(&self.query, name)
    }

    /// The client's key when this is a valid WebSocket upgrade (GET, `Upgrade`, `Connection`, version 13).
    pub fn websocket_key(&self) -> Option<&str> {
        let upgrade = self.header("upgrade")?.eq_ignore_ascii_case("websocket");
        let connection = self.header("connection")?.split(',').any(|part| part.trim().eq_ignore_ascii_case("upgrade"));
        let version = self.header("sec-websocket-version")?.trim() == "13";
        (self.method == "GET" && upgrade && connection && version).then(|| self.header("sec-websocket-key")).flatten()
    }
}

/// The answer to an upgrade request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    headers: Vec<(String, String)>,
}

impl Response {
    /// First value of a header, name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }
}

fn find<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn owned(headers: &[httparse::Header<'_>]) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|header| (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned()))
        .collect()
}

fn outcome<T>(
    parsed: Result<httparse::Status<usize>, httparse::Error>,
    received: usize,
    make: impl FnOnce() -> T,
) -> Result<Option<(T, usize)>, HandshakeError> {
    match parsed {
        Ok(httparse::Status::Complete(length)) => Ok(Some((make(), length))),
        Ok(httparse::Status::Partial) if received > HEAD_LIMIT => Err(HandshakeError::TooLong),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(error) => Err(HandshakeError::Malformed(error.to_string())),
    }
}

/// Reads a request head; gives it with its length in bytes, None until more bytes arrive.
pub fn parse_request(bytes: &[u8]) -> Result<Option<(Request, usize)>, HandshakeError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_LIMIT];
    let mut request = httparse::Request::new(&mut headers);
    let parsed = request.parse(bytes);
    outcome(parsed, bytes.len(), || {
        let target = request.path.unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pair = |text: &str| {
            let (key, value) = text.split_once('=').unwrap_or((text, ""));
            (key.to_owned(), value.to_owned())
        };
        Request {
            method: request.method.unwrap_or_default().to_owned(),
            path: path.to_owned(),
            query: query.split('&').filter(|text| !text.is_empty()).map(pair).collect(),
            headers: owned(request.headers),
        }
    })
}

/// Reads a response head; gives it with its length in bytes, None until more bytes arrive.
pub fn parse_response(bytes: &[u8]) -> Result<Option<(Response, usize)>, HandshakeError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_LIMIT];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(bytes);
    outcome(parsed, bytes.len(), || Response {
        status: response.code.unwrap_or_default(),
        headers: owned(response.headers),
    })
}

/// Value of `Sec-WebSocket-Accept` for a client's key (RFC 6455, section 4.2.2).
pub fn accept_key(key: &str) -> String {
    let digest = Sha1::new().chain_update(key).chain_update("258EAFA5-E914-47DA-95CA-C5AB0DC85B11").finalize();
    base64::engine::general_purpose::STANDARD.encode(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPGRADE: &str = "GET /v1/outlet?node_id=a&node_version=3.9.1 HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\
                           Connection: keep-alive, Upgrade\r\nSec-WebSocket-Key: k\r\nSec-WebSocket-Version: 13\r\n\r\n";

    #[test]
    fn the_accept_key_is_that_of_the_standard() {
        assert_eq!(accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn an_upgrade_request_is_read_whole_or_not_at_all() {
        for end in 0..UPGRADE.len() {
            assert_eq!(parse_request(&UPGRADE.as_bytes()[..end]), Ok(None), "at {end}");
        }
        let bytes = format!("{UPGRADE}rest");
        let (request, length) = parse_request(bytes.as_bytes()).expect("a valid head").expect("a whole head");
        assert_eq!(length, UPGRADE.len());
        assert_eq!(request.path, "/v1/outlet");
        assert_eq!(request.argument("node_version"), Some("3.9.1"));
        assert_eq!(request.argument("node_hostname"), None);
        assert_eq!(request.websocket_key(), Some("k"));
    }

    #[test]
    fn another_websocket_version_is_no_upgrade() {
        let text = UPGRADE.replace("Version: 13", "Version: 8");
        let (request, _) = parse_request(text.as_bytes()).expect("valid").expect("whole");
        assert_eq!(request.websocket_key(), None);
    }

    #[test]
    fn an_endless_head_is_refused() {
        let text = format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(HEAD_LIMIT));
        assert_eq!(parse_request(text.as_bytes()), Err(HandshakeError::TooLong));
        assert!(matches!(parse_request(b"\x16\x03\x01 nonsense\r\n\r\n"), Err(HandshakeError::Malformed(_))));
    }
}

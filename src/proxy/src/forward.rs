//! What the upstream is sent: headers added, replaced and removed.

use crate::VIA_NAME;
use crate::options::ProxyOptions;
use gwctl_plugins::Context;
use http::Version;
use http::header::{CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, TE, UPGRADE, VIA};
use std::borrow::Cow;
use text::Text;

mod text;

pub(crate) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
const X_FORWARDED_PATH: HeaderName = HeaderName::from_static("x-forwarded-path");
const X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
pub(crate) const X_KONG_REQUEST_ID: HeaderName = HeaderName::from_static("x-kong-request-id");

/// Whether the client asks to go on as a WebSocket; other upgrades are not passed on, as in Kong.
pub(crate) fn wants_websocket(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// The headers of a request to an upstream. They are not gathered in a map but given one by one as they are written: most
/// are those that the client sent, and what is added is made of parts that are at hand.
pub(crate) struct Forwarded<'a> {
    pub(crate) context: &'a Context,
    pub(crate) options: &'a ProxyOptions,
    /// The part of the path that the router took off.
    pub(crate) prefix: Option<&'a str>,
    pub(crate) host: &'a HeaderValue,
}

/// What becomes of a header that the client sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It goes on.
    Passed,
    /// It goes on when it comes from a trusted proxy, else ours takes its place.
    Believed(u8),
    /// It concerns one connection, or ours takes its place in any case.
    Dropped,
}

const PROTO: u8 = 1;
const FORWARDED_HOST: u8 = 2;
const PORT: u8 = 4;
const PATH: u8 = 8;
const PREFIX: u8 = 16;

fn fate(name: &HeaderName, options: &ProxyOptions) -> Fate {
    match name.as_str() {
        "x-forwarded-proto" => Fate::Believed(PROTO),
        "x-forwarded-host" => Fate::Believed(FORWARDED_HOST),
        "x-forwarded-port" => Fate::Believed(PORT),
        "x-forwarded-path" => Fate::Believed(PATH),
        "x-forwarded-prefix" => Fate::Believed(PREFIX),
        "host" | "expect" | "content-length" | "x-forwarded-for" | "x-real-ip" | "via" => Fate::Dropped,
        "x-kong-request-id" if options.headers.request_id_upstream => Fate::Dropped,
        name if is_hop_by_hop(name) => Fate::Dropped,
        _ => Fate::Passed,
    }
}

fn is_hop_by_hop(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "keep-alive"
            | "proxy"
            | "proxy-connection"
            | "proxy-authenticate"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
    )
}

impl Forwarded<'_> {
    /// Gives each header with the parts of its value, `Host` first. Those that frame the body are left out.
    pub(crate) fn give(&self, mut to: impl FnMut(&str, &[&[u8]])) {
        let (client, request) = (&self.context.client, &self.context.request);
        let sent = &request.headers;
        to(HOST.as_str(), &[self.host.as_bytes()]);
        let names_others = names_others(sent);
        let mut believed = 0;
        for (name, value) in sent {
            match fate(name, self.options) {
                Fate::Dropped => continue,
                Fate::Believed(_) if !client.trusted => continue,
                Fate::Believed(bit) => believed |= bit,
                Fate::Passed => {}
            }
            if !(names_others && is_named(sent, name)) {
                to(name.as_str(), &[value.as_bytes()]);
            }
        }
        self.give_added(believed, &mut to);
        let via = if names_others && is_named(sent, &VIA) { None } else { joined(sent, &VIA) };
        match via {
            Some(way) => to(VIA.as_str(), &[&way, b", ", own_via(request.version).as_bytes()]),
            None => to(VIA.as_str(), &[own_via(request.version).as_bytes()]),
        }
        if wants_websocket(sent) {
            to(CONNECTION.as_str(), &[b"keep-alive, Upgrade"]);
            to(UPGRADE.as_str(), &[b"websocket"]);
        } else {
            to(CONNECTION.as_str(), &[b"keep-alive"]);
        }
        if contains_token(sent, &TE, "trailers") {
            to(TE.as_str(), &[b"trailers"]);
        }
        if self.options.headers.request_id_upstream {
            to(X_KONG_REQUEST_ID.as_str(), &[self.context.id.as_bytes()]);
        }
    }

    /// Gives what tells of the client. Of the headers in `believed` it has spoken itself.
    fn give_added(&self, believed: u8, to: &mut impl FnMut(&str, &[&[u8]])) {
        let (client, request) = (&self.context.client, &self.context.request);
        let mut add = |bit: u8, name: &HeaderName, value: &[u8]| {
            if believed & bit == 0 && is_sendable(value) {
                to(name.as_str(), &[value]);
            }
        };
        add(PROTO, &X_FORWARDED_PROTO, request.scheme.as_str().as_bytes());
        add(FORWARDED_HOST, &X_FORWARDED_HOST, request.host.as_bytes());
        add(PORT, &X_FORWARDED_PORT, Text::of_number(u64::from(request.port)).as_bytes());
        add(PATH, &X_FORWARDED_PATH, request.uri.path().as_bytes());
        if let Some(prefix) = self.prefix {
            add(PREFIX, &X_FORWARDED_PREFIX, prefix.as_bytes());
        }
        let ip = Text::of_ip(client.ip);
        to(X_REAL_IP.as_str(), &[ip.as_bytes()]);
        match joined(&request.headers, &X_FORWARDED_FOR) {
            Some(before) => to(X_FORWARDED_FOR.as_str(), &[&before, b", ", Text::of_ip(client.peer).as_bytes()]),
            None => to(X_FORWARDED_FOR.as_str(), &[ip.as_bytes()]),
        }
    }

    /// The headers as HTTP/2 has them: none that concerns the connection, and the host stands in the target.
    pub(crate) fn map(&self) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(self.context.request.headers.len() + 12);
        self.give(|name, value| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok();
            let value = HeaderValue::from_maybe_shared(bytes::Bytes::from(value.concat())).ok();
            if let Some((name, value)) = name.zip(value).filter(|(name, _)| *name != HOST && *name != CONNECTION) {
                headers.append(name, value);
            }
        });
        headers
    }
}

/// Whether `Connection` names more than itself.
fn names_others(headers: &HeaderMap) -> bool {
    let plain = |value: &[u8]| value.eq_ignore_ascii_case(b"keep-alive") || value.eq_ignore_ascii_case(b"close");
    headers.get_all(CONNECTION).iter().any(|value| !plain(value.as_bytes()))
}

/// Whether `Connection` names this header.
fn is_named(headers: &HeaderMap, name: &HeaderName) -> bool {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case(name.as_str()))
}

/// Removes headers that concern one connection only: those named by `Connection` and the well-known ones.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named = names_others(headers);
    // Most have one or none.
    while let Some(name) = first_hop_by_hop(headers, named) {
        headers.remove(name);
    }
    headers.remove(CONNECTION);
}

/// The first of them but `Connection`, which is needed to the last.
fn first_hop_by_hop(headers: &HeaderMap, named: bool) -> Option<HeaderName> {
    let is_one = |name: &HeaderName| is_hop_by_hop(name.as_str()) || (named && is_named(headers, name));
    headers.keys().find(|name| *name != CONNECTION && is_one(name)).cloned()
}

/// Whether a text can be the value of a header.
fn is_sendable(text: &[u8]) -> bool {
    text.iter().all(|byte| (*byte >= 32 && *byte != 127) || *byte == b'\t')
}

fn joined<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Cow<'a, [u8]>> {
    let mut values = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let mut whole = Cow::Borrowed(values.next()?);
    for value in values {
        whole.to_mut().extend_from_slice(b", ");
        whole.to_mut().extend_from_slice(value);
    }
    Some(whole)
}

fn own_via(version: Version) -> &'static str {
    match version {
        Version::HTTP_2 => const { VIA_NAME[1] },
        Version::HTTP_10 => const { VIA_NAME[2] },
        _ => const { VIA_NAME[0] },
    }
}

/// Adds this node to the way a message came; `version` is that of the message received.
pub(crate) fn append_via(headers: &mut HeaderMap, version: Version) {
    let own = own_via(version);
    let value = match joined(headers, &VIA) {
        Some(way) => HeaderValue::from_bytes(&[&way, b", ".as_slice(), own.as_bytes()].concat())
            .unwrap_or(HeaderValue::from_static(own)),
        None => HeaderValue::from_static(own),
    };
    headers.insert(VIA, value);
}

fn contains_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|part| part.split(';').next().is_some_and(|part| part.trim().eq_ignore_ascii_case(token)))
}

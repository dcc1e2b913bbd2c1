//! What the upstream is sent: headers added, replaced and removed.

use crate::VIA_NAME;
use crate::options::ProxyOptions;
use gwctl_http1::names::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, KEEP_ALIVE, PROXY, PROXY_AUTHENTICATE, PROXY_CONNECTION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, VIA, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PATH, X_FORWARDED_PORT,
    X_FORWARDED_PREFIX, X_FORWARDED_PROTO, X_KONG_REQUEST_ID, X_REAL_IP,
};
use gwctl_http1::{Digits, Fate, Fields, Headers, Line, Name, Names, Value};
use gwctl_plugins::Context;
use http::Version;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use std::borrow::Cow;
use std::cmp::Ordering;
use text::Text;

mod text;

/// Whether the client asks to go on as a WebSocket; other upgrades are not passed on, as in Kong.
pub(crate) fn wants_websocket(headers: &Headers) -> bool {
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

/// Those that the client's word counts for when it is a trusted proxy; else ours take their place.
const BELIEVED: [Name<'static>; 5] =
    [X_FORWARDED_PROTO, X_FORWARDED_HOST, X_FORWARDED_PORT, X_FORWARDED_PATH, X_FORWARDED_PREFIX];
/// Those that concern one connection.
const HOP_BY_HOP: [Name<'static>; 9] =
    [CONNECTION, KEEP_ALIVE, PROXY, PROXY_CONNECTION, PROXY_AUTHENTICATE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];
/// Those that ours take the place of in any case.
const OURS: [Name<'static>; 6] = [HOST, EXPECT, CONTENT_LENGTH, X_FORWARDED_FOR, X_REAL_IP, VIA];

const BELIEVED_SET: Names = Names::of(&BELIEVED);
const HOP_BY_HOP_SET: Names = Names::of(&HOP_BY_HOP);
const DROPPED_SET: Names = HOP_BY_HOP_SET.and(Names::of(&OURS));

/// What takes the headers of a request to an upstream.
pub(crate) trait Sink {
    /// Takes those that the client sent and that are kept.
    fn pass(&mut self, sent: &Headers, keep: impl FnMut(Line<'_>) -> bool);

    /// Takes one more, whose value comes in parts.
    fn add(&mut self, name: Name<'_>, value: &[&[u8]]);
}

impl Sink for Fields<'_> {
    fn pass(&mut self, _sent: &Headers, mut keep: impl FnMut(Line<'_>) -> bool) {
        Fields::pass(self, |line| if keep(line) { Fate::Kept } else { Fate::LeftOut });
    }

    fn add(&mut self, name: Name<'_>, value: &[&[u8]]) {
        self.write(name, value);
    }
}

impl Sink for HeaderMap {
    fn pass(&mut self, sent: &Headers, mut keep: impl FnMut(Line<'_>) -> bool) {
        for line in sent.lines().filter(|line| keep(*line)) {
            if let Ok(name) = HeaderName::from_bytes(line.name()) {
                self.append(name, line.value().to_owned());
            }
        }
    }

    fn add(&mut self, name: Name<'_>, value: &[&[u8]]) {
        let value = HeaderValue::from_maybe_shared(bytes::Bytes::from(value.concat()));
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_str().as_bytes()), value) {
            self.append(name, value);
        }
    }
}

impl Forwarded<'_> {
    /// Gives each header, `Host` first. Those that frame the body are left out.
    pub(crate) fn give(&self, to: &mut impl Sink) {
        let (client, request) = (&self.context.client, &self.context.request);
        let sent = &request.headers;
        to.add(HOST, &[self.host.as_bytes()]);
        let named = if sent.contains(CONNECTION) { Named::of(connection(sent)) } else { Named(Vec::new()) };
        let dropped = if client.trusted { DROPPED_SET } else { DROPPED_SET.and(BELIEVED_SET) };
        let own_id = self.options.headers.request_id_upstream;
        to.pass(sent, |line| {
            let ours = line.is_in(dropped) || (own_id && line.is(X_KONG_REQUEST_ID));
            !(ours || named.holds(line.name()))
        });
        self.give_added(to);
        let way = if named.holds(b"via") { None } else { joined(sent, VIA) };
        match way {
            Some(way) => to.add(VIA, &[&way, b", ", own_via(request.version).as_bytes()]),
            None => to.add(VIA, &[own_via(request.version).as_bytes()]),
        }
        if wants_websocket(sent) {
            to.add(CONNECTION, &[b"keep-alive, Upgrade"]);
            to.add(UPGRADE, &[b"websocket"]);
        } else {
            to.add(CONNECTION, &[b"keep-alive"]);
        }
        if contains_token(sent, TE, "trailers") {
            to.add(TE, &[b"trailers"]);
        }
        if own_id {
            to.add(X_KONG_REQUEST_ID, &[self.context.id.as_bytes()]);
        }
    }

    /// Gives what tells of the client, unless a trusted proxy has spoken of it.
    fn give_added(&self, to: &mut impl Sink) {
        let (client, request) = (&self.context.client, &self.context.request);
        let mut add = |name: Name<'static>, value: &[u8]| {
            if !(client.trusted && request.headers.contains(name)) {
                to.add(name, &[value]);
            }
        };
        add(X_FORWARDED_PROTO, request.scheme.as_str().as_bytes());
        if let Some(host) = Value::new(request.host.as_bytes()) {
            add(X_FORWARDED_HOST, host.as_bytes());
        }
        add(X_FORWARDED_PORT, Digits::of(u64::from(request.port)).as_bytes());
        // No target holds a control character; a prefix has been decoded.
        add(X_FORWARDED_PATH, request.uri.path().as_bytes());
        if let Some(prefix) = self.prefix.and_then(|prefix| Value::new(prefix.as_bytes())) {
            add(X_FORWARDED_PREFIX, prefix.as_bytes());
        }
        let ip = Text::of_ip(client.ip);
        to.add(X_REAL_IP, &[ip.as_bytes()]);
        match joined(&request.headers, X_FORWARDED_FOR) {
            Some(before) => to.add(X_FORWARDED_FOR, &[&before, b", ", Text::of_ip(client.peer).as_bytes()]),
            None => to.add(X_FORWARDED_FOR, &[ip.as_bytes()]),
        }
    }

    /// The headers as HTTP/2 has them: none that concerns the connection, and the host stands in the target.
    pub(crate) fn map(&self) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(self.context.request.headers.len() + 12);
        self.give(&mut headers);
        headers.remove(http::header::HOST);
        headers.remove(http::header::CONNECTION);
        headers
    }
}

/// What `Connection` says, line by line, where it says more than is usual.
fn connection(headers: &Headers) -> impl Iterator<Item = &str> {
    let plain = |value: &Value<'_>| value.is_word(b"keep-alive") || value.is_word(b"close");
    headers.get_all(CONNECTION).filter(move |value| !plain(value)).filter_map(Value::to_str)
}

/// The headers that `Connection` names. In order: there may be thousands, and each line is looked for.
struct Named<'a>(Vec<&'a [u8]>);

impl<'a> Named<'a> {
    fn of(values: impl Iterator<Item = &'a str>) -> Named<'a> {
        let mut words: Vec<_> = values.flat_map(|value| value.split(',')).map(|word| word.trim().as_bytes()).collect();
        words.sort_unstable_by(|one, other| caseless(one, other));
        Named(words)
    }

    fn holds(&self, name: &[u8]) -> bool {
        self.0.binary_search_by(|word| caseless(word, name)).is_ok()
    }
}

fn caseless(one: &[u8], other: &[u8]) -> Ordering {
    one.iter().map(u8::to_ascii_lowercase).cmp(other.iter().map(u8::to_ascii_lowercase))
}

/// Removes headers that concern one connection only: those named by `Connection` and the well-known ones.
pub(crate) fn remove_hop_by_hop(headers: &mut Headers) {
    if connection(headers).next().is_some() {
        let values: Vec<_> = connection(headers).map(str::to_owned).collect();
        let named = Named::of(values.iter().map(String::as_str));
        headers.retain(|name| !named.holds(name));
    }
    headers.remove_all(HOP_BY_HOP_SET);
}

fn joined<'a>(headers: &'a Headers, name: Name<'static>) -> Option<Cow<'a, [u8]>> {
    let mut values = headers.get_all(name).map(Value::as_bytes);
    let mut whole = Cow::Borrowed(values.next()?);
    for value in values {
        whole.to_mut().extend_from_slice(b", ");
        whole.to_mut().extend_from_slice(value);
    }
    Some(whole)
}

fn own_via(version: Version) -> Value<'static> {
    match version {
        Version::HTTP_2 => const { Value::from_static(VIA_NAME[1]) },
        Version::HTTP_10 => const { Value::from_static(VIA_NAME[2]) },
        _ => const { Value::from_static(VIA_NAME[0]) },
    }
}

/// Adds this node to the way a message came; `version` is that of the message received.
pub(crate) fn append_via(headers: &mut Headers, version: Version) {
    let own = own_via(version);
    match joined(headers, VIA).map(|way| [&way, b", ".as_slice(), own.as_bytes()].concat()) {
        Some(way) => headers.insert(VIA, Value::new(&way).unwrap_or_default()),
        None => headers.insert(VIA, own),
    }
}

fn contains_token(headers: &Headers, name: Name<'static>, token: &str) -> bool {
    headers
        .get_all(name)
        .filter_map(Value::to_str)
        .flat_map(|value| value.split(','))
        .any(|part| part.split(';').next().is_some_and(|part| part.trim().eq_ignore_ascii_case(token)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_connection_names_are_known_in_any_case_among_any_number() {
        let many: Vec<String> = (0..5000).map(|number| format!("x-{number}")).collect();
        let values = ["X-One ,\tx-TWO,,", &many.join(",")];
        let named = Named::of(values.into_iter());
        for name in ["x-one", "X-Two", "x-0", "X-4999"] {
            assert!(named.holds(name.as_bytes()), "{name}");
        }
        for name in ["x-three", "x", "x-5000", "x-on", "x-onet"] {
            assert!(!named.holds(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn what_the_connection_names_goes_and_the_rest_stays() {
        let row = |name: &'static str, value: &'static str| (Name::from_static(name), Value::from_static(value));
        let rows = [row("connection", "close"), row("connection", "Keep-Alive, X-Own"), row("x-own", "1")];
        let mut headers: Headers = rows.into_iter().chain([row("close", "1"), row("x-other", "1")]).collect();
        remove_hop_by_hop(&mut headers);
        let names: Vec<_> = headers.iter().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, ["Close", "X-Other"]);
    }
}

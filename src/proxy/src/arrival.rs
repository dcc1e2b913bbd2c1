//! From the HTTP library's request to a [`Flight`]: limits, client address, request id.

use crate::clock;
use crate::flight::Flight;
use crate::options::ProxyOptions;
use crate::phases::upgrades;
use crate::server::client::Shared;
use crate::server::upload::Upload;
use crate::stats::Shed;
use crate::worker::Worker;
use gwctl_http1::names::{CONNECTION, COOKIE, HOST, RETRY_AFTER};
use gwctl_http1::{Headers, Hex, Value};
use gwctl_plugins::{Body, Client, Context, Exit, Request, Run, Scheme, Times, Trace};
use gwctl_router::check_target;
use http::header::HeaderValue;
use http::uri::{Authority, PathAndQuery};
use http::{Method, StatusCode, Uri, Version};
use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

/// Host of requests without one (HTTP/1.0): the name of Kong's server block.
const UNNAMED: &str = "kong";

/// `real_ip_header` where no header of a request names the client, but the PROXY header of its connection.
pub(crate) const PROXY_PROTOCOL: &str = "proxy_protocol";

/// What is known of a client connection.
pub(crate) struct Origin {
    pub(crate) peer: SocketAddr,
    /// The client, as a trusted peer names it in its PROXY header.
    pub(crate) named: Option<SocketAddr>,
    pub(crate) port: u16,
    pub(crate) scheme: Scheme,
    pub(crate) server_name: Option<Arc<str>>,
    pub(crate) trusted: bool,
}

/// Head of a request, over whatever it came.
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) target: Uri,
    pub(crate) version: Version,
    pub(crate) headers: Headers,
}

impl From<http::request::Parts> for Head {
    fn from(parts: http::request::Parts) -> Head {
        let headers = Headers::of_http2(&parts.headers);
        Head { method: parts.method, target: parts.uri, version: parts.version, headers }
    }
}

/// A request that has arrived.
pub(crate) struct Arrival {
    pub(crate) flight: Box<Flight>,
    /// The answer when it is refused before any plugin sees it.
    pub(crate) refused: Option<Box<Exit>>,
    /// The client wants to go on as something else, should the upstream agree.
    pub(crate) upgrades: bool,
}

/// Where the body of a request comes from.
pub(crate) enum ArrivingBody {
    None,
    /// From the client, with the length it declared.
    Http1(Shared, Option<u64>),
    Http2(Upload),
}

impl ArrivingBody {
    /// Bytes to come, where that is known.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            Self::None => Some(0),
            Self::Http1(_, length) => *length,
            Self::Http2(upload) => upload.size_hint().exact(),
        }
    }

    fn is_end(&self) -> bool {
        match self {
            Self::None => true,
            Self::Http1(..) | Self::Http2(_) => false,
        }
    }
}

impl Arrival {
    pub(crate) fn new(worker: &Rc<Worker>, origin: &Origin, mut head: Head, body: ArrivingBody) -> Arrival {
        worker.recorder.begin();
        let upgrades = upgrades(head.version, &head.headers);
        let contradicts = hides_hosts(&head);
        take_authority(&mut head);
        let refused = refusal(&head, &body, &worker.options, contradicts).or_else(|| overload(worker)).map(Box::new);
        let snapshot = worker.snapshots.load();
        let host = head.headers.get_str(HOST);
        let request = Request {
            host: host.map_or_else(|| UNNAMED.to_owned(), host_name),
            method: head.method,
            uri: path_of(head.target),
            version: head.version,
            headers: head.headers,
            scheme: origin.scheme,
            port: origin.port,
            body: Body::Empty,
        };
        let client = client(origin, &request.headers, &worker.options);
        let times = Times::start(clock::now(), clock::since_1970().as_millis() as u64);
        let mut context = Context::new(snapshot.node.clone(), worker.ids.next(), client, request, times);
        if let Some(tracing) = worker.options.tracing {
            context.trace = Some(Box::new(Trace::begin(tracing, &context.times)));
        }
        let run = Run::new(snapshot.chains.global().clone());
        let mut flight =
            Box::new(Flight { worker: worker.clone(), snapshot, context, run, plan: None, read: None, lease: None });
        if !body.is_end() {
            flight.context.request.body = Body::Stream(flight.inbound(body));
        }
        Arrival { flight, refused, upgrades }
    }
}

/// Path and query; an absolute target may leave the path out.
fn path_of(target: Uri) -> PathAndQuery {
    match target.into_parts().path_and_query {
        Some(path) if path.as_str().starts_with('?') => PathAndQuery::try_from(format!("/{path}")).ok(),
        path => path,
    }
    .unwrap_or_else(|| PathAndQuery::from_static("/"))
}

/// An absolute target takes the place of `Host`, which must be right all the same: whoever reads it next may go by it.
fn hides_hosts(head: &Head) -> bool {
    if head.version == Version::HTTP_2 || head.target.authority().is_none() {
        return false;
    }
    let mut hosts = head.headers.get_all(HOST);
    let first = hosts.next();
    let is_missing = first.is_none() && head.version == Version::HTTP_11;
    is_missing || hosts.next().is_some() || first.is_some_and(|host| !plausible_host(host.as_bytes()))
}

/// Makes a request look as over HTTP/1.1: the authority of an HTTP/2 request or of an absolute target is the host, and
/// cookies sent apart are one header.
fn take_authority(head: &mut Head) {
    let authority = head.target.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    if let Some(authority) = authority {
        head.headers.insert(HOST, authority);
    }
    if head.version == Version::HTTP_2 && head.headers.get_all(COOKIE).nth(1).is_some() {
        let cookies: Vec<_> = head.headers.get_all(COOKIE).map(Value::as_bytes).collect();
        let cookies = cookies.join(b"; ".as_slice());
        head.headers.insert(COOKIE, Value::new(&cookies).unwrap_or_default());
    }
}

/// What the server in front refuses, as nginx does in front of Kong; these pages are plain text by default.
fn refusal(head: &Head, body: &ArrivingBody, options: &ProxyOptions, odd_hosts: bool) -> Option<Exit> {
    let target = head.target.path_and_query().map_or("/", PathAndQuery::as_str);
    let headers = &head.headers;
    let size = headers.size() + 4 * headers.len();
    let hosts = headers.get_all(HOST).count();
    let odd_method = !head.method.as_str().bytes().all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'-'));
    let odd_host = headers.get(HOST).is_some_and(|host| !plausible_host(host.as_bytes()));
    let misses_host = hosts > 1 || (hosts == 0 && head.version == Version::HTTP_11);
    let too_long = |length: u64| options.client_max_body_size != 0 && length > options.client_max_body_size;
    // An authority alone is the target of CONNECT and of nothing else, and an asterisk asks no upstream.
    let is_path = target.starts_with('/') || (target.starts_with('?') && head.target.authority().is_some());
    let odd_authority = head.target.authority().is_some_and(|authority| !is_host_and_port(authority));
    let odd_target = !is_path || odd_authority || (head.target.scheme().is_none() && head.target.authority().is_some());
    let (status, message) = if head.method == Method::CONNECT {
        // Over HTTP/2; the codec of HTTP/1 refuses it by itself.
        (StatusCode::METHOD_NOT_ALLOWED, "Method not allowed")
    } else if target.len() > options.max_target_size {
        (StatusCode::URI_TOO_LONG, "URI too long")
    } else if size > options.max_head_size {
        (StatusCode::BAD_REQUEST, "Request header or cookie too large")
    } else if odd_method
        || odd_target
        || odd_host
        || odd_hosts
        || misses_host
        || check_target(target.as_bytes()).is_err()
    {
        (StatusCode::BAD_REQUEST, "Bad request")
    } else if body.length().is_some_and(too_long) {
        (StatusCode::PAYLOAD_TOO_LARGE, "Payload too large")
    } else {
        return None;
    };
    // What follows on the connection may be anything.
    Some(Exit::fault(status, message).with_header(CONNECTION, Value::from_static("close")))
}

/// The answer while the process uses as much memory as it may.
fn overload(worker: &Worker) -> Option<Exit> {
    if !worker.stats.is_overloaded() {
        return None;
    }
    worker.stats.shed(Shed::Memory);
    let exit = Exit::fault(StatusCode::SERVICE_UNAVAILABLE, "Service temporarily overloaded");
    Some(exit.with_header(RETRY_AFTER, Value::from_static("1")))
}

/// Whether an authority has no name of a user, and a number for a port.
fn is_host_and_port(authority: &Authority) -> bool {
    let port = authority.as_str().strip_prefix(authority.host());
    port.is_some_and(|port| {
        port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// What nginx takes for a host: a name before the port, no slash, no blank or control character, no empty label. Anything
/// else could mean one thing to the router and another to the upstream.
fn plausible_host(host: &[u8]) -> bool {
    if matches!(host, [] | [b':', ..] | [b'.'] | [b'.', b':', ..]) {
        return false;
    }
    let mut last = 0;
    host.iter().all(|byte| {
        let before = std::mem::replace(&mut last, *byte);
        !matches!(byte, 0..=b' ' | b'/' | 0x7f) && (*byte, before) != (b'.', b'.')
    })
}

/// Lower case, without port and without the dot of a full name.
fn host_name(host: &str) -> String {
    let (mut end, mut has_port) = (host.len(), false);
    for (place, byte) in host.bytes().enumerate().rev() {
        match byte {
            b']' => {
                end = place + 1;
                break;
            }
            b':' if !has_port => (end, has_port) = (place, true),
            _ => {}
        }
    }
    let name = &host[..end];
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn client(origin: &Origin, headers: &Headers, options: &ProxyOptions) -> Client {
    let peer = origin.peer.ip();
    let by_header = || origin.trusted.then(|| believed_address(headers, options)).flatten();
    let believed = origin.named.map(|named| (named.ip(), Some(named.port()))).or_else(by_header);
    Client {
        peer,
        peer_port: origin.peer.port(),
        ip: believed.map_or(peer, |(ip, _)| ip),
        port: believed.and_then(|(_, port)| port).unwrap_or(origin.peer.port()),
        trusted: origin.trusted,
        server_name: origin.server_name.clone(),
    }
}

/// The address a trusted peer names: the last one of the header, or further left while addresses are trusted.
fn believed_address(headers: &Headers, options: &ProxyOptions) -> Option<(IpAddr, Option<u16>)> {
    if options.real_ip_header == PROXY_PROTOCOL {
        return None;
    }
    let values = headers.get_all(options.real_ip_header.as_str());
    let mut named: Vec<_> = values.filter_map(Value::to_str).flat_map(|value| value.split(',')).collect();
    let mut best = None;
    while let Some(address) = named.pop().and_then(|text| address(text.trim())) {
        best = Some(address);
        if !options.real_ip_recursive || !options.trusts(address.0) {
            break;
        }
    }
    best
}

fn address(text: &str) -> Option<(IpAddr, Option<u16>)> {
    let plain = text.parse().ok().map(|ip| (ip, None));
    plain.or_else(|| text.parse::<SocketAddr>().ok().map(|address| (address.ip(), Some(address.port()))))
}

pub(crate) fn unix_millis() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |time| time.as_millis() as u64)
}

/// Request ids: 32 hexadecimal digits, unique in practice, not secret.
pub(crate) struct Ids(Cell<[u64; 2]>);

impl Ids {
    /// Seeded by the standard library's random hash keys.
    pub(crate) fn new() -> Ids {
        use std::hash::{BuildHasher, RandomState};
        let seed = |salt: u64| RandomState::new().hash_one(salt) | 1;
        Ids(Cell::new([seed(1), seed(2)]))
    }

    /// The next id (xorshift128+).
    pub(crate) fn next(&self) -> Hex {
        Hex::of(self.draw(), self.draw())
    }

    /// A UUID of version 4, as random as the ids.
    pub(crate) fn uuid(&self) -> String {
        let (high, low) = (self.draw(), self.draw());
        let (version, variant) = (high & 0xfff | 0x4000, low >> 48 & 0x3fff | 0x8000);
        format!(
            "{:08x}-{:04x}-{version:04x}-{variant:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            low & 0xffff_ffff_ffff
        )
    }

    fn draw(&self) -> u64 {
        let [mut one, other] = self.0.get();
        one ^= one << 23;
        one ^= one >> 17;
        one ^= other ^ (other >> 26);
        self.0.set([other, one]);
        other.wrapping_add(one)
    }
}

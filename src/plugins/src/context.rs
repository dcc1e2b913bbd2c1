//! Everything a plugin sees and changes of one request.

use crate::{DirectoryError, Node, Slots, Trace};
use bytes::{Bytes, BytesMut};
use gwctl_entities::view::{Route, Service};
use gwctl_entities::{Record, Value};
use gwctl_http1::{Headers, Hex, IntoName, ValidName, Value as HeaderText};
use http::header::{HeaderMap, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, StatusCode, Version};
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

/// Scheme of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain.
    Http,
    /// TLS.
    Https,
}

impl Scheme {
    /// `http` or `https`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// 80 or 443.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Who asks.
#[derive(Debug, Clone)]
pub struct Client {
    /// Address of the connection's peer.
    pub peer: IpAddr,
    /// Port of the connection's peer.
    pub peer_port: u16,
    /// The client behind trusted proxies; the peer when it is not trusted.
    pub ip: IpAddr,
    /// Its port.
    pub port: u16,
    /// The peer is a trusted proxy, so its `X-Forwarded-*` count.
    pub trusted: bool,
    /// Server name the client asked for in the TLS handshake.
    pub server_name: Option<Arc<str>>,
}

/// Why a request body could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Longer than the limit given, in bytes.
    #[error("request body is longer than {0} bytes")]
    InputTooLong(u64),
    /// The client broke off or sent it malformed.
    #[error("request body could not be read: {0}")]
    PeerBroke(String),
}

/// A request body that has not been read yet; the proxy implements it over its HTTP library.
pub trait BodyStream {
    /// The next part; None at the end.
    fn poll_part(&mut self, waker: &Waker) -> Poll<Option<Result<Bytes, BodyError>>>;

    /// Length when the client declared it.
    fn declared_length(&self) -> Option<u64>;

    /// The same body from its start, where it can be read more than once.
    fn again(&self) -> Option<Box<dyn BodyStream>> {
        None
    }

    /// Headers that came after the body, once it has been read to its end.
    fn take_trailers(&mut self) -> Option<HeaderMap> {
        None
    }
}

/// The request body.
#[derive(Default)]
pub enum Body {
    /// The request has none.
    #[default]
    Empty,
    /// Not read; it will be streamed to the upstream.
    Stream(Box<dyn BodyStream>),
    /// Read or replaced; goes to the upstream with its own length.
    Buffered(Bytes),
}

impl Body {
    /// Length where it is known without reading.
    pub fn length(&self) -> Option<u64> {
        match self {
            Self::Empty => Some(0),
            Self::Stream(stream) => stream.declared_length(),
            Self::Buffered(bytes) => Some(bytes.len() as u64),
        }
    }

    /// Reads the body into memory, at most `limit` bytes; a second call costs nothing. The body still goes to the
    /// upstream afterwards. After an error the body is gone and the request cannot be proxied.
    pub async fn read(&mut self, limit: u64) -> Result<Bytes, BodyError> {
        let mut stream = match std::mem::take(self) {
            Self::Empty => return Ok(Bytes::new()),
            Self::Buffered(bytes) => {
                *self = Self::Buffered(bytes.clone());
                return Ok(bytes);
            }
            Self::Stream(stream) => stream,
        };
        if stream.declared_length().is_some_and(|length| length > limit) {
            return Err(BodyError::InputTooLong(limit));
        }
        let mut whole = BytesMut::new();
        while let Some(part) = poll_fn(|task| stream.poll_part(task.waker())).await {
            let part = part?;
            if (whole.len() + part.len()) as u64 > limit {
                return Err(BodyError::InputTooLong(limit));
            }
            whole.extend_from_slice(&part);
        }
        let whole = whole.freeze();
        *self = Self::Buffered(whole.clone());
        Ok(whole)
    }
}

/// The request: method, headers and body as they will go to the upstream; the rest as the client sent it.
pub struct Request {
    /// May be changed.
    pub method: Method,
    /// Path and query as sent.
    pub uri: PathAndQuery,
    /// Protocol version of the client's connection.
    pub version: Version,
    /// May be changed. The proxy adds its own (`X-Forwarded-*`, `Via`) after access and removes hop-by-hop ones.
    pub headers: Headers,
    /// Scheme of the client's connection.
    pub scheme: Scheme,
    /// Host asked for, lower case, without port; empty when there was none.
    pub host: String,
    /// Port of the listener.
    pub port: u16,
    /// See [`Body`].
    pub body: Body,
}

impl Request {
    /// First value of a header as text; None when absent or not text.
    pub fn header<'n>(&self, name: impl IntoName<'n>) -> Option<&str> {
        self.headers.get_str(name)
    }

    /// Replaces all values of a header. False, and nothing is changed, when the value has control characters.
    pub fn set_header<'n>(&mut self, name: impl ValidName<'n>, value: &str) -> bool {
        let value = HeaderText::new(value.as_bytes());
        value.map(|value| self.headers.insert(name, value)).is_some()
    }
}

/// Where the request goes; filled by the router before access, may be changed in access.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// Scheme towards the upstream.
    pub scheme: Scheme,
    /// A host name, an address, or the name of an upstream entity.
    pub host: Arc<str>,
    /// Port, unless the targets of an upstream bring their own.
    pub port: u16,
    /// Path to ask for, escaped, without query.
    pub path: String,
    /// Query to ask for; None: as the client sent it. Empty text: none.
    pub query: Option<String>,
    /// `Host` to send; None: host and port of the target.
    pub host_header: Option<HeaderValue>,
    /// Attempts after the first.
    pub retries: u32,
    /// Time to connect.
    pub connect_timeout: Duration,
    /// Longest pause between two writes.
    pub write_timeout: Duration,
    /// Longest pause between two reads.
    pub read_timeout: Duration,
}

/// Who made the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The upstream.
    Service,
    /// A plugin, or the node on purpose.
    Exit,
    /// The node, since something failed.
    Error,
}

/// Head of the response.
#[derive(Debug)]
pub struct Response {
    /// May be changed in header_filter.
    pub status: StatusCode,
    /// May be changed in header_filter. Hop-by-hop headers of the upstream are not here.
    pub headers: Headers,
    /// See [`Source`].
    pub source: Source,
}

/// One attempt to reach a target.
#[derive(Debug, Clone)]
pub struct Try {
    /// Address connected to; None when the name did not resolve.
    pub ip: Option<IpAddr>,
    /// Port connected to.
    pub port: u16,
    /// When the attempt began, since the request began.
    pub started: Duration,
    /// What went wrong; None for the attempt that answered.
    pub failure: Option<&'static str>,
}

/// When things happened. Durations count from `started`.
#[derive(Debug, Clone)]
pub struct Times {
    /// When the head of the request had been read.
    pub started: Instant,
    /// The same as Unix time in milliseconds: `now` for limits, expiry and logs.
    pub started_millis: u64,
    /// When the request was handed to the upstream.
    pub proxied: Option<Duration>,
    /// When the head of the upstream's response came.
    pub answered: Option<Duration>,
    /// When the last byte was handed to the client, or the request was given up.
    pub ended: Option<Duration>,
}

impl Times {
    /// Begins at a moment, given once more as Unix time in milliseconds.
    pub fn start(now: Instant, now_millis: u64) -> Times {
        Times { started: now, started_millis: now_millis, proxied: None, answered: None, ended: None }
    }

    /// Time since the beginning.
    pub fn until(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }

    /// What the upstream needed until its head came.
    pub fn waited(&self) -> Option<Duration> {
        Some(self.answered?.saturating_sub(self.proxied?))
    }
}

/// One request on its way through the phases.
pub struct Context {
    /// What all requests share.
    pub node: Arc<Node>,
    /// Request id.
    pub id: Hex,
    /// Who asks.
    pub client: Client,
    /// What is asked for.
    pub request: Request,
    /// Matched route; None before routing and when none matched.
    pub route: Option<Arc<Route>>,
    /// Service of the route.
    pub service: Option<Arc<Service>>,
    /// Groups of the route's regex path: first all by number, then the named ones again with their names. Filled only
    /// when a plugin says that it [needs](crate::Needs::captures) them.
    pub captures: Vec<(Option<String>, String)>,
    /// Where the request goes; None before routing.
    pub upstream: Option<Upstream>,
    /// The authenticated consumer; see [`Context::authenticate`].
    pub consumer: Option<Arc<Record>>,
    /// The credential it was authenticated by.
    pub credential: Option<Arc<Record>>,
    /// Groups that an authentication plugin vouches for without a consumer.
    pub groups: Vec<String>,
    /// From header_filter on.
    pub response: Option<Response>,
    /// Attempts to reach the upstream; kept only when a plugin of the chain logs.
    pub tries: Vec<Try>,
    /// When things happened.
    pub times: Times,
    /// Bytes of the request head and body read from the client, roughly as on the wire.
    pub request_size: u64,
    /// Bytes of the response head and body handed to the client, roughly as on the wire.
    pub response_size: u64,
    /// What plugins keep for their later phases.
    pub slots: Slots,
    /// What it is traced by; None when the node traces nothing.
    pub trace: Option<Box<Trace>>,
}

impl Context {
    /// A request as it arrives.
    pub fn new(node: Arc<Node>, id: Hex, client: Client, request: Request, times: Times) -> Context {
        Context {
            node,
            id,
            client,
            request,
            route: None,
            service: None,
            captures: Vec::new(),
            upstream: None,
            consumer: None,
            credential: None,
            groups: Vec::new(),
            response: None,
            tries: Vec::new(),
            times,
            request_size: 0,
            response_size: 0,
            slots: Slots::default(),
            trace: None,
        }
    }

    /// Request id as text.
    pub fn id(&self) -> &str {
        self.id.as_str()
    }

    /// Unix time in milliseconds at which the request began.
    pub fn now(&self) -> u64 {
        self.times.started_millis
    }

    /// Sets who asks. Plugins bound to the consumer and still to come are chosen by it.
    pub fn authenticate(&mut self, consumer: Option<Arc<Record>>, credential: Option<Arc<Record>>) {
        self.consumer = consumer;
        self.credential = credential;
    }

    /// Id of the authenticated consumer.
    pub fn consumer_id(&self) -> Option<&str> {
        text(self.consumer.as_deref(), "id")
    }

    /// User name of the authenticated consumer.
    pub fn consumer_username(&self) -> Option<&str> {
        text(self.consumer.as_deref(), "username")
    }

    /// Custom id of the authenticated consumer.
    pub fn consumer_custom_id(&self) -> Option<&str> {
        text(self.consumer.as_deref(), "custom_id")
    }

    /// Id of the credential.
    pub fn credential_id(&self) -> Option<&str> {
        text(self.credential.as_deref(), "id")
    }

    /// A record by unique field, see [`crate::Directory::find`].
    pub fn find(&self, entity: &str, field: &str, value: &str) -> Result<Option<Arc<Record>>, DirectoryError> {
        self.node.directory.find(entity, field, value)
    }

    /// A record by id, see [`crate::Directory::get`].
    pub fn get(&self, entity: &str, id: &str) -> Result<Option<Arc<Record>>, DirectoryError> {
        self.node.directory.get(entity, id)
    }
}

fn text<'a>(record: Option<&'a Record>, field: &str) -> Option<&'a str> {
    record?.get(field).and_then(Value::as_str)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
pub(crate) mod tests {
    use super::*;
    use crate::EmptyDirectory;
    use std::collections::VecDeque;
    use std::future::Future;
    use std::pin::pin;

    /// A `GET /` from a client on the loopback.
    pub(crate) fn sample() -> Context {
        let ip = IpAddr::from([127, 0, 0, 1]);
        let client = Client { peer: ip, peer_port: 40000, ip, port: 40000, trusted: false, server_name: None };
        let request = Request {
            method: Method::GET,
            uri: PathAndQuery::from_static("/"),
            version: Version::HTTP_11,
            headers: Headers::new(),
            scheme: Scheme::Http,
            host: "example.test".to_owned(),
            port: 8000,
            body: Body::Empty,
        };
        let node = Arc::new(Node::new("node", "host", Arc::new(EmptyDirectory)));
        Context::new(node, Hex::of(0, 0), client, request, Times::start(Instant::now(), 0))
    }

    struct Parts(VecDeque<&'static str>);

    impl BodyStream for Parts {
        fn poll_part(&mut self, _waker: &Waker) -> Poll<Option<Result<Bytes, BodyError>>> {
            Poll::Ready(self.0.pop_front().map(|part| Ok(Bytes::from_static(part.as_bytes()))))
        }

        fn declared_length(&self) -> Option<u64> {
            None
        }
    }

    fn read(body: &mut Body, limit: u64) -> Result<Bytes, BodyError> {
        match pin!(body.read(limit)).poll(&mut std::task::Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => panic!("the parts are all there"),
        }
    }

    #[test]
    fn a_body_read_once_is_kept_for_the_upstream() {
        let mut body = Body::Stream(Box::new(Parts(["ab", "cd"].into())));
        assert_eq!(read(&mut body, 4).unwrap(), "abcd");
        assert_eq!(read(&mut body, 4).unwrap(), "abcd");
        assert_eq!(body.length(), Some(4));
    }

    #[test]
    fn a_body_over_the_limit_is_refused() {
        let mut body = Body::Stream(Box::new(Parts(["ab", "cd"].into())));
        assert_eq!(read(&mut body, 3), Err(BodyError::InputTooLong(3)));
    }
}

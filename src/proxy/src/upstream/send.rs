//! Sending a request to a target, and to the next one when that fails.
//!
//! Tried again, up to the service's `retries`: whatever fails before the request was sent, and, for idempotent
//! methods whose body is still at hand, what fails after it and before any of the response, timeouts included (as
//! nginx does with `error timeout`). An answer that is no HTTP is an answer. A kept connection that turns out to be closed
//! is not counted.

use crate::balancer::{Balancer, BalancerOptions, Fault, Key, Lease, Outcome, Peer, host_value};
use crate::clock;
use crate::forward::Forwarded;
use crate::plans::Plan;
use crate::transport::Transport;
use crate::upstream::connection::{Break, Connection, RequestHead, ResponseHead, SendError};
use crate::upstream::outbound::{Outbound, Progress};
use crate::upstream::pool::PoolKey;
use crate::upstream::target::Target;
use crate::upstream::tls::TlsSettings;
use crate::worker::Worker;
use bytes::Bytes;
use gwctl_plugins::{Body, BodyError, BodyStream, Context, Scheme, Stage, Try, Upstream};
use http::{HeaderValue, Method};
use std::borrow::Cow;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Why the request could not be answered by the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No target has a weight, or too few are healthy.
    NoPeer,
    /// The name of the host cannot be resolved.
    Unresolved,
    /// No connection, or it broke before the response.
    Unreachable,
    /// The response was malformed.
    Invalid,
    /// The upstream took too long.
    TimedOut,
    /// The client's body broke off or is too long.
    Client(BodyError),
    /// The client stopped sending its body.
    ClientTimedOut,
    /// The route has no service and no plugin answered.
    NoService,
    /// A plugin or a setting made a request that cannot be sent.
    Malformed(&'static str),
}

impl Failure {
    fn name(&self) -> &'static str {
        match self {
            Self::NoPeer => "no peer",
            Self::Unresolved => "unresolved",
            Self::Unreachable | Self::Invalid => "failed",
            Self::TimedOut => "timeout",
            Self::Client(_) | Self::ClientTimedOut => "client",
            Self::NoService | Self::Malformed(_) => "malformed",
        }
    }

    /// What it says of the target.
    fn outcome(&self) -> Outcome {
        match self {
            Self::Unreachable => Outcome::Failed(Fault::Tcp),
            Self::TimedOut => Outcome::Failed(Fault::Timeout),
            // What the client is told, as in Kong.
            Self::Invalid => Outcome::Status(502),
            _ => Outcome::Unknown,
        }
    }
}

/// A response head, and the connection its body comes over.
pub(crate) struct Answered {
    pub(crate) head: ResponseHead,
    pub(crate) connection: Connection,
    pub(crate) key: PoolKey,
    /// Kept until the response has been handed over.
    pub(crate) lease: Option<Lease>,
    /// For the client, so that it comes back to the same target.
    pub(crate) cookie: Option<HeaderValue>,
}

/// The targets to choose from, and what the request is hashed to.
pub(crate) struct Choice<'a> {
    pub(crate) balancer: &'a Balancer,
    pub(crate) key: Key,
}

/// What is sent, made once for all attempts.
pub(crate) struct Outgoing<'a> {
    /// The part of the path that the router took off.
    pub(crate) prefix: Option<String>,
    /// Host name that stands for the targets, with the port of each.
    pub(crate) upstream_host: Option<&'a str>,
    /// What is known of the way to the service.
    pub(crate) plan: Option<&'a Plan>,
    /// HTTP/2, for gRPC.
    pub(crate) http2: bool,
}

/// The body, as often as it can be sent.
enum Supply {
    Empty,
    Whole(Bytes),
    Stream(Option<Outbound>, Rc<Progress>),
    /// Can be read from the start for each attempt.
    Again(Box<dyn BodyStream>, Option<Rc<Progress>>),
}

impl Supply {
    fn of(body: Body) -> Supply {
        match body {
            Body::Empty => Supply::Empty,
            Body::Buffered(bytes) => Supply::Whole(bytes),
            Body::Stream(stream) if stream.again().is_some() => Supply::Again(stream, None),
            Body::Stream(stream) => {
                let (body, progress) = Outbound::stream(stream);
                Supply::Stream(Some(body), progress)
            }
        }
    }

    fn take(&mut self) -> Option<Outbound> {
        match self {
            Self::Empty => Some(Outbound::Empty),
            Self::Whole(bytes) => Some(Outbound::Whole(Some(bytes.clone()))),
            Self::Stream(body, _) => body.take(),
            Self::Again(stream, progress) => {
                let (body, of_attempt) = Outbound::stream(stream.again()?);
                *progress = Some(of_attempt);
                Some(body)
            }
        }
    }

    /// A body that came back unsent.
    fn give_back(&mut self, returned: Outbound) {
        if let Self::Stream(body, progress) = self
            && !progress.touched.get()
        {
            *body = Some(returned);
        }
    }

    fn is_there(&self) -> bool {
        !matches!(self, Self::Stream(None, _))
    }

    fn progress(&self) -> Option<&Rc<Progress>> {
        match self {
            Self::Stream(_, progress) => Some(progress),
            Self::Again(_, progress) => progress.as_ref(),
            _ => None,
        }
    }
}

/// Where an attempt goes: an address of the upstream, or (None) the host of the service itself.
struct Destination(Option<Arc<Peer>>);

impl Destination {
    /// The next one, and where the request is counted.
    fn next(
        choice: Option<&Choice<'_>>,
        tried: &[Arc<Peer>],
        options: &BalancerOptions,
    ) -> Option<(Destination, Option<Lease>)> {
        let Some(choice) = choice else { return Some((Destination(None), None)) };
        let (peer, lease) = choice.balancer.take(choice.key.hash, tried, options)?;
        Some((Destination(Some(peer)), lease))
    }

    fn host<'a>(&'a self, service: &'a Upstream) -> &'a str {
        self.0.as_ref().map_or(&*service.host, |peer| &*peer.host)
    }

    fn port(&self, service: &Upstream) -> u16 {
        self.0.as_ref().map_or(service.port, |peer| peer.port)
    }

    /// The address, where it is known without asking.
    fn address(&self, service: &Upstream, plan: Option<&Plan>) -> Option<IpAddr> {
        match (&self.0, plan) {
            (Some(peer), _) => peer.address.or_else(|| peer.host.parse().ok()),
            (None, Some(plan)) => plan.address(service),
            (None, None) => service.host.parse().ok(),
        }
    }

    async fn resolve(
        &self,
        worker: &Worker,
        context: &Context,
        service: &Upstream,
        plan: Option<&Plan>,
    ) -> Option<SocketAddr> {
        let (host, port) = (self.host(service), self.port(service));
        if let Some(address) = self.address(service, plan) {
            return Some(SocketAddr::new(address, port));
        }
        let entered = context.enter(|| Stage::Dns(host.into(), port));
        let resolved = Box::pin(worker.resolver.resolve(host, port)).await;
        context.leave(entered);
        resolved
    }
}

/// Sends the request; see the module.
pub(crate) async fn send(
    worker: &Rc<Worker>,
    choice: &mut Option<Choice<'_>>,
    context: &mut Context,
    outgoing: &Outgoing<'_>,
    keep_tries: bool,
) -> Result<Box<Answered>, Failure> {
    let mut supply = Supply::of(std::mem::take(&mut context.request.body));
    let mut tried: Vec<Arc<Peer>> = Vec::new();
    let mut attempts = 0;
    loop {
        let balancing = &worker.options.balancing;
        let (destination, lease) = Destination::next(choice.as_ref(), &tried, balancing).ok_or(Failure::NoPeer)?;
        let started = context.times.until(clock::now());
        context.times.proxied = Some(started);
        let upstream = context.upstream.as_ref().ok_or(Failure::NoService)?;
        let entered = context.enter(|| Stage::Try);
        let address = destination.resolve(worker, context, upstream, outgoing.plan).await;
        let outcome = match address {
            Some(address) => {
                let exchange = Exchange { worker, upstream, outgoing, context };
                exchange.attempt(&mut supply, &destination, address).await
            }
            None => Err((Failure::Unresolved, true)),
        };
        context.leave(entered);
        if let Some((choice, peer)) = choice.as_ref().zip(destination.0.as_deref()) {
            let verdict = match &outcome {
                Ok(answered) => Outcome::Status(answered.head.status.as_u16()),
                Err((failure, _)) => failure.outcome(),
            };
            choice.balancer.observe(peer, verdict, || context.times.until(clock::now()).saturating_sub(started));
        }
        if keep_tries {
            let failure = outcome.as_ref().err().map(|(failure, _)| failure.name());
            let port = address.map_or_else(|| destination.port(upstream), |address| address.port());
            context.tries.push(Try { ip: address.map(|address| address.ip()), port, started, failure });
        }
        match outcome {
            Ok(mut answered) => {
                answered.lease = lease;
                answered.cookie = choice.as_mut().and_then(|choice| choice.key.cookie.take());
                return Ok(answered);
            }
            Err((failure, again)) => {
                attempts += 1;
                let upstream = context.upstream.as_ref().ok_or(Failure::NoService)?;
                let (host, port) = (destination.host(upstream), destination.port(upstream));
                tracing::warn!(host, port, attempt = attempts, error = ?failure, "upstream failed");
                if !again || attempts > upstream.retries {
                    return Err(failure);
                }
                tried.extend(destination.0);
            }
        }
    }
}

struct Exchange<'a> {
    worker: &'a Rc<Worker>,
    upstream: &'a Upstream,
    outgoing: &'a Outgoing<'a>,
    context: &'a Context,
}

impl Exchange<'_> {
    /// One attempt; an error says whether another may follow.
    async fn attempt(
        &self,
        supply: &mut Supply,
        destination: &Destination,
        address: SocketAddr,
    ) -> Result<Box<Answered>, (Failure, bool)> {
        let host = self.host(destination, address.port()).ok_or((Failure::Malformed("host"), false))?;
        let tls = (self.upstream.scheme == Scheme::Https).then(|| self.tls().pool_name(&host));
        let key = PoolKey { address, tls, http2: self.outgoing.http2 };
        let method = &self.context.request.method;
        let mut may_reuse = true;
        loop {
            let kept = if may_reuse { self.worker.pool.take(&key) } else { None };
            let reused = kept.is_some();
            let mut connection = match kept {
                Some(connection) => connection,
                None => {
                    let connecting = Box::pin(self.connect(self.context, address, &host));
                    let made = connecting.await.map_err(|failure| (failure, true))?;
                    self.worker.pool.keep(&key, &made);
                    made
                }
            };
            let body = supply.take().ok_or((Failure::Unreachable, false))?;
            let head = self.head(&host);
            let entered = self.context.enter(|| Stage::Wait);
            let outcome = match supply.progress() {
                None => self.exchange(&mut connection, &head, body).await,
                // Seldom, and so large that it would make the future of every request large.
                Some(progress) => Box::pin(self.exchange_stream(&mut connection, &head, body, progress)).await,
            };
            self.context.leave(entered);
            match outcome {
                Ok(head) => return Ok(Box::new(Answered { head, connection, key, lease: None, cookie: None })),
                Err(Broken::Unsent(body)) => {
                    supply.give_back(body);
                    if !reused {
                        return Err((Failure::Unreachable, supply.is_there()));
                    }
                }
                Err(Broken::Sent(failure)) => {
                    let again = supply.is_there() && is_idempotent(method) && failure != Failure::Invalid;
                    if !(reused && again && failure == Failure::Unreachable) {
                        return Err((failure, again));
                    }
                    may_reuse = false;
                }
                Err(Broken::ByClient(failure)) => return Err((failure, false)),
            }
        }
    }

    fn tls(&self) -> &TlsSettings {
        self.outgoing.plan.and_then(|plan| plan.tls.as_deref()).unwrap_or(&self.worker.tls)
    }

    /// `Host`: what the route or a plugin says, else what stands for the target, which is mostly known already.
    fn host<'a>(&'a self, destination: &'a Destination, port: u16) -> Option<Cow<'a, HeaderValue>> {
        let Upstream { scheme, host_header, .. } = self.upstream;
        if let Some(value) = host_header {
            return Some(Cow::Borrowed(value));
        }
        let known = match (self.outgoing.upstream_host, &destination.0) {
            (Some(_), _) => None,
            _ if port != destination.port(self.upstream) => None,
            (None, Some(peer)) => peer.host_value(*scheme),
            (None, None) => self.outgoing.plan.and_then(|plan| plan.host_value(self.upstream)),
        };
        let name = self.outgoing.upstream_host.unwrap_or_else(|| destination.host(self.upstream));
        known.map(Cow::Borrowed).or_else(|| host_value(name, port, scheme.default_port()).map(Cow::Owned))
    }

    async fn connect(&self, context: &Context, address: SocketAddr, host: &HeaderValue) -> Result<Connection, Failure> {
        let failed = |error: io::Error| {
            tracing::debug!(%address, %error, "cannot connect");
            if error.kind() == io::ErrorKind::TimedOut { Failure::TimedOut } else { Failure::Unreachable }
        };
        let limit = self.upstream.connect_timeout;
        let entered = context.enter(|| Stage::Connect);
        let stream = Connection::tcp(address, limit).await;
        context.leave(entered);
        let stream = stream.map_err(failed)?;
        let http2 = self.outgoing.http2;
        match self.upstream.scheme {
            Scheme::Http if http2 => Connection::start_http2(Transport::Plain(stream)).await.map_err(failed),
            Scheme::Http => Ok(Connection::start(Transport::Plain(stream))),
            Scheme::Https => {
                let entered = context.enter(|| Stage::Tls);
                let stream = self.tls().connect(stream, host, address, limit).await;
                context.leave(entered);
                let stream = stream.map_err(failed)?;
                let stream = Transport::Tls(Box::new(stream.into()));
                if http2 {
                    return Connection::start_http2(stream).await.map_err(failed);
                }
                Ok(Connection::start(stream))
            }
        }
    }

    fn head<'a>(&'a self, host: &'a HeaderValue) -> RequestHead<'a> {
        let context = self.context;
        let (options, prefix) = (&self.worker.options, self.outgoing.prefix.as_deref());
        RequestHead {
            method: &context.request.method,
            target: Target::of(self.upstream, &context.request),
            scheme: self.upstream.scheme,
            headers: Forwarded { context, options, prefix, host },
        }
    }

    async fn exchange(
        &self,
        connection: &mut Connection,
        head: &RequestHead<'_>,
        body: Outbound,
    ) -> Result<ResponseHead, Broken> {
        let deadline = Instant::from_std(clock::now()) + self.upstream.read_timeout;
        match connection.send_until(deadline, head, body).await {
            Some(outcome) => outcome.map_err(|error| Broken::of(error, None)),
            None => Err(Broken::Sent(Failure::TimedOut)),
        }
    }

    async fn exchange_stream(
        &self,
        connection: &mut Connection,
        head: &RequestHead<'_>,
        body: Outbound,
        progress: &Rc<Progress>,
    ) -> Result<ResponseHead, Broken> {
        let mut sending = pin!(connection.send(head, body));
        // Who has to move changes without a word, so that the shortest pause is looked at.
        let shortest =
            self.worker.options.client_timeout.min(self.upstream.write_timeout).min(self.upstream.read_timeout);
        let mut timer = pin!(sleep(shortest));
        loop {
            tokio::select! {
                biased;
                outcome = &mut sending => return outcome.map_err(|error| Broken::of(error, Some(progress))),
                () = &mut timer => {
                    let due = progress.last.get() + self.pause(progress);
                    let now = Instant::now();
                    if due > now {
                        timer.as_mut().reset(due.min(now + shortest));
                    } else if progress.waits_for_client.get() && !progress.done.get() {
                        return Err(Broken::ByClient(Failure::ClientTimedOut));
                    } else {
                        return Err(Broken::Sent(Failure::TimedOut));
                    }
                }
            }
        }
    }

    /// The longest pause allowed, by who has to move next.
    fn pause(&self, progress: &Progress) -> Duration {
        if progress.done.get() {
            self.upstream.read_timeout
        } else if progress.waits_for_client.get() {
            self.worker.options.client_timeout
        } else {
            self.upstream.write_timeout
        }
    }
}

enum Broken {
    Unsent(Outbound),
    Sent(Failure),
    ByClient(Failure),
}

impl Broken {
    fn of(error: SendError, progress: Option<&Rc<Progress>>) -> Broken {
        if let Some(failure) = progress.and_then(|progress| progress.failure.borrow().clone()) {
            return Broken::ByClient(Failure::Client(failure));
        }
        match error {
            SendError::Unsent(body) => Broken::Unsent(body),
            SendError::Sent(error) => {
                tracing::debug!(%error, "no response");
                let invalid = matches!(error, Break::Malformed(_));
                Broken::Sent(if invalid { Failure::Invalid } else { Failure::Unreachable })
            }
        }
    }
}

/// nginx's view: all but these three.
fn is_idempotent(method: &Method) -> bool {
    !matches!(method.as_str(), "POST" | "LOCK" | "PATCH")
}

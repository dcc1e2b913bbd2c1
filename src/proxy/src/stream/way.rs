//! From a route to one of its targets, and to a connection with it.

use crate::balancer::{Balancer, Fault, Lease, Outcome, Peer, host_value};
use crate::snapshot::Snapshot;
use crate::stream::relay::Limits;
use crate::stream::session::{End, Session};
use crate::upstream::connection::Connection;
use crate::upstream::tls::TlsSettings;
use crate::worker::Worker;
use gwctl_plugins::Scheme;
use gwctl_router::StreamMatch;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};

/// All that is kept of the snapshot.
pub(crate) struct Way {
    /// The client's TLS goes on to the upstream as it is.
    pub(crate) passes_tls: bool,
    pub(crate) limits: Limits,
    pub(crate) retries: u32,
    host: Arc<str>,
    port: u16,
    connect_timeout: Duration,
    /// Set where the upstream is spoken to over TLS.
    tls: Option<Arc<TlsSettings>>,
    /// None: the host of the service is the target.
    balancer: Option<Arc<Balancer>>,
}

/// A target to try.
pub(crate) struct Choice {
    /// Counts at the target for as long as it is held.
    pub(crate) lease: Option<Lease>,
    peer: Option<Arc<Peer>>,
    host: Arc<str>,
    port: u16,
}

/// A connection with a target.
pub(crate) struct Reached {
    pub(crate) stream: Box<dyn Duplex>,
    pub(crate) target: String,
    pub(crate) lease: Option<Lease>,
}

/// Plain or TLS.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Duplex for S {}

/// Why an attempt failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Unresolved,
    Io(io::Error),
    /// Not the target's fault.
    Own(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unresolved => out.write_str("its name stands for no address"),
            Failure::Io(error) | Failure::Own(error) => error.fmt(out),
        }
    }
}

impl Failure {
    /// What it says of the target.
    fn outcome(&self) -> Outcome {
        match self {
            Failure::Unresolved | Failure::Own(_) => Outcome::Unknown,
            Failure::Io(error) if error.kind() == io::ErrorKind::TimedOut => Outcome::Failed(Fault::Timeout),
            Failure::Io(_) => Outcome::Failed(Fault::Tcp),
        }
    }
}

/// The targets that have been tried for one stream.
#[derive(Default)]
pub(crate) struct Tried(Vec<Arc<Peer>>);

impl Choice {
    /// The target as its row names it.
    pub(crate) fn target(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl Way {
    /// The way of a route; None when it has no service.
    pub(crate) fn of(snapshot: &Snapshot, found: &StreamMatch<'_>) -> Option<Way> {
        let service = found.service?;
        let plan = snapshot.plans.of(&service.id)?;
        Some(Way {
            passes_tls: found.route.protocols.iter().any(|protocol| protocol == "tls_passthrough"),
            limits: Limits { read: plan.read_timeout, write: plan.write_timeout },
            retries: service.retries,
            host: plan.host.clone(),
            port: service.port,
            connect_timeout: plan.connect_timeout,
            tls: plan.tls.clone().filter(|_| plan.scheme == Scheme::Https),
            balancer: snapshot.balancers.get(&plan.host).cloned(),
        })
    }

    /// The next target for a client, none of those tried unless all have been. None is logged.
    pub(crate) fn choose(&self, worker: &Worker, client: IpAddr, tried: &Tried) -> Option<Choice> {
        let Some(balancer) = &self.balancer else {
            return Some(Choice { lease: None, peer: None, host: self.host.clone(), port: self.port });
        };
        let taken = balancer.take(balancer.stream_hash(client), &tried.0, &worker.options.balancing);
        let Some((peer, lease)) = taken else {
            tracing::warn!(upstream = &*self.host, "no target to be used, connection closed");
            return None;
        };
        Some(Choice { lease, host: peer.host.clone(), port: peer.port, peer: Some(peer) })
    }

    /// Where the target is.
    pub(crate) async fn address(&self, worker: &Worker, choice: &Choice) -> Result<SocketAddr, Failure> {
        match choice.peer.as_ref().and_then(|peer| peer.address) {
            Some(ip) => Ok(SocketAddr::new(ip, choice.port)),
            None => worker.resolver.resolve(&choice.host, choice.port).await.ok_or(Failure::Unresolved),
        }
    }

    /// The target answers.
    pub(crate) fn succeeded(&self, choice: &Choice, took: Duration) {
        if let (Some(balancer), Some(peer)) = (&self.balancer, &choice.peer) {
            balancer.observe(peer, Outcome::Fine, || took);
        }
    }

    /// The target was tried in vain.
    pub(crate) fn failed(&self, choice: Choice, failure: &Failure, took: Duration, tried: &mut Tried) {
        let (host, port) = (&*choice.host, choice.port);
        tracing::warn!(host, port, error = %failure, "upstream failed");
        if let (Some(balancer), Some(peer)) = (&self.balancer, choice.peer) {
            balancer.observe(&peer, failure.outcome(), || took);
            tried.0.push(peer);
        }
    }

    /// Connects to a target, and to the next one when that fails, up to the service's `retries`: nothing has been sent
    /// yet. None is logged.
    pub(crate) async fn connect(&self, worker: &Worker, client: IpAddr, session: &mut Session) -> Option<Reached> {
        session.refuse(502, End::Cut);
        let mut tried = Tried::default();
        for _ in 0..=self.retries {
            let Some(choice) = self.choose(worker, client, &tried) else {
                session.refuse(503, End::Unreached);
                return None;
            };
            let started = Instant::now();
            match self.attempt(worker, &choice, &mut session.upstream).await {
                Ok(stream) => {
                    session.connected = Some(started.elapsed());
                    self.succeeded(&choice, started.elapsed());
                    return Some(Reached { stream, target: choice.target(), lease: choice.lease });
                }
                Err(failure) => {
                    session.failures += 1;
                    self.failed(choice, &failure, started.elapsed(), &mut tried);
                }
            }
        }
        session.end = End::Unreached;
        None
    }

    /// The address it tries is left in `tried`.
    async fn attempt(
        &self,
        worker: &Worker,
        choice: &Choice,
        tried: &mut Option<SocketAddr>,
    ) -> Result<Box<dyn Duplex>, Failure> {
        let address = self.address(worker, choice).await?;
        *tried = Some(address);
        let stream = Connection::tcp(address, self.connect_timeout).await.map_err(Failure::Io)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let named = self.balancer.as_ref().and_then(|balancer| balancer.host_header.as_deref());
        let named = named.unwrap_or(&choice.host);
        let named = host_value(named, address.port(), address.port()).ok_or(Failure::Unresolved)?;
        let stream = tls.connect(stream, &named, address, self.connect_timeout).await.map_err(Failure::Io)?;
        Ok(Box::new(stream))
    }
}

//! From a route to a connection with one of its targets.

use crate::balancer::{Balancer, Fault, Lease, Outcome, Peer, host_value};
use crate::snapshot::Snapshot;
use crate::stream::relay::Limits;
use crate::stream::session::{End, Session};
use crate::upstream::connection::Connection;
use crate::upstream::tls::TlsSettings;
use crate::worker::Worker;
use gwctl_plugins::Scheme;
use gwctl_router::StreamMatch;
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
    host: Arc<str>,
    port: u16,
    retries: u32,
    connect_timeout: Duration,
    /// Set where the upstream is spoken to over TLS.
    tls: Option<Arc<TlsSettings>>,
    /// None: the host of the service is the target.
    balancer: Option<Arc<Balancer>>,
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
enum Failure {
    Unresolved,
    Io(io::Error),
}

impl Failure {
    /// What it says of the target.
    fn outcome(&self) -> Outcome {
        match self {
            Failure::Unresolved => Outcome::Unknown,
            Failure::Io(error) if error.kind() == io::ErrorKind::TimedOut => Outcome::Failed(Fault::Timeout),
            Failure::Io(_) => Outcome::Failed(Fault::Tcp),
        }
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
            host: plan.host.clone(),
            port: service.port,
            retries: service.retries,
            connect_timeout: plan.connect_timeout,
            tls: plan.tls.clone().filter(|_| plan.scheme == Scheme::Https),
            balancer: snapshot.balancers.get(&plan.host).cloned(),
        })
    }

    /// Connects to a target, and to the next one when that fails, up to the service's `retries`: nothing has been sent
    /// yet. None is logged.
    pub(crate) async fn connect(&self, worker: &Worker, client: IpAddr, session: &mut Session) -> Option<Reached> {
        session.refuse(502, End::Cut);
        let hash = self.balancer.as_ref().and_then(|balancer| balancer.stream_hash(client));
        let mut tried: Vec<Arc<Peer>> = Vec::new();
        for attempt in 0..=self.retries {
            let mut leased = None;
            let peer = match &self.balancer {
                None => None,
                Some(balancer) => {
                    let Some((peer, lease)) = balancer.take(hash, &tried, &worker.options.balancing) else {
                        tracing::warn!(upstream = &*self.host, "no target to be used, connection closed");
                        session.refuse(503, End::Unreached);
                        return None;
                    };
                    leased = lease;
                    Some((balancer, peer))
                }
            };
            let (host, port) = peer.as_ref().map_or((&*self.host, self.port), |(_, peer)| (&*peer.host, peer.port));
            let started = Instant::now();
            let outcome = self.attempt(worker, peer.as_ref().map(|(_, peer)| &**peer), &mut session.upstream).await;
            if let Some((balancer, peer)) = &peer {
                let verdict = outcome.as_ref().err().map_or(Outcome::Fine, Failure::outcome);
                balancer.observe(peer, verdict, || started.elapsed());
            }
            match outcome {
                Ok(stream) => {
                    session.connected = Some(started.elapsed());
                    return Some(Reached { stream, target: format!("{host}:{port}"), lease: leased });
                }
                Err(failure) => {
                    session.failures += 1;
                    tracing::warn!(host, port, attempt = attempt + 1, error = ?failure, "upstream failed");
                    tried.extend(peer.map(|(_, peer)| peer));
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
        peer: Option<&Peer>,
        tried: &mut Option<SocketAddr>,
    ) -> Result<Box<dyn Duplex>, Failure> {
        let (host, port) = peer.map_or((&*self.host, self.port), |peer| (&*peer.host, peer.port));
        let address = match peer.and_then(|peer| peer.address) {
            Some(ip) => SocketAddr::new(ip, port),
            None => worker.resolver.resolve(host, port).await.ok_or(Failure::Unresolved)?,
        };
        *tried = Some(address);
        let stream = Connection::tcp(address, self.connect_timeout).await.map_err(Failure::Io)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let named = self.balancer.as_ref().and_then(|balancer| balancer.host_header.as_deref()).unwrap_or(host);
        let named = host_value(named, address.port(), address.port()).ok_or(Failure::Unresolved)?;
        let stream = tls.connect(stream, &named, address, self.connect_timeout).await.map_err(Failure::Io)?;
        Ok(Box::new(stream))
    }
}

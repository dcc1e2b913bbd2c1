//! Starting and stopping the workers.

use crate::certificates::ByName;
use crate::control::ProxyControl;
use crate::listen::{Bound, NewSockets, Sockets, Speaks, bound, bound_datagrams};
use crate::options::ProxyOptions;
use crate::prober::Prober;
use crate::secure_door::SecureDoor;
use crate::server::Entrance;
use crate::snapshot::SnapshotHandle;
use crate::stats::Stats;
use crate::stream::StreamEntrance;
use crate::supervise::supervise;
use crate::upstream::dns::hosts::Hosts;
use crate::upstream::tls::{TlsFault, TlsSettings, TlsWish, UpstreamTls};
use crate::worker::{Drain, Parts};
use gwctl_certs::{Identity, ListenerPairs, Source};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Why the request path cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}")]
    IoListen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The access log cannot be opened.
    #[error("cannot open the access log {target}")]
    IoAccessLog {
        /// What it was to be written to.
        target: String,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A thread cannot be started.
    #[error("cannot start a worker thread")]
    IoThread(#[source] io::Error),
    /// The TLS library refuses its settings.
    #[error("cannot set up tls")]
    BugTls(#[from] rustls::Error),
    /// The node cannot make a certificate for itself.
    #[error("cannot make a certificate for the listeners")]
    BugCertificate(#[from] gwctl_certs::CertError),
}

/// Time for what plugins have yet to send to other servers once the last request has ended: what is left of the time for
/// requests, within these bounds. A server that is gone must not hold a stop up.
const EXPORT_LIMITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// Opens sockets and deals them out to the workers.
struct Deal<'s> {
    sockets: &'s mut dyn Sockets,
    /// What each worker is given.
    shares: Vec<Vec<Bound>>,
}

impl Deal<'_> {
    /// Opens an address, for datagrams when nothing is spoken there; gives it with the port chosen.
    fn open(&mut self, address: SocketAddr, speaks: Option<Speaks>) -> Result<SocketAddr, ProxyError> {
        let count = self.shares.len();
        let bound = match speaks {
            Some(speaks) => self.sockets.connections(address, count).and_then(|sockets| bound(sockets, speaks)),
            None => self.sockets.datagrams(address, count).and_then(bound_datagrams),
        };
        let bound = bound.map_err(|source| ProxyError::IoListen { address, source })?;
        let given = bound.first().map_or(address, Bound::address);
        // There may be more sockets than workers, when they were handed over by a process with more.
        for (number, bound) in bound.into_iter().enumerate() {
            if let Some(share) = self.shares.get_mut(number % count) {
                share.push(bound);
            }
        }
        Ok(given)
    }
}

/// A worker's thread, and what tells that it has ended.
type Thread = (JoinHandle<()>, oneshot::Receiver<()>);

/// Starts a worker for each share.
fn work(shares: Vec<Vec<Bound>>, parts: &Parts) -> Result<Vec<Thread>, ProxyError> {
    let mut workers = Vec::new();
    for (number, share) in shares.into_iter().enumerate() {
        let (ended, end) = oneshot::channel();
        let parts = parts.clone();
        let body = move || {
            supervise(number, &parts, share);
            // Whoever waited may have given up.
            let _ = ended.send(());
        };
        let thread = std::thread::Builder::new().name(format!("proxy-{number}")).spawn(body);
        workers.push((thread.map_err(ProxyError::IoThread)?, end));
    }
    Ok(workers)
}

/// The running request path. Dropping it stops it without waiting.
pub struct Proxy {
    addresses: Vec<SocketAddr>,
    stream_addresses: Vec<SocketAddr>,
    stats: Arc<Stats>,
    workers: Vec<Thread>,
    prober: Option<JoinHandle<()>>,
    control: ProxyControl,
    snapshots: SnapshotHandle,
}

impl Proxy {
    /// Binds all listeners, then starts the workers.
    ///
    /// # Errors
    /// When an address is taken or not ours, or a thread cannot be started.
    pub fn start(options: ProxyOptions, snapshots: SnapshotHandle) -> Result<Proxy, ProxyError> {
        Self::start_on(options, snapshots, &mut NewSockets)
    }

    /// As [`Proxy::start`], with sockets that the caller opens, or has been handed.
    ///
    /// # Errors
    /// As [`Proxy::start`].
    pub fn start_on(
        options: ProxyOptions,
        snapshots: SnapshotHandle,
        sockets: &mut dyn Sockets,
    ) -> Result<Proxy, ProxyError> {
        let count = options.workers.max(1);
        let own = match options.certificates.as_slice() {
            [] => ListenerPairs::new(&[own_certificate()?]),
            own => ListenerPairs::new(own),
        };
        let mut deal = Deal { sockets, shares: (0..count).map(|_| Vec::new()).collect() };
        let resolver = Arc::new(ByName { snapshots: snapshots.clone(), own: own.clone() });
        let versions = options.tls_versions.supported();
        let mut doors = Vec::new();
        let mut door = |protocols| {
            let door = SecureDoor::new(resolver.clone(), protocols, versions)?;
            doors.push(door.clone());
            Ok::<_, ProxyError>(door)
        };
        let (mut addresses, mut stream_addresses) = (Vec::new(), Vec::new());
        for listener in &options.listeners {
            let protocols: &'static [&'static [u8]] =
                if listener.http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
            let tls = listener.ssl.then(|| door(protocols)).transpose()?;
            let (port, http2, proxy_protocol) = (listener.addr.port(), listener.http2, listener.proxy_protocol);
            let entrance = Entrance { port, http2, tls, proxy_protocol };
            addresses.push(deal.open(listener.addr, Some(Speaks::Http(entrance)))?);
        }
        for listener in &options.streams {
            if listener.udp {
                stream_addresses.push(deal.open(listener.addr, None)?);
                continue;
            }
            // What is spoken over TLS is for client and upstream to agree on.
            let tls = listener.ssl.then(|| door(&[])).transpose()?;
            let entrance = StreamEntrance { address: listener.addr, tls, proxy_protocol: listener.proxy_protocol };
            stream_addresses.push(deal.open(listener.addr, Some(Speaks::Stream(entrance)))?);
        }
        let tls =
            TlsSettings::new(&TlsWish::plain(), &[], None, &UpstreamTls::default()).map_err(|fault| match fault {
                TlsFault::Authority(error) => ProxyError::BugCertificate(error),
                TlsFault::Refused(error) => ProxyError::BugTls(error),
            })?;
        let (hosts, stats) = (Arc::new(Hosts::read(&options.dns.hosts_file)), Arc::new(Stats::default()));
        let (control, stopping, drain, settings) = ProxyControl::new(options, own, doors)?;
        let options = settings.borrow().options.clone();
        let prober = Prober::new(snapshots.clone(), options, hosts.clone());
        let parts = Parts { snapshots, stats: stats.clone(), tls, hosts, stopping, drain, settings };
        let workers = work(deal.shares, &parts)?;
        let (stopping, snapshots) = (parts.stopping, parts.snapshots);
        let thread = std::thread::Builder::new().name("prober".to_owned()).spawn(move || prober.run(stopping));
        let prober = Some(thread.map_err(ProxyError::IoThread)?);
        Ok(Proxy { addresses, stream_addresses, stats, workers, prober, control, snapshots })
    }

    /// What changes it while it runs; it may outlive the proxy.
    pub fn control(&self) -> &ProxyControl {
        &self.control
    }

    /// Addresses listened on, in the order of the listeners.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Addresses listened on for streams, in the order of their listeners.
    pub fn stream_addresses(&self) -> &[SocketAddr] {
        &self.stream_addresses
    }

    /// Counters, live.
    pub fn stats(&self) -> &Arc<Stats> {
        &self.stats
    }

    /// Stops accepting, lets requests in flight and streams end within `shutdown_timeout`, then ends.
    pub async fn stop(self) {
        let limit = self.control.options().shutdown_timeout;
        self.stop_within(Drain::all(limit)).await;
    }

    /// As [`Proxy::stop`], within other times; [`ProxyControl::hasten`] makes them shorter.
    pub async fn stop_within(mut self, drain: Drain) {
        let began = Instant::now();
        self.control.stop(drain);
        for (thread, end) in self.workers.drain(..) {
            // An error means that the thread panicked; joining it tells the same.
            let _ = end.await;
            if thread.join().is_err() {
                tracing::error!("worker panicked");
            }
        }
        // It ends as soon as it is told to.
        if self.prober.take().is_some_and(|prober| prober.join().is_err()) {
            tracing::error!("prober panicked");
        }
        self.control.finish_log();
        // A hastened stop hastens this as well.
        let left = self.control.drain().requests.saturating_sub(began.elapsed());
        let (node, limit) = (self.snapshots.load().node.clone(), left.clamp(EXPORT_LIMITS.0, EXPORT_LIMITS.1));
        // An error would be a panic, which is told.
        let _ = tokio::task::spawn_blocking(move || node.exports.finish(limit)).await;
    }
}

fn own_certificate() -> Result<Identity, gwctl_certs::CertError> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let pair = gwctl_certs::self_signed(&["localhost".to_owned()], now)?;
    let source = |pem| Source { setting: "ssl_cert", place: "made at start", pem };
    Identity::read(source(&pair.certificate), source(&pair.key))
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.control.stop(Drain::all(Duration::ZERO));
    }
}

//! Starting and stopping the workers.

use crate::access_log::{AccessLog, AccessLogOptions, AccessTarget};
use crate::certificates::ByName;
use crate::listen::{Bound, Speaks, bind};
use crate::options::ProxyOptions;
use crate::prober::Prober;
use crate::server::Entrance;
use crate::snapshot::SnapshotHandle;
use crate::stats::Stats;
use crate::stream::StreamEntrance;
use crate::upstream::dns::hosts::Hosts;
use crate::upstream::tls::{TlsFault, TlsSettings, TlsWish, UpstreamTls};
use crate::worker::Worker;
use gwctl_certs::{Identity, Source};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::{oneshot, watch};
use tokio_rustls::TlsAcceptor;

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

/// The running request path. Dropping it stops it without waiting.
pub struct Proxy {
    addresses: Vec<SocketAddr>,
    stream_addresses: Vec<SocketAddr>,
    stats: Arc<Stats>,
    stop: watch::Sender<bool>,
    workers: Vec<(JoinHandle<()>, oneshot::Receiver<()>)>,
    prober: Option<JoinHandle<()>>,
    access_log: Option<AccessLog>,
}

impl Proxy {
    /// Binds all listeners, then starts the workers.
    ///
    /// # Errors
    /// When an address is taken or not ours, or a thread cannot be started.
    pub fn start(options: ProxyOptions, snapshots: SnapshotHandle) -> Result<Proxy, ProxyError> {
        let count = options.workers.max(1);
        let mut shares: Vec<Vec<Bound>> = (0..count).map(|_| Vec::new()).collect();
        let mut open = |address: SocketAddr, speaks| {
            let bound = bind(address, speaks, count).map_err(|source| ProxyError::IoListen { address, source })?;
            let given = bound.first().map_or(address, |bound| bound.address);
            shares.iter_mut().zip(bound).for_each(|(share, bound)| share.push(bound));
            Ok::<_, ProxyError>(given)
        };
        let (mut addresses, mut stream_addresses) = (Vec::new(), Vec::new());
        for listener in &options.listeners {
            let protocols: &[&[u8]] = if listener.http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
            let tls = listener.ssl.then(|| acceptor(&options, protocols, &snapshots)).transpose()?;
            let (port, http2, proxy_protocol) = (listener.addr.port(), listener.http2, listener.proxy_protocol);
            let entrance = Entrance { port, http2, tls, proxy_protocol };
            addresses.push(open(listener.addr, Speaks::Http(entrance))?);
        }
        for listener in &options.streams {
            // What is spoken over TLS is for client and upstream to agree on.
            let tls = listener.ssl.then(|| acceptor(&options, &[], &snapshots)).transpose()?;
            let entrance = StreamEntrance { address: listener.addr, tls, proxy_protocol: listener.proxy_protocol };
            stream_addresses.push(open(listener.addr, Speaks::Stream(entrance))?);
        }
        let access_log = options.access_log.clone().map(open_access_log).transpose()?;
        let (stop, stopping) = watch::channel(false);
        let (options, stats) = (Arc::new(options), Arc::new(Stats::default()));
        let tls =
            TlsSettings::new(&TlsWish::plain(), &[], None, &UpstreamTls::default()).map_err(|fault| match fault {
                TlsFault::Authority(error) => ProxyError::BugCertificate(error),
                TlsFault::Refused(error) => ProxyError::BugTls(error),
            })?;
        let hosts = Arc::new(Hosts::read(&options.dns.hosts_file));
        let mut workers = Vec::new();
        for (number, share) in shares.into_iter().enumerate() {
            let (options, snapshots, stats, tls) = (options.clone(), snapshots.clone(), stats.clone(), tls.clone());
            let (ended, end) = oneshot::channel();
            let hosts = hosts.clone();
            let (stopping, lines) = (stopping.clone(), access_log.as_ref().map(AccessLog::collector));
            let body = move || {
                if let Err(error) = Worker::new(options, snapshots, stats, tls, hosts, lines).run(share, stopping) {
                    tracing::error!(worker = number, %error, "worker failed");
                }
                // Whoever waited may have given up.
                let _ = ended.send(());
            };
            let thread = std::thread::Builder::new().name(format!("proxy-{number}")).spawn(body);
            workers.push((thread.map_err(ProxyError::IoThread)?, end));
        }
        let prober = Prober::new(snapshots, options, hosts);
        let thread = std::thread::Builder::new().name("prober".to_owned()).spawn(move || prober.run(stopping));
        let prober = thread.map_err(ProxyError::IoThread)?;
        Ok(Proxy { addresses, stream_addresses, stats, stop, workers, prober: Some(prober), access_log })
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
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
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
        if let Some(log) = self.access_log.take() {
            log.finish();
        }
    }
}

fn open_access_log(options: AccessLogOptions) -> Result<AccessLog, ProxyError> {
    let target = match &options.target {
        AccessTarget::File(path) => path.display().to_string(),
        AccessTarget::Stdout => "/dev/stdout".to_owned(),
        AccessTarget::Stderr => "/dev/stderr".to_owned(),
    };
    AccessLog::start(options).map_err(|source| ProxyError::IoAccessLog { target, source })
}

/// TLS of a listener: certificates by name from the snapshot in force, else the node's own; `protocols` are agreed on by
/// ALPN, if there are any.
fn acceptor(
    options: &ProxyOptions,
    protocols: &[&[u8]],
    snapshots: &SnapshotHandle,
) -> Result<TlsAcceptor, ProxyError> {
    let own = match options.certificates.as_slice() {
        [] => vec![own_certificate()?],
        own => own.to_vec(),
    };
    let own = own.iter().map(Identity::certified_key).collect();
    let resolver = ByName { snapshots: snapshots.clone(), own };
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(options.tls_versions.supported())?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    // Tickets rather than a cache: a client may come back to another worker.
    config.ticketer = aws_lc_rs::Ticketer::new()?;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn own_certificate() -> Result<Identity, gwctl_certs::CertError> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let pair = gwctl_certs::self_signed(&["localhost".to_owned()], now)?;
    let source = |pem| Source { setting: "ssl_cert", place: "made at start", pem };
    Identity::read(source(&pair.certificate), source(&pair.key))
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

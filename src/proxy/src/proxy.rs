//! Starting and stopping the workers.

use crate::listen::{Bound, bind};
use crate::options::ProxyOptions;
use crate::snapshot::SnapshotHandle;
use crate::stats::Stats;
use crate::upstream::tls::TlsSettings;
use crate::worker::Worker;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::{oneshot, watch};

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
    /// A thread cannot be started.
    #[error("cannot start a worker thread")]
    IoThread(#[source] io::Error),
    /// The TLS library refuses its settings.
    #[error("cannot set up tls")]
    BugTls(#[from] rustls::Error),
}

/// The running request path. Dropping it stops it without waiting.
pub struct Proxy {
    addresses: Vec<SocketAddr>,
    stats: Arc<Stats>,
    stop: watch::Sender<bool>,
    workers: Vec<(JoinHandle<()>, oneshot::Receiver<()>)>,
}

impl Proxy {
    /// Binds all listeners, then starts the workers.
    ///
    /// # Errors
    /// When an address is taken or not ours, or a thread cannot be started.
    pub fn start(options: ProxyOptions, snapshots: SnapshotHandle) -> Result<Proxy, ProxyError> {
        let count = options.workers.max(1);
        let mut shares: Vec<Vec<Bound>> = (0..count).map(|_| Vec::new()).collect();
        let mut addresses = Vec::new();
        for listener in &options.listeners {
            let failed = |source| ProxyError::IoListen { address: listener.addr, source };
            let bound = bind(listener, count).map_err(failed)?;
            addresses.extend(bound.first().map(|bound| bound.address));
            shares.iter_mut().zip(bound).for_each(|(share, bound)| share.push(bound));
        }
        let (stop, stopping) = watch::channel(false);
        let (options, stats) = (Arc::new(options), Arc::new(Stats::default()));
        let tls = TlsSettings::unverified()?;
        let mut workers = Vec::new();
        for (number, share) in shares.into_iter().enumerate() {
            let (options, snapshots, stats, tls) = (options.clone(), snapshots.clone(), stats.clone(), tls.clone());
            let (ended, end) = oneshot::channel();
            let stopping = stopping.clone();
            let body = move || {
                if let Err(error) = Worker::new(options, snapshots, stats, tls).run(share, stopping) {
                    tracing::error!(worker = number, %error, "worker failed");
                }
                // Whoever waited may have given up.
                let _ = ended.send(());
            };
            let thread = std::thread::Builder::new().name(format!("proxy-{number}")).spawn(body);
            workers.push((thread.map_err(ProxyError::IoThread)?, end));
        }
        Ok(Proxy { addresses, stats, stop, workers })
    }

    /// Addresses listened on, in the order of the listeners.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Counters, live.
    pub fn stats(&self) -> &Arc<Stats> {
        &self.stats
    }

    /// Stops accepting, lets requests in flight end within `shutdown_timeout`, then ends.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        for (thread, end) in self.workers.drain(..) {
            // An error means that the thread panicked; joining it tells the same.
            let _ = end.await;
            if thread.join().is_err() {
                tracing::error!("worker panicked");
            }
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

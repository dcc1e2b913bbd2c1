//! One worker: a thread with its own runtime, listeners, upstream connections and resolver.

use crate::arrival::{Arrival, Ids, Origin};
use crate::listen::Bound;
use crate::options::ProxyOptions;
use crate::phases::serve;
use crate::snapshot::SnapshotHandle;
use crate::stats::Stats;
use crate::upstream::dns::Resolver;
use crate::upstream::pool::Pool;
use crate::upstream::tls::TlsSettings;
use gwctl_plugins::Scheme;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};

/// What the requests of a worker share.
pub(crate) struct Worker {
    pub(crate) options: Arc<ProxyOptions>,
    pub(crate) snapshots: SnapshotHandle,
    pub(crate) stats: Arc<Stats>,
    pub(crate) pool: Pool,
    pub(crate) resolver: Resolver,
    pub(crate) tls: TlsSettings,
    pub(crate) ids: Ids,
}

/// Set once the node stops: no new connections, open ones end after their request.
pub(crate) type Stopping = watch::Receiver<bool>;

impl Worker {
    pub(crate) fn new(
        options: Arc<ProxyOptions>,
        snapshots: SnapshotHandle,
        stats: Arc<Stats>,
        tls: TlsSettings,
    ) -> Worker {
        let pool = Pool::new(
            options.upstream_keepalive_pool_size,
            options.upstream_keepalive_max_requests,
            options.upstream_keepalive_idle_timeout,
        );
        let resolver = Resolver::new(options.dns_ttl);
        Worker { options, snapshots, stats, pool, resolver, tls, ids: Ids::new() }
    }

    /// Serves until told to stop and the connections have ended or the deadline has passed.
    pub(crate) fn run(self, bound: Vec<Bound>, stopping: Stopping) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let local = LocalSet::new();
        let worker = Rc::new(self);
        local.block_on(&runtime, worker.serve(bound, stopping))
    }

    async fn serve(self: Rc<Self>, bound: Vec<Bound>, mut stopping: Stopping) -> std::io::Result<()> {
        let mut accepting = JoinSet::new();
        for bound in bound {
            let listener = TcpListener::from_std(bound.socket)?;
            let entrance = Entrance { scheme: bound.scheme, port: bound.address.port() };
            accepting.spawn_local(self.clone().accept(listener, entrance, stopping.clone()));
        }
        let sweeper = tokio::task::spawn_local(self.clone().sweep());
        // An error means that the sender is gone, which is a stop as well.
        let _ = stopping.wait_for(|stop| *stop).await;
        let ending = async { while accepting.join_next().await.is_some() {} };
        if tokio::time::timeout(self.options.shutdown_timeout, ending).await.is_err() {
            tracing::warn!(in_flight = self.stats.now().requests_in_flight, "requests cut at the end of the deadline");
        }
        sweeper.abort();
        Ok(())
    }

    async fn sweep(self: Rc<Self>) {
        let mut ticks = tokio::time::interval(Duration::from_secs(10));
        loop {
            ticks.tick().await;
            self.pool.sweep();
        }
    }

    /// Accepts until told to stop, then waits for the connections it accepted.
    async fn accept(self: Rc<Self>, listener: TcpListener, entrance: Entrance, mut stopping: Stopping) {
        let mut connections = JoinSet::new();
        let waiting = stopping.clone();
        loop {
            tokio::select! {
                biased;
                _ = stopping.wait_for(|stop| *stop) => break,
                Some(_) = connections.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => {
                        self.stats.accepted();
                        connections.spawn_local(self.clone().connection(entrance, stream, peer, waiting.clone()));
                    }
                    Err(error) => {
                        // Out of file descriptors, most likely: give the others time to end.
                        tracing::error!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
            }
        }
        drop(listener);
        while connections.join_next().await.is_some() {}
    }

    async fn connection(
        self: Rc<Self>,
        entrance: Entrance,
        stream: TcpStream,
        peer: SocketAddr,
        mut stopping: Stopping,
    ) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%peer, %error, "connection lost at once");
            return;
        }
        self.stats.opened();
        let origin = Rc::new(Origin {
            peer,
            port: entrance.port,
            scheme: entrance.scheme,
            server_name: None,
            trusted: self.options.trusts(peer.ip()),
        });
        let worker = self.clone();
        let service = service_fn(move |request| {
            let arrival = Arrival::new(&worker, &origin, request);
            async move { Ok::<_, Infallible>(serve(arrival).await) }
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(self.options.header_timeout).half_close(false);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
        let outcome = tokio::select! {
            biased;
            outcome = &mut connection => outcome,
            _ = stopping.wait_for(|stop| *stop) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = outcome {
            tracing::debug!(%peer, %error, "client connection ended");
        }
        self.stats.closed();
    }
}

/// What a connection takes over from the socket it was accepted at.
#[derive(Clone, Copy)]
struct Entrance {
    scheme: Scheme,
    port: u16,
}

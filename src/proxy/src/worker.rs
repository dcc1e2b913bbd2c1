//! One worker: a thread with its own runtime, listeners, upstream connections and resolver.

use crate::access_log::{Collector, FLUSH_INTERVAL};
use crate::arrival::Ids;
use crate::listen::{Bound, Speaks};
use crate::metrics::Recorder;
use crate::options::ProxyOptions;
use crate::snapshot::SnapshotHandle;
use crate::stats::Stats;
use crate::stream::OpenStreams;
use crate::upstream::dns::Resolver;
use crate::upstream::dns::hosts::Hosts;
use crate::upstream::pool::Pool;
use crate::upstream::tls::TlsSettings;
use std::future::Future;
use std::net::SocketAddr;
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
    pub(crate) resolver: Rc<Resolver>,
    pub(crate) tls: TlsSettings,
    pub(crate) ids: Ids,
    pub(crate) access_log: Option<Collector>,
    pub(crate) recorder: Recorder,
    pub(crate) streams: Rc<OpenStreams>,
}

/// Set once the node stops: no new connections, open ones end after their request.
pub(crate) type Stopping = watch::Receiver<bool>;

impl Worker {
    pub(crate) fn new(
        options: Arc<ProxyOptions>,
        snapshots: SnapshotHandle,
        stats: Arc<Stats>,
        tls: TlsSettings,
        hosts: Arc<Hosts>,
        access_log: Option<Collector>,
    ) -> Worker {
        let pool = Pool::new(
            options.upstream_keepalive_pool_size,
            options.upstream_keepalive_max_requests,
            options.upstream_keepalive_idle_timeout,
        );
        let resolver = Resolver::new(options.clone(), hosts);
        let recorder = stats.metrics().recorder();
        let (ids, streams) = (Ids::new(), Rc::default());
        Worker { options, snapshots, stats, pool, resolver, tls, ids, access_log, recorder, streams }
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
            let stopping = stopping.clone();
            match bound.speaks {
                Speaks::Http(entrance) => {
                    let waiting = stopping.clone();
                    accepting.spawn_local(self.clone().accept(listener, stopping, move |worker, stream, peer| {
                        worker.connection(entrance.clone(), stream, peer, waiting.clone())
                    }));
                }
                Speaks::Stream(entrance) => {
                    accepting.spawn_local(self.clone().accept(listener, stopping, move |worker, stream, peer| {
                        worker.stream(entrance.clone(), stream, peer)
                    }));
                }
            }
        }
        let sweeper = tokio::task::spawn_local(self.clone().sweep());
        let flusher = self.access_log.is_some().then(|| tokio::task::spawn_local(self.clone().flush()));
        // An error means that the sender is gone, which is a stop as well.
        let _ = stopping.wait_for(|stop| *stop).await;
        let ending = async { while accepting.join_next().await.is_some() {} };
        if tokio::time::timeout(self.options.shutdown_timeout, ending).await.is_err() {
            let in_flight = self.stats.now().requests_in_flight;
            if in_flight > 0 {
                tracing::warn!(in_flight, "requests cut at the end of the deadline");
            }
            self.streams.log_cut();
        }
        sweeper.abort();
        if let Some(flusher) = flusher {
            flusher.abort();
        }
        Ok(())
    }

    async fn sweep(self: Rc<Self>) {
        let mut ticks = tokio::time::interval(Duration::from_secs(10));
        loop {
            ticks.tick().await;
            self.pool.sweep();
        }
    }

    async fn flush(self: Rc<Self>) {
        let mut ticks = tokio::time::interval(FLUSH_INTERVAL);
        loop {
            ticks.tick().await;
            if let Some(log) = &self.access_log {
                log.flush();
            }
        }
    }

    /// Accepts until told to stop, then waits for the connections it accepted.
    async fn accept<S, C>(self: Rc<Self>, listener: TcpListener, mut stopping: Stopping, serve: S)
    where
        S: Fn(Rc<Worker>, TcpStream, SocketAddr) -> C,
        C: Future<Output = ()> + 'static,
    {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                _ = stopping.wait_for(|stop| *stop) => break,
                Some(_) = connections.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => {
                        self.stats.accepted();
                        connections.spawn_local(serve(self.clone(), stream, peer));
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
}

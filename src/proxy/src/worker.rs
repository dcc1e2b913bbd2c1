//! One worker: a thread with its own runtime, listeners, upstream connections and resolver.

use crate::access_log::{Collector, Collectors, FLUSH_INTERVAL};
use crate::admission::Admission;
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
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, sleep_until};

/// Pause after an accept that failed for want of descriptors or memory: the others get time to end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What the requests of a worker share. A reload makes another one beside it: connections go on with the one they were
/// accepted by, each request takes the [`Worker::latest`].
pub(crate) struct Worker {
    pub(crate) options: Arc<ProxyOptions>,
    pub(crate) snapshots: SnapshotHandle,
    pub(crate) stats: Arc<Stats>,
    pub(crate) pool: Rc<Pool>,
    pub(crate) resolver: Rc<Resolver>,
    pub(crate) tls: TlsSettings,
    pub(crate) ids: Rc<Ids>,
    pub(crate) access_log: Option<Rc<Collector>>,
    pub(crate) stream_log: Option<Rc<Collector>>,
    pub(crate) recorder: Rc<Recorder>,
    pub(crate) streams: Rc<OpenStreams>,
    pub(crate) admission: Rc<Admission>,
    /// Set when whatever is in flight is about to be cut.
    pub(crate) cutting: Rc<Cell<bool>>,
    newer: RefCell<Option<Rc<Worker>>>,
}

/// What is spoken at a socket, as far as the one who accepts there must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speech {
    PlainHttp,
    SecureHttp,
    Stream,
}

/// What all workers are made from; clones share it.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) snapshots: SnapshotHandle,
    pub(crate) stats: Arc<Stats>,
    pub(crate) tls: TlsSettings,
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) stopping: Stopping,
    pub(crate) drain: watch::Receiver<Drain>,
    pub(crate) settings: watch::Receiver<Settings>,
}

/// What a reload changes.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) options: Arc<ProxyOptions>,
    pub(crate) collectors: Option<Collectors>,
    /// Those of streams.
    pub(crate) stream_collectors: Option<Collectors>,
}

/// The tasks that accept connections; each ends after the connections it accepted.
#[derive(Default)]
struct Accepting {
    requests: JoinSet<()>,
    streams: JoinSet<()>,
}

/// Set once the node stops: no new connections, open ones end after their request.
pub(crate) type Stopping = watch::Receiver<bool>;

/// How long what is in flight may go on after a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drain {
    /// Requests.
    pub requests: Duration,
    /// Streams and upgraded connections, such as WebSockets.
    pub streams: Duration,
}

impl Drain {
    /// The same time for all.
    pub fn all(limit: Duration) -> Self {
        Self { requests: limit, streams: limit }
    }
}

impl Worker {
    fn new(parts: &Parts, settings: &Settings) -> Worker {
        let options = settings.options.clone();
        let resolver = Resolver::new(options.clone(), parts.hosts.clone());
        Worker {
            pool: Rc::new(pool(&options)),
            options,
            snapshots: parts.snapshots.clone(),
            recorder: Rc::new(parts.stats.metrics().recorder()),
            stats: parts.stats.clone(),
            resolver,
            tls: parts.tls.clone(),
            ids: Rc::new(Ids::new()),
            access_log: collector(settings.collectors.as_ref()),
            stream_log: collector(settings.stream_collectors.as_ref()),
            streams: Rc::default(),
            admission: Rc::default(),
            cutting: Rc::default(),
            newer: RefCell::default(),
        }
    }

    /// The same worker with other settings; what it keeps of clients and upstreams goes on.
    fn renewed(&self, settings: &Settings) -> Worker {
        let options = settings.options.clone();
        let keepalive = |options: &ProxyOptions| {
            let size = options.upstream_keepalive_pool_size;
            (size, options.upstream_keepalive_max_requests, options.upstream_keepalive_idle_timeout)
        };
        let same_pool = keepalive(&options) == keepalive(&self.options);
        let same_log = options.access_log == self.options.access_log;
        let same_stream_log = options.stream_access_log == self.options.stream_access_log;
        let (log, stream_log) = (&self.access_log, &self.stream_log);
        Worker {
            pool: if same_pool { self.pool.clone() } else { Rc::new(pool(&options)) },
            options,
            snapshots: self.snapshots.clone(),
            stats: self.stats.clone(),
            resolver: self.resolver.clone(),
            tls: self.tls.clone(),
            ids: self.ids.clone(),
            access_log: if same_log { log.clone() } else { collector(settings.collectors.as_ref()) },
            stream_log: if same_stream_log {
                stream_log.clone()
            } else {
                collector(settings.stream_collectors.as_ref())
            },
            recorder: self.recorder.clone(),
            streams: self.streams.clone(),
            admission: self.admission.clone(),
            cutting: self.cutting.clone(),
            newer: RefCell::default(),
        }
    }

    /// This worker with the settings in force.
    pub(crate) fn latest(self: &Rc<Self>) -> Rc<Self> {
        let newest = match &*self.newer.borrow() {
            None => return self.clone(),
            Some(newer) => newer.latest(),
        };
        // The way is as short the next time.
        self.newer.replace(Some(newest.clone()));
        newest
    }

    /// Serves until told to stop and the connections have ended or the deadline has passed. `spare` are the same sockets
    /// once more, kept should the worker have to be started again; they go with the first sign of a stop.
    pub(crate) fn run(parts: &Parts, bound: Vec<Bound>, spare: &RefCell<Vec<Bound>>) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let local = LocalSet::new();
        let mut settings = parts.settings.clone();
        let worker = Rc::new(Worker::new(parts, &settings.borrow_and_update()));
        local.block_on(&runtime, worker.serve(parts, settings, bound, spare))
    }

    async fn serve(
        self: Rc<Self>,
        parts: &Parts,
        settings: watch::Receiver<Settings>,
        bound: Vec<Bound>,
        spare: &RefCell<Vec<Bound>>,
    ) -> std::io::Result<()> {
        let mut accepting = Accepting::default();
        for bound in bound {
            self.clone().listen(bound, &parts.stopping, &mut accepting)?;
        }
        tokio::task::spawn_local(sweep(Rc::downgrade(&self.pool)));
        tokio::task::spawn_local(self.clone().flush());
        tokio::task::spawn_local(self.clone().follow(settings));
        let mut stopping = parts.stopping.clone();
        // An error means that the sender is gone, which is a stop as well.
        let _ = stopping.wait_for(|stop| *stop).await;
        spare.borrow_mut().clear();
        self.drain(accepting, parts.drain.clone()).await;
        Ok(())
    }

    fn listen(self: Rc<Self>, bound: Bound, stopping: &Stopping, accepting: &mut Accepting) -> std::io::Result<()> {
        let stopping = stopping.clone();
        let (socket, speaks) = match bound {
            Bound::Connections { socket, speaks, .. } => (socket, speaks),
            Bound::Datagrams { socket, address } => {
                let socket = UdpSocket::from_std(socket)?;
                accepting.streams.spawn_local(self.datagrams(socket, address, stopping));
                return Ok(());
            }
        };
        let listener = TcpListener::from_std(socket)?;
        match speaks {
            Speaks::Http(entrance) => {
                let speech = if entrance.tls.is_none() { Speech::PlainHttp } else { Speech::SecureHttp };
                let waiting = stopping.clone();
                accepting.requests.spawn_local(self.accept(listener, stopping, speech, move |worker, stream, peer| {
                    worker.connection(entrance.clone(), stream, peer, waiting.clone())
                }));
            }
            Speaks::Stream(entrance) => {
                accepting.streams.spawn_local(self.accept(
                    listener,
                    stopping,
                    Speech::Stream,
                    move |worker, stream, peer| worker.stream(entrance.clone(), stream, peer),
                ));
            }
        }
        Ok(())
    }

    /// Waits for what is in flight, within the time for it, which may be made shorter meanwhile.
    async fn drain(self: Rc<Self>, mut accepting: Accepting, mut limits: watch::Receiver<Drain>) {
        let began = Instant::now();
        let Accepting { requests, streams } = &mut accepting;
        let mut requests = std::pin::pin!(async { while requests.join_next().await.is_some() {} });
        let mut streams = std::pin::pin!(async {
            while streams.join_next().await.is_some() {}
            self.streams.all_ended().await;
        });
        let (mut answered, mut passed, mut cut) = (false, false, false);
        loop {
            let limit = *limits.borrow_and_update();
            let dues = [(answered, limit.requests), (passed, limit.streams)];
            let waited = began.elapsed();
            if !cut && !passed && limit.streams <= waited {
                self.streams.cut();
                cut = true;
            }
            let due = dues.into_iter().filter(|(ended, limit)| !ended && *limit > waited).map(|(_, limit)| limit).max();
            let Some(due) = due else { break };
            tokio::select! {
                biased;
                () = &mut requests, if !answered => answered = true,
                () = &mut streams, if !passed => passed = true,
                Ok(()) = limits.changed() => {}
                () = sleep_until(began + due) => {}
            }
        }
        if !answered {
            self.cutting.set(true);
        }
        if !cut {
            self.streams.cut();
        }
    }

    /// Puts the settings of a reload in force.
    async fn follow(self: Rc<Self>, mut settings: watch::Receiver<Settings>) {
        let mut worker = self;
        while settings.changed().await.is_ok() {
            let renewed = Rc::new(worker.renewed(&settings.borrow_and_update()));
            if !Rc::ptr_eq(&renewed.pool, &worker.pool) {
                tokio::task::spawn_local(sweep(Rc::downgrade(&renewed.pool)));
            }
            worker.newer.replace(Some(renewed.clone()));
            worker = renewed;
        }
    }

    async fn flush(self: Rc<Self>) {
        let mut ticks = tokio::time::interval(FLUSH_INTERVAL);
        loop {
            ticks.tick().await;
            let worker = self.latest();
            [&worker.access_log, &worker.stream_log].into_iter().flatten().for_each(|log| log.flush());
        }
    }

    /// Accepts until told to stop, then waits for the connections it accepted.
    async fn accept<S, C>(self: Rc<Self>, listener: TcpListener, mut stopping: Stopping, speech: Speech, serve: S)
    where
        S: Fn(Rc<Worker>, TcpStream, SocketAddr) -> C,
        C: Future<Output = ()> + 'static,
    {
        let mut connections = JoinSet::new();
        let take = |connections: &mut JoinSet<()>, stream: TcpStream, peer| {
            let worker = self.latest();
            match speech {
                Speech::Stream => worker.stats.accepted_stream(),
                _ => worker.stats.accepted(),
            }
            match worker.admission.refusal(&stream, &worker.options, &worker.stats) {
                None => connections.spawn_local(serve(worker, stream, peer)),
                Some(_) => {
                    let admission = worker.admission.clone();
                    connections
                        .spawn_local(async move { admission.turn_away(stream, speech == Speech::PlainHttp).await })
                }
            };
        };
        loop {
            tokio::select! {
                biased;
                _ = stopping.wait_for(|stop| *stop) => break,
                Some(ended) = connections.join_next() => self.told(ended),
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => take(&mut connections, stream, peer),
                    Err(error) => {
                        // Out of file descriptors, most likely.
                        self.admission.warn(|| tracing::error!(%error, "cannot accept a connection"));
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        // Whoever has connected already is served: closing the socket would reset what waits in its queue.
        // Not by turns: a pause that is due would look like the end of the queue.
        let next = || tokio::task::unconstrained(poll_fn(|task| Poll::Ready(listener.poll_accept(task))));
        while let Poll::Ready(Ok((stream, peer))) = next().await {
            take(&mut connections, stream, peer);
        }
        drop(listener);
        while let Some(ended) = connections.join_next().await {
            self.told(ended);
        }
    }

    /// A panic ends its connection only; the hook for panics has written it to the log.
    pub(crate) fn told(&self, ended: Result<(), tokio::task::JoinError>) {
        if ended.is_err_and(|error| error.is_panic()) {
            tracing::error!("a connection was cut by a panic, a bug of gwctl; the worker goes on");
        }
    }
}

fn collector(log: Option<&Collectors>) -> Option<Rc<Collector>> {
    log.map(|log| Rc::new(log.collector()))
}

fn pool(options: &ProxyOptions) -> Pool {
    Pool::new(
        options.upstream_keepalive_pool_size,
        options.upstream_keepalive_max_requests,
        options.upstream_keepalive_idle_timeout,
    )
}

/// Closes idle connections whose time is over, for as long as the pool is used.
async fn sweep(pool: Weak<Pool>) {
    let mut ticks = tokio::time::interval(Duration::from_secs(10));
    loop {
        ticks.tick().await;
        let Some(pool) = pool.upgrade() else { return };
        pool.sweep();
    }
}

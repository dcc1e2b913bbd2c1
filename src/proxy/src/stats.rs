//! Counters of connections and requests, as the status answers show them.

use crate::metrics::Metrics;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared by all workers.
#[derive(Debug, Default)]
pub struct Stats {
    accepted: AtomicU64,
    handled: AtomicU64,
    active: AtomicU64,
    shed: [AtomicU64; Shed::ALL.len()],
    restarts: AtomicU64,
    overloaded: AtomicBool,
    /// Of the connections those that are streams.
    streams: StreamCounts,
    metrics: Metrics,
}

#[derive(Debug, Default)]
struct StreamCounts {
    /// UDP sessions open.
    sessions: AtomicU64,
    accepted: AtomicU64,
    handled: AtomicU64,
    active: AtomicU64,
}

/// Why a client was turned away without being served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shed {
    /// As many connections as are allowed are open.
    Connections,
    /// File descriptors are about to run out.
    Files,
    /// The process uses as much memory as it may.
    Memory,
    /// As many UDP sessions as are allowed are open.
    Sessions,
}

impl Shed {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Connections, Self::Files, Self::Memory, Self::Sessions];

    /// Label of its figure.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Files => "files",
            Self::Memory => "memory",
            Self::Sessions => "udp_sessions",
        }
    }
}

/// The counters at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatsNow {
    /// Client connections accepted since the start.
    pub connections_accepted: u64,
    /// Client connections served since the start.
    pub connections_handled: u64,
    /// Client connections open.
    pub connections_active: u64,
    /// Of the accepted ones those that are streams; likewise the next two.
    pub streams_accepted: u64,
    /// Streams served since the start.
    pub streams_handled: u64,
    /// Streams open.
    pub streams_active: u64,
    /// Requests begun since the start.
    pub total_requests: u64,
    /// Requests not yet ended.
    pub requests_in_flight: u64,
}

impl Stats {
    /// The counters now.
    pub fn now(&self) -> StatsNow {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (begun, ended) = self.metrics.requests();
        StatsNow {
            connections_accepted: read(&self.accepted),
            connections_handled: read(&self.handled),
            connections_active: read(&self.active),
            streams_accepted: read(&self.streams.accepted),
            streams_handled: read(&self.streams.handled),
            streams_active: read(&self.streams.active),
            total_requests: begun,
            requests_in_flight: begun.saturating_sub(ended),
        }
    }

    /// Figures of requests.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// How many were turned away since the start for this reason.
    pub fn shed_for(&self, reason: Shed) -> u64 {
        self.shed.get(reason as usize).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// How many times a worker had to be started again.
    pub fn worker_restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// Says whether the process uses as much memory as it may: new requests are then answered 503.
    pub fn set_overloaded(&self, overloaded: bool) {
        self.overloaded.store(overloaded, Ordering::Relaxed);
    }

    pub(crate) fn is_overloaded(&self) -> bool {
        self.overloaded.load(Ordering::Relaxed)
    }

    pub(crate) fn shed(&self, reason: Shed) {
        if let Some(count) = self.shed.get(reason as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn worker_restarted(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn active(&self) -> u64 {
        self.active.load(Ordering::Relaxed)
    }

    pub(crate) fn accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection as open until the guard is dropped.
    pub(crate) fn opened(&self) -> Open<'_> {
        self.handled.fetch_add(1, Ordering::Relaxed);
        self.active.fetch_add(1, Ordering::Relaxed);
        Open(self)
    }

    pub(crate) fn accepted_stream(&self) {
        self.accepted();
        self.streams.accepted.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn sessions(&self) -> u64 {
        self.streams.sessions.load(Ordering::Relaxed)
    }

    /// Counts a UDP session as open until the guard is dropped.
    pub(crate) fn opened_session(self: &Arc<Self>) -> OpenSession {
        self.accepted_stream();
        self.handled.fetch_add(1, Ordering::Relaxed);
        self.active.fetch_add(1, Ordering::Relaxed);
        self.streams.handled.fetch_add(1, Ordering::Relaxed);
        self.streams.active.fetch_add(1, Ordering::Relaxed);
        self.streams.sessions.fetch_add(1, Ordering::Relaxed);
        OpenSession(self.clone())
    }

    /// As [`Stats::opened`], for a stream.
    pub(crate) fn opened_stream(&self) -> OpenStream<'_> {
        self.streams.handled.fetch_add(1, Ordering::Relaxed);
        self.streams.active.fetch_add(1, Ordering::Relaxed);
        OpenStream(self.opened())
    }
}

/// An open client connection.
pub(crate) struct Open<'a>(&'a Stats);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An open stream.
pub(crate) struct OpenStream<'a>(Open<'a>);

impl Drop for OpenStream<'_> {
    fn drop(&mut self) {
        self.0.0.streams.active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An open UDP session.
pub(crate) struct OpenSession(Arc<Stats>);

impl Drop for OpenSession {
    fn drop(&mut self) {
        let Stats { active, streams, .. } = &*self.0;
        for count in [active, &streams.active, &streams.sessions] {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

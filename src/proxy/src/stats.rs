//! Counters of connections and requests, as the status answers show them.

use crate::metrics::Metrics;
use std::sync::atomic::{AtomicU64, Ordering};

/// Shared by all workers.
#[derive(Debug, Default)]
pub struct Stats {
    accepted: AtomicU64,
    handled: AtomicU64,
    active: AtomicU64,
    requests: AtomicU64,
    in_flight: AtomicU64,
    metrics: Metrics,
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
    /// Requests begun since the start.
    pub total_requests: u64,
    /// Requests not yet ended.
    pub requests_in_flight: u64,
}

impl Stats {
    /// The counters now.
    pub fn now(&self) -> StatsNow {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StatsNow {
            connections_accepted: read(&self.accepted),
            connections_handled: read(&self.handled),
            connections_active: read(&self.active),
            total_requests: read(&self.requests),
            requests_in_flight: read(&self.in_flight),
        }
    }

    /// Figures of requests.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
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

    pub(crate) fn begun(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn ended(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An open client connection.
pub(crate) struct Open<'a>(&'a Stats);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}

//! How long a client's connection of HTTP/2 is kept.

use crate::options::ProxyOptions;
use std::cell::Cell;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Least time that a connection may stay idle: without keep-alive there is no other sign of the end than that nothing
/// runs.
const LEAST_KEEPALIVE: Duration = Duration::from_millis(10);

/// How a connection is used.
pub(super) struct Usage {
    /// Streams that run.
    streams: Cell<usize>,
    requests: Cell<u64>,
    most: u64,
    /// Since when none has run.
    idle: Cell<Instant>,
    keepalive: Duration,
    /// The last request that is allowed has come.
    last: Notify,
}

impl Usage {
    pub(super) fn new(options: &ProxyOptions) -> Usage {
        Usage {
            streams: Cell::new(0),
            requests: Cell::new(0),
            most: options.keepalive_requests,
            idle: Cell::new(Instant::now()),
            keepalive: options.keepalive_timeout.max(LEAST_KEEPALIVE),
            last: Notify::new(),
        }
    }

    /// A request has come.
    pub(super) fn begin(&self) {
        self.streams.set(self.streams.get() + 1);
        self.requests.set(self.requests.get() + 1);
        if self.requests.get() >= self.most {
            self.last.notify_one();
        }
    }

    /// It has been answered, or given up.
    pub(super) fn end(&self) {
        self.streams.set(self.streams.get().saturating_sub(1));
        self.idle.set(Instant::now());
    }

    /// When an idle connection is closed; None: it is in use, or has not begun.
    fn due(&self) -> Option<Instant> {
        (self.streams.get() == 0 && self.requests.get() > 0).then(|| self.idle.get() + self.keepalive)
    }

    /// Ends when the connection has had its requests or has been idle for too long.
    pub(super) async fn enough(&self) {
        let idle = async {
            loop {
                let due = self.due();
                if due.is_some_and(|due| due <= Instant::now()) {
                    return;
                }
                sleep_until(due.unwrap_or_else(|| Instant::now() + self.keepalive)).await;
            }
        };
        tokio::select! {
            () = self.last.notified() => {}
            () = idle => {}
        }
    }
}

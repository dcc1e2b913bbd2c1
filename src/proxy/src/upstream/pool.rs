//! Idle upstream connections of one worker.

use crate::upstream::connection::Connection;
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connections are exchangeable when they lead to the same address in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PoolKey {
    pub(crate) address: SocketAddr,
    /// Server name and settings of TLS; None for plain connections.
    pub(crate) tls: Option<Arc<str>>,
}

struct Idle {
    connection: Connection,
    since: Instant,
}

/// The newest idle connection is used first, so that surplus ones run out.
pub(crate) struct Pool {
    idle: RefCell<HashMap<PoolKey, Vec<Idle>>>,
    size: usize,
    max_requests: u32,
    idle_timeout: Duration,
}

impl Pool {
    pub(crate) fn new(size: usize, max_requests: u32, idle_timeout: Duration) -> Pool {
        Pool { idle: RefCell::default(), size, max_requests, idle_timeout }
    }

    /// An idle connection that still seems open.
    pub(crate) fn take(&self, key: &PoolKey) -> Option<Connection> {
        let mut pool = self.idle.borrow_mut();
        let idle = pool.get_mut(key)?;
        while let Some(Idle { connection, since }) = idle.pop() {
            if since.elapsed() < self.idle_timeout && connection.is_open() {
                return Some(connection);
            }
        }
        None
    }

    /// Takes back a connection whose response has been read to its end.
    pub(crate) fn put(&self, key: PoolKey, connection: Connection) {
        let worn_out = self.max_requests != 0 && connection.requests() >= self.max_requests;
        if worn_out || !connection.is_open() {
            return;
        }
        let mut pool = self.idle.borrow_mut();
        let idle = pool.entry(key).or_default();
        if idle.len() < self.size {
            idle.push(Idle { connection, since: Instant::now() });
        }
    }

    /// Closes connections that have been idle for too long.
    pub(crate) fn sweep(&self) {
        self.idle.borrow_mut().retain(|_, idle| {
            idle.retain(|idle| idle.since.elapsed() < self.idle_timeout && idle.connection.is_open());
            !idle.is_empty()
        });
    }
}

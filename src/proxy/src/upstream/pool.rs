//! Idle upstream connections of one worker.

use crate::clock;
use crate::keyed::Own;
use crate::upstream::connection::Connection;
use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connections are exchangeable when they lead to the same address in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PoolKey {
    pub(crate) address: SocketAddr,
    /// Server name and settings of TLS; None for plain connections.
    pub(crate) tls: Option<Arc<str>>,
    /// HTTP/2, whose connections are shared.
    pub(crate) http2: bool,
}

/// In one word where that is enough: a key is looked for twice a request.
impl Hash for PoolKey {
    #[inline]
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        match self.address {
            SocketAddr::V4(address) => {
                hasher.write_u64(u64::from(address.ip().to_bits()) << 16 | u64::from(address.port()));
            }
            SocketAddr::V6(address) => address.hash(hasher),
        }
        if let Some(tls) = &self.tls {
            tls.hash(hasher);
        }
    }
}

struct Idle {
    connection: Connection,
    since: Instant,
}

/// The newest idle connection is used first, so that surplus ones run out. Of HTTP/2 those are kept that can carry more
/// requests, busy or not.
pub(crate) struct Pool {
    idle: RefCell<Own<PoolKey, Vec<Idle>>>,
    size: usize,
    max_requests: u32,
    idle_timeout: Duration,
}

impl Pool {
    pub(crate) fn new(size: usize, max_requests: u32, idle_timeout: Duration) -> Pool {
        let idle_timeout = if idle_timeout.is_zero() { Duration::MAX } else { idle_timeout };
        Pool { idle: RefCell::default(), size, max_requests, idle_timeout }
    }

    /// An idle connection that still seems open, or a share of one.
    pub(crate) fn take(&self, key: &PoolKey) -> Option<Connection> {
        let mut pool = self.idle.borrow_mut();
        let idle = pool.get_mut(key)?;
        if key.http2 {
            idle.retain_mut(|idle| idle.connection.is_open());
            // The first ones as far as they go, so that surplus ones run out.
            let (since, share) = idle.iter_mut().find_map(|idle| Some((&mut idle.since, idle.connection.share()?)))?;
            *since = clock::now();
            return Some(share);
        }
        while let Some(Idle { mut connection, since }) = idle.pop() {
            if clock::now().saturating_duration_since(since) < self.idle_timeout && connection.is_open() {
                return Some(connection);
            }
        }
        None
    }

    /// Takes back a connection whose response has been read; it is closed when nothing more can be sent over it.
    pub(crate) fn put(&self, key: PoolKey, mut connection: Connection) {
        let worn_out = self.max_requests != 0 && connection.requests() >= self.max_requests;
        if key.http2 || worn_out || !connection.is_reusable() {
            return;
        }
        connection.rest();
        let mut pool = self.idle.borrow_mut();
        let idle = pool.entry(key).or_default();
        if idle.len() < self.size {
            idle.push(Idle { connection, since: clock::now() });
        }
    }

    /// Keeps a connection that was just made and can be shared, so that others use it, too. Another one for the same
    /// address is kept only when all before it are full: an upstream may allow few streams, and streams may last.
    pub(crate) fn keep(&self, key: &PoolKey, connection: &Connection) {
        let Some(connection) = connection.root() else { return };
        let mut pool = self.idle.borrow_mut();
        let idle = pool.entry(key.clone()).or_default();
        idle.retain_mut(|idle| idle.connection.is_open());
        if idle.len() < self.size && idle.iter().all(|idle| idle.connection.is_full()) {
            idle.push(Idle { connection, since: clock::now() });
        }
    }

    /// Closes connections that have been idle for too long.
    pub(crate) fn sweep(&self) {
        self.idle.borrow_mut().retain(|_, idle| {
            idle.retain_mut(|idle| idle.since.elapsed() < self.idle_timeout && idle.connection.is_open());
            !idle.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Transport;
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn a_sweep_sees_every_closed_connection_however_many_there_are() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let pool = Pool::new(1000, 0, Duration::from_secs(60));
        let key = |number: usize| PoolKey { address, tls: Some(number.to_string().into()), http2: false };
        // More than a task of the runtime may do in one turn.
        for number in 0..400 {
            let stream = TcpStream::connect(address).await.unwrap();
            let (peer, _) = listener.accept().await.unwrap();
            drop(peer);
            stream.readable().await.unwrap();
            pool.put(key(number % 2), Connection::start(Transport::Plain(stream)));
        }
        assert_eq!(pool.idle.borrow().values().map(Vec::len).sum::<usize>(), 400);
        pool.sweep();
        assert!(pool.idle.borrow().is_empty());
    }
}

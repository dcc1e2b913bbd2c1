//! The streams and upgraded connections of a worker that are open, so that a stop can wait for them and name those that
//! it cuts.

use crate::stream::relay::Moved;
use gwctl_entities::view::Route;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Notify;

/// As many are named by each worker when they are cut.
const NAMED: usize = 1000;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct OpenStreams {
    next: Cell<u64>,
    open: RefCell<BTreeMap<u64, Rc<Described>>>,
    /// Rung when the last one ends.
    ended: Notify,
    /// Rung when those that are open are to end.
    cut: Notify,
}

#[derive(Debug)]
struct Described {
    client: Cell<SocketAddr>,
    /// None: a request that was upgraded.
    listener: Option<SocketAddr>,
    since: Instant,
    moved: Rc<Moved>,
    route: RefCell<Option<Arc<Route>>>,
    target: RefCell<Option<String>>,
}

/// A stream that is open until this is dropped.
pub(crate) struct Entered {
    number: u64,
    described: Rc<Described>,
    streams: Rc<OpenStreams>,
}

impl OpenStreams {
    pub(crate) fn enter(streams: &Rc<OpenStreams>, client: SocketAddr, listener: Option<SocketAddr>) -> Entered {
        let number = streams.next.replace(streams.next.get() + 1);
        let (route, target, moved) = Default::default();
        let (client, since) = (Cell::new(client), Instant::now());
        let described = Rc::new(Described { client, listener, since, moved, route, target });
        streams.open.borrow_mut().insert(number, described.clone());
        Entered { number, described, streams: streams.clone() }
    }

    /// Names those that are about to be cut, the oldest when there are many.
    fn log_cut(&self) {
        let open = self.open.borrow();
        for described in open.values().take(NAMED) {
            let age = described.since.elapsed().as_secs();
            let bytes = described.moved.received() + described.moved.sent();
            tracing::warn!(stream = %described, age_s = age, bytes, "stream cut at the end of the deadline");
        }
        if let Some(more) = open.len().checked_sub(NAMED).filter(|more| *more > 0) {
            tracing::warn!(more, "further streams cut at the end of the deadline");
        }
    }

    /// Ends upgraded connections; streams end with the worker.
    pub(crate) fn cut(&self) {
        self.log_cut();
        self.cut.notify_waiters();
    }

    /// Waits until none is open.
    pub(crate) async fn all_ended(&self) {
        loop {
            let ended = self.ended.notified();
            if self.open.borrow().is_empty() {
                return;
            }
            ended.await;
        }
    }
}

impl Entered {
    /// The client is another than the peer of the connection.
    pub(crate) fn comes_from(&self, client: SocketAddr) {
        self.described.client.set(client);
    }

    pub(crate) fn found(&self, route: Arc<Route>) {
        self.described.route.replace(Some(route));
    }

    /// Ends when this one is to end.
    pub(crate) async fn cut(&self) {
        self.streams.cut.notified().await;
    }

    /// Where bytes are counted.
    pub(crate) fn moved(&self) -> Rc<Moved> {
        self.described.moved.clone()
    }

    pub(crate) fn reached(&self, target: String) {
        self.described.target.replace(Some(target));
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut open = self.streams.open.borrow_mut();
        open.remove(&self.number);
        if open.is_empty() {
            self.streams.ended.notify_one();
        }
    }
}

impl fmt::Display for Entered {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.described.fmt(out)
    }
}

impl fmt::Display for Described {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.client.get())?;
        match self.listener {
            Some(listener) => write!(out, " at {listener}")?,
            None => out.write_str(" upgraded")?,
        }
        if let Some(route) = &*self.route.borrow() {
            write!(out, " by route {}", route.name.as_deref().unwrap_or(&route.id))?;
        }
        if let Some(target) = &*self.target.borrow() {
            write!(out, " to {target}")?;
        }
        Ok(())
    }
}

//! The streams of a worker that are open, so that those that are cut can be named.

use gwctl_entities::view::Route;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct OpenStreams {
    next: Cell<u64>,
    open: RefCell<BTreeMap<u64, Rc<Described>>>,
}

#[derive(Debug)]
struct Described {
    client: Cell<SocketAddr>,
    listener: SocketAddr,
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
    pub(crate) fn enter(streams: &Rc<OpenStreams>, client: SocketAddr, listener: SocketAddr) -> Entered {
        let number = streams.next.replace(streams.next.get() + 1);
        let (route, target) = Default::default();
        let described = Rc::new(Described { client: Cell::new(client), listener, route, target });
        streams.open.borrow_mut().insert(number, described.clone());
        Entered { number, described, streams: streams.clone() }
    }

    /// Names those that are about to be cut.
    pub(crate) fn log_cut(&self) {
        for described in self.open.borrow().values() {
            tracing::warn!(stream = %described, "stream cut at the end of the deadline");
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

    pub(crate) fn reached(&self, target: String) {
        self.described.target.replace(Some(target));
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.streams.open.borrow_mut().remove(&self.number);
    }
}

impl fmt::Display for Entered {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.described.fmt(out)
    }
}

impl fmt::Display for Described {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} at {}", self.client.get(), self.listener)?;
        if let Some(route) = &*self.route.borrow() {
            write!(out, " by route {}", route.name.as_deref().unwrap_or(&route.id))?;
        }
        if let Some(target) = &*self.target.borrow() {
            write!(out, " to {target}")?;
        }
        Ok(())
    }
}

//! What is told of a stream: figures, and a line of the access log once it has ended.

use crate::arrival::unix_millis;
use crate::metrics::StreamFigures;
use crate::stream::open::{Entered, OpenStreams};
use crate::worker::Worker;
use gwctl_entities::view::{Route, Service};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Tcp,
    /// It ends here.
    Tls,
    /// It goes on to the upstream as it is.
    TlsPassthrough,
    /// Datagrams of one client.
    Udp,
}

impl Protocol {
    /// As routes name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::TlsPassthrough => "tls_passthrough",
            Self::Udp => "udp",
        }
    }

    /// As nginx names what is below it.
    pub(crate) fn transport(self) -> &'static str {
        match self {
            Self::Tcp | Self::Tls | Self::TlsPassthrough => "TCP",
            Self::Udp => "UDP",
        }
    }
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Both sides were done.
    Done,
    /// A side broke off, or what it said was not understood.
    Broken,
    /// Nothing moved for too long.
    Silent,
    /// There is nowhere to go.
    Refused,
    /// No target could be reached.
    Unreached,
    /// The node stopped.
    Cut,
}

impl End {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Broken => "broken",
            Self::Silent => "silent",
            Self::Refused => "refused",
            Self::Unreached => "unreached",
            Self::Cut => "cut",
        }
    }
}

/// The facts of one stream. Statuses are those that nginx gives: 200 once there was a connection with an upstream, 400
/// for a beginning that was not understood, 500 without a route, 502 when no target answered, 503 when there is none.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) began: Instant,
    /// The same as Unix time in milliseconds.
    pub(crate) began_millis: u64,
    /// Set at the end.
    pub(crate) took: Duration,
    pub(crate) client: SocketAddr,
    pub(crate) listener: SocketAddr,
    pub(crate) protocol: Protocol,
    pub(crate) server_name: Option<String>,
    pub(crate) route: Option<Arc<Route>>,
    pub(crate) service: Option<Arc<Service>>,
    /// The address tried last.
    pub(crate) upstream: Option<SocketAddr>,
    /// What the connection with the upstream took, its TLS included.
    pub(crate) connected: Option<Duration>,
    pub(crate) status: u16,
    /// Attempts to reach a target that failed.
    pub(crate) failures: u32,
    /// Bytes from the client; set at the end, as the next one.
    pub(crate) received: u64,
    /// Bytes to the client.
    pub(crate) sent: u64,
    pub(crate) end: End,
}

impl Session {
    pub(crate) fn begin(client: SocketAddr, listener: SocketAddr, protocol: Protocol) -> Session {
        Session {
            began: Instant::now(),
            began_millis: unix_millis(),
            took: Duration::ZERO,
            client,
            listener,
            protocol,
            server_name: None,
            route: None,
            service: None,
            upstream: None,
            connected: None,
            status: 400,
            failures: 0,
            received: 0,
            sent: 0,
            // Whoever ends in another way says so.
            end: End::Cut,
        }
    }

    /// It ends without a way.
    pub(crate) fn refuse(&mut self, status: u16, end: End) {
        (self.status, self.end) = (status, end);
    }
}

/// A stream that is open until this is dropped, which tells of it. It is dropped too when its task is: at the end of the
/// time after a stop.
pub(crate) struct Told {
    pub(crate) session: Session,
    pub(crate) entered: Entered,
    figures: Arc<StreamFigures>,
    worker: Rc<Worker>,
}

impl Told {
    pub(crate) fn begin(worker: Rc<Worker>, client: SocketAddr, listener: SocketAddr, protocol: Protocol) -> Told {
        let entered = OpenStreams::enter(&worker.streams, client, Some(listener));
        let figures = worker.recorder.stream(None, None);
        figures.enter();
        Told { session: Session::begin(client, listener, protocol), entered, figures, worker }
    }

    /// It belongs to a route.
    pub(crate) fn found(&mut self, route: &Arc<Route>, service: Option<&Arc<Service>>) {
        self.session.route = Some(route.clone());
        self.session.service = service.cloned();
        self.entered.found(route.clone());
        self.figures.leave();
        self.figures = self.worker.recorder.stream(Some(route), service.map(|service| &**service));
        self.figures.enter();
        self.entered.moved().count_in(self.figures.clone());
    }

    /// The client is another than the peer of the connection.
    pub(crate) fn comes_from(&mut self, client: SocketAddr) {
        self.session.client = client;
        self.entered.comes_from(client);
    }

    /// Ends it with what became of it, unless that is known already.
    pub(crate) fn end(mut self, outcome: &io::Result<()>) {
        if self.session.end == End::Cut {
            self.session.end = match outcome {
                Ok(()) => End::Done,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => End::Silent,
                Err(_) => End::Broken,
            };
        }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entered.fmt(out)
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let moved = self.entered.moved();
        let session = &mut self.session;
        (session.received, session.sent) = (moved.received(), moved.sent());
        session.took = session.began.elapsed();
        self.figures.leave();
        self.figures.end(session.status, session.took, session.failures);
        if let Some(log) = &self.worker.latest().stream_log {
            log.add_stream(session);
        }
    }
}

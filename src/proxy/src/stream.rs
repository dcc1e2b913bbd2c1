//! What is passed on as bytes: TCP, TLS that ends here, TLS that is passed through, and datagrams (`datagrams`, `exchange`).
//!
//! A connection takes the snapshot in force when it arrives, finds its route and its target, and lets the snapshot go:
//! a change of the configuration leaves open connections alone and costs no memory for as long as they last. Plugins are
//! not run.

mod datagrams;
mod exchange;
mod hello;
mod open;
mod relay;
pub(crate) mod rewound;
pub(crate) mod session;
mod way;

pub(crate) use open::{Entered, OpenStreams};
pub(crate) use relay::{Limits, relay};

use crate::proxy_header::read_proxy_header;
use crate::secure_door::SecureDoor;
use crate::stream::hello::read_hello;
use crate::stream::rewound::Rewound;
use crate::stream::session::{End, Protocol, Told};
use crate::stream::way::Way;
use crate::worker::Worker;
use gwctl_router::{StreamProtocol, StreamRequest};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// What a connection takes over from the socket it was accepted at.
#[derive(Clone)]
pub(crate) struct StreamEntrance {
    pub(crate) address: SocketAddr,
    /// Set where clients speak TLS, whether it ends here or is passed through.
    pub(crate) tls: Option<SecureDoor>,
    /// Connections begin with a PROXY header.
    pub(crate) proxy_protocol: bool,
}

/// Both ends of a client's connection.
#[derive(Clone, Copy)]
struct Ends {
    source: SocketAddr,
    destination: SocketAddr,
}

impl Worker {
    /// Serves one connection to its end.
    pub(crate) async fn stream(self: Rc<Self>, entrance: StreamEntrance, stream: TcpStream, peer: SocketAddr) {
        let stats = self.stats.clone();
        let _open = stats.opened_stream();
        let protocol = if entrance.tls.is_some() { Protocol::Tls } else { Protocol::Tcp };
        let mut told = Told::begin(self.clone(), peer, entrance.address, protocol);
        let outcome = self.pass_on(entrance, stream, peer, &mut told).await;
        tracing::debug!(stream = %told, error = outcome.as_ref().err().map(tracing::field::display), "stream ended");
        told.end(&outcome);
    }

    async fn pass_on(
        &self,
        entrance: StreamEntrance,
        mut stream: TcpStream,
        peer: SocketAddr,
        told: &mut Told,
    ) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut ends = Ends { source: canonical(peer), destination: canonical(stream.local_addr()?) };
        if entrance.proxy_protocol {
            let named = self.in_time(read_proxy_header(&mut stream)).await?;
            if let Some(client) = named.filter(|_| self.options.trusts(peer.ip())) {
                ends.source = canonical(client);
                told.comes_from(client);
            }
        }
        let mut start = Vec::new();
        let server_name = match entrance.tls {
            Some(_) => self.in_time(read_hello(&mut stream, &mut start)).await?,
            None => None,
        };
        told.session.server_name = server_name;
        let protocol = if entrance.tls.is_some() { StreamProtocol::Tls } else { StreamProtocol::Tcp };
        let Some(way) = self.way(ends, protocol, told) else { return Ok(()) };
        let client = Rewound::new(start, stream);
        match entrance.tls.filter(|_| !way.passes_tls) {
            Some(tls) => self.join(self.in_time(tls.acceptor().accept(client)).await?, ends, way, told).await,
            None => self.join(client, ends, way, told).await,
        }
    }

    /// Finds the route by the snapshot in force. None is logged.
    fn way(&self, ends: Ends, protocol: StreamProtocol, told: &mut Told) -> Option<Way> {
        let Ends { source, destination } = ends;
        let snapshot = self.snapshots.load();
        let sni = told.session.server_name.clone();
        let sni = sni.as_deref();
        let asked = StreamRequest { protocol, sni, source, destination };
        let Some(found) = snapshot.router.find_stream(&asked) else {
            tracing::info!(client = %source, %destination, sni, "no route matches the connection, closed");
            told.session.refuse(500, End::Refused);
            return None;
        };
        told.found(found.route, found.service);
        let way = Way::of(&snapshot, &found);
        match &way {
            None => {
                let route = found.route.name.as_deref().unwrap_or(&found.route.id);
                tracing::info!(client = %source, %destination, route, "the route has no service, connection closed");
                told.session.refuse(503, End::Refused);
            }
            Some(way) if way.passes_tls && protocol == StreamProtocol::Tls => {
                told.session.protocol = Protocol::TlsPassthrough
            }
            Some(_) => {}
        }
        way
    }

    /// Connects and copies both ways.
    async fn join<C>(&self, client: C, ends: Ends, way: Way, told: &mut Told) -> io::Result<()>
    where
        C: AsyncRead + AsyncWrite + Unpin,
    {
        let Some(reached) = way.connect(self, ends.source.ip(), &mut told.session).await else { return Ok(()) };
        told.entered.reached(reached.target);
        told.session.status = 200;
        relay(client, reached.stream, way.limits, told.entered.moved()).await?;
        // The target counts the connection for as long as it lasts.
        drop(reached.lease);
        Ok(())
    }
}

/// IPv4 as such, so that networks compare.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

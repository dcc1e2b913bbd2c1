//! Datagrams of clients. Each client that sends to a socket has a session there (`exchange`), which has a socket of its
//! own towards a target.
//!
//! Every worker has its own socket at an address. The kernel chooses among them by both ends of a datagram, so a client
//! stays with its worker and sessions are nobody else's.

use crate::stream::exchange::Exchange;
use crate::stream::session::{Protocol, Told};
use crate::worker::{Stopping, Worker};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

/// Longest datagram in bytes.
const LONGEST: usize = 65_535;
/// Datagrams taken in before others get their turn.
pub(super) const BATCH: usize = 64;
/// Pause after a failure of the socket itself.
const PAUSE: Duration = Duration::from_millis(50);

/// A socket that clients send to, and their sessions.
pub(super) struct Door {
    pub(super) socket: UdpSocket,
    pub(super) address: SocketAddr,
    /// Where answers are read into, one after the other.
    pub(super) buffer: RefCell<Vec<u8>>,
    sessions: RefCell<HashMap<SocketAddr, Rc<Exchange>>>,
}

impl Worker {
    /// Takes in datagrams until told to stop, then waits for the sessions. After a stop none is taken in: they are left to
    /// the process that has the same socket by then, if there is one.
    pub(crate) async fn datagrams(self: Rc<Self>, socket: UdpSocket, address: SocketAddr, stopping: Stopping) {
        let door = Rc::new(Door::new(socket, address));
        let mut received = vec![0; LONGEST];
        let mut open = JoinSet::new();
        let mut told = stopping.clone();
        let mut stop = pin!(async move { _ = told.wait_for(|stop| *stop).await });
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(ended) = open.join_next() => self.told(ended),
                // An error comes again when the datagram is read.
                _ = door.socket.readable() => {
                    if let Err(error) = self.take_in(&door, &mut received, &mut open, &stopping) {
                        self.admission.warn(|| tracing::error!(%error, %address, "cannot receive datagrams"));
                        tokio::time::sleep(PAUSE).await;
                    }
                    tokio::task::yield_now().await;
                }
            }
        }
        while let Some(ended) = open.join_next().await {
            self.told(ended);
        }
    }

    /// Takes in what has come, up to a batch.
    fn take_in(
        self: &Rc<Self>,
        door: &Rc<Door>,
        buffer: &mut [u8],
        open: &mut JoinSet<()>,
        stopping: &Stopping,
    ) -> io::Result<()> {
        for _ in 0..BATCH {
            let (length, client) = match door.socket.try_recv_from(buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            let Some(datagram) = buffer.get(..length) else { continue };
            if let Some(exchange) = door.sessions.borrow().get(&client) {
                exchange.deliver(datagram);
                continue;
            }
            let worker = self.latest();
            if worker.admission.refuses_session(&worker.options, &worker.stats) {
                continue;
            }
            let guard = worker.stats.opened_session();
            let told = Told::begin(worker.clone(), client, door.address, Protocol::Udp);
            let exchange = Rc::new(Exchange::new(client, told.entered.moved()));
            exchange.deliver(datagram);
            door.sessions.borrow_mut().insert(client, exchange.clone());
            let entry = Entry { door: door.clone(), client };
            let (door, stopping) = (door.clone(), stopping.clone());
            open.spawn_local(async move {
                worker.exchange(door, &exchange, told, stopping).await;
                drop((entry, guard));
            });
        }
        Ok(())
    }
}

/// A session is known at its socket until this is dropped.
struct Entry {
    door: Rc<Door>,
    client: SocketAddr,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.door.sessions.borrow_mut().remove(&self.client);
    }
}

impl Door {
    pub(super) fn new(socket: UdpSocket, address: SocketAddr) -> Door {
        Door { socket, address, buffer: RefCell::new(vec![0; LONGEST]), sessions: RefCell::default() }
    }

    /// The address that a client reached. A socket for all addresses does not say to which of them a datagram went: it
    /// is taken for the one from which answers go to this client.
    pub(super) fn destination(&self, client: SocketAddr) -> SocketAddr {
        if !self.address.ip().is_unspecified() {
            return self.address;
        }
        let any: IpAddr = if client.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let towards = |client| {
            let socket = std::net::UdpSocket::bind((any, 0))?;
            socket.connect(client)?;
            socket.local_addr()
        };
        let ip = towards(client).map_or(self.address.ip(), |own| own.ip());
        SocketAddr::new(ip, self.address.port())
    }
}

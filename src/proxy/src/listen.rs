//! Listening sockets.

use crate::server::Entrance;
use crate::stream::StreamEntrance;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener};

/// A socket that listens.
pub(crate) struct Bound {
    pub(crate) socket: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) speaks: Speaks,
}

/// What clients speak at a socket.
#[derive(Clone)]
pub(crate) enum Speaks {
    Http(Entrance),
    /// Anything: it is passed on as bytes.
    Stream(StreamEntrance),
}

/// Connections waiting to be accepted.
const BACKLOG: i32 = 4096;

/// Fails when another process listens on the address. `SO_REUSEPORT` alone would let two nodes of one user share a
/// port unnoticed, each with its own configuration.
fn refuse_shared(address: SocketAddr) -> io::Result<()> {
    if address.port() == 0 {
        return Ok(());
    }
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())
}

/// Listens on an address so many times, once for each worker; the kernel spreads connections over the sockets. With port
/// 0 all take the port that the first was given.
///
/// # Errors
/// When another process listens there, or the system refuses.
pub fn listen(wanted: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
    refuse_shared(wanted)?;
    listen_beside(wanted, count)
}

/// As [`listen`], beside sockets of this address that were handed over.
///
/// # Errors
/// When another user's process listens there, or the system refuses.
pub fn listen_beside(wanted: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
    let mut address = wanted;
    let mut sockets = Vec::with_capacity(count);
    for _ in 0..count {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        socket.set_nonblocking(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let socket = TcpListener::from(socket);
        address = socket.local_addr()?;
        sockets.push(socket);
    }
    Ok(sockets)
}

/// Joins sockets with what clients speak at them.
pub(crate) fn bound(sockets: Vec<TcpListener>, mut speaks: Speaks) -> io::Result<Vec<Bound>> {
    let mut bound = Vec::with_capacity(sockets.len());
    for socket in sockets {
        let address = socket.local_addr()?;
        match &mut speaks {
            Speaks::Http(entrance) => entrance.port = address.port(),
            Speaks::Stream(entrance) => entrance.address = address,
        }
        bound.push(Bound { socket, address, speaks: speaks.clone() });
    }
    Ok(bound)
}

impl Bound {
    /// The same socket once more.
    pub(crate) fn again(&self) -> io::Result<Self> {
        Ok(Self { socket: self.socket.try_clone()?, address: self.address, speaks: self.speaks.clone() })
    }
}

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

/// Binds an address once per worker; the kernel spreads connections over them. With port 0 all take the port that the
/// first was given.
pub(crate) fn bind(wanted: SocketAddr, mut speaks: Speaks, workers: usize) -> io::Result<Vec<Bound>> {
    let mut address = wanted;
    refuse_shared(address)?;
    let mut bound = Vec::with_capacity(workers);
    for _ in 0..workers {
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
        match &mut speaks {
            Speaks::Http(entrance) => entrance.port = address.port(),
            Speaks::Stream(entrance) => entrance.address = address,
        }
        bound.push(Bound { socket, address, speaks: speaks.clone() });
    }
    Ok(bound)
}

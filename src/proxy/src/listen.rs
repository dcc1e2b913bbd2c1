//! Listening sockets.

use crate::server::Entrance;
use crate::stream::StreamEntrance;
use socket2::{Domain, Protocol, Socket, Type};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

/// A socket that listens.
pub(crate) enum Bound {
    /// For connections.
    Connections { socket: TcpListener, address: SocketAddr, speaks: Speaks },
    /// For datagrams.
    Datagrams { socket: UdpSocket, address: SocketAddr },
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

/// Bytes of datagrams that may wait at a socket, as far as the system allows.
const WAITING: usize = 1 << 20;

/// The first socket of an address. It is taken alone and shared afterwards: `SO_REUSEPORT` from the start would let two
/// nodes of one user share a port unnoticed, each with its own configuration.
fn take(address: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    // Without it a listener is not opened while old connections fade; with it sockets for datagrams share an address.
    socket.set_reuse_address(kind == Type::STREAM)?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    if kind == Type::STREAM {
        // Sockets that do not listen yet share an address: only now has it been taken.
        socket.listen(BACKLOG)?;
    }
    socket.set_reuse_port(true)?;
    Ok(socket)
}

/// Listens on an address so many times, once for each worker; the kernel spreads connections over the sockets. With port
/// 0 all take the port that the first was given.
///
/// # Errors
/// When another process listens there, or the system refuses.
pub fn listen(wanted: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
    let open = || -> io::Result<Vec<TcpListener>> {
        let first = TcpListener::from(take(wanted, Type::STREAM, Protocol::TCP)?);
        let mut sockets = listen_beside(first.local_addr()?, count.saturating_sub(1))?;
        sockets.insert(0, first);
        Ok(sockets)
    };
    // Of two that listen in the same instant the kernel may refuse both.
    for pause in PAUSES {
        match open() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                let apart = RandomState::new().hash_one(pause) % pause;
                std::thread::sleep(Duration::from_micros(pause + apart));
            }
            outcome => return outcome,
        }
    }
    open()
}

/// Microseconds between two tries to take an address, at least; up to twice as long, so that nodes do not stay in step.
const PAUSES: [u64; 4] = [500, 1000, 2000, 4000];

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

/// As [`listen`], for datagrams.
///
/// # Errors
/// As [`listen`].
pub fn listen_datagrams(wanted: SocketAddr, count: usize) -> io::Result<Vec<UdpSocket>> {
    let first = take(wanted, Type::DGRAM, Protocol::UDP)?;
    first.set_recv_buffer_size(WAITING)?;
    let first = UdpSocket::from(first);
    let mut sockets = listen_datagrams_beside(first.local_addr()?, count.saturating_sub(1))?;
    sockets.insert(0, first);
    Ok(sockets)
}

/// As [`listen_beside`], for datagrams.
///
/// # Errors
/// As [`listen_beside`].
pub fn listen_datagrams_beside(wanted: SocketAddr, count: usize) -> io::Result<Vec<UdpSocket>> {
    let mut address = wanted;
    let mut sockets = Vec::with_capacity(count);
    for _ in 0..count {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_reuse_port(true)?;
        socket.set_nonblocking(true)?;
        socket.set_recv_buffer_size(WAITING)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.bind(&address.into())?;
        let socket = UdpSocket::from(socket);
        address = socket.local_addr()?;
        sockets.push(socket);
    }
    Ok(sockets)
}

/// Opens the sockets of listeners, so many for each address: one for each worker.
pub trait Sockets {
    /// For connections.
    ///
    /// # Errors
    /// As [`listen`].
    fn connections(&mut self, address: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>>;

    /// For datagrams.
    ///
    /// # Errors
    /// As [`listen`].
    fn datagrams(&mut self, address: SocketAddr, count: usize) -> io::Result<Vec<UdpSocket>>;
}

/// Sockets that nobody had before.
pub(crate) struct NewSockets;

impl Sockets for NewSockets {
    fn connections(&mut self, address: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
        listen(address, count)
    }

    fn datagrams(&mut self, address: SocketAddr, count: usize) -> io::Result<Vec<UdpSocket>> {
        listen_datagrams(address, count)
    }
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
        bound.push(Bound::Connections { socket, address, speaks: speaks.clone() });
    }
    Ok(bound)
}

/// Joins sockets for datagrams with their addresses.
pub(crate) fn bound_datagrams(sockets: Vec<UdpSocket>) -> io::Result<Vec<Bound>> {
    let bound = |socket: UdpSocket| Ok(Bound::Datagrams { address: socket.local_addr()?, socket });
    sockets.into_iter().map(bound).collect()
}

impl Bound {
    /// The same socket once more.
    pub(crate) fn again(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Connections { socket, address, speaks } => {
                Self::Connections { socket: socket.try_clone()?, address: *address, speaks: speaks.clone() }
            }
            Self::Datagrams { socket, address } => Self::Datagrams { socket: socket.try_clone()?, address: *address },
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Connections { address, .. } | Self::Datagrams { address, .. } => *address,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_nodes_that_start_at_the_same_moment_no_two_get_an_address() {
        let any = "127.0.0.1:0".parse().unwrap();
        let mut taken = (0, 0);
        for _ in 0..200 {
            let address = listen(any, 1).unwrap()[0].local_addr().unwrap();
            let datagram_address = listen_datagrams(any, 1).unwrap()[0].local_addr().unwrap();
            let start = std::sync::Barrier::new(4);
            let opened = std::thread::scope(|scope| {
                let open = || {
                    start.wait();
                    (listen(address, 2), listen_datagrams(datagram_address, 2))
                };
                let nodes = [(); 4].map(|()| scope.spawn(open));
                nodes.map(|node| node.join().unwrap())
            });
            let streams = opened.iter().filter(|(streams, _)| streams.is_ok()).count();
            let datagrams = opened.iter().filter(|(_, datagrams)| datagrams.is_ok()).count();
            // None when chance kept them in step to the end, or another process was given the port meanwhile.
            assert!(streams <= 1 && datagrams <= 1, "{opened:?}");
            taken = (taken.0 + streams, taken.1 + datagrams);
        }
        assert!(taken.0 > 0 && taken.1 > 0, "{taken:?}");
    }

    #[test]
    fn an_address_is_shared_by_the_workers_and_by_no_other_process() {
        let any = "127.0.0.1:0".parse().unwrap();
        let streams = listen(any, 3).unwrap();
        let address = streams[0].local_addr().unwrap();
        assert!(streams.iter().all(|socket| socket.local_addr().unwrap() == address));
        assert_eq!(listen(address, 1).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        let sockets = listen_datagrams(any, 3).unwrap();
        let address = sockets[0].local_addr().unwrap();
        assert!(sockets.iter().all(|socket| socket.local_addr().unwrap() == address));
        assert_eq!(listen_datagrams(address, 1).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(listen_datagrams_beside(address, 2).unwrap().len(), 2);
    }
}

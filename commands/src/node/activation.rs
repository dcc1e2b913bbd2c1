//! Sockets that a supervisor has opened for this process, by systemd's protocol: `LISTEN_FDS` of them from descriptor 3 on,
//! for the process that `LISTEN_PID` names. A listener of the settings with the address of one takes it.

use rustix::process::{ForeignRawFd, PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::io;
use std::net::TcpListener;

const FIRST: ForeignRawFd = 3;
/// More than any settings have listeners.
const MOST: ForeignRawFd = 256;

/// The sockets; none where nobody has opened any.
pub(crate) fn sockets() -> Vec<TcpListener> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<i32>().ok();
    let meant = number("LISTEN_PID") == Some(getpid().as_raw_nonzero().get());
    let Some(count) = number("LISTEN_FDS").filter(|count| meant && *count > 0) else { return Vec::new() };
    let take = |descriptor| {
        let socket = copy(descriptor);
        let refused = |error: &io::Error| tracing::warn!(descriptor, %error, "a socket of LISTEN_FDS cannot be used");
        socket.inspect_err(refused).ok()
    };
    (FIRST..FIRST + count.min(MOST)).filter_map(take).collect()
}

/// A copy of a listening socket of this process, which the environment knows by its number only. The supervisor holds the
/// original, and so may this process.
fn copy(descriptor: ForeignRawFd) -> io::Result<TcpListener> {
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    let socket = pidfd_getfd(own, descriptor, PidfdGetfdFlags::empty())?;
    if !rustix::net::sockopt::socket_acceptconn(&socket)? {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it does not listen; sockets of datagrams are not taken",
        ));
    }
    let listener = TcpListener::from(socket);
    listener.set_nonblocking(true)?;
    // A socket of another family has no such address.
    listener.local_addr().map(|_| listener)
}

//! What a supervisor is told by systemd's protocol: datagrams to the socket that `NOTIFY_SOCKET` names, a path or, behind
//! an `@`, an abstract name. Without the variable nobody is told.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

const VARIABLE: &str = "NOTIFY_SOCKET";

/// This process serves and is the main one from now on: after an upgrade it is another than the one that was started.
pub(crate) fn serving() {
    tell(&format!("READY=1\nMAINPID={}", std::process::id()));
}

/// The node stops; no other process takes its place.
pub(crate) fn stopping() {
    tell("STOPPING=1");
}

fn tell(text: &str) {
    let Some(socket) = std::env::var_os(VARIABLE) else { return };
    if let Err(error) = send(&socket, text) {
        tracing::warn!(socket = %socket.display(), %error, "cannot tell the supervisor; see {VARIABLE}");
    }
}

fn send(socket: &OsStr, text: &str) -> std::io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(text.as_bytes(), &address).map(drop)
}

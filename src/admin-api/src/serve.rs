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
mod tests {
    use super::*;
    use crate::fake::Fake;
    use gwctl_entities::NodeKind;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::oneshot;

    struct Server {
        address: SocketAddr,
        stop: Option<oneshot::Sender<()>>,
        task: gwctl_lifecycle::Task,
    }

    fn options() -> ListenOptions {
        ListenOptions { address: ([127, 0, 0, 1], 0).into(), tls: None, setting: "admin_listen" }
    }

    fn start(face: Face, backend: Arc<Fake>) -> Server {
        start_with(face, backend, ServeOptions::default())
    }

    fn start_with(face: Face, backend: Arc<Fake>, options: ServeOptions) -> Server {
        let listener = Listener::bind(&self::options()).unwrap();
        let address = listener.local_address().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = spawn("server under test", Phase::Stop, async move {
            serve_with(listener, face, backend, &options, async {
                let _ = stopped.await;
            })
            .await;
        });
        Server { address, stop: Some(stop), task }
    }

    fn control_plane() -> Arc<Fake> {
        Arc::new(Fake::new(NodeKind::ControlPlane))
    }

    /// Sends bytes on a connection of its own and gives all that comes back until the server closes.
    async fn exchange(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[tokio::test]
    async fn a_body_announced_too_large_is_refused_before_it_is_sent() {
        let server = start(Face::Admin, control_plane());
        let request =
            "POST /services HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100000000\r\n\r\n";
        let answer = exchange(server.address, request).await;
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    }

    #[tokio::test]
    async fn a_body_that_nobody_asked_for_leaves_the_connection_usable() {
        let server = start(Face::Admin, control_plane());
        let body = "x".repeat(200_000);
        let first = format!("GET /nope HTTP/1.1\r\nhost: x\r\ncontent-length: 200000\r\n\r\n{body}");
        let request = format!("{first}GET /services HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let answer = exchange(server.address, &request).await;
        assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("HTTP/1.1 200 OK"), "{answer}");
    }

    #[tokio::test]
    async fn head_has_the_headers_of_get_and_no_body() {
        let server = start(Face::Admin, control_plane());
        let answer = exchange(server.address, "HEAD /services HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains("content-length: 23\r\n") && answer.contains("server: kong/3.9.1\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\n"), "{answer}");
    }

    #[tokio::test]
    async fn refusals_carry_the_headers_of_every_answer() {
        let server = start(Face::Admin, control_plane());
        let request = "POST /services HTTP/1.1\r\nhost: x\r\norigin: http://ui\r\ncontent-type: text/plain\r\ncontent-length: 1\r\nconnection: close\r\n\r\nx";
        let answer = exchange(server.address, request).await;
        assert!(
            answer.starts_with("HTTP/1.1 415") && answer.contains("<h1>415 Unsupported Media Type</h1>"),
            "{answer}"
        );
        assert!(answer.contains("access-control-allow-origin: http://ui\r\n"), "{answer}");
        assert!(answer.contains("x-kong-admin-latency: "), "{answer}");
    }

    #[tokio::test]
    async fn a_request_in_flight_is_answered_after_stopping_began() {
        let backend = control_plane();
        let (entered, mut entering) = tokio::sync::mpsc::unbounded_channel();
        let (release, released) = std::sync::mpsc::channel::<()>();
        *backend.before_status.lock().unwrap() = Some(Box::new(move || {
            entered.send(()).unwrap();
            released.recv().unwrap();
        }));
        let mut server = start(Face::Admin, backend);
        let address = server.address;
        let request = spawn("client", Phase::Stop, async move {
            let answer = exchange(address, "GET /status HTTP/1.1\r\nhost: x\r\n\r\n").await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        });
        entering.recv().await.unwrap();
        server.stop.take().unwrap().send(()).unwrap();
        release.send(()).unwrap();
        request.join().await.unwrap();
        server.task.ended().await.unwrap();
        assert!(TcpStream::connect(address).await.is_err(), "the listener is closed");
    }

    #[tokio::test]
    async fn the_status_api_answers_probes_and_nothing_else() {
        let server = start(Face::Status, control_plane());
        let ask = async |head: &str, body: &str| {
            let length = body.len();
            let request = format!(
                "{head} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            exchange(server.address, &request).await.split(' ').nth(1).unwrap_or_default().to_owned()
        };
        assert_eq!(ask("GET /status", "").await, "200");
        assert_eq!(ask("GET /services", "").await, "404");
        assert_eq!(ask("GET /status/ready", "").await, "200");
        assert_eq!(ask("POST /status/ready", "status=up").await, "400");
        assert_eq!(ask("POST /status/ready", "status=draining").await, "204");
        assert_eq!(ask("GET /status/ready", "").await, "503");
    }

    #[tokio::test]
    async fn an_address_in_use_is_told_with_the_way_to_find_its_user() {
        let first = Listener::bind(&options()).unwrap();
        let address = first.local_address().unwrap();
        let error = Listener::bind(&ListenOptions { address, ..options() }).unwrap_err();
        assert!(error.to_string().contains(&format!("{address} (admin_listen)")), "{error}");
        assert!(error.hint().contains(&format!("'sport = :{}'", address.port())), "{}", error.hint());
    }

    fn limited(limits: Limits) -> Server {
        start_with(Face::Admin, control_plane(), ServeOptions { limits, ..ServeOptions::default() })
    }

    const SHORT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn a_client_that_sends_its_head_too_slowly_is_let_go() {
        let server = limited(Limits { head_timeout: SHORT, ..Limits::default() });
        let answer = exchange(server.address, "GET / HTTP/1.1\r\nhost:").await;
        assert!(!answer.contains("200 OK"), "{answer}");
    }

    #[tokio::test]
    async fn a_client_that_sends_its_body_too_slowly_is_answered_408() {
        let limits = Limits { piece_timeout: SHORT, ..Limits::default() };
        let server = limited(limits);
        let head = "POST /services HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
        let answer = exchange(server.address, head).await;
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    }

    #[tokio::test]
    async fn a_body_that_comes_in_drops_is_answered_408_after_the_time_for_a_whole_one() {
        let server = limited(Limits { body_timeout: SHORT, ..Limits::default() });
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = "POST /services HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let (mut reading, mut writing) = stream.into_split();
        let drops = spawn("drops", Phase::Stop, async move {
            while writing.write_all(b"1\r\n \r\n").await.is_ok() {
                tokio::task::yield_now().await;
            }
        });
        let mut answer = [0; 12];
        reading.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 408");
        drop(drops);
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_of_an_answer_is_let_go() {
        let limits = Limits { write_timeout: SHORT, connections: 1, ..Limits::default() };
        let server = limited(limits);
        // Schemas enough to fill every buffer on the way; the client reads none of them.
        let mut deaf = TcpStream::connect(server.address).await.unwrap();
        let request = "GET /schemas/routes HTTP/1.1\r\nhost: x\r\n\r\n".repeat(4000);
        let sending = spawn("deaf client", Phase::Stop, async move {
            let _ = deaf.write_all(request.as_bytes()).await;
            std::future::pending::<()>().await;
        });
        // The only connection allowed is free again, so it was ended.
        let answer = exchange(server.address, "GET /services HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        drop(sending);
    }

    #[tokio::test]
    async fn connections_beyond_the_limit_wait_until_one_ends() {
        let server = limited(Limits { connections: 1, ..Limits::default() });
        let mut first = TcpStream::connect(server.address).await.unwrap();
        first.write_all(b"GET /services HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut byte = [0; 1];
        first.read_exact(&mut byte).await.unwrap();
        let request = "GET /services HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        let mut second = std::pin::pin!(exchange(server.address, request));
        let early = tokio::time::timeout(SHORT, second.as_mut()).await;
        assert!(early.is_err(), "the second connection was served beside the first");
        drop(first);
        assert!(second.await.starts_with("HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn without_a_token_a_body_is_not_even_read() {
        let options = ServeOptions { authentication: true, ..ServeOptions::default() };
        let server = start_with(Face::Admin, control_plane(), options);
        let head = "POST /gwctl/changes HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 200000000\r\n\r\n";
        let answer = exchange(server.address, head).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
        assert!(answer.contains("www-authenticate: Bearer") && answer.contains("connection: close"), "{answer}");
    }

    #[tokio::test]
    async fn changes_may_be_longer_than_other_bodies() {
        let limits = Limits { body: 100, changes_body: 10_000, ..Limits::default() };
        let server = limited(limits);
        let send = async |path: &str, length: usize| {
            let body = " ".repeat(length - 2) + "[]";
            let request = format!(
                "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            exchange(server.address, &request).await.split(' ').nth(1).unwrap_or_default().to_owned()
        };
        assert_eq!(send("/gwctl/changes", 5000).await, "200");
        assert_eq!(send("/gwctl/changes", 20_000).await, "413");
        assert_eq!(send("/services", 5000).await, "413");
    }

    /// Reads a stream of events until it holds a text.
    async fn until(stream: &mut TcpStream, seen: &mut String, text: &str) {
        while !seen.contains(text) {
            let mut buffer = [0; 4096];
            let read = stream.read(&mut buffer).await.unwrap();
            assert_ne!(read, 0, "the stream ended before {text:?}: {seen}");
            seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
    }

    #[tokio::test]
    async fn events_tell_of_changes_and_data_planes_and_end_with_the_node() {
        let backend = control_plane();
        let limits = Limits { heartbeat: SHORT, event_streams: 1, ..Limits::default() };
        let options = ServeOptions { limits, ..ServeOptions::default() };
        let mut server = start_with(Face::Admin, backend.clone(), options);
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(b"GET /gwctl/events HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut seen = String::new();
        until(&mut stream, &mut seen, "event: hello\nid: 0\ndata: {\"version\":0}").await;
        assert!(seen.contains("content-type: text/event-stream"), "{seen}");
        let body = "{\"username\":\"u\"}";
        let length = body.len();
        let made = exchange(server.address, &format!("POST /consumers HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")).await;
        assert!(made.starts_with("HTTP/1.1 201"), "{made}");
        until(&mut stream, &mut seen, "event: change\nid: 1\n").await;
        until(&mut stream, &mut seen, "\"action\":\"created\",\"entity\":\"consumers\"").await;
        let news = crate::FleetNews { what: "joined", id: "n".to_owned(), ..crate::FleetNews::default() };
        backend.fleet.send(news).unwrap();
        until(&mut stream, &mut seen, "event: joined\n").await;
        until(&mut stream, &mut seen, "\n:\n").await;
        let again = "GET /gwctl/events HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        assert!(exchange(server.address, again).await.starts_with("HTTP/1.1 503"), "one stream was allowed");
        server.stop.take().unwrap().send(()).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        server.task.ended().await.unwrap();
    }

    #[tokio::test]
    async fn a_stream_that_comes_back_is_told_what_it_missed() {
        let server = start(Face::Admin, control_plane());
        let make = "POST /consumers HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 16\r\n\r\n{\"username\":\"u\"}";
        assert!(exchange(server.address, make).await.starts_with("HTTP/1.1 201"));
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(b"GET /gwctl/events HTTP/1.1\r\nhost: x\r\nlast-event-id: 0\r\n\r\n").await.unwrap();
        until(&mut stream, &mut String::new(), "event: change\nid: 1\n").await;
    }
}

//! What the tests play on: an upstream that does as told, a proxy, a client that sees every byte.

use bytes::Bytes;
use gwctl_entities::Value;
use gwctl_plugins::{EmptyDirectory, Natives, Node, PluginHost};
use gwctl_proxy::{Listener, Proxy, ProxyOptions, Snapshot, SnapshotHandle, SnapshotOptions, Tables, UpstreamTls};
use gwctl_router::Flavor;
use serde_json::json;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// No step of a test may take longer.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Ids of the route and the service of [`to`].
pub const ROUTE: &str = "00000000-0000-4000-8000-000000000001";
pub const SERVICE: &str = "00000000-0000-4000-8000-000000000002";

/// A proxy under test.
pub struct Stage {
    pub proxy: Option<Proxy>,
    pub handle: SnapshotHandle,
    pub address: SocketAddr,
    options: SnapshotOptions,
}

impl Stage {
    /// A proxy with a configuration by entity, one worker, default settings.
    pub fn new(config: Value) -> Stage {
        Self::with(config, ProxyOptions::default(), Vec::new())
    }

    /// The same with settings and hosts of plugins.
    pub fn with(config: Value, options: ProxyOptions, hosts: Vec<Arc<dyn PluginHost>>) -> Stage {
        Self::set(config, options, hosts, UpstreamTls::default())
    }

    /// The same as [`Stage::new`] on a node with settings of TLS towards upstreams.
    pub fn towards(config: Value, upstream_tls: UpstreamTls) -> Stage {
        Self::set(config, ProxyOptions::default(), Vec::new(), upstream_tls)
    }

    fn set(
        config: Value,
        options: ProxyOptions,
        mut hosts: Vec<Arc<dyn PluginHost>>,
        upstream_tls: UpstreamTls,
    ) -> Stage {
        let node = Arc::new(Node::new("node", "host", Arc::new(EmptyDirectory)));
        hosts.push(Arc::new(Natives));
        let upstream_tls = Arc::new(upstream_tls);
        let snapshot_options = SnapshotOptions { flavor: Flavor::TraditionalCompatible, hosts, node, upstream_tls };
        let snapshot = Snapshot::build(&tables(config), &snapshot_options, None).unwrap();
        let handle = SnapshotHandle::new(snapshot);
        let listener =
            Listener { addr: "127.0.0.1:0".parse().unwrap(), ssl: false, http2: false, proxy_protocol: false };
        let listeners = if options.listeners.is_empty() { vec![listener] } else { options.listeners };
        let workers = if options.workers == ProxyOptions::default().workers { 1 } else { options.workers };
        let options = ProxyOptions { listeners, workers, ..options };
        let proxy = Proxy::start(options, handle.clone()).unwrap();
        let address = proxy.addresses()[0];
        Stage { proxy: Some(proxy), handle, address, options: snapshot_options }
    }

    /// Puts another configuration in force.
    pub fn reconfigure(&self, config: Value) {
        let old = self.handle.load();
        self.handle.swap(Arc::new(Snapshot::build(&tables(config), &self.options, Some(&old)).unwrap()));
    }

    /// Sends bytes and reads until the proxy closes.
    pub async fn raw(&self, request: impl AsRef<[u8]>) -> Reply {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_ref()).await.unwrap();
        Reply::read(&mut stream).await
    }

    /// The status of the answer to a request that the proxy may refuse to read to its end; 0 when it got lost.
    pub async fn raw_to_the_end(&self, request: impl AsRef<[u8]>) -> u16 {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // The proxy may close before all of it is sent.
        let _ = stream.write_all(request.as_ref()).await;
        Reply::read(&mut stream).await.status()
    }

    /// `GET` with `Connection: close`.
    pub async fn get(&self, path: &str) -> Reply {
        self.raw(format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")).await
    }
}

/// Rows by entity, from `{"services": [...], "routes": [...]}`.
pub fn tables(config: Value) -> Tables {
    let rows = |entity: &str| -> Vec<_> {
        let rows = config.get(entity).and_then(Value::as_array).cloned().unwrap_or_default();
        rows.into_iter().map(|row| row.as_object().cloned().unwrap()).collect()
    };
    Tables::read(rows).unwrap()
}

/// One route for every path to one service at an address, fields of the service added.
pub fn to(address: SocketAddr, service: Value) -> Value {
    let mut row = json!({"id": SERVICE, "protocol": "http", "host": address.ip().to_string(), "port": address.port(),
        "retries": 5, "connect_timeout": 60_000, "write_timeout": 60_000, "read_timeout": 60_000});
    row.as_object_mut().unwrap().extend(service.as_object().cloned().unwrap_or_default());
    json!({"services": [row], "routes": [{"id": ROUTE, "service": {"id": SERVICE}, "paths": ["/"],
        "protocols": ["http", "https"], "strip_path": false}]})
}

/// The same with a route that streams the bodies of requests.
pub fn unbuffered(mut config: Value) -> Value {
    config["routes"][0]["request_buffering"] = json!(false);
    config
}

/// A response as it came over the wire.
#[derive(Debug, Default)]
pub struct Reply {
    pub head: String,
    pub body: Vec<u8>,
    /// The connection was closed, not reset.
    pub clean: bool,
}

impl Reply {
    /// Reads to the end of the stream.
    pub async fn read(stream: &mut TcpStream) -> Reply {
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        let clean = tokio::time::timeout(PATIENCE, read).await.expect("the proxy neither answers nor closes").is_ok();
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").map_or(bytes.len(), |end| end + 4);
        Reply { head: String::from_utf8_lossy(&bytes[..end]).into_owned(), body: bytes[end..].to_vec(), clean }
    }

    pub fn status(&self) -> u16 {
        self.head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    /// Values of a header, joined.
    pub fn header(&self, name: &str) -> Option<String> {
        header(&self.head, name)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Values of a header of a raw head, joined by ` | `.
pub fn header(head: &str, name: &str) -> Option<String> {
    let lines = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    let values: Vec<_> = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect();
    (!values.is_empty()).then(|| values.join(" | "))
}

/// An upstream that handles each connection by a function of the stream and its number.
pub struct Upstream {
    pub address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Upstream {
    pub async fn new<F, R>(handle: F) -> Upstream
    where
        F: Fn(TcpStream, usize) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        Self::at(TcpListener::bind("127.0.0.1:0").await.unwrap(), handle)
    }

    /// The same at a given socket.
    pub fn at<F, R>(listener: TcpListener, handle: F) -> Upstream
    where
        F: Fn(TcpStream, usize) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(handle(stream, number));
            }
        });
        Upstream { address, connections }
    }

    /// Answers every request of every connection with the request's own head and body.
    pub async fn echo() -> Upstream {
        Self::new(|mut stream, _| async move {
            while let Some((head, body)) = receive(&mut stream).await {
                let echo = [head.as_bytes(), &body].concat();
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nServer: echo\r\n\r\n", echo.len());
                if stream.write_all(&[answer.as_bytes(), &echo].concat()).await.is_err() {
                    return;
                }
            }
        })
        .await
    }

    /// Answers every request with these bytes.
    pub async fn fixed(answer: &'static [u8]) -> Upstream {
        Self::new(move |mut stream, _| async move {
            while receive(&mut stream).await.is_some() {
                if stream.write_all(answer).await.is_err() {
                    return;
                }
            }
        })
        .await
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Reads one request: its head, and its body by `content-length` or chunks (decoded).
pub async fn receive(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).ok()?;
    let mut body = Vec::new();
    if let Some(length) = header(&head, "content-length").and_then(|length| length.parse().ok()) {
        body.resize(length, 0);
        stream.read_exact(&mut body).await.ok()?;
    } else if header(&head, "transfer-encoding").is_some() {
        loop {
            let size = usize::from_str_radix(line(stream).await?.trim(), 16).ok()?;
            let start = body.len();
            body.resize(start + size, 0);
            stream.read_exact(&mut body[start..]).await.ok()?;
            line(stream).await?;
            if size == 0 {
                break;
            }
        }
    }
    Some((head, body))
}

async fn line(stream: &mut TcpStream) -> Option<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(line).ok()
}

/// A client over the HTTP library, for keep-alive.
pub async fn client(address: SocketAddr) -> hyper::client::conn::http1::SendRequest<http_body_util::Full<Bytes>> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) =
        hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

//! What a proxied request costs: CPU microseconds of the proxy's threads per request, everything on the loopback.
//!
//! `cargo run --profile dist -p gwctl-proxy --example cost -- [seconds] [connections] [body bytes]`
//!
//! The upstream, the load and the proxy have a thread each, so two cores show more requests per second than one but
//! the same cost. The kernel's share is included: on the loopback the sender pays for the receiver's TCP work.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement stops at the first surprise and prints its result"
)]

use bytes::Bytes;
use gwctl_plugins::{EmptyDirectory, Node};
use gwctl_proxy::{Listener, Proxy, ProxyOptions, Snapshot, SnapshotHandle, SnapshotOptions, Tables};
use gwctl_router::Flavor;
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>().unwrap());
    let seconds = arguments.next().unwrap_or(5);
    let connections = arguments.next().unwrap_or(64);
    let size = arguments.next().unwrap_or(189);
    let upstream = start_upstream(size);
    let proxy = start_proxy(upstream);
    let load = Load::start(proxy.addresses()[0], connections);
    std::thread::sleep(Duration::from_secs(1));
    let (before, count, began) = (proxy_nanos(), load.count(), Instant::now());
    std::thread::sleep(Duration::from_secs(seconds as u64));
    let (nanos, count, elapsed) = (proxy_nanos() - before, load.count() - count, began.elapsed());
    load.stop();
    println!(
        "{count} requests of {size} bytes over {connections} connections in {elapsed:.1?}: {:.0} a second, {:.2} us of CPU each",
        count as f64 / elapsed.as_secs_f64(),
        nanos as f64 / 1000.0 / count as f64,
    );
}

/// On-CPU time of the proxy's threads, as the scheduler counts it.
fn proxy_nanos() -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap().path());
    let proxies = threads.filter(|thread| std::fs::read_to_string(thread.join("comm")).unwrap().starts_with("proxy-"));
    let nanos = |thread: std::path::PathBuf| std::fs::read_to_string(thread.join("schedstat")).unwrap();
    proxies.map(|thread| nanos(thread).split(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

fn start_proxy(upstream: SocketAddr) -> Proxy {
    let node = Arc::new(Node::new("node", "host", Arc::new(EmptyDirectory)));
    let options = SnapshotOptions {
        flavor: Flavor::TraditionalCompatible,
        hosts: Vec::new(),
        node,
        upstream_tls: Arc::default(),
    };
    let service = "00000000-0000-4000-8000-000000000001";
    let route = |number: u32, path: &str| json!({"id": format!("00000000-0000-4000-8000-00000000001{number}"), "service": {"id": service}, "paths": [path], "protocols": ["http"]});
    let config = json!({
        "services": [{"id": service, "protocol": "http", "host": upstream.ip().to_string(), "port": upstream.port(), "retries": 5}],
        "routes": [route(1, "/api/users"), route(2, "/api/orders"), route(3, "/static"), route(4, "/")],
    });
    let rows = |entity: &str| -> Vec<_> {
        let rows = config.get(entity).and_then(Value::as_array).cloned().unwrap_or_default();
        rows.into_iter().map(|row| row.as_object().cloned().unwrap()).collect()
    };
    let snapshot = Snapshot::build(&Tables::read(rows).unwrap(), &options, None).unwrap();
    let listeners =
        vec![Listener { addr: "127.0.0.1:0".parse().unwrap(), ssl: false, http2: false, proxy_protocol: false }];
    Proxy::start(ProxyOptions { listeners, workers: 1, ..Default::default() }, SnapshotHandle::new(snapshot)).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn start_upstream(size: usize) -> SocketAddr {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let address = socket.local_addr().unwrap();
    let body = Bytes::from(vec![b'x'; size]);
    std::thread::spawn(move || {
        runtime().block_on(async move {
            let listener = TcpListener::from_std(socket).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let body = body.clone();
                let answer = service_fn(move |_| {
                    let response = http::Response::new(Full::new(body.clone()));
                    async move { Ok::<_, Infallible>(response) }
                });
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
            }
        });
    });
    address
}

/// Clients that each send the next request when the last is answered.
struct Load {
    count: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Load {
    fn start(address: SocketAddr, connections: usize) -> Load {
        let (count, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, stopped) = (count.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            runtime().block_on(async move {
                let mut clients = tokio::task::JoinSet::new();
                for _ in 0..connections {
                    clients.spawn(client(address, counted.clone(), stopped.clone()));
                }
                clients.join_all().await;
            });
        });
        Load { count, stop, thread }
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

async fn client(address: SocketAddr, count: Arc<AtomicU64>, stop: Arc<AtomicBool>) {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    while !stop.load(Ordering::Relaxed) {
        sender.ready().await.unwrap();
        let request = http::Request::get("/api/orders/17").header("host", "bench.test").body(Full::<Bytes>::default());
        let mut body = sender.send_request(request.unwrap()).await.unwrap().into_body();
        while let Some(frame) = body.frame().await {
            frame.unwrap();
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
}

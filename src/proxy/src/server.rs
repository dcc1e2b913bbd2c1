//! Client connections: HTTP/1 by our own codec, HTTP/2 by the library's.

mod answer;
pub(crate) mod client;
mod desk;
mod http1;
pub(crate) mod upload;
mod usage;
mod window;

use crate::arrival::{Arrival, ArrivingBody, Origin, PROXY_PROTOCOL};
use crate::clock;
use crate::patience::Patient;
use crate::phases::serve;
use crate::proxy_header::read_proxy_header;
use crate::refused::Refusal;
use crate::secure_door::SecureDoor;
use crate::server::client::Client;
use crate::server::upload::Upload;
use crate::server::window::Watch;
use crate::transport::Transport;
use crate::worker::{Stopping, Worker};
use gwctl_http1::names::CONTENT_LENGTH;
use gwctl_plugins::Scheme;
use http::StatusCode;
use http_body::Body;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use tokio::net::TcpStream;

/// What a connection takes over from the socket it was accepted at.
#[derive(Clone)]
pub(crate) struct Entrance {
    pub(crate) port: u16,
    pub(crate) http2: bool,
    /// None: plain.
    pub(crate) tls: Option<SecureDoor>,
    /// Connections begin with a PROXY header.
    pub(crate) proxy_protocol: bool,
}

/// Start of an HTTP/2 connection.
const PREFACE: &[u8] = b"PRI";

impl Worker {
    /// Serves one connection to its end.
    pub(crate) async fn connection(
        self: Rc<Self>,
        entrance: Entrance,
        stream: TcpStream,
        peer: SocketAddr,
        stopping: Stopping,
    ) {
        let stats = self.stats.clone();
        let _open = stats.opened();
        if let Err(error) = self.converse(entrance, stream, peer, stopping).await {
            tracing::debug!(%peer, %error, "client connection ended");
        }
    }

    async fn converse(
        self: Rc<Self>,
        entrance: Entrance,
        mut stream: TcpStream,
        peer: SocketAddr,
        stopping: Stopping,
    ) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let named = if entrance.proxy_protocol { self.in_time(read_proxy_header(&mut stream)).await? } else { None };
        let trusted = self.options.trusts(peer.ip());
        let believes = trusted && self.options.real_ip_header == PROXY_PROTOCOL;
        let named = named.filter(|_| believes);
        let mut origin = Origin { peer, named, port: entrance.port, scheme: Scheme::Http, server_name: None, trusted };
        let Some(tls) = entrance.tls else {
            let http2 = entrance.http2 && self.in_time(starts_as_http2(&stream)).await?;
            let stream = Patient::new(stream, self.options.send_timeout);
            return self.speak(Transport::Plain(stream), origin, http2, stopping).await;
        };
        let plain = self.in_time(starts_as_plain_http(&stream)).await?;
        let stream = Patient::new(stream, self.options.send_timeout);
        if plain {
            let client = Rc::new(RefCell::new(Client::new(Transport::Plain(stream))));
            client.borrow_mut().give_up();
            return Box::pin(self.refuse(&client, &origin, &Refusal::plain_at_tls())).await;
        }
        let stream = Box::pin(self.in_time(tls.acceptor().accept(stream))).await?;
        let (_, session) = stream.get_ref();
        let http2 = session.alpn_protocol() == Some(b"h2");
        origin.scheme = Scheme::Https;
        origin.server_name = session.server_name().map(Into::into);
        self.speak(Transport::Tls(Box::new(stream.into())), origin, http2, stopping).await
    }

    /// What must be done within the time for the head of a request.
    pub(crate) async fn in_time<T>(&self, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let outcome = tokio::time::timeout(self.options.header_timeout, work).await;
        outcome.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    async fn speak(
        self: Rc<Self>,
        stream: Transport<Patient>,
        origin: Origin,
        http2: bool,
        stopping: Stopping,
    ) -> io::Result<()> {
        let origin = Rc::new(origin);
        // A connection holds room for the larger of both ways otherwise.
        if http2 {
            Box::pin(self.http2(stream, origin, stopping)).await
        } else {
            self.http1(stream, origin, stopping).await
        }
    }

    async fn http2(
        self: Rc<Self>,
        stream: Transport<Patient>,
        origin: Rc<Origin>,
        stopping: Stopping,
    ) -> io::Result<()> {
        let worker = self.clone();
        let asked = Rc::new(Cell::new(false));
        let heard = asked.clone();
        let watch = Watch::new(&self.options);
        let streams = watch.clone();
        let service = service_fn(move |request: http::Request<Incoming>| {
            heard.set(true);
            clock::turn();
            let stream = streams.stream();
            let (head, body) = request.into_parts();
            let is_head = head.method == http::Method::HEAD;
            let body = if body.is_end_stream() {
                ArrivingBody::None
            } else {
                let upload = Upload::new(body);
                stream.awaits(upload.clone());
                ArrivingBody::Http2(upload)
            };
            let arrival = Arrival::new(&worker.latest(), &origin, head.into(), body);
            async move {
                let mut response = serve(arrival).await;
                // The library sends whatever the body gives.
                if is_head || matches!(response.status.as_u16(), 204 | 304) {
                    response.body.leave_out();
                }
                // A client would wait for what was promised, or take the answer for a broken one.
                if response.status == StatusCode::NO_CONTENT {
                    response.headers.remove(CONTENT_LENGTH);
                }
                Ok::<_, Infallible>(response.into_http().map(|body| stream.body(body)))
            }
        });
        let mut builder = http2::Builder::new(watch.clone());
        // Twice the limit, as its measure adds to each field: what is over the limit gets the same page as over HTTP/1,
        // and only what is far over it the bare 431 of the library.
        let longest = u32::try_from(2 * self.options.max_head_size).unwrap_or(u32::MAX);
        builder
            .timer(TokioTimer::new())
            .max_header_list_size(longest)
            .keep_alive_interval(self.options.header_timeout)
            .max_concurrent_streams(128);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        // The library waits for the preface for ever.
        let silent = async {
            tokio::time::sleep(self.options.header_timeout).await;
            if asked.get() {
                std::future::pending::<()>().await;
            }
        };
        let mut untaken = pin!(watch.silent());
        tokio::select! {
            biased;
            () = silent => return Err(io::ErrorKind::TimedOut.into()),
            outcome = &mut connection => return outcome.map_err(io::Error::other),
            () = &mut untaken => return Err(io::ErrorKind::TimedOut.into()),
            () = watch.enough() => connection.as_mut().graceful_shutdown(),
            () = stopped(stopping) => connection.as_mut().graceful_shutdown(),
        }
        tokio::select! {
            biased;
            outcome = &mut connection => outcome.map_err(io::Error::other),
            () = &mut untaken => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

pub(crate) async fn stopped(mut stopping: Stopping) {
    // An error means that the sender is gone, which is a stop as well.
    let _ = stopping.wait_for(|stop| *stop).await;
}

/// Looks at the first bytes without taking them.
async fn starts_as_http2(stream: &TcpStream) -> io::Result<bool> {
    let mut start = [0; PREFACE.len()];
    let read = stream.peek(&mut start).await?;
    Ok(start[..read] == *PREFACE)
}

/// Looks at the first byte without taking it: a method, where TLS begins with 22.
async fn starts_as_plain_http(stream: &TcpStream) -> io::Result<bool> {
    let mut start = [0];
    stream.peek(&mut start).await?;
    Ok(start[0].is_ascii_uppercase())
}

/// Runs what an HTTP/2 connection to an upstream consists of on this worker's thread.
#[derive(Clone, Copy)]
pub(crate) struct Here;

impl<F: Future + 'static> Executor<F> for Here {
    fn execute(&self, stream: F) {
        tokio::task::spawn_local(async move {
            stream.await;
        });
    }
}

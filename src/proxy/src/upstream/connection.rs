//! One connection to an upstream, over hyper's client codecs.

use crate::server::Here;
use crate::upstream::outbound::Outbound;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Silence on an HTTP/2 connection after which the upstream is asked whether it is still there, and how long it may take
/// to say so.
const PING_AFTER: Duration = Duration::from_secs(30);
const PONG_LIMIT: Duration = Duration::from_secs(20);

/// A connection that carries one request at a time over HTTP/1.1, or a share of one that carries many over HTTP/2.
pub(crate) struct Connection {
    sender: Sender,
    requests: u32,
}

enum Sender {
    Http1(http1::SendRequest<Outbound>),
    Http2(http2::SendRequest<Outbound>),
}

/// Why no response came.
pub(crate) enum SendError {
    /// Nothing was written; the request comes back. The connection had been closed meanwhile.
    Unsent(Box<Request<Outbound>>),
    /// It may have been written, in part or whole.
    Sent(hyper::Error),
}

impl Connection {
    /// Connects over TCP.
    pub(crate) async fn tcp(address: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        let stream = tokio::time::timeout(timeout, TcpStream::connect(address))
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Starts HTTP/1.1 on a stream. The codec runs as a task of this worker until either side closes.
    pub(crate) async fn start<S>(stream: S) -> io::Result<Connection>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, codec) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        tokio::task::spawn_local(async move {
            if let Err(error) = codec.with_upgrades().await {
                tracing::debug!(%error, "upstream connection ended");
            }
        });
        Ok(Connection { sender: Sender::Http1(sender), requests: 0 })
    }

    /// Starts HTTP/2 on a stream, without asking first: gRPC speaks nothing else.
    pub(crate) async fn start_http2<S>(stream: S) -> io::Result<Connection>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = http2::Builder::new(Here);
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_AFTER)
            .keep_alive_timeout(PONG_LIMIT)
            .adaptive_window(true);
        let (sender, codec) = builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        tokio::task::spawn_local(async move {
            if let Err(error) = codec.await {
                tracing::debug!(%error, "upstream connection ended");
            }
        });
        Ok(Connection { sender: Sender::Http2(sender), requests: 0 })
    }

    /// Another share of the same connection; None when it carries one request at a time.
    pub(crate) fn share(&self) -> Option<Connection> {
        match &self.sender {
            Sender::Http1(_) => None,
            Sender::Http2(sender) => {
                Some(Connection { sender: Sender::Http2(sender.clone()), requests: self.requests })
            }
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        match &self.sender {
            Sender::Http1(sender) => !sender.is_closed(),
            Sender::Http2(sender) => !sender.is_closed(),
        }
    }

    /// Whether the last response has been read and the next request can be sent.
    pub(crate) fn is_ready(&self) -> bool {
        match &self.sender {
            Sender::Http1(sender) => sender.is_ready(),
            Sender::Http2(sender) => sender.is_ready(),
        }
    }

    /// Waits for that; false when the connection closed instead.
    pub(crate) async fn ready(&mut self) -> bool {
        match &mut self.sender {
            Sender::Http1(sender) => sender.ready().await.is_ok(),
            Sender::Http2(sender) => sender.ready().await.is_ok(),
        }
    }

    /// Requests sent so far.
    pub(crate) fn requests(&self) -> u32 {
        self.requests
    }

    /// Sends a request and waits for the head of the response.
    pub(crate) async fn send(&mut self, request: Request<Outbound>) -> Result<Response<Incoming>, SendError> {
        self.requests += 1;
        match &mut self.sender {
            Sender::Http1(sender) => sender.try_send_request(request).await.map_err(failed),
            Sender::Http2(sender) => sender.try_send_request(request).await.map_err(failed),
        }
    }
}

fn failed(mut error: TrySendError<Request<Outbound>>) -> SendError {
    match error.take_message() {
        Some(request) => SendError::Unsent(Box::new(request)),
        None => SendError::Sent(error.into_error()),
    }
}

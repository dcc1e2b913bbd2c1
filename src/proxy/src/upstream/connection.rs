//! One connection to an upstream, over hyper's client codec.

use crate::upstream::outbound::Outbound;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A connection that carries one request at a time.
pub(crate) struct Connection {
    sender: http1::SendRequest<Outbound>,
    requests: u32,
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
        Ok(Connection { sender, requests: 0 })
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Whether the last response has been read and the next request can be sent.
    pub(crate) fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }

    /// Waits for that; false when the connection closed instead.
    pub(crate) async fn ready(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    /// Requests sent so far.
    pub(crate) fn requests(&self) -> u32 {
        self.requests
    }

    /// Sends a request and waits for the head of the response.
    pub(crate) async fn send(&mut self, request: Request<Outbound>) -> Result<Response<Incoming>, SendError> {
        self.requests += 1;
        self.sender.try_send_request(request).await.map_err(|mut error| match error.take_message() {
            Some(request) => SendError::Unsent(Box::new(request)),
            None => SendError::Sent(error.into_error()),
        })
    }
}

//! One connection to an upstream: our own codec for HTTP/1.1, the HTTP library's for HTTP/2.

use crate::forward::Forwarded;
use crate::patience::is_due;
use crate::server::Here;
use crate::transport::Transport;
use crate::upstream::http1::Http1;
use crate::upstream::outbound::Outbound;
use crate::upstream::streams::{AT_FIRST, Place, Streams};
use crate::upstream::target::Target;
use bytes::{Bytes, BytesMut};
use gwctl_http1::{Fault, Headers};
use gwctl_plugins::Scheme;
use http::{Method, Request, StatusCode, Uri, Version};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

/// Silence on an HTTP/2 connection after which the upstream is asked whether it is still there, and how long it may take
/// to say so.
const PING_AFTER: Duration = Duration::from_secs(30);
const PONG_LIMIT: Duration = Duration::from_secs(20);

/// A connection that carries one request at a time over HTTP/1.1, or a share of one that carries many over HTTP/2. The
/// body of the response is read through it.
pub(crate) struct Connection {
    way: Way,
    requests: u32,
    /// For one deadline after the other.
    timer: Option<Pin<Box<Sleep>>>,
}

enum Way {
    Http1(Box<Http1>),
    Http2 {
        sender: http2::SendRequest<Outbound>,
        incoming: Option<Incoming>,
        streams: Rc<Streams>,
        /// None for the share that is kept for others.
        _place: Option<Place>,
    },
    /// Taken over by another protocol.
    Passed,
}

/// Head of a request.
pub(crate) struct RequestHead<'a> {
    pub(crate) method: &'a Method,
    pub(crate) target: Target<'a>,
    /// For the target of HTTP/2.
    pub(crate) scheme: Scheme,
    pub(crate) headers: Forwarded<'a>,
}

impl RequestHead<'_> {
    fn http2(&self, body: Outbound) -> Request<Outbound> {
        let (path, authority) = (self.target.whole(), self.headers.host.as_bytes());
        let target = Uri::builder().scheme(self.scheme.as_str()).authority(authority).path_and_query(path).build();
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = target.or_else(|_| Uri::try_from(self.target.whole())).unwrap_or_default();
        *request.version_mut() = Version::HTTP_2;
        *request.headers_mut() = self.headers.map();
        request
    }
}

/// Head of a response.
pub(crate) struct ResponseHead {
    pub(crate) status: StatusCode,
    pub(crate) version: Version,
    pub(crate) headers: Headers,
}

/// Why no response came, or not all of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Break {
    #[error("connection closed before the response")]
    Closed,
    #[error("the body of the request could not be read")]
    Client,
    #[error("malformed response: {0}")]
    Malformed(#[from] Fault),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Http2(#[from] hyper::Error),
}

/// Why no response came.
pub(crate) enum SendError {
    /// Nothing was written; the body comes back. The connection had been closed meanwhile.
    Unsent(Outbound),
    /// It may have been written, in part or whole.
    Sent(Break),
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

    /// Starts HTTP/1.1 on a stream.
    pub(crate) fn start(stream: Transport<TcpStream>) -> Connection {
        Connection { way: Way::Http1(Box::new(Http1::new(stream))), requests: 0, timer: None }
    }

    /// Starts HTTP/2 on a stream, without asking first: gRPC speaks nothing else. The codec runs as a task of this worker
    /// until either side closes.
    pub(crate) async fn start_http2(stream: Transport<TcpStream>) -> io::Result<Connection> {
        let mut builder = http2::Builder::new(Here);
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_AFTER)
            .keep_alive_timeout(PONG_LIMIT)
            .initial_max_send_streams(AT_FIRST)
            .adaptive_window(true);
        let (sender, codec) = builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        let codec = Rc::new(RefCell::new(Some(codec)));
        let shared = codec.clone();
        // While the codec works nobody asks for another stream.
        let allowed = move || {
            let codec = shared.try_borrow();
            codec.ok().and_then(|codec| Some(codec.as_ref()?.current_max_send_streams())).unwrap_or(0)
        };
        tokio::task::spawn_local(async move {
            let work = |task: &mut Context<'_>| match &mut *codec.borrow_mut() {
                Some(codec) => Pin::new(codec).poll(task),
                None => Poll::Ready(Ok(())),
            };
            if let Err(error) = poll_fn(work).await {
                tracing::debug!(%error, "upstream connection ended");
            }
            // Requests that wait for it are told so by its end.
            codec.take();
        });
        let streams = Rc::new(Streams::new(allowed));
        let place = Some(Place::of(&streams));
        Ok(Connection { way: Way::Http2 { sender, incoming: None, streams, _place: place }, requests: 0, timer: None })
    }

    /// Another share of the same connection for a request, if there is room for one more at once.
    pub(crate) fn share(&self) -> Option<Connection> {
        self.shared(|streams| streams.have_room().then(|| Some(Place::of(streams))))
    }

    /// A share that sends nothing and is there for others to be made of; None when it carries one request at a time.
    pub(crate) fn root(&self) -> Option<Connection> {
        self.shared(|_| Some(None))
    }

    fn shared(&self, place: impl FnOnce(&Rc<Streams>) -> Option<Option<Place>>) -> Option<Connection> {
        let Way::Http2 { sender, streams, .. } = &self.way else { return None };
        let place = place(streams)?;
        let way = Way::Http2 { sender: sender.clone(), incoming: None, streams: streams.clone(), _place: place };
        Some(Connection { way, requests: self.requests, timer: None })
    }

    /// Whether one more request would have to wait for the end of another.
    pub(crate) fn is_full(&self) -> bool {
        matches!(&self.way, Way::Http2 { streams, .. } if !streams.have_room())
    }

    /// Whether another request can be sent now.
    pub(crate) fn is_open(&mut self) -> bool {
        match &mut self.way {
            Way::Http1(connection) => connection.is_open(),
            Way::Http2 { sender, .. } => !sender.is_closed(),
            Way::Passed => false,
        }
    }

    /// Whether the last exchange has ended so that the next one can begin.
    pub(crate) fn is_reusable(&self) -> bool {
        matches!(&self.way, Way::Http1(connection) if connection.is_reusable())
    }

    /// Frees what an idle connection does not need.
    pub(crate) fn rest(&mut self) {
        if let Way::Http1(connection) = &mut self.way {
            connection.rest();
        }
    }

    /// Requests sent so far.
    pub(crate) fn requests(&self) -> u32 {
        self.requests
    }

    /// Sends a request and waits for the head of the response.
    pub(crate) async fn send(&mut self, head: &RequestHead<'_>, body: Outbound) -> Result<ResponseHead, SendError> {
        self.requests += 1;
        match &mut self.way {
            Way::Http1(connection) => {
                let head = connection.send(head, body).await?;
                let gwctl_http1::ResponseHead { status, version, headers, .. } = head;
                Ok(ResponseHead { status, version, headers })
            }
            Way::Http2 { sender, incoming, .. } => {
                let sending = sender.try_send_request(head.http2(body));
                let response = Box::pin(sending).await.map_err(failed)?;
                let (head, body) = response.into_parts();
                *incoming = Some(body);
                let headers = Headers::of_http2(&head.headers);
                Ok(ResponseHead { status: head.status, version: head.version, headers })
            }
            Way::Passed => Err(SendError::Unsent(body)),
        }
    }

    /// The same until a deadline; None when it has passed.
    pub(crate) async fn send_until(
        &mut self,
        deadline: Instant,
        head: &RequestHead<'_>,
        body: Outbound,
    ) -> Option<Result<ResponseHead, SendError>> {
        let mut timer = self.timer.take();
        let outcome = {
            let mut sending = pin!(self.send(head, body));
            let outcome = poll_fn(|task| {
                if let Poll::Ready(outcome) = sending.as_mut().poll(task) {
                    return Poll::Ready(Some(outcome));
                }
                let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
                if is_due(timer.as_mut(), deadline, task) { Poll::Ready(None) } else { Poll::Pending }
            });
            outcome.await
        };
        self.timer = timer;
        outcome
    }

    /// The next part of the response's body.
    pub(crate) fn poll_body(&mut self, task: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Break>>> {
        match &mut self.way {
            Way::Http1(connection) => connection.poll_body(task),
            Way::Http2 { incoming: Some(incoming), .. } => {
                Pin::new(incoming).poll_frame(task).map(|frame| frame.map(|frame| frame.map_err(Break::Http2)))
            }
            Way::Http2 { .. } | Way::Passed => Poll::Ready(None),
        }
    }

    /// Goes on sending the request while nobody takes the response.
    pub(crate) fn poll_send(&mut self, task: &mut Context<'_>) {
        if let Way::Http1(connection) = &mut self.way {
            // A client that breaks off its body is found by whoever reads from it.
            let _ = connection.poll_send(task);
        }
    }

    /// Whether the body of the response has been read.
    pub(crate) fn is_end(&self) -> bool {
        match &self.way {
            Way::Http1(connection) => connection.is_end(),
            Way::Http2 { incoming, .. } => incoming.as_ref().is_none_or(Body::is_end_stream),
            Way::Passed => true,
        }
    }

    /// What is known of the length of the rest of the body.
    pub(crate) fn size_hint(&self) -> SizeHint {
        match &self.way {
            Way::Http1(connection) => connection.left().map_or_else(SizeHint::default, SizeHint::with_exact),
            Way::Http2 { incoming: Some(incoming), .. } => incoming.size_hint(),
            Way::Http2 { .. } | Way::Passed => SizeHint::with_exact(0),
        }
    }

    /// The stream and what was read of it, after a switch to another protocol. Only HTTP/1.1 knows that.
    pub(crate) fn pass(&mut self) -> Option<(Transport<TcpStream>, BytesMut)> {
        match std::mem::replace(&mut self.way, Way::Passed) {
            Way::Http1(connection) => Some(connection.into_stream()),
            _ => None,
        }
    }
}

fn failed(mut error: TrySendError<Request<Outbound>>) -> SendError {
    match error.take_message() {
        Some(request) => SendError::Unsent(request.into_body()),
        None => SendError::Sent(Break::Http2(error.into_error())),
    }
}

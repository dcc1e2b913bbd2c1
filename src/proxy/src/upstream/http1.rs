//! HTTP/1.1 towards an upstream, on a connection that belongs to one request at a time.
//!
//! Nothing runs beside the request: its own task writes the head with the first part of the body, goes on sending the
//! rest while it waits for the response and while it reads it, and hands the connection back at the end.

use crate::transport::{Outbox, SPARE, Transport, give_back, spare_buffer};
use crate::upstream::connection::{Break, RequestHead, SendError};
use crate::upstream::outbound::Outbound;
use bytes::{Bytes, BytesMut};
use gwctl_http1::{
    Decoder, Fault, Framing, Limits, Piece, ResponseHead, read_response, write_chunk_size, write_last_chunk,
    write_request_with,
};
use http::{HeaderMap, Method, StatusCode};
use http_body::{Body, Frame};
use std::future::poll_fn;
use std::io::ErrorKind;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::net::TcpStream;

/// What the head of a response may be.
const LIMITS: Limits = Limits { size: 128 * 1024, fields: 512 };
/// Informational responses before the one that counts.
const MOST_INTERIM: u32 = 16;
/// Room for the head of a response and a small body.
const FIRST_READ: usize = SPARE;
/// Room for the head of a request.
const FIRST_WRITE: usize = 1024;
/// Least and most that is read at once of a body that is not small.
const LEAST_READ: usize = 16 * 1024;
const MOST_READ: usize = 128 * 1024;
/// No more of the request's body is taken while so much of it waits to be written.
const MOST_WAITING: usize = 64 * 1024;

/// See the module.
pub(crate) struct Http1 {
    stream: Transport<TcpStream>,
    input: BytesMut,
    /// How much is read next.
    read_size: usize,
    sending: Sending,
    decoder: Decoder,
    /// The peer said that it takes another request.
    keeps_alive: bool,
    /// What the body ended with.
    failed: Option<Break>,
}

/// The request on its way out.
struct Sending {
    output: Outbox,
    body: Outbound,
    chunked: bool,
    /// The body has been taken to its end.
    ended: bool,
    /// All has been written and flushed.
    done: bool,
    /// Bytes of this request have left.
    begun: bool,
    /// The part of the body that was taken before any byte left.
    offered: Option<Bytes>,
    /// The upstream takes no more. It may have answered all the same.
    broken: Option<Break>,
}

impl Http1 {
    pub(crate) fn new(stream: Transport<TcpStream>) -> Http1 {
        Http1 {
            stream,
            input: BytesMut::new(),
            read_size: FIRST_READ,
            sending: Sending {
                output: Outbox::default(),
                body: Outbound::Empty,
                chunked: false,
                ended: true,
                done: true,
                begun: false,
                offered: None,
                broken: None,
            },
            decoder: Decoder::done(),
            keeps_alive: true,
            failed: None,
        }
    }

    /// Between two requests: the peer has not closed.
    pub(crate) fn is_open(&mut self) -> bool {
        self.is_reusable() && self.stream.is_quiet()
    }

    /// Both messages have ended where they should, so that another request can follow.
    pub(crate) fn is_reusable(&self) -> bool {
        self.keeps_alive && self.sending.done && self.decoder.is_done() && self.input.is_empty()
    }

    /// The stream and what was read of it, once both sides have switched to another protocol.
    pub(crate) fn into_stream(self) -> (Transport<TcpStream>, BytesMut) {
        (self.stream, self.input)
    }

    /// Sends a request and waits for the head of the response. The rest of the body is sent while the response is read.
    pub(crate) async fn send(&mut self, head: &RequestHead<'_>, body: Outbound) -> Result<ResponseHead, SendError> {
        self.keeps_alive = false;
        self.sending.begin(head, body);
        let (mut seen, mut interim) = (0, 0);
        let outcome = poll_fn(|task| self.poll_head(task, head.method, &mut seen, &mut interim)).await;
        match outcome {
            Ok(response) => {
                self.decoder = Decoder::new(response.framing);
                self.keeps_alive = response.keep_alive;
                Ok(response)
            }
            Err(error) if !self.sending.begun && self.sending.broken.is_some() => {
                tracing::debug!(%error, "kept connection was closed");
                Err(SendError::Unsent(self.sending.take_back()))
            }
            Err(error) => Err(SendError::Sent(error)),
        }
    }

    fn poll_head(
        &mut self,
        task: &mut Context<'_>,
        method: &Method,
        seen: &mut usize,
        interim: &mut u32,
    ) -> Poll<Result<ResponseHead, Break>> {
        self.poll_send(task)?;
        if !self.sending.begun && self.sending.broken.is_some() {
            return Poll::Ready(Err(Break::Closed));
        }
        loop {
            while !self.input.is_empty() {
                let Some(head) = read_response(&mut self.input, seen, &LIMITS, method)? else { break };
                if !head.status.is_informational() || head.status == StatusCode::SWITCHING_PROTOCOLS {
                    return Poll::Ready(Ok(head));
                }
                *interim += 1;
                if *interim > MOST_INTERIM {
                    return Poll::Ready(Err(Fault::FirstLine.into()));
                }
            }
            // Nobody holds a buffer while the upstream thinks. TLS may hold bytes that the network will not tell of.
            if self.input.capacity() == 0 {
                if let Transport::Plain(stream) = &self.stream {
                    ready!(stream.poll_read_ready(task))?;
                }
                self.input = spare_buffer();
            }
            self.input.reserve(FIRST_READ);
            if ready!(self.stream.poll_fill(task, &mut self.input))? == 0 {
                let closed = || Break::Closed;
                return Poll::Ready(Err(self.sending.broken.take().unwrap_or_else(closed)));
            }
        }
    }

    /// The next part of the response. Goes on sending the request, too.
    pub(crate) fn poll_body(&mut self, task: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Break>>> {
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Some(Err(error)));
        }
        let sent = self.poll_send(task);
        loop {
            match self.decoder.decode(&mut self.input) {
                Ok(Some(Piece::Data(data))) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Ok(Some(Piece::Trailers(trailers))) => return Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
                Ok(None) if self.decoder.is_done() => return Poll::Ready(None),
                Ok(None) => {}
                Err(fault) => return self.fail(task, fault.into()),
            }
            let read = match (self.poll_more(task), sent.is_err()) {
                (Poll::Ready(read), _) => read,
                (Poll::Pending, false) => return Poll::Pending,
                // The client broke off its body: the upstream may wait for the rest for ever, and nobody watches the client.
                (Poll::Pending, true) => return self.fail(task, Break::Client),
            };
            // Many upstreams of TLS close without saying so: the end of what has no length, as for nginx.
            let unsaid = read.as_ref().is_err_and(|error| error.kind() == ErrorKind::UnexpectedEof);
            match if unsaid { Ok(0) } else { read } {
                Ok(0) => {
                    if let Err(fault) = self.decoder.close() {
                        return self.fail(task, fault.into());
                    }
                }
                Ok(_) => {}
                Err(error) => return self.fail(task, error.into()),
            }
        }
    }

    /// The error comes at the next turn: until then the client is sent what came before it.
    fn fail<T>(&mut self, task: &Context<'_>, error: Break) -> Poll<T> {
        self.keeps_alive = false;
        self.failed = Some(error);
        task.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads a part of the body. The buffer grows while reads fill it, up to what is still to come.
    fn poll_more(&mut self, task: &mut Context<'_>) -> Poll<Result<usize, std::io::Error>> {
        self.read_size = self.read_size.max(LEAST_READ);
        let room = match self.decoder.left() {
            Some(left) => usize::try_from(left).unwrap_or(MOST_READ).min(MOST_READ),
            None => self.read_size,
        };
        self.input.reserve(room);
        let room = self.input.capacity() - self.input.len();
        let read = ready!(self.stream.poll_fill(task, &mut self.input))?;
        if read == room {
            self.read_size = (self.read_size * 2).min(MOST_READ);
        }
        Poll::Ready(Ok(read))
    }

    /// Whether the response has been read to its end.
    pub(crate) fn is_end(&self) -> bool {
        self.decoder.is_done() && self.failed.is_none()
    }

    /// Bytes of the response to come, where that is known.
    pub(crate) fn left(&self) -> Option<u64> {
        self.decoder.left()
    }

    /// Makes it small before it waits for the next request.
    pub(crate) fn rest(&mut self) {
        give_back(std::mem::take(&mut self.input));
        self.read_size = FIRST_READ;
        self.sending.body = Outbound::Empty;
    }

    /// Sends what can be sent. Fails when the client's body does; what the upstream does not take is noted.
    pub(crate) fn poll_send(&mut self, task: &mut Context<'_>) -> Result<(), Break> {
        let sending = &mut self.sending;
        while !sending.done && sending.broken.is_none() {
            let waits = sending.fill(task)?;
            let (begun, offered) = (&mut sending.begun, &mut sending.offered);
            let written = sending.output.poll_write(task, &mut self.stream, |_| {
                *begun = true;
                *offered = None;
            });
            match written {
                Poll::Pending => break,
                Poll::Ready(Err(error)) => sending.broken = Some(error.into()),
                Poll::Ready(Ok(())) if sending.ended => {
                    sending.done = true;
                    sending.output.rest();
                }
                Poll::Ready(Ok(())) if waits => break,
                Poll::Ready(Ok(())) => {}
            }
        }
        Ok(())
    }
}

impl Sending {
    fn begin(&mut self, head: &RequestHead<'_>, body: Outbound) {
        let framing = match body.size_hint().exact() {
            _ if body.is_end_stream() => Framing::None,
            Some(length) => Framing::Length(length),
            None => Framing::Chunked,
        };
        self.output = Outbox::reused();
        self.output.write(|out| {
            out.reserve(FIRST_WRITE);
            let sent = &head.headers.context.request.headers;
            write_request_with(out, head.method, head.target.parts(), sent, framing, |fields| {
                head.headers.give(fields)
            });
        });
        self.chunked = framing == Framing::Chunked;
        self.ended = framing == Framing::None;
        (self.done, self.begun, self.offered, self.broken) = (false, false, None, None);
        self.body = body;
    }

    /// Takes parts of the body; true when the client has to send more first. One part only before anything has been
    /// written, so that it can be given back.
    fn fill(&mut self, task: &mut Context<'_>) -> Result<bool, Break> {
        while !self.ended && self.output.len() < MOST_WAITING && self.offered.is_none() {
            match Pin::new(&mut self.body).poll_frame(task) {
                Poll::Pending => return Ok(true),
                Poll::Ready(None) => self.end(None),
                Poll::Ready(Some(Err(_))) => return Err(Break::Client),
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) if data.is_empty() => {}
                    Ok(data) => self.take(data),
                    Err(frame) => self.end(frame.into_trailers().ok()),
                },
            }
        }
        Ok(false)
    }

    fn take(&mut self, data: Bytes) {
        if !self.begun {
            self.offered = Some(data.clone());
        }
        if !self.chunked {
            self.output.push(data);
            self.ended = self.body.is_end_stream();
            return;
        }
        self.output.write(|out| write_chunk_size(out, data.len()));
        self.output.push(data);
        self.output.write(|out| out.extend_from_slice(b"\r\n"));
    }

    fn end(&mut self, trailers: Option<HeaderMap>) {
        if self.chunked {
            self.output.write(|out| write_last_chunk(out, trailers.as_ref()));
        }
        self.ended = true;
    }

    /// The body as it was before anything was taken.
    fn take_back(&mut self) -> Outbound {
        let mut body = std::mem::replace(&mut self.body, Outbound::Empty);
        if let Some(part) = self.offered.take() {
            body.put_back(part);
        }
        body
    }
}

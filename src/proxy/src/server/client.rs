//! The client's side of a connection over HTTP/1: what is read from it.
//!
//! The connection's task and the body of the request in flight share it; both run on the same thread.

use crate::patience::Patient;
use crate::refused::Refusal;
use crate::transport::{SPARE, Transport, give_back, spare_buffer};
use bytes::{Bytes, BytesMut};
use gwctl_http1::{Decoder, Limits, Piece, RequestHead, read_request};
use gwctl_plugins::BodyError;
use http::HeaderMap;
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// Room for the head of a request.
const FIRST_READ: usize = SPARE;
/// Least and most that is read at once of a body.
const LEAST_READ: usize = 8 * 1024;
const MOST_READ: usize = 128 * 1024;
/// Most that is read ahead of the request in flight, to learn whether the client is still there.
const MOST_AHEAD: usize = 64 * 1024;
/// What a client that waits for it is told before its body is read.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A client shared between its connection and the body of its request.
pub(crate) type Shared = Rc<RefCell<Client>>;

/// See the module.
pub(crate) struct Client {
    stream: Transport<Patient>,
    input: BytesMut,
    decoder: Decoder,
    trailers: Option<HeaderMap>,
    /// How much is read next of a body without a length.
    read_size: usize,
    /// The client waits for [`CONTINUE`].
    waits: bool,
    /// What is left of it to write.
    interim: &'static [u8],
    broken: bool,
}

/// Why there is no next request.
#[derive(Debug)]
pub(crate) enum NoRequest {
    /// The client closed, or did nothing wrong by not going on.
    Closed,
    /// The head did not come in time.
    TimedOut,
    Refused(Refusal),
}

impl Client {
    pub(crate) fn new(stream: Transport<Patient>) -> Client {
        Client {
            stream,
            input: BytesMut::new(),
            decoder: Decoder::done(),
            trailers: None,
            read_size: LEAST_READ,
            waits: false,
            interim: b"",
            broken: false,
        }
    }

    /// Nothing of the next request has come.
    pub(crate) fn is_idle(&self) -> bool {
        self.input.is_empty()
    }

    /// Reads the head of the next request. No buffer is held until something has come.
    pub(crate) fn poll_head(
        &mut self,
        task: &mut Context<'_>,
        seen: &mut usize,
        limits: &Limits,
    ) -> Poll<Result<RequestHead, NoRequest>> {
        loop {
            if self.input.len() > *seen {
                match read_request(&mut self.input, seen, limits) {
                    Ok(Some(head)) => {
                        self.decoder = Decoder::new(head.framing);
                        self.waits = head.expects_continue && !self.decoder.is_done();
                        return Poll::Ready(Ok(head));
                    }
                    Ok(None) => {}
                    Err(fault) => {
                        // Where it ends is not known: the rest is awaited before the connection closes.
                        self.broken = true;
                        return Poll::Ready(Err(NoRequest::Refused(fault.into())));
                    }
                }
            }
            let closed = |_| NoRequest::Closed;
            // TLS may hold bytes that the network will not tell of.
            if self.input.is_empty() && matches!(self.stream, Transport::Plain(_)) {
                ready!(self.stream.poll_readable(task)).map_err(closed)?;
            }
            if self.input.capacity() == 0 {
                self.input = spare_buffer();
            }
            self.input.reserve(FIRST_READ);
            match self.stream.poll_fill(task, &mut self.input) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(NoRequest::Closed)),
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => {
                    self.let_go();
                    return Poll::Pending;
                }
            }
        }
    }

    /// The next part of the body; tells a client that waits to go on.
    pub(crate) fn poll_part(&mut self, task: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        self.ask_for_body(task);
        loop {
            match self.decoder.decode(&mut self.input) {
                Ok(Some(Piece::Data(data))) => return Poll::Ready(Some(Ok(data))),
                Ok(Some(Piece::Trailers(trailers))) => self.trailers = Some(trailers),
                Ok(None) if self.decoder.is_done() => return Poll::Ready(None),
                Ok(None) => {
                    if let Err(error) = ready!(self.poll_more(task)) {
                        return self.fail(error.to_string());
                    }
                }
                Err(fault) => return self.fail(fault.to_string()),
            }
        }
    }

    fn fail<T>(&mut self, reason: String) -> Poll<Option<Result<T, BodyError>>> {
        self.broken = true;
        Poll::Ready(Some(Err(BodyError::PeerBroke(reason))))
    }

    fn poll_more(&mut self, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let room = match self.decoder.left() {
            Some(left) => usize::try_from(left).unwrap_or(MOST_READ).min(MOST_READ),
            None => self.read_size,
        };
        self.input.reserve(room);
        let room = self.input.capacity() - self.input.len();
        let read = ready!(self.stream.poll_fill(task, &mut self.input))?;
        if read == 0 {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed before the end of the body")));
        }
        if read == room {
            self.read_size = (self.read_size * 2).min(MOST_READ);
        }
        Poll::Ready(Ok(()))
    }

    /// A client that has begun with its body does not wait any more.
    fn ask_for_body(&mut self, task: &mut Context<'_>) {
        if std::mem::take(&mut self.waits) && self.input.is_empty() {
            self.interim = CONTINUE;
        }
        if !self.interim.is_empty() {
            // A failure shows at the next read.
            if let Poll::Ready(Ok(count)) = Pin::new(&mut self.stream).poll_write(task, self.interim) {
                self.interim = &self.interim[count..];
            }
            if let Transport::Tls(stream) = &mut self.stream {
                let _ = Pin::new(stream).poll_flush(task);
            }
        }
    }

    /// What of the interim answer has not been written: it comes before the answer.
    pub(crate) fn take_interim(&mut self) -> &'static [u8] {
        std::mem::take(&mut self.interim)
    }

    /// Trailers of the body, once it has been read.
    pub(crate) fn take_trailers(&mut self) -> Option<HeaderMap> {
        self.trailers.take()
    }

    /// Bytes of the body to come, where that is known.
    pub(crate) fn left(&self) -> Option<u64> {
        self.decoder.left()
    }

    /// The request has been read to its end.
    pub(crate) fn is_read(&self) -> bool {
        self.decoder.is_done() && !self.broken
    }

    /// The body has been promised only, and the client was not told to send it.
    pub(crate) fn withholds(&self) -> bool {
        self.waits
    }

    /// Nothing that comes will be understood.
    pub(crate) fn give_up(&mut self) {
        self.broken = true;
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Something came that has not been taken, or is still to come.
    pub(crate) fn has_more(&self) -> bool {
        !self.input.is_empty() || !self.decoder.is_done() || self.broken
    }

    /// Whether the client has gone while it is being answered. What it sends meanwhile is kept.
    pub(crate) fn poll_gone(&mut self, task: &mut Context<'_>) -> Poll<()> {
        while self.decoder.is_done() && self.input.len() < MOST_AHEAD {
            if ready!(self.stream.poll_readable(task)).is_err() {
                return Poll::Ready(());
            }
            self.input.reserve(FIRST_READ);
            if matches!(ready!(self.stream.poll_fill(task, &mut self.input)), Ok(0) | Err(_)) {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    /// Reads and forgets whatever comes; gives how much.
    pub(crate) fn poll_discard(&mut self, task: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.input.clear();
        self.input.reserve(LEAST_READ);
        self.stream.poll_fill(task, &mut self.input)
    }

    /// Gives the buffer back before the connection waits for its next request.
    pub(crate) fn rest(&mut self) {
        self.let_go();
        self.trailers = None;
        self.read_size = LEAST_READ;
    }

    /// Keeps no buffer for nothing.
    fn let_go(&mut self) {
        if self.input.is_empty() {
            give_back(std::mem::take(&mut self.input));
        }
    }

    pub(crate) fn stream(&mut self) -> &mut Transport<Patient> {
        &mut self.stream
    }

    /// The stream and what was read ahead.
    pub(crate) fn into_stream(self) -> (Transport<Patient>, BytesMut) {
        (self.stream, self.input)
    }
}

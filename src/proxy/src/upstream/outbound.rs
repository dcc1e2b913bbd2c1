//! The request body on its way from the client to the upstream.

use bytes::Bytes;
use gwctl_plugins::{BodyError, BodyStream};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use tokio::time::Instant;

/// What is known of a body while it is being sent; shared with whoever waits for the response.
pub(crate) struct Progress {
    /// When a part last moved.
    pub(crate) last: Cell<Instant>,
    /// The upstream has asked for more and the client has not sent it yet.
    pub(crate) waits_for_client: Cell<bool>,
    /// The codec has asked for a part, so the body cannot be sent again.
    pub(crate) touched: Cell<bool>,
    /// The end has been handed over.
    pub(crate) done: Cell<bool>,
    /// Why the client's body broke off.
    pub(crate) failure: RefCell<Option<BodyError>>,
}

impl Progress {
    fn new() -> Rc<Progress> {
        Rc::new(Progress {
            last: Cell::new(Instant::now()),
            waits_for_client: Cell::new(false),
            touched: Cell::new(false),
            done: Cell::new(false),
            failure: RefCell::new(None),
        })
    }
}

/// Body of a request to an upstream.
pub(crate) enum Outbound {
    Empty,
    Whole(Option<Bytes>),
    Stream {
        stream: Box<dyn BodyStream>,
        progress: Rc<Progress>,
        /// Bytes to come, when the client declared the length.
        left: Option<u64>,
        /// A part that was taken and has not been sent.
        returned: Option<Bytes>,
    },
}

impl Outbound {
    /// A streamed body and what will be known of it.
    pub(crate) fn stream(stream: Box<dyn BodyStream>) -> (Outbound, Rc<Progress>) {
        let progress = Progress::new();
        let left = stream.declared_length();
        (Outbound::Stream { stream, progress: progress.clone(), left, returned: None }, progress)
    }

    /// Takes back the one part that was taken and has not been sent: the body is as it was.
    pub(crate) fn put_back(&mut self, part: Bytes) {
        match self {
            Self::Empty => {}
            Self::Whole(bytes) => *bytes = Some(part),
            Self::Stream { progress, left, returned, .. } => {
                *left = left.map(|left| left + part.len() as u64);
                *returned = Some(part);
                progress.touched.set(false);
                progress.done.set(false);
            }
        }
    }
}

impl Body for Outbound {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Empty => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream { stream, progress, left, returned } => {
                progress.touched.set(true);
                let part = match returned.take() {
                    Some(part) => Poll::Ready(Some(Ok(part))),
                    None => stream.poll_part(task.waker()),
                };
                progress.waits_for_client.set(part.is_pending());
                if part.is_ready() {
                    progress.last.set(Instant::now());
                }
                match &part {
                    Poll::Ready(None) => progress.done.set(true),
                    Poll::Ready(Some(Ok(part))) => {
                        *left = left.map(|left| left.saturating_sub(part.len() as u64));
                        progress.done.set(*left == Some(0));
                    }
                    Poll::Ready(Some(Err(error))) => *progress.failure.borrow_mut() = Some(error.clone()),
                    Poll::Pending => {}
                }
                part.map(|part| part.map(|part| part.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty | Self::Whole(None) => true,
            Self::Whole(Some(_)) => false,
            Self::Stream { left, .. } => *left == Some(0),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let length = match self {
            Self::Empty | Self::Whole(None) => Some(0),
            Self::Whole(Some(bytes)) => Some(bytes.len() as u64),
            Self::Stream { left, .. } => *left,
        };
        length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// A body as it comes from the client, over hyper's server codec.
pub(crate) struct Inbound {
    body: Incoming,
    declared: Option<u64>,
    read: Rc<Cell<u64>>,
    limit: u64,
}

impl Inbound {
    /// `limit` in bytes, 0 for none; bytes read are counted in `read`.
    pub(crate) fn new(body: Incoming, limit: u64, read: Rc<Cell<u64>>) -> Inbound {
        let declared = body.size_hint().exact();
        Inbound { body, declared, read, limit }
    }
}

impl BodyStream for Inbound {
    fn poll_part(&mut self, waker: &Waker) -> Poll<Option<Result<Bytes, BodyError>>> {
        loop {
            let frame = match Pin::new(&mut self.body).poll_frame(&mut Context::from_waker(waker)) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Some(Err(BodyError::PeerBroke(error.to_string()))));
                }
                Poll::Ready(Some(Ok(frame))) => frame,
            };
            // Trailers of a request are not passed on, as nginx does not.
            let Ok(part) = frame.into_data() else { continue };
            self.read.set(self.read.get() + part.len() as u64);
            if self.limit != 0 && self.read.get() > self.limit {
                return Poll::Ready(Some(Err(BodyError::InputTooLong(self.limit))));
            }
            return Poll::Ready(Some(Ok(part)));
        }
    }

    fn declared_length(&self) -> Option<u64> {
        self.declared
    }
}

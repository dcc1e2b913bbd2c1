//! The request body on its way from the client to the upstream.

use crate::arrival::ArrivingBody;
use bytes::Bytes;
use gwctl_plugins::{BodyError, BodyStream};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
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
                match ready!(part) {
                    Some(part) => Poll::Ready(Some(part.map(Frame::data))),
                    None => Poll::Ready(stream.take_trailers().map(|trailers| Ok(Frame::trailers(trailers)))),
                }
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

/// A body as it comes from the client.
pub(crate) struct Inbound {
    body: ArrivingBody,
    declared: Option<u64>,
    trailers: Option<HeaderMap>,
    read: Rc<Cell<u64>>,
    limit: u64,
}

impl Inbound {
    /// `limit` in bytes, 0 for none; bytes read are counted in `read`.
    pub(crate) fn new(body: ArrivingBody, limit: u64, read: Rc<Cell<u64>>) -> Inbound {
        let declared = body.length();
        Inbound { body, declared, trailers: None, read, limit }
    }

    fn poll_body(&mut self, task: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let upload = match &self.body {
            ArrivingBody::None => return Poll::Ready(None),
            ArrivingBody::Http1(client, _) => return client.borrow_mut().poll_part(task),
            ArrivingBody::Http2(upload) => upload,
        };
        loop {
            let frame = match ready!(upload.poll_frame(task)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(BodyError::PeerBroke(error.to_string())))),
                Some(Ok(frame)) => frame,
            };
            match frame.into_data() {
                Ok(part) => return Poll::Ready(Some(Ok(part))),
                Err(frame) => self.trailers = frame.into_trailers().ok(),
            }
        }
    }
}

impl BodyStream for Inbound {
    fn poll_part(&mut self, waker: &Waker) -> Poll<Option<Result<Bytes, BodyError>>> {
        let part = match ready!(self.poll_body(&mut Context::from_waker(waker))) {
            Some(Ok(part)) => part,
            end => return Poll::Ready(end),
        };
        self.read.set(self.read.get() + part.len() as u64);
        if self.limit != 0 && self.read.get() > self.limit {
            return Poll::Ready(Some(Err(BodyError::InputTooLong(self.limit))));
        }
        Poll::Ready(Some(Ok(part)))
    }

    fn declared_length(&self) -> Option<u64> {
        self.declared
    }

    fn take_trailers(&mut self) -> Option<HeaderMap> {
        match &self.body {
            ArrivingBody::Http1(client, _) => client.borrow_mut().take_trailers(),
            _ => self.trailers.take(),
        }
    }
}

//! Clients of HTTP/2 that do not take what they asked for.
//!
//! HTTP/2 has a window for each stream, which the client opens: one that keeps it closed would hold its stream, and the
//! upstream connection behind it, for ever. The rule is that of HTTP/1 and of nginx's `send_timeout`: what counts is the
//! pause. A stream of which bytes are ready and none has been taken for the client's time-out is reset; taking a single
//! byte in that time is enough to stay. A connection that takes none of what waits for it, whatever the stream, is
//! closed.

use crate::body::{BodyFault, Downstream};
use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use hyper::rt::Executor;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// The end of a body goes to the library by itself when there is more than that: with it the library lets go of the
/// request, which is then not watched any more.
const LAST_PART: usize = 16 * 1024;

/// Bytes that were handed to the library and that the client has not taken.
struct Waiting {
    bytes: Cell<usize>,
    /// When the first of them came, or some of them last left.
    moved: Cell<Instant>,
}

impl Waiting {
    fn new() -> Waiting {
        Waiting { bytes: Cell::new(0), moved: Cell::new(Instant::now()) }
    }

    fn add(&self, count: usize, now: Instant) {
        if self.bytes.get() == 0 {
            self.moved.set(now);
        }
        self.bytes.set(self.bytes.get() + count);
    }

    fn remove(&self, count: usize) {
        self.bytes.set(self.bytes.get().saturating_sub(count));
    }

    /// When the patience with the client ends; None: nothing waits.
    fn due(&self, limit: Duration) -> Option<Instant> {
        (self.bytes.get() > 0).then(|| self.moved.get() + limit)
    }
}

/// What waits of one stream, and of all of its connection.
struct Flow {
    stream: Waiting,
    connection: Rc<Waiting>,
}

impl Flow {
    fn offer(self: &Rc<Self>, bytes: Bytes) -> Offered {
        let now = Instant::now();
        self.stream.add(bytes.len(), now);
        self.connection.add(bytes.len(), now);
        Offered { bytes, flow: self.clone() }
    }

    fn taken(&self, count: usize) {
        let now = Instant::now();
        for waiting in [&self.stream, &*self.connection] {
            waiting.remove(count);
            waiting.moved.set(now);
        }
    }
}

/// Part of a body on its way to the client.
pub(super) struct Offered {
    bytes: Bytes,
    flow: Rc<Flow>,
}

impl Buf for Offered {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.flow.taken(count);
    }
}

impl Drop for Offered {
    fn drop(&mut self) {
        self.flow.stream.remove(self.bytes.len());
        self.flow.connection.remove(self.bytes.len());
    }
}

/// A body whose parts are watched.
pub(super) struct Watched {
    body: Downstream,
    last: Bytes,
    flow: Rc<Flow>,
}

impl Body for Watched {
    type Data = Offered;
    type Error = BodyFault;

    fn poll_frame(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Result<Frame<Offered>, BodyFault>>> {
        let Watched { body, last, flow } = self.get_mut();
        if !last.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(flow.offer(std::mem::take(last))))));
        }
        let frame = ready!(Pin::new(&mut *body).poll_frame(task));
        let offer = |mut part: Bytes| {
            if part.len() > LAST_PART && body.is_end_stream() {
                *last = part.split_off(part.len() - LAST_PART);
            }
            flow.offer(part)
        };
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(offer))))
    }

    fn is_end_stream(&self) -> bool {
        self.last.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Runs what one connection consists of on this worker's thread, and ends the streams that are not taken.
#[derive(Clone)]
pub(super) struct Watch {
    limit: Duration,
    waiting: Rc<Waiting>,
    /// Of the stream whose service was called last: the library runs it next.
    newest: Rc<RefCell<Option<Rc<Flow>>>>,
}

/// The way of one stream to its [`Watch`].
pub(super) struct Stream(Rc<Flow>);

impl Stream {
    pub(super) fn body(self, body: Downstream) -> Watched {
        Watched { body, last: Bytes::new(), flow: self.0 }
    }
}

impl Watch {
    pub(super) fn new(limit: Duration) -> Watch {
        Watch { limit, waiting: Rc::new(Waiting::new()), newest: Rc::default() }
    }

    /// Begins with a stream that the library runs next.
    pub(super) fn stream(&self) -> Stream {
        let flow = Rc::new(Flow { stream: Waiting::new(), connection: self.waiting.clone() });
        self.newest.replace(Some(flow.clone()));
        Stream(flow)
    }

    /// Ends when the client takes nothing of what waits on the whole connection.
    pub(super) async fn silent(&self) {
        loop {
            let due = self.waiting.due(self.limit);
            if due.is_some_and(|due| due <= Instant::now()) {
                return;
            }
            sleep_until(due.unwrap_or_else(|| Instant::now() + self.limit)).await;
        }
    }
}

impl<F: Future + 'static> Executor<F> for Watch {
    fn execute(&self, stream: F) {
        match self.newest.take() {
            Some(flow) => _ = tokio::task::spawn_local(guard(stream, flow, self.limit)),
            None => {
                tokio::task::spawn_local(async move {
                    stream.await;
                });
            }
        }
    }
}

/// Runs a stream until it ends or the client has not taken anything of it for too long. The library resets a stream
/// whose future is dropped.
async fn guard<F: Future>(stream: F, flow: Rc<Flow>, limit: Duration) {
    let mut stream = pin!(stream);
    let mut timer: Option<Pin<Box<Sleep>>> = None;
    let ended = poll_fn(|task| {
        if stream.as_mut().poll(task).is_ready() {
            return Poll::Ready(());
        }
        loop {
            let Some(due) = flow.stream.due(limit) else { return Poll::Pending };
            let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
            ready!(timer.as_mut().poll(task));
            if due <= Instant::now() {
                tracing::debug!(waiting = flow.stream.bytes.get(), "stream reset: its client takes nothing");
                return Poll::Ready(());
            }
            // It went on meanwhile.
            timer.as_mut().reset(due);
        }
    });
    ended.await;
}

//! Clients of HTTP/2 that do not take what they asked for.
//!
//! HTTP/2 has a window for each stream, which the client opens: one that keeps it closed would hold its stream, and the
//! upstream connection behind it, for ever. The rule is that of HTTP/1 and of nginx's `send_timeout`: what counts is the
//! pause. A stream of which bytes are ready and none has been taken for the client's time-out is reset; taking a single
//! byte in that time is enough to stay. A connection that takes none of what waits for it, whatever the stream, is
//! closed somewhat later.
//!
//! While a client does not take what is ready, more of the response is read ahead, as over HTTP/1.

use crate::body::{BodyFault, Downstream, READ_AHEAD};
use crate::clock;
use crate::options::ProxyOptions;
use crate::server::upload::Upload;
use crate::server::usage::Usage;
use crate::transport::apart;
use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use hyper::rt::Executor;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// The end of a body goes to the library by itself when there is more than that: with it the library lets go of the
/// request, which is then not watched any more.
const LAST_PART: usize = 16 * 1024;
/// Most that is read ahead for all streams of a connection together.
const CONNECTION_READ_AHEAD: usize = 4 * READ_AHEAD;

/// Bytes that were handed to the library and that the client has not taken.
struct Waiting {
    bytes: Cell<usize>,
    /// When the first of them came, or some of them last left.
    moved: Cell<Instant>,
    /// Memory of what was read ahead and not handed over.
    ahead: Cell<usize>,
}

impl Waiting {
    fn new() -> Waiting {
        Waiting { bytes: Cell::new(0), moved: Cell::new(Instant::now()), ahead: Cell::new(0) }
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
    /// Until the library lets go of it.
    response: RefCell<Option<Response>>,
    /// What the client sends, until it has been answered.
    upload: Cell<Option<Upload>>,
}

/// A body, and what of it was read ahead.
struct Response {
    body: Downstream,
    ahead: VecDeque<Result<Frame<Bytes>, BodyFault>>,
    /// Nothing more comes of the body.
    ended: bool,
    last: Bytes,
}

impl Response {
    fn poll(&mut self, task: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(task));
        self.ended = !matches!(frame, Some(Ok(_)));
        Poll::Ready(frame)
    }

    fn is_end(&self) -> bool {
        self.last.is_empty() && self.ahead.is_empty() && (self.ended || self.body.is_end_stream())
    }
}

impl Flow {
    /// Reads on while the client takes nothing.
    fn read_ahead(&self, task: &mut Context<'_>) {
        let mut response = self.response.borrow_mut();
        let Some(response) = response.as_mut().filter(|response| response.body.reads_ahead()) else { return };
        let (own, all) = (&self.stream.ahead, &self.connection.ahead);
        while own.get() < READ_AHEAD && all.get() < CONNECTION_READ_AHEAD {
            let Poll::Ready(Some(frame)) = response.poll(task) else { return };
            let frame = frame.map(|frame| frame.map_data(apart));
            let size = held(&frame);
            own.set(own.get() + size);
            all.set(all.get() + size);
            response.ahead.push_back(frame);
        }
    }

    /// The next part: what was read ahead comes first.
    fn poll(&self, task: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let mut response = self.response.borrow_mut();
        let Some(response) = &mut *response else { return Poll::Ready(None) };
        if !response.last.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut response.last)))));
        }
        let frame = match response.ahead.pop_front() {
            Some(frame) => {
                self.forget(held(&frame));
                Some(frame)
            }
            None => ready!(response.poll(task)),
        };
        let ends = response.is_end();
        let split = |mut part: Bytes| {
            if ends && part.len() > LAST_PART {
                response.last = part.split_off(part.len() - LAST_PART);
            }
            part
        };
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(split))))
    }

    /// What was read ahead is not held any more.
    fn forget(&self, count: usize) {
        for ahead in [&self.stream.ahead, &self.connection.ahead] {
            ahead.set(ahead.get().saturating_sub(count));
        }
    }

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

/// Memory that a frame takes which was read ahead.
fn held(frame: &Result<Frame<Bytes>, BodyFault>) -> usize {
    size_of_val(frame) + frame.as_ref().ok().and_then(Frame::data_ref).map_or(0, Bytes::len)
}

/// A body whose parts are watched.
pub(super) struct Watched(Rc<Flow>);

impl Drop for Watched {
    fn drop(&mut self) {
        // Parts on their way outlive it, the request does not.
        self.0.response.take();
        self.0.forget(self.0.stream.ahead.get());
    }
}

impl Body for Watched {
    type Data = Offered;
    type Error = BodyFault;

    fn poll_frame(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Result<Frame<Offered>, BodyFault>>> {
        let frame = ready!(self.0.poll(task));
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(|part| self.0.offer(part)))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.response.borrow().as_ref().is_none_or(Response::is_end)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.response.borrow().as_ref().map_or_else(SizeHint::default, |response| response.body.size_hint())
    }
}

/// Runs what one connection consists of on this worker's thread, and ends the streams that are not taken.
#[derive(Clone)]
pub(super) struct Watch {
    limit: Duration,
    waiting: Rc<Waiting>,
    used: Rc<Usage>,
    /// Of the stream whose service was called last: the library runs it next.
    newest: Rc<RefCell<Option<Rc<Flow>>>>,
}

/// The way of one stream to its [`Watch`].
pub(super) struct Stream(Rc<Flow>);

impl Stream {
    /// What the client has yet to send is waited for after the answer.
    pub(super) fn awaits(&self, upload: Upload) {
        self.0.upload.set(Some(upload));
    }

    pub(super) fn body(self, body: Downstream) -> Watched {
        let response = Response { body, ahead: VecDeque::new(), ended: false, last: Bytes::new() };
        self.0.response.replace(Some(response));
        Watched(self.0)
    }
}

impl Watch {
    pub(super) fn new(options: &ProxyOptions) -> Watch {
        let waiting = Rc::new(Waiting::new());
        Watch { limit: options.send_timeout, waiting, used: Rc::new(Usage::new(options)), newest: Rc::default() }
    }

    /// Ends when the connection has had its requests or has been idle for too long.
    pub(super) async fn enough(&self) {
        self.used.enough().await;
    }

    /// Begins with a stream that the library runs next.
    pub(super) fn stream(&self) -> Stream {
        self.used.begin();
        let (stream, connection) = (Waiting::new(), self.waiting.clone());
        let flow = Rc::new(Flow { stream, connection, response: RefCell::default(), upload: Cell::default() });
        self.newest.replace(Some(flow.clone()));
        Stream(flow)
    }

    /// Ends when the client takes nothing of what waits on the whole connection. Streams that
    /// wait as long are reset first, and what waits of theirs goes with them: what is left is held against the connection.
    pub(super) async fn silent(&self) {
        let mut overdue = None;
        loop {
            let now = Instant::now();
            let due = self.waiting.due(self.limit);
            match due.filter(|due| *due <= now) {
                None => sleep_until(due.unwrap_or(now + self.limit)).await,
                same if same == overdue => return,
                later => {
                    overdue = later;
                    sleep_until(now + self.limit / 2).await;
                }
            }
        }
    }
}

impl<F: Future + 'static> Executor<F> for Watch {
    fn execute(&self, stream: F) {
        match self.newest.take() {
            Some(flow) => {
                let (used, limit) = (self.used.clone(), self.limit);
                tokio::task::spawn_local(async move {
                    let ended = guard(stream, &flow, limit).await;
                    // Parts on their way hold the flow: with this in it the stream would not be reset.
                    if let Some(upload) = flow.upload.take().filter(|_| ended) {
                        upload.linger().await;
                    }
                    used.end();
                });
            }
            None => {
                tokio::task::spawn_local(async move {
                    stream.await;
                });
            }
        }
    }
}

/// Runs a stream until it ends, or (false) the client has not taken anything of it for too long. The library resets a
/// stream whose future is dropped.
async fn guard<F: Future>(stream: F, flow: &Rc<Flow>, limit: Duration) -> bool {
    let mut stream = pin!(stream);
    let mut timer: Option<Pin<Box<Sleep>>> = None;
    let ended = poll_fn(|task| {
        clock::turn();
        if stream.as_mut().poll(task).is_ready() {
            return Poll::Ready(true);
        }
        loop {
            let Some(due) = flow.stream.due(limit) else { return Poll::Pending };
            flow.read_ahead(task);
            let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
            ready!(timer.as_mut().poll(task));
            if due <= Instant::now() {
                tracing::debug!(waiting = flow.stream.bytes.get(), "stream reset: its client takes nothing");
                return Poll::Ready(false);
            }
            // It went on meanwhile.
            timer.as_mut().reset(due);
        }
    });
    ended.await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> Watch {
        Watch::new(&ProxyOptions { send_timeout: Duration::from_secs(60), ..Default::default() })
    }

    #[tokio::test(start_paused = true)]
    async fn streams_are_reset_before_their_connection_is_closed() {
        let watch = watch();
        watch.waiting.add(10, Instant::now());
        let resets = async {
            // In the same moment as the connection would be; it is looked at first.
            sleep_until(Instant::now() + watch.limit).await;
            watch.waiting.remove(10);
            sleep_until(Instant::now() + 10 * watch.limit).await;
        };
        tokio::select! {
            biased;
            () = watch.silent() => panic!("closed, though nothing waits any more"),
            () = resets => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_takes_something_now_and_then_stays_and_one_that_does_not_is_closed() {
        let watch = watch();
        watch.waiting.add(10, Instant::now());
        let takes = async {
            for _ in 0..10 {
                sleep_until(Instant::now() + watch.limit + watch.limit / 4).await;
                watch.waiting.moved.set(Instant::now());
            }
        };
        tokio::select! {
            biased;
            () = watch.silent() => panic!("closed, though it takes something"),
            () = takes => {}
        }
        let left = Instant::now();
        watch.silent().await;
        assert_eq!(left.elapsed(), watch.limit + watch.limit / 2);
    }
}

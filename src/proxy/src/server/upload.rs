//! The body of a request over HTTP/2, which may outlast its answer.
//!
//! Clients that are answered early go on sending until they have read the answer. A stream that is reset in the same
//! moment takes the answer with it: some clients look at the reset first. So the rest is read and forgotten for a while,
//! as over HTTP/1 and as nginx does.

use http_body::{Body, Frame, SizeHint};
use hyper::body::{Bytes, Incoming};
use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;

/// How long the rest of a body is read after the answer, as nginx's `lingering_time` has it.
pub(super) const LINGERS: Duration = Duration::from_secs(30);
/// The longest pause in it; a client that reads its answer stops soon or goes on at once.
pub(super) const LINGERS_PAUSE: Duration = Duration::from_secs(2);

/// See the module. Shared by whoever passes it on and whoever answers.
#[derive(Clone)]
pub(crate) struct Upload(Rc<RefCell<Incoming>>);

impl Upload {
    pub(crate) fn new(body: Incoming) -> Upload {
        Upload(Rc::new(RefCell::new(body)))
    }

    pub(crate) fn poll_frame(&self, task: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_frame(task)
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.0.borrow().size_hint()
    }

    /// Reads and forgets what is left once the answer has been sent. What is still on its way to an upstream over HTTP/2
    /// is left to that.
    pub(super) async fn linger(self) {
        let Some(body) = Rc::into_inner(self.0) else { return };
        let mut body = body.into_inner();
        let reading = async {
            let mut next = async || timeout(LINGERS_PAUSE, poll_fn(|task| Pin::new(&mut body).poll_frame(task))).await;
            while let Ok(Some(Ok(_))) = next().await {}
        };
        // What comes later is told so by a reset.
        let _ = timeout(LINGERS, reading).await;
    }
}

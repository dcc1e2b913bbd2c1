//! Copying both ways until both sides are done or nothing moves any more.

use crate::metrics::StreamFigures;
use std::cell::{Cell, OnceCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional_with_sizes};
use tokio::time::{Instant, sleep_until};

/// Bytes read at once, for each direction.
const BUFFER: usize = 16 * 1024;

/// When a stream is given up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Nothing came from either side for so long.
    pub(crate) read: Duration,
    /// A side took nothing of what waits for it for so long.
    pub(crate) write: Duration,
}

impl Limits {
    /// Never, as far as people are concerned.
    pub(crate) const NONE: Self = {
        let decade = Duration::from_secs(10 * 365 * 86_400);
        Self { read: decade, write: decade }
    };
}

/// Bytes that a stream has carried so far, as the client sees them.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    received: Cell<u64>,
    sent: Cell<u64>,
    /// Where they are counted as well, so that a stream that lasts for days is seen meanwhile.
    figures: OnceCell<Arc<StreamFigures>>,
}

impl Moved {
    /// Bytes from the client.
    pub(crate) fn received(&self) -> u64 {
        self.received.get()
    }

    /// Bytes to the client.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.get()
    }

    /// Counts in these figures from now on, and what has moved already: datagrams come before their route is known.
    pub(crate) fn count_in(&self, figures: Arc<StreamFigures>) {
        // A stream has one route.
        if self.figures.set(figures.clone()).is_ok() {
            figures.receive(self.received());
            figures.send(self.sent());
        }
    }

    pub(super) fn receive(&self, more: usize) {
        self.received.set(self.received.get() + more as u64);
        if let Some(figures) = self.figures.get() {
            figures.receive(more as u64);
        }
    }

    pub(super) fn send(&self, more: usize) {
        self.sent.set(self.sent.get() + more as u64);
        if let Some(figures) = self.figures.get() {
            figures.send(more as u64);
        }
    }
}

/// Copies until both sides have said that they are done; a side that is done may still be sent to. What the client sends
/// and is sent is counted in `moved` meanwhile.
///
/// # Errors
/// A side broke, or a limit was reached. Both sides are then closed.
pub(crate) async fn relay<C, U>(client: C, upstream: U, limits: Limits, moved: Rc<Moved>) -> io::Result<()>
where
    C: AsyncRead + AsyncWrite + Unpin,
    U: AsyncRead + AsyncWrite + Unpin,
{
    let last = Rc::new(Cell::new(Instant::now()));
    let (blocked_client, blocked_upstream) = (Rc::<Cell<_>>::default(), Rc::<Cell<_>>::default());
    let mut client =
        Watched { stream: client, moved: Some(moved), last: last.clone(), blocked: blocked_client.clone() };
    let mut upstream = Watched { stream: upstream, moved: None, last: last.clone(), blocked: blocked_upstream.clone() };
    let expiry = async {
        loop {
            let blocked = [&blocked_client, &blocked_upstream].into_iter().filter_map(|since| since.get());
            let due = blocked.map(|since| since + limits.write).fold(last.get() + limits.read, Instant::min);
            let now = Instant::now();
            if due <= now {
                return;
            }
            // A write may begin to wait before anything is due.
            sleep_until(due.min(now + limits.read.min(limits.write))).await;
        }
    };
    tokio::select! {
        biased;
        outcome = copy_bidirectional_with_sizes(&mut client, &mut upstream, BUFFER, BUFFER) => outcome.map(drop),
        () = expiry => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// A stream that notes when bytes move.
struct Watched<S> {
    stream: S,
    /// Set at the client's side.
    moved: Option<Rc<Moved>>,
    /// When bytes moved last, at either side.
    last: Rc<Cell<Instant>>,
    /// Since when a write waits.
    blocked: Rc<Cell<Option<Instant>>>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, task: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(task, into);
        if read.is_ready() {
            if let Some(moved) = &self.moved {
                moved.receive(into.filled().len() - before);
            }
            self.last.set(Instant::now());
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(task, bytes);
        if let Poll::Ready(outcome) = &written {
            if let (Some(moved), Ok(length)) = (&self.moved, outcome) {
                moved.send(*length);
            }
            self.blocked.set(None);
            self.last.set(Instant::now());
        } else if self.blocked.get().is_none() {
            self.blocked.set(Some(Instant::now()));
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(task)
    }
}

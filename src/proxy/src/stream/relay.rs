//! Copying both ways until both sides are done or nothing moves any more.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
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

/// Copies until both sides have said that they are done; a side that is done may still be sent to. Gives the bytes to
/// the upstream and from it; what comes in is counted in `bytes` meanwhile.
///
/// # Errors
/// A side broke, or a limit was reached. Both sides are then closed.
pub(crate) async fn relay<C, U>(client: C, upstream: U, limits: Limits, bytes: Rc<Cell<u64>>) -> io::Result<(u64, u64)>
where
    C: AsyncRead + AsyncWrite + Unpin,
    U: AsyncRead + AsyncWrite + Unpin,
{
    let moved = Rc::new(Cell::new(Instant::now()));
    let (blocked_client, blocked_upstream) = (Rc::<Cell<_>>::default(), Rc::<Cell<_>>::default());
    let mut client =
        Watched { stream: client, bytes: bytes.clone(), moved: moved.clone(), blocked: blocked_client.clone() };
    let mut upstream = Watched { stream: upstream, bytes, moved: moved.clone(), blocked: blocked_upstream.clone() };
    let expiry = async {
        loop {
            let blocked = [&blocked_client, &blocked_upstream].into_iter().filter_map(|since| since.get());
            let due = blocked.map(|since| since + limits.write).fold(moved.get() + limits.read, Instant::min);
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
        outcome = copy_bidirectional_with_sizes(&mut client, &mut upstream, BUFFER, BUFFER) => outcome,
        () = expiry => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// A stream that notes when bytes move.
struct Watched<S> {
    stream: S,
    bytes: Rc<Cell<u64>>,
    moved: Rc<Cell<Instant>>,
    /// Since when a write waits.
    blocked: Rc<Cell<Option<Instant>>>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, task: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(task, into);
        if read.is_ready() {
            self.bytes.set(self.bytes.get() + (into.filled().len() - before) as u64);
            self.moved.set(Instant::now());
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(task, bytes);
        if written.is_ready() {
            self.blocked.set(None);
            self.moved.set(Instant::now());
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

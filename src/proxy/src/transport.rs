//! A TCP connection with or without TLS, and what is to be written to one.

use bytes::{Buf, Bytes, BytesMut};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::unconstrained;
use tokio_rustls::TlsStream;

/// A socket whose readiness can be waited for without a buffer.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin {
    fn poll_readable(&self, task: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Whether there is nothing to be read, not even an end.
    fn is_quiet(&self) -> bool;
}

impl Socket for TcpStream {
    fn poll_readable(&self, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_read_ready(task)
    }

    fn is_quiet(&self) -> bool {
        // Without a look at the socket unless the runtime knows of something.
        matches!(self.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// See the module.
pub(crate) enum Transport<S> {
    Plain(S),
    Tls(Box<TlsStream<S>>),
}

impl<S: Socket> Transport<S> {
    /// Waits for bytes from the network. With TLS they need not hold any for us.
    pub(crate) fn poll_readable(&self, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => stream.poll_readable(task),
            Self::Tls(stream) => stream.get_ref().0.poll_readable(task),
        }
    }

    /// Reads once into the room the buffer has; 0 at the end.
    pub(crate) fn poll_fill(&mut self, task: &mut Context<'_>, buffer: &mut BytesMut) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => pin!(stream.read_buf(buffer)).poll(task),
            Self::Tls(stream) => pin!(stream.read_buf(buffer)).poll(task),
        }
    }

    /// Whether an idle connection is still open: neither closed nor sending what nobody asked for. Not by turns: to a task
    /// that has had its turn every connection would look open.
    pub(crate) fn is_quiet(&mut self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_quiet(),
            Self::Tls(stream) => {
                let mut byte = [0];
                let look = poll_fn(|task| Pin::new(&mut *stream).poll_read(task, &mut ReadBuf::new(&mut byte)));
                pin!(unconstrained(look)).poll(&mut Context::from_waker(Waker::noop())).is_pending()
            }
        }
    }
}

impl<S: Socket> AsyncRead for Transport<S> {
    fn poll_read(self: Pin<&mut Self>, task: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(task, into),
            Self::Tls(stream) => Pin::new(stream).poll_read(task, into),
        }
    }
}

impl<S: Socket> AsyncWrite for Transport<S> {
    fn poll_write(self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(task, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(task, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(task, parts),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(task, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(task),
            Self::Tls(stream) => Pin::new(stream).poll_flush(task),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(task),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(task),
        }
    }
}

/// Parts up to this size are copied behind what waits already: cheaper than one more part for the kernel.
const SMALL: usize = 2 * 1024;
/// Most parts given to the kernel at once.
const MOST_PARTS: usize = 16;

/// Size of the buffers that are kept for whoever needs one next.
pub(crate) const SPARE: usize = 4 * 1024;
/// How many are kept by a worker: 2 MiB of them.
const MOST_SPARE: usize = 512;

thread_local! {
    static BUFFERS: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
}

/// An empty buffer. Of the size of those that are kept, so that whoever takes a new one leaves it to the next.
pub(crate) fn spare_buffer() -> BytesMut {
    let kept = BUFFERS.try_with(|buffers| buffers.borrow_mut().pop()).ok().flatten();
    kept.unwrap_or_else(|| BytesMut::with_capacity(SPARE))
}

/// Takes a buffer back. It is kept when nobody has a part of it any more.
pub(crate) fn give_back(mut buffer: BytesMut) {
    if buffer.capacity() == 0 {
        return;
    }
    buffer.clear();
    if buffer.try_reclaim(SPARE) && buffer.capacity() < 2 * SPARE {
        // An error means that the thread ends.
        let _ = BUFFERS.try_with(|buffers| {
            let mut buffers = buffers.borrow_mut();
            if buffers.len() < MOST_SPARE {
                buffers.push(buffer);
            }
        });
    }
}

/// A part that is to be kept for a while: a small one by itself, as it would keep the whole buffer it was read into.
pub(crate) fn apart(part: Bytes) -> Bytes {
    if part.len() <= SMALL { Bytes::copy_from_slice(&part) } else { part }
}

/// Bytes that wait to be written: a head, then parts of a body that are not copied.
#[derive(Default)]
pub(crate) struct Outbox {
    head: BytesMut,
    parts: VecDeque<Bytes>,
    size: usize,
}

impl Drop for Outbox {
    fn drop(&mut self) {
        give_back(std::mem::take(&mut self.head));
    }
}

impl Outbox {
    /// An empty one in a buffer that was used before.
    pub(crate) fn reused() -> Outbox {
        Outbox { head: spare_buffer(), parts: VecDeque::new(), size: 0 }
    }

    /// Gives the buffer back once all of it has been written.
    pub(crate) fn rest(&mut self) {
        if self.is_empty() {
            give_back(std::mem::take(&mut self.head));
        }
    }

    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.size
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_empty() && self.parts.is_empty()
    }

    /// Adds text, written by a function into a buffer.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut BytesMut)) {
        if self.parts.is_empty() {
            return write(&mut self.head);
        }
        let mut text = BytesMut::new();
        write(&mut text);
        self.size += text.len();
        self.parts.push_back(text.freeze());
    }

    pub(crate) fn push(&mut self, mut part: Bytes) {
        if part.len() <= SMALL {
            if self.parts.is_empty() {
                return self.head.extend_from_slice(&part);
            }
            part = apart(part);
        }
        self.size += part.len();
        self.parts.push_back(part);
    }

    /// Writes all of it. `written` is told how much left.
    pub(crate) fn poll_write<S: Socket>(
        &mut self,
        task: &mut Context<'_>,
        stream: &mut Transport<S>,
        mut written: impl FnMut(usize),
    ) -> Poll<io::Result<()>> {
        while !self.is_empty() {
            let count = ready!(self.poll_once(task, stream))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            written(count);
            self.advance(count);
        }
        match stream {
            Transport::Plain(_) => Poll::Ready(Ok(())),
            Transport::Tls(stream) => Pin::new(stream).poll_flush(task),
        }
    }

    fn poll_once<S: Socket>(&self, task: &mut Context<'_>, stream: &mut Transport<S>) -> Poll<io::Result<usize>> {
        let stream = Pin::new(stream);
        if self.parts.is_empty() {
            return stream.poll_write(task, &self.head);
        }
        let mut slices = [IoSlice::new(&[]); MOST_PARTS];
        let mut count = 0;
        let head = (!self.head.is_empty()).then_some(&self.head[..]);
        for part in head.into_iter().chain(self.parts.iter().map(|part| &part[..])).take(MOST_PARTS) {
            slices[count] = IoSlice::new(part);
            count += 1;
        }
        stream.poll_write_vectored(task, &slices[..count])
    }

    fn advance(&mut self, mut count: usize) {
        let of_head = count.min(self.head.len());
        if of_head == self.head.len() {
            self.head.clear();
        } else {
            self.head.advance(of_head);
        }
        count -= of_head;
        self.size -= count;
        while let Some(part) = self.parts.front_mut().filter(|_| count > 0) {
            if count < part.len() {
                part.advance(count);
                return;
            }
            count -= part.len();
            self.parts.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_part_that_is_kept_does_not_keep_the_buffer_it_came_in() {
        for (size, is_free) in [(1, true), (SMALL, true), (SMALL + 1, false)] {
            let mut buffer = BytesMut::with_capacity(4 * SMALL);
            buffer.extend_from_slice(&vec![b'x'; size]);
            let part = buffer.split().freeze();
            let kept = apart(part);
            assert_eq!((kept.len(), buffer.try_reclaim(4 * SMALL)), (size, is_free));
        }
    }
}

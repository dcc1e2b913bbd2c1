//! A stream whose first bytes have been read already.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Gives the bytes first, then the rest of the stream.
pub(crate) struct Rewound<S> {
    start: Vec<u8>,
    read: usize,
    stream: S,
}

impl<S> Rewound<S> {
    pub(crate) fn new(start: Vec<u8>, stream: S) -> Rewound<S> {
        Rewound { start, read: 0, stream }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(mut self: Pin<&mut Self>, task: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let rest = &this.start[this.read..];
        if rest.is_empty() {
            return Pin::new(&mut this.stream).poll_read(task, into);
        }
        let length = rest.len().min(into.remaining());
        into.put_slice(&rest[..length]);
        this.read += length;
        if this.read == this.start.len() {
            (this.start, this.read) = (Vec::new(), 0);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(task, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(task)
    }
}

//! A client connection that may not stop taking what it asked for; deadlines.

use crate::transport::Socket;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// A stream whose writes fail when the peer takes nothing for a while. The clock runs only while a write waits.
pub(crate) struct Patient {
    stream: TcpStream,
    limit: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    pub(crate) fn new(stream: TcpStream, limit: Duration) -> Patient {
        Patient { stream, limit, waiting: None }
    }

    fn checked<T>(&mut self, task: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let limit = self.limit;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(limit)));
        waiting.as_mut().poll(task).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Socket for Patient {
    fn poll_readable(&self, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_readable(task)
    }

    fn is_quiet(&self) -> bool {
        self.stream.is_quiet()
    }
}

impl AsyncRead for Patient {
    fn poll_read(mut self: Pin<&mut Self>, task: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(task, into)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(task, bytes);
        self.checked(task, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(task, parts);
        self.checked(task, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(task)
    }
}

/// Whether the deadline has passed. A timer serves one deadline after the other, each mostly later than the one before:
/// it is moved when it goes off, not with each of them.
pub(crate) fn is_due(mut timer: Pin<&mut Sleep>, deadline: Instant, task: &mut Context<'_>) -> bool {
    if deadline < timer.deadline() {
        timer.as_mut().reset(deadline);
    }
    while timer.as_mut().poll(task).is_ready() {
        if deadline <= Instant::now() {
            return true;
        }
        timer.as_mut().reset(deadline);
    }
    false
}

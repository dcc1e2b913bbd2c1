//! How many streams an HTTP/2 connection to an upstream carries, and how many the upstream allows: the library of HTTP/2
//! lets a request wait for a free stream without a word, and streams of gRPC may last for hours.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What all shares of a connection know.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// None until the upstream has said it, which it does with its first frame.
    allowed: Cell<Option<u32>>,
    open: Cell<u32>,
}

impl Streams {
    /// Whether one more stream begins at once.
    pub(crate) fn have_room(&self) -> bool {
        self.allowed.get().is_some_and(|allowed| self.open.get() < allowed)
    }

    /// Whether it is known that one more would have to wait.
    pub(crate) fn are_full(&self) -> bool {
        self.allowed.get().is_some_and(|allowed| self.open.get() >= allowed)
    }
}

/// A stream that is counted until this is dropped.
pub(crate) struct Place(Rc<Streams>);

impl Place {
    pub(crate) fn of(streams: &Rc<Streams>) -> Place {
        streams.open.set(streams.open.get() + 1);
        Place(streams.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
    }
}

/// What the other side of a connection sends first, as far as it has come.
#[derive(Default)]
struct Beginning(Vec<u8>);

const FRAME_HEAD: usize = 9;
const SETTINGS: u8 = 4;
const MAX_CONCURRENT_STREAMS: u16 = 3;
/// Settings are a few dozen bytes; whoever sends more than this is not listened to.
const LONGEST: usize = 16 * 1024;

impl Beginning {
    /// The number of streams allowed, once the first frame is there. What is no frame of settings says nothing; the library
    /// ends such a connection.
    fn hear(&mut self, part: &[u8]) -> Option<u32> {
        self.0.extend_from_slice(part);
        let (head, rest) = self.0.split_first_chunk::<FRAME_HEAD>()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        if head[3] != SETTINGS || length > LONGEST {
            return Some(u32::MAX);
        }
        let settings = rest.get(..length)?.chunks_exact(6);
        // The last one counts.
        let allowed = settings.rev().find_map(|setting| {
            let [name, last, value @ ..] = setting else { return None };
            let name = u16::from_be_bytes([*name, *last]);
            (name == MAX_CONCURRENT_STREAMS).then(|| value.try_into().map(u32::from_be_bytes)).and_then(Result::ok)
        });
        Some(allowed.unwrap_or(u32::MAX))
    }
}

/// A connection whose first frame is listened to.
pub(crate) struct Listened<S> {
    stream: S,
    beginning: Option<Beginning>,
    streams: Rc<Streams>,
}

impl<S> Listened<S> {
    pub(crate) fn new(stream: S, streams: &Rc<Streams>) -> Listened<S> {
        Listened { stream, beginning: Some(Beginning::default()), streams: streams.clone() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Listened<S> {
    fn poll_read(mut self: Pin<&mut Self>, task: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(task, into))?;
        if let Some(beginning) = &mut self.beginning
            && let Some(allowed) = beginning.hear(&into.filled()[before..])
        {
            self.streams.allowed.set(Some(allowed));
            self.beginning = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Listened<S> {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(task, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(task, parts)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, 0, 0, 0, 0, 0], payload].concat()
    }

    #[test]
    fn the_number_of_streams_is_heard_in_whatever_pieces_it_comes() {
        let two = [0, 4, 0, 0, 255, 255, 0, 3, 0, 0, 0, 9, 0, 3, 0, 0, 0, 2];
        for (bytes, allowed) in [
            (frame(SETTINGS, &two), 2),
            (frame(SETTINGS, &[]), u32::MAX),
            (frame(SETTINGS, &[0, 4, 0, 0, 255, 255]), u32::MAX),
            (frame(6, &[0; 8])[..FRAME_HEAD].to_vec(), u32::MAX),
            (b"HTTP/1.1 ".to_vec(), u32::MAX),
        ] {
            let mut beginning = Beginning::default();
            let (last, before) = bytes.split_last().unwrap();
            assert!(before.iter().all(|byte| beginning.hear(&[*byte]).is_none()), "{bytes:?}");
            assert_eq!(beginning.hear(&[*last]), Some(allowed), "{bytes:?}");
            let more = [&bytes[..], b"more"].concat();
            assert_eq!(Beginning::default().hear(&more), Some(allowed), "{bytes:?}");
        }
    }

    #[test]
    fn places_are_counted_until_they_are_dropped() {
        let streams = Rc::new(Streams::default());
        let first = Place::of(&streams);
        assert!(!streams.have_room() && !streams.are_full(), "nothing is known yet");
        streams.allowed.set(Some(2));
        assert!(streams.have_room());
        let second = Place::of(&streams);
        assert!(!streams.have_room() && streams.are_full());
        drop((first, second));
        assert!(streams.have_room());
    }
}

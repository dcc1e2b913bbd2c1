//! Request bodies that are read whole before the upstream hears of the request (`request_buffering`), as nginx does: a slow
//! client occupies no upstream, and what is at hand can be sent again to another target.
//!
//! A body up to the size of the buffer stays in memory, a larger one goes to a file without a name, which the system removes with
//! the request. gRPC is never buffered: both sides may wait for each other.

use crate::flight::Flight;
use crate::upstream::send::Failure;
use bytes::{Bytes, BytesMut};
use gwctl_plugins::{Body, BodyError, BodyStream};
use http::HeaderMap;
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;
use tokio::time::timeout;

/// Bytes read at once from a file.
const PART: u64 = 64 * 1024;

/// Reads the body if the route wants it and something of it is still to come.
pub(crate) async fn buffer_body(flight: &mut Flight) -> Result<(), Failure> {
    let context = &mut flight.context;
    let unbuffered = context.route.as_ref().is_some_and(|route| route.request_buffering == Some(false));
    let service = context.service.as_ref().map(|service| service.protocol.as_str());
    if unbuffered || context.upstream.is_none() || matches!(service, Some("grpc" | "grpcs")) {
        return Ok(());
    }
    let stream = match std::mem::take(&mut context.request.body) {
        Body::Stream(stream) => stream,
        at_hand => {
            context.request.body = at_hand;
            return Ok(());
        }
    };
    let options = &flight.worker.options;
    let gathering = Gathering { memory: options.client_body_buffer_size, folder: &options.spool_folder };
    context.request.body = gathering.gather(stream, options.client_timeout).await?;
    Ok(())
}

struct Gathering<'a> {
    /// Most bytes kept in memory.
    memory: u64,
    folder: &'a Path,
}

impl Gathering<'_> {
    /// `pause` is how long the client may stop in between.
    async fn gather(&self, mut stream: Box<dyn BodyStream>, pause: Duration) -> Result<Body, Failure> {
        let mut kept = Kept::Nothing;
        let mut length = 0;
        loop {
            let next = poll_fn(|task| stream.poll_part(task.waker()));
            let part = match timeout(pause, next).await {
                Err(_) => return Err(Failure::ClientTimedOut),
                Ok(None) => break,
                Ok(Some(part)) => part.map_err(Failure::Client)?,
            };
            length += part.len() as u64;
            kept = kept.with(part, length > self.memory, self.folder).map_err(|error| {
                let folder = self.folder.display();
                tracing::error!(%folder, %error, "request body cannot be kept in a file, request refused");
                Failure::Malformed("body")
            })?;
        }
        if let Some(trailers) = stream.take_trailers() {
            return Ok(Body::Stream(Box::new(Trailed { body: kept.stream(length), trailers })));
        }
        Ok(match kept {
            Kept::Nothing => Body::Buffered(Bytes::new()),
            Kept::Part(part) => Body::Buffered(part),
            Kept::Memory(parts) => Body::Buffered(parts.freeze()),
            Kept::File(file) => Body::Stream(Box::new(Spooled { file: Rc::new(file), length, read: 0 })),
        })
    }
}

/// What has been read so far.
enum Kept {
    Nothing,
    Part(Bytes),
    Memory(BytesMut),
    File(File),
}

impl Kept {
    fn with(self, part: Bytes, spill: bool, folder: &Path) -> io::Result<Kept> {
        let before: &[u8] = match &self {
            Kept::Nothing | Kept::File(_) => &[],
            Kept::Part(before) => before,
            Kept::Memory(before) => before,
        };
        let mut parts = match self {
            Kept::Nothing if !spill => return Ok(Kept::Part(part)),
            // What once went to the file stays there: the length only grows.
            Kept::File(mut file) => {
                file.write_all(&part)?;
                return Ok(Kept::File(file));
            }
            _ if spill => {
                let mut file = tempfile::tempfile_in(folder)?;
                file.write_all(before)?;
                file.write_all(&part)?;
                return Ok(Kept::File(file));
            }
            Kept::Memory(parts) => parts,
            Kept::Nothing | Kept::Part(_) => BytesMut::from(before),
        };
        parts.extend_from_slice(&part);
        Ok(Kept::Memory(parts))
    }
}

impl Kept {
    fn stream(self, length: u64) -> Box<dyn BodyStream> {
        match self {
            Kept::Nothing => Box::new(Whole { bytes: Bytes::new(), given: true }),
            Kept::Part(bytes) => Box::new(Whole { bytes, given: false }),
            Kept::Memory(parts) => Box::new(Whole { bytes: parts.freeze(), given: false }),
            Kept::File(file) => Box::new(Spooled { file: Rc::new(file), length, read: 0 }),
        }
    }
}

/// A body with headers after it, which only chunks have room for.
struct Trailed {
    body: Box<dyn BodyStream>,
    trailers: HeaderMap,
}

impl BodyStream for Trailed {
    fn poll_part(&mut self, waker: &Waker) -> Poll<Option<Result<Bytes, BodyError>>> {
        self.body.poll_part(waker)
    }

    fn declared_length(&self) -> Option<u64> {
        None
    }

    fn again(&self) -> Option<Box<dyn BodyStream>> {
        Some(Box::new(Trailed { body: self.body.again()?, trailers: self.trailers.clone() }))
    }

    fn take_trailers(&mut self) -> Option<HeaderMap> {
        Some(std::mem::take(&mut self.trailers)).filter(|trailers| !trailers.is_empty())
    }
}

/// A body in memory.
struct Whole {
    bytes: Bytes,
    given: bool,
}

impl BodyStream for Whole {
    fn poll_part(&mut self, _: &Waker) -> Poll<Option<Result<Bytes, BodyError>>> {
        let last = std::mem::replace(&mut self.given, true);
        Poll::Ready((!last).then(|| Ok(self.bytes.clone())))
    }

    fn declared_length(&self) -> Option<u64> {
        Some(self.bytes.len() as u64)
    }

    fn again(&self) -> Option<Box<dyn BodyStream>> {
        Some(Box::new(Whole { bytes: self.bytes.clone(), given: self.bytes.is_empty() }))
    }
}

/// A body in a file; can be read any number of times.
struct Spooled {
    file: Rc<File>,
    length: u64,
    read: u64,
}

impl BodyStream for Spooled {
    fn poll_part(&mut self, _: &Waker) -> Poll<Option<Result<Bytes, BodyError>>> {
        let left = self.length - self.read;
        if left == 0 {
            return Poll::Ready(None);
        }
        let mut part = BytesMut::zeroed(left.min(PART) as usize);
        Poll::Ready(Some(match self.file.read_exact_at(&mut part, self.read) {
            Ok(()) => {
                self.read += part.len() as u64;
                Ok(part.freeze())
            }
            Err(error) => {
                tracing::error!(%error, "a request body in a file cannot be read");
                Err(BodyError::PeerBroke(error.to_string()))
            }
        }))
    }

    fn declared_length(&self) -> Option<u64> {
        Some(self.length - self.read)
    }

    fn again(&self) -> Option<Box<dyn BodyStream>> {
        Some(Box::new(Spooled { file: self.file.clone(), length: self.length, read: 0 }))
    }
}

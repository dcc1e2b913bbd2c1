//! Frames over a byte stream.

use crate::{LinkError, WRITE_STALL_LIMIT};
use bytes::Bytes;
use gwctl_websocket::{Opcode, Reader, Role, frame_header, mask_in_place};
use gwctl_wire::Frame;
use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf, ReadHalf, WriteHalf};

/// One TLS record.
const CHUNK: usize = 16 * 1024;

/// The receiving half.
pub struct FrameReader<S> {
    io: ReadHalf<S>,
    reader: Reader,
}

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A frame.
    Frame(Frame),
    /// Bytes, which may end one.
    Part,
    /// The end of the stream.
    End,
}

/// The sending half.
pub struct FrameWriter<S> {
    io: WriteHalf<S>,
    role: Role,
    limit: usize,
}

/// Both halves of an upgraded stream. `leftover` are bytes that came behind the head; `limit` is `cluster_max_payload`.
pub fn split<S: AsyncRead + AsyncWrite>(
    stream: S,
    role: Role,
    limit: usize,
    leftover: &[u8],
) -> (FrameReader<S>, FrameWriter<S>) {
    let (read, write) = tokio::io::split(stream);
    let mut reader = Reader::new(role, limit);
    reader.push(leftover);
    (FrameReader { io: read, reader }, FrameWriter { io: write, role, limit })
}

impl<S: AsyncRead> FrameReader<S> {
    /// The next frame; None when the peer ended the stream. Cancel safe.
    pub async fn receive(&mut self) -> Result<Option<Frame>, LinkError> {
        loop {
            match self.step().await? {
                Received::Frame(frame) => return Ok(Some(frame)),
                Received::Part => {}
                Received::End => return Ok(None),
            }
        }
    }

    /// The next frame, or more of it. Cancel safe.
    pub async fn step(&mut self) -> Result<Received, LinkError> {
        if let Some(frame) = self.reader.next_frame()? {
            let payload = Bytes::from(frame.payload);
            return Ok(Received::Frame(match frame.opcode {
                Opcode::Binary => Frame::Binary(payload),
                Opcode::Text => Frame::Text(payload),
                Opcode::Ping => Frame::Ping(payload),
                Opcode::Pong => Frame::Pong(payload),
                Opcode::Close => Frame::Close,
            }));
        }
        match self.read().await {
            Ok(0) => Ok(Received::End),
            Ok(_) => Ok(Received::Part),
            // A peer that was killed says no TLS farewell; frames are whole or not at all, so nothing is cut off unseen.
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(Received::End),
            Err(error) => Err(error.into()),
        }
    }
}

impl<S: AsyncRead> FrameReader<S> {
    /// Takes in what has come and says how much. The buffer lives while bytes are there, not while the link is idle: a
    /// control plane has thousands of them.
    async fn read(&mut self) -> std::io::Result<usize> {
        let Self { io, reader } = self;
        poll_fn(|task| {
            let mut chunk = [MaybeUninit::uninit(); CHUNK];
            let mut chunk = ReadBuf::uninit(&mut chunk);
            ready!(Pin::new(&mut *io).poll_read(task, &mut chunk))?;
            reader.push(chunk.filled());
            Poll::Ready(Ok(chunk.filled().len()))
        })
        .await
    }
}

impl<S: AsyncWrite> FrameWriter<S> {
    /// Sends a frame. An error ends the connection: part of the frame may be gone.
    pub async fn send(&mut self, frame: &Frame) -> Result<(), LinkError> {
        let (opcode, payload) = match frame {
            Frame::Binary(payload) => (Opcode::Binary, payload.clone()),
            Frame::Text(payload) => (Opcode::Text, payload.clone()),
            Frame::Ping(payload) => (Opcode::Ping, payload.clone()),
            Frame::Pong(payload) => (Opcode::Pong, payload.clone()),
            Frame::Close => (Opcode::Close, Bytes::new()),
        };
        if payload.len() > self.limit {
            return Err(LinkError::TooLong { length: payload.len(), limit: self.limit });
        }
        let (mask, payload) = match self.role {
            Role::Server => (None, payload),
            Role::Client => {
                let key = mask_key();
                let mut masked = payload.to_vec();
                mask_in_place(&mut masked, key);
                (Some(key), Bytes::from(masked))
            }
        };
        self.write(frame_header(opcode, payload.len(), mask).as_ref()).await?;
        for part in payload.chunks(CHUNK) {
            self.write(part).await?;
        }
        match tokio::time::timeout(WRITE_STALL_LIMIT, self.io.flush()).await {
            Ok(flushed) => Ok(flushed?),
            Err(_) => Err(LinkError::Stalled),
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        match tokio::time::timeout(WRITE_STALL_LIMIT, self.io.write_all(bytes)).await {
            Ok(written) => Ok(written?),
            Err(_) => Err(LinkError::Stalled),
        }
    }

    /// Ends the stream; errors do not matter any more.
    pub async fn close(mut self) {
        let _ = tokio::time::timeout(crate::STEP_LIMIT, self.io.shutdown()).await;
    }
}

/// Four random bytes; a mask only has to differ from frame to frame.
fn mask_key() -> [u8; 4] {
    let bytes = uuid::Uuid::new_v4().into_bytes();
    [bytes[0], bytes[1], bytes[2], bytes[3]]
}

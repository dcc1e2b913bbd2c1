//! The reader and the writer of one upgraded connection. What the sessions of every protocol share; it knows nothing of
//! any protocol.
//!
//! Each half has a channel of its own to the session. The writer's is a state and no queue, so it never waits for the
//! session, which may be waiting for the writer: a peer that sends without end and reads nothing comes to the end of the
//! writer's patience, and the session with it.

use gwctl_lifecycle::{Phase, Task, spawn};
use gwctl_link::{FrameReader, FrameWriter, LinkError, split};
use gwctl_websocket::Role;
use gwctl_wire::Frame;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;

/// Frames that may wait to be handled, and their bytes together. One frame alone may be longer.
const WAITING_FRAMES: usize = 16;
const WAITING_BYTES: u32 = 1 << 20;

/// Bytes of the long frames that may wait to go out or be going out. One frame alone may be longer. Without this a data plane
/// that asks for everything many times and reads nothing would hold as many copies of it. The frames of the other protocols
/// that are under way together fit in, so that no session waits for room.
const LEAVING_BYTES: u32 = 32 << 20;

/// Frames up to so many bytes are bounded by their number: an answer to a ping never waits for room.
const SHORT: usize = 64 << 10;

/// Events of the two halves of the connection.
pub(crate) enum Event {
    Frame(Frame),
    Written,
    Lost(String),
}

/// A frame with its share of [`WAITING_BYTES`] or [`LEAVING_BYTES`].
type Shared = (Frame, Option<OwnedSemaphorePermit>);

/// What was read, or why nothing will be any more.
type Received = Result<Shared, String>;

/// How far the writer is.
#[derive(Default)]
struct Progress {
    written: u64,
    lost: Option<String>,
}

/// An upgraded connection; dropping it ends it.
pub(crate) struct Connection {
    frames: mpsc::Receiver<Received>,
    progress: watch::Receiver<Progress>,
    /// Frames written that the session knows of.
    told: u64,
    _reading: Task,
    writing: Task,
}

/// Where frames are put that are to go out.
pub(crate) struct Outbox {
    frames: mpsc::Sender<Shared>,
    room: Arc<Semaphore>,
    progress: watch::Receiver<Progress>,
}

impl Outbox {
    /// Puts a frame behind those that wait, once there is room for it.
    ///
    /// # Errors
    /// Why nothing goes out any more.
    pub(crate) async fn send(&self, frame: Frame) -> Result<(), String> {
        // The room is given back when the writer ends: its frames go with it.
        let share = match frame.payload_len() > SHORT {
            true => share(&self.room, &frame, LEAVING_BYTES).await,
            false => None,
        };
        let sent = self.frames.send((frame, share)).await;
        sent.map_err(|_| why_lost(&self.progress))
    }

    /// Lets a close frame go out last, if there is room for it.
    pub(crate) fn close(&self) {
        let _ = self.frames.try_send((Frame::Close, None));
    }
}

/// So much of the room as the frame takes, or all of it. It is never closed.
async fn share(room: &Arc<Semaphore>, frame: &Frame, all: u32) -> Option<OwnedSemaphorePermit> {
    let bytes = u32::try_from(frame.payload_len()).unwrap_or(all).min(all);
    room.clone().acquire_many_owned(bytes).await.ok()
}

fn why_lost(progress: &watch::Receiver<Progress>) -> String {
    progress.borrow().lost.clone().unwrap_or_else(ended)
}

fn ended() -> String {
    "connection ended".to_owned()
}

impl Connection {
    /// Starts the two halves. `limit` is `cluster_max_payload`, `leftover` are bytes that came behind the request.
    pub(crate) fn open<S>(stream: S, limit: usize, leftover: &[u8]) -> (Self, Outbox)
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (reader, writer) = split(stream, Role::Server, limit, leftover);
        let (received, frames) = mpsc::channel(WAITING_FRAMES);
        let (writes, outbox) = mpsc::channel(16);
        let (told, progress) = watch::channel(Progress::default());
        let reading = spawn("link reader", Phase::Stop, read(reader, received));
        let writing = spawn("link writer", Phase::Stop, write(writer, outbox, told));
        let room = Arc::new(Semaphore::new(LEAVING_BYTES as usize));
        let outbox = Outbox { frames: writes, room, progress: progress.clone() };
        (Self { frames, progress, told: 0, _reading: reading, writing }, outbox)
    }

    /// The next event. Cancel safe. What came before the writer was lost is heard.
    pub(crate) async fn event(&mut self) -> Event {
        loop {
            if self.told < self.progress.borrow_and_update().written {
                self.told += 1;
                return Event::Written;
            }
            let writer_ended = self.progress.has_changed().is_err();
            tokio::select! {
                biased;
                received = self.frames.recv() => return match received {
                    Some(Ok((frame, _))) => Event::Frame(frame),
                    Some(Err(words)) => Event::Lost(words),
                    None => Event::Lost(ended()),
                },
                () = std::future::ready(()), if writer_ended => return Event::Lost(why_lost(&self.progress)),
                _ = self.progress.changed(), if !writer_ended => {}
            }
        }
    }

    /// Lets the close frame go out before the connection is dropped; the outbox has to be dropped before.
    pub(crate) async fn close(self) {
        drop(self.frames);
        let _ = tokio::time::timeout(gwctl_link::STEP_LIMIT, self.writing.join()).await;
    }
}

/// Waits for a timer; for ever when none runs.
pub(crate) async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn read<S: AsyncRead>(mut reader: FrameReader<S>, received: mpsc::Sender<Received>) {
    let room = Arc::new(Semaphore::new(WAITING_BYTES as usize));
    loop {
        let event = match reader.receive().await {
            Ok(Some(frame)) => {
                let share = share(&room, &frame, WAITING_BYTES).await;
                Ok((frame, share))
            }
            Ok(None) => Err("the data plane ended the connection".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let last = event.is_err();
        if received.send(event).await.is_err() || last {
            return;
        }
    }
}

async fn write<S: AsyncWrite>(
    mut writer: FrameWriter<S>,
    mut frames: mpsc::Receiver<Shared>,
    progress: watch::Sender<Progress>,
) {
    while let Some((frame, _share)) = frames.recv().await {
        match writer.send(&frame).await {
            Ok(()) => progress.send_modify(|progress| progress.written += 1),
            Err(error) => {
                if let LinkError::TooLong { .. } = error {
                    tracing::error!(%error, "configuration is too large for the cluster link; raise cluster_max_payload on all nodes");
                }
                progress.send_modify(|progress| progress.lost = Some(error.to_string()));
                break;
            }
        }
        if frame == Frame::Close {
            break;
        }
    }
    // From here on the session is told that nothing goes out.
    drop((frames, progress));
    writer.close().await;
}

#[cfg(test)]
mod tests;

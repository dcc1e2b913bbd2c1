//! The reader and the writer of one upgraded connection. What the sessions of every protocol share; it knows nothing of
//! any protocol.

use gwctl_lifecycle::{Phase, Task, spawn};
use gwctl_link::{FrameReader, FrameWriter, LinkError, split};
use gwctl_websocket::Role;
use gwctl_wire::Frame;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Events of the two halves of the connection.
pub(crate) enum Event {
    Frame(Frame),
    Written,
    Lost(String),
}

/// An upgraded connection; dropping it ends it.
pub(crate) struct Connection {
    events: mpsc::Receiver<Event>,
    _reading: Task,
    writing: Task,
}

impl Connection {
    /// Starts the two halves. What is put into the sender goes out. `limit` is `cluster_max_payload`, `leftover` are
    /// bytes that came behind the request.
    pub(crate) fn open<S>(stream: S, limit: usize, leftover: &[u8]) -> (Self, mpsc::Sender<Frame>)
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (reader, writer) = split(stream, Role::Server, limit, leftover);
        let (told, events) = mpsc::channel(16);
        let (writes, outbox) = mpsc::channel(16);
        let reading = spawn("link reader", Phase::Stop, read(reader, told.clone()));
        let writing = spawn("link writer", Phase::Stop, write(writer, outbox, told));
        (Self { events, _reading: reading, writing }, writes)
    }

    /// The next event. Cancel safe.
    pub(crate) async fn event(&mut self) -> Event {
        self.events.recv().await.unwrap_or_else(|| Event::Lost("connection ended".to_owned()))
    }

    /// Lets the close frame go out before the connection is dropped; every sender of frames has to be dropped before.
    pub(crate) async fn close(self) {
        drop(self.events);
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

async fn read<S: AsyncRead>(mut reader: FrameReader<S>, events: mpsc::Sender<Event>) {
    loop {
        let event = match reader.receive().await {
            Ok(Some(frame)) => Event::Frame(frame),
            Ok(None) => Event::Lost("the data plane ended the connection".to_owned()),
            Err(error) => Event::Lost(error.to_string()),
        };
        let last = matches!(event, Event::Lost(_));
        if events.send(event).await.is_err() || last {
            return;
        }
    }
}

async fn write<S: AsyncWrite>(
    mut writer: FrameWriter<S>,
    mut frames: mpsc::Receiver<Frame>,
    events: mpsc::Sender<Event>,
) {
    while let Some(frame) = frames.recv().await {
        let closing = frame == Frame::Close;
        let event = match writer.send(&frame).await {
            Ok(()) => Event::Written,
            Err(error @ LinkError::TooLong { .. }) => {
                tracing::error!(%error, "configuration is too large for the cluster link; raise cluster_max_payload on all nodes");
                Event::Lost(error.to_string())
            }
            Err(error) => Event::Lost(error.to_string()),
        };
        let last = closing || matches!(event, Event::Lost(_));
        // After a hang-up nobody listens to events any more; that is no fault.
        let heard = events.send(event).await.is_ok();
        if last || !heard && frames.is_empty() {
            break;
        }
    }
    writer.close().await;
}

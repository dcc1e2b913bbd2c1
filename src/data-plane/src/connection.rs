//! One connection to a control plane at a time: dialing, its reader and writer, hanging up. What every driver of a link
//! shares; it knows nothing of any protocol.

use crate::stream::{self, Ended, StreamOptions};
use bytes::Bytes;
use gwctl_lifecycle::{Phase, Task, spawn};
use gwctl_link::{DialOptions, Dialed, FrameReader, FrameWriter, LinkError, Received, dial};
use gwctl_wire::Frame;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Longest wait for the close frame to go out.
const FAREWELL: Duration = Duration::from_secs(1);

/// How often a frame that is still coming counts as a sign of life: oftener than any protocol counts silence by.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// What happens to a link; `O` is what came of an apply.
pub(crate) enum Event<O> {
    Opened(Opened),
    /// The connection is upgraded to our own sync: [`Connection::divert`] it.
    Diverted(Box<Dialed>),
    /// The control plane has welcomed the node on a diverted connection.
    Served,
    /// A diverted connection has ended.
    Ended(Ended),
    Frame(Frame),
    Lost(String),
    /// The peer answers but not as one of this protocol does.
    Refused(String),
    Applied(O),
}

/// A connection that was upgraded.
pub(crate) struct Opened {
    writes: mpsc::Sender<Frame>,
    halves: Vec<Task>,
    begin: oneshot::Sender<()>,
}

/// An event and the number of the dial it belongs to: what a connection given up still says is not heard.
pub(crate) type Numbered<O> = (u64, Event<O>);

/// The connection of a link, or the dial that may become one.
pub(crate) struct Connection<O> {
    events: mpsc::Sender<Numbered<O>>,
    /// Number of the newest dial.
    number: u64,
    dialing: Option<Task>,
    writes: Option<mpsc::Sender<Frame>>,
    /// Reader and writer of the open connection; dropping them ends it.
    halves: Vec<Task>,
    /// The task that serves a diverted connection.
    diverted: Option<Task>,
}

impl<O: Send + 'static> Connection<O> {
    /// None yet, and where its events will come.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Numbered<O>>) {
        let (events, inbox) = mpsc::channel(16);
        (Self { events, number: 0, dialing: None, writes: None, halves: Vec::new(), diverted: None }, inbox)
    }

    /// One that is upgraded already, with a reader that has begun.
    pub(crate) fn of(dialed: Dialed) -> (Self, mpsc::Receiver<Numbered<O>>) {
        let (mut connection, inbox) = Self::new();
        let opened = open(connection.number, dialed.reader, dialed.writer, &connection.events);
        connection.take(opened).reading();
        (connection, inbox)
    }

    /// Serves the connection by our own sync; [`Event::Served`] may and [`Event::Ended`] will follow.
    pub(crate) fn divert(&mut self, dialed: Box<Dialed>, options: StreamOptions) {
        self.dialing = None;
        let (number, events, welcomed) = (self.number, self.events.clone(), self.events.clone());
        // A driver that does not keep up hears of the end all the same.
        let served = Box::new(move || _ = welcomed.try_send((number, Event::Served)));
        self.diverted = Some(spawn("gwctl sync", Phase::Stop, async move {
            let ended = stream::serve(options, *dialed, served).await;
            let _ = events.send((number, Event::Ended(ended))).await;
        }));
    }

    /// Whether this is the number of the newest dial.
    pub(crate) fn is_current(&self, number: u64) -> bool {
        number == self.number
    }

    /// Begins to connect; [`Event::Opened`], [`Event::Lost`] or [`Event::Refused`] follows.
    pub(crate) fn dial(&mut self, options: DialOptions) {
        self.number += 1;
        let (number, events) = (self.number, self.events.clone());
        tracing::debug!(address = options.address, path = path(&options), "dialing control plane");
        self.dialing = Some(spawn("link dial", Phase::Stop, async move {
            let event = match dial(&options).await {
                Ok(dialed) if dialed.extra => Event::Diverted(Box::new(dialed)),
                Ok(dialed) => Event::Opened(open(number, dialed.reader, dialed.writer, &events)),
                Err(error @ (LinkError::Refused { .. } | LinkError::Subprotocol { .. })) => {
                    Event::Refused(error.to_string())
                }
                Err(error) => Event::Lost(error.to_string()),
            };
            let _ = events.send((number, event)).await;
        }));
    }

    /// Takes the upgraded connection; to be called upon [`Event::Opened`]. What is given back lets its reader begin: were
    /// it to begin by itself, a peer that speaks at once could be heard before the machine knows of the connection, and
    /// what it said would be lost.
    pub(crate) fn take(&mut self, opened: Opened) -> Begin {
        self.dialing = None;
        self.writes = Some(opened.writes);
        self.halves = opened.halves;
        Begin(opened.begin)
    }

    /// Sends a frame; false when the connection has ended.
    pub(crate) async fn send(&self, frame: Frame) -> bool {
        match &self.writes {
            Some(writes) => writes.send(frame).await.is_ok(),
            None => true,
        }
    }

    /// Does work that may block; what comes of it is an [`Event::Applied`], also when it panics (`failed`).
    pub(crate) fn apply(
        &self,
        work: impl FnOnce() -> O + Send + 'static,
        failed: impl FnOnce(String) -> O + Send + 'static,
    ) -> Task {
        let (number, events) = (self.number, self.events.clone());
        spawn("apply configuration", Phase::Drain, async move {
            let done = tokio::task::spawn_blocking(work).await;
            let outcome = done.unwrap_or_else(|error| failed(format!("applying it failed: {error}")));
            let _ = events.send((number, Event::Applied(outcome))).await;
        })
    }

    /// Says goodbye if there is a connection, and drops it or the dial.
    pub(crate) async fn hang_up(&mut self) {
        self.dialing = None;
        // It hears of a stop by itself and says goodbye.
        if let Some(diverted) = self.diverted.take() {
            let _ = tokio::time::timeout(FAREWELL, diverted.join()).await;
        }
        if let Some(writes) = self.writes.take() {
            let _ = writes.try_send(Frame::Close);
            drop(writes);
            // The writer ends after the close frame; the reader is dropped with it.
            if let Some(writer) = self.halves.pop() {
                let _ = tokio::time::timeout(FAREWELL, writer.join()).await;
            }
        }
        self.halves.clear();
        // Whatever this connection still says belongs to the past.
        self.number += 1;
    }
}

/// The right to let the reader of a connection begin.
pub(crate) struct Begin(oneshot::Sender<()>);

impl Begin {
    pub(crate) fn reading(self) {
        // The reader is among the halves, hence waits.
        let _ = self.0.send(());
    }
}

/// Without the query, which names the node.
fn path(options: &DialOptions) -> &str {
    options.target.split('?').next().unwrap_or_default()
}

/// Waits for a timer; for ever when none runs.
pub(crate) async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Starts the two halves of an upgraded connection.
fn open<S, O>(number: u64, reader: FrameReader<S>, writer: FrameWriter<S>, events: &mpsc::Sender<Numbered<O>>) -> Opened
where
    S: AsyncRead + AsyncWrite + Send + 'static,
    O: Send + 'static,
{
    let (writes, outbox) = mpsc::channel(16);
    let (begin, begun) = oneshot::channel();
    let heard = events.clone();
    let reading = spawn("link reader", Phase::Stop, async move {
        if begun.await.is_ok() {
            read(number, reader, heard, SIGN_OF_LIFE).await;
        }
    });
    let writing = spawn("link writer", Phase::Stop, write(number, writer, outbox, events.clone()));
    Opened { writes, halves: vec![reading, writing], begin }
}

async fn read<S: AsyncRead, O>(
    number: u64,
    mut reader: FrameReader<S>,
    events: mpsc::Sender<Numbered<O>>,
    sign_of_life: Duration,
) {
    let mut told = Instant::now();
    loop {
        let event = match reader.step().await {
            Ok(Received::Frame(frame)) => Event::Frame(frame),
            // A long frame on a slow link is no silence. To every protocol a pong is a sign of life and nothing else; a
            // driver that does not keep up has others.
            Ok(Received::Part) => {
                if told.elapsed() >= sign_of_life {
                    told = Instant::now();
                    let _ = events.try_send((number, Event::Frame(Frame::Pong(Bytes::new()))));
                }
                continue;
            }
            Ok(Received::End) => Event::Lost("the control plane ended the connection".to_owned()),
            Err(error) => Event::Lost(error.to_string()),
        };
        told = Instant::now();
        let last = matches!(event, Event::Lost(_));
        if events.send((number, event)).await.is_err() || last {
            return;
        }
    }
}

async fn write<S: AsyncWrite, O>(
    number: u64,
    mut writer: FrameWriter<S>,
    mut frames: mpsc::Receiver<Frame>,
    events: mpsc::Sender<Numbered<O>>,
) {
    while let Some(frame) = frames.recv().await {
        let outcome: Result<(), LinkError> = writer.send(&frame).await;
        if frame == Frame::Close {
            break;
        }
        if let Err(error) = outcome {
            // A driver that waits for this writer hears so first, and takes events again.
            drop(frames);
            let _ = events.send((number, Event::Lost(error.to_string()))).await;
            break;
        }
    }
    writer.close().await;
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use gwctl_websocket::Role;
    use tokio::io::AsyncWriteExt as _;

    #[tokio::test]
    async fn a_long_frame_that_is_coming_is_a_sign_of_life() {
        let (mut theirs, ours) = tokio::io::duplex(1 << 16);
        let (reader, _writer) = gwctl_link::split(ours, Role::Client, 1 << 20, &[]);
        let (events, mut inbox) = mpsc::channel::<Numbered<()>>(16);
        let reading = spawn("test reader", Phase::Stop, read(3, reader, events, Duration::ZERO));
        theirs.write_all(&[0x82, 10]).await.unwrap();
        for _ in 0..2 {
            theirs.write_all(b"12345").await.unwrap();
            assert!(matches!(inbox.recv().await, Some((3, Event::Frame(Frame::Pong(_))))));
        }
        let mut next = inbox.recv().await;
        while matches!(next, Some((3, Event::Frame(Frame::Pong(_))))) {
            next = inbox.recv().await;
        }
        assert!(matches!(next, Some((3, Event::Frame(Frame::Binary(payload)))) if payload[..] == *b"1234512345"));
        drop(theirs);
        assert!(matches!(inbox.recv().await, Some((3, Event::Lost(_)))));
        reading.join().await.unwrap();
    }
}

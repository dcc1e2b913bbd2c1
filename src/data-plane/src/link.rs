//! Drives the link to the control plane: dials, moves frames, arms one timer, runs effects. It decides nothing about
//! the protocol.

use bytes::Bytes;
use gwctl_lifecycle::{Phase, Shutdown, Task, spawn};
use gwctl_link::{DialOptions, FrameReader, FrameWriter, LinkError, dial};
use gwctl_wire::Frame;
use gwctl_wire::v1::DpLink;
use gwctl_wire::v1::dp_link::{Command, Effect, Outcome, Reason, Report, Settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Examines and applies payloads; called on a blocking thread, one at a time.
pub(crate) trait Apply: Send + Sync + 'static {
    fn apply(&self, payload: &[u8], in_force: &gwctl_wire::ConfigHash) -> Outcome;
}

/// What the link is made of.
#[derive(Clone)]
pub(crate) struct LinkOptions {
    /// One entry for each control plane, tried in order.
    pub(crate) control_planes: Vec<DialOptions>,
    pub(crate) settings: Settings,
    pub(crate) apply: Arc<dyn Apply>,
    /// Set while the control plane can be heard.
    pub(crate) connected: Arc<AtomicBool>,
}

/// What happens to a link; `O` is what came of an apply.
pub(crate) enum Event<O> {
    Opened(Opened),
    Frame(Frame),
    Lost(String),
    /// The peer answers but not as one of this protocol does.
    Refused(String),
    Applied(O),
}

/// A connection that was upgraded.
pub(crate) struct Opened {
    pub(crate) writes: mpsc::Sender<Frame>,
    pub(crate) halves: Vec<Task>,
    /// Lets the reader begin. Were it to begin by itself, a peer that speaks at once could be heard before the machine
    /// knows of the connection, and what it said would be lost.
    pub(crate) begin: oneshot::Sender<()>,
}

/// An event and the number of the dial it belongs to: what a connection given up still says is not heard.
pub(crate) type Numbered<O> = (u64, Event<O>);

struct Driver {
    options: LinkOptions,
    link: DpLink,
    start: Instant,
    events: mpsc::Sender<Numbered<Outcome>>,
    /// Number of the newest dial.
    dial: u64,
    dialing: Option<Task>,
    writes: Option<mpsc::Sender<Frame>>,
    /// Reader and writer of the open connection; dropping them ends it.
    halves: Vec<Task>,
    applying: Option<Task>,
}

/// Keeps the link up until the node stops.
pub(crate) async fn run(options: LinkOptions, shutdown: Shutdown) {
    let (events, mut inbox) = mpsc::channel(16);
    let link = DpLink::new(options.settings.clone());
    let mut driver = Driver {
        options,
        link,
        start: Instant::now(),
        events,
        dial: 0,
        dialing: None,
        writes: None,
        halves: Vec::new(),
        applying: None,
    };
    driver.command(Command::Start);
    while !driver.link.is_closed() {
        driver.run_effects().await;
        let timeout = driver.link.next_timeout().map(|at| driver.start + at);
        tokio::select! {
            Some((dial, event)) = inbox.recv() => driver.take(dial, event),
            () = sleep_until(timeout) => driver.link.handle_timeout(driver.now()),
            () = shutdown.reached(Phase::Stop) => driver.command(Command::Stop),
        }
    }
    driver.run_effects().await;
}

impl Driver {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn command(&mut self, command: Command) {
        let now = self.now();
        self.link.handle_command(now, command);
    }

    fn take(&mut self, dial: u64, event: Event<Outcome>) {
        let now = self.now();
        match event {
            Event::Applied(outcome) => self.link.handle_command(now, Command::Applied(outcome)),
            _ if dial != self.dial => {}
            Event::Opened(opened) => {
                self.writes = Some(opened.writes);
                self.halves = opened.halves;
                self.dialing = None;
                self.link.handle_opened(now);
                // The reader is among the halves, hence waits.
                let _ = opened.begin.send(());
            }
            Event::Frame(frame) => self.link.handle_frame(now, frame),
            Event::Lost(words) | Event::Refused(words) => self.link.handle_lost(now, Reason::PeerLost(words)),
        }
    }

    async fn run_effects(&mut self) {
        while let Some(effect) = self.link.poll_effect() {
            match effect {
                Effect::Dial { control_plane } => self.dial(control_plane),
                Effect::Send(frame) => self.send(frame).await,
                Effect::Apply { payload, in_force } => self.apply(payload, in_force),
                Effect::HangUp(_) => self.hang_up().await,
                Effect::Report(report) => self.report(&report),
            }
        }
    }

    fn dial(&mut self, control_plane: usize) {
        self.dial += 1;
        let (number, events) = (self.dial, self.events.clone());
        let Some(options) = self.options.control_planes.get(control_plane).cloned() else { return };
        tracing::debug!(address = options.address, "dialing control plane");
        self.dialing = Some(spawn("link dial", Phase::Stop, async move {
            let event = match dial(&options).await {
                Ok((reader, writer)) => open(number, reader, writer, &events),
                Err(error) => Event::Lost(error.to_string()),
            };
            let _ = events.send((number, event)).await;
        }));
    }

    async fn send(&mut self, frame: Frame) {
        let Some(writes) = &self.writes else { return };
        if writes.send(frame).await.is_err() {
            self.link.handle_lost(self.now(), Reason::PeerLost("connection ended".to_owned()));
        }
    }

    fn apply(&mut self, payload: Bytes, in_force: gwctl_wire::ConfigHash) {
        let (number, events, apply) = (self.dial, self.events.clone(), self.options.apply.clone());
        self.applying = Some(spawn("apply configuration", Phase::Drain, async move {
            let work = tokio::task::spawn_blocking(move || apply.apply(&payload, &in_force));
            let outcome = work.await.unwrap_or_else(|error| Outcome::Refused(format!("applying it failed: {error}")));
            let _ = events.send((number, Event::Applied(outcome))).await;
        }));
    }

    async fn hang_up(&mut self) {
        self.options.connected.store(false, Ordering::Relaxed);
        self.dialing = None;
        if let Some(writes) = self.writes.take() {
            let _ = writes.try_send(Frame::Close);
            drop(writes);
            // The writer ends after the close frame; the reader is dropped with it.
            if let Some(writer) = self.halves.pop() {
                let _ = tokio::time::timeout(Duration::from_secs(1), writer.join()).await;
            }
        }
        self.halves.clear();
        // Whatever this connection still says belongs to the past.
        self.dial += 1;
    }

    fn report(&self, report: &Report) {
        let address = |index: &usize| {
            self.options.control_planes.get(*index).map_or_else(String::new, |options| options.address.clone())
        };
        match report {
            Report::Connected { control_plane } => {
                self.options.connected.store(true, Ordering::Relaxed);
                tracing::info!(address = address(control_plane), "connected to control plane");
            }
            Report::Disconnected { control_plane, reason, retry_in } => {
                let meanwhile = match self.link.hash().is_zero() {
                    true => "there is no configuration yet, requests are answered 404",
                    false => "serving the configuration at hand",
                };
                tracing::warn!(
                    address = address(control_plane),
                    reason = %reason.to_string() + certificate_hint(reason),
                    retry_in_ms = u64::try_from(retry_in.as_millis()).unwrap_or(u64::MAX),
                    "no connection to control plane: {meanwhile}"
                );
            }
            Report::Applied { hash } => tracing::info!(%hash, "configuration in force"),
            Report::Refused { fault } => {
                tracing::error!(fault, "configuration refused, the one before stays in force");
            }
            Report::Ignored { kind } => tracing::info!(kind, "frame of the control plane ignored"),
        }
    }
}

/// What a certificate that is not accepted usually means.
fn certificate_hint(reason: &Reason) -> &'static str {
    match reason {
        Reason::PeerLost(words) if words.contains("invalid peer certificate") => {
            " (the control plane presents another certificate than cluster_cert, or one that cluster_ca_cert did not \
             issue; cluster_mtls must be the same on both)"
        }
        Reason::PeerLost(words) if words.contains("InvalidContentType") => {
            " (this port does not speak TLS; the cluster listener is usually port 8005)"
        }
        _ => "",
    }
}

pub(crate) async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Starts the two halves of an upgraded connection.
pub(crate) fn open<S, O>(
    number: u64,
    reader: FrameReader<S>,
    writer: FrameWriter<S>,
    events: &mpsc::Sender<Numbered<O>>,
) -> Event<O>
where
    S: AsyncRead + AsyncWrite + Send + 'static,
    O: Send + 'static,
{
    let (writes, outbox) = mpsc::channel(16);
    let (begin, begun) = oneshot::channel();
    let heard = events.clone();
    let reading = spawn("link reader", Phase::Stop, async move {
        if begun.await.is_ok() {
            read(number, reader, heard).await;
        }
    });
    let writing = spawn("link writer", Phase::Stop, write(number, writer, outbox, events.clone()));
    Event::Opened(Opened { writes, halves: vec![reading, writing], begin })
}

async fn read<S: AsyncRead, O>(number: u64, mut reader: FrameReader<S>, events: mpsc::Sender<Numbered<O>>) {
    loop {
        let event = match reader.receive().await {
            Ok(Some(frame)) => Event::Frame(frame),
            Ok(None) => Event::Lost("the control plane ended the connection".to_owned()),
            Err(error) => Event::Lost(error.to_string()),
        };
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
            let _ = events.send((number, Event::Lost(error.to_string()))).await;
            break;
        }
    }
    writer.close().await;
}

//! Drives our own sync on one connection, from the upgrade to its end: moves frames, arms one timer, runs effects. It
//! decides nothing about the protocol.

use crate::apply::Configured;
use crate::connection::{Connection, Event, Numbered, sleep_until};
use crate::sync::{LogLevels, answered};
use gwctl_lifecycle::{Phase, Shutdown, Task};
use gwctl_link::Dialed;
use gwctl_wire::stream::dp::{Command, Effect, Outcome, Reason, Report, Work};
use gwctl_wire::stream::{DpStream, Hello};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// What every connection of our own sync is made of.
#[derive(Clone)]
pub(crate) struct StreamOptions {
    /// What the node says of itself, without what it holds.
    pub(crate) hello: Hello,
    pub(crate) configured: Arc<Configured>,
    /// Set while the control plane can be heard.
    pub(crate) connected: Arc<AtomicBool>,
    pub(crate) shutdown: Shutdown,
    pub(crate) log_levels: Arc<dyn LogLevels>,
}

/// How such a connection ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Lost(String),
    /// The control plane stops, and asked to be left alone for so long.
    Left(Duration),
}

struct Driver {
    options: StreamOptions,
    link: DpStream,
    start: Instant,
    connection: Connection<Outcome>,
    inbox: mpsc::Receiver<Numbered<Outcome>>,
    working: Option<Task>,
    served: Option<Box<dyn FnOnce() + Send>>,
}

/// Serves the connection to its end; `served` is called once the control plane has welcomed the node.
pub(crate) async fn serve(options: StreamOptions, dialed: Dialed, served: Box<dyn FnOnce() + Send>) -> Ended {
    let (connection, inbox) = Connection::of(dialed);
    let configured = options.configured.clone();
    // The cache is read off the thread that moves frames.
    let held = tokio::task::spawn_blocking(move || configured.held()).await.unwrap_or_default();
    let hello = Hello { held, ..options.hello.clone() };
    let (start, link) = (Instant::now(), DpStream::new(Duration::ZERO, hello));
    let mut driver = Driver { options, link, start, connection, inbox, working: None, served: Some(served) };
    let ended = driver.run().await;
    // The next connection says what is held; that is known once this has ended.
    if let Some(working) = driver.working.take() {
        // Nobody takes its word any more, nor may it wait for room behind what the peer said last.
        driver.inbox.close();
        let _ = working.join().await;
    }
    ended
}

impl Driver {
    async fn run(&mut self) -> Ended {
        let shutdown = self.options.shutdown.clone();
        let mut stopping = false;
        loop {
            if let Some(reason) = self.run_effects().await {
                self.options.connected.store(false, Ordering::Relaxed);
                self.connection.hang_up().await;
                return match reason {
                    Reason::PeerLeaves { reconnect_after } => Ended::Left(reconnect_after),
                    reason => Ended::Lost(reason.to_string()),
                };
            }
            let timeout = self.link.next_timeout().map(|at| self.start + at);
            tokio::select! {
                Some((_, event)) = self.inbox.recv() => self.take(event),
                () = sleep_until(timeout) => self.link.handle_timeout(self.start.elapsed()),
                () = shutdown.reached(Phase::Stop), if !stopping => {
                    stopping = true;
                    self.link.handle_command(Command::Stop);
                }
            }
        }
    }

    fn take(&mut self, event: Event<Outcome>) {
        match event {
            Event::Applied(outcome) => {
                self.working = None;
                self.link.handle_command(Command::Done(outcome));
            }
            Event::Frame(frame) => self.link.handle_frame(self.start.elapsed(), &frame),
            Event::Lost(words) | Event::Refused(words) => self.link.handle_lost(words),
            Event::Opened(_) | Event::Diverted(_) | Event::Served | Event::Ended(_) => {}
        }
    }

    /// Runs what is to be done; a reason ends the connection.
    async fn run_effects(&mut self) -> Option<Reason> {
        while let Some(effect) = self.link.poll_effect() {
            match effect {
                Effect::Send(frame) => {
                    if !self.connection.send(frame).await {
                        self.link.handle_lost("connection ended".to_owned());
                    }
                }
                Effect::Work(work) => self.work(work),
                Effect::LogLevel { id, asked } => {
                    let outcome = answered(&*self.options.log_levels, asked);
                    self.link.handle_command(Command::Answer { id, outcome });
                }
                Effect::Report(report) => self.report(report),
                Effect::HangUp(reason) => return Some(reason),
            }
        }
        None
    }

    fn work(&mut self, work: Work) {
        let (configured, start) = (self.options.configured.clone(), self.start);
        let failed = |fault| Outcome::Refused { row: None, fault };
        self.working = Some(self.connection.apply(move || configured.work(work, start), failed));
    }

    fn report(&mut self, report: Report) {
        match report {
            Report::Welcomed { store_id, version } => {
                self.options.connected.store(true, Ordering::Relaxed);
                if let Some(served) = self.served.take() {
                    served();
                }
                tracing::info!(store = store_id, version, "connected to control plane by gwctl's own sync");
            }
            Report::Copying { why } => tracing::info!(why, "the whole configuration is coming"),
            Report::Applied(applied) => tracing::info!(
                version = applied.version,
                digest = applied.digest,
                stored_us = applied.stored_us,
                active_us = applied.active_us,
                "configuration in force"
            ),
            Report::Refused(refused) => tracing::error!(
                version = refused.version,
                entity = refused.entity,
                id = refused.id,
                error = refused.fault,
                "changes refused, the configuration before stays in force"
            ),
            Report::WantsSnapshot { why } => tracing::warn!(error = why, "the whole configuration is asked for"),
            Report::Withheld { status, words } => {
                tracing::error!(status, error = words, "the control plane withholds its configuration from this node");
            }
        }
    }
}

//! Drives the link to the control plane: dials, moves frames, arms one timer, runs effects. It decides nothing about
//! the protocol.

use crate::connection::{Connection, Event, sleep_until};
use crate::stream::{Ended, StreamOptions};
use bytes::Bytes;
use gwctl_lifecycle::{Phase, Shutdown, Task};
use gwctl_link::DialOptions;
use gwctl_wire::v1::DpLink;
use gwctl_wire::v1::dp_link::{Command, Effect, Outcome, Reason, Report, Settings};
use gwctl_wire::{ConfigHash, Frame};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
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
    /// For control planes that offer our own sync.
    pub(crate) stream: StreamOptions,
}

struct Driver {
    options: LinkOptions,
    link: DpLink,
    start: Instant,
    connection: Connection<Outcome>,
    applying: Option<Task>,
}

/// Keeps the link up until the node stops.
pub(crate) async fn run(options: LinkOptions, shutdown: Shutdown) {
    let (connection, mut inbox) = Connection::new();
    let link = DpLink::new(options.settings.clone());
    let mut driver = Driver { options, link, start: Instant::now(), connection, applying: None };
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
            _ if !self.connection.is_current(dial) => {}
            Event::Opened(opened) => {
                let begin = self.connection.take(opened);
                self.link.handle_opened(now);
                begin.reading();
            }
            Event::Diverted(dialed) => {
                self.link.handle_diverted(now);
                self.options.stream.configured.set_synced(true);
                self.connection.divert(dialed, self.options.stream.clone());
            }
            Event::Served => self.link.handle_served(now),
            Event::Ended(ended) => self.end_diversion(now, ended),
            Event::Frame(frame) => self.link.handle_frame(now, frame),
            Event::Lost(words) | Event::Refused(words) => self.link.handle_lost(now, Reason::PeerLost(words)),
        }
    }

    /// From here on the next control plane decides by which protocol this node is kept up to date.
    fn end_diversion(&mut self, now: Duration, ended: Ended) {
        let configured = &self.options.stream.configured;
        configured.set_synced(false);
        self.link.set_hash(configured.hash().unwrap_or_else(ConfigHash::zero));
        let reason = match ended {
            Ended::Lost(words) => Reason::PeerLost(words),
            Ended::Left(reconnect_after) => Reason::PeerLeft { reconnect_after },
        };
        self.link.handle_lost(now, reason);
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
        if let Some(options) = self.options.control_planes.get(control_plane) {
            self.connection.dial(options.clone());
        }
    }

    async fn send(&mut self, frame: Frame) {
        if !self.connection.send(frame).await {
            self.link.handle_lost(self.now(), Reason::PeerLost("connection ended".to_owned()));
        }
    }

    fn apply(&mut self, payload: Bytes, in_force: gwctl_wire::ConfigHash) {
        let apply = self.options.apply.clone();
        self.applying = Some(self.connection.apply(move || apply.apply(&payload, &in_force), Outcome::Refused));
    }

    async fn hang_up(&mut self) {
        self.options.connected.store(false, Ordering::Relaxed);
        self.connection.hang_up().await;
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
                let (address, retry_in_ms) = (address(control_plane), millis(*retry_in));
                if matches!(reason, Reason::PeerClosed | Reason::PeerLeft { .. }) {
                    // It stops, or lets go of this node: nothing is wrong here.
                    tracing::info!(address, retry_in_ms, "{reason}: {meanwhile}");
                } else {
                    let reason = reason.to_string() + certificate_hint(reason);
                    tracing::warn!(address, reason, retry_in_ms, "no connection to control plane: {meanwhile}");
                }
            }
            Report::Applied { hash } => tracing::info!(%hash, "configuration in force"),
            Report::Refused { fault } => {
                tracing::error!(error = fault, "configuration refused, the one before stays in force");
            }
            Report::Ignored { kind } => tracing::info!(kind, "frame of the control plane ignored"),
        }
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
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

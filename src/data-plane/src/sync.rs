//! Drives the v2 link to the control plane: dials, moves frames, arms one timer, runs effects, and starts the v1 link
//! beside it where no v2 is offered. It decides nothing about the protocol.

use crate::apply::Configured;
use crate::connection::{Connection, Event, sleep_until};
use crate::link::{self, LinkOptions};
use crate::stream::Ended;
use gwctl_entities::Value;
use gwctl_lifecycle::{Phase, Shutdown, Task, spawn};
use gwctl_link::DialOptions;
use gwctl_wire::v2::dp_link::{Command, Effect, Outcome, Reason, Report, Settings};
use gwctl_wire::v2::log_level::{self, Asked, Levels};
use gwctl_wire::v2::{Deltas, DpLink, RpcError};
use gwctl_wire::{ConfigHash, Frame};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// What a control plane gets that asks about the log.
pub(crate) fn answered(log_levels: &dyn LogLevels, asked: Asked) -> Result<Value, RpcError> {
    match asked {
        Asked::Get => Ok(log_levels.levels().value()),
        Asked::Set { level, seconds } => {
            // Kong's word for putting it back is any level for no time.
            let back = seconds == 0;
            if !back {
                tracing::warn!(level, seconds, "the control plane sets the log level");
            }
            log_levels.set(&level, seconds).map_err(RpcError::failed)?;
            if back {
                tracing::warn!(level = log_levels.levels().current, "the control plane puts the log level back");
            }
            Ok(true.into())
        }
    }
}

/// What the link is made of.
pub(crate) struct SyncOptions {
    /// One entry for each control plane, tried in order.
    pub(crate) control_planes: Vec<DialOptions>,
    pub(crate) settings: Settings,
    pub(crate) configured: Arc<Configured>,
    /// What the v1 link is made of, and connections of our own sync.
    pub(crate) link: LinkOptions,
    /// The v1 link, to be used where no v2 is offered; None on a link for calls beside our own sync.
    pub(crate) fallback: Option<LinkOptions>,
    pub(crate) log_levels: Arc<dyn LogLevels>,
}

/// The levels of this node's log, which a control plane may read and set.
pub trait LogLevels: Send + Sync + 'static {
    /// The levels.
    fn levels(&self) -> Levels;

    /// Sets the level for so many seconds, after which the node's own comes back; 0: it comes back now.
    ///
    /// # Errors
    /// Why it cannot be set.
    fn set(&self, level: &str, seconds: u64) -> Result<(), String>;
}

struct Driver {
    options: SyncOptions,
    link: DpLink,
    start: Instant,
    shutdown: Shutdown,
    connection: Connection<Outcome>,
    applying: Option<Task>,
    /// The v1 link while it is in use; dropping it ends it.
    v1: Option<Task>,
    /// A link for calls alone, beside a connection of our own sync, which has none.
    calls: Option<Task>,
}

/// Keeps the link up until the node stops.
pub(crate) async fn run(options: SyncOptions, shutdown: Shutdown) {
    let (connection, mut inbox) = Connection::new();
    if options.fallback.is_some() {
        options.configured.set_synced(true);
    }
    let mut driver = Driver {
        link: DpLink::new(options.settings.clone()),
        options,
        start: Instant::now(),
        shutdown: shutdown.clone(),
        connection,
        applying: None,
        v1: None,
        calls: None,
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
    // The v1 link hears of the stop by itself and says goodbye.
    if let Some(v1) = driver.v1.take() {
        let _ = tokio::time::timeout(Duration::from_secs(1), v1.join()).await;
    }
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
                self.link.handle_opened(now, self.options.configured.standing());
                begin.reading();
            }
            Event::Diverted(dialed) => {
                self.link.handle_diverted();
                self.connection.divert(dialed, self.options.link.stream.clone());
                self.calls = self.beside();
            }
            Event::Served => self.link.handle_served(now),
            Event::Ended(ended) => {
                self.calls = None;
                let reason = match ended {
                    Ended::Lost(words) => Reason::PeerLost(words),
                    Ended::Left(reconnect_after) => Reason::PeerLeft { reconnect_after },
                };
                self.link.handle_lost(now, reason);
            }
            Event::Frame(frame) => self.link.handle_frame(now, frame),
            Event::Lost(words) => self.link.handle_lost(now, Reason::PeerLost(words)),
            Event::Refused(words) => self.link.handle_lost(now, Reason::PeerRefused(words)),
        }
    }

    async fn run_effects(&mut self) {
        while let Some(effect) = self.link.poll_effect() {
            match effect {
                Effect::Dial { control_plane } => self.dial(control_plane),
                Effect::Send(frame) => self.send(frame).await,
                Effect::Apply { deltas, base } => self.apply(deltas, base),
                Effect::Fallback(fall) => self.fall_back(fall),
                Effect::LogLevel { id, asked } => self.log_level(id, asked),
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

    fn apply(&mut self, deltas: Deltas, base: u64) {
        let configured = self.options.configured.clone();
        self.applying = Some(self.connection.apply(move || configured.apply_deltas(deltas, base), Outcome::Refused));
    }

    /// Starts a link for calls to the control plane that the connection of our own sync leads to.
    fn beside(&self) -> Option<Task> {
        let dialed = self.options.control_planes.get(self.link.control_plane())?;
        let mut settings = self.options.settings.clone();
        (settings.control_planes, settings.sync) = (1, false);
        settings.hello.capabilities.retain(|name| name == log_level::CAPABILITY);
        let options = SyncOptions {
            control_planes: vec![DialOptions { extra: None, ..dialed.clone() }],
            settings,
            configured: self.options.configured.clone(),
            link: self.options.link.clone(),
            fallback: None,
            log_levels: self.options.log_levels.clone(),
        };
        let link: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(run(options, self.shutdown.clone()));
        Some(spawn("calls beside gwctl sync", Phase::Stop, link))
    }

    fn log_level(&mut self, id: Value, asked: Asked) {
        let outcome = answered(&*self.options.log_levels, asked);
        self.command(Command::Answer { id, outcome });
    }

    /// Begins or ends to be kept up to date by protocol v1.
    fn fall_back(&mut self, fall: bool) {
        let Some(mut options) = self.options.fallback.clone() else { return };
        self.options.configured.set_synced(!fall);
        self.v1 = None;
        if fall {
            if self.options.settings.sync {
                tracing::warn!(
                    "no control plane offers kong.sync.v2 (cluster_rpc and cluster_incremental_sync): using protocol v1"
                );
            }
            options.settings.hash = self.options.configured.hash().unwrap_or_else(ConfigHash::zero);
            self.v1 =
                Some(spawn("v1 link to the control plane", Phase::Stop, link::run(options, self.shutdown.clone())));
        } else {
            tracing::info!("a control plane offers kong.sync.v2 again: protocol v1 ends");
        }
    }

    async fn hang_up(&mut self) {
        if self.v1.is_none() && self.options.fallback.is_some() {
            self.options.link.connected.store(false, Ordering::Relaxed);
        }
        self.connection.hang_up().await;
    }

    fn report(&self, report: &Report) {
        let address = |index: &usize| {
            self.options.control_planes.get(*index).map_or_else(String::new, |options| options.address.clone())
        };
        match report {
            Report::Connected { control_plane, sync } => {
                if *sync {
                    self.options.link.connected.store(true, Ordering::Relaxed);
                }
                tracing::info!(address = address(control_plane), sync, "connected to control plane by protocol v2");
            }
            Report::Disconnected {
                control_plane,
                reason: reason @ (Reason::PeerClosed | Reason::PeerLeft { .. }),
                retry_in,
            } => {
                tracing::info!(
                    address = address(control_plane),
                    retry_in_ms = link::millis(*retry_in),
                    "{reason}, serving the configuration at hand"
                )
            }
            Report::Disconnected { control_plane, reason, retry_in } => tracing::warn!(
                address = address(control_plane),
                %reason,
                retry_in_ms = link::millis(*retry_in),
                "no connection to control plane by protocol v2, serving the configuration at hand"
            ),
            Report::AnotherCluster => tracing::warn!(
                "the configuration at hand is of another cluster than the control plane's: asking for everything"
            ),
            Report::Applied { version } => tracing::info!(version, "configuration in force"),
            Report::Refused { fault } => {
                tracing::error!(error = fault, "changes refused, the configuration before stays in force");
            }
            Report::PullFailed(error) => tracing::warn!(%error, "the control plane answered with an error"),
            Report::PullUnanswered => tracing::warn!("the control plane did not answer in time"),
        }
    }
}

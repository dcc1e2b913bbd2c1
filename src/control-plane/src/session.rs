//! Drives the link of one data plane: moves frames, arms one timer, runs effects. It decides nothing about the protocol.

use crate::answers::Answers;
use crate::connection::{Connection, Event, Outbox, sleep_until};
use crate::fleet::{FleetTable, Identity, Seat};
use crate::payload::{Payload, Payloads};
use crate::publisher::Publisher;
use gwctl_lifecycle::{Phase, Shutdown};
use gwctl_store::Store;
use gwctl_wire::Frame;
use gwctl_wire::compat::{SyncStatus, Version};
use gwctl_wire::v1::CpLink;
use gwctl_wire::v1::cp_link::{Command, Effect, Reason};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::Instant;

/// What every session of a control plane shares.
pub(crate) struct Shared {
    pub(crate) payloads: Payloads,
    pub(crate) fleet: Arc<FleetTable>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) own_version: Version,
    /// Longest frame in bytes (`cluster_max_payload`).
    pub(crate) limit: usize,
    /// Answers for data planes with protocol v2; None with `cluster_rpc` off.
    pub(crate) answers: Option<Arc<Answers>>,
    /// What data planes of our own sync are sent; None with `cluster_gwctl_sync` off.
    pub(crate) publisher: Option<Arc<Publisher>>,
}

struct Session<'a> {
    shared: &'a Shared,
    identity: &'a Identity,
    seat: &'a Seat,
    link: CpLink,
    start: Instant,
    writes: Outbox,
    payloads: Option<watch::Receiver<Option<Arc<Payload>>>>,
    /// The payload whose profile the link was given last.
    payload: Option<Arc<Payload>>,
    /// Why the newest payload was withheld, in words.
    detail: Option<String>,
    /// A ping came. Before that Kong's table has no row of a node that is withheld the configuration.
    pinged: bool,
}

/// Serves one upgraded connection to its end, or until the node stops.
pub(crate) async fn serve<S>(
    shared: &Shared,
    (identity, seat): (&Identity, &Seat),
    (stream, leftover): (S, Vec<u8>),
    shutdown: &Shutdown,
) where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (mut connection, writes) = Connection::open(stream, shared.limit, &leftover);
    let link = CpLink::new(std::time::Duration::ZERO, &identity.version, shared.own_version);
    let start = Instant::now();
    let mut session = Session {
        shared,
        identity,
        seat,
        link,
        start,
        writes,
        payloads: None,
        payload: None,
        detail: None,
        pinged: false,
    };
    let reason = session.run(&mut connection, shutdown).await;
    tracing::info!(node = identity.id, address = identity.ip, %reason, "data plane disconnected");
    drop(session);
    connection.close().await;
}

impl Session<'_> {
    fn now(&self) -> std::time::Duration {
        self.start.elapsed()
    }

    async fn run(&mut self, connection: &mut Connection, shutdown: &Shutdown) -> Reason {
        loop {
            while let Some(effect) = self.link.poll_effect() {
                if let Some(reason) = self.carry_out(effect).await {
                    return reason;
                }
            }
            let timeout = self.link.next_timeout().map(|at| self.start + at);
            tokio::select! {
                event = connection.event() => self.take(event),
                payload = next_payload(&mut self.payloads) => self.offer(payload),
                () = sleep_until(timeout) => self.link.handle_timeout(self.now()),
                () = shutdown.reached(Phase::Stop) => self.link.handle_command(self.now(), Command::Stop),
            }
        }
    }

    fn take(&mut self, event: Event) {
        let now = self.now();
        match event {
            Event::Frame(frame) => {
                self.pinged |= matches!(frame, Frame::Ping(_));
                self.link.handle_frame(now, frame);
            }
            Event::Written => self.link.handle_command(now, Command::Written),
            Event::Lost(words) => self.link.handle_lost(now, Reason::PeerLost(words)),
        }
    }

    fn offer(&mut self, payload: Arc<Payload>) {
        let profile = payload.profile.clone();
        self.payload = Some(payload);
        self.link.handle_command(self.now(), Command::Payload(profile));
    }

    /// Runs one effect; a reason ends the session.
    async fn carry_out(&mut self, effect: Effect) -> Option<Reason> {
        match effect {
            Effect::WantPayload { info } => {
                tracing::info!(
                    node = self.identity.id,
                    address = self.identity.ip,
                    version = self.identity.version,
                    plugins = info.plugins.len(),
                    "data plane joined"
                );
                let mut payloads = self.shared.payloads.subscribe();
                let first = payloads.borrow_and_update().clone();
                self.payloads = Some(payloads);
                // A node that joins is sent what the store holds now, not what was sent to others before.
                if let Some(first) = self.shared.payloads.at_version(first, self.shared.store.version()) {
                    self.offer(first);
                }
            }
            Effect::Send(frame) => self.write(frame).await,
            Effect::Push => self.push().await,
            Effect::Record(record) => {
                let detail = (record.sync_status != SyncStatus::Normal).then(|| self.detail.clone()).flatten();
                let listed = self.pinged || record.sync_status == SyncStatus::KongVersionIncompatible;
                self.shared.fleet.record(&self.identity.id, &record, detail, listed);
                self.shared.fleet.heard(self.seat);
            }
            Effect::Withhold(verdict) => {
                tracing::warn!(node = self.identity.id, %verdict, "configuration withheld from data plane");
                self.detail = Some(verdict.to_string());
            }
            Effect::HangUp(reason) => {
                self.writes.close();
                return Some(reason);
            }
        }
        None
    }

    async fn push(&mut self) {
        // The link asks for a push only after it was given a profile, hence a payload is there.
        let Some(payload) = self.payload.clone() else { return };
        let version = self.identity.version.clone();
        let variant = tokio::task::spawn_blocking(move || payload.for_version(&version)).await;
        match variant {
            Ok(Ok(bytes)) => self.write(Frame::Binary(bytes)).await,
            Ok(Err(error)) => self.lose(format!("cannot encode the configuration: {error}")),
            Err(error) => self.lose(format!("cannot encode the configuration: {error}")),
        }
    }

    async fn write(&mut self, frame: Frame) {
        if let Err(words) = self.writes.send(frame).await {
            self.lose(words);
        }
    }

    fn lose(&mut self, words: String) {
        self.link.handle_lost(self.now(), Reason::PeerLost(words));
    }
}

/// The next payload; waits for ever while none was asked for.
async fn next_payload(payloads: &mut Option<watch::Receiver<Option<Arc<Payload>>>>) -> Arc<Payload> {
    if let Some(payloads) = payloads {
        while payloads.changed().await.is_ok() {
            if let Some(payload) = payloads.borrow_and_update().clone() {
                return payload;
            }
        }
    }
    std::future::pending().await
}

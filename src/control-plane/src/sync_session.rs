//! Drives the v2 link of one connection of a data plane: moves frames, arms one timer, runs effects. It decides nothing
//! about the protocol.

use crate::answers::Answers;
use crate::calls::Questions;
use crate::connection::{Connection, Event, Outbox, sleep_until};
use crate::fleet::{Identity, Protocol};
use crate::listener::Presence;
use crate::session::Shared;
use gwctl_lifecycle::{Phase, Shutdown};
use gwctl_wire::v1::reconfigure::{DEFAULT_EXPANSION, Limits};
use gwctl_wire::v2::cp_link::{Command, Effect, Reason, Report, Settings};
use gwctl_wire::v2::{CpLink, Dialect, Hello, RpcError, sync};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// What the connection says of a data plane; the rest is in its hello.
pub(crate) struct Peer {
    pub(crate) ip: String,
    pub(crate) certificate_expires_at: Option<u64>,
    /// Why protocol v2 and no other.
    pub(crate) reason: &'static str,
}

/// An answer that was made off the session's thread.
type Made = (serde_json::Value, Result<Arc<str>, RpcError>);

struct Session<'a> {
    shared: &'a Shared,
    answers: &'a Arc<Answers>,
    peer: Peer,
    link: CpLink,
    start: Instant,
    writes: Outbox,
    made: mpsc::Sender<Made>,
    hello: Arc<Hello>,
    presence: Option<Presence<'a>>,
    questions: Questions<'a>,
}

/// Serves one upgraded connection to its end, or until the node stops.
pub(crate) async fn serve<S>(
    shared: &Shared,
    answers: &Arc<Answers>,
    peer: Peer,
    (stream, leftover): (S, Vec<u8>),
    shutdown: &Shutdown,
) where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (mut connection, writes) = Connection::open(stream, shared.limit, &leftover);
    let (made, mut answered) = mpsc::channel(16);
    let limits = Limits::new(shared.limit, DEFAULT_EXPANSION);
    let mut versions = answers.versions();
    let newest = *versions.borrow_and_update();
    let cluster_id = Some(answers.cluster_id());
    let (sync, limit, frame_limit) = (answers.sync(), limits.max_inflated, shared.limit);
    let settings = Settings { version: newest, sync, limit, frame_limit, cluster_id };
    let mut session = Session {
        shared,
        answers,
        peer,
        link: CpLink::new(Duration::ZERO, settings),
        start: Instant::now(),
        writes,
        made,
        hello: Arc::default(),
        presence: None,
        questions: Questions::default(),
    };
    let reason = loop {
        if let Some(reason) = session.run_effects().await {
            break reason;
        }
        let timeout = session.link.next_timeout().map(|at| session.start + at);
        tokio::select! {
            event = connection.event() => session.take(event),
            Some((id, outcome)) = answered.recv() => session.command(Command::Answer { id, outcome }),
            Ok(()) = versions.changed() => {
                let newest = *versions.borrow_and_update();
                shared.fleet.committed(newest);
                session.command(Command::NewVersion(newest));
            }
            (key, asked) = session.questions.next() => session.command(Command::Ask { key, asked }),
            () = sleep_until(timeout) => session.link.handle_timeout(session.now()),
            () = shutdown.reached(Phase::Stop) => session.command(Command::Stop),
        }
    };
    tracing::info!(node = session.hello.node_id, address = session.peer.ip, %reason, "data plane disconnected");
    drop(session);
    connection.close().await;
}

impl Session<'_> {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn command(&mut self, command: Command) {
        self.link.handle_command(self.now(), command);
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Frame(frame) => self.link.handle_frame(self.now(), frame),
            Event::Written => {}
            Event::Lost(words) => self.link.handle_lost(Reason::PeerLost(words)),
        }
    }

    /// Runs what is to be done; a reason ends the session.
    async fn run_effects(&mut self) -> Option<Reason> {
        while let Some(effect) = self.link.poll_effect() {
            match effect {
                Effect::Joined(hello) => self.join(hello),
                Effect::Send(frame) => {
                    if let Err(words) = self.writes.send(frame).await {
                        self.link.handle_lost(Reason::PeerLost(words));
                    }
                }
                Effect::Pull { id, version, dialect } => self.pull(id, version, dialect),
                Effect::Record(held) => self.shared.fleet.pulled(&self.hello.node_id, &held),
                Effect::Asked { key, outcome } => self.questions.answered(key, outcome),
                Effect::Refused(refusal) => {
                    let (node, fault) = (&self.hello.node_id, &refusal.fault);
                    tracing::warn!(
                        node,
                        version = refusal.version,
                        fault,
                        "data plane refused changes and serves on what it had"
                    );
                    self.shared.fleet.refused(node, refusal.fault);
                }
                Effect::Report(report) => self.report(&report),
                Effect::HangUp(reason) => {
                    self.writes.close();
                    return Some(reason);
                }
            }
        }
        None
    }

    fn join(&mut self, hello: Arc<Hello>) {
        tracing::info!(
            node = hello.node_id,
            address = self.peer.ip,
            version = hello.version,
            capabilities = hello.capabilities.join(","),
            "data plane joined by protocol v2"
        );
        if hello.offers(sync::CAPABILITY) && !self.link.notifiable() && !hello.falls_back() {
            tracing::warn!(
                node = hello.node_id,
                "data plane is sent no configuration: a Kong 3.9 with cluster_incremental_sync on uses nothing else, and it \
                 is off here; turn it on here, or off there"
            );
        }
        let identity = Identity {
            id: hello.node_id.clone(),
            hostname: hello.hostname.clone(),
            ip: self.peer.ip.clone(),
            version: hello.version.clone(),
            certificate_expires_at: self.peer.certificate_expires_at,
            protocol: if self.link.notifiable() { Protocol::V2 } else { Protocol::Calls },
            reason: self.peer.reason,
        };
        let presence = Presence::enter(self.shared, &identity);
        if presence.is_shown() {
            self.shared.fleet.said_hello(&hello);
        }
        self.presence = Some(presence);
        self.questions.open(self.shared.fleet.calls(), &hello.node_id);
        self.hello = hello;
    }

    /// Makes an answer on a thread where it may block, unless it is at hand. The link bounds how many are under way.
    fn pull(&mut self, id: serde_json::Value, version: u64, dialect: Dialect) {
        if let Some(answer) = self.answers.ready(version, dialect) {
            return self.command(Command::Answer { id, outcome: Ok(answer) });
        }
        let (answers, made) = (self.answers.clone(), self.made.clone());
        // Nobody waits for an answer whose connection has ended.
        tokio::task::spawn_blocking(move || _ = made.blocking_send((id, answers.since(version, dialect))));
    }

    fn report(&self, report: &Report) {
        let node = &self.hello.node_id;
        match report {
            Report::NotifyFailed(error) => tracing::warn!(node, %error, "data plane refused the news of a version"),
            Report::AnswerTooLong { actual, limit } => {
                tracing::error!(
                    node,
                    actual,
                    limit,
                    "configuration is too large for the cluster link; raise cluster_max_payload on all nodes"
                );
                let why = format!("the configuration takes {actual} bytes, more than cluster_max_payload = {limit}");
                self.shared.fleet.not_sent(node, why);
            }
            Report::NotifyUnanswered => tracing::warn!(node, "data plane did not answer the news of a version"),
        }
    }
}

//! Drives our own sync with one data plane: moves frames, arms one timer, runs effects. It decides nothing about the
//! protocol.

use crate::calls::Questions;
use crate::connection::{Connection, Event, Outbox, sleep_until};
use crate::fleet::{Identity, Protocol, Seat};
use crate::listener::Presence;
use crate::publisher::Publisher;
use crate::session::Shared;
use gwctl_lifecycle::{Phase, Shutdown};
use gwctl_wire::stream::cp::{Command, Effect, Fetched, Reason, Report, Settings, Start, Withheld};
use gwctl_wire::stream::{CpStream, HEARTBEAT, Hello};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// For each node of the fleet the time grows over which they are asked to come back after this node has stopped.
const RETURN_EACH: Duration = Duration::from_millis(5);
/// Bounds of that time: a restart takes about a second, and nobody should stay away for long.
const RETURN_WITHIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// What the connection says of a data plane; the rest is in its hello.
pub(crate) struct Peer {
    pub(crate) ip: String,
    pub(crate) certificate_expires_at: Option<u64>,
}

struct Session<'a> {
    shared: &'a Shared,
    publisher: &'a Arc<Publisher>,
    peer: Peer,
    link: CpStream,
    start: Instant,
    writes: Outbox,
    /// What was made off the session's thread.
    made: mpsc::Sender<Command>,
    hello: Arc<Hello>,
    verdict: Option<Withheld>,
    presence: Option<Presence<'a>>,
    seat: Seat,
    questions: Questions<'a>,
}

/// Serves one upgraded connection to its end. Dropping the future ends the connection.
pub(crate) async fn serve<S>(
    shared: &Shared,
    publisher: &Arc<Publisher>,
    peer: Peer,
    (stream, leftover): (S, Vec<u8>),
    shutdown: &Shutdown,
) where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (mut connection, writes) = Connection::open(stream, shared.limit, &leftover);
    let (made, mut answered) = mpsc::channel(4);
    let link = CpStream::new(Duration::ZERO, Settings { heartbeat: HEARTBEAT });
    let mut versions = publisher.versions();
    versions.mark_unchanged();
    let start = Instant::now();
    let (hello, verdict, presence, seat, questions) = Default::default();
    let mut session =
        Session { shared, publisher, peer, link, start, writes, made, hello, verdict, presence, seat, questions };
    let mut stopping = false;
    let reason = loop {
        if let Some(reason) = session.run_effects().await {
            break reason;
        }
        let timeout = session.link.next_timeout().map(|at| session.start + at);
        tokio::select! {
            event = connection.event() => session.take(event),
            Some(command) = answered.recv() => session.command(command),
            Ok(()) = versions.changed() => {
                let newest = *versions.borrow_and_update();
                session.take_version(newest);
            }
            (key, asked) = session.questions.next() => session.command(Command::Ask { key, asked }),
            () = sleep_until(timeout) => session.link.handle_timeout(session.now()),
            () = shutdown.reached(Phase::Drain), if !stopping => {
                stopping = true;
                let reconnect_after = session.return_after();
                session.command(Command::Stop { reconnect_after });
            }
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
            Event::Frame(frame) => self.link.handle_frame(self.now(), &frame),
            Event::Written => {}
            Event::Lost(words) => self.link.handle_lost(words),
        }
    }

    /// A plugin the node lacks may have come into use, or gone out of it, so the verdict comes first.
    fn take_version(&mut self, newest: u64) {
        if self.presence.is_some() {
            let verdict = self.publisher.judge(&self.hello);
            if verdict != self.verdict {
                self.take_verdict(verdict.clone());
                self.command(Command::Verdict(verdict));
            }
        }
        self.command(Command::Newest(newest));
    }

    fn take_verdict(&mut self, verdict: Option<Withheld>) {
        if let Some(withheld) = &verdict {
            let (node, error) = (&self.hello.node_id, &withheld.words);
            tracing::warn!(node, error, "configuration withheld from data plane");
        }
        let told = verdict.as_ref().map(|withheld| (withheld.status.as_str(), withheld.words.as_str()));
        self.shared.fleet.judged(&self.seat, told);
        self.verdict = verdict;
    }

    /// When this node should come back once the control plane has stopped: the fleet spreads over a time that grows with
    /// it.
    fn return_after(&self) -> Duration {
        let nodes = u32::try_from(self.shared.fleet.connected_nodes()).unwrap_or(u32::MAX);
        let within = RETURN_EACH.saturating_mul(nodes).clamp(RETURN_WITHIN.0, RETURN_WITHIN.1);
        let share = uuid::Uuid::new_v4().as_u128() % 1000;
        within.mul_f64(share as f64 / 1000.0)
    }

    /// Runs what is to be done; a reason ends the session.
    async fn run_effects(&mut self) -> Option<Reason> {
        while let Some(effect) = self.link.poll_effect() {
            let fleet = &self.shared.fleet;
            match effect {
                Effect::Send(frame) => {
                    if let Err(words) = self.writes.send(frame).await {
                        self.link.handle_lost(words);
                    }
                }
                Effect::Judge(hello) => self.judge(hello).await,
                Effect::Fetch { from } => self.fetch(from),
                Effect::Begin => {
                    let begun = self.publisher.begin();
                    self.command(Command::Begun(Ok(begun)));
                }
                Effect::Copy(cursor) => {
                    let (publisher, made) = (self.publisher.clone(), self.made.clone());
                    // Nobody waits for a piece whose connection has ended.
                    tokio::spawn(async move { _ = made.send(Command::Copied(publisher.copy(cursor).await)).await });
                }
                Effect::Alive => fleet.alive(&self.seat),
                Effect::Applied(applied) => fleet.applied(&self.seat, &applied),
                Effect::Refused(refused) => {
                    tracing::warn!(
                        node = self.hello.node_id,
                        version = refused.version,
                        serving = refused.serving,
                        entity = refused.entity,
                        id = refused.id,
                        error = refused.fault,
                        "data plane refused changes and serves on what it had"
                    );
                    fleet.refused_rows(&self.seat, &refused);
                }
                Effect::Report(report) => self.report(&report),
                Effect::Asked { key, outcome } => self.questions.answered(key, outcome),
                Effect::Left => fleet.says_goodbye(&self.seat),
                Effect::HangUp(reason) => {
                    self.writes.close();
                    return Some(reason);
                }
            }
        }
        None
    }

    /// Reads what the store knows of what the node holds.
    async fn judge(&mut self, hello: Arc<Hello>) {
        let (publisher, asked) = (self.publisher.clone(), hello.clone());
        let judged = publisher.in_turn(move |publisher| publisher.start(&asked)).await;
        let (newest, start) = match judged {
            Ok(Ok(start)) => start,
            Ok(Err(error)) => return self.link.handle_lost(format!("the store does not answer: {error}")),
            Err(error) => return self.link.handle_lost(format!("the store does not answer: {error}")),
        };
        tracing::info!(
            node = hello.node_id,
            address = self.peer.ip,
            version = hello.version,
            kong_version = hello.kong_version,
            plugins = hello.plugins.len(),
            held = hello.held.as_ref().map(|held| held.version),
            newest,
            "data plane joined by gwctl's own sync"
        );
        let identity = Identity {
            id: hello.node_id.clone(),
            hostname: hello.hostname.clone(),
            ip: self.peer.ip.clone(),
            version: hello.kong_version.clone(),
            certificate_expires_at: self.peer.certificate_expires_at,
            protocol: Protocol::Stream,
            reason: "both ends have cluster_gwctl_sync on",
        };
        let presence = Presence::enter(self.shared, &identity);
        self.seat = presence.seat.clone();
        self.presence = Some(presence);
        self.questions.open(self.shared.fleet.calls(), &hello.node_id);
        let plugins: Vec<String> = hello.plugins.iter().map(|plugin| plugin.name.clone()).collect();
        self.shared.fleet.introduced(&self.seat, &hello.labels, &plugins);
        self.hello = hello;
        if let Start::From(version) = &start {
            let digest = self.hello.held.as_ref().map(|held| held.digest.as_str()).unwrap_or_default();
            self.shared.fleet.holds(&self.seat, *version, digest);
        }
        let withheld = self.publisher.judge(&self.hello);
        self.take_verdict(withheld.clone());
        let store_id = self.publisher.store_id().to_owned();
        self.command(Command::Admit { store_id, newest, start, withheld });
    }

    /// Makes changes on a thread where it may block, unless they are at hand. The link asks for one at a time.
    fn fetch(&mut self, from: u64) {
        if let Some(outcome) = self.publisher.ready(from) {
            return self.command(Command::Fetched { from, outcome });
        }
        let (publisher, made) = (self.publisher.clone(), self.made.clone());
        // Nobody waits for changes whose connection has ended.
        tokio::spawn(async move {
            let fetched = publisher.in_turn(move |publisher| publisher.fetch(from)).await;
            _ = made.send(Command::Fetched { from, outcome: fetched.unwrap_or_else(Fetched::Failed) }).await;
        });
    }

    fn report(&self, report: &Report) {
        let node = &self.hello.node_id;
        match report {
            Report::Copying { why } => tracing::info!(node, why, "data plane is sent the whole configuration"),
            Report::Diverged { why } => {
                tracing::warn!(node, error = why, "data plane asks for the whole configuration");
                self.shared.fleet.diverged(&self.seat);
            }
            Report::NotMade { fault } => {
                tracing::error!(node, error = fault, "cannot make what the data plane lacks; trying again");
            }
        }
    }
}

//! The control plane's side of a v1 link: one machine for each connection.
//!
//! | state | input | next | effects, timers |
//! |---|---|---|---|
//! | awaiting info | basic info, version fits | vetting | want payload; no ping 45 s |
//! | awaiting info | basic info, version does not fit | closed | record the node; hang up |
//! | awaiting info | any other frame, timer info (5 s) | closed | hang up |
//! | awaiting info | payload | awaiting info | nothing: it is asked for later |
//! | vetting | payload | live | vet; push |
//! | vetting | no payload | live | answer the pings so far |
//! | live | payload | live | push, once the writer is free; only the newest |
//! | vetting, live | ping of 32 bytes | same | record the node; pong behind a pending push; no ping 45 s |
//! | vetting, live | any other frame, timer ping | closed | hang up |
//! | any but closed | lost, close frame, stop | closed | hang up; nothing after |
//!
//! Vetting is the check of section "configured plugins" against the newest payload, before every push: a node that
//! fails it keeps its connection and is sent nothing. One write is under way at a time; the driver says when it is
//! done ([`Command::Written`]). What waits behind it is a marker "push" and a number of pongs, never a payload.

use crate::compat::{self, PayloadProfile, SyncStatus, Version};
use crate::v1::BasicInfo;
use crate::{ConfigHash, Frame, Moment};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

mod effects;
#[cfg(test)]
mod tests;

pub use effects::{Command, Effect, NodeRecord, Reason};

/// Longest wait for the first frame.
///
/// Source: Kong 3.9.1, receive timeout of the cluster socket.
pub const INFO_LIMIT: Duration = Duration::from_secs(5);

/// Longest time between two pings before a control plane gives a data plane up.
///
/// Source: Kong 3.9.1 `kong/clustering/control_plane.lua`, `PING_WAIT`.
pub const PING_LIMIT: Duration = Duration::from_secs(45);

/// Pongs that may wait behind a write. A node pings every 30 s and after each apply, so more is a flood.
pub const PONG_LIMIT: u32 = 256;

/// The machine's timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// The basic info is late.
    Info,
    /// The ping is late.
    Ping,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    AwaitingInfo { until: Moment },
    Vetting { silent_at: Moment },
    Live { silent_at: Moment },
    Closed,
}

enum Input {
    Frame(Frame),
    Lost(Reason),
    Due(Timer),
    Payload(Arc<PayloadProfile>),
    NoPayload,
    Written,
    Stop,
}

/// What is to be written next. A queue holds at most one push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    Push,
    Pongs(u32),
}

/// Something that holds of a link between any two inputs: its name, and whether it does.
pub type Invariant = (&'static str, fn(&CpLink) -> bool);

/// Everything that holds of a link between any two inputs.
pub const INVARIANTS: &[Invariant] = &[
    ("a timer runs until the link is closed", |link| link.next_timeout().is_some() != link.is_closed()),
    ("at most one push waits", |link| link.queue.iter().filter(|marker| **marker == Marker::Push).count() <= 1),
    ("the pongs that wait are bounded", |link| link.waiting_pongs() <= PONG_LIMIT),
    ("nothing waits while a live link's writer is free", |link| {
        !link.is_live() || link.writing || link.queue.is_empty()
    }),
    ("nothing is written before the node is accepted", |link| {
        !link.writing || matches!(link.state, State::Live { .. } | State::Closed)
    }),
    ("a closed link has nothing to write", |link| !link.is_closed() || link.queue.is_empty()),
    ("a node whose version does not fit is not served", |link| {
        link.status != SyncStatus::KongVersionIncompatible || link.is_closed()
    }),
];

/// The control plane's side of a v1 link; see the module for its table.
#[derive(Debug)]
pub struct CpLink {
    node_version: String,
    own_version: Version,
    state: State,
    info: Arc<BasicInfo>,
    profile: Option<Arc<PayloadProfile>>,
    status: SyncStatus,
    hash: ConfigHash,
    queue: VecDeque<Marker>,
    writing: bool,
    effects: VecDeque<Effect>,
}

impl CpLink {
    /// A machine for a connection that was upgraded just `now`.
    ///
    /// `node_version` is the text of the request's argument; `own_version` the version this control plane stands for.
    pub fn new(now: Moment, node_version: &str, own_version: Version) -> Self {
        Self {
            node_version: node_version.to_owned(),
            own_version,
            state: State::AwaitingInfo { until: now + INFO_LIMIT },
            info: Arc::default(),
            profile: None,
            status: SyncStatus::Unknown,
            hash: ConfigHash::zero(),
            queue: VecDeque::new(),
            writing: false,
            effects: VecDeque::new(),
        }
    }

    /// A frame came.
    pub fn handle_frame(&mut self, now: Moment, frame: Frame) {
        self.step(now, Input::Frame(frame));
    }

    /// The connection broke.
    pub fn handle_lost(&mut self, now: Moment, reason: Reason) {
        self.step(now, Input::Lost(reason));
    }

    /// The moment of [`CpLink::next_timeout`] has come; harmless when it has not.
    pub fn handle_timeout(&mut self, now: Moment) {
        if let Some((at, timer)) = self.next_timer()
            && at <= now
        {
            self.step(now, Input::Due(timer));
        }
    }

    /// The control plane wants something.
    pub fn handle_command(&mut self, now: Moment, command: Command) {
        self.step(
            now,
            match command {
                Command::Payload(profile) => Input::Payload(profile),
                Command::NoPayload => Input::NoPayload,
                Command::Written => Input::Written,
                Command::Stop => Input::Stop,
            },
        );
    }

    /// The next thing to do; None when all is done until the next input.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When [`CpLink::handle_timeout`] is due; None: no timer runs.
    pub fn next_timeout(&self) -> Option<Moment> {
        self.next_timer().map(|(at, _)| at)
    }

    /// Whether the link has ended; it does nothing any more.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Whether the node passed the checks and is kept up to date.
    pub fn is_live(&self) -> bool {
        matches!(self.state, State::Live { .. })
    }

    /// The status as the next record will carry it.
    pub fn sync_status(&self) -> SyncStatus {
        self.status
    }

    /// The name of an invariant that does not hold; None is the only right answer.
    pub fn broken_invariant(&self) -> Option<&'static str> {
        INVARIANTS.iter().find(|(_, holds)| !holds(self)).map(|(name, _)| *name)
    }

    fn next_timer(&self) -> Option<(Moment, Timer)> {
        match self.state {
            State::AwaitingInfo { until } => Some((until, Timer::Info)),
            State::Vetting { silent_at } | State::Live { silent_at } => Some((silent_at, Timer::Ping)),
            State::Closed => None,
        }
    }

    /// The table of the module comment.
    fn step(&mut self, now: Moment, input: Input) {
        match (&mut self.state, input) {
            (State::AwaitingInfo { .. } | State::Vetting { .. } | State::Live { .. }, Input::Frame(Frame::Close)) => {
                self.hang_up(Reason::PeerClosed);
            }
            (State::AwaitingInfo { .. } | State::Vetting { .. } | State::Live { .. }, Input::Lost(reason)) => {
                self.hang_up(reason);
            }
            (State::AwaitingInfo { .. } | State::Vetting { .. } | State::Live { .. }, Input::Stop) => {
                self.hang_up(Reason::Stopped);
            }

            (State::AwaitingInfo { .. }, Input::Frame(frame)) => self.take_info(now, &frame),
            (State::AwaitingInfo { .. }, Input::Due(Timer::Info)) => self.hang_up(Reason::PeerSlow),

            (State::Vetting { silent_at } | State::Live { silent_at }, Input::Frame(frame)) => {
                *silent_at = now + PING_LIMIT;
                self.take_ping(&frame);
            }
            (State::Vetting { .. } | State::Live { .. }, Input::Due(Timer::Ping)) => self.hang_up(Reason::PeerSilent),
            (State::Vetting { silent_at } | State::Live { silent_at }, Input::Payload(profile)) => {
                self.state = State::Live { silent_at: *silent_at };
                self.profile = Some(profile);
                self.queue_push();
            }
            (State::Vetting { silent_at }, Input::NoPayload) => {
                self.state = State::Live { silent_at: *silent_at };
                self.write_next();
            }
            (State::Live { .. }, Input::Written) => {
                self.writing = false;
                self.write_next();
            }

            // Nothing is written before the node is live, nothing is wanted of one that is.
            (State::AwaitingInfo { .. }, Input::Payload(_) | Input::NoPayload | Input::Written)
            | (State::Vetting { .. }, Input::Written)
            | (State::Live { .. }, Input::NoPayload)
            // Timers of other states: `next_timer` never names them.
            | (State::AwaitingInfo { .. }, Input::Due(Timer::Ping))
            | (State::Vetting { .. } | State::Live { .. }, Input::Due(Timer::Info)) => {}

            (
                State::Closed,
                Input::Frame(_)
                | Input::Lost(_)
                | Input::Due(_)
                | Input::Payload(_)
                | Input::NoPayload
                | Input::Written
                | Input::Stop,
            ) => {}
        }
    }

    fn take_info(&mut self, now: Moment, frame: &Frame) {
        match BasicInfo::decode(frame) {
            Ok(info) => self.info = Arc::new(info),
            Err(error) => return self.hang_up(error.into()),
        }
        if let Err(error) = compat::check_version(&self.node_version, &self.own_version) {
            self.status = SyncStatus::KongVersionIncompatible;
            self.record();
            return self.hang_up(error.into());
        }
        self.effects.push_back(Effect::WantPayload { info: Arc::clone(&self.info) });
        self.state = State::Vetting { silent_at: now + PING_LIMIT };
    }

    /// Kong looks at the length of the payload first, at the kind of the frame second.
    fn take_ping(&mut self, frame: &Frame) {
        let (Frame::Binary(payload) | Frame::Text(payload) | Frame::Ping(payload) | Frame::Pong(payload)) = frame
        else {
            return self.hang_up(Reason::PeerClosed);
        };
        let Some(hash) = ConfigHash::from_ping(payload) else {
            return self.hang_up(Reason::PeerBadHash { kind: frame.kind(), length: payload.len() });
        };
        if !matches!(frame, Frame::Ping(_)) {
            return self.hang_up(Reason::PeerFrameKind { actual: frame.kind() });
        }
        self.hash = hash;
        self.record();
        self.queue_pong();
    }

    fn record(&mut self) {
        self.effects.push_back(Effect::Record(NodeRecord {
            sync_status: self.status,
            config_hash: self.hash.clone(),
            info: Arc::clone(&self.info),
        }));
    }

    /// The payload is taken when the push is written, so one marker stands for all changes until then.
    fn queue_push(&mut self) {
        if !self.queue.contains(&Marker::Push) {
            self.queue.push_back(Marker::Push);
        }
        self.write_next();
    }

    fn queue_pong(&mut self) {
        if self.waiting_pongs() >= PONG_LIMIT {
            return self.hang_up(Reason::PeerFlood);
        }
        match self.queue.back_mut() {
            Some(Marker::Pongs(count)) => *count += 1,
            Some(Marker::Push) | None => self.queue.push_back(Marker::Pongs(1)),
        }
        self.write_next();
    }

    fn waiting_pongs(&self) -> u32 {
        self.queue.iter().map(|marker| if let Marker::Pongs(count) = marker { *count } else { 0 }).sum()
    }

    fn write_next(&mut self) {
        while self.is_live() && !self.writing {
            match self.queue.pop_front() {
                None => return,
                Some(Marker::Push) => self.push(),
                Some(Marker::Pongs(count)) => {
                    if count > 1 {
                        self.queue.push_front(Marker::Pongs(count - 1));
                    }
                    self.writing = true;
                    self.effects.push_back(Effect::Send(Frame::Pong(Bytes::new())));
                }
            }
        }
    }

    /// Vets the newest payload for this node and writes it, or withholds it and says why.
    fn push(&mut self) {
        let Some(profile) = &self.profile else { return };
        let verdict = compat::vet(profile, &self.info, &self.node_version);
        let status = verdict.status();
        let changed = status != self.status;
        // A recovery, and the first verdict that is good, is stored at the next ping.
        self.status = status;
        if verdict.allows_push() {
            self.writing = true;
            self.effects.push_back(Effect::Push);
            return;
        }
        // The reason comes before the status it explains.
        self.effects.push_back(Effect::Withhold(verdict));
        if changed && status != SyncStatus::Normal {
            self.record();
        }
    }

    fn hang_up(&mut self, reason: Reason) {
        self.state = State::Closed;
        self.queue.clear();
        self.effects.push_back(Effect::HangUp(reason));
    }
}

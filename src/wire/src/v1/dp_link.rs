//! The data plane's side of a v1 link.
//!
//! | state | input | next | effects, timers |
//! |---|---|---|---|
//! | idle, waiting | start, timer redial | dialing | dial; dial limit 15 s |
//! | dialing | diverted | diverted | none: another protocol has the connection ([`crate::stream`]) |
//! | diverted | served | diverted | forget failures |
//! | diverted | lost, left | waiting | hang up; redial, after a farewell when the peer asked to |
//! | dialing | opened | live | send basic info; ping; ping 30 s; silence 45 s |
//! | live | timer ping | live | ping with the hash in force (32 zeros when none); ping 30 s |
//! | live | any frame but close | live | silence 45 s; a payload replaces the one pending; apply it if none is being applied |
//! | live | applied, unchanged | live | take the new hash; apply what is pending, else ping at once |
//! | live | refused, skipped | live | keep the old hash, report; apply what is pending |
//! | live | undecodable, not stored | waiting | hang up, report; redial |
//! | dialing, live | lost, close frame, timer dial, timer silence | waiting | hang up; redial |
//! | idle, dialing, waiting | outcome of an apply | same | take the hash; apply what is pending |
//! | any but closed | stop | closed | hang up; nothing after |
//!
//! An apply outlives its link: a payload that came is worth serving even if the control plane is gone by then. What
//! makes no sense in a state (a frame while waiting, say: it was on its way when the link was given up) changes nothing.

use crate::backoff::Backoff;
use crate::{ConfigHash, Frame, Moment};
use bytes::Bytes;
use std::collections::VecDeque;
use std::time::Duration;

mod effects;
#[cfg(test)]
mod tests;

pub use effects::{Command, Effect, Outcome, Reason, Report, Settings};

/// Time between two pings.
///
/// Source: Kong 3.9.1 `kong/constants.lua`, `CLUSTERING_PING_INTERVAL`.
pub const PING_INTERVAL: Duration = Duration::from_secs(30);

/// Longest silence from the control plane before a data plane gives the link up.
///
/// 45 s is one and a half ping intervals: a pong may come half an interval late, a lost one ends the link.
/// Any frame resets it. Kong itself notices 45 to 50 s after the last frame, at the end of its 5 s receive timeout.
/// Source: Kong 3.9.1 `kong/clustering/data_plane.lua`, `PING_WAIT`.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(45);

/// Longest time from dialing to the answered upgrade; Kong allows 5 s each for connect, handshake and upgrade.
pub const DIAL_LIMIT: Duration = Duration::from_secs(15);

/// The machine's timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// Time to dial again.
    Redial,
    /// The dial has taken too long.
    Dial,
    /// Time to ping.
    Ping,
    /// The control plane has been silent for too long.
    Silence,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Idle,
    Dialing {
        until: Moment,
    },
    Live {
        ping_at: Moment,
        silent_at: Moment,
    },
    /// Another protocol has the connection until it is lost.
    Diverted,
    Waiting {
        until: Moment,
    },
    Closed,
}

enum Input {
    Start,
    Opened,
    Diverted,
    Served,
    Frame(Frame),
    Lost(Reason),
    Due(Timer),
    Applied(Outcome),
    Stop,
}

/// Something that holds of a link between any two inputs: its name, and whether it does.
pub type Invariant = (&'static str, fn(&DpLink) -> bool);

/// Everything that holds of a link between any two inputs.
pub const INVARIANTS: &[Invariant] = &[
    ("a timer runs from start to stop, but while diverted", |link| {
        link.next_timeout().is_none() == matches!(link.state, State::Idle | State::Diverted | State::Closed)
    }),
    ("a payload waits only behind another", |link| link.pending.is_none() || link.applying.is_some()),
    ("a stopped link keeps no payload", |link| !link.is_closed() || link.pending.is_none()),
    ("the address dialed is one of the list", |link| link.control_plane < link.settings.control_planes.max(1)),
    ("a round ends with the last address", |link| link.failed_in_round < link.settings.control_planes.max(1)),
    ("a ping is never further off than its interval", |link| match link.state {
        State::Live { ping_at, silent_at } => ping_at <= silent_at + PING_INTERVAL,
        State::Idle | State::Dialing { .. } | State::Diverted | State::Waiting { .. } | State::Closed => true,
    }),
];

/// The data plane's side of a v1 link; see the module for its table.
#[derive(Debug)]
pub struct DpLink {
    settings: Settings,
    state: State,
    /// Index of the control plane dialed last or next.
    control_plane: usize,
    /// Addresses of this round that failed.
    failed_in_round: usize,
    /// Since when another protocol works on this connection.
    served_at: Option<Moment>,
    backoff: Backoff,
    hash: ConfigHash,
    /// Newest payload not yet handed out.
    pending: Option<Bytes>,
    /// Number of the connection whose payload is being applied.
    applying: Option<u64>,
    /// The hash in force has not been told yet: of payloads that come in a row only the last one's is.
    owes_ping: bool,
    /// Number of the connection, counted from 1.
    connection: u64,
    effects: VecDeque<Effect>,
}

impl DpLink {
    /// A machine at rest; [`Command::Start`] makes it dial.
    pub fn new(settings: Settings) -> Self {
        Self {
            state: State::Idle,
            control_plane: 0,
            failed_in_round: 0,
            served_at: None,
            backoff: Backoff::new(settings.seed),
            hash: settings.hash.clone(),
            pending: None,
            applying: None,
            owes_ping: false,
            connection: 0,
            effects: VecDeque::new(),
            settings,
        }
    }

    /// The upgrade was answered with 101.
    pub fn handle_opened(&mut self, now: Moment) {
        self.step(now, Input::Opened);
    }

    /// The upgrade was answered with 101, and another protocol was agreed on: the connection is its until
    /// [`DpLink::handle_lost`].
    pub fn handle_diverted(&mut self, now: Moment) {
        self.step(now, Input::Diverted);
    }

    /// The other protocol works: the control plane is a good one.
    pub fn handle_served(&mut self, now: Moment) {
        self.step(now, Input::Served);
    }

    /// Another protocol has put a configuration with this hash in force.
    pub fn set_hash(&mut self, hash: ConfigHash) {
        self.hash = hash;
    }

    /// A frame came.
    pub fn handle_frame(&mut self, now: Moment, frame: Frame) {
        self.step(now, Input::Frame(frame));
    }

    /// The dial failed or the connection broke.
    pub fn handle_lost(&mut self, now: Moment, reason: Reason) {
        self.step(now, Input::Lost(reason));
    }

    /// The moment of [`DpLink::next_timeout`] has come; harmless when it has not.
    pub fn handle_timeout(&mut self, now: Moment) {
        if let Some((at, timer)) = self.next_timer()
            && at <= now
        {
            self.step(now, Input::Due(timer));
        }
    }

    /// The node wants something.
    pub fn handle_command(&mut self, now: Moment, command: Command) {
        self.step(
            now,
            match command {
                Command::Start => Input::Start,
                Command::Applied(outcome) => Input::Applied(outcome),
                Command::Stop => Input::Stop,
            },
        );
    }

    /// The next thing to do; None when all is done until the next input.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When [`DpLink::handle_timeout`] is due; None: no timer runs.
    pub fn next_timeout(&self) -> Option<Moment> {
        self.next_timer().map(|(at, _)| at)
    }

    /// The hash in force, as the next ping will carry it.
    pub fn hash(&self) -> &ConfigHash {
        &self.hash
    }

    /// Whether the control plane can be heard.
    pub fn is_live(&self) -> bool {
        matches!(self.state, State::Live { .. })
    }

    /// Whether the machine has been stopped; it does nothing any more.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// The name of an invariant that does not hold; None is the only right answer.
    pub fn broken_invariant(&self) -> Option<&'static str> {
        INVARIANTS.iter().find(|(_, holds)| !holds(self)).map(|(name, _)| *name)
    }

    fn next_timer(&self) -> Option<(Moment, Timer)> {
        match self.state {
            State::Idle | State::Diverted | State::Closed => None,
            State::Waiting { until } => Some((until, Timer::Redial)),
            State::Dialing { until } => Some((until, Timer::Dial)),
            State::Live { ping_at, silent_at } => Some((ping_at, Timer::Ping)).min(Some((silent_at, Timer::Silence))),
        }
    }

    /// The table of the module comment.
    fn step(&mut self, now: Moment, input: Input) {
        match (&mut self.state, input) {
            (State::Idle, Input::Start) | (State::Waiting { .. }, Input::Due(Timer::Redial)) => self.dial(now),

            (State::Dialing { .. }, Input::Opened) => self.open(now),
            (State::Dialing { .. }, Input::Diverted) => {
                self.state = State::Diverted;
                // What the connection before still brought is overtaken.
                self.pending = None;
            }
            (State::Diverted, Input::Served) => {
                self.failed_in_round = 0;
                self.served_at = Some(now);
            }
            (State::Dialing { .. } | State::Live { .. } | State::Diverted, Input::Lost(reason)) => {
                self.give_up(now, reason);
            }
            (State::Dialing { .. }, Input::Due(Timer::Dial)) => self.give_up(now, Reason::PeerSlow),

            (State::Live { .. }, Input::Due(Timer::Ping)) => {
                self.forget_failures();
                self.ping(now);
            }
            (State::Live { .. }, Input::Due(Timer::Silence)) => self.give_up(now, Reason::PeerSilent),
            (State::Live { .. }, Input::Frame(Frame::Close)) => self.give_up(now, Reason::PeerClosed),
            (State::Live { silent_at, .. }, Input::Frame(frame)) => {
                *silent_at = now + SILENCE_LIMIT;
                self.take_frame(frame);
            }

            (
                State::Idle
                | State::Dialing { .. }
                | State::Live { .. }
                | State::Diverted
                | State::Waiting { .. },
                Input::Applied(outcome),
            ) => self.conclude(now, outcome),
            (
                State::Idle
                | State::Dialing { .. }
                | State::Live { .. }
                | State::Diverted
                | State::Waiting { .. },
                Input::Stop,
            ) => self.stop(),

            // Begun already.
            (
                State::Dialing { .. } | State::Live { .. } | State::Diverted | State::Waiting { .. },
                Input::Start,
            )
            // Late news of a connection given up, or too early ones.
            | (
                State::Idle | State::Waiting { .. },
                Input::Opened | Input::Diverted | Input::Served | Input::Frame(_) | Input::Lost(_),
            )
            | (State::Dialing { .. }, Input::Frame(_) | Input::Served)
            | (State::Live { .. }, Input::Opened | Input::Diverted | Input::Served)
            // Frames of a diverted connection are not this machine's.
            | (State::Diverted, Input::Opened | Input::Diverted | Input::Frame(_))
            // Timers of other states: `next_timer` never names them.
            | (State::Idle | State::Diverted, Input::Due(_))
            | (State::Waiting { .. }, Input::Due(Timer::Dial | Timer::Ping | Timer::Silence))
            | (State::Dialing { .. }, Input::Due(Timer::Redial | Timer::Ping | Timer::Silence))
            | (State::Live { .. }, Input::Due(Timer::Redial | Timer::Dial)) => {}

            (
                State::Closed,
                Input::Start
                | Input::Opened
                | Input::Diverted
                | Input::Served
                | Input::Frame(_)
                | Input::Lost(_)
                | Input::Due(_)
                | Input::Applied(_)
                | Input::Stop,
            ) => {}
        }
    }

    fn dial(&mut self, now: Moment) {
        self.state = State::Dialing { until: now + DIAL_LIMIT };
        self.effects.push_back(Effect::Dial { control_plane: self.control_plane });
    }

    fn open(&mut self, now: Moment) {
        self.connection += 1;
        self.state = State::Live { ping_at: now, silent_at: now + SILENCE_LIMIT };
        self.effects.push_back(Effect::Report(Report::Connected { control_plane: self.control_plane }));
        self.effects.push_back(Effect::Send(Frame::Binary(self.settings.basic_info.clone())));
        self.ping(now);
    }

    /// Sends a ping with the hash in force and winds up the next one.
    fn ping(&mut self, now: Moment) {
        let State::Live { ping_at, .. } = &mut self.state else { return };
        *ping_at = now + PING_INTERVAL;
        self.owes_ping = false;
        let payload = Bytes::copy_from_slice(self.hash.as_str().as_bytes());
        self.effects.push_back(Effect::Send(Frame::Ping(payload)));
    }

    fn take_frame(&mut self, frame: Frame) {
        match frame {
            Frame::Binary(payload) => {
                self.pending = Some(payload);
                self.apply_pending();
            }
            Frame::Pong(_) | Frame::Close => {}
            Frame::Text(_) | Frame::Ping(_) => {
                self.effects.push_back(Effect::Report(Report::Ignored { kind: frame.kind() }));
            }
        }
    }

    fn apply_pending(&mut self) {
        if self.applying.is_some() {
            return;
        }
        if let Some(payload) = self.pending.take() {
            self.applying = Some(self.connection);
            self.effects.push_back(Effect::Apply { payload, in_force: self.hash.clone() });
        }
    }

    fn conclude(&mut self, now: Moment, outcome: Outcome) {
        let Some(connection) = self.applying.take() else { return };
        if !matches!(outcome, Outcome::Undecodable(_) | Outcome::NotStored(_)) && self.is_live() {
            self.forget_failures();
        }
        match outcome {
            Outcome::Applied(hash) => {
                self.hash = hash.clone();
                self.effects.push_back(Effect::Report(Report::Applied { hash }));
                self.owes_ping = true;
            }
            Outcome::Unchanged => self.owes_ping = true,
            Outcome::Skipped => {}
            Outcome::Refused(fault) => self.effects.push_back(Effect::Report(Report::Refused { fault })),
            // The peer that sent it is not to be trusted; one that came later is not to be blamed.
            Outcome::Undecodable(fault) if self.is_live() && connection == self.connection => {
                self.pending = None;
                self.give_up(now, Reason::PeerUndecodable(fault));
            }
            Outcome::NotStored(fault) if self.is_live() && connection == self.connection => {
                self.pending = None;
                self.effects.push_back(Effect::Report(Report::Refused { fault: fault.clone() }));
                self.give_up(now, Reason::IoNotStored(fault));
            }
            Outcome::Undecodable(fault) | Outcome::NotStored(fault) => {
                self.effects.push_back(Effect::Report(Report::Refused { fault }));
            }
        }
        self.apply_pending();
        if self.owes_ping && self.applying.is_none() {
            self.ping(now);
        }
    }

    /// The control plane proved good: it sent something readable, or kept the link for a whole ping interval. Being
    /// reached is not enough, or a node that is refused after each upgrade would come back for ever at full pace.
    fn forget_failures(&mut self) {
        self.backoff.reset();
        self.failed_in_round = 0;
    }

    fn give_up(&mut self, now: Moment, reason: Reason) {
        self.effects.push_back(Effect::HangUp(reason.clone()));
        if let Some(at) = self.served_at.take() {
            self.backoff.worked(now.saturating_sub(at));
        }
        let failed = self.control_plane;
        self.control_plane = (failed + 1) % self.settings.control_planes.max(1);
        self.failed_in_round += 1;
        let retry_in = if let Reason::PeerLeft { reconnect_after } = reason {
            self.failed_in_round = 0;
            self.backoff.after_farewell(reconnect_after)
        } else if self.failed_in_round < self.settings.control_planes {
            self.backoff.next_address()
        } else {
            self.failed_in_round = 0;
            self.backoff.next_round()
        };
        self.state = State::Waiting { until: now + retry_in };
        self.effects.push_back(Effect::Report(Report::Disconnected { control_plane: failed, reason, retry_in }));
    }

    fn stop(&mut self) {
        if matches!(self.state, State::Dialing { .. } | State::Live { .. } | State::Diverted) {
            self.effects.push_back(Effect::HangUp(Reason::Stopped));
        }
        self.state = State::Closed;
        self.pending = None;
    }
}

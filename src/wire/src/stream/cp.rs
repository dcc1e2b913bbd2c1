//! The control plane's end: one machine for each connection.
//!
//! | state | input | next | effects, timers |
//! |---|---|---|---|
//! | awaiting hello | hello | judging | judge it |
//! | awaiting hello | other message, timer hello (10 s) | closed | hang up |
//! | judging | admission | serving | welcome; go on |
//! | serving | new version, report, piece taken, verdict | serving | go on |
//! | serving | refusal | serving | go on from what the node serves, with a later version than the one refused |
//! | serving | copy wanted | serving | copy, at most one each 5 s |
//! | serving | verdict that withholds | serving | tell once; send nothing more |
//! | serving | question from above | serving | ask |
//! | serving | answer, or none for 5 s | serving | asked |
//! | any but closed | any frame | same | silence 4 heartbeats |
//! | any but closed | goodbye | closed | left, hang up |
//! | any but closed | undecodable frame, close frame, lost, timer silence | closed | hang up |
//! | any but closed | stop | closed | goodbye, hang up; nothing after |
//!
//! To go on is: nothing while withheld or while something is being made; a copy if one is due; else, while the window
//! has room, the changes behind the last version sent. What is committed while the window is full is joined.

use super::message::{FromCp, FromDp, Refused};
use super::{CHANGES_WINDOW, HELLO_LIMIT, Heard, LOST_BEATS, PIECES_WINDOW};
use crate::v2::log_level::Asked;
use crate::v2::{CALL_LIMIT, RpcError};
use crate::{Frame, Moment};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

mod commands;
mod effects;
mod making;
#[cfg(test)]
mod tests;

pub use commands::{Command, Copied, Fetched, Start, Withheld};
pub use effects::{Cursor, Effect, Reason, Report};

/// Copies in a row that the log overtook, after which the link is given up.
const COPIES_OVERTAKEN: u32 = 5;

pub use crate::v2::cp_link::ASKED_LIMIT;

/// What the machine is told at its making.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Time between two pings of the node.
    pub heartbeat: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    AwaitingHello { until: Moment },
    Judging,
    Serving,
    Closed,
}

/// What is being made for the node.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Making {
    Nothing,
    Changes {
        from: u64,
    },
    Beginning,
    Piece,
    /// The copy waits for its window.
    Waiting(Cursor),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Hello,
    Silence,
    GoOn,
    /// The question with this key is not answered.
    Asked(u64),
}

/// Something that holds between any two inputs: its name, and whether it does.
pub type Invariant = (&'static str, fn(&CpStream) -> bool);

/// Everything that holds between any two inputs.
pub const INVARIANTS: &[Invariant] = &[
    ("a timer runs until the link is closed", |link| link.next_timeout().is_some() != link.is_closed()),
    ("the windows are kept", |link| link.unanswered.len() <= CHANGES_WINDOW + 2 && link.untaken <= PIECES_WINDOW),
    ("nothing is made for a node that is not served", |link| {
        link.state == State::Serving || link.making == Making::Nothing
    }),
    ("a node that can be sent something is", |link| !link.is_stuck()),
    ("questions wait for a node that is served, and not too many", |link| {
        link.asking.is_empty() || link.state == State::Serving && link.asking.len() <= ASKED_LIMIT
    }),
];

/// The control plane's end of a link; see the module for its table.
#[derive(Debug)]
pub struct CpStream {
    settings: Settings,
    state: State,
    heard: Heard,
    newest: u64,
    /// Version the node has once everything sent has arrived; None: it needs a copy.
    sent: Option<u64>,
    /// Versions sent and not answered.
    unanswered: VecDeque<u64>,
    /// Why a copy is due.
    copy_due: Option<String>,
    /// No copy begins before.
    copy_at: Moment,
    /// Pieces of the copy sent and not taken.
    untaken: usize,
    overtaken: u32,
    making: Making,
    /// What is being made is of no use any more.
    stale: bool,
    /// Versions up to this one were refused.
    refused: Option<u64>,
    /// Nothing is sent before.
    wait_until: Option<Moment>,
    withheld: Option<Withheld>,
    /// Until when the answers of questions are waited for, by key.
    asking: BTreeMap<u64, Moment>,
    effects: VecDeque<Effect>,
}

impl CpStream {
    /// A machine for a connection that was upgraded just `now`.
    pub fn new(now: Moment, settings: Settings) -> Self {
        Self {
            settings,
            state: State::AwaitingHello { until: now + HELLO_LIMIT },
            heard: Heard { at: now, heartbeat: settings.heartbeat },
            newest: 0,
            sent: None,
            unanswered: VecDeque::new(),
            copy_due: None,
            copy_at: now,
            untaken: 0,
            overtaken: 0,
            making: Making::Nothing,
            stale: false,
            refused: None,
            wait_until: None,
            withheld: None,
            asking: BTreeMap::new(),
            effects: VecDeque::new(),
        }
    }

    /// A frame came.
    pub fn handle_frame(&mut self, now: Moment, frame: &Frame) {
        if self.is_closed() {
            return;
        }
        self.heard.at = now;
        match frame {
            Frame::Close => return self.hang_up(Reason::PeerClosed),
            Frame::Ping(payload) => self.effects.push_back(Effect::Send(Frame::Pong(payload.clone()))),
            Frame::Pong(_) => {}
            Frame::Binary(_) | Frame::Text(_) => match FromDp::decode(frame) {
                Ok(message) => self.take(now, message),
                Err(error) => return self.hang_up(error.into()),
            },
        }
        if self.state == State::Serving {
            self.effects.push_back(Effect::Alive);
        }
    }

    /// The connection broke.
    pub fn handle_lost(&mut self, words: String) {
        self.hang_up(Reason::PeerLost(words));
    }

    /// The moment of [`CpStream::next_timeout`] has come; harmless when it has not.
    pub fn handle_timeout(&mut self, now: Moment) {
        let Some((_, timer)) = self.next_timer().filter(|(at, _)| *at <= now) else { return };
        match timer {
            Timer::Hello => self.hang_up(Reason::PeerSlow),
            Timer::Silence => self.hang_up(Reason::PeerSilent(self.heard.heartbeat * LOST_BEATS)),
            Timer::GoOn => self.go_on(now),
            Timer::Asked(key) => {
                let why = format!("no answer from the data plane within {} s", CALL_LIMIT.as_secs());
                self.answered(key, Err(RpcError::failed(why)));
            }
        }
    }

    /// The control plane wants something.
    pub fn handle_command(&mut self, now: Moment, command: Command) {
        if self.is_closed() {
            if let Command::Ask { key, .. } = command {
                let outcome = Err(RpcError::failed("the data plane is not connected"));
                self.effects.push_back(Effect::Asked { key, outcome });
            }
            return;
        }
        match command {
            Command::Ask { key, asked } => self.ask(now, key, &asked),
            Command::Admit { store_id, newest, start, withheld } => self.admit(now, store_id, newest, start, withheld),
            Command::Verdict(verdict) => self.judge(now, verdict),
            Command::Newest(version) => {
                self.newest = self.newest.max(version);
                self.go_on(now);
            }
            Command::Fetched { from, outcome } => self.take_changes(now, from, outcome),
            Command::Begun(outcome) => self.take_beginning(now, outcome),
            Command::Copied(outcome) => self.take_piece(now, outcome),
            Command::Stop { reconnect_after } => {
                let reconnect_after_ms = u64::try_from(reconnect_after.as_millis()).unwrap_or(u64::MAX);
                self.say(&FromCp::Goodbye { reconnect_after_ms });
                self.hang_up(Reason::Stopped);
            }
        }
    }

    /// The next thing to do; None when all is done until the next input.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When [`CpStream::handle_timeout`] is due; None once closed.
    pub fn next_timeout(&self) -> Option<Moment> {
        self.next_timer().map(|(at, _)| at)
    }

    /// Whether the link has ended.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// The name of an invariant that does not hold; None is the only right answer.
    pub fn broken_invariant(&self) -> Option<&'static str> {
        INVARIANTS.iter().find(|(_, holds)| !holds(self)).map(|(name, _)| *name)
    }

    fn next_timer(&self) -> Option<(Moment, Timer)> {
        let silence = (self.heard.lost_at(), Timer::Silence);
        match self.state {
            State::AwaitingHello { until } => Some((until, Timer::Hello)),
            State::Judging => Some(silence),
            State::Serving => {
                let go_on = self.resumes_at().map(|at| (at, Timer::GoOn));
                let asked = self.asking.iter().map(|(key, at)| (*at, Timer::Asked(*key)));
                asked.chain(go_on).chain([silence]).min()
            }
            State::Closed => None,
        }
    }

    /// When something that waits may be sent; None: nothing waits for a moment.
    fn resumes_at(&self) -> Option<Moment> {
        if self.withheld.is_some() || self.making != Making::Nothing || !self.has_something() {
            return None;
        }
        let copy = self.copy_due.as_ref().map(|_| self.copy_at);
        self.wait_until.max(copy)
    }

    /// There is something the node should be sent.
    fn has_something(&self) -> bool {
        let newer = self.refused.is_none_or(|refused| self.newest > refused) || self.wait_until.is_some();
        let behind = self.copy_due.is_some() || self.sent.is_some_and(|sent| sent < self.newest);
        newer && behind
    }

    /// Something could be sent and nothing is going to happen by which it would be.
    fn is_stuck(&self) -> bool {
        self.state == State::Serving
            && self.withheld.is_none()
            && self.making == Making::Nothing
            && self.has_something()
            && self.resumes_at().is_none()
            && self.unanswered.is_empty()
    }

    fn say(&mut self, message: &FromCp) {
        self.effects.push_back(Effect::Send(message.encode()));
    }

    fn take(&mut self, now: Moment, message: FromDp) {
        match (self.state, message) {
            (_, FromDp::Goodbye) => {
                self.effects.push_back(Effect::Left);
                self.hang_up(Reason::PeerLeaves);
            }
            (State::AwaitingHello { .. }, FromDp::Hello(hello)) => {
                self.state = State::Judging;
                self.effects.push_back(Effect::Judge(Arc::from(hello)));
            }
            (State::AwaitingHello { .. }, _) => self.hang_up(Reason::PeerNoHello),
            (State::Serving, FromDp::Report(applied)) => {
                while self.unanswered.front().is_some_and(|version| *version <= applied.version) {
                    self.unanswered.pop_front();
                }
                // A refusal is of the past once something later is in force.
                self.refused = self.refused.filter(|refused| applied.version < *refused);
                self.overtaken = 0;
                self.effects.push_back(Effect::Applied(applied));
                self.go_on(now);
            }
            (State::Serving, FromDp::Refused(refused)) => self.take_refusal(now, refused),
            (State::Serving, FromDp::WantSnapshot { why }) => {
                self.effects.push_back(Effect::Report(Report::Diverged { why: why.clone() }));
                self.unanswered.clear();
                self.refused = None;
                self.need_copy(format!("asked for: {why}"));
                self.go_on(now);
            }
            (State::Serving, FromDp::Taken { pieces }) => {
                self.untaken = self.untaken.saturating_sub(usize::try_from(pieces).unwrap_or(usize::MAX));
                self.copy_on();
            }
            (State::Serving, FromDp::Answer(answer)) => {
                let outcome = answer.fault.map_or(Ok(answer.result), |fault| Err(RpcError::failed(fault)));
                self.answered(answer.id, outcome);
            }
            // Said before it was asked, or of a later generation.
            (State::Serving | State::Judging, FromDp::Hello(_) | FromDp::Unknown(_))
            | (
                State::Judging,
                FromDp::Answer(_)
                | FromDp::Report(_)
                | FromDp::Refused(_)
                | FromDp::WantSnapshot { .. }
                | FromDp::Taken { .. },
            )
            | (State::Closed, _) => {}
        }
    }

    fn ask(&mut self, now: Moment, key: u64, asked: &Asked) {
        let refused = match () {
            () if self.state != State::Serving => Some("the data plane is not connected"),
            () if self.asking.len() == ASKED_LIMIT => Some("too many calls of this data plane are under way"),
            () => None,
        };
        if let Some(why) = refused {
            return self.effects.push_back(Effect::Asked { key, outcome: Err(RpcError::failed(why)) });
        }
        self.asking.insert(key, now + CALL_LIMIT);
        self.say(&FromCp::Ask { id: key, method: asked.method().to_owned(), params: asked.params() });
    }

    /// Ends a question; answers that nobody waits for are dropped.
    fn answered(&mut self, key: u64, outcome: Result<Value, RpcError>) {
        if self.asking.remove(&key).is_some() {
            self.effects.push_back(Effect::Asked { key, outcome });
        }
    }

    fn admit(&mut self, now: Moment, store_id: String, newest: u64, start: Start, withheld: Option<Withheld>) {
        if self.state != State::Judging {
            return;
        }
        self.state = State::Serving;
        self.newest = newest;
        let heartbeat_ms = u64::try_from(self.settings.heartbeat.as_millis()).unwrap_or(u64::MAX);
        self.say(&FromCp::Welcome { store_id, version: newest, heartbeat_ms });
        match start {
            Start::From(version) => self.sent = Some(version),
            Start::Same { version, digest } => {
                self.sent = Some(version);
                self.unanswered.push_back(version);
                self.say(&FromCp::Same { version, digest });
            }
            Start::Snapshot { why } => self.need_copy(why),
        }
        self.judge(now, withheld);
    }

    fn judge(&mut self, now: Moment, verdict: Option<Withheld>) {
        if self.state != State::Serving {
            return;
        }
        if let Some(Withheld { status, words }) = verdict.clone().filter(|_| verdict != self.withheld) {
            self.say(&FromCp::Withheld { status, words });
            // A copy cut short is worth nothing.
            if matches!(self.making, Making::Beginning | Making::Piece | Making::Waiting(_)) {
                self.need_copy("the one before was cut short".to_owned());
            }
        }
        self.withheld = verdict;
        self.go_on(now);
    }

    /// From now on nothing but a copy is of use.
    fn take_refusal(&mut self, now: Moment, refused: Refused) {
        self.unanswered.clear();
        self.untaken = 0;
        self.give_up_making();
        self.sent = refused.serving.filter(|serving| *serving <= self.newest);
        self.copy_due = self.sent.is_none().then(|| "the one before was refused".to_owned());
        self.refused = Some(refused.version);
        self.wait_until = refused.retry_after_ms.map(|millis| now + Duration::from_millis(millis));
        self.effects.push_back(Effect::Refused(refused));
        self.go_on(now);
    }

    fn hang_up(&mut self, reason: Reason) {
        if !self.is_closed() {
            self.state = State::Closed;
            self.making = Making::Nothing;
            for (key, _) in std::mem::take(&mut self.asking) {
                let outcome = Err(RpcError::failed("the connection to the data plane ended"));
                self.effects.push_back(Effect::Asked { key, outcome });
            }
            self.effects.push_back(Effect::HangUp(reason));
        }
    }
}

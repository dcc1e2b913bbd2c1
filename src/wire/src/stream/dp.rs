//! The data plane's end: one machine for each connection, from the upgrade until the connection is lost. Dialing is the
//! business of the v1 or v2 machine it was diverted from.
//!
//! | state | input | next | effects, timers |
//! |---|---|---|---|
//! | greeting | welcome | live | report; ping every heartbeat; silence 4 heartbeats |
//! | greeting | other message, timer hello (10 s) | closed | hang up |
//! | live | changes, same, pieces of a copy | live | wait in line; worked off one at a time |
//! | live | changes that do not build on what is held | live | ask for a copy, once; dropped after a refusal |
//! | live | applied | live | report |
//! | live | refused, not stored | live | tell; later changes are dropped until some build on what is held |
//! | live | diverged | live | ask for a copy |
//! | live | piece taken | live | tell |
//! | live | withheld | live | report |
//! | live | question | live | answer it, or have it answered |
//! | live | timer heartbeat | live | ping |
//! | greeting, live | goodbye | closed | hang up; redial after the delay asked for |
//! | greeting, live | undecodable frame, flood, close frame, lost, timer silence | closed | hang up |
//! | greeting, live | stop | closed | goodbye, hang up; nothing after |

use super::message::{Answer, Applied, Changes, FromCp, FromDp, Held, Hello, Refused};
use super::{CHANGES_WINDOW, HEARTBEAT, HEARTBEAT_BOUNDS, HELLO_LIMIT, Heard, LONGEST_FAREWELL, PIECES_WINDOW};
use crate::v2::RpcError;
use crate::v2::log_level::Asked;
use crate::{Frame, Moment};
use bytes::Bytes;
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;

#[cfg(test)]
mod tests;
mod work;

pub use work::{Command, Effect, Outcome, Reason, Report, Work};

/// Messages that wait for their turn, at most; a control plane that keeps to the windows never sends more.
const LINE_LIMIT: usize = 2 * (CHANGES_WINDOW + PIECES_WINDOW + 3);

/// How long a control plane should wait before it sends again what could not be stored.
pub const STORE_AGAIN: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Greeting { until: Moment },
    Live { heard: Heard, ping_at: Moment },
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Hello,
    Silence,
    Ping,
}

/// What work is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Change { to: u64 },
    Adopt { version: u64 },
    Begin,
    Rows,
    Finish { version: u64 },
}

/// How far a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copy {
    /// None is under way.
    None,
    /// Asked for; nothing else is of use until it begins.
    Wanted,
    /// Its pieces are coming.
    Coming { version: u64 },
}

/// Something that holds between any two inputs: its name, and whether it does.
pub type Invariant = (&'static str, fn(&DpStream) -> bool);

/// Everything that holds between any two inputs.
pub const INVARIANTS: &[Invariant] = &[
    ("a timer runs until the connection ends", |link| link.next_timeout().is_some() != link.is_closed()),
    ("nothing waits while nothing is done", |link| link.doing.is_some() || link.line.is_empty()),
    ("the line is bounded", |link| link.line.len() <= LINE_LIMIT),
];

/// The data plane's end of a connection; see the module for its table.
#[derive(Debug)]
pub struct DpStream {
    state: State,
    /// What is held and in force.
    held: Option<Held>,
    /// Id of the control plane's store.
    store_id: String,
    /// What came and waits for its turn, with the moment it came.
    line: VecDeque<(Moment, FromCp)>,
    /// The work under way, and when what it is about came.
    doing: Option<(Moment, Doing)>,
    copy: Copy,
    /// Something was refused: changes that build on it are of no use.
    astray: bool,
    effects: VecDeque<Effect>,
}

impl DpStream {
    /// A machine for a connection that was upgraded just `now`; it says hello. `hello.held` is what is in force.
    pub fn new(now: Moment, hello: Hello) -> Self {
        let held = hello.held.clone();
        let greeting = FromDp::Hello(Box::new(hello)).encode();
        Self {
            state: State::Greeting { until: now + HELLO_LIMIT },
            held,
            store_id: String::new(),
            line: VecDeque::new(),
            doing: None,
            copy: Copy::None,
            astray: false,
            effects: VecDeque::from([Effect::Send(greeting)]),
        }
    }

    /// A frame came.
    pub fn handle_frame(&mut self, now: Moment, frame: &Frame) {
        match &mut self.state {
            State::Closed => return,
            State::Live { heard, .. } => heard.at = now,
            State::Greeting { .. } => {}
        }
        match frame {
            Frame::Close => self.hang_up(Reason::PeerClosed),
            Frame::Ping(payload) => self.effects.push_back(Effect::Send(Frame::Pong(payload.clone()))),
            Frame::Pong(_) => {}
            Frame::Binary(_) | Frame::Text(_) => match FromCp::decode(frame) {
                Ok(message) => self.take(now, message),
                Err(error) => self.hang_up(error.into()),
            },
        }
    }

    /// The connection broke.
    pub fn handle_lost(&mut self, words: String) {
        self.hang_up(Reason::PeerLost(words));
    }

    /// The moment of [`DpStream::next_timeout`] has come; harmless when it has not.
    pub fn handle_timeout(&mut self, now: Moment) {
        let Some((_, timer)) = self.next_timer().filter(|(at, _)| *at <= now) else { return };
        match (timer, &mut self.state) {
            (Timer::Hello, _) => self.hang_up(Reason::PeerSlow),
            (Timer::Silence, State::Live { heard, .. }) => {
                let silence = heard.lost_at().saturating_sub(heard.at);
                self.hang_up(Reason::PeerSilent(silence));
            }
            (Timer::Ping, State::Live { heard, ping_at }) => {
                *ping_at = now + heard.heartbeat;
                self.effects.push_back(Effect::Send(Frame::Ping(Bytes::new())));
            }
            (Timer::Silence | Timer::Ping, State::Greeting { .. } | State::Closed) => {}
        }
    }

    /// The node wants something.
    pub fn handle_command(&mut self, command: Command) {
        match command {
            Command::Done(outcome) => self.conclude(outcome),
            Command::Answer { id, outcome } => self.answer(id, outcome),
            Command::Stop => {
                if !self.is_closed() {
                    self.say(&FromDp::Goodbye);
                }
                self.hang_up(Reason::Stopped);
            }
        }
        self.work_on();
    }

    /// The next thing to do; None when all is done until the next input.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When [`DpStream::handle_timeout`] is due; None once closed.
    pub fn next_timeout(&self) -> Option<Moment> {
        self.next_timer().map(|(at, _)| at)
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// What is held and in force.
    pub fn held(&self) -> Option<&Held> {
        self.held.as_ref()
    }

    /// The name of an invariant that does not hold; None is the only right answer.
    pub fn broken_invariant(&self) -> Option<&'static str> {
        INVARIANTS.iter().find(|(_, holds)| !holds(self)).map(|(name, _)| *name)
    }

    fn next_timer(&self) -> Option<(Moment, Timer)> {
        match &self.state {
            State::Greeting { until } => Some((*until, Timer::Hello)),
            State::Live { heard, ping_at } => {
                Some((*ping_at, Timer::Ping)).min(Some((heard.lost_at(), Timer::Silence)))
            }
            State::Closed => None,
        }
    }

    fn say(&mut self, message: &FromDp) {
        self.effects.push_back(Effect::Send(message.encode()));
    }

    fn report(&mut self, report: Report) {
        self.effects.push_back(Effect::Report(report));
    }

    fn take(&mut self, now: Moment, message: FromCp) {
        if let FromCp::Goodbye { reconnect_after_ms } = message {
            let reconnect_after = Duration::from_millis(reconnect_after_ms).min(LONGEST_FAREWELL);
            return self.hang_up(Reason::PeerLeaves { reconnect_after });
        }
        if let State::Greeting { .. } = self.state {
            return self.take_welcome(now, message);
        }
        match message {
            FromCp::Withheld { status, words } => self.report(Report::Withheld { status, words }),
            FromCp::Changes(_) | FromCp::Same { .. } | FromCp::SnapshotRows { .. } | FromCp::SnapshotEnd { .. } => {
                self.line_up(now, message);
            }
            FromCp::SnapshotBegin { .. } => {
                // What is left of the copy before is of no use.
                self.line.retain(|(_, waiting)| {
                    !matches!(waiting, FromCp::SnapshotRows { .. } | FromCp::SnapshotEnd { .. })
                });
                self.line_up(now, message);
            }
            FromCp::Ask { id, method, params } => match Asked::read(&method, &Value::Array(params)) {
                Some(Ok(asked)) => self.effects.push_back(Effect::LogLevel { id, asked }),
                Some(Err(error)) => self.answer(id, Err(error)),
                None => self.answer(id, Err(RpcError::method_not_found())),
            },
            FromCp::Welcome { .. } | FromCp::Unknown(_) | FromCp::Goodbye { .. } => {}
        }
    }

    fn answer(&mut self, id: u64, outcome: Result<Value, RpcError>) {
        if !matches!(self.state, State::Live { .. }) {
            return;
        }
        let (result, fault) = match outcome {
            Ok(result) => (result, None),
            Err(error) => (Value::Null, Some(error.message)),
        };
        self.say(&FromDp::Answer(Answer { id, result, fault }));
    }

    fn line_up(&mut self, now: Moment, message: FromCp) {
        if self.line.len() == LINE_LIMIT {
            return self.hang_up(Reason::PeerFlood);
        }
        self.line.push_back((now, message));
        self.work_on();
    }

    fn take_welcome(&mut self, now: Moment, message: FromCp) {
        let FromCp::Welcome { store_id, version, heartbeat_ms } = message else {
            return self.hang_up(Reason::PeerNoWelcome);
        };
        let asked = if heartbeat_ms == 0 { HEARTBEAT } else { Duration::from_millis(heartbeat_ms) };
        let heartbeat = asked.clamp(HEARTBEAT_BOUNDS.0, HEARTBEAT_BOUNDS.1);
        self.state = State::Live { heard: Heard { at: now, heartbeat }, ping_at: now + heartbeat };
        self.store_id.clone_from(&store_id);
        self.report(Report::Welcomed { store_id, version });
    }

    /// The version held of the store this connection is about.
    fn version(&self) -> Option<u64> {
        self.held.as_ref().filter(|held| held.store_id == self.store_id).map(|held| held.version)
    }

    /// Takes from the line until something is to be done.
    fn work_on(&mut self) {
        while self.doing.is_none()
            && !self.is_closed()
            && let Some((came, message)) = self.line.pop_front()
        {
            self.begin(came, message);
        }
    }

    fn begin(&mut self, came: Moment, message: FromCp) {
        match message {
            FromCp::Changes(changes) => self.begin_change(came, changes),
            FromCp::Same { version, digest } if self.copy == Copy::None => {
                self.work(came, Doing::Adopt { version }, Work::Adopt { held: self.held_as(version, digest) });
            }
            FromCp::SnapshotBegin { version, why } => {
                self.copy = Copy::Coming { version };
                self.astray = false;
                self.report(Report::Copying { why });
                self.work(came, Doing::Begin, Work::Begin);
            }
            FromCp::SnapshotRows { rows } if matches!(self.copy, Copy::Coming { .. }) => {
                self.work(came, Doing::Rows, Work::Rows(rows));
            }
            FromCp::SnapshotEnd { version, digest } if matches!(self.copy, Copy::Coming { .. }) => {
                self.work(came, Doing::Finish { version }, Work::Finish { held: self.held_as(version, digest) });
            }
            // Belongs to a copy that was refused, or is overtaken by one that was asked for.
            _ => {}
        }
    }

    fn begin_change(&mut self, came: Moment, changes: Changes) {
        if self.copy == Copy::Wanted {
            return;
        }
        let (from, to, held) = (changes.from, changes.to, self.version());
        if held == Some(from) {
            self.astray = false;
            self.work(came, Doing::Change { to }, Work::Change(changes));
        } else if !self.astray {
            let held = held.map_or_else(|| "nothing of this store".to_owned(), |held| format!("version {held}"));
            self.want_snapshot(format!("changes from version {from} came, {held} is held"));
        }
    }

    fn held_as(&self, version: u64, digest: String) -> Held {
        Held { store_id: self.store_id.clone(), version, digest }
    }

    fn work(&mut self, came: Moment, doing: Doing, work: Work) {
        self.doing = Some((came, doing));
        self.effects.push_back(Effect::Work(work));
    }

    fn conclude(&mut self, outcome: Outcome) {
        let Some((came, doing)) = self.doing.take() else { return };
        match outcome {
            Outcome::Applied { held, stored, active } => {
                if matches!(doing, Doing::Finish { .. }) {
                    self.copy = Copy::None;
                }
                let micros =
                    |moment: Moment| u64::try_from(moment.saturating_sub(came).as_micros()).unwrap_or(u64::MAX);
                let (version, digest) = (held.version, held.digest.clone());
                let applied = Applied { version, digest, stored_us: micros(stored), active_us: micros(active) };
                self.held = Some(held);
                self.say_if_live(&FromDp::Report(applied.clone()));
                self.report(Report::Applied(applied));
            }
            Outcome::Taken => {
                if doing == Doing::Rows {
                    self.say_if_live(&FromDp::Taken { pieces: 1 });
                }
            }
            Outcome::Refused { row, fault } => self.refuse(doing, row, fault, None),
            Outcome::NotStored { fault } => {
                let again = u64::try_from(STORE_AGAIN.as_millis()).unwrap_or(u64::MAX);
                self.refuse(doing, None, fault, Some(again));
            }
            Outcome::Diverged { found } => {
                self.want_snapshot(format!("the rows lead to the digest {found}"));
            }
        }
    }

    fn say_if_live(&mut self, message: &FromDp) {
        if matches!(self.state, State::Live { .. }) {
            self.say(message);
        }
    }

    fn refuse(&mut self, doing: Doing, row: Option<(String, String)>, fault: String, retry_after_ms: Option<u64>) {
        let coming = match self.copy {
            Copy::Coming { version } => version,
            Copy::None | Copy::Wanted => 0,
        };
        let version = match doing {
            Doing::Change { to } => to,
            Doing::Adopt { version } | Doing::Finish { version } => version,
            Doing::Begin | Doing::Rows => coming,
        };
        // A copy that was asked for since has its own end.
        if !matches!(doing, Doing::Change { .. }) && self.copy != Copy::Wanted {
            self.copy = Copy::None;
        }
        self.astray = true;
        let (entity, id) = row.unzip();
        let refused = Refused { version, serving: self.version(), entity, id, fault, retry_after_ms };
        self.say_if_live(&FromDp::Refused(refused.clone()));
        self.report(Report::Refused(refused));
    }

    fn want_snapshot(&mut self, why: String) {
        if self.copy == Copy::Wanted || self.is_closed() {
            return;
        }
        self.copy = Copy::Wanted;
        self.say(&FromDp::WantSnapshot { why: why.clone() });
        self.report(Report::WantsSnapshot { why });
    }

    fn hang_up(&mut self, reason: Reason) {
        if !self.is_closed() {
            self.state = State::Closed;
            self.line.clear();
            self.effects.push_back(Effect::HangUp(reason));
        }
    }
}

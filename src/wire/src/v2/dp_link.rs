//! The data plane's side of a v2 link.
//!
//! | state | input | next | effects, timers |
//! |---|---|---|---|
//! | idle, waiting | start, timer redial | dialing | dial; dial limit 15 s; a node that does not want sync begins with v1 |
//! | dialing | diverted | diverted | end v1: another protocol has the connection ([`crate::stream`]) |
//! | diverted | served | diverted | forget failures |
//! | diverted | lost, left | waiting | hang up; redial, after a farewell when the peer asked to |
//! | dialing | opened | greeting | send hello; hello limit 5 s |
//! | greeting | welcome with `kong.sync.v2` | live | pull; poll 25 to 35 s; idle 30 s; silence 45 s |
//! | greeting | welcome without it | live | fall back to v1; idle 30 s; silence 45 s |
//! | greeting | any other frame, timer hello | waiting | hang up; redial |
//! | live | notification of a newer version | live | answer; pull, or remember it while a pull or an apply is under way |
//! | live | call that reads or sets the log level | live | do it; answer |
//! | live | timer poll | live | pull; poll 25 to 35 s |
//! | live | rows for the version in force | live | apply |
//! | live | no rows, error, pull unanswered for 5 s | live | second round, else rest |
//! | live | ping | live | empty pong |
//! | live | undecodable or text frame | waiting | hang up, report; redial |
//! | any but closed | applied | same | take the version; next round when live |
//! | any but closed | refused | same | report; rest; the next pull asks for everything, once |
//! | any but closed | not stored | same | report; rest |
//! | dialing, greeting, live | lost, close frame, timer dial, timer silence | waiting | hang up; redial |
//! | any but closed | stop | closed | hang up; nothing after |
//!
//! A pull has two rounds at least, as Kong's has: the second one tells the control plane what is in force now. Rows
//! that come late are applied all the same if the version they build on is still in force.
//!
//! A control plane of another cluster than the one whose rows are here is asked for everything: its versions mean nothing
//! for them. Kong's control planes do not say of which cluster they are.
//!
//! Two control planes in a row that do not speak v2 (they refuse the upgrade or do not answer the hello) make the node
//! fall back to v1; it goes on asking for v2 beside it and returns as soon as one offers it.

use crate::backoff::{Backoff, Random};
use crate::v2::log_level::{self, Asked};
use crate::v2::rpc::{self, Message, RpcError};
use crate::v2::{CALL_LIMIT, Dialect, Heard, Welcome, report, sync};
use crate::{Frame, Moment};
use bytes::Bytes;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

mod effects;
mod rounds;
#[cfg(test)]
mod tests;

pub use effects::{Command, Effect, Outcome, Reason, Report, Settings, Standing};

pub use crate::v1::dp_link::DIAL_LIMIT;

/// Shortest and longest time between two pulls that nothing else causes. Kong pulls every 30 s sharp.
pub const POLL: (Duration, Duration) = (Duration::from_secs(25), Duration::from_secs(35));

/// Refusals in a row after which protocol v1 is used beside further attempts.
pub const REFUSALS_BEFORE_FALLBACK: u32 = 2;

/// Calls whose late answers are still of use; older ones are forgotten.
const REMEMBERED_CALLS: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Idle,
    Dialing {
        until: Moment,
    },
    Greeting {
        until: Moment,
    },
    Live {
        heard: Heard,
        poll_at: Option<Moment>,
    },
    /// Another protocol has the connection until it is lost.
    Diverted,
    Waiting {
        until: Moment,
    },
    Closed,
}

/// Where a pull stands. An apply outlives its connection, a call does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pull {
    Resting,
    Asked { id: u64, until: Moment, round: u32 },
    Applying { round: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Redial,
    Dial,
    Hello,
    Silence,
    Answer,
    Ping,
    Poll,
}

/// Something that holds of a link between any two inputs: its name, and whether it does.
pub type Invariant = (&'static str, fn(&DpLink) -> bool);

/// Everything that holds of a link between any two inputs.
pub const INVARIANTS: &[Invariant] = &[
    ("a timer runs from start to stop, but while diverted", |link| {
        link.next_timeout().is_none() == matches!(link.state, State::Idle | State::Diverted | State::Closed)
    }),
    ("only a live link waits for an answer", |link| {
        !matches!(link.pull, Pull::Asked { .. }) || matches!(link.state, State::Live { poll_at: Some(_), .. })
    }),
    ("the address dialed is one of the list", |link| link.control_plane < link.settings.control_planes.max(1)),
    ("a round ends with the last address", |link| link.failed_in_round < link.settings.control_planes.max(1)),
    ("remembered calls are bounded", |link| link.asked.len() <= REMEMBERED_CALLS),
    ("a node that is kept up to date by v2 does not use v1", |link| {
        !link.fallen || !matches!(link.state, State::Live { poll_at: Some(_), .. } | State::Diverted)
    }),
    ("a node that does not want v2 uses v1", |link| {
        link.settings.sync || link.fallen || matches!(link.state, State::Idle | State::Diverted | State::Closed)
    }),
];

/// The data plane's side of a v2 link; see the module for its table.
#[derive(Debug)]
pub struct DpLink {
    settings: Settings,
    state: State,
    pull: Pull,
    /// Index of the control plane dialed last or next.
    control_plane: usize,
    /// Addresses of this round that failed.
    failed_in_round: usize,
    /// Since when another protocol works on this connection.
    served_at: Option<Moment>,
    /// Times in a row that v2 was refused.
    refusals: u32,
    /// Protocol v1 is in use.
    fallen: bool,
    backoff: Backoff,
    random: Random,
    /// Version in force, and newest version heard of.
    version: u64,
    notified: u64,
    /// A notification came while a pull was under way.
    again: bool,
    /// Changes were refused: the next pull asks for everything. Once only, until something is applied.
    ask_everything: bool,
    asked_everything: bool,
    /// The control plane wants to hear what is refused.
    tells_refusals: bool,
    /// The cluster of the rows here, and that the control plane is of another.
    cluster_id: Option<String>,
    stranger: bool,
    /// How the control plane writes versions: as a node of this version is spoken to, until it shows another way.
    dialect: Dialect,
    next_id: u64,
    /// Calls of this connection, with the version each asked for the changes of.
    asked: BTreeMap<u64, u64>,
    effects: VecDeque<Effect>,
}

impl DpLink {
    /// A machine at rest; [`Command::Start`] makes it dial.
    pub fn new(settings: Settings) -> Self {
        Self {
            state: State::Idle,
            pull: Pull::Resting,
            control_plane: 0,
            failed_in_round: 0,
            served_at: None,
            refusals: 0,
            fallen: false,
            backoff: Backoff::new(settings.seed),
            random: Random(settings.seed ^ 0x5bd1_e995),
            version: settings.version,
            notified: 0,
            again: false,
            ask_everything: false,
            asked_everything: false,
            tells_refusals: false,
            cluster_id: None,
            stranger: false,
            dialect: settings.hello.dialect(),
            next_id: 0,
            asked: BTreeMap::new(),
            effects: VecDeque::new(),
            settings,
        }
    }

    /// The upgrade was answered with 101 and the right subprotocol.
    pub fn handle_opened(&mut self, now: Moment, standing: Standing) {
        if !matches!(self.state, State::Dialing { .. }) {
            return;
        }
        (self.version, self.cluster_id) = (standing.version, standing.cluster_id);
        self.dialect = self.settings.hello.dialect();
        self.state = State::Greeting { until: now + CALL_LIMIT };
        self.effects.push_back(Effect::Send(self.settings.hello.encode()));
    }

    /// The upgrade was answered with 101, and another protocol was agreed on: the connection is its until
    /// [`DpLink::handle_lost`].
    pub fn handle_diverted(&mut self) {
        if matches!(self.state, State::Dialing { .. }) {
            self.state = State::Diverted;
            self.refusals = 0;
            self.fall_back(false);
        }
    }

    /// The other protocol works: the control plane is a good one.
    pub fn handle_served(&mut self, now: Moment) {
        if self.state == State::Diverted {
            self.failed_in_round = 0;
            self.served_at = Some(now);
        }
    }

    /// A frame came.
    pub fn handle_frame(&mut self, now: Moment, frame: Frame) {
        match &mut self.state {
            State::Greeting { .. } | State::Live { .. } if frame == Frame::Close => {
                self.give_up(now, Reason::PeerClosed);
            }
            State::Greeting { .. } => self.take_welcome(now, &frame),
            State::Live { heard, .. } => {
                *heard = Heard::now(now);
                self.take_frame(now, &frame);
            }
            // Late news of a connection given up, or too early ones.
            State::Idle | State::Dialing { .. } | State::Diverted | State::Waiting { .. } | State::Closed => {}
        }
    }

    /// The dial failed or the connection broke.
    pub fn handle_lost(&mut self, now: Moment, reason: Reason) {
        if matches!(self.state, State::Dialing { .. } | State::Greeting { .. } | State::Live { .. } | State::Diverted) {
            self.give_up(now, reason);
        }
    }

    /// The moment of [`DpLink::next_timeout`] has come; harmless when it has not.
    pub fn handle_timeout(&mut self, now: Moment) {
        let Some((_, timer)) = self.next_timer().filter(|(at, _)| *at <= now) else { return };
        match timer {
            Timer::Redial => self.dial(now),
            Timer::Dial => self.give_up(now, Reason::PeerSlow),
            Timer::Hello => self.give_up(now, Reason::PeerNoHello),
            Timer::Silence => self.give_up(now, Reason::PeerSilent),
            Timer::Answer => {
                self.effects.push_back(Effect::Report(Report::PullUnanswered));
                self.end_round(now, false);
            }
            Timer::Ping => {
                if let State::Live { heard, .. } = &mut self.state {
                    heard.pinged(now);
                }
                self.effects.push_back(Effect::Send(Frame::Ping(Bytes::new())));
            }
            Timer::Poll => {
                self.wind_poll(now);
                self.pull_from_rest(now);
            }
        }
    }

    /// The node wants something.
    pub fn handle_command(&mut self, now: Moment, command: Command) {
        match (&self.state, command) {
            (State::Closed, _) => {}
            (State::Idle, Command::Start) => {
                self.dial(now);
                self.fall_back(!self.settings.sync);
            }
            (_, Command::Start) => {}
            (_, Command::Applied(outcome)) => self.conclude(now, outcome),
            (State::Live { .. }, Command::Answer { id, outcome }) => self.answer(now, &id, &outcome),
            (_, Command::Answer { .. }) => {}
            (_, Command::Stop) => self.stop(),
        }
    }

    /// The next thing to do; None when all is done until the next input.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When [`DpLink::handle_timeout`] is due; None: no timer runs.
    pub fn next_timeout(&self) -> Option<Moment> {
        self.next_timer().map(|(at, _)| at)
    }

    /// Index of the control plane dialed last or next.
    pub fn control_plane(&self) -> usize {
        self.control_plane
    }

    /// The version in force.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether a control plane keeps this node up to date by v2.
    pub fn is_synced(&self) -> bool {
        matches!(self.state, State::Live { poll_at: Some(_), .. })
    }

    /// Whether protocol v1 is in use.
    pub fn is_fallen_back(&self) -> bool {
        self.fallen
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
        match &self.state {
            State::Idle | State::Diverted | State::Closed => None,
            State::Waiting { until } => Some((*until, Timer::Redial)),
            State::Dialing { until } => Some((*until, Timer::Dial)),
            State::Greeting { until } => Some((*until, Timer::Hello)),
            State::Live { heard, poll_at } => {
                let answer = match self.pull {
                    Pull::Asked { until, .. } => Some((until, Timer::Answer)),
                    Pull::Resting | Pull::Applying { .. } => None,
                };
                let idle = [(heard.ping_at, Timer::Ping), (heard.silent_at(), Timer::Silence)];
                idle.into_iter().chain(answer).chain(poll_at.map(|at| (at, Timer::Poll))).min()
            }
        }
    }

    fn dial(&mut self, now: Moment) {
        self.state = State::Dialing { until: now + DIAL_LIMIT };
        self.effects.push_back(Effect::Dial { control_plane: self.control_plane });
    }

    fn take_welcome(&mut self, now: Moment, frame: &Frame) {
        let welcome = match Welcome::decode(frame) {
            Ok(welcome) => welcome,
            Err(error) => return self.give_up(now, error.into()),
        };
        let sync = self.settings.sync && welcome.offers(sync::CAPABILITY);
        let others = welcome.cluster_id.as_ref().zip(self.cluster_id.as_ref()).is_some_and(|(its, ours)| its != ours);
        self.stranger = sync && others && self.version > 0;
        self.tells_refusals = welcome.offers(report::CAPABILITY);
        self.refusals = 0;
        self.asked.clear();
        self.next_id = 0;
        self.state = State::Live { heard: Heard::now(now), poll_at: sync.then_some(now) };
        self.effects.push_back(Effect::Report(Report::Connected { control_plane: self.control_plane, sync }));
        self.fall_back(!sync);
        if self.stranger {
            self.effects.push_back(Effect::Report(Report::AnotherCluster));
        }
        if sync {
            self.wind_poll(now);
            self.pull_from_rest(now);
        }
    }

    fn wind_poll(&mut self, now: Moment) {
        let wait = self.random.between(POLL.0, POLL.1);
        if let State::Live { poll_at: Some(at), .. } = &mut self.state {
            *at = now + wait;
        }
    }

    fn take_frame(&mut self, now: Moment, frame: &Frame) {
        match frame {
            Frame::Ping(_) => self.effects.push_back(Effect::Send(Frame::Pong(Bytes::new()))),
            Frame::Pong(_) | Frame::Close => {}
            Frame::Binary(_) | Frame::Text(_) => {
                let limit = self.settings.limit;
                let messages = match self.dialect {
                    Dialect::Integers => Message::decode(frame, limit).map(|message| vec![message]),
                    Dialect::Texts => Message::decode_batch(frame, limit),
                };
                match messages {
                    Ok(messages) if messages.is_empty() => {
                        self.answer(now, &Value::Null, &Err(RpcError::invalid_request()));
                    }
                    Ok(messages) => messages.into_iter().for_each(|message| self.take_message(now, message)),
                    Err(error) => self.give_up(now, error.into()),
                }
            }
        }
    }

    fn take_message(&mut self, now: Moment, message: Message) {
        match message {
            // A message before ended the link.
            _ if !matches!(self.state, State::Live { .. }) => {}
            Message::Call { id, method, params } => self.take_call(now, id, &method, &params),
            Message::Answer { id, outcome } => self.take_answer(now, id, outcome),
        }
    }

    fn take_call(&mut self, now: Moment, id: Option<Value>, method: &str, params: &Value) {
        if method == sync::NOTIFY {
            return self.take_news(now, id, sync::notified_version(params));
        }
        let asked = Asked::read(method, params).filter(|_| self.settings.hello.offers(log_level::CAPABILITY));
        // Without an id no answer is wanted, and a level is not set by somebody who does not care what came of it.
        let Some(id) = id else { return };
        match asked.unwrap_or_else(|| Err(RpcError::method_not_found())) {
            Ok(asked) => self.effects.push_back(Effect::LogLevel { id, asked }),
            Err(error) => self.answer(now, &id, &Err(error)),
        }
    }

    fn take_news(&mut self, now: Moment, id: Option<Value>, news: Result<(u64, Dialect), RpcError>) {
        if let Some(id) = id {
            self.answer(now, &id, &news.clone().map(|_| Value::Bool(true)));
        }
        let Ok((version, dialect)) = news else { return };
        self.dialect = dialect;
        // The versions of another cluster are not to be compared with those here.
        if (version > self.version || self.stranger) && self.is_synced() {
            self.notified = version;
            self.pull_from_rest(now);
        }
    }

    fn answer(&mut self, now: Moment, id: &Value, outcome: &Result<Value, RpcError>) {
        let frame = match outcome {
            Ok(result) => rpc::answer(id, &result.to_string()),
            Err(error) => rpc::failure(id, error),
        };
        match frame {
            Ok(frame) => self.effects.push_back(Effect::Send(frame)),
            Err(error) => self.give_up(now, Reason::Call(error.to_string())),
        }
    }

    fn fall_back(&mut self, fall: bool) {
        if self.fallen != fall {
            self.fallen = fall;
            self.effects.push_back(Effect::Fallback(fall));
        }
    }

    fn give_up(&mut self, now: Moment, reason: Reason) {
        self.effects.push_back(Effect::HangUp(reason.clone()));
        if let Some(at) = self.served_at.take() {
            self.backoff.worked(now.saturating_sub(at));
        }
        if matches!(reason, Reason::PeerRefused(_) | Reason::PeerNoHello) {
            self.refusals = self.refusals.saturating_add(1);
        }
        if matches!(self.pull, Pull::Asked { .. }) {
            self.pull = Pull::Resting;
        }
        let failed = self.control_plane;
        let control_planes = self.settings.control_planes.max(1);
        self.control_plane = (failed + 1) % control_planes;
        self.failed_in_round += 1;
        let retry_in = if let Reason::PeerLeft { reconnect_after } = reason {
            self.failed_in_round = 0;
            self.backoff.after_farewell(reconnect_after)
        } else if self.failed_in_round < control_planes {
            self.backoff.next_address()
        } else {
            self.failed_in_round = 0;
            self.backoff.next_round()
        };
        self.state = State::Waiting { until: now + retry_in };
        self.effects.push_back(Effect::Report(Report::Disconnected { control_plane: failed, reason, retry_in }));
        if self.refusals >= REFUSALS_BEFORE_FALLBACK || !self.settings.sync {
            self.fall_back(true);
        }
    }

    fn stop(&mut self) {
        if matches!(self.state, State::Dialing { .. } | State::Greeting { .. } | State::Live { .. } | State::Diverted) {
            self.effects.push_back(Effect::HangUp(Reason::Stopped));
        }
        self.state = State::Closed;
        self.pull = Pull::Resting;
    }
}

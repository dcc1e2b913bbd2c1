//! The control plane's side of a v2 link: one machine for each connection. A node may have several.
//!
//! | state | input | next | effects, timers |
//! |---|---|---|---|
//! | awaiting hello | hello | open | answer it; joined; idle 30 s; silence 45 s |
//! | awaiting hello | any other frame, timer hello (5 s) | closed | hang up |
//! | open | call of `get_delta` | open | record; make an answer |
//! | open | the same without an id | open | record |
//! | open | refusal of rows | open | refused |
//! | open | other call | open | answer with an error |
//! | open | call from above | open | send it, unless the node does not answer such calls |
//! | open | answer of such a call, or none for 5 s | open | call ended |
//! | open | answer of a notification | open | notify of the newest version if it is newer than the one told |
//! | open | ping | open | empty pong |
//! | open | new version, node lists the capability | open | notify, unless a notification is unanswered (5 s) |
//! | open | no call of `get_delta` for 5 s since the hello, node lists the capability | open | notify |
//! | open | idle 30 s, and every 5 s from then | open | ping |
//! | open | undecodable or text frame, silence 45 s | closed | hang up |
//! | any but closed | lost, close frame, stop | closed | calls ended; hang up; nothing after |
//!
//! A node that answers no notification is told of later versions once the call has timed out; it loses nothing, since
//! it is told of the newest version only and pulls whatever it lacks. Kong 3.9 does not pull when it connects, so that
//! after a restart of its control plane it would serve on for up to 30 s what has been changed since: such a node is told
//! as if there were a new version.

use crate::v2::log_level::{self, Asked};
use crate::v2::rpc::{self, Message, RpcError};
use crate::v2::{CALL_LIMIT, Dialect, Heard, Held, Hello, Refusal, Welcome, report, sync};
use crate::{Frame, Moment};
use bytes::Bytes;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

mod effects;
#[cfg(test)]
mod tests;

pub use effects::{Command, Effect, Reason, Report, Settings};

/// Calls of one link that may be answered at the same time. A node has one under way; more is a flood.
pub const CALLS_LIMIT: usize = 16;

/// Calls from above that may wait for the node's answer at the same time.
pub const ASKED_LIMIT: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    AwaitingHello { until: Moment },
    Open { heard: Heard },
    Closed,
}

/// A notification that is not answered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Notification {
    id: u64,
    until: Moment,
}

/// A call from above that is not answered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asking {
    key: u64,
    until: Moment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Hello,
    Silence,
    Notify,
    Nudge,
    Asked(u64),
    Ping,
}

/// Something that holds of a link between any two inputs: its name, and whether it does.
pub type Invariant = (&'static str, fn(&CpLink) -> bool);

/// Everything that holds of a link between any two inputs.
pub const INVARIANTS: &[Invariant] = &[
    ("a timer runs until the link is closed", |link| link.next_timeout().is_some() != link.is_closed()),
    ("a node is told of no version twice", |link| link.told <= link.newest),
    ("nothing is told before the hello", |link| link.is_open() || link.is_closed() || link.notification.is_none()),
    ("a node that can be told knows of the newest version or is being told", |link| {
        !link.is_open() || !link.notifiable() || link.notification.is_some() || link.told == link.newest
    }),
    ("calls are bounded", |link| link.calls <= CALLS_LIMIT && link.asking.len() <= ASKED_LIMIT),
    ("only an open link waits for the answers of calls", |link| link.is_open() || link.asking.is_empty()),
];

/// The control plane's side of a v2 link; see the module for its table.
#[derive(Debug)]
pub struct CpLink {
    settings: Settings,
    state: State,
    hello: Arc<Hello>,
    /// How the node writes versions: as its own version says, until it shows another way.
    dialect: Dialect,
    notification: Option<Notification>,
    /// Newest version there is, and newest version the node was told of.
    newest: u64,
    told: u64,
    /// When the node is told of the version there is, because it has not asked since it said hello.
    nudge_at: Option<Moment>,
    next_id: u64,
    /// Calls being answered.
    calls: usize,
    /// Calls from above by their id.
    asking: BTreeMap<u64, Asking>,
    effects: VecDeque<Effect>,
}

impl CpLink {
    /// A machine for a connection that was upgraded just `now`.
    pub fn new(now: Moment, settings: Settings) -> Self {
        Self {
            state: State::AwaitingHello { until: now + CALL_LIMIT },
            hello: Arc::default(),
            dialect: Dialect::Integers,
            notification: None,
            newest: settings.version,
            told: settings.version,
            nudge_at: None,
            settings,
            next_id: 0,
            calls: 0,
            asking: BTreeMap::new(),
            effects: VecDeque::new(),
        }
    }

    /// A frame came.
    pub fn handle_frame(&mut self, now: Moment, frame: Frame) {
        if frame == Frame::Close && !self.is_closed() {
            return self.hang_up(Reason::PeerClosed);
        }
        match &mut self.state {
            State::AwaitingHello { .. } => self.take_hello(now, &frame),
            State::Open { heard } => {
                *heard = Heard::now(now);
                self.take_frame(now, &frame);
            }
            State::Closed => {}
        }
    }

    /// The connection broke.
    pub fn handle_lost(&mut self, reason: Reason) {
        self.hang_up(reason);
    }

    /// The moment of [`CpLink::next_timeout`] has come; harmless when it has not.
    pub fn handle_timeout(&mut self, now: Moment) {
        let Some((_, timer)) = self.next_timer().filter(|(at, _)| *at <= now) else { return };
        match timer {
            Timer::Hello => self.hang_up(Reason::PeerSlow),
            Timer::Silence => self.hang_up(Reason::PeerSilent),
            Timer::Notify => {
                self.effects.push_back(Effect::Report(Report::NotifyUnanswered));
                self.notification = None;
                self.notify(now);
            }
            Timer::Nudge => {
                (self.nudge_at, self.told) = (None, 0);
                self.notify(now);
            }
            Timer::Asked(id) => {
                let why = format!("no answer from the data plane within {} s", CALL_LIMIT.as_secs());
                self.conclude(id, Err(RpcError::failed(why)));
            }
            Timer::Ping => {
                if let State::Open { heard } = &mut self.state {
                    heard.pinged(now);
                }
                self.effects.push_back(Effect::Send(Frame::Ping(Bytes::new())));
            }
        }
    }

    /// The control plane wants something.
    pub fn handle_command(&mut self, now: Moment, command: Command) {
        match command {
            Command::NewVersion(version) => {
                self.newest = self.newest.max(version);
                self.notify(now);
            }
            Command::Answer { id, outcome } => {
                self.calls = self.calls.saturating_sub(1);
                if self.is_open() {
                    self.answer(&id, outcome.as_deref());
                }
            }
            Command::Ask { key, asked } => self.ask(now, key, &asked),
            Command::Stop => self.hang_up(Reason::Stopped),
        }
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

    /// Whether the node said hello.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// The name of an invariant that does not hold; None is the only right answer.
    pub fn broken_invariant(&self) -> Option<&'static str> {
        INVARIANTS.iter().find(|(_, holds)| !holds(self)).map(|(name, _)| *name)
    }

    /// Whether the node takes notifications, and was offered what they are about: this link keeps it up to date.
    pub fn notifiable(&self) -> bool {
        self.hello.offers(sync::CAPABILITY) && self.settings.sync
    }

    fn next_timer(&self) -> Option<(Moment, Timer)> {
        match &self.state {
            State::AwaitingHello { until } => Some((*until, Timer::Hello)),
            State::Open { heard } => {
                let notify = self.notification.as_ref().map(|notification| (notification.until, Timer::Notify));
                let idle = [(heard.ping_at, Timer::Ping), (heard.silent_at(), Timer::Silence)];
                let asked = self.asking.iter().map(|(id, asking)| (asking.until, Timer::Asked(*id)));
                let nudge = self.nudge_at.map(|at| (at, Timer::Nudge));
                idle.into_iter().chain(notify).chain(nudge).chain(asked).min()
            }
            State::Closed => None,
        }
    }

    fn take_hello(&mut self, now: Moment, frame: &Frame) {
        match Hello::decode(frame) {
            Ok(hello) => self.hello = Arc::new(hello),
            Err(error) => return self.hang_up(error.into()),
        }
        self.dialect = self.hello.dialect();
        self.state = State::Open { heard: Heard::now(now) };
        // It pulls by itself when it joins; it is told of what comes from now on.
        self.told = self.newest;
        self.nudge_at = self.notifiable().then_some(now + CALL_LIMIT);
        // A Kong node lists nothing of ours, hence never hears of it.
        let ours = self.hello.offers(report::CAPABILITY);
        let offered = [(sync::CAPABILITY, self.settings.sync), (report::CAPABILITY, self.settings.sync && ours)];
        let welcome = Welcome {
            capabilities: offered.iter().filter(|(_, is)| *is).map(|(name, _)| (*name).to_owned()).collect(),
            cluster_id: self.settings.cluster_id.as_deref().filter(|_| ours).map(str::to_owned),
        };
        self.effects.push_back(Effect::Send(welcome.encode()));
        self.effects.push_back(Effect::Joined(Arc::clone(&self.hello)));
    }

    fn take_frame(&mut self, now: Moment, frame: &Frame) {
        match frame {
            Frame::Ping(_) => self.effects.push_back(Effect::Send(Frame::Pong(Bytes::new()))),
            Frame::Pong(_) | Frame::Close => {}
            Frame::Binary(_) | Frame::Text(_) => {
                let limit = self.settings.limit;
                let messages = match self.hello.dialect() {
                    Dialect::Integers => Message::decode(frame, limit).map(|message| vec![message]),
                    Dialect::Texts => Message::decode_batch(frame, limit),
                };
                match messages {
                    Ok(messages) if messages.is_empty() => self.answer(&Value::Null, Err(&RpcError::invalid_request())),
                    Ok(messages) => messages.into_iter().for_each(|message| self.take_message(now, message)),
                    Err(error) => self.hang_up(error.into()),
                }
            }
        }
    }

    /// The calls of a batch are answered one by one, as soon as each can be.
    fn take_message(&mut self, now: Moment, message: Message) {
        match message {
            _ if self.is_closed() => {}
            Message::Call { id, method, params } => self.take_call(id, &method, &params),
            Message::Answer { id, outcome } => self.take_answer(now, id, outcome),
        }
    }

    fn take_call(&mut self, id: Option<Value>, method: &str, params: &Value) {
        let refusal = match method {
            report::REFUSED if self.hello.offers(report::CAPABILITY) => Refusal::read(params).ok(),
            sync::INVALID if self.hello.dialect() == Dialect::Texts => Refusal::read_kong(params).ok(),
            _ => None,
        };
        self.effects.extend(refusal.map(Effect::Refused));
        if method == sync::GET_DELTA {
            self.nudge_at = None;
        }
        let held = match method {
            sync::GET_DELTA if self.settings.sync => Held::read(params, self.hello.dialect()),
            _ => Err(RpcError::method_not_found()),
        };
        if let Ok(held) = &held {
            self.dialect = held.dialect;
        }
        match (id, held) {
            (Some(_), Ok(_)) if self.calls == CALLS_LIMIT => self.hang_up(Reason::PeerFlood),
            (Some(id), Ok(held)) => {
                self.calls += 1;
                let (version, dialect) = (held.version, held.dialect);
                self.effects.push_back(Effect::Record(held));
                self.effects.push_back(Effect::Pull { id, version, dialect });
            }
            // Kong 3.10 tells by it what it has now.
            (None, Ok(held)) => self.effects.push_back(Effect::Record(held)),
            (Some(id), Err(error)) => self.answer(&id, Err(&error)),
            // Without an id no answer is wanted.
            (None, Err(_)) => {}
        }
    }

    fn ask(&mut self, now: Moment, key: u64, asked: &Asked) {
        let refused = match () {
            () if !self.is_open() => Some("the data plane is not connected"),
            () if !self.hello.offers(log_level::CAPABILITY) => Some("the data plane does not answer such calls"),
            () if self.asking.len() == ASKED_LIMIT => Some("too many calls of this data plane are under way"),
            () => None,
        };
        if let Some(why) = refused {
            let outcome = Err(RpcError::failed(why));
            return self.effects.push_back(Effect::Asked { key, outcome });
        }
        let id = self.next_id;
        self.next_id += 1;
        self.asking.insert(id, Asking { key, until: now + CALL_LIMIT });
        match rpc::call_with(id, asked.method(), &asked.params()) {
            Ok(frame) => self.effects.push_back(Effect::Send(frame)),
            Err(error) => self.conclude(id, Err(RpcError::failed(error.to_string()))),
        }
    }

    /// Ends a call from above.
    fn conclude(&mut self, id: u64, outcome: Result<Value, RpcError>) {
        if let Some(asking) = self.asking.remove(&id) {
            self.effects.push_back(Effect::Asked { key: asking.key, outcome });
        }
    }

    /// Answers that nobody waits for are dropped.
    fn take_answer(&mut self, now: Moment, id: Option<u64>, outcome: Result<Value, RpcError>) {
        if let Some(id) = id.filter(|id| self.asking.contains_key(id)) {
            return self.conclude(id, outcome);
        }
        if self.notification.as_ref().is_none_or(|notification| Some(notification.id) != id) {
            return;
        }
        if let Err(error) = outcome {
            self.effects.push_back(Effect::Report(Report::NotifyFailed(error)));
        }
        self.notification = None;
        self.notify(now);
    }

    fn notify(&mut self, now: Moment) {
        if !self.is_open() || !self.notifiable() || self.notification.is_some() || self.told == self.newest {
            return;
        }
        let id = self.next_id;
        match rpc::call(id, sync::NOTIFY, &sync::notify_params(self.newest, self.dialect)) {
            Ok(frame) => self.effects.push_back(Effect::Send(frame)),
            Err(error) => return self.hang_up(Reason::Answer(error.to_string())),
        }
        self.next_id += 1;
        (self.told, self.nudge_at) = (self.newest, None);
        self.notification = Some(Notification { id, until: now + CALL_LIMIT });
    }

    fn answer(&mut self, id: &Value, outcome: Result<&str, &RpcError>) {
        let frame = match outcome {
            Ok(result) => rpc::answer(id, result),
            Err(error) => rpc::failure(id, error),
        };
        match frame {
            Ok(frame) if frame.payload_len() > self.settings.frame_limit && outcome.is_ok() => {
                let (actual, limit) = (frame.payload_len(), self.settings.frame_limit);
                self.effects.push_back(Effect::Report(Report::AnswerTooLong { actual, limit }));
                let why = format!("the answer takes {actual} bytes, more than cluster_max_payload = {limit}");
                self.answer(id, Err(&RpcError::failed(why)));
            }
            Ok(frame) => self.effects.push_back(Effect::Send(frame)),
            Err(error) => self.hang_up(Reason::Answer(error.to_string())),
        }
    }

    fn hang_up(&mut self, reason: Reason) {
        if self.is_closed() {
            return;
        }
        self.state = State::Closed;
        self.notification = None;
        for (_, asking) in std::mem::take(&mut self.asking) {
            let outcome = Err(RpcError::failed("the connection to the data plane ended"));
            self.effects.push_back(Effect::Asked { key: asking.key, outcome });
        }
        self.effects.push_back(Effect::HangUp(reason));
    }
}

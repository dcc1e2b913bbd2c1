//! The control plane's side of a v2 link: one machine for each connection. A node may have several.
//!
//! | state | input | next | effects, timers |
//! |---|---|---|---|
//! | awaiting hello | hello | open | answer it; joined; idle 30 s; silence 45 s |
//! | awaiting hello | any other frame, timer hello (5 s) | closed | hang up |
//! | open | call of `get_delta` | open | record; make an answer |
//! | open | refusal of rows | open | refused |
//! | open | other call | open | answer with an error |
//! | open | answer of a notification | open | notify of the newest version if it is newer than the one told |
//! | open | ping | open | empty pong |
//! | open | new version, node lists the capability | open | notify, unless a notification is unanswered (5 s) |
//! | open | idle 30 s, and every 5 s from then | open | ping |
//! | open | undecodable or text frame, silence 45 s | closed | hang up |
//! | any but closed | lost, close frame, stop | closed | hang up; nothing after |
//!
//! A node that answers no notification is told of later versions once the call has timed out; it loses nothing, since
//! it is told of the newest version only and pulls whatever it lacks.

use crate::compat::Version;
use crate::v2::rpc::{self, Message, MessageError, RpcError};
use crate::v2::{CALL_LIMIT, Heard, Hello, HelloError, Refusal, SILENCE_LIMIT, Welcome, report, sync};
use crate::{Frame, Moment};
use bytes::Bytes;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Calls of one link that may be answered at the same time. A node has one under way; more is a flood.
pub const CALLS_LIMIT: usize = 16;

/// What the driver should do, in the order given.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// The node is accepted: tell the link of new versions ([`Command::NewVersion`]) from now on.
    Joined(Arc<Hello>),
    /// Send the frame.
    Send(Frame),
    /// Make the answer for a node that has this version, then give [`Command::Answer`] with the same id.
    Pull {
        /// Id of the call.
        id: Value,
        /// Version the node has.
        version: i64,
    },
    /// Store what is known of the node: it has this version.
    Record {
        /// Version the node has.
        version: i64,
    },
    /// The node refused rows.
    Refused(Refusal),
    /// Worth a log line.
    Report(Report),
    /// Send an empty close frame if the connection is open, then drop it. Nothing follows.
    HangUp(Reason),
}

/// News for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The node answered a notification with an error.
    NotifyFailed(RpcError),
    /// The node did not answer a notification in time.
    NotifyUnanswered,
}

/// Why a link ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The connection broke; the driver's words.
    #[error("connection lost: {0}")]
    PeerLost(String),
    /// The data plane sent a close frame.
    #[error("the data plane closed the connection")]
    PeerClosed,
    /// No hello in time.
    #[error("no hello within {} s", CALL_LIMIT.as_secs())]
    PeerSlow,
    /// The first frame is no hello.
    #[error(transparent)]
    PeerHello(#[from] HelloError),
    /// A frame that is no message.
    #[error(transparent)]
    PeerMessage(#[from] MessageError),
    /// No frame for [`SILENCE_LIMIT`].
    #[error("no frame from the data plane for {} s", SILENCE_LIMIT.as_secs())]
    PeerSilent,
    /// More than [`CALLS_LIMIT`] calls at once.
    #[error("more than {CALLS_LIMIT} calls of the data plane at once")]
    PeerFlood,
    /// An answer cannot be packed.
    #[error("cannot pack an answer: {0}")]
    Answer(String),
    /// The control plane stops.
    #[error("this control plane is stopping")]
    Stopped,
}

/// What is told to the machine from above.
#[derive(Debug, Clone)]
pub enum Command {
    /// The configuration has this version now.
    NewVersion(u64),
    /// The answer of [`Effect::Pull`]: the result as JSON text.
    Answer {
        /// Id of the call.
        id: Value,
        /// The result, or why there is none.
        outcome: Result<Arc<str>, RpcError>,
    },
    /// End the link.
    Stop,
}

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Hello,
    Silence,
    Notify,
    Ping,
}

/// What the machine is told at its making.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Version of the configuration.
    pub version: u64,
    /// Offer `kong.sync.v2` (`cluster_incremental_sync`).
    pub sync: bool,
    /// Longest message in bytes when unpacked.
    pub limit: usize,
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
    ("calls are bounded", |link| link.calls <= CALLS_LIMIT),
];

/// The control plane's side of a v2 link; see the module for its table.
#[derive(Debug)]
pub struct CpLink {
    settings: Settings,
    state: State,
    hello: Arc<Hello>,
    notification: Option<Notification>,
    /// Newest version there is, and newest version the node was told of.
    newest: u64,
    told: u64,
    next_id: u64,
    /// Calls being answered.
    calls: usize,
    effects: VecDeque<Effect>,
}

/// Whether a node of this Kong version speaks another dialect under the same name, as Kong 3.10 and later 3.x do. It is
/// offered nothing and stays with protocol v1.
fn speaks_another_dialect(version: &str) -> bool {
    Version::parse(version).is_some_and(|v| v >= Version::new(3, 10, 0) && v < Version::new(4, 0, 0))
}

impl CpLink {
    /// A machine for a connection that was upgraded just `now`.
    pub fn new(now: Moment, settings: Settings) -> Self {
        Self {
            settings,
            state: State::AwaitingHello { until: now + CALL_LIMIT },
            hello: Arc::default(),
            notification: None,
            newest: settings.version,
            told: settings.version,
            next_id: 0,
            calls: 0,
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

    /// Whether the node takes notifications, and was offered what they are about.
    fn notifiable(&self) -> bool {
        self.hello.offers(sync::CAPABILITY) && self.offers_sync()
    }

    /// Whether the node is offered `kong.sync.v2`.
    fn offers_sync(&self) -> bool {
        self.settings.sync && !speaks_another_dialect(&self.hello.version)
    }

    fn next_timer(&self) -> Option<(Moment, Timer)> {
        match &self.state {
            State::AwaitingHello { until } => Some((*until, Timer::Hello)),
            State::Open { heard } => {
                let notify = self.notification.as_ref().map(|notification| (notification.until, Timer::Notify));
                let idle = (heard.ping_at, Timer::Ping).min((heard.silent_at(), Timer::Silence));
                Some(notify.map_or(idle, |notify| notify.min(idle)))
            }
            State::Closed => None,
        }
    }

    fn take_hello(&mut self, now: Moment, frame: &Frame) {
        match Hello::decode(frame) {
            Ok(hello) => self.hello = Arc::new(hello),
            Err(error) => return self.hang_up(error.into()),
        }
        self.state = State::Open { heard: Heard::now(now) };
        // It pulls by itself when it joins; it is told of what comes from now on.
        self.told = self.newest;
        let mut capabilities = Vec::new();
        if self.offers_sync() {
            capabilities.push(sync::CAPABILITY.to_owned());
            // A Kong node does not list it, hence never hears of it.
            capabilities.extend(self.hello.offers(report::CAPABILITY).then(|| report::CAPABILITY.to_owned()));
        }
        let welcome = Welcome { capabilities };
        self.effects.push_back(Effect::Send(welcome.encode()));
        self.effects.push_back(Effect::Joined(Arc::clone(&self.hello)));
    }

    fn take_frame(&mut self, now: Moment, frame: &Frame) {
        match frame {
            Frame::Ping(_) => self.effects.push_back(Effect::Send(Frame::Pong(Bytes::new()))),
            Frame::Pong(_) | Frame::Close => {}
            Frame::Binary(_) | Frame::Text(_) => match Message::decode(frame, self.settings.limit) {
                Ok(Message::Call { id, method, params }) => self.take_call(id, &method, &params),
                Ok(Message::Answer { id, outcome }) => self.take_answer(now, id, outcome),
                Err(error) => self.hang_up(error.into()),
            },
        }
    }

    fn take_call(&mut self, id: Option<Value>, method: &str, params: &Value) {
        let refused = method == report::REFUSED && self.hello.offers(report::CAPABILITY);
        if let Some(refusal) = refused.then(|| Refusal::read(params)).and_then(Result::ok) {
            self.effects.push_back(Effect::Refused(refusal));
        }
        // Without an id no answer is wanted, and no other method does anything but answer.
        let Some(id) = id else { return };
        if method != sync::GET_DELTA || !self.offers_sync() {
            return self.answer(&id, Err(&RpcError::method_not_found()));
        }
        match sync::pulled_version(params) {
            Ok(_) if self.calls == CALLS_LIMIT => self.hang_up(Reason::PeerFlood),
            Ok(version) => {
                self.calls += 1;
                self.effects.push_back(Effect::Record { version });
                self.effects.push_back(Effect::Pull { id, version });
            }
            Err(error) => self.answer(&id, Err(&error)),
        }
    }

    /// Answers that nobody waits for are dropped.
    fn take_answer(&mut self, now: Moment, id: Option<u64>, outcome: Result<Value, RpcError>) {
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
        match rpc::call(id, sync::NOTIFY, &sync::notify_params(self.newest)) {
            Ok(frame) => self.effects.push_back(Effect::Send(frame)),
            Err(error) => return self.hang_up(Reason::Answer(error.to_string())),
        }
        self.next_id += 1;
        self.told = self.newest;
        self.notification = Some(Notification { id, until: now + CALL_LIMIT });
    }

    fn answer(&mut self, id: &Value, outcome: Result<&str, &RpcError>) {
        let frame = match outcome {
            Ok(result) => rpc::answer(id, result),
            Err(error) => rpc::failure(id, error),
        };
        match frame {
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
        self.effects.push_back(Effect::HangUp(reason));
    }
}

//! Calls of the Admin API to data planes: which connections there are, and the way of a question into the session and of
//! its answer out of it.

use gwctl_wire::v2::RpcError;
use gwctl_wire::v2::log_level::Asked;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// Questions that may wait for one session.
const WAITING: usize = 16;

/// One question and where its answer goes. Dropped with its session, it ends the wait.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) asked: Asked,
    pub(crate) answer: oneshot::Sender<Result<Value, RpcError>>,
}

/// Connections by their number, the newest last.
type Connections = BTreeMap<u64, mpsc::Sender<Call>>;

#[derive(Debug, Default)]
struct State {
    nodes: BTreeMap<String, Connections>,
    last: u64,
}

/// The data planes that can be asked. Each may have several connections; the newest is asked.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    state: Mutex<State>,
}

/// Why a data plane gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    #[error("the data plane is not connected in a way that it can be asked (gwctl's own sync, or cluster_rpc)")]
    NotConnected,
    #[error("too many calls of this data plane are under way")]
    Busy,
    #[error("the connection to the data plane ended")]
    Lost,
    #[error("{}", .0.message)]
    Refused(RpcError),
}

impl Calls {
    /// Makes a connection known while what is given back lives.
    pub(crate) fn reach(&self, node: &str) -> (Reachable<'_>, mpsc::Receiver<Call>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let mut state = self.lock();
        state.last += 1;
        let number = state.last;
        state.nodes.entry(node.to_owned()).or_default().insert(number, sender);
        (Reachable { calls: self, node: node.to_owned(), number }, receiver)
    }

    /// Asks and waits for the answer; blocks. The session sees to it that the wait ends.
    pub(crate) fn ask(&self, node: &str, asked: Asked) -> Result<Value, CallError> {
        let newest = {
            let state = self.lock();
            state.nodes.get(node).and_then(|connections| connections.values().next_back().cloned())
        };
        let (answer, answered) = oneshot::channel();
        newest.ok_or(CallError::NotConnected)?.try_send(Call { asked, answer }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => CallError::Busy,
            mpsc::error::TrySendError::Closed(_) => CallError::Lost,
        })?;
        answered.blocking_recv().map_err(|_| CallError::Lost)?.map_err(CallError::Refused)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // It holds plain values.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that can be asked, until it is dropped.
pub(crate) struct Reachable<'a> {
    calls: &'a Calls,
    node: String,
    number: u64,
}

impl Drop for Reachable<'_> {
    fn drop(&mut self) {
        let mut state = self.calls.lock();
        if let Some(connections) = state.nodes.get_mut(&self.node) {
            connections.remove(&self.number);
            if connections.is_empty() {
                state.nodes.remove(&self.node);
            }
        }
    }
}

/// The questions of one session: those to come, and those the node has not answered yet.
#[derive(Default)]
pub(crate) struct Questions<'a> {
    coming: Option<(Reachable<'a>, mpsc::Receiver<Call>)>,
    waiting: BTreeMap<u64, oneshot::Sender<Result<Value, RpcError>>>,
    last_key: u64,
}

impl<'a> Questions<'a> {
    /// From now on this session's node can be asked.
    pub(crate) fn open(&mut self, calls: &'a Calls, node: &str) {
        self.coming = Some(calls.reach(node));
    }

    /// The next question and its key; waits for ever while the node cannot be asked. Cancel safe.
    pub(crate) async fn next(&mut self) -> (u64, Asked) {
        let call = match &mut self.coming {
            Some((_, calls)) => calls.recv().await,
            None => None,
        };
        let Some(call) = call else { return std::future::pending().await };
        self.last_key += 1;
        self.waiting.insert(self.last_key, call.answer);
        (self.last_key, call.asked)
    }

    /// Hands the answer on.
    pub(crate) fn answered(&mut self, key: u64, outcome: Result<Value, RpcError>) {
        if let Some(answer) = self.waiting.remove(&key) {
            // Whoever asked may have gone.
            let _ = answer.send(outcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_newest_connection_is_asked_and_the_end_of_a_session_ends_the_wait() {
        let calls = Calls::default();
        assert_eq!(calls.ask("a", Asked::Get), Err(CallError::NotConnected));
        let (_first, mut first_calls) = calls.reach("a");
        let (second, mut second_calls) = calls.reach("a");
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| calls.ask("a", Asked::Get));
            let call = second_calls.blocking_recv().expect("a call");
            call.answer.send(Ok(json!(7))).expect("somebody waits");
            assert_eq!(asking.join().expect("no panic"), Ok(json!(7)));
            drop(second);
            let asking = scope.spawn(|| calls.ask("a", Asked::Get));
            drop(first_calls.blocking_recv().expect("the other connection is asked"));
            assert_eq!(asking.join().expect("no panic"), Err(CallError::Lost));
        });
    }

    #[test]
    fn a_session_that_takes_no_calls_is_busy_after_a_while() {
        let calls = Calls::default();
        let (_reachable, _waiting) = calls.reach("a");
        std::thread::scope(|scope| {
            for _ in 0..WAITING {
                let sender = calls.lock().nodes["a"].values().next_back().expect("a connection").clone();
                let (answer, _) = oneshot::channel();
                sender.try_send(Call { asked: Asked::Get, answer }).expect("room");
            }
            let asking = scope.spawn(|| calls.ask("a", Asked::Get));
            assert_eq!(asking.join().expect("no panic"), Err(CallError::Busy));
        });
    }
}

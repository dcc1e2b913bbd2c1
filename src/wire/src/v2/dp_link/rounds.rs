//! The rounds of pulling: asking for what is new, handing it out to be applied, and asking again.

use super::{DpLink, Effect, Outcome, Pull, REMEMBERED_CALLS, Reason, Report};
use crate::Moment;
use crate::v2::rpc::{self, RpcError};
use crate::v2::{CALL_LIMIT, Deltas, Dialect, Refusal, report, sync};
use serde_json::Value;

impl DpLink {
    /// Pulls, or remembers to when the pull under way has ended.
    pub(super) fn pull_from_rest(&mut self, now: Moment) {
        match self.pull {
            Pull::Resting => self.ask(now, 1),
            Pull::Asked { .. } | Pull::Applying { .. } => self.again = true,
        }
    }

    fn ask(&mut self, now: Moment, round: u32) {
        let base = if self.ask_everything || self.stranger { 0 } else { self.version };
        let id = self.next_id;
        let frame = match rpc::call(id, sync::GET_DELTA, &sync::pull_params(base, self.dialect)) {
            Ok(frame) => frame,
            Err(error) => return self.give_up(now, Reason::Call(error.to_string())),
        };
        self.next_id += 1;
        self.again = false;
        self.asked.insert(id, base);
        if self.asked.len() > REMEMBERED_CALLS {
            self.asked.pop_first();
        }
        self.pull = Pull::Asked { id, until: now + CALL_LIMIT, round };
        self.effects.push_back(Effect::Send(frame));
    }

    pub(super) fn take_answer(&mut self, now: Moment, id: Option<u64>, outcome: Result<Value, RpcError>) {
        let Some(base) = id.and_then(|id| self.asked.remove(&id)) else { return };
        let round = match self.pull {
            Pull::Asked { id: asked, round, .. } if Some(asked) == id => Some(round),
            Pull::Asked { .. } | Pull::Resting | Pull::Applying { .. } => None,
        };
        let deltas = match outcome.map(Deltas::read) {
            Ok(Ok(deltas)) => deltas,
            // The answer of a call given up; the one that counts is still to come.
            _ if round.is_none() => return,
            Ok(Err(fault)) => return self.refuse(now, fault),
            Err(error) => {
                self.effects.push_back(Effect::Report(Report::PullFailed(error)));
                return self.end_round(now, false);
            }
        };
        self.dialect = deltas.dialect;
        // An answer without rows says that there is nothing new, whatever its flag: it carries no version.
        if deltas.deltas.is_empty() {
            if round.is_some() {
                self.end_round(now, false);
            }
            return;
        }
        let fits = base == self.version || (deltas.wipe && (self.ask_everything || self.stranger));
        if matches!(self.pull, Pull::Applying { .. }) || !fits {
            return;
        }
        self.pull = Pull::Applying { round: round.unwrap_or(1) };
        self.effects.push_back(Effect::Apply { deltas, base: self.version });
    }

    pub(super) fn conclude(&mut self, now: Moment, outcome: Outcome) {
        if !matches!(self.pull, Pull::Applying { .. }) {
            return;
        }
        match outcome {
            Outcome::Applied(version) => {
                let moved = version != self.version;
                self.version = version;
                (self.ask_everything, self.asked_everything, self.stranger) = (false, false, false);
                self.effects.push_back(Effect::Report(Report::Applied { version }));
                self.end_round(now, moved);
            }
            Outcome::Refused(fault) => self.refuse(now, fault),
            // The next poll brings them again.
            Outcome::NotStored(fault) => {
                self.tell_refusal(fault);
                self.rest(now);
            }
        }
    }

    /// Rows that cannot be applied: maybe they build on something else than what is here. Everything is asked for at the
    /// next poll, but not again and again.
    fn refuse(&mut self, now: Moment, fault: String) {
        self.tell_refusal(fault);
        self.ask_everything = !self.asked_everything;
        self.asked_everything = true;
        self.rest(now);
    }

    /// Tells it to the log and, if it wants to hear it, to the control plane.
    fn tell_refusal(&mut self, fault: String) {
        let refusal = Refusal { version: self.version, fault };
        let told = match self.dialect {
            _ if !self.is_synced() => None,
            _ if self.tells_refusals => Some(rpc::notification(report::REFUSED, &refusal.params())),
            Dialect::Texts => Some(rpc::notification(sync::INVALID, &refusal.kong_params())),
            Dialect::Integers => None,
        };
        self.effects.extend(told.and_then(Result::ok).map(Effect::Send));
        self.effects.push_back(Effect::Report(Report::Refused { fault: refusal.fault }));
    }

    /// One more round after the first, and after each that brought a new version.
    pub(super) fn end_round(&mut self, now: Moment, moved: bool) {
        let (Pull::Asked { round, .. } | Pull::Applying { round }) = self.pull else { return };
        self.pull = Pull::Resting;
        if !self.is_synced() {
            return;
        }
        self.backoff.reset();
        self.failed_in_round = 0;
        if round == 1 || moved { self.ask(now, round + 1) } else { self.rest(now) }
    }

    fn rest(&mut self, now: Moment) {
        self.pull = Pull::Resting;
        if std::mem::take(&mut self.again) && self.notified > self.version && self.is_synced() {
            self.ask(now, 1);
        }
    }
}

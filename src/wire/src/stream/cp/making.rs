//! What is made for the node: changes behind the last version sent, or a copy of everything piece by piece.

use super::{COPIES_OVERTAKEN, Copied, CpStream, Cursor, Effect, Fetched, Making, Reason, Report, State};
use crate::Moment;
use crate::stream::message::FromCp;
use crate::stream::{CHANGES_WINDOW, COPY_PAUSE, PIECES_WINDOW};

impl CpStream {
    pub(super) fn need_copy(&mut self, why: String) {
        self.copy_due = Some(why);
        self.sent = None;
        self.give_up_making();
    }

    /// The answer that is under way will be dropped.
    pub(super) fn give_up_making(&mut self) {
        match self.making {
            Making::Nothing => {}
            Making::Waiting(_) => self.making = Making::Nothing,
            Making::Changes { .. } | Making::Beginning | Making::Piece => self.stale = true,
        }
    }

    /// See the module.
    pub(super) fn go_on(&mut self, now: Moment) {
        let waits = self.resumes_at().is_some_and(|at| now < at);
        let idle = self.state == State::Serving && self.withheld.is_none() && self.making == Making::Nothing;
        if !idle || waits || !self.has_something() {
            return;
        }
        self.wait_until = None;
        if let Some(why) = self.copy_due.clone() {
            self.copy_at = now + COPY_PAUSE;
            self.untaken = 0;
            self.unanswered.clear();
            self.making = Making::Beginning;
            self.effects.push_back(Effect::Report(Report::Copying { why }));
            self.effects.push_back(Effect::Begin);
        } else if let Some(from) = self.sent
            && self.unanswered.len() < CHANGES_WINDOW
        {
            self.making = Making::Changes { from };
            self.effects.push_back(Effect::Fetch { from });
        }
    }

    /// The answer that came was the one waited for, and is of use.
    fn made(&mut self, now: Moment) -> bool {
        self.making = Making::Nothing;
        let stale = std::mem::take(&mut self.stale);
        if stale || self.withheld.is_some() {
            self.go_on(now);
        }
        !stale && self.withheld.is_none()
    }

    fn fail(&mut self, now: Moment, fault: String) {
        self.effects.push_back(Effect::Report(Report::NotMade { fault }));
        self.wait_until = Some(now + COPY_PAUSE);
    }

    pub(super) fn take_changes(&mut self, now: Moment, from: u64, outcome: Fetched) {
        if self.making != (Making::Changes { from }) || !self.made(now) {
            return;
        }
        match outcome {
            Fetched::Changes { to, frame } => {
                self.sent = Some(to);
                self.newest = self.newest.max(to);
                self.unanswered.push_back(to);
                self.effects.push_back(Effect::Send(frame));
            }
            Fetched::Snapshot { why } => self.need_copy(why),
            Fetched::Failed(fault) => self.fail(now, fault),
        }
        self.go_on(now);
    }

    pub(super) fn take_beginning(&mut self, now: Moment, outcome: Result<u64, String>) {
        if self.making != Making::Beginning || !self.made(now) {
            return;
        }
        match outcome {
            Ok(begun) => {
                let why = self.copy_due.take().unwrap_or_default();
                self.newest = self.newest.max(begun);
                self.say(&FromCp::SnapshotBegin { version: begun, why });
                self.making = Making::Waiting(Cursor::Rows { begun, after: None });
                self.copy_on();
            }
            Err(fault) => {
                self.fail(now, fault);
                self.go_on(now);
            }
        }
    }

    /// Asks for the next piece if the window has room.
    pub(super) fn copy_on(&mut self) {
        if self.untaken < PIECES_WINDOW
            && let Making::Waiting(cursor) = &self.making
        {
            let cursor = cursor.clone();
            self.making = Making::Piece;
            self.effects.push_back(Effect::Copy(cursor));
        }
    }

    pub(super) fn take_piece(&mut self, now: Moment, outcome: Copied) {
        if self.making != Making::Piece || !self.made(now) {
            return;
        }
        match outcome {
            Copied::Piece { frame, next } => {
                self.untaken += 1;
                self.effects.push_back(Effect::Send(frame));
                self.making = Making::Waiting(next);
                return self.copy_on();
            }
            Copied::End { version, digest } => {
                self.sent = Some(version);
                self.newest = self.newest.max(version);
                self.unanswered.push_back(version);
                self.say(&FromCp::SnapshotEnd { version, digest });
            }
            Copied::Overtaken => {
                self.overtaken += 1;
                if self.overtaken > COPIES_OVERTAKEN {
                    return self.hang_up(Reason::Overtaken);
                }
                self.need_copy("the log was cut behind the beginning of the one before".to_owned());
            }
            Copied::Failed(fault) => {
                self.need_copy("the one before could not be made".to_owned());
                self.fail(now, fault);
            }
        }
        self.go_on(now);
    }
}

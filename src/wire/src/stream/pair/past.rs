//! Connections the data plane has given up and the control plane still serves: what was on its way arrives late, beside
//! what the newer connection brings.

use super::cp::Effect;
use super::{CpStream, Moment, Pair, Pipe};
use std::collections::VecDeque;
use std::time::Duration;

/// The control plane's end of such a connection.
#[derive(Debug)]
pub(super) struct Past {
    pub(super) cp: CpStream,
    to_cp: Pipe,
    asked: VecDeque<(Moment, Effect)>,
}

impl Past {
    /// What happens next; None: it is over.
    fn next_due(&self, ahead: Duration) -> Option<Moment> {
        let arrival = self.to_cp.front().map(|(at, _)| *at);
        let answer = self.asked.front().map(|(at, _)| *at);
        let timer = self.cp.next_timeout().map(|at| at.saturating_sub(ahead));
        [arrival, answer, timer].into_iter().flatten().min()
    }
}

impl Pair {
    /// The data plane has another connection from now on; the control plane has not yet heard that this one is gone.
    pub(super) fn leave_behind(&mut self) {
        if let Some(cp) = self.cp.take() {
            let (mut to_cp, asked) = (std::mem::take(&mut self.to_cp), std::mem::take(&mut self.asked));
            // Lost packets are sent again, later than those of the connection that follows.
            let late = Duration::from_millis([0, 0, 100, 5000][self.pick(4) as usize]);
            to_cp.iter_mut().for_each(|(at, _)| *at = self.now.max(*at) + late);
            self.past.push(Past { cp, to_cp, asked });
        }
    }

    pub(super) fn past_due(&self) -> Option<Moment> {
        self.past.iter().filter_map(|past| past.next_due(self.cp_ahead)).min()
    }

    /// The first of what is due on such connections happens.
    pub(super) fn past_happens(&mut self) {
        let first = (0..self.past.len()).min_by_key(|at| self.past[*at].next_due(self.cp_ahead));
        let Some(at) = first else { return };
        let mut past = self.past.swap_remove(at);
        let (due, now) = (past.next_due(self.cp_ahead), self.now + self.cp_ahead);
        if past.to_cp.front().map(|(at, _)| *at) == due {
            match past.to_cp.pop_front() {
                Some((_, Some(frame))) => past.cp.handle_frame(now, &frame),
                _ => past.cp.handle_lost("end".to_owned()),
            }
        } else if past.asked.front().map(|(at, _)| *at) == due {
            if let Some((_, asked)) = past.asked.pop_front() {
                let command = self.answer(asked, false);
                past.cp.handle_command(now, command);
            }
        } else {
            past.cp.handle_timeout(now);
        }
        self.settle_past(&mut past);
        if !past.cp.is_closed() {
            self.past.push(past);
        }
    }

    /// What is sent reaches nobody, and what is told is of the past: the newer connection says how the node is.
    pub(super) fn settle_past(&mut self, past: &mut Past) {
        while let Some(effect) = past.cp.poll_effect() {
            match effect {
                Effect::Judge(_) | Effect::Fetch { .. } | Effect::Begin | Effect::Copy(_) => {
                    past.asked.push_back((self.now + Duration::from_millis(2), effect));
                }
                Effect::Applied(applied) => {
                    self.late_reports += 1;
                    self.check_report(&applied);
                }
                _ => {}
            }
        }
        assert_eq!(past.cp.broken_invariant(), None, "seed {}, at {:?}", self.seed, self.now);
    }
}

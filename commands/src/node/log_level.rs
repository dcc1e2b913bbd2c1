//! Which level of the log is in force: the node's own, or another for a while.

use gwctl_data_plane::Levels;
use std::time::{Duration, Instant};

/// The node's own level and what lies over it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    /// The level that comes back when a timed one ends.
    own: String,
    timed: Option<Timed>,
    /// Number of the newest change: the end of an older one undoes nothing.
    change: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Timed {
    level: String,
    until: Instant,
}

impl State {
    pub(super) fn new(level: &str) -> Self {
        Self { own: level.to_owned(), timed: None, change: 0 }
    }

    pub(super) fn own(&self) -> &str {
        &self.own
    }

    pub(super) fn level(&self) -> &str {
        self.timed.as_ref().map_or(&self.own, |timed| &timed.level)
    }

    /// Sets a level for good (None) or until then; the number of the change.
    pub(super) fn set(&mut self, level: &str, until: Option<Instant>) -> u64 {
        self.timed = until.map(|until| Timed { level: level.to_owned(), until });
        if self.timed.is_none() {
            level.clone_into(&mut self.own);
        }
        self.change += 1;
        self.change
    }

    /// Brings the own level back, unless another change came after this one.
    pub(super) fn end(&mut self, change: u64) -> Option<&str> {
        if change != self.change {
            return None;
        }
        self.timed = None;
        Some(&self.own)
    }

    pub(super) fn levels(&self, now: Instant) -> Levels {
        let left = self.timed.as_ref().map_or(Duration::ZERO, |timed| timed.until.saturating_duration_since(now));
        Levels {
            current: self.level().to_owned(),
            seconds: left.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX),
            original: self.own.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timed_level_ends_with_the_own_one_and_an_older_end_undoes_nothing() {
        let (now, mut state) = (Instant::now(), State::new("notice"));
        let in_a_minute = Some(now + Duration::from_secs(60));
        let first = state.set("debug", in_a_minute);
        let levels = Levels { current: "debug".to_owned(), seconds: 60, original: "notice".to_owned() };
        assert_eq!(state.levels(now), levels);
        let second = state.set("error", in_a_minute);
        assert_eq!(state.end(first), None);
        assert_eq!(state.level(), "error");
        assert_eq!(state.end(second), Some("notice"));
        assert_eq!((state.level(), state.levels(now).seconds), ("notice", 0));
        state.set("warn", None);
        assert_eq!((state.level(), state.levels(now).original.as_str()), ("warn", "warn"));
    }
}

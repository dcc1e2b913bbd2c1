//! Time as an argument.

use std::fmt::Debug;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where a part of the node reads the time, so that tests can set it.
pub trait Clock: Debug + Send + Sync {
    /// A point in time that never runs backwards; for intervals and deadlines.
    fn now(&self) -> Instant;

    /// The date and time of day, which an administrator may set back; for time stamps and expiry.
    fn wall(&self) -> SystemTime;

    /// Wall time since 1970 in UTC; zero for an earlier date.
    fn unix(&self) -> Duration {
        self.wall().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    /// Whole seconds of [`Clock::unix`], the form of `created_at` and `updated_at`.
    fn unix_seconds(&self) -> u64 {
        self.unix().as_secs()
    }
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// A clock that stands still until a test moves it.
#[derive(Debug)]
pub struct TestClock {
    hands: Mutex<(Instant, SystemTime)>,
}

impl TestClock {
    /// Stands at `unix` after 1970 by the wall.
    pub fn at(unix: Duration) -> Self {
        Self { hands: Mutex::new((Instant::now(), UNIX_EPOCH + unix)) }
    }

    /// Moves both hands forward.
    pub fn advance(&self, by: Duration) {
        let mut hands = self.lock();
        hands.0 += by;
        hands.1 += by;
    }

    /// Sets the wall time alone, as an administrator or a time server does; it may jump backwards.
    pub fn set_wall(&self, unix: Duration) {
        self.lock().1 = UNIX_EPOCH + unix;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (Instant, SystemTime)> {
        self.hands.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Default for TestClock {
    /// Stands at 2026-01-01T00:00:00Z.
    fn default() -> Self {
        Self::at(Duration::from_secs(1_767_225_600))
    }
}

impl Clock for TestClock {
    fn now(&self) -> Instant {
        self.lock().0
    }

    fn wall(&self) -> SystemTime {
        self.lock().1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_clock_moves_only_when_told() {
        let clock = TestClock::at(Duration::from_secs(100));
        let before = clock.now();
        assert_eq!(clock.now(), before);
        clock.advance(Duration::from_secs(30));
        assert_eq!((clock.now() - before, clock.unix_seconds()), (Duration::from_secs(30), 130));
    }

    #[test]
    fn a_wall_clock_set_back_leaves_intervals_alone() {
        let clock = TestClock::default();
        let before = clock.now();
        clock.set_wall(Duration::from_secs(5));
        assert_eq!((clock.now(), clock.unix_seconds()), (before, 5));
    }
}

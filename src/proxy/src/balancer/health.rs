//! Whether an address is healthy: counters of successes and failures in one atomic word.
//!
//! The rules are those of Kong's checker. A success clears the failures and a failure the successes; a counter that
//! reaches its limit turns the address; a limit of 0 turns the counter off, so that it does not clear others either.
//! What would not change a verdict is not counted: a success of an address without failures, a failure of an unhealthy
//! one without successes. Active and passive checks share the counters.

use std::sync::atomic::{AtomicU64, Ordering};

/// Set while the address is unhealthy.
const UNHEALTHY: u64 = 1 << 63;
const SUCCESSES: u64 = 0xff;
const FAILURES: u64 = 0xffff_ff00;

/// What counts against an address, each with a counter of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A status that means trouble, or no status at all.
    Http,
    /// No connection, or it broke.
    Tcp,
    /// No answer in time.
    Timeout,
}

impl Fault {
    /// Where its counter lies.
    const fn shift(self) -> u32 {
        match self {
            Self::Http => 8,
            Self::Tcp => 16,
            Self::Timeout => 24,
        }
    }
}

/// See the module. Zero, the start, is healthy without failures.
#[derive(Debug, Default)]
pub(crate) struct Health(AtomicU64);

impl Health {
    pub(crate) fn is_healthy(&self) -> bool {
        self.0.load(Ordering::Relaxed) & UNHEALTHY == 0
    }

    /// Nothing is held against it: a success changes nothing.
    pub(crate) fn is_clean(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Counts a success; true when it turned the address healthy.
    pub(crate) fn succeed(&self, limit: u8) -> bool {
        self.update(|word| {
            if limit == 0 {
                return word;
            }
            let successes = (word & SUCCESSES) + 1;
            let waits = word & UNHEALTHY != 0 && successes < u64::from(limit);
            if waits { UNHEALTHY | successes } else { 0 }
        })
    }

    /// Counts a failure; true when it turned the address unhealthy.
    pub(crate) fn fail(&self, fault: Fault, limit: u8) -> bool {
        self.update(|word| {
            if limit == 0 || (word & UNHEALTHY != 0 && word & SUCCESSES == 0) {
                return word;
            }
            let shift = fault.shift();
            let count = ((word >> shift & 0xff) + 1).min(0xff);
            let others = word & FAILURES & !(0xff << shift);
            let unhealthy = if count >= u64::from(limit) { UNHEALTHY } else { word & UNHEALTHY };
            unhealthy | others | count << shift
        })
    }

    /// Sets the verdict and clears the counters; true when it changed.
    pub(crate) fn force(&self, healthy: bool) -> bool {
        self.update(|_| if healthy { 0 } else { UNHEALTHY })
    }

    fn update(&self, change: impl Fn(u64) -> u64) -> bool {
        let update = |word| Some(change(word)).filter(|new| *new != word);
        match self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, update) {
            Ok(old) => (old ^ change(old)) & UNHEALTHY != 0,
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_reach_their_limit() {
        let health = Health::default();
        assert!(!health.fail(Fault::Tcp, 3));
        assert!(!health.fail(Fault::Tcp, 3));
        assert!(health.is_healthy() && !health.is_clean());
        assert!(health.fail(Fault::Tcp, 3));
        assert!(!health.is_healthy());
        assert!(!health.fail(Fault::Tcp, 3), "it was unhealthy before");
    }

    #[test]
    fn each_fault_has_its_own_counter() {
        let health = Health::default();
        for fault in [Fault::Http, Fault::Tcp, Fault::Timeout] {
            assert!(!health.fail(fault, 2));
        }
        assert!(health.fail(Fault::Timeout, 2));
    }

    #[test]
    fn a_success_clears_the_failures() {
        let health = Health::default();
        assert!(!health.fail(Fault::Http, 2));
        assert!(!health.succeed(1));
        assert!(health.is_clean());
        assert!(!health.fail(Fault::Http, 2));
        assert!(health.is_healthy());
    }

    #[test]
    fn a_success_that_is_not_counted_clears_nothing() {
        let health = Health::default();
        assert!(!health.fail(Fault::Http, 2));
        assert!(!health.succeed(0));
        assert!(health.fail(Fault::Http, 2));
    }

    #[test]
    fn it_comes_back_after_as_many_successes_in_a_row() {
        let health = Health::default();
        assert!(health.fail(Fault::Http, 1));
        assert!(!health.succeed(2));
        assert!(!health.fail(Fault::Http, 5), "this failure starts the successes again");
        assert!(!health.succeed(2));
        assert!(health.succeed(2));
        assert!(health.is_clean());
    }

    #[test]
    fn a_limit_of_zero_never_turns_it() {
        let health = Health::default();
        for _ in 0..1000 {
            assert!(!health.fail(Fault::Tcp, 0));
        }
        assert!(health.is_clean());
    }

    #[test]
    fn counters_do_not_spill_into_each_other() {
        let health = Health::default();
        for _ in 0..1000 {
            health.fail(Fault::Http, 1);
            health.succeed(255);
        }
        assert!(!health.is_healthy());
        for _ in 0..253 {
            assert!(!health.succeed(255));
        }
        assert!(health.succeed(255));
    }

    #[test]
    fn a_verdict_by_hand_holds_until_the_next() {
        let health = Health::default();
        assert!(health.force(false));
        assert!(!health.force(false));
        assert!(health.force(true));
        assert!(health.is_clean());
    }
}

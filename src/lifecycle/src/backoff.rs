//! Delays between attempts.

use std::time::Duration;

/// Delays that double from a first one up to a cap, each shortened by chance so that peers do not come back in step.
///
/// A delay lies between half and all of its nominal value. The sequence follows from the seed alone.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    cap: Duration,
    attempt: u32,
    state: u64,
}

impl Backoff {
    /// Starts at `first` and never waits longer than `cap`; equal seeds give equal delays.
    pub fn new(first: Duration, cap: Duration, seed: u64) -> Self {
        Self { first, cap: cap.max(first), attempt: 0, state: seed }
    }

    /// Gives the delay before the next attempt and counts the attempt.
    pub fn next_delay(&mut self) -> Duration {
        let nominal = self.first.saturating_mul(1_u32.checked_shl(self.attempt).unwrap_or(u32::MAX)).min(self.cap);
        self.attempt = self.attempt.saturating_add(1);
        let half = nominal / 2;
        half + (nominal - half).mul_f64(self.fraction())
    }

    /// Forgets past failures; call it once an attempt has succeeded.
    pub fn reset(&mut self) {
        self.attempt = 0;
    }

    /// Number of delays given since the start or the last reset.
    pub fn attempts(&self) -> u32 {
        self.attempt
    }

    /// A fraction in [0, 1) by the splitmix64 generator, which is enough to spread peers.
    fn fraction(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(100);
    const CAP: Duration = Duration::from_secs(5);

    #[test]
    fn delays_double_within_half_of_their_nominal_value_and_stop_at_the_cap() {
        for seed in 0..50 {
            let mut backoff = Backoff::new(FIRST, CAP, seed);
            for attempt in 0..80_u32 {
                let nominal = FIRST.saturating_mul(2_u32.saturating_pow(attempt)).min(CAP);
                let delay = backoff.next_delay();
                assert!(delay >= nominal / 2 && delay <= nominal, "seed {seed}, attempt {attempt}: {delay:?}");
            }
        }
    }

    #[test]
    fn equal_seeds_give_equal_delays_and_others_differ() {
        let delays = |seed| {
            let mut backoff = Backoff::new(FIRST, CAP, seed);
            (0..8).map(|_| backoff.next_delay()).collect::<Vec<_>>()
        };
        assert_eq!(delays(7), delays(7));
        assert_ne!(delays(7), delays(8));
    }

    #[test]
    fn reset_returns_to_the_first_delay() {
        let mut backoff = Backoff::new(FIRST, CAP, 1);
        for _ in 0..9 {
            backoff.next_delay();
        }
        assert_eq!(backoff.attempts(), 9);
        backoff.reset();
        assert!(backoff.next_delay() <= FIRST);
    }
}

//! When a data plane dials again.

use std::time::Duration;

/// Shortest wait after a loss or refusal when no other address is left to try.
///
/// Source: Kong 3.9.1 `kong/clustering/data_plane.lua`, reconnect delay of 5 to 10 s.
pub const FIRST_DELAY: Duration = Duration::from_secs(5);

/// Longest wait ever.
///
/// Kong never waits longer than 10 s, so a control plane that comes back meets all its nodes at once, and one that
/// refuses a node is asked for ever at the same pace.
pub const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// Shortest wait before the next address of the same round.
pub const NEXT_ADDRESS_DELAY: Duration = Duration::from_secs(1);

/// Waits, shortest and longest, after the loss of a link of our own sync that worked: mostly a cut wire, and a control
/// plane that was restarted meets its nodes spread over this time. Only the first attempt is that quick.
pub const AGAIN_DELAY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(1000));

/// A link that lived shorter than this may be lost again soon.
pub const SHORT_LIFE: Duration = Duration::from_secs(1);

/// Failures in a row that are answered with Kong's own window before the window grows.
const STEADY_ROUNDS: u32 = 3;

/// Delays between attempts to reach a control plane: random in a window that doubles with each failed round.
///
/// Three rounds wait 5 to 10 s like Kong, then 10 to 20, 20 to 40, and from there 30 to 60 s. The upper half of a
/// window is drawn from, so nodes that lost the same control plane spread out but none hammers.
#[derive(Debug, Clone)]
pub struct Backoff {
    random: Random,
    rounds: u32,
    /// The next round follows the loss of a link that worked.
    again: bool,
    /// Links in a row that lived shorter than [`SHORT_LIFE`].
    short_lives: u32,
}

impl Backoff {
    /// A fresh row of delays; equal seeds give equal rows.
    pub fn new(seed: u64) -> Self {
        Self { random: Random(seed), rounds: 0, again: false, short_lives: 0 }
    }

    /// The wait after a round in which every address failed.
    pub fn next_round(&mut self) -> Duration {
        if std::mem::take(&mut self.again) {
            let factor = 2_u32.pow(self.short_lives);
            let longest = (AGAIN_DELAY.1 * factor).min(FIRST_DELAY * 2);
            return self.random.between((AGAIN_DELAY.0 * factor).min(longest / 2), longest);
        }
        let doublings = self.rounds.saturating_sub(STEADY_ROUNDS - 1).min(8);
        self.rounds = self.rounds.saturating_add(1);
        let window = (FIRST_DELAY * 2 * 2_u32.pow(doublings)).min(LONGEST_DELAY);
        self.random.between(window / 2, window)
    }

    /// The wait before another address of the same round, 1 to 2 s.
    pub fn next_address(&mut self) -> Duration {
        self.random.between(NEXT_ADDRESS_DELAY, NEXT_ADDRESS_DELAY * 2)
    }

    /// The wait before dialing a peer again that asked for `after`: up to a quarter more, so that nodes that were asked
    /// for the same do not come back at the same moment.
    pub fn after_farewell(&mut self, after: Duration) -> Duration {
        self.random.between(after, after + after / 4).min(LONGEST_DELAY)
    }

    /// A link of our own sync that worked was lost after so long: the next round comes soon, and later each time that
    /// links live shorter than [`SHORT_LIFE`].
    pub fn worked(&mut self, lived: Duration) {
        self.rounds = 0;
        let short = if lived < SHORT_LIFE { self.short_lives.saturating_add(1).min(6) } else { 0 };
        self.short_lives = short;
        self.again = true;
    }

    /// Forgets the failures: the peer has proved to work.
    pub fn reset(&mut self) {
        self.rounds = 0;
    }
}

/// SplitMix64: small, even enough for jitter, and the same on every machine.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A whole number of milliseconds from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: Duration, high: Duration) -> Duration {
        let span = (high - low).as_millis() as u64 + 1;
        low + Duration::from_millis(self.next() % span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_link_that_worked_is_dialed_again_at_once_and_then_as_ever() {
        let mut backoff = Backoff::new(7);
        backoff.worked(Duration::from_secs(60));
        let first = backoff.next_round();
        assert!(first >= AGAIN_DELAY.0 && first <= AGAIN_DELAY.1, "{first:?}");
        assert!(backoff.next_round() >= FIRST_DELAY, "a peer that is gone is not hammered");
        let again: Vec<Duration> = (0..9)
            .map(|_| {
                backoff.worked(Duration::from_millis(10));
                backoff.next_round()
            })
            .collect();
        assert!(again[8] > FIRST_DELAY / 2 && again.iter().all(|wait| *wait <= FIRST_DELAY * 2), "{again:?}");
    }

    #[test]
    fn the_window_grows_after_three_rounds_and_stops_at_a_minute() {
        let mut backoff = Backoff::new(7);
        let windows = [(5, 10), (5, 10), (5, 10), (10, 20), (20, 40), (30, 60), (30, 60)];
        for (low, high) in windows {
            let delay = backoff.next_round();
            assert!(delay >= Duration::from_secs(low) && delay <= Duration::from_secs(high), "{delay:?}");
        }
    }

    #[test]
    fn a_working_peer_brings_the_first_window_back() {
        let mut backoff = Backoff::new(7);
        for _ in 0..9 {
            backoff.next_round();
        }
        backoff.reset();
        assert!(backoff.next_round() <= FIRST_DELAY * 2);
    }

    proptest! {
        #[test]
        fn no_seed_leaves_the_limits(seed: u64, rounds in 0_usize..40) {
            let mut backoff = Backoff::new(seed);
            for _ in 0..rounds {
                let delay = backoff.next_round();
                prop_assert!((FIRST_DELAY..=LONGEST_DELAY).contains(&delay));
                let hop = backoff.next_address();
                prop_assert!((NEXT_ADDRESS_DELAY..=NEXT_ADDRESS_DELAY * 2).contains(&hop));
                let asked = Duration::from_millis(seed % 100_000);
                let farewell = backoff.after_farewell(asked);
                prop_assert!(farewell >= asked.min(LONGEST_DELAY) && farewell <= LONGEST_DELAY);
            }
        }
    }
}

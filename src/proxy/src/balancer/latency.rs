//! How long an address needs to answer: an average that weighs the last seconds most.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// After this time an observation weighs 1/e. Source: Kong 3.9.1 `balancer/latency.lua`, `DECAY_TIME`.
const DECAY: f64 = 10.0;

static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Seconds on a clock that never goes back, never 0.
pub(crate) fn clock() -> f64 {
    ORIGIN.elapsed().as_secs_f64() + 1.0
}

/// An exponentially weighted moving average in seconds. Two atomics without a lock: observations at the very same time
/// may overwrite each other, which an average survives.
#[derive(Debug, Default)]
pub(crate) struct Latency {
    average: AtomicU64,
    /// When it was last updated; 0: never.
    touched: AtomicU64,
}

impl Latency {
    /// Takes the time an answer took into the average.
    pub(crate) fn observe(&self, took: Duration, now: f64) {
        let weight = self.decay(now);
        let average = self.average() * weight + took.as_secs_f64() * (1.0 - weight);
        self.set(average, now);
    }

    /// The average as of now: what was long ago counts less, so that a slow address is tried again.
    pub(crate) fn score(&self, now: f64) -> f64 {
        self.average() * self.decay(now)
    }

    /// Starts with an average that was not observed here.
    pub(crate) fn set(&self, average: f64, now: f64) {
        self.average.store(average.to_bits(), Ordering::Relaxed);
        self.touched.store(now.to_bits(), Ordering::Relaxed);
    }

    pub(crate) fn average(&self) -> f64 {
        f64::from_bits(self.average.load(Ordering::Relaxed))
    }

    fn decay(&self, now: f64) -> f64 {
        let touched = f64::from_bits(self.touched.load(Ordering::Relaxed));
        if touched == 0.0 { 0.0 } else { (-(now - touched).max(0.0) / DECAY).exp() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_observation_is_the_average() {
        let latency = Latency::default();
        assert_eq!(latency.score(5.0), 0.0);
        latency.observe(Duration::from_millis(200), 5.0);
        assert_eq!(latency.average(), 0.2);
    }

    #[test]
    fn old_observations_fade() {
        let latency = Latency::default();
        latency.observe(Duration::from_secs(1), 1.0);
        assert!(latency.score(2.0) < 1.0 && latency.score(2.0) > 0.9);
        assert!(latency.score(100.0) < 0.001);
        latency.observe(Duration::from_millis(10), 100.0);
        assert!((latency.average() - 0.01).abs() < 0.001);
    }
}

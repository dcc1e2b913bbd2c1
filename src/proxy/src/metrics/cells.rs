//! Numbers with one writer and many readers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A sum that one thread adds to.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    /// Must be called by one thread only: a sum of two writers would lose some.
    pub(super) fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// As [`Count::add`], for what goes up and down.
    pub(super) fn take(&self, less: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_sub(less), Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Times by upper bounds in milliseconds, the last for those above all.
#[derive(Debug)]
pub(super) struct Buckets<const N: usize> {
    bounds: [u32; N],
    counts: [Count; N],
    above: Count,
    micros: Count,
}

impl<const N: usize> Buckets<N> {
    pub(super) fn new(bounds: [u32; N]) -> Self {
        Self {
            bounds,
            counts: std::array::from_fn(|_| Count::default()),
            above: Count::default(),
            micros: Count::default(),
        }
    }

    pub(super) fn add(&self, time: Duration) {
        let place = self.bounds.iter().position(|bound| time <= Duration::from_millis(u64::from(*bound)));
        place.and_then(|place| self.counts.get(place)).unwrap_or(&self.above).add(1);
        self.micros.add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// Each bound with how many are not above it; how many there are; their sum in milliseconds.
    pub(super) fn read(&self) -> (Vec<(u32, u64)>, u64, f64) {
        let mut below = 0;
        let bounds = self.bounds.iter().zip(&self.counts).map(|(bound, count)| {
            below += count.get();
            (*bound, below)
        });
        let bounds = bounds.collect();
        (bounds, below + self.above.get(), self.micros.get() as f64 / 1000.0)
    }
}

/// Sub-buckets of each power of two: a value is off by an eighth at most.
const PARTS: usize = 8;
/// Powers of two told apart: up to about 76 hours in microseconds.
const POWERS: usize = 38;

/// How values are spread over their range, with the same relative precision everywhere.
#[derive(Debug)]
pub(super) struct Spread {
    counts: Box<[Count]>,
    sum: Count,
}

impl Default for Spread {
    fn default() -> Self {
        Self { counts: (0..PARTS * POWERS).map(|_| Count::default()).collect(), sum: Count::default() }
    }
}

impl Spread {
    pub(super) fn add(&self, value: u64) {
        let place = place(value).min(self.counts.len() - 1);
        if let Some(count) = self.counts.get(place) {
            count.add(1);
        }
        self.sum.add(value);
    }

    /// Adds what this one has counted to `counts`; gives the sum of its values.
    pub(super) fn add_to(&self, counts: &mut Vec<u64>) -> u64 {
        counts.resize(self.counts.len(), 0);
        counts.iter_mut().zip(&self.counts).for_each(|(all, own)| *all += own.get());
        self.sum.get()
    }
}

/// Values below 16 have a place each, later ones an eighth of their power of two.
fn place(value: u64) -> usize {
    let power = 60 - (value | 15).leading_zeros() as usize;
    (power << 3) + (value >> power) as usize
}

/// The highest value of a place.
fn highest(place: usize) -> u64 {
    let power = (place / PARTS).saturating_sub(1);
    (((place - power * PARTS) as u64 + 1) << power) - 1
}

/// The value that this part of what was counted does not exceed; None when nothing was.
pub(super) fn quantile(counts: &[u64], part: f64) -> Option<u64> {
    let all: u64 = counts.iter().sum();
    let wanted = ((all as f64 * part).ceil() as u64).max(1);
    let mut below = 0;
    let place = counts.iter().position(|count| {
        below += count;
        below >= wanted
    });
    place.filter(|_| all > 0).map(highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_within_an_eighth_of_the_highest_of_its_place() {
        let mut last = 0;
        for value in (0..5000).chain((13..37).map(|power| (1_u64 << power) + 1)) {
            let place = place(value);
            let highest = highest(place);
            assert!(place < PARTS * POWERS && highest >= value, "{value} {place} {highest}");
            assert!(highest - value <= value / 8, "{value} is told as {highest}");
            if value < 5000 {
                assert!(place == last || place == last + 1, "{value}: places follow each other");
                last = place;
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let (spread, mut counts) = (Spread::default(), Vec::new());
        assert_eq!(quantile(&counts, 0.5), None);
        (1..=1000).for_each(|value| spread.add(value));
        spread.add(u64::MAX);
        spread.add_to(&mut counts);
        let near = |part: f64, value: f64| (quantile(&counts, part).unwrap() as f64 / value - 1.0).abs() < 0.13;
        assert!(near(0.5, 500.0) && near(0.9, 900.0) && near(0.99, 990.0), "{counts:?}");
    }

    #[test]
    fn buckets_are_cumulative_and_what_is_above_all_counts_too() {
        let buckets = Buckets::new([1, 10]);
        for millis in [1, 5, 10, 11] {
            buckets.add(Duration::from_millis(millis));
        }
        assert_eq!(buckets.read(), (vec![(1, 1), (10, 3)], 4, 27.0));
    }
}

//! How long the last changes took to reach a node.

use gwctl_entities::fleet::Lags;
use std::collections::VecDeque;

/// Reports that count, in milliseconds before now.
const WINDOW_MILLIS: u64 = 5 * 60 * 1000;

/// Reports kept for a node; a thousand nodes take some megabytes.
const KEPT: usize = 512;

/// Moments and lags of the last reports.
#[derive(Debug, Clone, Default)]
pub(super) struct Recent(VecDeque<(u64, u64)>);

impl Recent {
    pub(super) fn add(&mut self, now_millis: u64, lag_millis: u64) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back((now_millis, lag_millis));
    }

    /// What they come to; None when there are none.
    pub(super) fn over(&self, now_millis: u64) -> Option<Lags> {
        let oldest = now_millis.saturating_sub(WINDOW_MILLIS);
        let mut lags: Vec<u64> = self.0.iter().filter(|(at, _)| *at >= oldest).map(|(_, lag)| *lag).collect();
        lags.sort_unstable();
        let share = |percent: usize| lags.get((lags.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        Some(Lags {
            reports: u64::try_from(lags.len()).unwrap_or(u64::MAX),
            p50_millis: share(50)?,
            p99_millis: share(99)?,
            max_millis: *lags.last()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_taken_of_the_last_five_minutes() {
        let mut recent = Recent::default();
        assert_eq!(recent.over(0), None);
        recent.add(1000, 90_000);
        (1..=100).for_each(|lag| recent.add(2000, lag));
        let lags = Lags { reports: 100, p50_millis: 50, p99_millis: 99, max_millis: 100 };
        assert_eq!(recent.over(1001 + WINDOW_MILLIS), Some(lags));
        assert_eq!(recent.over(2001 + WINDOW_MILLIS), None);
    }

    #[test]
    fn the_memory_is_bounded() {
        let mut recent = Recent::default();
        (0..5000).for_each(|lag| recent.add(0, lag));
        assert_eq!(recent.over(0).map(|lags| (lags.reports, lags.max_millis)), Some((512, 4999)));
    }
}

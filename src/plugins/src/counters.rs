//! Counters shared by all workers, for limits of the `local` policy.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

const SHARDS: usize = 64;
/// Entries a shard may hold before the expired ones are looked for.
const FIRST_SWEEP: usize = 1024;

#[derive(Debug, Clone, Copy)]
struct Entry {
    value: u64,
    expires: u64,
}

#[derive(Debug, Default)]
struct Shard {
    entries: HashMap<Box<str>, Entry>,
    sweep_at: usize,
}

impl Shard {
    /// Drops what has expired once the shard has doubled since the last time, so the cost per entry is constant.
    fn sweep(&mut self, now: u64) {
        if self.entries.len() < self.sweep_at.max(FIRST_SWEEP) {
            return;
        }
        self.entries.retain(|_, entry| entry.expires > now);
        self.sweep_at = self.entries.len() * 2;
    }
}

/// Named counters with a time to live. Times are Unix milliseconds, given by the caller.
///
/// Sharded by name; a shard is locked for one map operation, so workers hardly ever meet.
#[derive(Debug)]
pub struct Counters {
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
}

impl Default for Counters {
    fn default() -> Self {
        Self { hasher: RandomState::new(), shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }
}

impl Counters {
    fn shard(&self, key: &str) -> MutexGuard<'_, Shard> {
        // The remainder is below SHARDS, so the cast loses nothing. A poisoned shard still holds whole entries.
        let index = (self.hasher.hash_one(key) % SHARDS as u64) as usize;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value now, 0 when absent or expired.
    pub fn get(&self, key: &str, now: u64) -> u64 {
        self.shard(key).entries.get(key).filter(|entry| entry.expires > now).map_or(0, |entry| entry.value)
    }

    /// Adds and gives the new value. A new counter lives until `expires`; an existing one keeps its end.
    pub fn add(&self, key: &str, by: u64, expires: u64, now: u64) -> u64 {
        let mut shard = self.shard(key);
        if let Some(entry) = shard.entries.get_mut(key) {
            if entry.expires <= now {
                *entry = Entry { value: 0, expires };
            }
            entry.value = entry.value.saturating_add(by);
            return entry.value;
        }
        shard.sweep(now);
        shard.entries.insert(key.into(), Entry { value: by, expires });
        by
    }

    /// Adds 1 unless the value has reached `most`; gives the value before. The end of a new counter is asked for only
    /// when it is needed.
    pub fn add_below(&self, key: &str, most: f64, expires: impl FnOnce() -> u64, now: u64) -> u64 {
        let mut shard = self.shard(key);
        let known = shard.entries.get_mut(key);
        let value = known.as_ref().filter(|entry| entry.expires > now).map_or(0, |entry| entry.value);
        // Exact up to 2^53.
        if value as f64 >= most {
            return value;
        }
        match known {
            Some(entry) if entry.expires > now => entry.value = value + 1,
            Some(entry) => *entry = Entry { value: 1, expires: expires() },
            None => {
                shard.sweep(now);
                shard.entries.insert(key.into(), Entry { value: 1, expires: expires() });
            }
        }
        value
    }

    /// Forgets a counter.
    pub fn remove(&self, key: &str) {
        self.shard(key).entries.remove(key);
    }

    /// Counters held, expired ones included until they are swept.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).entries.len()).sum()
    }

    /// Whether no counter is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_adds_up_until_it_expires() {
        let counters = Counters::default();
        assert_eq!(counters.add("a", 1, 100, 0), 1);
        assert_eq!(counters.add("a", 2, 900, 50), 3, "the first end counts");
        assert_eq!(counters.get("a", 99), 3);
        assert_eq!(counters.get("a", 100), 0);
        assert_eq!(counters.add("a", 1, 200, 100), 1);
    }

    #[test]
    fn a_counter_with_a_limit_stops_there() {
        let counters = Counters::default();
        let count = |now| counters.add_below("a", 2.0, || now + 10, now);
        assert_eq!([count(0), count(1), count(2), count(3)], [0, 1, 2, 2]);
        assert_eq!(counters.get("a", 9), 2);
        assert_eq!([count(10), count(11)], [0, 1], "it starts anew once it has expired");
        assert_eq!(counters.add_below("none", 0.0, || 10, 0), 0);
        assert_eq!(counters.get("none", 0), 0);
    }

    #[test]
    fn expired_counters_do_not_pile_up() {
        let counters = Counters::default();
        for number in 0..SHARDS as u64 * FIRST_SWEEP as u64 * 4 {
            counters.add(&number.to_string(), 1, number + 10, number);
        }
        assert!(counters.len() <= SHARDS * (FIRST_SWEEP + 1), "{} are held", counters.len());
    }

    #[test]
    fn threads_lose_no_count() {
        let counters = Counters::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| _ = counters.add("shared", 1, u64::MAX, 0)));
            }
        });
        assert_eq!(counters.get("shared", 1), 4000);
    }
}

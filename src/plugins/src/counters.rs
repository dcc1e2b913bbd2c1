//! Counters shared by all workers, for limits of the `local` policy.

use hashbrown::HashTable;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

const SHARDS: usize = 64;
/// Entries a shard may hold before the expired ones are looked for.
const FIRST_SWEEP: usize = 1024;

#[derive(Debug)]
struct Counter {
    key: Box<str>,
    hash: u64,
    value: u64,
    expires: u64,
}

#[derive(Debug, Default)]
struct Shard {
    counters: HashTable<Counter>,
    sweep_at: usize,
}

impl Shard {
    fn find(&mut self, key: &str, hash: u64) -> Option<&mut Counter> {
        self.counters.find_mut(hash, |counter| *counter.key == *key)
    }

    fn insert(&mut self, key: &str, hash: u64, value: u64, expires: u64, now: u64) {
        self.sweep(now);
        self.counters.insert_unique(hash, Counter { key: key.into(), hash, value, expires }, |counter| counter.hash);
    }

    /// Drops what has expired once the shard has doubled since the last time, so the cost per entry is constant.
    fn sweep(&mut self, now: u64) {
        if self.counters.len() < self.sweep_at.max(FIRST_SWEEP) {
            return;
        }
        self.counters.retain(|counter| counter.expires > now);
        self.sweep_at = self.counters.len() * 2;
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
    /// The shard of a name and the hash of it, which is keyed: clients choose names.
    fn shard(&self, key: &str) -> (MutexGuard<'_, Shard>, u64) {
        let hash = self.hasher.hash_one(key);
        // Other bits than those that the table looks at first. The remainder is below SHARDS, so the cast loses nothing.
        let index = ((hash >> 32) % SHARDS as u64) as usize;
        // A poisoned shard still holds whole entries.
        (self.shards[index].lock().unwrap_or_else(PoisonError::into_inner), hash)
    }

    /// The value now, 0 when absent or expired.
    pub fn get(&self, key: &str, now: u64) -> u64 {
        let (mut shard, hash) = self.shard(key);
        shard.find(key, hash).filter(|counter| counter.expires > now).map_or(0, |counter| counter.value)
    }

    /// Adds and gives the new value. A new counter lives until `expires`; an existing one keeps its end.
    pub fn add(&self, key: &str, by: u64, expires: u64, now: u64) -> u64 {
        let (mut shard, hash) = self.shard(key);
        if let Some(counter) = shard.find(key, hash) {
            if counter.expires <= now {
                (counter.value, counter.expires) = (0, expires);
            }
            counter.value = counter.value.saturating_add(by);
            return counter.value;
        }
        shard.insert(key, hash, by, expires, now);
        by
    }

    /// Adds 1 unless the value has reached `most`; gives the value before. The end of a new counter is asked for only
    /// when it is needed.
    pub fn add_below(&self, key: &str, most: f64, expires: impl FnOnce() -> u64, now: u64) -> u64 {
        let (mut shard, hash) = self.shard(key);
        let known = shard.find(key, hash);
        let value = known.as_ref().filter(|counter| counter.expires > now).map_or(0, |counter| counter.value);
        // Exact up to 2^53.
        if value as f64 >= most {
            return value;
        }
        match known {
            Some(counter) if counter.expires > now => counter.value = value + 1,
            Some(counter) => (counter.value, counter.expires) = (1, expires()),
            None => shard.insert(key, hash, 1, expires(), now),
        }
        value
    }

    /// Forgets a counter.
    pub fn remove(&self, key: &str) {
        let (mut shard, hash) = self.shard(key);
        if let Ok(counter) = shard.counters.find_entry(hash, |counter| *counter.key == *key) {
            counter.remove();
        }
    }

    /// Counters held, expired ones included until they are swept.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).counters.len()).sum()
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

//! Records read lately, by what they were asked for.

use foldhash::quality::RandomState;
use gwctl_entities::{Record, Value};
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many are remembered at most.
const PLACES: usize = 4096;

/// Each key has one place, and the newest of those that share a place stays: no order of use to keep, and no lock that
/// two clients are likely to ask for. A few thousand busy clients fit; a client more costs a read of the store. So does one
/// that is made to fall on another's place, which is why a quick hash will do.
pub(super) struct Remembered {
    hasher: RandomState,
    places: Box<[Mutex<Option<Box<Entry>>>]>,
}

struct Entry {
    generation: u64,
    key: [Box<str>; 3],
    record: Arc<Record>,
}

impl Default for Remembered {
    fn default() -> Remembered {
        Remembered { hasher: RandomState::default(), places: (0..PLACES).map(|_| Mutex::default()).collect() }
    }
}

impl Remembered {
    fn place(&self, key: [&str; 3]) -> MutexGuard<'_, Option<Box<Entry>>> {
        // The remainder is below the number of places, so the cast loses nothing. An entry is put in whole.
        let index = (self.hasher.hash_one(key) % PLACES as u64) as usize;
        self.places[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record of this key (entity, field, value), if it was read in this generation.
    pub(super) fn get(&self, key: [&str; 3], generation: u64) -> Option<Arc<Record>> {
        let place = self.place(key);
        let entry = place.as_deref().filter(|entry| entry.generation == generation)?;
        entry.key.iter().zip(key).all(|(known, asked)| **known == *asked).then(|| entry.record.clone())
    }

    /// Remembers a record. One that expires by itself is not remembered: no generation tells of its end.
    pub(super) fn put(&self, key: [&str; 3], generation: u64, record: &Arc<Record>) {
        if record.get("ttl").is_some_and(|ttl| *ttl != Value::Null) {
            return;
        }
        *self.place(key) = Some(Box::new(Entry { generation, key: key.map(Into::into), record: record.clone() }));
    }
}

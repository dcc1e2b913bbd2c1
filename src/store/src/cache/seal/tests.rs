//! Damage of every kind, in caches filled by every way there is.

use super::*;
use crate::cache::{Applied, CachedConfiguration, Opening, Portion};
use crate::environment::{FolderLock, MapSize};
use crate::keys;
use crate::suite::fixtures::{self, id, record, route, service};
use crate::{Delta, Digest, Position};
use gwctl_lifecycle::TestClock;
use proptest::prelude::*;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use tempfile::tempdir;

fn try_open(folder: &Path, lock: FolderLock) -> Result<DataPlaneCache, StoreError> {
    let size = MapSize { initial: 1 << 20, limit: 1 << 30 };
    let clock = Arc::new(TestClock::default());
    DataPlaneCache::open_locked(folder, fixtures::registry(), DataPlaneCache::FORMAT, size, clock, lock)
}

fn open(folder: &Path) -> DataPlaneCache {
    // Starts that read nothing are no crashes here.
    let _ = std::fs::remove_file(folder.join(crate::cache::OPENING));
    try_open(folder, FolderLock::claim(folder).unwrap()).unwrap()
}

fn delta(entity: &str, number: u64, new: Option<gwctl_entities::Record>) -> Delta {
    Delta { version: 1, entity: entity.to_owned(), id: id(number), old: None, new }
}

fn consumer(number: u64, name: &str) -> gwctl_entities::Record {
    record(json!({"id": id(number), "username": name, "custom_id": null, "tags": ["t"]}))
}

fn rows() -> Vec<Delta> {
    let mut rows = vec![delta("routes", 30, Some(route(30, 1))), delta("consumers", 40, Some(consumer(40, "c")))];
    rows.extend((1..=9).map(|number| delta("services", number, Some(service(number, &format!("s{number}"))))));
    rows
}

fn position(version: u64, rows: &[Delta]) -> Position {
    let mut digest = Digest::default();
    rows.iter().for_each(|row| digest.change(&row.entity, &row.id, None, row.new.as_ref()));
    Position { version, digest }
}

/// The ways a cache is filled: a payload of v1, rows of v2 upon one, changes of our own sync, a copy in pieces.
const WAYS: [fn(&DataPlaneCache); 4] = [
    |cache| {
        let mut records = std::collections::BTreeMap::<String, Vec<_>>::new();
        rows().into_iter().for_each(|row| records.entry(row.entity).or_default().extend(row.new));
        cache.apply(&CachedConfiguration { hash: "of v1".to_owned(), records }).unwrap();
    },
    |cache| {
        cache.apply(&CachedConfiguration { hash: "first".to_owned(), ..CachedConfiguration::default() }).unwrap();
        let (first, second) = (rows(), vec![delta("services", 9, Some(service(9, "t"))), delta("services", 8, None)]);
        cache.apply_deltas("of v2", &first).unwrap();
        cache.apply_deltas("of v2", &second).unwrap();
    },
    |cache| {
        let (first, all) = (rows().split_off(2), rows());
        assert!(matches!(cache.change("s", position(1, &first), &first), Ok(Applied::Stored(_))));
        assert!(matches!(cache.change("s", position(2, &all), &all), Ok(Applied::Stored(_))));
    },
    |cache| {
        cache.begin_incoming().unwrap();
        let moving = [delta("services", 8, Some(service(8, "s9"))), delta("services", 9, Some(service(9, "s8")))];
        cache.add_incoming(&moving).unwrap();
        rows().chunks(4).for_each(|rows| cache.add_incoming(rows).unwrap());
        assert!(matches!(cache.finish_incoming("s", position(3, &rows())), Ok(Applied::Stored(_))));
        cache.begin_incoming().unwrap();
        cache.add_incoming(&[delta("services", 77, Some(service(77, "half")))]).unwrap();
    },
];

/// Changes the file behind the back of the cache.
fn tamper(cache: &DataPlaneCache, change: impl Fn(&Tables, &mut RwTxn<'_>)) {
    let mut txn = cache.environment.writing().unwrap();
    change(cache.in_force(&txn).unwrap(), &mut txn);
    txn.commit().unwrap();
}

fn row_key(entity: &str, number: u64) -> Vec<u8> {
    keys::key(&[entity, &id(number)])
}

fn edit(tables: &Tables, txn: &mut RwTxn<'_>, entity: &str, number: u64, change: impl Fn(&mut Vec<u8>)) {
    let key = row_key(entity, number);
    let mut row = tables.records.get(txn, &key).unwrap().unwrap().to_vec();
    change(&mut row);
    tables.records.put(txn, &key, &row).unwrap();
}

type Damage = (&'static str, fn(&Tables, &mut RwTxn<'_>));

const DAMAGES: [Damage; 11] = [
    ("a flipped bit that leaves it JSON", |tables, txn| {
        edit(tables, txn, "services", 3, |row| {
            let place = row.windows(2).position(|pair| pair == b"s3").unwrap();
            row[place] ^= 1;
        });
    }),
    ("a flipped bit that does not", |tables, txn| edit(tables, txn, "services", 3, |row| row[0] ^= 0x80)),
    ("a row that is cut off", |tables, txn| edit(tables, txn, "consumers", 40, |row| row.truncate(row.len() / 2))),
    ("an empty row", |tables, txn| edit(tables, txn, "services", 1, Vec::clear)),
    ("a row that is missing", |tables, txn| assert!(tables.records.delete(txn, &row_key("services", 3)).unwrap())),
    ("all rows missing", |tables, txn| tables.records.clear(txn).unwrap()),
    ("a row under another key", |tables, txn| {
        let row = tables.records.get(txn, &row_key("services", 3)).unwrap().unwrap().to_vec();
        tables.records.delete(txn, &row_key("services", 3)).unwrap();
        tables.records.put(txn, &row_key("services", 99), &row).unwrap();
    }),
    ("a row too many", |tables, txn| {
        let row = tables.records.get(txn, &row_key("services", 3)).unwrap().unwrap().to_vec();
        tables.records.put(txn, &row_key("services", 99), &row).unwrap();
    }),
    ("an index entry that is missing", |tables, txn| {
        let key = tables.unique.first(txn).unwrap().unwrap().0.to_vec();
        assert!(tables.unique.delete(txn, &key).unwrap());
    }),
    ("another hash", |tables, txn| {
        let mut hash = tables.setting(txn, HASH).unwrap().unwrap().into_bytes();
        hash[2] ^= 1;
        tables.set_setting(txn, HASH, Some(&String::from_utf8(hash).unwrap())).unwrap();
    }),
    ("a seal that is missing", |tables, txn| tables.set_setting(txn, SEAL, None).unwrap()),
];

#[test]
fn damage_of_every_kind_is_refused_whatever_filled_the_cache_and_everything_begins_anew() {
    for (way, fill) in WAYS.iter().enumerate() {
        for (kind, damage) in DAMAGES {
            let folder = tempdir().unwrap();
            let cache = open(folder.path());
            fill(&cache);
            assert_eq!(cache.damage().unwrap(), None, "way {way}");
            let (hash, whole) = (cache.hash().unwrap(), cache.load(Portion::Whole).unwrap());
            drop(cache);
            let cache = open(folder.path());
            assert_eq!(Opening::Warm(hash.unwrap()), *cache.opening(), "way {way}");
            tamper(&cache, damage);
            drop(cache);
            let cache = open(folder.path());
            let Opening::Discarded(reason) = cache.opening() else { panic!("way {way}, {kind}") };
            assert!(reason.contains(&folder.path().display().to_string()), "{reason}");
            let left = (cache.hash().unwrap(), cache.stand().unwrap(), cache.load(Portion::Whole).unwrap());
            assert_eq!(left, (None, None, None), "way {way}, {kind}: nothing is left to be told of");
            fill(&cache);
            assert_eq!(cache.load(Portion::Whole).unwrap(), whole, "way {way}, {kind}");
            drop(cache);
            assert!(matches!(open(folder.path()).opening(), Opening::Warm(_)), "way {way}, {kind}");
        }
    }
}

#[test]
fn a_damaged_stand_is_noticed() {
    for fill in &WAYS[2..] {
        let folder = tempdir().unwrap();
        let cache = open(folder.path());
        fill(&cache);
        tamper(&cache, |tables, txn| {
            let text = tables.setting(txn, STAND).unwrap().unwrap();
            let other = text.replace(r#""version":2"#, r#""version":6"#).replace(r#""version":3"#, r#""version":7"#);
            assert_ne!(text, other);
            tables.set_setting(txn, STAND, Some(&other)).unwrap();
        });
        drop(cache);
        assert!(matches!(open(folder.path()).opening(), Opening::Discarded(_)));
    }
}

#[test]
fn every_way_leaves_the_age_of_what_is_held() {
    for fill in WAYS {
        let folder = tempdir().unwrap();
        let cache = open(folder.path());
        assert_eq!(cache.written_millis().unwrap(), None);
        fill(&cache);
        assert_eq!(cache.written_millis().unwrap(), Some(fixtures::NOW * 1000));
    }
}

#[test]
fn a_configuration_that_only_comes_in_beside_it_makes_the_one_held_no_younger() {
    let folder = tempdir().unwrap();
    let cache = open(folder.path());
    WAYS[0](&cache);
    let written = cache.written_millis().unwrap();
    drop(cache);
    let _ = std::fs::remove_file(folder.path().join(crate::cache::OPENING));
    let (size, later) = (MapSize::default(), TestClock::at(std::time::Duration::from_secs(fixtures::NOW + 100)));
    let tag = DataPlaneCache::FORMAT;
    let cache = DataPlaneCache::open_with(folder.path(), fixtures::registry(), tag, size, Arc::new(later)).unwrap();
    cache.begin_incoming().unwrap();
    cache.add_incoming(&rows()).unwrap();
    assert_eq!(cache.written_millis().unwrap(), written);
    cache.discard_incoming().unwrap();
    assert_eq!(cache.written_millis().unwrap(), written);
    cache.apply_deltas("next", &[]).unwrap();
    assert_ne!(cache.written_millis().unwrap(), written);
    assert_eq!(cache.damage().unwrap(), None);
}

/// Makes it what an earlier program left.
fn unseal(cache: &DataPlaneCache) {
    tamper(cache, |tables, txn| {
        tables.set_setting(txn, SEAL, Some("of long ago")).unwrap();
        tables.set_setting(txn, TAG, Some("rows 1")).unwrap();
    });
}

#[test]
fn a_cache_of_before_there_were_seals_is_sealed_and_damage_of_own_sync_found_by_its_digest() {
    for (way, fill) in WAYS.iter().enumerate() {
        let folder = tempdir().unwrap();
        let cache = open(folder.path());
        fill(&cache);
        unseal(&cache);
        drop(cache);
        let cache = open(folder.path());
        assert!(matches!(cache.opening(), Opening::Warm(_)), "way {way}");
        unseal(&cache);
        tamper(&cache, DAMAGES[0].1);
        drop(cache);
        let found = matches!(open(folder.path()).opening(), Opening::Discarded(_));
        assert_eq!(found, way >= 2, "way {way}: a hash of Kong's says nothing of rows");
        let cache = open(folder.path());
        tamper(&cache, |tables, txn| tables.set_setting(txn, HASH, Some("x")).unwrap());
        drop(cache);
        assert!(matches!(open(folder.path()).opening(), Opening::Discarded(_)), "way {way}: sealed since");
    }
}

/// The lock as a process has it that takes the place of another.
fn handed(folder: &Path) -> (FolderLock, FolderLock) {
    let own = FolderLock::claim(folder).unwrap();
    let handed = FolderLock::handed(own.share().unwrap());
    (own, handed)
}

#[test]
fn what_a_process_without_seals_writes_until_it_hands_over_is_sealed_then() {
    let folder = tempdir().unwrap();
    let cache = open(folder.path());
    WAYS[0](&cache);
    unseal(&cache);
    drop(cache);
    let (_own, lock) = handed(folder.path());
    let cache = try_open(folder.path(), lock).unwrap();
    assert!(matches!(cache.opening(), Opening::Warm(_)));
    // The other one writes on, without a seal.
    tamper(&cache, |tables, txn| edit(tables, txn, "services", 3, |row| row.push(b' ')));
    cache.written_elsewhere().unwrap();
    assert_eq!(cache.damage().unwrap(), None);
    cache.apply_deltas("next", &[delta("services", 3, Some(service(3, "next")))]).unwrap();
    assert_eq!(cache.damage().unwrap(), None);
}

#[test]
fn a_damaged_cache_is_not_taken_over_from_a_process_that_serves() {
    let folder = tempdir().unwrap();
    let cache = open(folder.path());
    WAYS[0](&cache);
    tamper(&cache, DAMAGES[4].1);
    drop(cache);
    let (_own, lock) = handed(folder.path());
    assert!(matches!(try_open(folder.path(), lock).err(), Some(StoreError::Damaged { .. })));
    assert!(folder.path().join("data.mdb").exists());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// The sum that is kept is that of what is there, also where unique values move between rows.
    #[test]
    fn the_checksum_follows_every_change(
        batches in prop::collection::vec(
            (0_usize..3, prop::collection::vec((1_u64..7, 0_u8..7, any::<bool>()), 0..8)), 1..12),
    ) {
        let folder = tempdir().unwrap();
        let cache = open(folder.path());
        for (way, rows) in batches {
            let row = |(number, name, there): (u64, u8, bool)| match number % 2 {
                0 => delta("services", number, there.then(|| service(number, &format!("n{name}")))),
                _ => delta("consumers", number, there.then(|| consumer(number, &format!("n{name}")))),
            };
            let rows: Vec<Delta> = rows.into_iter().map(row).collect();
            match way {
                0 => {
                    let mut records = std::collections::BTreeMap::<String, Vec<_>>::new();
                    rows.into_iter().for_each(|row| records.entry(row.entity).or_default().extend(row.new));
                    cache.apply(&CachedConfiguration { hash: "h".to_owned(), records }).unwrap();
                }
                1 => _ = cache.apply_deltas("h", &rows).unwrap(),
                _ => {
                    cache.begin_incoming().unwrap();
                    rows.chunks(3).for_each(|rows| cache.add_incoming(rows).unwrap());
                    let digest = cache.incoming_digest().unwrap();
                    cache.finish_incoming("s", Position { version: 1, digest }).unwrap();
                }
            }
            prop_assert_eq!(cache.damage().unwrap(), None);
        }
    }
}

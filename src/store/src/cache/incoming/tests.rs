//! Positions, and configurations that come in pieces.

use super::*;
use crate::cache::{CachedConfiguration, Portion};
use crate::suite::fixtures::{self, id, service};
use crate::{LmdbOptions, LmdbStore, MapSize, Store};
use gwctl_entities::{PageQuery, Registry};
use gwctl_lifecycle::TestClock;
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use tempfile::tempdir;

fn open(folder: &Path) -> DataPlaneCache {
    let size = MapSize { initial: 1 << 20, limit: 1 << 30 };
    DataPlaneCache::open_with(folder, registry(), "one", size, Arc::new(TestClock::default())).unwrap()
}

fn registry() -> Arc<Registry> {
    fixtures::registry()
}

fn row(number: u64, name: Option<&str>) -> Delta {
    let new = name.map(|name| service(number, name));
    Delta { version: 0, entity: "services".to_owned(), id: id(number), old: None, new }
}

fn digest_of(rows: &[(u64, &str)]) -> Digest {
    let mut digest = Digest::default();
    rows.iter().for_each(|(number, name)| digest.add("services", &id(*number), &service(*number, name)));
    digest
}

fn position(version: u64, rows: &[(u64, &str)]) -> Position {
    Position { version, digest: digest_of(rows) }
}

/// How many services have come in.
fn incoming(cache: &DataPlaneCache) -> usize {
    let mut rows = 0;
    cache.scan_incoming(&["services"], &mut |_, _| rows += 1).unwrap();
    rows
}

fn names(cache: &DataPlaneCache) -> Vec<String> {
    let loaded = cache.load(Portion::Whole).unwrap().unwrap_or_default();
    let rows = loaded.records.get("services").cloned().unwrap_or_default();
    rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

fn assert_sound(cache: &DataPlaneCache) {
    let problems = cache.reading(|tables, txn| crate::check::problems(txn, tables, &cache.registry)).unwrap();
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(cache.damage().unwrap(), None);
}

#[test]
fn changes_lead_to_the_digest_they_should_or_nowhere() {
    let folder = tempdir().unwrap();
    let cache = open(folder.path());
    let (first, second) = ([(1, "a")], [(1, "b"), (2, "a")]);
    assert!(matches!(cache.change("s", position(1, &first), &[row(1, Some("a"))]), Ok(Applied::Stored(_))));
    let rows = [row(2, Some("a")), row(1, Some("b"))];
    assert_eq!(cache.change("s", position(2, &first), &rows).unwrap(), Applied::Diverged(digest_of(&second)));
    assert_eq!((names(&cache), cache.stand().unwrap().unwrap().version), (vec!["a".to_owned()], 1));
    assert!(matches!(cache.change("s", position(2, &second), &rows), Ok(Applied::Stored(_))));
    drop(cache);
    let cache = open(folder.path());
    let stand = cache.stand().unwrap().unwrap();
    assert_eq!((stand.store.as_str(), stand.version, stand.digest), ("s", 2, digest_of(&second)));
    assert_eq!(stand.applied_millis, fixtures::NOW * 1000);
    assert_eq!(cache.hash().unwrap(), Some(stand.digest.to_string()));
    assert_sound(&cache);
}

#[test]
fn a_configuration_of_another_protocol_has_no_stand() {
    let folder = tempdir().unwrap();
    let cache = open(folder.path());
    cache.change("s", position(1, &[(1, "a")]), &[row(1, Some("a"))]).unwrap();
    cache.apply_deltas("h", &[row(2, Some("b"))]).unwrap();
    assert_eq!(cache.stand().unwrap(), None);
    cache.change("s", position(1, &[(1, "a")]), &[row(1, Some("a"))]).unwrap();
    cache.apply(&CachedConfiguration::default()).unwrap();
    assert_eq!(cache.stand().unwrap(), None);
}

#[test]
fn the_old_configuration_is_in_force_until_the_new_one_is_whole() {
    let folder = tempdir().unwrap();
    let cache = open(folder.path());
    cache.change("s", position(1, &[(1, "a")]), &[row(1, Some("a"))]).unwrap();
    let held = cache.read().unwrap();
    cache.begin_incoming().unwrap();
    cache.add_incoming(&[row(1, Some("b")), row(2, Some("c"))]).unwrap();
    cache.add_incoming(&[row(3, Some("d")), row(2, None)]).unwrap();
    assert_eq!(names(&cache), ["a"]);
    let new = [(1, "b"), (3, "d")];
    assert_eq!(cache.incoming_digest().unwrap(), digest_of(&new));
    assert_eq!(incoming(&cache), 2);
    let wrong = position(9, &[(1, "b")]);
    assert_eq!(cache.finish_incoming("t", wrong).unwrap(), Applied::Diverged(digest_of(&new)));
    assert_eq!(names(&cache), ["a"]);
    assert!(matches!(cache.finish_incoming("t", position(9, &new)), Ok(Applied::Stored(_))));
    assert_eq!(names(&cache), ["b", "d"]);
    assert_eq!(cache.get_by("services", "name", "a").unwrap(), None);
    assert_eq!(held.get("services", &id(1)).unwrap(), Some(service(1, "a")), "a reader keeps what it began with");
    drop(held);
    assert_sound(&cache);
    // Once more, back into the first set, across a restart that finds a half one.
    cache.begin_incoming().unwrap();
    cache.add_incoming(&[row(7, Some("half"))]).unwrap();
    drop(cache);
    let cache = open(folder.path());
    assert_eq!(names(&cache), ["b", "d"]);
    cache.begin_incoming().unwrap();
    cache.add_incoming(&[row(8, Some("e"))]).unwrap();
    cache.finish_incoming("t", position(10, &[(8, "e")])).unwrap();
    assert_eq!(names(&cache), ["e"]);
    assert_sound(&cache);
}

#[test]
fn rows_without_a_beginning_are_refused_and_a_discarded_configuration_is_gone() {
    let folder = tempdir().unwrap();
    let cache = open(folder.path());
    assert!(cache.add_incoming(&[row(1, Some("a"))]).is_err());
    cache.begin_incoming().unwrap();
    cache.add_incoming(&[row(1, Some("a"))]).unwrap();
    cache.discard_incoming().unwrap();
    assert!(cache.finish_incoming("s", position(1, &[(1, "a")])).is_err());
    assert_eq!(incoming(&cache), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// A copy read piece by piece while the store changes, and the changes after it, come to exactly what is there.
    #[test]
    fn a_copy_made_while_rows_change_comes_out_whole(
        first in prop::collection::vec((1_u64..12, 0_u8..8), 0..12),
        later in prop::collection::vec((1_u64..12, 0_u8..8, any::<bool>()), 0..30),
        pieces in 1_usize..6,
    ) {
        let folder = tempdir().unwrap();
        let options = LmdbOptions { clock: Arc::new(TestClock::default()), ..LmdbOptions::default() };
        let store = LmdbStore::open(&folder.path().join("store"), registry(), options).unwrap();
        let cache = open(&folder.path().join("cache"));
        // Names collide often, so that values move between rows while the copy is made.
        let write = |number: u64, name: u8, delete: bool| {
            let row = service(number, &format!("n{name}"));
            let _ = store.write(&fixtures::origin(), &mut |write| match write.get("services", &id(number))? {
                Some(_) if delete => write.delete("services", &id(number)).map(drop),
                Some(_) => write.replace("services", row.clone()),
                None => write.insert("services", row.clone()),
            });
        };
        first.iter().for_each(|(number, name)| write(*number, *name, false));
        let begun = store.position().unwrap().version;
        let mut later = later.into_iter();
        cache.begin_incoming().unwrap();
        let mut after = None;
        loop {
            let chunk = store.rows_after(after.as_ref(), 100 * pieces).unwrap();
            let rows: Vec<Delta> = chunk.rows.iter().map(|(place, record)| Delta {
                version: 0, entity: place.entity.clone(), id: place.id.clone(), old: None, new: Some(record.clone()),
            }).collect();
            cache.add_incoming(&rows).unwrap();
            later.by_ref().take(pieces).for_each(|(number, name, delete)| write(number, name, delete));
            if chunk.last {
                break;
            }
            after = chunk.rows.last().map(|(place, _)| place.clone());
        }
        later.for_each(|(number, name, delete)| write(number, name, delete));
        let crate::Changes::Deltas(changes) = store.changes_since(begun, usize::MAX).unwrap() else { panic!("gone") };
        for change in changes {
            cache.add_incoming(&change.deltas).unwrap();
        }
        let position = store.position().unwrap();
        prop_assert!(matches!(cache.finish_incoming(store.id(), position), Ok(Applied::Stored(_))));
        prop_assert_eq!(store.verify().unwrap(), Vec::<String>::new());
        assert_sound(&cache);
        let everything = PageQuery { size: 100, ..PageQuery::default() };
        prop_assert_eq!(
            cache.read().unwrap().page("services", &everything).unwrap().rows,
            store.read().unwrap().page("services", &everything).unwrap().rows
        );
    }
}

//! What a data plane finds again, and what it throws away.

use super::*;
use crate::suite::fixtures::{self, plugin, record, route, service};
use gwctl_lifecycle::TestClock;
use serde_json::{Value, json};
use tempfile::tempdir;

fn open(folder: &Path) -> DataPlaneCache {
    open_for(folder, "one")
}

fn open_for(folder: &Path, tag: &str) -> DataPlaneCache {
    let size = MapSize { initial: 64 * 1024, limit: 1 << 30 };
    DataPlaneCache::open_with(folder, fixtures::registry(), tag, size, Arc::new(TestClock::default())).unwrap()
}

fn consumer(number: u64) -> Record {
    record(json!({"id": fixtures::id(number), "username": format!("c{number}"), "custom_id": null, "tags": null}))
}

fn credential(number: u64, consumer: u64, ttl: Value) -> Record {
    let consumer = json!({"id": fixtures::id(consumer)});
    record(json!({"id": fixtures::id(number), "key": format!("k{number}"), "consumer": consumer, "ttl": ttl}))
}

fn configuration(hash: &str) -> CachedConfiguration {
    let token = record(json!({"id": fixtures::id(9), "access_token": "t", "refresh_token": null, "ttl": null,
        "service": null, "credential": {"id": fixtures::id(8)}}));
    let application = record(json!({"id": fixtures::id(8), "client_id": "i", "consumer": {"id": fixtures::id(5)}}));
    let mut bound = plugin(4, "cors", None);
    bound.insert("consumer".to_owned(), json!({"id": fixtures::id(5)}));
    let records = [
        ("services", vec![service(1, "a")]),
        ("routes", vec![route(2, 1), route(3, 1)]),
        ("plugins", vec![bound]),
        ("consumers", vec![consumer(5)]),
        ("keyauth_credentials", vec![credential(6, 5, Value::Null), credential(7, 5, json!(fixtures::NOW + 5))]),
        ("oauth2_credentials", vec![application]),
        ("oauth2_tokens", vec![token]),
    ];
    CachedConfiguration {
        hash: hash.to_owned(),
        records: records.into_iter().map(|(entity, rows)| (entity.to_owned(), rows)).collect(),
    }
}

/// Index entries agree with the records.
fn assert_whole(cache: &DataPlaneCache) {
    let problems = cache.reading(|tables, txn| crate::check::problems(txn, tables, &cache.registry)).unwrap();
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(cache.damage().unwrap(), None);
}

#[test]
fn a_scan_visits_what_a_load_gives() {
    let folder = tempdir().unwrap();
    let cache = open(folder.path());
    let scan = |entities: &[&str]| {
        let mut records: BTreeMap<String, Vec<Record>> = BTreeMap::new();
        let mut visit = |entity: &str, bytes: &[u8]| {
            records.entry(entity.to_owned()).or_default().push(serde_json::from_slice(bytes).unwrap());
        };
        (cache.scan(entities, &mut visit).unwrap(), records)
    };
    assert_eq!(scan(&["routes"]), (None, BTreeMap::new()));
    cache.apply(&configuration("h1")).unwrap();
    let (hash, mut expected) = (Some("h1".to_owned()), cache.load(Portion::Whole).unwrap().unwrap().records);
    expected.retain(|entity, _| ["routes", "plugins"].contains(&entity.as_str()));
    assert_eq!(scan(&["routes", "plugins", "snis"]), (hash, expected));
}

#[test]
fn a_new_cache_is_empty_and_a_used_one_warm() {
    let folder = tempdir().unwrap();
    let cache = open(folder.path());
    assert_eq!((cache.opening(), cache.hash().unwrap()), (&Opening::Empty, None));
    assert_eq!(cache.load(Portion::Whole).unwrap(), None);
    cache.apply(&configuration("h1")).unwrap();
    drop(cache);
    let cache = open(folder.path());
    assert_eq!(cache.opening(), &Opening::Warm("h1".to_owned()));
    assert_eq!(cache.load(Portion::Whole).unwrap(), Some(configuration("h1")));
    assert_whole(&cache);
}

#[test]
fn an_empty_configuration_is_a_configuration() {
    let folder = tempdir().unwrap();
    let cache = open(folder.path());
    let empty = CachedConfiguration { hash: "none".to_owned(), ..CachedConfiguration::default() };
    cache.apply(&empty).unwrap();
    assert_eq!(cache.load(Portion::Whole).unwrap(), Some(empty));
}

#[test]
fn applying_replaces_everything() {
    let folder = tempdir().unwrap();
    let cache = open(folder.path());
    cache.apply(&configuration("h1")).unwrap();
    let records = BTreeMap::from([("services".to_owned(), vec![service(9, "z")])]);
    let other = CachedConfiguration { hash: "h2".to_owned(), records };
    cache.apply(&other).unwrap();
    assert_eq!(cache.load(Portion::Whole).unwrap(), Some(other));
    assert_eq!(cache.get_by("services", "name", "a").unwrap(), None);
    assert_whole(&cache);
}

#[test]
fn consumers_and_what_needs_one_can_stay_on_disk() {
    let folder = tempdir().unwrap();
    let cache = open(folder.path());
    cache.apply(&configuration("h1")).unwrap();
    let loaded = cache.load(Portion::WithoutConsumers).unwrap().unwrap();
    let entities: Vec<&str> = loaded.records.keys().map(String::as_str).collect();
    assert_eq!(entities, ["plugins", "routes", "services"]);
}

#[test]
fn records_are_found_by_id_value_and_parent() {
    let folder = tempdir().unwrap();
    let cache = open(folder.path());
    cache.apply(&configuration("h1")).unwrap();
    assert_eq!(cache.get("services", &fixtures::id(1)).unwrap(), Some(service(1, "a")));
    assert_eq!(cache.get_by("keyauth_credentials", "key", "k6").unwrap(), Some(credential(6, 5, Value::Null)));
    assert_eq!(cache.by_parent("routes", "service", &fixtures::id(1)).unwrap(), [route(2, 1), route(3, 1)]);
    assert_eq!(cache.by_parent("routes", "service", &fixtures::id(2)).unwrap(), Vec::<Record>::new());
    assert!(cache.get("nonsense", "x").is_err());
}

#[test]
fn rows_expire_while_the_cache_is_open() {
    let folder = tempdir().unwrap();
    let clock = Arc::new(TestClock::default());
    let shared = Arc::clone(&clock) as Arc<dyn Clock>;
    let cache =
        DataPlaneCache::open_with(folder.path(), fixtures::registry(), "one", MapSize::default(), shared).unwrap();
    cache.apply(&configuration("h1")).unwrap();
    assert!(cache.get_by("keyauth_credentials", "key", "k7").unwrap().is_some());
    clock.advance(Duration::from_secs(5));
    assert_eq!(cache.get_by("keyauth_credentials", "key", "k7").unwrap(), None);
}

#[test]
fn deltas_change_only_what_they_name() {
    let folder = tempdir().unwrap();
    let cache = open(folder.path());
    cache.apply(&configuration("h1")).unwrap();
    let delta = |entity: &str, number: u64, new: Option<Record>| Delta {
        version: 2,
        entity: entity.to_owned(),
        id: fixtures::id(number),
        old: None,
        new,
    };
    let deltas = [
        // The name moves to a new service before the old one is told to give it up.
        delta("services", 20, Some(service(20, "a"))),
        delta("services", 1, Some(service(1, "b"))),
        delta("routes", 3, None),
        delta("routes", 99, None),
    ];
    cache.apply_deltas("h2", &deltas).unwrap();
    assert_eq!(cache.hash().unwrap().as_deref(), Some("h2"));
    assert_eq!(cache.get_by("services", "name", "a").unwrap(), Some(service(20, "a")));
    assert_eq!(cache.get_by("services", "name", "b").unwrap(), Some(service(1, "b")));
    assert_eq!(cache.by_parent("routes", "service", &fixtures::id(1)).unwrap(), [route(2, 1)]);
    assert!(cache.get("consumers", &fixtures::id(5)).unwrap().is_some());
    assert_whole(&cache);
}

#[test]
fn an_unknown_entity_is_refused_as_a_whole() {
    let folder = tempdir().unwrap();
    let cache = open(folder.path());
    cache.apply(&configuration("h1")).unwrap();
    let mut bad = configuration("h2");
    bad.records.insert("zzz".to_owned(), vec![service(1, "a")]);
    assert!(cache.apply(&bad).is_err());
    assert_eq!(cache.load(Portion::Whole).unwrap(), Some(configuration("h1")));
}

#[test]
fn the_same_id_twice_leaves_no_stray_entry() {
    let folder = tempdir().unwrap();
    let cache = open(folder.path());
    let rows = vec![service(1, "a"), service(1, "b")];
    let twice = CachedConfiguration { hash: "h".to_owned(), records: [("services".to_owned(), rows)].into() };
    cache.apply(&twice).unwrap();
    assert_eq!(cache.get_by("services", "name", "a").unwrap(), None);
    assert_eq!(cache.get_by("services", "name", "b").unwrap(), Some(service(1, "b")));
    assert_whole(&cache);
}

#[test]
fn the_format_is_read_under_the_names_it_had_before() {
    let folder = tempdir().unwrap();
    for name in UNSEALED {
        open_for(folder.path(), name).apply(&configuration("h")).unwrap();
        for _ in 0..2 {
            let cache = open_for(folder.path(), DataPlaneCache::FORMAT);
            assert_eq!(*cache.opening(), Opening::Warm("h".to_owned()));
            assert_eq!(cache.load(Portion::Whole).unwrap(), Some(configuration("h")));
        }
    }
    let cache = open_for(folder.path(), "3.9");
    assert!(matches!(cache.opening(), Opening::Discarded(_)), "an earlier program does not know the newer name");
}

#[test]
fn another_tag_discards_the_content() {
    let folder = tempdir().unwrap();
    open(folder.path()).apply(&configuration("h1")).unwrap();
    let cache = open_for(folder.path(), "two");
    let Opening::Discarded(reason) = cache.opening() else { panic!("{:?}", cache.opening()) };
    assert!(reason.contains("one") && reason.contains("two"), "{reason}");
    assert_eq!(cache.load(Portion::Whole).unwrap(), None);
    assert_eq!(cache.get("services", &fixtures::id(1)).unwrap(), None);
    drop(cache);
    assert_eq!(open_for(folder.path(), "two").opening(), &Opening::Empty);
}

#[test]
fn damaged_files_are_discarded_and_the_cache_works_again() {
    for keep in [0.5, 0.0] {
        let folder = tempdir().unwrap();
        let cache = open(folder.path());
        let mut large = configuration("h1");
        large.records.insert("services".to_owned(), (1..2000).map(|n| service(n, &format!("s{n}"))).collect());
        cache.apply(&large).unwrap();
        drop(cache);
        let data = folder.path().join("data.mdb");
        let mut bytes = std::fs::read(&data).unwrap();
        if keep > 0.0 {
            bytes.truncate(bytes.len() / 2);
        } else {
            bytes.fill(7);
        }
        std::fs::write(&data, bytes).unwrap();
        let cache = open(folder.path());
        assert!(matches!(cache.opening(), Opening::Discarded(reason) if reason.contains("damaged")));
        cache.apply(&configuration("h2")).unwrap();
        assert_eq!(cache.load(Portion::Whole).unwrap(), Some(configuration("h2")));
    }
}

#[test]
fn a_cache_that_ends_every_start_is_thrown_away() {
    let folder = tempdir().unwrap();
    open(folder.path()).apply(&configuration("h1")).unwrap();
    // A start that came to its end forgets those before it that did not.
    assert!(open(folder.path()).load(Portion::WithoutConsumers).unwrap().is_some());
    for _ in 0..UNFINISHED_LIMIT {
        assert_eq!(open(folder.path()).opening(), &Opening::Warm("h1".to_owned()));
    }
    let cache = open(folder.path());
    let Opening::Discarded(reason) = cache.opening() else { panic!("{:?}", cache.opening()) };
    assert!(reason.contains("the last 2 starts ended while reading it"), "{reason}");
    assert_eq!(cache.load(Portion::Whole).unwrap(), None);
}

#[test]
fn the_folder_is_held_even_after_starting_over() {
    let folder = tempdir().unwrap();
    std::fs::write(folder.path().join("data.mdb"), "no database".repeat(1000)).unwrap();
    let _cache = open(folder.path());
    let second = DataPlaneCache::open(folder.path(), fixtures::registry(), "one");
    assert!(matches!(second.err(), Some(StoreError::InUse { .. })));
}

#[test]
fn readers_see_whole_configurations_while_others_are_applied() {
    let folder = tempdir().unwrap();
    let cache = open(folder.path());
    let numbered = |number: u64| {
        let rows = (1..=30).map(|row| service(row, &format!("{number} {row}"))).collect();
        CachedConfiguration { hash: number.to_string(), records: [("services".to_owned(), rows)].into() }
    };
    cache.apply(&numbered(0)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=30 {
                cache.apply(&numbered(number)).unwrap();
            }
        });
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..60 {
                    let loaded = cache.load(Portion::Whole).unwrap().unwrap();
                    assert_eq!(loaded, numbered(loaded.hash.parse().unwrap()));
                }
            });
        }
    });
    assert_eq!(cache.hash().unwrap().as_deref(), Some("30"));
}

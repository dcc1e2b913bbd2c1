//! How long the store takes with a hundred thousand services: `cargo bench -p gwctl-store`.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints and stops at the first failure")]

use gwctl_entities::{NodeKind, PageQuery, Record, Registry, RegistryOptions, TagFilter, Value};
use gwctl_store::{CachedConfiguration, DataPlaneCache, LmdbOptions, LmdbStore, Origin, Portion, Store};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROWS: u64 = 100_000;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Arc::new(Registry::bundled(&RegistryOptions {
        kind: NodeKind::ControlPlane,
        router_flavor: "traditional_compatible".to_owned(),
        plugins: None,
    }));
    let store = LmdbStore::open(&folder.path().join("store"), Arc::clone(&registry), LmdbOptions::default()).unwrap();
    println!("one insert into an empty store: {:?}", median(|round| insert(&store, ROWS + 1 + round)));
    let started = Instant::now();
    store
        .write(&Origin::default(), &mut |write| {
            (1..=ROWS).try_for_each(|number| write.insert("services", service(number)))
        })
        .unwrap();
    println!("{ROWS} inserts in one batch: {:?}", started.elapsed());
    println!("one insert on top of them: {:?}", median(|round| insert(&store, ROWS + 101 + round)));
    pages(&store);
    cache(folder.path(), registry);
}

fn insert(store: &LmdbStore, number: u64) {
    store.write(&Origin::default(), &mut |write| write.insert("services", service(number))).unwrap();
}

fn pages(store: &LmdbStore) {
    let all = PageQuery { size: 100, from: Some(id(ROWS / 2)), ..PageQuery::default() };
    let tags = ["even".to_owned(), "seventh".to_owned()].to_vec();
    let tagged = PageQuery { tags: Some(TagFilter::All(tags)), ..all.clone() };
    for (name, query) in [("a page of 100", all), ("a page of 100 by two tags", tagged)] {
        let time = median(|_| assert_eq!(store.read().unwrap().page("services", &query).unwrap().rows.len(), 100));
        println!("{name}: {time:?}");
    }
    let time = median(|round| {
        assert!(
            store
                .read()
                .unwrap()
                .get_by("services", "name", &format!("service {}", 1 + round * 991))
                .unwrap()
                .is_some()
        );
    });
    println!("one look-up by name: {time:?}");
}

fn cache(folder: &std::path::Path, registry: Arc<Registry>) {
    let cache = DataPlaneCache::open(&folder.join("cache"), registry, "bench").unwrap();
    let rows = (1..=ROWS).map(service).collect();
    let configuration = CachedConfiguration { hash: "h".to_owned(), records: [("services".to_owned(), rows)].into() };
    println!("cache, applying {ROWS} rows: {:?}", cache.apply(&configuration).unwrap());
    let started = Instant::now();
    assert!(cache.load(Portion::Whole).unwrap().is_some());
    println!("cache, loading them: {:?}", started.elapsed());
    println!(
        "cache, one look-up: {:?}",
        median(|round| assert!(cache.get("services", &id(1 + round)).unwrap().is_some()))
    );
}

/// The median of a hundred rounds.
fn median(mut round: impl FnMut(u64)) -> Duration {
    let mut times: Vec<Duration> = (0..100)
        .map(|number| {
            let started = Instant::now();
            round(number);
            started.elapsed()
        })
        .collect();
    times.sort();
    times[50]
}

fn id(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

fn service(number: u64) -> Record {
    let mut tags = vec![if number.is_multiple_of(2) { "even" } else { "odd" }];
    if number.is_multiple_of(7) {
        tags.push("seventh");
    }
    let service = json!({"id": id(number), "name": format!("service {number}"), "host": "example.com", "port": 80,
        "protocol": "http", "path": "/path", "retries": 5, "connect_timeout": 60000, "write_timeout": 60000,
        "read_timeout": 60000, "enabled": true, "client_certificate": null, "tls_verify": null, "tls_verify_depth": null,
        "ca_certificates": null, "created_at": 1767225600, "updated_at": 1767225600, "tags": tags});
    match service {
        Value::Object(record) => record,
        other => panic!("no object: {other}"),
    }
}

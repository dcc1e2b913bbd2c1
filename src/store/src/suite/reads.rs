//! Look-ups and pages, and rows that expire.

use super::Case;
use super::fixtures::{
    NOW, consumer, delete, id, insert, key_auth, numbers, page, record, replace, route, service, what,
};
use crate::Store;
use gwctl_entities::{EntityError, Map, PageQuery, TagFilter, Value};
use serde_json::json;

pub(super) const CASES: &[Case] = &[
    ("replacing moves index entries", replace_moves),
    ("records are found by unique field, endpoint key and cache key", look_ups),
    ("unknown entities and fields are errors, not panics", unknown_names),
    ("long and odd values are indexed", odd_values),
    ("pages follow ids and lead on", pages),
    ("pages of a parent", parent_pages),
    ("pages by tags", tag_pages),
    ("expired rows are invisible and give their values free", expiry),
    ("purging deletes expired rows as a version", purge),
];

fn replace_moves(store: &dyn Store) {
    let tagged = |name: &str, tag: &str| {
        let mut record = service(1, name);
        record.insert("tags".to_owned(), json!([tag]));
        record
    };
    insert(store, vec![("services", tagged("a", "old"))]).unwrap();
    replace(store, "services", &tagged("b", "new")).unwrap();
    let read = store.read().unwrap();
    assert_eq!(read.get_by("services", "name", "a").unwrap(), None);
    assert_eq!(read.get_by("services", "name", "b").unwrap(), Some(tagged("b", "new")));
    let by_tag =
        |tag: &str| PageQuery { size: 10, tags: Some(TagFilter::All(vec![tag.to_owned()])), ..PageQuery::default() };
    assert_eq!(read.page("services", &by_tag("old")).unwrap().rows.len(), 0);
    assert_eq!(read.page("services", &by_tag("new")).unwrap().rows.len(), 1);
}

fn look_ups(store: &dyn Store) {
    let upstream =
        |number: u64, name: &str| record(json!({"id": id(number), "name": name, "client_certificate": null}));
    let target = |number: u64, upstream: u64| {
        record(json!({"id": id(number), "target": "10.0.0.1:80", "upstream": {"id": id(upstream)}, "weight": 1}))
    };
    let records = vec![
        ("upstreams", upstream(1, "u")),
        ("upstreams", upstream(2, "v")),
        ("targets", target(3, 1)),
        ("targets", target(4, 2)),
    ];
    insert(store, records).unwrap();
    let read = store.read().unwrap();
    let found = |field: &str, value: &str| read.get_by("targets", field, value).unwrap();
    assert_eq!(found("target", "10.0.0.1:80"), Some(target(3, 1)), "the first by id where several have it");
    assert_eq!(found("target", "10.0.0.2:80"), None);
    let schema = store.registry().entity("targets").unwrap();
    let text = schema.cache_key_of(&target(4, 2)).unwrap();
    assert_eq!(found("cache_key", &text), Some(target(4, 2)));
    assert_eq!(found("id", &id(3)), Some(target(3, 1)));
    drop(read);
    delete(store, "targets", 3).unwrap();
    assert_eq!(store.read().unwrap().get_by("targets", "target", "10.0.0.1:80").unwrap(), Some(target(4, 2)));
}

fn unknown_names(store: &dyn Store) {
    let read = store.read().unwrap();
    assert!(matches!(read.get("nonsense", "x"), Err(EntityError::Database(_))));
    assert!(matches!(read.get_by("services", "host", "x"), Err(EntityError::Database(_))));
    let query = PageQuery { size: 1, parent: Some(("host".to_owned(), id(1))), ..PageQuery::default() };
    assert!(matches!(read.page("services", &query), Err(EntityError::Database(_))));
    drop(read);
    assert!(matches!(insert(store, vec![("nonsense", Map::new())]), Err(EntityError::Database(_))));
    assert!(matches!(insert(store, vec![("services", Map::new())]), Err(EntityError::Database(_))));
}

fn odd_values(store: &dyn Store) {
    let names = ["x".repeat(3000), "x".repeat(2999), "a\0b".to_owned(), "\u{1}".to_owned(), "ü €".to_owned()];
    for (number, name) in (1..).zip(&names) {
        let mut odd = service(number, name);
        odd.insert("tags".to_owned(), json!([name]));
        insert(store, vec![("services", odd)]).unwrap();
        assert!(insert(store, vec![("services", service(100 + number, name))]).is_err(), "taken");
    }
    let read = store.read().unwrap();
    for (number, name) in (1..).zip(&names) {
        let found = read.get_by("services", "name", name).unwrap().unwrap();
        assert_eq!(found["id"], json!(id(number)));
        let query = PageQuery { size: 10, tags: Some(TagFilter::Any(vec![name.clone()])), ..PageQuery::default() };
        assert_eq!(numbers(&read.page("services", &query).unwrap()), [number]);
    }
}

fn pages(store: &dyn Store) {
    let records = (1..=25).rev().map(|number| ("services", service(number, &format!("s{number}")))).collect();
    insert(store, records).unwrap();
    insert(store, vec![("upstreams", record(json!({"id": id(5), "name": "u"})))]).unwrap();
    let (mut query, mut all, mut sizes) = (PageQuery { size: 10, ..PageQuery::default() }, Vec::new(), Vec::new());
    loop {
        let page = page(store, "services", &query);
        all.extend(numbers(&page));
        sizes.push(page.rows.len());
        query.from = page.next;
        if query.from.is_none() {
            break;
        }
    }
    assert_eq!(sizes, [10, 10, 5]);
    assert_eq!(all, (1..=25).collect::<Vec<_>>());
    let exact = page(store, "services", &PageQuery { size: 25, ..PageQuery::default() });
    assert_eq!((exact.rows.len(), exact.next), (25, None));
    // A place in the list survives the deletion of the row it names.
    delete(store, "services", 11).unwrap();
    let from = PageQuery { size: 2, from: Some(id(11)), ..PageQuery::default() };
    assert_eq!(numbers(&page(store, "services", &from)), [12, 13]);
}

fn parent_pages(store: &dyn Store) {
    let mut records = vec![("services", service(1, "a")), ("services", service(2, "b"))];
    records.extend((10..20).map(|number| ("routes", route(number, 1 + number % 2))));
    insert(store, records).unwrap();
    let parent = Some(("service".to_owned(), id(1)));
    let first = page(store, "routes", &PageQuery { size: 3, parent: parent.clone(), ..PageQuery::default() });
    assert_eq!((numbers(&first), first.next.clone()), (vec![10, 12, 14], Some(id(16))));
    let second = page(store, "routes", &PageQuery { size: 3, parent, from: first.next, tags: None });
    assert_eq!((numbers(&second), second.next), (vec![16, 18], None));
}

fn tag_pages(store: &dyn Store) {
    let tagged = |number: u64| {
        let tags: Vec<&str> = [(2, "even"), (3, "three"), (5, "five")]
            .iter()
            .filter(|(by, _)| number.is_multiple_of(*by))
            .map(|(_, tag)| *tag)
            .collect();
        let mut record = service(number, &format!("s{number}"));
        record.insert("tags".to_owned(), json!(tags));
        ("services", record)
    };
    insert(store, (1..=30).map(tagged).collect()).unwrap();
    let listed = |filter: TagFilter, size: usize, from: Option<String>| {
        page(store, "services", &PageQuery { size, from, tags: Some(filter), parent: None })
    };
    let all = |tags: &[&str]| TagFilter::All(tags.iter().map(|tag| (*tag).to_owned()).collect());
    let any = |tags: &[&str]| TagFilter::Any(tags.iter().map(|tag| (*tag).to_owned()).collect());
    assert_eq!(numbers(&listed(all(&["even", "three"]), 100, None)), [6, 12, 18, 24, 30]);
    assert_eq!(numbers(&listed(all(&["three", "even", "five"]), 100, None)), [30]);
    assert_eq!(numbers(&listed(all(&["three", "none"]), 100, None)), [0_u64; 0]);
    let first = listed(any(&["five", "three"]), 4, None);
    assert_eq!((numbers(&first), first.next.clone()), (vec![3, 5, 6, 9], Some(id(10))));
    assert_eq!(numbers(&listed(any(&["five", "three"]), 4, first.next)), [10, 12, 15, 18]);
}

fn expiry(store: &dyn Store) {
    let records = vec![
        ("consumers", consumer(1, "a")),
        ("keyauth_credentials", key_auth(2, 1, "past", json!(NOW))),
        ("keyauth_credentials", key_auth(3, 1, "coming", json!(NOW + 1))),
        ("keyauth_credentials", key_auth(4, 1, "never", Value::Null)),
        ("keyauth_credentials", key_auth(5, 1, "fraction", json!(NOW as f64 - 0.5))),
    ];
    insert(store, records).unwrap();
    let read = store.read().unwrap();
    assert_eq!(read.get("keyauth_credentials", &id(2)).unwrap(), None);
    assert_eq!(read.get_by("keyauth_credentials", "key", "past").unwrap(), None);
    let all = PageQuery { size: 1, ..PageQuery::default() };
    let first = read.page("keyauth_credentials", &all).unwrap();
    assert_eq!((numbers(&first), first.next), (vec![3], Some(id(4))), "expired rows take no place on a page");
    drop(read);
    assert_eq!(what(store, &delete(store, "keyauth_credentials", 2).unwrap().1), Vec::<String>::new());
    assert!(replace(store, "keyauth_credentials", &key_auth(2, 1, "past", Value::Null)).is_err());
    // Value and id of an expired row are free, and the row leaves with a delta.
    let commit = insert(store, vec![("keyauth_credentials", key_auth(6, 1, "past", Value::Null))]).unwrap();
    assert_eq!(what(store, &commit), ["-keyauth_credentials 2", "+keyauth_credentials 6"]);
    let commit = insert(store, vec![("keyauth_credentials", key_auth(5, 1, "again", Value::Null))]).unwrap();
    assert_eq!(what(store, &commit), ["~keyauth_credentials 5"]);
}

fn purge(store: &dyn Store) {
    let mut records = vec![("consumers", consumer(1, "a"))];
    let row =
        |number: u64| ("keyauth_credentials", key_auth(number, 1, &format!("k{number}"), json!(NOW + 10 - 2 * number)));
    records.extend((2..10).map(row));
    insert(store, records).unwrap();
    let first = store.purge_expired(2).unwrap();
    assert_eq!(what(store, &first), ["-keyauth_credentials 8", "-keyauth_credentials 9"], "the longest expired first");
    assert_eq!(first.version, 2);
    assert_eq!(store.purge_expired(100).unwrap().changes, 3);
    assert_eq!(store.purge_expired(100).unwrap().version, 3, "nothing left, no version");
    let left = page(store, "keyauth_credentials", &PageQuery { size: 100, ..PageQuery::default() });
    assert_eq!(numbers(&left), [2, 3, 4]);
}

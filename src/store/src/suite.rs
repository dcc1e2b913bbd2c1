//! What every engine must pass: one function that runs all cases, each on a store of its own.

use crate::{Changes, Commit, Origin, Store};
use gwctl_entities::{
    EntityError, Map, NodeKind, Page, PageQuery, Record, Registry, RegistryOptions, TagFilter, Value,
};
use serde_json::json;
use std::sync::{Arc, OnceLock};

/// The schemas of a control plane with every bundled plugin.
pub(crate) fn registry() -> Arc<Registry> {
    static REGISTRY: OnceLock<Arc<Registry>> = OnceLock::new();
    let options = RegistryOptions {
        kind: NodeKind::ControlPlane,
        router_flavor: "traditional_compatible".to_owned(),
        plugins: None,
    };
    Arc::clone(REGISTRY.get_or_init(|| Arc::new(Registry::bundled(&options))))
}

/// A record from JSON.
pub(crate) fn record(value: Value) -> Record {
    match value {
        Value::Object(record) => record,
        other => panic!("a record is an object, not {other}"),
    }
}

/// An id made of a number, as UUID text.
pub(crate) fn id(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// A service.
pub(crate) fn service(number: u64, name: &str) -> Record {
    record(json!({"id": id(number), "name": name, "host": "example.com", "client_certificate": null, "tags": null,
        "ca_certificates": null}))
}

/// A route to a service.
pub(crate) fn route(number: u64, service: u64) -> Record {
    record(json!({"id": id(number), "name": format!("route {number}"), "service": {"id": id(service)}}))
}

/// A plugin of a service, or a global one.
pub(crate) fn plugin(number: u64, name: &str, service: Option<u64>) -> Record {
    let service = service.map(|number| json!({"id": id(number)}));
    record(json!({"id": id(number), "name": name, "service": service, "route": null, "consumer": null,
        "instance_name": null, "config": {}}))
}

fn consumer(number: u64, username: &str) -> Record {
    record(json!({"id": id(number), "username": username, "custom_id": null, "tags": null}))
}

fn key_auth(number: u64, consumer: u64, key: &str, ttl: Value) -> Record {
    record(json!({"id": id(number), "consumer": {"id": id(consumer)}, "key": key, "ttl": ttl, "tags": null}))
}

fn origin() -> Origin {
    Origin::new("tester", "suite")
}

/// Inserts records as one batch.
pub(crate) fn insert(store: &dyn Store, records: Vec<(&str, Record)>) -> Result<Commit, EntityError> {
    store.write(&origin(), &mut |write| {
        for (entity, record) in &records {
            write.insert(entity, record.clone())?;
        }
        Ok(())
    })
}

fn delete(store: &dyn Store, entity: &str, number: u64) -> Result<(bool, Commit), EntityError> {
    store.transact(&origin(), |write| write.delete(entity, &id(number)))
}

fn replace(store: &dyn Store, entity: &str, record: &Record) -> Result<Commit, EntityError> {
    store.write(&origin(), &mut |write| write.replace(entity, record.clone()))
}

fn page(store: &dyn Store, entity: &str, query: &PageQuery) -> Page {
    store.read().unwrap().page(entity, query).unwrap()
}

fn ids(page: &Page) -> Vec<String> {
    page.rows.iter().map(|row| row["id"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Numbers of the ids that [`id`] made.
fn numbers(page: &Page) -> Vec<u64> {
    ids(page).iter().map(|id| id.rsplit('-').next().unwrap_or_default().parse().unwrap()).collect()
}

fn what(commit: &Commit) -> Vec<String> {
    let sign = |old: bool, new: bool| match (old, new) {
        (false, _) => '+',
        (_, false) => '-',
        _ => '~',
    };
    commit
        .deltas
        .iter()
        .map(|delta| {
            let number: u64 = delta.id.rsplit('-').next().unwrap_or_default().parse().unwrap();
            format!("{}{} {number}", sign(delta.old.is_some(), delta.new.is_some()), delta.entity)
        })
        .collect()
}

/// Runs every case. `fresh` gives an empty store over [`registry`] each time it is called, with a wall clock at
/// 2026-01-01T00:00:00Z.
pub(crate) fn suite(fresh: &dyn Fn() -> Box<dyn Store>) {
    let cases: &[(&str, fn(&dyn Store))] = &[
        ("an empty store has version 0 and nothing in it", empty),
        ("a batch becomes one version with its deltas", one_version),
        ("a failed batch leaves nothing behind", failed_batch),
        ("a refused call inside a batch leaves the batch usable", refused_call),
        ("a batch that changes nothing in sum has no version", nothing_changed),
        ("changes of one record in a batch are one delta", coalesced),
        ("unique fields occur once", unique_fields),
        ("a freed value can be taken in the same batch", freed_value),
        ("cache keys occur once and all components are reported", cache_keys),
        ("primary keys occur once", primary_keys),
        ("foreign keys must lead somewhere", foreign_missing),
        ("restricting references keep a record", restrict),
        ("deletes cascade and write deltas for children", cascade),
        ("a cascade stops at a restricting grandchild", cascade_restricted),
        ("a certificate takes its SNIs along", snis),
        ("a listed CA certificate stays", ca_certificates),
        ("replacing needs a record", replace_absent),
        ("replacing moves index entries", replace_moves),
        ("records are found by unique field, endpoint key and cache key", look_ups),
        ("unknown entities and fields are errors, not panics", unknown_names),
        ("long and odd values are indexed", odd_values),
        ("pages follow ids and lead on", pages),
        ("pages of a parent", parent_pages),
        ("pages by tags", tag_pages),
        ("expired rows are invisible and give their values free", expiry),
        ("purging deletes expired rows as a version", purge),
        ("a snapshot does not see later writes", snapshot),
        ("a batch sees its own changes", own_changes),
        ("replacing everything makes only the deltas of what differs", replace_all),
        ("changes since a version", changes_since),
        ("a trimmed log says how far it reaches", trimmed),
        ("history is newest first", history),
        ("watchers hear of each commit", watch),
        ("settings live beside the configuration", settings),
    ];
    for (name, case) in cases {
        println_case(name);
        case(fresh().as_ref());
    }
}

/// Names the case in the captured output, so that a failure tells which one it was.
#[expect(clippy::print_stdout, reason = "captured by the test harness, shown when a case fails")]
fn println_case(name: &str) {
    println!("case: {name}");
}

fn empty(store: &dyn Store) {
    assert_eq!(store.version(), 0);
    assert_eq!(store.read().unwrap().version(), 0);
    assert_eq!(page(store, "services", &PageQuery { size: 10, ..PageQuery::default() }).rows.len(), 0);
    assert!(matches!(store.changes_since(0, 10), Ok(Changes::Deltas(changes)) if changes.is_empty()));
    assert_eq!(store.history(None, 10), Ok(vec![]));
}

fn one_version(store: &dyn Store) {
    let commit = insert(store, vec![("services", service(1, "a")), ("routes", route(2, 1))]).unwrap();
    assert_eq!((commit.version, store.version()), (1, 1));
    assert_eq!(what(&commit), ["+services 1", "+routes 2"]);
    assert!(commit.deltas.iter().all(|delta| delta.version == 1));
    let logged = store.change(1).unwrap().unwrap();
    assert_eq!(logged.deltas, commit.deltas);
    assert_eq!((logged.version, logged.origin), (1, origin()));
    let read = store.read().unwrap();
    assert_eq!(read.version(), 1);
    assert_eq!(read.get("services", &id(1)).unwrap(), Some(service(1, "a")));
}

fn failed_batch(store: &dyn Store) {
    insert(store, vec![("services", service(1, "a"))]).unwrap();
    let refusal = store.write(&origin(), &mut |write| {
        write.insert("services", service(2, "b"))?;
        write.delete("services", &id(1))?;
        Err(EntityError::Bare { status: 400, message: "no".to_owned() })
    });
    assert_eq!(refusal.map(|commit| commit.version), Err(EntityError::Bare { status: 400, message: "no".to_owned() }));
    assert_eq!(store.version(), 1);
    assert_eq!(numbers(&page(store, "services", &PageQuery { size: 9, ..PageQuery::default() })), [1]);
    assert_eq!(insert(store, vec![("services", service(2, "b"))]).unwrap().version, 2, "no number is skipped");
}

fn refused_call(store: &dyn Store) {
    insert(store, vec![("services", service(1, "a"))]).unwrap();
    let commit = store
        .write(&origin(), &mut |write| {
            assert!(write.insert("services", service(2, "a")).is_err());
            assert!(write.insert("routes", route(3, 99)).is_err());
            write.insert("services", service(2, "b"))
        })
        .unwrap();
    assert_eq!(what(&commit), ["+services 2"]);
}

fn nothing_changed(store: &dyn Store) {
    insert(store, vec![("services", service(1, "a"))]).unwrap();
    let commit = store
        .write(&origin(), &mut |write| {
            write.replace("services", service(1, "a"))?;
            write.insert("services", service(2, "b"))?;
            write.delete("services", &id(2))?;
            assert!(!write.delete("services", &id(77))?);
            Ok(())
        })
        .unwrap();
    assert_eq!((commit.version, commit.deltas.len(), store.version()), (1, 0, 1));
}

fn coalesced(store: &dyn Store) {
    insert(store, vec![("services", service(1, "a"))]).unwrap();
    let commit = store
        .write(&origin(), &mut |write| {
            write.replace("services", service(1, "b"))?;
            write.delete("services", &id(1))?;
            write.insert("services", service(1, "c"))
        })
        .unwrap();
    assert_eq!(what(&commit), ["~services 1"]);
    assert_eq!(commit.deltas[0].old, Some(service(1, "a")));
    assert_eq!(commit.deltas[0].new, Some(service(1, "c")));
}

fn unique_violation(fields: Value) -> EntityError {
    EntityError::UniqueViolation { fields: record(fields) }
}

fn unique_fields(store: &dyn Store) {
    insert(store, vec![("services", service(1, "a")), ("services", service(2, "b"))]).unwrap();
    let taken = unique_violation(json!({"name": "a"}));
    assert_eq!(insert(store, vec![("services", service(3, "a"))]).map(|commit| commit.version), Err(taken.clone()));
    assert_eq!(replace(store, "services", &service(2, "a")).map(|commit| commit.version), Err(taken));
    let nameless = |number| record(json!({"id": id(number), "name": null, "host": "h"}));
    insert(store, vec![("services", nameless(4)), ("services", nameless(5))]).unwrap();
}

fn freed_value(store: &dyn Store) {
    insert(store, vec![("services", service(1, "a")), ("services", service(2, "b"))]).unwrap();
    store
        .write(&origin(), &mut |write| {
            write.replace("services", service(1, "c"))?;
            write.replace("services", service(2, "a"))?;
            write.replace("services", service(1, "b"))
        })
        .unwrap();
    let read = store.read().unwrap();
    assert_eq!(read.get_by("services", "name", "a").unwrap(), Some(service(2, "a")));
    assert_eq!(read.get_by("services", "name", "b").unwrap(), Some(service(1, "b")));
    assert_eq!(read.get_by("services", "name", "c").unwrap(), None);
}

fn cache_keys(store: &dyn Store) {
    insert(store, vec![("services", service(1, "a")), ("plugins", plugin(2, "cors", Some(1)))]).unwrap();
    insert(store, vec![("plugins", plugin(3, "cors", None)), ("plugins", plugin(4, "jwt", Some(1)))]).unwrap();
    let refusal = insert(store, vec![("plugins", plugin(5, "cors", Some(1)))]).map(|commit| commit.version);
    let EntityError::UniqueViolation { fields } = refusal.unwrap_err() else { panic!("another refusal") };
    assert_eq!(
        Value::Object(fields),
        json!({"name": "cors", "route": null, "service": {"id": id(1)}, "consumer": null})
    );
    assert!(insert(store, vec![("plugins", plugin(6, "cors", None))]).is_err());
}

fn primary_keys(store: &dyn Store) {
    insert(store, vec![("services", service(1, "a"))]).unwrap();
    let refusal = insert(store, vec![("services", service(1, "b"))]).map(|commit| commit.version);
    assert_eq!(refusal, Err(EntityError::PrimaryKeyViolation { key: record(json!({"id": id(1)})) }));
    // The same id in another entity is another record.
    insert(store, vec![("consumers", consumer(1, "a"))]).unwrap();
    let parameter = record(json!({"key": "cluster_id", "value": "x", "created_at": 1}));
    insert(store, vec![("parameters", parameter.clone())]).unwrap();
    assert_eq!(store.read().unwrap().get("parameters", "cluster_id").unwrap(), Some(parameter));
}

fn foreign_missing(store: &dyn Store) {
    let missing = EntityError::ForeignKeyMissing {
        field: "service".to_owned(),
        entity: "services".to_owned(),
        key: record(json!({"id": id(1)})),
    };
    assert_eq!(insert(store, vec![("routes", route(2, 1))]).map(|commit| commit.version), Err(missing.clone()));
    insert(store, vec![("services", service(3, "a")), ("routes", route(2, 3))]).unwrap();
    assert_eq!(replace(store, "routes", &route(2, 1)).map(|commit| commit.version), Err(missing));
    let unbound = record(json!({"id": id(2), "name": "r", "service": null}));
    assert_eq!(what(&replace(store, "routes", &unbound).unwrap()), ["~routes 2"]);
    assert!(delete(store, "services", 3).unwrap().0, "nothing refers to it any more");
}

fn restrict(store: &dyn Store) {
    insert(store, vec![("services", service(1, "a")), ("routes", route(2, 1))]).unwrap();
    let kept = EntityError::ForeignKeyRestrict { entity: "services".to_owned(), by: "routes".to_owned() };
    assert_eq!(delete(store, "services", 1).map(|(found, _)| found), Err(kept));
    let commit = store
        .write(&origin(), &mut |write| {
            write.delete("routes", &id(2))?;
            write.delete("services", &id(1)).map(drop)
        })
        .unwrap();
    assert_eq!(what(&commit), ["-routes 2", "-services 1"], "children before parents");
}

fn cascade(store: &dyn Store) {
    let group = record(json!({"id": id(3), "consumer": {"id": id(1)}, "group": "g", "tags": null}));
    let bound = record(json!({"id": id(4), "name": "cors", "service": null, "route": null, "consumer": {"id": id(1)},
        "instance_name": null, "config": {}}));
    let records = vec![
        ("consumers", consumer(1, "a")),
        ("keyauth_credentials", key_auth(2, 1, "k", Value::Null)),
        ("acls", group),
        ("plugins", bound),
        ("consumers", consumer(5, "b")),
        ("keyauth_credentials", key_auth(6, 5, "other", Value::Null)),
    ];
    insert(store, records).unwrap();
    let (found, commit) = delete(store, "consumers", 1).unwrap();
    assert!(found);
    let mut gone = what(&commit);
    assert_eq!(gone.last().map(String::as_str), Some("-consumers 1"));
    gone.sort();
    assert_eq!(gone, ["-acls 3", "-consumers 1", "-keyauth_credentials 2", "-plugins 4"]);
    let read = store.read().unwrap();
    assert_eq!(read.get_by("keyauth_credentials", "key", "k").unwrap(), None);
    assert!(read.get_by("keyauth_credentials", "key", "other").unwrap().is_some());
    insert(store, vec![("keyauth_credentials", key_auth(7, 5, "k", Value::Null))]).unwrap();
}

fn cascade_restricted(store: &dyn Store) {
    // The plugin would go with its service, but the route keeps the service, so the plugin stays too.
    let records = vec![("services", service(1, "a")), ("plugins", plugin(2, "cors", Some(1))), ("routes", route(3, 1))];
    insert(store, records).unwrap();
    assert!(delete(store, "services", 1).is_err());
    assert!(store.read().unwrap().get("plugins", &id(2)).unwrap().is_some());
}

fn snis(store: &dyn Store) {
    let certificate = record(json!({"id": id(1), "cert": "c", "key": "k", "tags": null}));
    let sni = record(json!({"id": id(2), "name": "a.test", "certificate": {"id": id(1)}, "tags": null}));
    let mut user = service(3, "a");
    user.insert("client_certificate".to_owned(), json!({"id": id(1)}));
    insert(store, vec![("certificates", certificate), ("snis", sni), ("services", user)]).unwrap();
    let kept = EntityError::ForeignKeyRestrict { entity: "certificates".to_owned(), by: "services".to_owned() };
    assert_eq!(delete(store, "certificates", 1).map(|(found, _)| found), Err(kept));
    assert!(store.read().unwrap().get("snis", &id(2)).unwrap().is_some(), "a refused delete takes no SNI");
    delete(store, "services", 3).unwrap();
    assert_eq!(what(&delete(store, "certificates", 1).unwrap().1), ["-snis 2", "-certificates 1"]);
}

fn ca_certificates(store: &dyn Store) {
    let authority = record(json!({"id": id(1), "cert": "c", "cert_digest": "d", "tags": null}));
    let mut user = service(2, "a");
    user.insert("ca_certificates".to_owned(), json!([id(9), id(1)]));
    insert(store, vec![("ca_certificates", authority), ("services", user)]).unwrap();
    let refusal = delete(store, "ca_certificates", 1).map(|(found, _)| found);
    let listed = EntityError::ReferencedByOthers {
        entity: format!("ca certificate {}", id(1)),
        by: format!("services (id = {})", id(2)),
    };
    assert_eq!(refusal, Err(listed));
    replace(store, "services", &service(2, "a")).unwrap();
    assert!(delete(store, "ca_certificates", 1).unwrap().0);
}

fn replace_absent(store: &dyn Store) {
    let refusal = replace(store, "services", &service(1, "a")).map(|commit| commit.version);
    assert_eq!(refusal, Err(EntityError::NotFound { key: record(json!({"id": id(1)})), primary: true }));
}

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

/// 2026-01-01T00:00:00Z in seconds, where the store's clock stands.
pub(crate) const NOW: u64 = 1_767_225_600;

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
    assert_eq!(what(&delete(store, "keyauth_credentials", 2).unwrap().1), Vec::<String>::new());
    assert!(replace(store, "keyauth_credentials", &key_auth(2, 1, "past", Value::Null)).is_err());
    // Value and id of an expired row are free, and the row leaves with a delta.
    let commit = insert(store, vec![("keyauth_credentials", key_auth(6, 1, "past", Value::Null))]).unwrap();
    assert_eq!(what(&commit), ["-keyauth_credentials 2", "+keyauth_credentials 6"]);
    let commit = insert(store, vec![("keyauth_credentials", key_auth(5, 1, "again", Value::Null))]).unwrap();
    assert_eq!(what(&commit), ["~keyauth_credentials 5"]);
}

fn purge(store: &dyn Store) {
    let mut records = vec![("consumers", consumer(1, "a"))];
    let row =
        |number: u64| ("keyauth_credentials", key_auth(number, 1, &format!("k{number}"), json!(NOW + 10 - 2 * number)));
    records.extend((2..10).map(row));
    insert(store, records).unwrap();
    let first = store.purge_expired(2).unwrap();
    assert_eq!(what(&first), ["-keyauth_credentials 8", "-keyauth_credentials 9"], "the longest expired first");
    assert_eq!(first.version, 2);
    assert_eq!(store.purge_expired(100).unwrap().deltas.len(), 3);
    assert_eq!(store.purge_expired(100).unwrap().version, 3, "nothing left, no version");
    let left = page(store, "keyauth_credentials", &PageQuery { size: 100, ..PageQuery::default() });
    assert_eq!(numbers(&left), [2, 3, 4]);
}

fn snapshot(store: &dyn Store) {
    insert(store, vec![("services", service(1, "a"))]).unwrap();
    let read = store.read().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| replace(store, "services", &service(1, "b")).unwrap());
    });
    assert_eq!(read.get("services", &id(1)).unwrap(), Some(service(1, "a")));
    assert_eq!((read.version(), store.version()), (1, 2));
    drop(read);
    assert_eq!(store.read().unwrap().get("services", &id(1)).unwrap(), Some(service(1, "b")));
}

fn own_changes(store: &dyn Store) {
    store
        .write(&origin(), &mut |write| {
            write.insert("services", service(1, "a"))?;
            assert_eq!(write.as_read().get_by("services", "name", "a")?, Some(service(1, "a")));
            write.insert("routes", route(2, 1))?;
            let query = PageQuery { size: 5, parent: Some(("service".to_owned(), id(1))), ..PageQuery::default() };
            assert_eq!(numbers(&write.page("routes", &query)?), [2]);
            assert_eq!(write.version(), 0);
            Ok(())
        })
        .unwrap();
}

fn replace_all(store: &dyn Store) {
    let records = vec![("services", service(1, "a")), ("services", service(2, "b")), ("routes", route(3, 2))];
    insert(store, records).unwrap();
    let refusal = store.replace_all(&origin(), &mut |write| write.insert("routes", route(3, 2)));
    assert!(matches!(refusal, Err(EntityError::ForeignKeyMissing { .. })), "it starts from nothing");
    assert_eq!(store.read().unwrap().get("services", &id(2)).unwrap(), Some(service(2, "b")));
    let commit = store
        .replace_all(&origin(), &mut |write| {
            write.insert("services", service(1, "a"))?;
            write.insert("services", service(4, "b"))
        })
        .unwrap();
    assert_eq!(
        (commit.version, what(&commit)),
        (2, vec!["-routes 3".into(), "-services 2".into(), "+services 4".into()])
    );
    let same = store
        .replace_all(&origin(), &mut |write| {
            write.insert("services", service(4, "b"))?;
            write.insert("services", service(1, "a"))
        })
        .unwrap();
    assert_eq!((same.version, same.deltas.len()), (2, 0));
    assert_eq!(store.read().unwrap().get_by("services", "name", "b").unwrap(), Some(service(4, "b")));
}

fn write_names(store: &dyn Store, count: u64) {
    for number in 1..=count {
        insert(store, vec![("services", service(number, &format!("s{number}")))]).unwrap();
    }
}

fn versions(changes: Changes) -> Vec<u64> {
    match changes {
        Changes::Deltas(changes) => changes.iter().map(|change| change.version).collect(),
        Changes::TooOld { oldest } => panic!("too old, the oldest is {oldest}"),
    }
}

fn changes_since(store: &dyn Store) {
    write_names(store, 5);
    assert_eq!(versions(store.changes_since(0, 100).unwrap()), [1, 2, 3, 4, 5]);
    assert_eq!(versions(store.changes_since(3, 100).unwrap()), [4, 5]);
    assert_eq!(versions(store.changes_since(1, 2).unwrap()), [2, 3]);
    assert_eq!(versions(store.changes_since(5, 100).unwrap()), [0_u64; 0]);
    assert!(matches!(store.changes_since(6, 100), Ok(Changes::TooOld { .. })), "a version of another store");
}

fn trimmed(store: &dyn Store) {
    write_names(store, 5);
    assert_eq!(store.trim_log(2), Ok(3));
    assert!(matches!(store.changes_since(2, 10), Ok(Changes::TooOld { oldest: 3 })));
    assert_eq!(versions(store.changes_since(3, 10).unwrap()), [4, 5]);
    assert!(store.change(3).unwrap().is_none());
    assert_eq!(store.trim_log(0), Ok(2));
    assert!(matches!(store.changes_since(4, 10), Ok(Changes::TooOld { oldest: 5 })));
    assert_eq!(versions(store.changes_since(5, 10).unwrap()), [0_u64; 0]);
    assert_eq!(insert(store, vec![("services", service(9, "z"))]).unwrap().version, 6);
}

fn history(store: &dyn Store) {
    write_names(store, 4);
    let entries = store.history(None, 2).unwrap();
    assert_eq!(entries.iter().map(|entry| entry.version).collect::<Vec<_>>(), [4, 3]);
    assert_eq!((&entries[0].origin, entries[0].deltas, entries[0].time_millis), (&origin(), 1, NOW * 1000));
    let older = store.history(Some(3), 10).unwrap();
    assert_eq!(older.iter().map(|entry| entry.version).collect::<Vec<_>>(), [2, 1]);
}

fn watch(store: &dyn Store) {
    let mut newest = store.watch();
    assert!(!newest.has_changed().unwrap());
    write_names(store, 2);
    assert!(newest.has_changed().unwrap());
    assert_eq!(*newest.borrow_and_update(), 2);
    replace(store, "services", &service(1, "s1")).unwrap();
    assert!(!newest.has_changed().unwrap(), "nothing changed, nothing told");
}

fn settings(store: &dyn Store) {
    assert_eq!(store.setting("cluster_id"), Ok(None));
    assert_eq!(store.setting_or_set("cluster_id", "one"), Ok("one".to_owned()));
    assert_eq!(store.setting_or_set("cluster_id", "two"), Ok("one".to_owned()));
    store.replace_all(&origin(), &mut |write| write.insert("services", service(1, "a"))).unwrap();
    assert_eq!(store.setting("cluster_id"), Ok(Some("one".to_owned())));
    store.set_setting("cluster_id", Some("three")).unwrap();
    assert_eq!(store.setting("cluster_id"), Ok(Some("three".to_owned())));
    store.set_setting("cluster_id", None).unwrap();
    assert_eq!(store.setting("cluster_id"), Ok(None));
    assert_eq!(store.version(), 1);
}

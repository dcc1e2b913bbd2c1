//! Batches: atomic, one version each, seen by nobody before they commit.

use super::Case;
use super::fixtures::{id, insert, numbers, origin, page, replace, route, service, what};
use crate::{Changes, Store};
use gwctl_entities::{EntityError, PageQuery};

pub(super) const CASES: &[Case] = &[
    ("an empty store has version 0 and nothing in it", empty),
    ("a batch becomes one version with its deltas", one_version),
    ("a failed batch leaves nothing behind", failed_batch),
    ("a refused call inside a batch leaves the batch usable", refused_call),
    ("a batch that changes nothing in sum has no version", nothing_changed),
    ("changes of one record in a batch are one delta", coalesced),
    ("a snapshot does not see later writes", snapshot),
    ("a batch sees its own changes", own_changes),
    ("replacing everything makes only the deltas of what differs", replace_all),
];

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
    assert_eq!(what(store, &commit), ["+services 1", "+routes 2"]);
    let logged = store.change(1).unwrap().unwrap();
    assert_eq!(logged.deltas.len(), commit.changes);
    assert!(logged.deltas.iter().all(|delta| delta.version == 1));
    assert_eq!(logged.deltas[0].new, Some(service(1, "a")));
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
    assert_eq!(what(store, &commit), ["+services 2"]);
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
    assert_eq!((commit.version, commit.changes, store.version()), (1, 0, 1));
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
    assert_eq!(what(store, &commit), ["~services 1"]);
    let logged = store.change(commit.version).unwrap().unwrap();
    assert_eq!(logged.deltas[0].old, Some(service(1, "a")));
    assert_eq!(logged.deltas[0].new, Some(service(1, "c")));
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
        (commit.version, what(store, &commit)),
        (2, vec!["-routes 3".into(), "-services 2".into(), "+services 4".into()])
    );
    let same = store
        .replace_all(&origin(), &mut |write| {
            write.insert("services", service(4, "b"))?;
            write.insert("services", service(1, "a"))
        })
        .unwrap();
    assert_eq!((same.version, same.changes), (2, 0));
    assert_eq!(store.read().unwrap().get_by("services", "name", "b").unwrap(), Some(service(4, "b")));
}

//! The change log, its watchers, and the settings beside it.

use super::Case;
use super::fixtures::{NOW, consumer, id, insert, key_auth, origin, replace, route, service};
use crate::{Changes, Digest, Position, Store};
use serde_json::json;

pub(super) const CASES: &[Case] = &[
    ("changes since a version", changes_since),
    ("a trimmed log says how far it reaches", trimmed),
    ("a version is read part by part", parts),
    ("each version keeps the digest of what it left", digests),
    ("the rows of data planes are read piece by piece", pieces),
    ("history is newest first", history),
    ("watchers hear of each commit", watch),
    ("settings live beside the configuration", settings),
];

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

fn parts(store: &dyn Store) {
    insert(store, (1..=5).map(|number| ("services", service(number, &format!("s{number}")))).collect()).unwrap();
    let whole = store.change(1).unwrap().unwrap();
    let all = store.part_of_change(1, 0, usize::MAX).unwrap().unwrap();
    assert_eq!((&all.change.deltas, all.change.digest, all.total, all.last), (&whole.deltas, whole.digest, 5, true));
    let mut deltas = Vec::new();
    while deltas.len() < 5 {
        let part = store.part_of_change(1, deltas.len(), 0).unwrap().unwrap();
        assert_eq!((part.change.deltas.len(), part.total, part.last), (1, 5, deltas.len() == 4));
        deltas.extend(part.change.deltas.iter().cloned());
    }
    assert_eq!(*deltas, *whole.deltas);
    let none = store.part_of_change(1, 5, 100).unwrap().unwrap();
    assert!(none.change.deltas.is_empty() && none.last);
    assert!(store.part_of_change(2, 0, 100).unwrap().is_none(), "it is not made yet");
}

fn digests(store: &dyn Store) {
    assert_eq!(store.position().unwrap(), Position::default());
    write_names(store, 2);
    insert(store, vec![("consumers", consumer(9, "x"))]).unwrap();
    let (mut after_one, mut after_all) = (Digest::default(), Digest::default());
    after_one.add("services", &id(1), &service(1, "s1"));
    after_all.add("consumers", &id(9), &consumer(9, "x"));
    after_all.add("services", &id(2), &service(2, "s2"));
    after_all.add("services", &id(1), &service(1, "s1"));
    assert_eq!(store.position().unwrap(), Position { version: 3, digest: after_all });
    assert_eq!(store.digest_at(0), Ok(Some(Digest::default())));
    assert_eq!(store.digest_at(1), Ok(Some(after_one)));
    assert_eq!(store.change(1).unwrap().unwrap().digest, Some(after_one));
    assert_eq!(store.digest_at(4), Ok(None));
    store.trim_log(0).unwrap();
    assert_eq!((store.digest_at(1), store.digest_at(3)), (Ok(None), Ok(Some(after_all))));
    store.replace_all(&origin(), &mut |write| write.insert("services", service(1, "s1"))).unwrap();
    assert_eq!(store.position().unwrap(), Position { version: 4, digest: after_one });
    assert!(!store.id().is_empty());
}

fn pieces(store: &dyn Store) {
    write_names(store, 7);
    let rows = vec![
        ("consumers", consumer(8, "x")),
        ("keyauth_credentials", key_auth(9, 8, "k", json!(NOW - 1))),
        ("routes", route(10, 1)),
    ];
    insert(store, rows).unwrap();
    for bytes in [1, 200, 1 << 20] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let piece = store.rows_after(after.as_ref(), bytes).unwrap();
            found.extend(piece.rows.iter().map(|(place, _)| place.clone()));
            if piece.last {
                break;
            }
            after = found.last().cloned();
        }
        let count = |entity: &str| found.iter().filter(|place| place.entity == entity).count();
        assert_eq!((count("services"), count("routes"), count("keyauth_credentials")), (7, 1, 1), "{bytes}");
        assert_eq!(found.len(), 10);
    }
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

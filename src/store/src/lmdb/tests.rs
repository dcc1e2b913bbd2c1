//! What the suite for every engine cannot know: folders, the map, damage.

use super::*;
use crate::suite::fixtures::{self, insert, record, service};
use crate::suite::suite;
use gwctl_lifecycle::TestClock;
use serde_json::json;
use std::cell::Cell;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use tempfile::tempdir;

fn options() -> LmdbOptions {
    LmdbOptions { clock: Arc::new(TestClock::default()), ..LmdbOptions::default() }
}

fn small(limit: usize) -> LmdbOptions {
    LmdbOptions { map_size: MapSize { initial: 64 * 1024, limit }, ..options() }
}

fn open(folder: &Path, options: LmdbOptions) -> LmdbStore {
    LmdbStore::open(folder, fixtures::registry(), options).unwrap()
}

fn refusal(folder: &Path) -> StoreError {
    LmdbStore::open(folder, fixtures::registry(), options()).err().unwrap()
}

/// A service of some kilobytes.
fn big(number: u64) -> Record {
    let mut big = service(number, &format!("s{number}"));
    big.insert("path".to_owned(), json!("/".repeat(4000)));
    big
}

#[test]
fn the_lmdb_store_passes_the_suite() {
    let folder = tempdir().unwrap();
    let stores = Cell::new(0);
    let place = |number: u32| folder.path().join(number.to_string());
    suite(&|| {
        stores.set(stores.get() + 1);
        Box::new(open(&place(stores.get()), options()))
    });
    for number in 1..=stores.get() {
        assert_eq!(open(&place(number), options()).verify().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn what_was_written_is_there_after_reopening() {
    let folder = tempdir().unwrap();
    let store = open(folder.path(), options());
    insert(&store, vec![("services", service(1, "a"))]).unwrap();
    drop(store);
    let store = open(folder.path(), options());
    assert_eq!(store.version(), 1);
    assert_eq!(store.read().unwrap().get_by("services", "name", "a").unwrap(), Some(service(1, "a")));
    assert_eq!(insert(&store, vec![("services", service(2, "b"))]).unwrap().version, 2);
}

#[test]
fn a_store_of_an_older_gwctl_gets_its_digest_when_it_is_opened() {
    let folder = tempdir().unwrap();
    let store = open(folder.path(), options());
    insert(&store, vec![("services", service(1, "a"))]).unwrap();
    let (id, position) = (store.id().to_owned(), store.position().unwrap());
    store.maintain(|txn| Ok(store.environment.tables.meta.delete(txn, b"digest")?)).unwrap();
    assert_ne!(store.position().unwrap(), position);
    drop(store);
    let store = open(folder.path(), options());
    assert_eq!((store.id(), store.position().unwrap()), (id.as_str(), position));
    assert_eq!(store.verify().unwrap(), Vec::<String>::new());
}

#[test]
fn the_map_grows_by_itself() {
    let folder = tempdir().unwrap();
    let store = open(folder.path(), small(1 << 30));
    let before = store.map_size();
    let runs = Cell::new(0);
    let commit = store
        .write(&Origin::default(), &mut |write| {
            runs.set(runs.get() + 1);
            (1..=200).try_for_each(|number| write.insert("services", big(number)))
        })
        .unwrap();
    assert!(runs.get() > 1, "the batch does not fit at first");
    assert!(store.map_size() > before);
    assert_eq!((commit.version, commit.changes), (1, 200));
    for number in 201..=300 {
        insert(&store, vec![("services", big(number))]).unwrap();
    }
    assert_eq!(store.version(), 101);
    assert_eq!(store.verify().unwrap(), Vec::<String>::new());
}

#[test]
fn work_that_swallows_the_error_is_rerun_all_the_same() {
    let folder = tempdir().unwrap();
    let store = open(folder.path(), small(1 << 30));
    let commit = store
        .write(&Origin::default(), &mut |write| {
            for number in 1..=200 {
                let _ = write.insert("services", big(number));
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(commit.changes, 200);
}

#[test]
fn a_full_store_says_so_and_keeps_working() {
    let folder = tempdir().unwrap();
    let store = open(folder.path(), small(256 * 1024));
    insert(&store, vec![("services", service(1, "a"))]).unwrap();
    let records = (2..=200).map(|number| ("services", big(number))).collect();
    let EntityError::Bare { status: 507, message: text } = insert(&store, records).unwrap_err() else {
        panic!("another error")
    };
    assert!(text.contains("limit of 262144 bytes; raise lmdb_map_size"), "{text}");
    assert_eq!(insert(&store, vec![("services", service(2, "b"))]).unwrap().version, 2);
    assert_eq!(store.verify().unwrap(), Vec::<String>::new());
}

#[test]
fn the_log_keeps_the_versions_it_is_set_to() {
    let folder = tempdir().unwrap();
    let store = open(folder.path(), LmdbOptions { keep_versions: 3, ..options() });
    for number in 1..=10 {
        insert(&store, vec![("services", service(number, &format!("s{number}")))]).unwrap();
    }
    assert!(matches!(store.changes_since(6, 10), Ok(Changes::TooOld { oldest: 7 })));
    assert!(matches!(store.changes_since(7, 10), Ok(Changes::Deltas(changes)) if changes.len() == 3));
    assert_eq!(store.verify().unwrap(), Vec::<String>::new());
}

#[test]
fn a_log_of_many_changes_forgets_its_oldest_versions_bit_by_bit() {
    let folder = tempdir().unwrap();
    let store = open(folder.path(), LmdbOptions { keep_changes: 1000, ..options() });
    let services = |numbers: std::ops::Range<u64>| {
        numbers.map(|number| ("services", service(number, &format!("s{number}")))).collect::<Vec<_>>()
    };
    insert(&store, services(0..900)).unwrap();
    insert(&store, services(900..1000)).unwrap();
    assert!(matches!(store.changes_since(0, 10), Ok(Changes::Deltas(changes)) if changes.len() == 2));
    // One more is too many: the first version is forgotten at once, what it did is swept up by this write and the next.
    let logged = (1000..1005).map(|number| {
        insert(&store, services(number..number + 1)).unwrap();
        assert!(matches!(store.changes_since(0, 10), Ok(Changes::TooOld { oldest: 1 })));
        store.logged_changes()
    });
    assert_eq!(logged.collect::<Vec<_>>(), [745, 490, 235, 104, 105]);
    // The newest version stays, however large it is.
    insert(&store, services(2000..4000)).unwrap();
    assert!(matches!(store.changes_since(7, 10), Ok(Changes::Deltas(changes)) if changes[0].deltas.len() == 2000));
    assert_eq!(store.verify().unwrap(), Vec::<String>::new());
}

#[test]
fn a_second_opening_is_refused_by_name() {
    let folder = tempdir().unwrap();
    let first = open(folder.path(), options());
    let error = refusal(folder.path());
    assert!(matches!(&error, StoreError::InUse { holder, .. } if *holder == format!("process {}", std::process::id())));
    assert!(error.to_string().contains("another gwctl"), "{error}");
    drop(first);
    open(folder.path(), options());
}

/// Without it the process that takes this one's place would begin the table of readers and the writers' lock anew.
#[test]
fn the_lock_by_which_lmdb_knows_of_other_processes_is_held_while_the_store_is_open() {
    let folder = tempdir().unwrap();
    let store = open(folder.path(), options());
    insert(&store, vec![("services", service(1, "a"))]).unwrap();
    let inode = std::fs::metadata(folder.path().join("lock.mdb")).unwrap().ino();
    // Number, kind, mode, access, process, device and inode, first byte, last byte.
    let held = || {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        locks.lines().any(|line| {
            let fields: Vec<_> = line.split_whitespace().collect();
            matches!(fields[..], [_, "POSIX", _, "READ", _, file, "0", "0"] if file.ends_with(&format!(":{inode}")))
        })
    };
    assert!(held());
    drop(store);
    assert!(!held());
}

#[test]
fn folder_and_files_are_for_the_owner_alone() {
    let parent = tempdir().unwrap();
    let folder = parent.path().join("a/b");
    let _store = open(&folder, options());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for file in ["data.mdb", "lock.mdb", "gwctl.lock"] {
        assert_eq!(mode(&folder.join(file)), 0o600, "{file}");
    }
}

#[test]
fn a_file_in_the_way_is_named() {
    let parent = tempdir().unwrap();
    let file = parent.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = refusal(&file);
    assert!(error.to_string().starts_with(&format!("cannot create the folder {}", file.display())), "{error}");
    assert!(error.hint().is_some());
}

#[test]
fn damaged_files_are_refused_with_a_remedy() {
    let folder = tempdir().unwrap();
    let store = open(folder.path(), options());
    let records = (1..=100).map(|number| ("services", big(number))).collect();
    insert(&store, records).unwrap();
    drop(store);
    let data = folder.path().join("data.mdb");
    let whole = std::fs::read(&data).unwrap();
    std::fs::write(&data, &whole[..whole.len() / 2]).unwrap();
    let error = refusal(folder.path());
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert!(error.hint().unwrap().contains("restore a backup"));
    std::fs::write(&data, "this is no database".repeat(1000)).unwrap();
    assert!(matches!(refusal(folder.path()), StoreError::Damaged { .. }));
}

#[test]
fn verify_notices_a_record_without_its_index_entries() {
    let folder = tempdir().unwrap();
    let store = open(folder.path(), options());
    insert(&store, vec![("services", service(1, "a"))]).unwrap();
    let schema = store.registry.entity("services").unwrap();
    let mut txn = store.environment.writing().unwrap();
    let tables = &store.environment.tables;
    tables.put(&mut txn, schema, &fixtures::id(1), (Some(&service(1, "a")), None), None).unwrap();
    let place = crate::keys::key(&["services", &fixtures::id(1)]);
    tables.records.put(&mut txn, &place, &serde_json::to_vec(&service(1, "a")).unwrap()).unwrap();
    txn.commit().unwrap();
    let problems = store.verify().unwrap();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].starts_with("unique: entry services/name/a"), "{problems:?}");
}

#[test]
fn a_panic_inside_a_batch_rolls_it_back() {
    let folder = tempdir().unwrap();
    let store = open(folder.path(), options());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        store.write(&Origin::default(), &mut |write| {
            write.insert("services", service(1, "a"))?;
            panic!("work fails")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(insert(&store, vec![("services", service(2, "a"))]).unwrap().version, 1);
}

#[test]
fn writers_on_many_threads_get_one_version_each() {
    let folder = tempdir().unwrap();
    let store = open(folder.path(), small(1 << 30));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for number in 0..20 {
                    let number = thread * 100 + number;
                    insert(store, vec![("services", big(number))]).unwrap();
                    assert!(store.read().unwrap().get("services", &fixtures::id(number)).unwrap().is_some());
                }
            });
        }
    });
    assert_eq!(store.version(), 80);
    assert_eq!(store.verify().unwrap(), Vec::<String>::new());
}

#[test]
fn another_format_is_refused() {
    let folder = tempdir().unwrap();
    let store = open(folder.path(), options());
    let mut txn = store.environment.writing().unwrap();
    store.environment.tables.meta.put(&mut txn, b"format", b"99").unwrap();
    txn.commit().unwrap();
    drop(store);
    assert!(matches!(refusal(folder.path()), StoreError::Format { found, .. } if found == "99"));
}

#[test]
fn parameters_are_keyed_by_their_key() {
    let folder = tempdir().unwrap();
    let store = open(folder.path(), options());
    let parameter = record(json!({"key": "k", "value": "v", "created_at": null}));
    insert(&store, vec![("parameters", parameter.clone())]).unwrap();
    assert_eq!(store.read().unwrap().get_by("parameters", "key", "k").unwrap(), Some(parameter));
}

#[test]
fn growing_waits_for_the_readers_before_it() {
    let folder = tempdir().unwrap();
    let store = open(folder.path(), small(1 << 30));
    insert(&store, vec![("services", service(1, "a"))]).unwrap();
    let before = store.map_size();
    std::thread::scope(|scope| {
        let read = store.read().unwrap();
        let writer = scope.spawn(|| insert(&store, (2..=200).map(|number| ("services", big(number))).collect()));
        while !store.environment.is_closing() && !writer.is_finished() {
            std::thread::yield_now();
        }
        assert_eq!(store.map_size(), before, "the map stays where it is while it is being read");
        assert_eq!(read.get("services", &fixtures::id(1)).unwrap(), Some(service(1, "a")));
        drop(read);
        assert_eq!(writer.join().unwrap().unwrap().version, 2);
    });
    assert!(store.map_size() > before);
}

#[test]
fn a_backup_is_a_store_of_its_own() {
    let folder = tempdir().unwrap();
    let store = open(&folder.path().join("store"), options());
    insert(&store, (1..=50).map(|number| ("services", big(number))).collect()).unwrap();
    let (restored, elsewhere) = (folder.path().join("restored"), folder.path().join("elsewhere"));
    std::fs::create_dir(&restored).unwrap();
    store.backup(&restored.join("data.mdb")).unwrap();
    insert(&store, vec![("services", service(99, "after the backup"))]).unwrap();
    let again = store.backup(&restored.join("data.mdb")).unwrap_err();
    assert!(again.to_string().contains("File exists"), "{again}");
    assert!(store.backup(&elsewhere.join("data.mdb")).is_err(), "there is no such folder");

    let restored = open(&restored, options());
    assert_eq!((restored.version(), store.version()), (1, 2));
    assert_eq!(restored.read().unwrap().get("services", &fixtures::id(50)).unwrap(), Some(big(50)));
    assert_eq!(restored.verify().unwrap(), Vec::<String>::new());
}

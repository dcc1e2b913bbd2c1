//! Kills a writing process two hundred times and looks at what is left each time; then lets it run out of space.
//!
//! The content after version `v` follows from `v` alone ([`expected`]), so a lost, half or doubled batch shows. The
//! child reports on its standard output: `b` a batch begins, `m` it is half done, `a v` version `v` is acknowledged,
//! `c n` configuration `n` is in the data plane's cache. The parent kills it after a pseudo-random number of lines.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking and tells its seed")]

use gwctl_entities::{EntityError, NodeKind, PageQuery, Record, Registry, RegistryOptions, Value};
use gwctl_store::{CachedConfiguration, DataPlaneCache, LmdbOptions, LmdbStore, MapSize, Opening, Origin, Store};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Names the folder to write in; set for the child only.
const CHILD: &str = "GWCTL_STORE_KILL_FOLDER";
/// Set for the child that is to run out of space.
const SPACE: &str = "GWCTL_STORE_KILL_SPACE";
const KILLS: u64 = 200;
/// Consumers that stay; each batch adds one and deletes, with its credentials, the one added this long ago.
const STAYING: u64 = 12;

fn main() {
    match (std::env::var_os(CHILD), std::env::var_os(SPACE)) {
        (Some(folder), None) => write_until_killed(Path::new(&folder)),
        (Some(folder), Some(_)) => write_until_full(Path::new(&folder)),
        (None, _) => {
            kill_and_look();
            fill_and_look();
        }
    }
}

/// Lets a child write under a limit on file sizes, which fails as a full disk does, and looks at what is left.
fn fill_and_look() {
    let folder = tempfile::tempdir().unwrap();
    let registry = registry();
    // Without the trap the system would kill the child at the limit. The unit is 512 or 1024 bytes.
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$0\""])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, folder.path())
        .env(SPACE, "little")
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", output.status);
    let said = String::from_utf8(output.stdout).unwrap();
    let acknowledged = said.lines().filter(|line| line.starts_with('a')).count();
    check_store(folder.path(), &registry, u64::try_from(acknowledged).unwrap(), "out of space");
    println!("out of space after {acknowledged} versions, nothing lost");
}

/// The child that runs out of space. It goes on reading, and the refusal says what to do.
fn write_until_full(folder: &Path) {
    let store = LmdbStore::open(&folder.join("store"), registry(), LmdbOptions::default()).unwrap();
    let write = |number| store.write(&Origin::default(), &mut |write| batch(write, number));
    for number in 1.. {
        match write(number) {
            Ok(commit) => say('a', commit.version),
            Err(EntityError::Bare { status: 507, message }) => {
                assert!(message.contains("nothing was changed") && message.contains("free space"), "{message}");
                assert_eq!(content(&store), expected(number - 1));
                assert_eq!(store.version(), number - 1);
                assert!(write(number).is_err(), "there is still no space");
                assert_eq!(store.verify().unwrap(), Vec::<String>::new());
                return;
            }
            Err(other) => panic!("{other}"),
        }
    }
}

fn kill_and_look() {
    let folder = tempfile::tempdir().unwrap();
    let registry = registry();
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let (mut version, mut during) = (0, BTreeMap::new());
    for kill in 1..=KILLS {
        let lines = 1 + chance.next() % 24;
        let seen = run_and_kill(folder.path(), lines);
        *during.entry(seen.last_kind).or_insert(0_u32) += 1;
        let at = format!("kill {kill} after {lines} lines");
        if let Some((first, last)) = seen.acknowledged {
            assert_eq!(first, version + 1, "{at}: versions neither repeat nor skip");
            version = last;
        }
        version = check_store(folder.path(), &registry, version, &at);
        check_cache(folder.path(), &registry, seen.cached, &at);
    }
    assert!(version > KILLS, "the child got on: version {version}");
    println!("{KILLS} kills up to version {version}; last heard before the kill: {during:?}");
}

/// What the parent heard of one child.
struct Seen {
    acknowledged: Option<(u64, u64)>,
    cached: u64,
    last_kind: char,
}

/// Starts a child and kills it after it has said this many lines.
fn run_and_kill(folder: &Path, lines: u64) -> Seen {
    let mut child =
        Command::new(std::env::current_exe().unwrap()).env(CHILD, folder).stdout(Stdio::piped()).spawn().unwrap();
    let mut seen = Seen { acknowledged: None, cached: 0, last_kind: ' ' };
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut heard = 0;
    // What the child had still said when it died counts as well: it was acknowledged.
    for line in &mut output {
        let line = line.unwrap();
        let (kind, number) = line.split_at(1);
        let number: u64 = number.trim().parse().unwrap();
        heard += 1;
        if heard <= lines {
            seen.last_kind = kind.chars().next().unwrap();
        }
        match kind {
            "a" => {
                let (first, last) = seen.acknowledged.unwrap_or((number, number - 1));
                assert_eq!(number, last + 1);
                seen.acknowledged = Some((first, number));
            }
            "c" => seen.cached = number,
            _ => {}
        }
        if heard == lines {
            child.kill().unwrap();
        }
    }
    let status = child.wait().unwrap();
    assert!(heard >= lines, "the child ended by itself: {status}");
    seen
}

/// Everything acknowledged is there, and nothing half. Gives the version.
fn check_store(folder: &Path, registry: &Arc<Registry>, acknowledged: u64, at: &str) -> u64 {
    let store = LmdbStore::open(&folder.join("store"), Arc::clone(registry), options()).unwrap();
    let version = store.version();
    // The batch in hand may have become durable without the parent hearing of it.
    assert!(version == acknowledged || version == acknowledged + 1, "{at}: {version} after {acknowledged}");
    assert_eq!(content(&store), expected(version), "{at}: content of version {version}");
    assert_eq!(store.verify().unwrap(), Vec::<String>::new(), "{at}");
    version
}

/// The cache holds one whole configuration, the last one reported or the one after it.
fn check_cache(folder: &Path, registry: &Arc<Registry>, reported: u64, at: &str) {
    let cache = DataPlaneCache::open(&folder.join("cache"), Arc::clone(registry), "test").unwrap();
    assert!(!matches!(cache.opening(), Opening::Discarded(_)), "{at}: {:?}", cache.opening());
    let Some(loaded) = cache.load(gwctl_store::Portion::Whole).unwrap() else {
        assert_eq!(reported, 0, "{at}: the cache is empty");
        return;
    };
    let number: u64 = loaded.hash.parse().unwrap();
    assert!(number >= reported, "{at}: configuration {number} after {reported}");
    assert_eq!(loaded, configuration(number), "{at}");
}

/// The child.
fn write_until_killed(folder: &Path) {
    let registry = registry();
    let store = LmdbStore::open(&folder.join("store"), Arc::clone(&registry), options()).unwrap();
    let cache = DataPlaneCache::open(&folder.join("cache"), registry, "test").unwrap();
    for number in store.version() + 1.. {
        say('b', number);
        let commit = store.write(&Origin::new("child", "kill test"), &mut |write| batch(write, number)).unwrap();
        say('a', commit.version);
        cache.apply(&configuration(number)).unwrap();
        say('c', number);
    }
}

fn say(kind: char, number: u64) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{kind} {number}").unwrap();
    out.flush().unwrap();
}

/// Batch `number` leads from `expected(number - 1)` to `expected(number)`.
fn batch(write: &mut dyn gwctl_entities::Write, number: u64) -> Result<(), EntityError> {
    if number == 1 {
        write.insert("services", service(1))?;
    } else {
        write.replace("services", service(number))?;
    }
    write.insert("consumers", consumer(number))?;
    say('m', number);
    for credential in credentials(number) {
        write.insert("keyauth_credentials", credential)?;
    }
    if number > STAYING {
        write.delete("consumers", &id(1, number - STAYING))?;
    }
    Ok(())
}

/// The content after version `version`, by entity.
fn expected(version: u64) -> BTreeMap<String, Vec<Record>> {
    let staying = version.saturating_sub(STAYING) + 1..=version;
    let mut content = BTreeMap::from([
        ("consumers".to_owned(), staying.clone().map(consumer).collect::<Vec<_>>()),
        ("keyauth_credentials".to_owned(), staying.flat_map(credentials).collect()),
        ("services".to_owned(), if version == 0 { vec![] } else { vec![service(version)] }),
    ]);
    for rows in content.values_mut() {
        rows.sort_by_key(|row| row["id"].to_string());
    }
    content
}

fn content(store: &LmdbStore) -> BTreeMap<String, Vec<Record>> {
    let read = store.read().unwrap();
    let everything = PageQuery { size: usize::MAX, ..PageQuery::default() };
    ["consumers", "keyauth_credentials", "services"]
        .map(|entity| (entity.to_owned(), read.page(entity, &everything).unwrap().rows))
        .into()
}

/// Configuration `number` of the cache; each record carries the number.
fn configuration(number: u64) -> CachedConfiguration {
    let mut records = expected(number);
    records.retain(|_, rows| !rows.is_empty());
    CachedConfiguration { hash: number.to_string(), records }
}

fn id(kind: u64, number: u64) -> String {
    format!("{kind:08}-0000-4000-8000-{number:012}")
}

fn record(value: Value) -> Record {
    match value {
        Value::Object(record) => record,
        other => panic!("no object: {other}"),
    }
}

fn service(number: u64) -> Record {
    record(json!({"id": id(0, 0), "name": format!("service of {number}"), "host": "h", "path": format!("/{number}")}))
}

fn consumer(number: u64) -> Record {
    let length = usize::try_from(number % 7).unwrap() * 500;
    let tags = [format!("t{}", number % 3), "x".repeat(length)];
    record(json!({"id": id(1, number), "username": format!("consumer {number}"), "custom_id": null, "tags": tags}))
}

fn credentials(number: u64) -> impl Iterator<Item = Record> {
    (0..3).map(move |part| {
        record(json!({"id": id(2 + part, number), "key": format!("key {number} {part}"), "ttl": null, "tags": null,
            "consumer": {"id": id(1, number)}}))
    })
}

fn options() -> LmdbOptions {
    LmdbOptions {
        map_size: MapSize { initial: 64 * 1024, limit: 1 << 30 },
        keep_versions: 40,
        ..LmdbOptions::default()
    }
}

fn registry() -> Arc<Registry> {
    Arc::new(Registry::bundled(&RegistryOptions {
        kind: NodeKind::ControlPlane,
        router_flavor: "traditional_compatible".to_owned(),
        plugins: Some(["key-auth".to_owned()].into()),
    }))
}

/// A small generator of pseudo-random numbers (xorshift).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

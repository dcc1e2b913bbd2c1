//! What a data plane does with a configuration and with a change of it, by the number of routes: LMDB and snapshot.
//!
//! `cargo run --release -p gwctl-data-plane --example apply -- [routes...]`
//!
//! A start reads everything from LMDB, checks nothing and builds the snapshot. A change is one route: stored in one
//! transaction that is on disk at the end, brought into the snapshot, and put in force. Memory is that of a process that
//! started so, with the pages of LMDB's map it has touched (shared with the page cache) apart.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement stops at the first surprise and prints its result"
)]

use gwctl_data_plane::{Gateway, RecordDirectory};
use gwctl_entities::{NodeKind, Record, Registry, RegistryOptions};
use gwctl_plugins::{Natives, Node};
use gwctl_proxy::{SnapshotOptions, Tables};
use gwctl_router::Flavor;
use gwctl_store::{CachedConfiguration, DataPlaneCache, Delta, SystemFill};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Changes that are timed.
const CHANGES: usize = 101;

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, folder, routes] = arguments.as_slice()
        && word == "start"
    {
        return start(Path::new(folder), routes.parse().unwrap());
    }
    if arguments.is_empty() {
        arguments = vec!["10".to_owned(), "10000".to_owned(), "100000".to_owned()];
    }
    for routes in &arguments {
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path(), routes.parse().unwrap());
        // Another process starts from the cache: its memory holds nothing else.
        let own = std::env::current_exe().unwrap();
        let child = std::process::Command::new(own).arg("start").arg(folder.path()).arg(routes).status().unwrap();
        assert!(child.success());
    }
}

fn registry() -> Arc<Registry> {
    let router_flavor = "traditional_compatible".to_owned();
    Arc::new(Registry::bundled(&RegistryOptions { kind: NodeKind::DataPlane, router_flavor, plugins: None }))
}

fn fill(folder: &Path, routes: usize) {
    let registry = registry();
    let imported = |entity: &str, row: Value| {
        registry.import_row(entity, row.as_object().cloned().unwrap(), &mut SystemFill).unwrap()
    };
    let services = (0..routes.div_ceil(100)).map(|number| imported("services", service(number))).collect();
    let routes = (0..routes).map(|number| imported("routes", route(number, 0))).collect();
    let records = BTreeMap::from([("services".to_owned(), services), ("routes".to_owned(), routes)]);
    let cache = DataPlaneCache::open(folder, registry.clone(), "tag").unwrap();
    let took = cache.apply(&CachedConfiguration { hash: "0".repeat(32), records }).unwrap();
    println!("whole configuration stored in {took:.1?}");
}

fn start(folder: &Path, routes: usize) {
    let registry = registry();
    let cache = Arc::new(DataPlaneCache::open(folder, registry.clone(), "tag").unwrap());
    let node = Arc::new(Node::new("node", "host", Arc::new(RecordDirectory::new(cache.clone()))));
    let options = SnapshotOptions {
        flavor: Flavor::TraditionalCompatible,
        hosts: vec![Arc::new(Natives)],
        node,
        upstream_tls: Arc::default(),
    };
    let gateway = Gateway::new(options);
    let began = Instant::now();
    let scanned = gateway.prepare_stored(|visit| cache.scan(&Tables::ENTITIES, visit)).unwrap();
    gateway.install(scanned.1.unwrap());
    println!("{routes} routes: read from LMDB and served after {:.1?}", began.elapsed());
    let (own, mapped) = memory();
    println!("  memory {own:.0} MB, and {mapped:.0} MB of LMDB's map");
    let mut times = [const { Vec::new() }; 4];
    for turn in 0..CHANGES {
        let number = turn.wrapping_mul(7919) % routes;
        let row = route(number, turn + 1);
        let began = Instant::now();
        let new: Record = registry.import_row("routes", row.as_object().cloned().unwrap(), &mut SystemFill).unwrap();
        let delta = Delta { version: 1, entity: "routes".to_owned(), id: id(2, number), old: None, new: Some(new) };
        let checked = began.elapsed();
        let prepared = gateway.prepare_changes([&delta]).unwrap();
        let built = began.elapsed();
        cache.apply_deltas(&format!("{turn:032}"), std::slice::from_ref(&delta)).unwrap();
        let stored = began.elapsed();
        gateway.install(prepared);
        let parts = [checked, built - checked, stored - built, began.elapsed() - stored];
        times.iter_mut().zip(parts).for_each(|(times, time)| times.push(time));
    }
    let [checked, built, stored, installed] = times.map(median);
    println!("  a change: checked {checked:.1?}, built {built:.1?}, stored {stored:.1?}, in force {installed:.1?}");
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Megabytes of this process's own memory, and of files it has mapped.
fn memory() -> (f64, f64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let kilobytes = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1000.0
    };
    (kilobytes("RssAnon:"), kilobytes("RssFile:") + kilobytes("RssShmem:"))
}

fn id(kind: u64, number: usize) -> String {
    let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{:08x}-{:04x}-4{:03x}-8000-{kind:04x}{number:08x}", mixed >> 32, mixed >> 16 & 0xffff, mixed & 0xfff)
}

fn service(number: usize) -> Value {
    json!({"id": id(1, number), "name": format!("service-{number}"), "host": format!("upstream-{number}"), "port": 80})
}

fn route(number: usize, turn: usize) -> Value {
    json!({
        "id": id(2, number), "name": format!("route-{number}"), "service": id(1, number / 100),
        "hosts": [format!("api{}.example.com", number % 5)], "methods": ["GET"],
        "paths": [format!("/team{}/app{number}/v{turn}", number % 100)],
    })
}

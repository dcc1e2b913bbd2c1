//! What a change of the configuration costs the data plane, by the number of routes: to build a snapshot of them all, to
//! change one row, and to match a request.
//!
//! `cargo run --release -p gwctl-proxy --example change -- [paths|hosts|plugins|regexes|expressions] [routes...]`
//!
//! Shapes: `paths`, every route has its own prefix on one of a few hosts; `hosts`, every route has its own host;
//! `plugins`, every route has a plugin of its own, beside ten of the node; `regexes`, every route has a regex path;
//! `expressions`, like `paths` in that flavor. Every hundred routes share a service. Memory is what the process holds
//! once everything is built.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement stops at the first surprise and prints its result"
)]

use gwctl_entities::Record;
use gwctl_plugins::{EmptyDirectory, Natives, Node};
use gwctl_proxy::{Snapshot, SnapshotOptions, Tables};
use gwctl_router::{Flavor, NoHeaders, Request, RequestPath, RouteEntry, Router};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Changes of each kind that are timed.
const CHANGES: usize = 201;
const MATCHES: usize = 200_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let shape = arguments.next().unwrap_or_else(|| "paths".to_owned());
    let mut sizes: Vec<usize> = arguments.map(|argument| argument.parse().unwrap()).collect();
    if sizes.is_empty() {
        sizes = vec![10, 10_000, 100_000];
    }
    println!("{shape}: times are median and 99th percentile");
    for routes in sizes {
        measure(&shape, routes);
    }
}

fn measure(shape: &str, routes: usize) {
    let flavor = if shape == "expressions" { Flavor::Expressions } else { Flavor::TraditionalCompatible };
    let node = Arc::new(Node::new("node", "host", Arc::new(EmptyDirectory)));
    let options = SnapshotOptions { flavor, hosts: vec![Arc::new(Natives)], node, upstream_tls: Arc::default() };
    let before = memory();
    let began = Instant::now();
    let tables = Tables::read(|entity| rows(shape, entity, routes)).unwrap();
    let read = began.elapsed();
    let began = Instant::now();
    let snapshot = Snapshot::build(&tables, &options, None).unwrap();
    let built = began.elapsed();
    drop(tables);
    println!(
        "{routes} routes: rows made and read in {read:.1?}, built in {built:.1?}, {:.1} MB",
        memory().saturating_sub(before) as f64 / 1e6
    );
    let mut bench = Bench { snapshot, options };
    let number = |turn: usize| turn.wrapping_mul(7919) % routes;
    bench.time("a route", |turn| ("routes", changed(route(shape, number(turn)), turn)));
    bench.time("a route's path", |turn| {
        let mut row = route(shape, number(turn));
        match flavor {
            Flavor::Expressions => row["expression"] = json!(format!("http.path ^= \"/moved{turn}\"")),
            _ => row["paths"] = json!([format!("/moved{turn}")]),
        }
        ("routes", row)
    });
    bench.time("a service", |turn| ("services", service(number(turn) / 100, turn)));
    bench.time("a plugin of a route", |turn| ("plugins", plugin(number(turn), turn)));
    bench.time("a plugin of the node", |turn| ("plugins", global_plugin(turn % 10, turn)));
    bench.time("a target", |turn| ("targets", target(number(turn) / 100, turn)));
    bench.time("a consumer's row", |turn| ("consumers", json!({"id": id(8, turn)})));
    let tables = Tables::read(|entity| rows(shape, entity, routes)).unwrap();
    let began = Instant::now();
    bench.snapshot = Snapshot::build(&tables, &bench.options, Some(&bench.snapshot)).unwrap();
    println!("  all rows again, read anew: {:.1?}", began.elapsed());
    matches(shape, routes, flavor);
}

/// The snapshot in force.
struct Bench {
    snapshot: Snapshot,
    options: SnapshotOptions,
}

impl Bench {
    fn time(&mut self, what: &str, row: impl Fn(usize) -> (&'static str, Value)) {
        let mut times: Vec<Duration> = Vec::with_capacity(CHANGES);
        for turn in 0..CHANGES {
            let (entity, row) = row(turn);
            let row = record(row);
            let began = Instant::now();
            let mut tables = self.snapshot.tables().clone();
            tables.put(entity, &row).unwrap();
            let next = Snapshot::build(&tables, &self.options, Some(&self.snapshot)).unwrap();
            let old = std::mem::replace(&mut self.snapshot, next);
            drop((tables, old));
            times.push(began.elapsed());
        }
        let (median, last) = percentiles(times);
        println!("  {what}: {median:.1?}, {last:.1?}");
    }
}

fn percentiles(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

/// Times the router alone, with requests for routes all over.
fn matches(shape: &str, routes: usize, flavor: Flavor) {
    let view = |number| gwctl_entities::view::from_record(&record(route(shape, number))).unwrap();
    let entries = (0..routes).map(|number| RouteEntry { route: Arc::new(view(number)), service: None });
    let (router, problems) = Router::build(flavor, entries).unwrap();
    assert!(problems.is_empty());
    let asked: Vec<(String, String)> = (0..MATCHES)
        .map(|turn| turn.wrapping_mul(7919) % routes)
        .map(|number| (host(shape, number), format!("/team{}/app{number}/items/17", number % 100)))
        .collect();
    let (mut times, mut found) = (Vec::with_capacity(MATCHES), 0);
    // An expression is compiled at its first use, which is not what is measured.
    for (turn, (host, target)) in asked.iter().chain(&asked).enumerate() {
        let path = RequestPath::normalise(target.as_bytes());
        let request = Request {
            https: false,
            method: "GET",
            host,
            port: 80,
            path: &path,
            headers: &NoHeaders,
            sni: None,
            source: None,
            destination_ip: None,
        };
        let began = Instant::now();
        let is_found = router.find(&request).is_some();
        if turn >= MATCHES {
            times.push(began.elapsed());
            found += usize::from(is_found);
        }
    }
    let (median, last) = percentiles(times);
    println!("  a match ({found} of {MATCHES} found): {median:.1?}, {last:.1?}");
}

/// Resident memory in bytes.
fn memory() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn record(row: Value) -> Record {
    match row {
        Value::Object(record) => record,
        _ => unreachable!("rows are objects"),
    }
}

/// The rows of an entity, made one by one so that they take no room beside what is made of them.
fn rows<'a>(shape: &'a str, entity: &str, routes: usize) -> Box<dyn Iterator<Item = Record> + 'a> {
    let services = 0..routes.div_ceil(100);
    let rows: Box<dyn Iterator<Item = Value>> = match entity {
        "services" => Box::new(services.map(|number| service(number, 0))),
        "routes" => Box::new((0..routes).map(move |number| route(shape, number))),
        "upstreams" => Box::new(services.map(upstream)),
        "targets" => Box::new(services.flat_map(|number| [target(number, 0), target(number, 1)])),
        "plugins" if shape == "plugins" => {
            let own = (0..routes).map(|number| plugin(number, 0));
            Box::new(own.chain((0..10).map(|number| global_plugin(number, 0))))
        }
        _ => Box::new(std::iter::empty()),
    };
    Box::new(rows.map(record))
}

/// An id as random in its digits as those of a real configuration.
fn id(kind: u64, number: usize) -> String {
    let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{:08x}-{:04x}-4{:03x}-8000-{kind:04x}{number:08x}", mixed >> 32, mixed >> 16 & 0xffff, mixed & 0xfff)
}

fn host(shape: &str, number: usize) -> String {
    if shape == "hosts" { format!("tenant{number}.example.com") } else { format!("api{}.example.com", number % 5) }
}

fn route(shape: &str, number: usize) -> Value {
    let prefix = format!("/team{}/app{number}/", number % 100);
    let host = host(shape, number);
    let mut row = json!({
        "id": id(1, number), "name": format!("route-{number}"), "service": {"id": id(2, number / 100)},
        "protocols": ["http", "https"], "created_at": 1_700_000_000 + number / 50, "updated_at": 1_700_000_000,
        "strip_path": true, "preserve_host": false, "path_handling": "v0", "regex_priority": 0,
        "https_redirect_status_code": 426, "request_buffering": true, "response_buffering": true,
    });
    match shape {
        "expressions" => row["expression"] = json!(format!("http.host == \"{host}\" && http.path ^= \"{prefix}\"")),
        _ => {
            row["hosts"] = json!([host]);
            row["paths"] = match (shape, number % 50) {
                ("hosts", _) => json!(["/"]),
                ("regexes", _) => json!([format!("~{prefix}items/\\d+$")]),
                (_, 0) => json!([format!("~{prefix}\\w+/\\d+$"), prefix]),
                _ => json!([prefix]),
            };
            match number % 50 {
                1..5 => row["methods"] = json!(["GET", "POST"]),
                5 => row["headers"] = json!({"x-version": ["1", "2"]}),
                _ => {}
            }
        }
    }
    row
}

/// The same route with something that matching does not look at.
fn changed(mut route: Value, turn: usize) -> Value {
    route["updated_at"] = json!(1_700_000_001 + turn);
    route["preserve_host"] = json!(turn.is_multiple_of(2));
    route
}

fn service(number: usize, turn: usize) -> Value {
    json!({
        "id": id(2, number), "name": format!("service-{number}"), "protocol": "http", "port": 80, "retries": 5,
        "host": format!("upstream-{number}"), "path": "/base", "enabled": true,
        "connect_timeout": 60_000 + turn, "write_timeout": 60_000, "read_timeout": 60_000,
    })
}

fn upstream(number: usize) -> Value {
    json!({"id": id(3, number), "name": format!("upstream-{number}"), "algorithm": "round-robin", "slots": 10_000})
}

fn target(number: usize, turn: usize) -> Value {
    let (other, weight) = (turn % 2, 100 + turn);
    let id = id(4 + other as u64, number);
    json!({"id": id, "upstream": {"id": self::id(3, number)}, "target": format!("10.0.0.{other}:80"), "weight": weight})
}

fn plugin(number: usize, turn: usize) -> Value {
    let config = json!({
        "status_code": 200 + turn % 300, "message": "a plugin of its own", "content_type": null, "body": null,
        "echo": false, "trigger": "x-stop",
    });
    json!({
        "id": id(6, number), "name": "request-termination", "route": {"id": id(1, number)}, "enabled": true,
        "protocols": ["http", "https"], "config": config,
    })
}

fn global_plugin(number: usize, turn: usize) -> Value {
    let config = json!({
        "header_name": format!("x-request-{turn}"), "generator": "uuid#counter", "echo_downstream": false,
    });
    // Only one row of a name runs for a request; the others are bound to consumers.
    let consumer = if number == 0 { Value::Null } else { json!({"id": id(9, number)}) };
    json!({
        "id": id(7, number), "name": "correlation-id", "consumer": consumer, "enabled": true,
        "protocols": ["http", "https"], "config": config,
    })
}

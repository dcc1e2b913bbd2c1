//! How long it takes to plan the way from one file of 100,000 entities to another.
//!
//! `cargo run --release -p gwctl-declarative --example plan_speed [-- SERVICES [yaml|json]]`. A service counts for ten
//! entities. Prints the processor time of each step; ends with code 1 when the plan takes more than two seconds.

#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![expect(clippy::print_stdout, reason = "the figures are the output")]

use gwctl_declarative::{DiffOptions, Existing, Limits, LoadOptions, Mode, TextForm, diff, load, parse, to_yaml};
use gwctl_entities::{Fill, NodeKind, Registry, RegistryOptions, Value};
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

struct Counter(u64);

impl Fill for Counter {
    fn now_millis(&mut self) -> u64 {
        1_700_000_000_000
    }
    fn uuid(&mut self) -> String {
        self.0 += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.0)
    }
    fn token(&mut self) -> String {
        self.0 += 1;
        format!("{:032}", self.0)
    }
}

/// Two routes, two plugins and a target per service, two consumers with a key each. In the other file every tenth
/// service has another path, some are gone and some are new.
fn document(services: usize, other: bool) -> Value {
    let from = if other { services / 20 } else { 0 };
    let service = |n: usize| {
        let path = if other && n.is_multiple_of(10) { "/other" } else { "/base" };
        json!({
            "name": format!("service-{n}"), "host": format!("service-{n}.example"), "port": 8080, "path": path,
            "tags": ["team-a", format!("group-{}", n % 50)],
            "routes": [
                {"name": format!("list-{n}"), "paths": [format!("/s{n}/list")], "methods": ["GET"]},
                {"name": format!("edit-{n}"), "paths": [format!("/s{n}/edit")], "methods": ["POST", "PUT"]},
            ],
            "plugins": [
                {"name": "key-auth", "config": {"key_names": ["apikey"]}},
                {"name": "rate-limiting", "config": {"minute": 100, "policy": "local"}},
            ],
        })
    };
    let upstream = |n: usize| json!({"name": format!("service-{n}.example"), "targets": [{"target": format!("10.0.{}.{}:80", n / 250, n % 250)}]});
    let consumer =
        |n: usize| json!({"username": format!("user-{n}"), "keyauth_credentials": [{"key": format!("secret-{n}")}]});
    let (numbers, consumers) = (from..from + services, from..from + services * 3 / 2);
    json!({
        "_format_version": "3.0",
        "services": numbers.clone().map(service).collect::<Vec<_>>(),
        "upstreams": numbers.map(upstream).collect::<Vec<_>>(),
        "consumers": consumers.map(consumer).collect::<Vec<_>>(),
    })
}

/// Time this thread has run, where the system tells it.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

fn timed<T>(name: &str, work: impl FnOnce() -> T) -> (T, Duration) {
    let (started, used) = (Instant::now(), processor_time());
    let result = work();
    // On a busy machine the time of the processor says more than that of the wall.
    let took = match (used, processor_time()) {
        (Some(before), Some(after)) => after.saturating_sub(before),
        _ => started.elapsed(),
    };
    println!("{name:<28} {:>7.3} s", took.as_secs_f64());
    (result, took)
}

fn main() -> ExitCode {
    let services = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(10_000);
    let json = std::env::args().nth(2).as_deref() == Some("json");
    let (texts, form) = {
        let write = |value: Value| if json { value.to_string() } else { to_yaml(&value) };
        (
            [write(document(services, false)), write(document(services, true))],
            if json { TextForm::Json } else { TextForm::Yaml },
        )
    };
    println!("2 x {:.1} MB", texts[0].len() as f64 / 1e6);
    let router_flavor = "traditional_compatible".to_owned();
    let registry = Registry::bundled(&RegistryOptions { kind: NodeKind::ControlPlane, router_flavor, plugins: None });
    let limits = Limits::default();
    let read = |text: &str| parse(text, form, &limits).expect("what was written reads back");
    let (first, parse_one) = timed("read the first text", || read(&texts[0]));
    let (second, parse_two) = timed("read the second text", || read(&texts[1]));
    let threads = std::env::args().nth(3).and_then(|count| count.parse().ok()).unwrap_or(1);
    let options = LoadOptions { threads, ..LoadOptions::of(Mode::Partial) };
    let (current, load_one) = timed("load the first", || load(&registry, first, &options, &mut Counter(0)));
    let current = current.expect("the document is valid");
    let entities: usize = current.tables.iter().map(|table| table.records.len()).sum();
    let compare = DiffOptions { prune: true, ..DiffOptions::default() };
    let (existing, index) = timed("index the first", || Existing::new(&registry, &current.tables));
    let against = LoadOptions { existing: Some(&existing), ..options };
    let (target, load_two) = timed("load the second", || load(&registry, second, &against, &mut Counter(1 << 40)));
    let target = target.expect("the document is valid");
    let (planned, differ) = timed("compare", || diff(&registry, &current.tables, &existing, &target, &compare));
    let total = parse_one + parse_two + load_one + index + load_two + differ;
    println!("{entities} entities, {} operations, {:.3} s in all", planned.operations.len(), total.as_secs_f64());
    if total > Duration::from_secs(2) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

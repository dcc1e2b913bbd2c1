//! What a change costs, as people meet it: real processes on loopback, one control plane and one data plane, the link
//! between them over a relay that counts bytes.
//!
//!     cargo bench -p gwctl --bench cluster [-- change|fresh|storm|fleet] [NUMBERS...]
//!
//! - `change 10 10000 100000` (the default): for each number of routes, the time from sending a change to the Admin API
//!   until the data plane answers by it (median, p99), the CPU both nodes spend on a change, its bytes on the wire in
//!   either direction, and the memory of both nodes.
//! - `fresh 100000`: a data plane that has nothing joins: time until it serves the last of so many routes, and what that
//!   does to the control plane's memory; then it is killed and started again without a control plane.
//! - `storm 50 60`: so many changes a second for so many seconds while the proxy is under load: failed requests, and
//!   the p99 of requests beside that of an equal time without changes.
//!
//! - `fleet 1000`: so many data planes, simulated by this process with the real protocol and real TLS: memory of the control
//!   plane for each, time until all have confirmed a change, and until all are back after the control plane was killed
//!   or stopped.
//!
//! Everything runs on one machine: compare figures of one run only.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark reports on stdout and fails by panicking")]

mod change;
mod fleet;
mod fresh;
mod process;
mod storm;

use gwctl_testkit::{Cluster, Node, NodeOptions, Relay, Request, Upstream, post, request, wait_until};
use serde_json::{Value, json};
use std::time::Duration;

const GWCTL: &str = env!("CARGO_BIN_EXE_gwctl");
/// Operations of one request while the routes are made.
const BATCH: usize = 10_000;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let numbers: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    match words.first().map(String::as_str) {
        Some("fresh") => fresh::measure(*numbers.first().unwrap_or(&100_000)),
        Some("fleet") => fleet::measure(*numbers.first().unwrap_or(&1000)),
        Some("storm") => {
            storm::measure(*numbers.first().unwrap_or(&50), Duration::from_secs(*numbers.get(1).unwrap_or(&60) as u64));
        }
        _ => change::measure(if numbers.is_empty() { &[10, 10_000, 100_000] } else { &numbers }),
    }
}

/// A control plane with so many routes to a service, and a relay before its cluster listener.
struct Bench {
    // Dropped in this order: nodes show their logs before the folder goes.
    cp: Node,
    relay: Relay,
    upstream: Upstream,
    cluster: Cluster,
}

impl Bench {
    fn with_routes(routes: usize) -> Self {
        let cluster = Cluster::new(GWCTL);
        let cp = cluster.start(&cluster.options("cp", "control_plane").set("log_level", "warn"));
        let relay = Relay::start(cluster.cluster_port());
        let bench = Self { cp, relay, upstream: Upstream::start(), cluster };
        let service = json!({"name": "echo", "host": "127.0.0.1", "port": bench.upstream.port});
        assert_eq!(post(bench.cp.admin(), "/services", &service).status, 201);
        for first in (0..routes).step_by(BATCH) {
            let operations: Vec<Value> =
                (first..routes.min(first + BATCH)).map(|number| create(&path(number))).collect();
            let answer = post(bench.cp.admin(), "/gwctl/changes?results=none", &json!({"operations": operations}));
            assert_eq!(answer.status, 200, "{}", answer.body);
        }
        bench
    }

    fn data_plane(&self, name: &str) -> NodeOptions {
        let link = format!("127.0.0.1:{}", self.relay.port);
        self.cluster.options(name, "data_plane").set("cluster_control_plane", link).set("log_level", "warn")
    }

    fn route(&self, path: &str) {
        assert_eq!(post(self.cp.admin(), "/services/echo/routes", &json!({"paths": [path]})).status, 201);
    }
}

fn path(number: usize) -> String {
    format!("/bench/{number}")
}

fn create(path: &str) -> Value {
    json!({"action": "create", "entity": "routes", "body": {"paths": [path], "service": {"name": "echo"}}})
}

fn status(dp: &Node, path: &str) -> u16 {
    let asked = Request { method: "GET", path, ..Request::default() };
    request(dp.proxy(), &asked).map_or(0, |answer| answer.status)
}

fn serves(dp: &Node, path: &str) {
    wait_until("the data plane to have all routes", || status(dp, path) == 200);
}

//! How long a change takes from the Admin API to a data plane's answer, and what the nodes weigh.
//!
//!     cargo bench -p gwctl --bench cluster [-- ROUTES...]
//!
//! For each number of routes (10 and 10000 unless given): a control plane and one data plane as real processes on
//! loopback, the routes made through the Admin API, then 40 single changes. Printed are the time from sending the
//! request until the data plane answers 200 on the new route (median, p99), and the resident memory of both nodes.
//! Everything runs on one machine: compare figures of one run only.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark reports on stdout and fails by panicking")]

use gwctl_testkit::{Cluster, Node, Request, Upstream, post, request, wait_until};
use serde_json::json;
use std::time::{Duration, Instant};

const GWCTL: &str = env!("CARGO_BIN_EXE_gwctl");
const CHANGES: usize = 40;
const WRITERS: usize = 8;

fn main() {
    let asked: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let sizes = if asked.is_empty() { vec![10, 10_000] } else { asked };
    println!("{:>8} {:>10} {:>10} {:>10} {:>10} {:>12}", "routes", "median ms", "p99 ms", "cp MiB", "dp MiB", "fill s");
    for routes in sizes {
        measure(routes);
    }
}

fn measure(routes: usize) {
    let cluster = Cluster::new(GWCTL);
    let cp = cluster.start(&cluster.options("cp", "control_plane").set("log_level", "warn"));
    let dp = cluster.start(&cluster.options("dp", "data_plane").set("log_level", "warn"));
    let upstream = Upstream::start();
    let service = json!({"name": "echo", "host": "127.0.0.1", "port": upstream.port});
    assert_eq!(post(cp.admin(), "/services", &service).status, 201);
    let began = Instant::now();
    fill(cp.admin(), routes);
    let filled = began.elapsed();
    let last = format!("/bench/{}", routes - 1);
    wait_until("the data plane to have all routes", || status(&dp, &last) == 200);
    let mut times: Vec<Duration> = (0..CHANGES).map(|number| change(&cp, &dp, &format!("/change/{number}"))).collect();
    times.sort();
    let at = |part: f64| times[((times.len() - 1) as f64 * part).round() as usize].as_secs_f64() * 1000.0;
    println!(
        "{routes:>8} {:>10.1} {:>10.1} {:>10.1} {:>10.1} {:>12.1}",
        at(0.5),
        at(0.99),
        resident(cp.id()),
        resident(dp.id()),
        filled.as_secs_f64()
    );
}

fn fill(admin: u16, routes: usize) {
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                for number in (writer..routes).step_by(WRITERS) {
                    let route = json!({"paths": [format!("/bench/{number}")]});
                    assert_eq!(post(admin, "/services/echo/routes", &route).status, 201);
                }
            });
        }
    });
}

/// One change, from the request to the first 200. A pause between changes lets the cooldown of the last one pass.
fn change(cp: &Node, dp: &Node, path: &str) -> Duration {
    std::thread::sleep(Duration::from_millis(1500));
    let began = Instant::now();
    assert_eq!(post(cp.admin(), "/services/echo/routes", &json!({"paths": [path]})).status, 201);
    while status(dp, path) != 200 {
        assert!(began.elapsed() < Duration::from_secs(60), "{path} never came");
        std::thread::sleep(Duration::from_millis(1));
    }
    began.elapsed()
}

fn status(dp: &Node, path: &str) -> u16 {
    let asked = Request { method: "GET", path, ..Request::default() };
    request(dp.proxy(), &asked).map_or(0, |answer| answer.status)
}

/// Resident memory in MiB.
fn resident(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

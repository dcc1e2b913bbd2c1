//! One change beside configurations of several sizes.

use crate::process::{cpu, memory, quantile};
use crate::{Bench, path, serves, status};
use gwctl_testkit::Node;
use std::time::{Duration, Instant};

/// Changes whose time is measured, each awaited.
const AWAITED: usize = 200;
/// Changes whose CPU and bytes are measured, one after another without asking the data plane.
const COUNTED: usize = 200;

pub(crate) fn measure(sizes: &[usize]) {
    println!(
        "{:>8} {:>10} {:>8} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9}",
        "routes", "median ms", "p99 ms", "cp cpu ms", "dp cpu ms", "bytes dn", "bytes up", "cp MiB", "dp MiB"
    );
    for routes in sizes {
        one(*routes);
    }
}

fn one(routes: usize) {
    let bench = Bench::with_routes(routes);
    let dp = bench.cluster.start(&bench.data_plane("dp"));
    serves(&dp, &path(routes - 1));
    let mut times: Vec<Duration> =
        (0..AWAITED).map(|number| change(&bench, &dp, &format!("/awaited/{number}"))).collect();
    let before = (cpu(&bench.cp), cpu(&dp), bench.relay.bytes());
    for number in 0..COUNTED {
        bench.route(&format!("/counted/{number}"));
        // The next one only when this one has gone out, so that none are joined.
        std::thread::sleep(Duration::from_millis(20));
    }
    serves(&dp, &format!("/counted/{}", COUNTED - 1));
    let each = |spent: Duration| spent.as_secs_f64() * 1000.0 / COUNTED as f64;
    let (up, down) = bench.relay.bytes();
    println!(
        "{routes:>8} {:>10.1} {:>8.1} {:>10.2} {:>10.2} {:>9} {:>9} {:>9.1} {:>9.1}",
        quantile(&mut times, 0.5),
        quantile(&mut times, 0.99),
        each(cpu(&bench.cp) - before.0),
        each(cpu(&dp) - before.1),
        (down - before.2.1) / COUNTED as u64,
        (up - before.2.0) / COUNTED as u64,
        memory(&bench.cp),
        memory(&dp)
    );
}

/// One change, from the request to the first 200.
fn change(bench: &Bench, dp: &Node, path: &str) -> Duration {
    let began = Instant::now();
    bench.route(path);
    while status(dp, path) != 200 {
        assert!(began.elapsed() < Duration::from_secs(60), "{path} never came");
        std::thread::sleep(Duration::from_micros(300));
    }
    began.elapsed()
}

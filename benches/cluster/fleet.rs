//! Many data planes on one control plane: the real protocol over real TLS, as many tasks of this process as nodes.

mod node;

use crate::process::{memory, quantile};
use crate::{Bench, GWCTL};
use gwctl_certs::{Identity, Source, Trust, cluster_client_config};
use gwctl_link::DialOptions;
use gwctl_testkit::{get, wait_until};
use gwctl_wire::stream;
use node::Seen;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const ROUTES: usize = 1000;
const CHANGES: usize = 50;
/// How long the data planes are idle before they are weighed.
const IDLE: Duration = Duration::from_secs(20);
/// Between two changes.
const PAUSE: Duration = Duration::from_millis(400);

pub(crate) fn measure(nodes: usize) {
    let mut bench = Bench::with_routes(ROUTES);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let before = memory(&bench.cp);
    let seen = Arc::new(Seen::new(nodes));
    let options = dial_options(&bench);
    let began = Instant::now();
    for number in 0..nodes {
        runtime.spawn(node::run(number, options.clone(), seen.clone()));
    }
    in_sync(&bench, &seen);
    println!("{nodes} data planes, {ROUTES} routes ({GWCTL})");
    println!("all joined and in sync: {:.2} s", began.elapsed().as_secs_f64());
    // The allocator gives back within ten seconds what the joining needed.
    std::thread::sleep(IDLE);
    let each = (memory(&bench.cp) - before) * 1024.0 / nodes as f64;
    println!("memory of the control plane for each idle data plane: {each:.1} KiB (wanted: under 64)");

    let mut times = Vec::new();
    for number in 0..CHANGES {
        let began = Instant::now();
        bench.route(&format!("/fleet/{number}"));
        in_sync(&bench, &seen);
        times.extend(seen.since(began));
        std::thread::sleep(PAUSE);
    }
    println!(
        "a change until a data plane has confirmed it: p50 {:.1} ms, p99 {:.1} ms (wanted: 500), slowest {:.1} ms",
        quantile(&mut times, 0.5),
        quantile(&mut times, 0.99),
        quantile(&mut times, 1.0)
    );
    for (name, kill) in [("killed", true), ("stopped", false)] {
        seen.dials.iter().for_each(|dials| dials.store(0, Ordering::Relaxed));
        if kill {
            bench.cp.kill();
        } else {
            assert!(bench.cp.stop().success());
        }
        let began = Instant::now();
        bench.cp.restart();
        bench.route(&format!("/fleet/{name}"));
        in_sync(&bench, &seen);
        let most = seen.dials.iter().map(|dials| dials.load(Ordering::Relaxed)).max().unwrap_or(0);
        println!(
            "control plane {name} and started again: all in sync after {:.2} s (wanted: 15), {most} attempts at most (wanted: 2)",
            began.elapsed().as_secs_f64()
        );
    }
}

/// Waits until every data plane has the newest version.
fn in_sync(bench: &Bench, seen: &Seen) {
    let version = get(bench.cp.admin(), "/gwctl/history?size=1").json()["version"].as_u64().unwrap();
    wait_until("all data planes to have the newest version", || seen.all_have(version));
}

fn dial_options(bench: &Bench) -> DialOptions {
    let text = |name: &str| std::fs::read_to_string(bench.cluster.path(name)).unwrap();
    let (certificate, key) = (text("cluster.crt"), text("cluster.key"));
    let source = |pem| Source { setting: "cluster_cert", place: "bench", pem };
    let identity = Identity::read(source(&certificate), source(&key)).unwrap();
    let roots = rustls::RootCertStore::empty();
    let (tls, server_name) = cluster_client_config(&identity, &Trust::Shared, roots, "127.0.0.1").unwrap();
    DialOptions {
        address: format!("127.0.0.1:{}", bench.cluster.cluster_port()),
        tls: tls.into(),
        server_name,
        target: String::new(),
        limit: 16 << 20,
        proxy: None,
        subprotocol: None,
        extra: Some((stream::HEADER, stream::GENERATION)),
    }
}

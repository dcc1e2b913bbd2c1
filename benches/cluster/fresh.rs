//! A data plane that has nothing, and one that has only its own copy.

use crate::process::memory;
use crate::{Bench, path, serves};
use gwctl_testkit::Node;
use std::time::Instant;

pub(crate) fn measure(routes: usize) {
    let bench = Bench::with_routes(routes);
    let last = path(routes - 1);
    let before = memory(&bench.cp);
    let options = bench.data_plane("dp");
    let began = Instant::now();
    let mut dp = Node::spawn(bench.cluster.executable(), &options);
    serves(&dp, &last);
    println!("{routes} routes");
    println!(
        "fresh data plane, from its start to the first answer by the last route: {:.2} s",
        began.elapsed().as_secs_f64()
    );
    println!("memory of the control plane: {before:.1} MiB before, {:.1} MiB after", memory(&bench.cp));
    println!("memory of the data plane: {:.1} MiB", memory(&dp));
    println!("bytes to the data plane: {}", bench.relay.bytes().1);
    dp.kill();
    bench.relay.refuse(true);
    let began = Instant::now();
    dp = Node::spawn(bench.cluster.executable(), &options);
    serves(&dp, &last);
    println!("started from its own copy, without a control plane: {:.2} s", began.elapsed().as_secs_f64());
    println!("memory of the data plane then: {:.1} MiB", memory(&dp));
}

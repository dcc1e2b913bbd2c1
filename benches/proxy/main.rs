//! What a proxied request costs beside nginx and HAProxy, in one interleaved run.
//!
//!     cargo bench -p gwctl --bench proxy [-- ROUNDS [SECONDS]]
//!     GWCTL=target/dist/gwctl cargo bench -p gwctl --bench proxy
//!
//! Each proxy has one worker on core 0; the upstream (nginx, 20 bytes) and the load (wrk, 64 kept connections) share core 1.
//! Every round (5 unless given) starts each proxy anew, warms it up for a second and measures it for SECONDS (3). Printed
//! is the median of the rounds: CPU of all threads of the proxy for each request as the scheduler counts it, what that is
//! beside nginx, and requests per second. All route by one of 1,000 path prefixes, keep connections on both sides and write no
//! access log; gwctl adds Kong's headers. Needs nginx, haproxy and wrk on the PATH (Debian: nginx-light haproxy wrk) and
//! two cores. The program is the one cargo built (profile bench), or $GWCTL: shipped builds have the profile dist.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark reports on stdout and fails by panicking")]

mod load;
mod proxies;

use proxies::{KINDS, Kind};
use std::time::Duration;

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let (rounds, seconds) = (*numbers.first().unwrap_or(&5), *numbers.get(1).unwrap_or(&3));
    let folder = tempfile::tempdir().unwrap();
    let upstream = proxies::upstream(folder.path());
    let mut measured: Vec<Vec<load::Figures>> = KINDS.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        // The order turns round, so that none always follows the same one.
        for place in 0..KINDS.len() {
            let number = if round % 2 == 0 { place } else { KINDS.len() - 1 - place };
            let proxy = proxies::start(KINDS[number], folder.path(), upstream.port);
            measured[number].push(load::measure(&proxy, Duration::from_secs(seconds)));
        }
    }
    println!("{:<38} {:>14} {:>10} {:>12} {:>10}", "proxy", "CPU us/request", "x nginx", "requests/s", "p99 ms");
    let nginx = median(&measured[0], |figures| figures.micros);
    for (kind, figures) in KINDS.iter().zip(&measured) {
        let micros = median(figures, |figures| figures.micros);
        println!(
            "{:<38} {micros:>14.1} {:>10.2} {:>12.0} {:>10.2}",
            kind.name(),
            micros / nginx,
            median(figures, |figures| figures.rate),
            median(figures, |figures| figures.p99_millis)
        );
    }
}

fn median(figures: &[load::Figures], of: impl Fn(&load::Figures) -> f64) -> f64 {
    let mut values: Vec<f64> = figures.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "HAProxy",
            Self::Gwctl => "gwctl",
            Self::GwctlKeyAuth => "gwctl, key-auth",
            Self::GwctlKeyAuthRateLimiting => "gwctl, key-auth + rate-limiting local",
        }
    }
}

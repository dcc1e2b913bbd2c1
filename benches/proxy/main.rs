//! What a proxied request costs beside nginx and HAProxy, in interleaved runs, beside what is wanted.
//!
//!     cargo bench -p gwctl --bench proxy [-- ROUNDS [SECONDS] [PART]]
//!
//! Measured is the program as it ships: `$GWCTL` when set, else `scripts/dist` builds it first.
//!
//! Each proxy has one worker on core 0; the upstream (nginx) and the load share core 1. Every round (5 unless given) starts
//! each proxy anew, warms it up for a second and measures it for SECONDS (3). Told is the median of the rounds. CPU is that
//! of all threads of the proxy as the scheduler counts it, for each request. All route by one of 1,000 path prefixes, keep
//! connections on both sides and write no access log; gwctl adds Kong's headers, and nginx is told of with them as well.
//!
//! | part | load |
//! |---|---|
//! | small | 20 bytes over 64 kept connections (wrk); gwctl also with plugins, and with 512 connections |
//! | large | 100 KB from a file; nginx with buffers that hold them |
//! | tls | the small ones over TLS 1.3, P-256, connections kept; and one handshake for each request |
//! | rate | 15,000 requests a second, spread over 64 connections (h2load): the time that 99 of 100 stay below |
//! | idle | resident memory with 10,000 connections that ask every 20 seconds (h2load) |
//!
//! Needs nginx, haproxy, wrk, h2load, openssl and taskset on the PATH (Debian: nginx-light haproxy wrk nghttp2-client
//! openssl util-linux), two cores, and 20,000 open files. Ends with code 1 when something wanted is missed.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark reports on stdout and fails by panicking")]

mod load;
mod parts;
mod proxies;

use parts::{PARTS, Part};
use proxies::{Kind, Site};
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let (rounds, seconds) = (*numbers.first().unwrap_or(&5) as usize, *numbers.get(1).unwrap_or(&3));
    let asked = |part: &Part| {
        let mut named = words.iter().filter(|word| PARTS.iter().any(|part| part.name == **word)).peekable();
        named.peek().is_none() || named.any(|word| word == part.name)
    };
    let site = Site::new();
    let mut missed = 0;
    println!("{:<58} {:>12} {:>9} {:>8}", "figure", "measured", "x nginx", "wanted");
    for part in PARTS.iter().filter(|part| asked(part)) {
        missed += run(part, &site, rounds, Duration::from_secs(seconds));
    }
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Measures the lines of a part; how many missed what is wanted.
fn run(part: &Part, site: &Site, rounds: usize, time: Duration) -> usize {
    let mut measured: Vec<Vec<f64>> = part.lines.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        // The order turns round, so that none always follows the same one.
        for place in 0..part.lines.len() {
            let number = if round % 2 == 0 { place } else { part.lines.len() - 1 - place };
            let line = &part.lines[number];
            let proxy = proxies::start(line.kind, site, line.load);
            measured[number].push(load::measure(&proxy, line.load, time));
        }
    }
    let medians: Vec<f64> = measured.into_iter().map(median).collect();
    let mut missed = 0;
    for (number, line) in part.lines.iter().enumerate() {
        let peers = part.lines.iter().position(|peer| peer.load == line.load && peer.kind == Kind::Nginx);
        let beside = line.beside.or(peers).map(|peer| medians[peer]);
        let (what, figure) = (format!("{}, {}", line.kind.name(), line.load.name()), medians[number]);
        let ratio = beside.map_or(1.0, |beside| figure / beside);
        let judged = line.wanted.map(|wanted| (wanted.value(), wanted.value() < wanted.figure(figure, ratio)));
        let (limit, mark) = match judged {
            Some((limit, is_missed)) => {
                missed += usize::from(is_missed);
                (format!("{limit}"), if is_missed { " missed" } else { "" })
            }
            None => (String::new(), ""),
        };
        println!("{what:<58} {figure:>9.1} {} {ratio:>9.2} {limit:>8}{mark}", line.load.unit());
    }
    missed
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

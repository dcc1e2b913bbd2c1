//! One proxy under load.

use crate::proxies::{ADDRESS, KEY, Running};
use std::fs;
use std::process::Command;
use std::time::Duration;

/// What was measured in one round.
pub(crate) struct Figures {
    pub(crate) micros: f64,
    pub(crate) rate: f64,
    pub(crate) p99_millis: f64,
}

pub(crate) fn measure(proxy: &Running, time: Duration) -> Figures {
    wrk(Duration::from_secs(1));
    let before = cpu(proxy.id());
    let report = wrk(time);
    let spent = cpu(proxy.id()) - before;
    let failed = report.lines().any(|line| line.contains("Non-2xx") || line.contains("Socket errors"));
    assert!(!failed, "requests failed:\n{report}");
    let count: f64 = word_before(&report, " requests in ").parse().unwrap();
    Figures {
        micros: spent.as_secs_f64() * 1e6 / count,
        rate: number_after(&report, "Requests/sec:"),
        p99_millis: millis(&text_after(&report, "99%")),
    }
}

fn wrk(time: Duration) -> String {
    let key = format!("apikey: {KEY}");
    let seconds = format!("-d{}s", time.as_secs());
    let out = Command::new("taskset")
        .args(["-c", "1", "wrk", "-t1", "-c64", "--latency", &seconds, "-H", &key])
        .arg(format!("http://{ADDRESS}/bench/777/x"))
        .output()
        .unwrap();
    assert!(out.status.success(), "wrk: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn word_before(report: &str, mark: &str) -> String {
    let head = report.split(mark).next().unwrap();
    head.split_whitespace().last().unwrap().to_owned()
}

fn text_after(report: &str, mark: &str) -> String {
    let line = report.lines().find(|line| line.trim_start().starts_with(mark)).unwrap();
    line.trim_start().trim_start_matches(mark).trim().to_owned()
}

fn number_after(report: &str, mark: &str) -> f64 {
    text_after(report, mark).parse().unwrap()
}

/// `910.00us`, `1.64ms`, `1.2s`
fn millis(text: &str) -> f64 {
    let scale =
        |unit: &str, factor: f64| text.strip_suffix(unit).and_then(|text| Some(text.parse::<f64>().ok()? * factor));
    scale("us", 0.001).or_else(|| scale("ms", 1.0)).or_else(|| scale("s", 1000.0)).unwrap()
}

/// CPU time of the process, its children and all their threads that live.
fn cpu(process: u32) -> Duration {
    let mut nanos = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten() {
        let read = |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        nanos += read("schedstat").split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or(0);
        for child in read("children").split_whitespace().filter_map(|text| text.parse().ok()) {
            nanos += cpu(child).as_nanos() as u64;
        }
    }
    Duration::from_nanos(nanos)
}

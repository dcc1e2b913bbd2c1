//! One proxy under load.

use crate::parts::Load;
use crate::proxies::{ADDRESS, KEY, Running, TLS_ADDRESS};
use std::fs;
use std::process::Command;
use std::time::Duration;

const RATE: f64 = 15_000.0;
const IDLE: u32 = 10_000;

/// The figure of one round: microseconds of CPU for each request, milliseconds or megabytes.
pub(crate) fn measure(proxy: &Running, load: Load, time: Duration) -> f64 {
    match load {
        Load::Rate => p99_at_rate(time),
        Load::Idle => idle(proxy),
        _ => {
            wrk(load, Duration::from_secs(1));
            let before = cpu(proxy.id());
            let count = wrk(load, time);
            (cpu(proxy.id()) - before).as_secs_f64() * 1e6 / count
        }
    }
}

/// Requests answered.
fn wrk(load: Load, time: Duration) -> f64 {
    let connections = match load {
        Load::Small { connections } => connections,
        _ => 64,
    };
    let mut command = Command::new("taskset");
    command.args(["-c", "1", "wrk", "-t1", &format!("-c{connections}"), &format!("-d{}s", time.as_secs())]);
    command.args(["-H", &format!("apikey: {KEY}")]);
    if load == Load::TlsHandshakes {
        command.args(["-H", "Connection: close"]);
    }
    let (scheme, address) = if load.is_tls() { ("https", TLS_ADDRESS) } else { ("http", ADDRESS) };
    let path = if load == Load::Large { "large" } else { "x" };
    let out = command.arg(format!("{scheme}://{address}/bench/777/{path}")).output().unwrap();
    let report = String::from_utf8(out.stdout).unwrap();
    let failed = report.lines().any(|line| line.contains("Non-2xx") || line.contains("Socket errors"));
    assert!(out.status.success() && !failed, "requests failed:\n{report}{}", String::from_utf8_lossy(&out.stderr));
    word_before(&report, " requests in ").parse().unwrap()
}

fn word_before(report: &str, mark: &str) -> String {
    let head = report.split(mark).next().unwrap();
    head.split_whitespace().last().unwrap().to_owned()
}

fn h2load(connections: u32, rate: f64, time: Duration) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", "1", "h2load", "--h1", "-t1", &format!("-c{connections}"), &format!("--rps={rate}")]);
    command.args(["-D", &time.as_secs().to_string(), "-H", &format!("apikey: {KEY}")]);
    command.arg(format!("http://{ADDRESS}/bench/777/x"));
    command
}

/// Milliseconds.
fn p99_at_rate(time: Duration) -> f64 {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = h2load(64, RATE / 64.0, time + Duration::from_secs(1));
    let out = command.arg(format!("--log-file={}", log.path().display())).output().unwrap();
    assert!(out.status.success(), "h2load: {}", String::from_utf8_lossy(&out.stderr));
    // Each line: when it began, its status, how long it took, both in microseconds.
    let text = fs::read_to_string(log.path()).unwrap();
    let rows = text.lines().map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect::<Vec<i64>>());
    let rows: Vec<_> = rows.collect();
    assert!(rows.iter().all(|row| row[1] == 200), "some requests failed");
    let began = rows.iter().map(|row| row[0]).min().unwrap();
    // The first second warms up.
    let mut micros: Vec<i64> = rows.iter().filter(|row| row[0] > began + 1_000_000).map(|row| row[2]).collect();
    assert!(micros.len() as f64 > 0.9 * RATE * time.as_secs_f64(), "the load did not reach its rate");
    micros.sort_unstable();
    micros[micros.len() * 99 / 100] as f64 / 1000.0
}

/// Megabytes resident while so many connections hardly ask anything.
fn idle(proxy: &Running) -> f64 {
    let mut load = h2load(IDLE, 0.05, Duration::from_secs(20)).stdout(std::process::Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(15));
    let resident = resident(proxy.id());
    load.kill().unwrap();
    load.wait().unwrap();
    resident
}

/// Megabytes of the process and its children.
fn resident(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let own: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    own / 1000.0 + children(process).into_iter().map(resident).sum::<f64>()
}

fn children(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// CPU time of the process, its children and all their threads that live.
fn cpu(process: u32) -> Duration {
    let mut nanos = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten() {
        let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        nanos += text.split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or(0);
    }
    children(process).into_iter().fold(Duration::from_nanos(nanos), |sum, child| sum + cpu(child))
}

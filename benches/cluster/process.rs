//! What a process has used, from /proc.

use gwctl_testkit::Node;
use std::fs;
use std::time::Duration;

/// CPU time of all threads that live.
pub(crate) fn cpu(node: &Node) -> Duration {
    let threads = fs::read_dir(format!("/proc/{}/task", node.id())).unwrap().flatten();
    let spent = threads.filter_map(|thread| {
        // A thread may end while it is looked at.
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(spent.sum::<u64>())
}

/// Memory of its own in MiB: what it allocated, without pages of files.
pub(crate) fn memory(node: &Node) -> f64 {
    let status = fs::read_to_string(format!("/proc/{}/status", node.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

/// The value below which this part of the times lies, in milliseconds.
pub(crate) fn quantile(times: &mut [Duration], part: f64) -> f64 {
    times.sort_unstable();
    let at = ((times.len().saturating_sub(1)) as f64 * part).round() as usize;
    times.get(at).map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0)
}

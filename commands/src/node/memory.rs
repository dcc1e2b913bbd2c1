//! Watches the memory of the process: above the limit new requests are answered 503, so that those that are in flight,
//! and the node, live.

use gwctl_conf::MaxMemory;
use gwctl_lifecycle::{Phase, Shutdown, Task, spawn};
use gwctl_proxy::Stats;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often is looked.
const INTERVAL: Duration = Duration::from_millis(250);

/// Tells the proxy whether too much memory is used.
pub(crate) fn watch_memory(stats: Arc<Stats>, setting: watch::Receiver<MaxMemory>, shutdown: Shutdown) -> Task {
    spawn("memory", Phase::Stop, async move {
        let mut over = false;
        while shutdown.until(Phase::Stop, tokio::time::sleep(INTERVAL)).await.is_some() {
            let Some((used, limit)) = used().zip(limit(*setting.borrow())) else {
                over = false;
                stats.set_overloaded(false);
                continue;
            };
            let now_over = is_over(over, used, limit);
            if now_over != over {
                over = now_over;
                stats.set_overloaded(over);
                let (used_mib, limit_mib) = (used >> 20, limit >> 20);
                match over {
                    true => tracing::warn!(used_mib, limit_mib, "max_memory is reached, new requests are answered 503"),
                    false => tracing::info!(used_mib, limit_mib, "memory is below max_memory again"),
                }
            }
        }
    })
}

/// Once over the limit, a twentieth of it must be free again.
fn is_over(before: bool, used: u64, limit: u64) -> bool {
    used > if before { limit - limit / 20 } else { limit }
}

/// Bytes of memory that belong to the process alone; pages of files, such as the store's, go when they must.
fn used() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = text.split_whitespace().skip(1).map(str::parse::<u64>);
    let (resident, shared) = (pages.next()?.ok()?, pages.next()?.ok()?);
    Some(resident.saturating_sub(shared) * rustix::param::page_size() as u64)
}

fn limit(setting: MaxMemory) -> Option<u64> {
    match setting {
        MaxMemory::Off => None,
        MaxMemory::Bytes(bytes) => Some(bytes),
        MaxMemory::Auto => {
            let read = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
            let allowed =
                read("/sys/fs/cgroup/memory.max").or_else(|| read("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
            // Version 1 says "none" by a number beyond any machine.
            allowed.filter(|allowed| *allowed < 1 << 50).map(|allowed| allowed / 10 * 9)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_left_only_when_some_memory_is_free_again() {
        assert!(!is_over(false, 100, 100) && is_over(false, 101, 100));
        assert!(is_over(true, 96, 100) && !is_over(true, 95, 100));
    }

    #[test]
    fn the_memory_of_this_process_is_known() {
        assert!(used().is_some_and(|bytes| bytes > 100_000));
        assert_eq!((limit(MaxMemory::Off), limit(MaxMemory::Bytes(7))), (None, Some(7)));
    }
}

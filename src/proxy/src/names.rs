//! Keeps the addresses of targets that are host names: one task for each name, for all upstreams that have it.

use crate::snapshot::SnapshotHandle;
use crate::upstream::dns::{Found, Resolver};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::{Instant, sleep_until};

/// Least pause between two questions for a name, however short its lifetime.
const SHORTEST: Duration = Duration::from_millis(500);
/// Pause for a name without a lifetime: it is resolved for each request, and only asked for whether it has one now.
/// Source: Kong 3.9.1 `balancers.lua`, `TTL_0_RETRY`.
const WITHOUT_LIFETIME: Duration = Duration::from_secs(60);

/// A name that some upstream has.
struct Followed {
    task: AbortHandle,
    /// None until the first answer.
    found: Option<Found>,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Follows the names of the snapshot in force, for ever.
pub(crate) async fn keep(snapshots: SnapshotHandle, resolver: Rc<Resolver>) {
    let mut swaps = snapshots.swaps();
    let (answers, mut answered) = unbounded_channel();
    let mut names: HashMap<Arc<str>, Followed> = HashMap::new();
    loop {
        let snapshot = snapshots.load();
        let named = snapshot.balancers.named();
        let mut wanted: HashMap<Arc<str>, Followed> = HashMap::new();
        for name in named.values().flat_map(|balancer| balancer.names()) {
            if wanted.contains_key(name) {
                continue;
            }
            let (name, followed) = names.remove_entry(name).unwrap_or_else(|| {
                let name: Arc<str> = name.into();
                let task = spawn_local(follow(name.clone(), resolver.clone(), answers.clone())).abort_handle();
                (name, Followed { task, found: None })
            });
            wanted.insert(name, followed);
        }
        names = wanted;
        for balancer in named.values() {
            balancer.learn(|name| names.get(name)?.found.clone());
        }
        drop(snapshot);
        tokio::select! {
            swapped = swaps.changed() => if swapped.is_err() {
                return;
            },
            Some((name, found)) = answered.recv() => {
                if let Some(followed) = names.get_mut(&name) {
                    followed.found = Some(found);
                }
            }
        }
    }
}

/// Asks for a name whenever its answer has run out; tells what is new.
async fn follow(name: Arc<str>, resolver: Rc<Resolver>, answers: UnboundedSender<(Arc<str>, Found)>) {
    let mut last = None;
    loop {
        let asked = Instant::now();
        let (found, until) = resolver.renew(&name).await;
        let each_time = found.as_ref().is_ok_and(|answer| answer.each_time);
        if last.as_ref() != Some(&found) {
            match &found {
                Ok(answer) => tracing::debug!(name = &*name, addresses = answer.endpoints.len(), "name resolved"),
                Err(error) => tracing::warn!(name = &*name, %error, "name of a target cannot be resolved"),
            }
            if answers.send((name.clone(), found.clone())).is_err() {
                return;
            }
            last = Some(found);
        }
        let pause = if each_time { WITHOUT_LIFETIME } else { SHORTEST };
        sleep_until(until.max(asked + pause)).await;
    }
}

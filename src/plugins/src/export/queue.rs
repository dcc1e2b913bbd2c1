//! One queue: a shard for each worker, which it shares with the thread that exports and with nobody else.

use super::{Figures, Part, QueueOptions, Terms, Undelivered, lock};
use arc_swap::ArcSwap;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

/// Workers beyond this number share shards.
const SHARDS: usize = 16;

/// See the module.
pub(super) struct Queue {
    name: Arc<str>,
    terms: ArcSwap<Terms>,
    shards: [OnceLock<Box<Mutex<Shard>>>; SHARDS],
    /// Entries of all shards.
    count: AtomicUsize,
    /// Somebody empties it, or has been asked to.
    running: AtomicBool,
    /// A whole batch waits.
    full: Notify,
    /// That it is full has been told since the last delivery.
    told: AtomicBool,
    figures: Arc<Figures>,
}

#[derive(Default)]
struct Shard {
    parts: VecDeque<Part>,
    entries: usize,
    bytes: usize,
}

impl Shard {
    fn push(&mut self, mut part: Part) {
        // What is counted is what it holds; the room it was written in may be a multiple of that.
        part.bytes.shrink_to_fit();
        self.entries += part.count as usize;
        self.bytes += part.bytes.len();
        self.parts.push_back(part);
    }

    fn pop(&mut self) -> Option<Part> {
        let part = self.parts.pop_front()?;
        self.entries -= part.count as usize;
        self.bytes -= part.bytes.len();
        Some(part)
    }

    /// Whether it holds more than it may beside its newest part.
    fn is_over(&self, options: &QueueOptions) -> bool {
        let bytes = options.max_bytes.is_some_and(|most| self.bytes > most);
        self.parts.len() > 1 && (self.entries > options.max_entries || bytes)
    }
}

/// The shard of this thread.
fn own() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS;
    }
    NUMBER.with(|number| *number)
}

impl Queue {
    pub(super) fn new(name: Arc<str>, terms: Arc<Terms>, figures: Arc<Figures>) -> Queue {
        Queue {
            name,
            terms: ArcSwap::new(terms),
            shards: std::array::from_fn(|_| OnceLock::new()),
            count: AtomicUsize::new(0),
            running: AtomicBool::new(false),
            full: Notify::new(),
            told: AtomicBool::new(false),
            figures,
        }
    }

    /// Adds to the shard of this thread; true when nobody empties the queue so far.
    pub(super) fn add(&self, part: Part, terms: &Arc<Terms>) -> bool {
        if !Arc::ptr_eq(&self.terms.load(), terms) {
            self.terms.store(terms.clone());
        }
        let (added, options) = (part.count as usize, &terms.options);
        self.figures.add(u64::from(part.count));
        let before = self.count.fetch_add(added, Ordering::SeqCst);
        let mut lost = 0;
        {
            let mut shard = lock(self.shards[own()].get_or_init(Box::default));
            shard.push(part);
            while shard.is_over(options) {
                lost += shard.pop().map_or(0, |part| part.count as usize);
            }
        }
        if lost > 0 {
            self.lose(lost);
        }
        if before < options.max_batch_size && before + added >= options.max_batch_size {
            self.full.notify_one();
        }
        !self.running.swap(true, Ordering::SeqCst)
    }

    /// Nobody empties it any more.
    pub(super) fn rest(&self) {
        self.running.store(false, Ordering::SeqCst);
    }

    fn lose(&self, count: usize) {
        if !self.told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                plugin = &*self.name,
                "the queue is full, its oldest entries are lost until the server takes some"
            );
        }
        self.count.fetch_sub(count, Ordering::SeqCst);
        self.figures.settle(count as u64, false);
    }

    /// Takes the oldest parts of all shards in turn, up to a whole batch.
    fn take(&self, most: usize) -> Vec<Part> {
        let (mut batch, mut entries) = (Vec::new(), 0);
        let shards: Vec<_> = self.shards.iter().filter_map(OnceLock::get).collect();
        let mut found = true;
        while found && entries < most {
            found = false;
            for shard in &shards {
                let mut shard = lock(shard);
                let fits = |part: &Part| batch.is_empty() || entries + part.count as usize <= most;
                if shard.parts.front().is_some_and(fits)
                    && let Some(part) = shard.pop()
                {
                    entries += part.count as usize;
                    batch.push(part);
                    found = true;
                }
            }
        }
        self.count.fetch_sub(entries, Ordering::SeqCst);
        batch
    }

    /// Sends batches until there is nothing left. When the node stops, nothing waits for others any more.
    pub(super) async fn empty(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        loop {
            self.gather(&mut stop).await;
            let batch = self.take(self.terms.load().options.max_batch_size);
            if batch.is_empty() {
                self.rest();
                // Whoever added something meanwhile saw it running.
                if self.count.load(Ordering::SeqCst) == 0 || self.running.swap(true, Ordering::SeqCst) {
                    return;
                }
                continue;
            }
            let count: u64 = batch.iter().map(|part| u64::from(part.count)).sum();
            let delivered = self.send(&batch, count).await;
            self.figures.settle(count, delivered);
        }
    }

    /// Waits for a whole batch, or for as long as the first entry of one may wait.
    async fn gather(&self, stop: &mut watch::Receiver<bool>) {
        let options = self.terms.load().options.clone();
        let until = Instant::now() + options.max_coalescing_delay;
        while self.count.load(Ordering::SeqCst) < options.max_batch_size && !*stop.borrow_and_update() {
            tokio::select! {
                () = self.full.notified() => {}
                () = sleep_until(until) => return,
                changed = stop.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Sends a batch, again and again while that may help.
    async fn send(&self, batch: &[Part], count: u64) -> bool {
        let began = Instant::now();
        let mut failures = 0_u32;
        loop {
            let terms = self.terms.load_full();
            let (plugin, entries) = (&*self.name, count);
            let error = match terms.sender.deliver(batch).await {
                Ok(()) => {
                    self.told.store(false, Ordering::Relaxed);
                    if failures > 0 {
                        tracing::info!(plugin, entries, failures, "exported after failures");
                    }
                    return true;
                }
                Err(Undelivered::Never(error)) => {
                    tracing::error!(plugin, entries, error, "the server refuses what is exported, it is lost");
                    return false;
                }
                Err(Undelivered::Again(error)) => error,
            };
            if began.elapsed() > terms.options.max_retry_time {
                tracing::error!(plugin, entries, error, failures, "cannot export, the entries are lost");
                return false;
            }
            if failures == 0 {
                tracing::warn!(plugin, entries, error, "cannot export, trying again");
            }
            sleep(pause(&terms.options, failures)).await;
            failures = failures.saturating_add(1);
        }
    }
}

/// The pause after so many failures before.
fn pause(options: &QueueOptions, failures: u32) -> Duration {
    let factor = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
    options.initial_retry_delay.saturating_mul(factor).min(options.max_retry_delay)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_waits_takes_no_more_memory_than_is_counted() {
        let mut bytes = Vec::with_capacity(4096);
        bytes.extend_from_slice(b"span");
        let mut shard = Shard::default();
        shard.push(Part { bytes, count: 1 });
        let held: usize = shard.parts.iter().map(|part| part.bytes.capacity()).sum();
        assert_eq!((shard.bytes, held), (4, 4));
    }
}

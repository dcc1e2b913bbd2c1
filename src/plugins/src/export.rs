//! Sending what is told of requests to other servers, in batches and beside the requests.
//!
//! A worker puts what it has to tell into a queue and goes on. A thread of the node takes it out and sends it, again
//! after growing pauses when that fails. A queue that is full loses its oldest: neither a slow server nor one that is
//! gone holds a request up or takes more memory than the queue may have.

use queue::Queue;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use thread::Running;

mod queue;
mod thread;

/// Bounds of a queue and its pauses, as in the `queue` record of Kong's plugins.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueOptions {
    /// Entries that are sent at once.
    pub max_batch_size: usize,
    /// How long the first entry of a batch waits for others.
    pub max_coalescing_delay: Duration,
    /// Entries that wait, for each worker; more push the oldest out.
    pub max_entries: usize,
    /// Bytes that wait, for each worker.
    pub max_bytes: Option<usize>,
    /// A batch is given up when it could not be sent for so long.
    pub max_retry_time: Duration,
    /// Pause after the first failure; it doubles with each one.
    pub initial_retry_delay: Duration,
    /// Longest pause.
    pub max_retry_delay: Duration,
}

/// What one request has to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// In a form that the sender can put together with others.
    pub bytes: Vec<u8>,
    /// Entries in it.
    pub count: u32,
}

/// Why a batch was not delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undelivered {
    /// Another attempt may succeed.
    Again(String),
    /// The server will not have it.
    Never(String),
}

/// What a delivery comes to.
pub type Delivery<'a> = Pin<Box<dyn Future<Output = Result<(), Undelivered>> + Send + 'a>>;

/// Sends batches.
pub trait Deliver: Send + Sync {
    /// Sends one batch, once.
    fn deliver<'a>(&'a self, batch: &'a [Part]) -> Delivery<'a>;
}

/// How a queue is emptied.
pub struct Terms {
    /// Its bounds.
    pub options: QueueOptions,
    /// Who sends.
    pub sender: Box<dyn Deliver>,
}

/// The queues of a node; see the module.
#[derive(Default)]
pub struct Exports(Arc<Inner>);

#[derive(Default)]
struct Inner {
    queues: Mutex<BTreeMap<Arc<str>, Weak<Queue>>>,
    running: Mutex<Option<Running>>,
    finished: AtomicBool,
    figures: Arc<Figures>,
}

/// Entries of all queues of a node.
#[derive(Debug, Default)]
struct Figures {
    waiting: AtomicU64,
    sent: AtomicU64,
    dropped: AtomicU64,
}

/// What became of the entries of all queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exported {
    /// Delivered.
    pub sent: u64,
    /// Lost: pushed out of a full queue, refused, or given up.
    pub dropped: u64,
    /// On their way.
    pub waiting: u64,
}

/// A way into a queue.
#[derive(Clone)]
pub struct Outlet {
    queue: Arc<Queue>,
    terms: Arc<Terms>,
    exports: Arc<Inner>,
}

impl Exports {
    /// A way into the queue of this name (the id of a plugin's row). The queue goes on when the row changes; it is emptied
    /// on the terms of whoever put something into it last.
    pub fn outlet(&self, name: &Arc<str>, terms: Terms) -> Outlet {
        let terms = Arc::new(terms);
        let mut queues = lock(&self.0.queues);
        queues.retain(|_, queue| queue.strong_count() > 0);
        let queue = queues.get(name).and_then(Weak::upgrade).unwrap_or_else(|| {
            let queue = Arc::new(Queue::new(name.clone(), terms.clone(), self.0.figures.clone()));
            queues.insert(name.clone(), Arc::downgrade(&queue));
            queue
        });
        Outlet { queue, terms, exports: self.0.clone() }
    }

    /// What became of the entries so far.
    pub fn exported(&self) -> Exported {
        self.0.figures.now()
    }

    /// Sends what waits, for as long as this, and takes nothing any more. Blocks.
    pub fn finish(&self, limit: Duration) {
        self.0.finished.store(true, Ordering::SeqCst);
        let Some(running) = lock(&self.0.running).take() else { return };
        running.finish(limit);
        let lost = self.0.figures.waiting.swap(0, Ordering::Relaxed);
        if lost > 0 {
            self.0.figures.dropped.fetch_add(lost, Ordering::Relaxed);
            tracing::warn!(entries = lost, "the node stops before all could be exported");
        }
    }
}

impl Outlet {
    /// Puts something into the queue. Never waits for a server.
    pub fn add(&self, part: Part) {
        if self.exports.finished.load(Ordering::SeqCst) {
            self.exports.figures.dropped.fetch_add(u64::from(part.count), Ordering::Relaxed);
            return;
        }
        if self.queue.add(part, &self.terms) {
            self.exports.start(self.queue.clone());
        }
    }
}

impl Inner {
    /// Has the thread empty a queue.
    fn start(&self, queue: Arc<Queue>) {
        let mut running = lock(&self.running);
        if self.finished.load(Ordering::SeqCst) {
            return;
        }
        if running.is_none() {
            match Running::start() {
                Ok(started) => *running = Some(started),
                Err(error) => {
                    tracing::error!(%error, "cannot start the thread that exports");
                    queue.rest();
                    return;
                }
            }
        }
        if let Some(running) = &*running {
            running.empty(queue);
        }
    }
}

impl Figures {
    fn now(&self) -> Exported {
        let [sent, dropped, waiting] =
            [&self.sent, &self.dropped, &self.waiting].map(|figure| figure.load(Ordering::Relaxed));
        Exported { sent, dropped, waiting }
    }

    fn add(&self, count: u64) {
        self.waiting.fetch_add(count, Ordering::Relaxed);
    }

    fn settle(&self, count: u64, delivered: bool) {
        self.waiting.fetch_sub(count, Ordering::Relaxed);
        let figure = if delivered { &self.sent } else { &self.dropped };
        figure.fetch_add(count, Ordering::Relaxed);
    }
}

impl fmt::Debug for Exports {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Exports").field("exported", &self.exported()).finish_non_exhaustive()
    }
}

/// What these guard is whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

//! The thread that exports: a runtime of its own, so that nothing it does takes time from a worker.

use super::queue::Queue;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// See the module.
pub(super) struct Running {
    queues: mpsc::UnboundedSender<Arc<Queue>>,
    /// Set once the node stops, with the time there is.
    stop: watch::Sender<bool>,
    limit: watch::Sender<Duration>,
    thread: JoinHandle<()>,
}

impl Running {
    pub(super) fn start() -> io::Result<Running> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (queues, asked) = mpsc::unbounded_channel();
        let (stop, stopping) = watch::channel(false);
        let (limit, limits) = watch::channel(Duration::ZERO);
        let body = move || {
            runtime.block_on(serve(asked, stopping, limits));
            // A resolver that does not answer has a thread of its own, for which nobody waits.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("exports".to_owned()).spawn(body)?;
        Ok(Running { queues, stop, limit, thread })
    }

    /// Has a queue emptied. Each is asked for once at a time, so that their number is that of the queues.
    pub(super) fn empty(&self, queue: Arc<Queue>) {
        // An error means that the thread is gone, which it is only after the end.
        let _ = self.queues.send(queue);
    }

    /// Sends what is left for as long as this, and ends.
    pub(super) fn finish(self, limit: Duration) {
        self.limit.send_replace(limit);
        self.stop.send_replace(true);
        if self.thread.join().is_err() {
            tracing::error!("the thread that exports panicked");
        }
    }
}

async fn serve(
    mut asked: mpsc::UnboundedReceiver<Arc<Queue>>,
    stop: watch::Receiver<bool>,
    limits: watch::Receiver<Duration>,
) {
    let mut emptied = JoinSet::new();
    let mut stopping = stop.clone();
    loop {
        tokio::select! {
            biased;
            Some(queue) = asked.recv() => { emptied.spawn(queue.empty(stop.clone())); }
            Some(_) = emptied.join_next() => {}
            // An error means that the node is gone, without having stopped.
            stopped = stopping.wait_for(|stop| *stop) => {
                if stopped.is_err() {
                    return;
                }
                break;
            }
        }
    }
    let limit = *limits.borrow();
    let rest = async {
        while let Ok(queue) = asked.try_recv() {
            emptied.spawn(queue.empty(stop.clone()));
        }
        while emptied.join_next().await.is_some() {}
    };
    // What is not sent by then is lost, and told by the caller.
    let _ = timeout(limit, rest).await;
}

//! The steps in which a node stops.

use std::time::Duration;

use tokio::sync::watch;

/// A step of stopping, and so the time at which a task ends. The order is the order of the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Listeners close; health answers "not ready"; nothing new is begun.
    StopAccepting,
    /// What is in flight ends: requests, transactions, a configuration being applied.
    Drain,
    /// The rest ends: links to peers, log writers, the store.
    Stop,
}

impl Phase {
    /// Every phase in order.
    pub const ALL: [Self; 3] = [Self::StopAccepting, Self::Drain, Self::Stop];

    /// Name for logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::StopAccepting => "stop accepting",
            Self::Drain => "drain",
            Self::Stop => "stop",
        }
    }
}

/// Tells every part of a node how far stopping has come. Clones share one state.
#[derive(Debug, Clone)]
pub struct Shutdown {
    phase: watch::Sender<Option<Phase>>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

impl Shutdown {
    /// A node that runs.
    pub fn new() -> Self {
        Self { phase: watch::Sender::new(None) }
    }

    /// The phase entered last; `None` while the node runs.
    pub fn phase(&self) -> Option<Phase> {
        *self.phase.borrow()
    }

    /// Whether stopping has begun.
    pub fn begun(&self) -> bool {
        self.phase().is_some()
    }

    /// Enters a phase. A phase that has passed is not entered again.
    pub fn enter(&self, phase: Phase) {
        let entered = self.phase.send_if_modified(|current| {
            let later = *current < Some(phase);
            if later {
                *current = Some(phase);
            }
            later
        });
        if entered {
            tracing::debug!(phase = phase.name(), "shutdown");
        }
    }

    /// Waits until the phase, or a later one, is entered. Cancel safe.
    pub async fn reached(&self, phase: Phase) {
        let mut phases = self.phase.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = phases.wait_for(|current| *current >= Some(phase)).await;
    }

    /// Runs a future until the phase is entered; `None` when it was cut short.
    pub async fn until<T>(&self, phase: Phase, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.reached(phase) => None,
            output = future => Some(output),
        }
    }

    /// Goes through all phases for tasks that are held elsewhere, giving each phase but the last `grace` to take effect.
    ///
    /// Where the tasks are held in a [`crate::TaskSet`], its `shut_down` goes on as soon as they have ended.
    pub async fn run(&self, grace: Duration) {
        for phase in Phase::ALL {
            self.enter(phase);
            if phase != Phase::Stop {
                tokio::time::sleep(grace).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waiting_ends_at_the_phase_or_a_later_one() {
        let shutdown = Shutdown::new();
        let waiter = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { shutdown.reached(Phase::Drain).await }
        });
        shutdown.enter(Phase::StopAccepting);
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished());
        shutdown.enter(Phase::Stop);
        waiter.await.unwrap();
    }

    #[test]
    fn phases_are_never_entered_backwards() {
        let shutdown = Shutdown::new();
        assert!(!shutdown.begun());
        shutdown.enter(Phase::Stop);
        shutdown.enter(Phase::StopAccepting);
        assert_eq!(shutdown.phase(), Some(Phase::Stop));
    }

    #[tokio::test]
    async fn a_future_is_cut_short_by_its_phase_and_otherwise_gives_its_output() {
        let shutdown = Shutdown::new();
        assert_eq!(shutdown.until(Phase::Stop, async { 7 }).await, Some(7));
        shutdown.enter(Phase::Stop);
        assert_eq!(shutdown.until(Phase::Stop, std::future::pending::<u8>()).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn running_gives_each_phase_but_the_last_its_grace() {
        let shutdown = Shutdown::new();
        let start = tokio::time::Instant::now();
        shutdown.run(Duration::from_secs(10)).await;
        assert_eq!((shutdown.phase(), start.elapsed()), (Some(Phase::Stop), Duration::from_secs(20)));
    }
}

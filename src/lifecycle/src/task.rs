//! Tasks with a name, a phase and an owner.

use std::time::Duration;

use tokio::task::JoinHandle;
use tracing::Instrument;

use crate::{Phase, Shutdown};

/// A running task. Dropping it aborts the task.
#[must_use = "dropping the handle aborts the task"]
#[derive(Debug)]
pub struct Task<T = ()> {
    name: String,
    phase: Phase,
    handle: JoinHandle<T>,
}

/// Why a task gave no output.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TaskError {
    /// A bug: the task panicked.
    #[error("task `{name}` panicked: {message}")]
    BugPanicked {
        /// Name of the task.
        name: String,
        /// Text of the panic.
        message: String,
    },
    /// The task was aborted before its end.
    #[error("task `{name}` was aborted")]
    Aborted {
        /// Name of the task.
        name: String,
    },
}

/// Starts a task on the current runtime. The phase is the one in which the task has to end.
pub fn spawn<F>(name: impl Into<String>, phase: Phase, future: F) -> Task<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let name = name.into();
    let span = tracing::debug_span!("task", name);
    Task { phase, handle: tokio::spawn(future.instrument(span)), name }
}

/// Starts a task that stays on this thread; needs a local runtime or a `LocalSet`, as the proxy's workers have.
pub fn spawn_local<F>(name: impl Into<String>, phase: Phase, future: F) -> Task<F::Output>
where
    F: Future + 'static,
{
    let name = name.into();
    let span = tracing::debug_span!("task", name);
    Task { phase, handle: tokio::task::spawn_local(future.instrument(span)), name }
}

impl<T> Task<T> {
    /// Name given at the start.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Phase in which the task has to end.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Asks the task to end at its next await.
    pub fn abort(&self) {
        self.handle.abort();
    }

    /// Waits for the end of the task. Cancel safe: dropped while waiting, it leaves the task running.
    pub async fn ended(&mut self) -> Result<T, TaskError> {
        (&mut self.handle).await.map_err(|error| match error.try_into_panic() {
            Ok(panic) => TaskError::BugPanicked { name: self.name.clone(), message: panic_text(&*panic) },
            Err(_) => TaskError::Aborted { name: self.name.clone() },
        })
    }

    /// Waits for the output, consuming the handle; dropped while waiting, it aborts the task.
    pub async fn join(mut self) -> Result<T, TaskError> {
        self.ended().await
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

/// The tasks of a node or of one of its parts, stopped phase by phase. Dropping it aborts them all.
#[derive(Debug, Default)]
pub struct TaskSet {
    tasks: Vec<Task>,
}

impl TaskSet {
    /// A set without tasks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes over a task; tasks that have ended are let go on the way.
    pub fn add(&mut self, task: Task) {
        self.tasks.retain(|task| !task.is_finished());
        self.tasks.push(task);
    }

    /// Enters the phases one by one. Each waits at most `grace` for its tasks to end by themselves and aborts the rest.
    ///
    /// Returns the names of the tasks that had to be aborted.
    pub async fn shut_down(mut self, shutdown: &Shutdown, grace: Duration) -> Vec<String> {
        let mut aborted = Vec::new();
        for phase in Phase::ALL {
            shutdown.enter(phase);
            let deadline = tokio::time::Instant::now() + grace;
            for task in self.tasks.iter_mut().filter(|task| task.phase == phase) {
                match tokio::time::timeout_at(deadline, task.ended()).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::error!(task = task.name, %error, "task failed"),
                    Err(_) => {
                        tracing::warn!(task = task.name, phase = phase.name(), "task did not end in time, aborted");
                        task.abort();
                        aborted.push(task.name.clone());
                    }
                }
            }
        }
        aborted
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    const GRACE: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn dropping_the_handle_aborts_the_task() {
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        let task = spawn("holds the sender", Phase::Stop, async move {
            std::future::pending::<()>().await;
            drop(sender);
        });
        drop(task);
        assert!(receiver.await.is_err());
    }

    #[tokio::test]
    async fn a_panic_is_reported_with_the_name_of_the_task() {
        let task: Task = spawn("unlucky", Phase::Stop, async { panic!("number {}", 13) });
        let error = task.join().await.unwrap_err();
        assert_eq!(error.to_string(), "task `unlucky` panicked: number 13");
    }

    #[tokio::test]
    async fn tasks_end_in_the_order_of_their_phases() {
        let (shutdown, ended) = (Shutdown::new(), Arc::new(Mutex::new(Vec::new())));
        let mut tasks = TaskSet::new();
        for phase in [Phase::Stop, Phase::StopAccepting, Phase::Drain] {
            let (shutdown, ended) = (shutdown.clone(), Arc::clone(&ended));
            tasks.add(spawn(phase.name(), phase, async move {
                shutdown.reached(phase).await;
                ended.lock().unwrap().push(phase);
            }));
        }
        assert!(tasks.shut_down(&shutdown, GRACE).await.is_empty());
        assert_eq!(*ended.lock().unwrap(), Phase::ALL);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_does_not_end_in_time_is_aborted_and_named() {
        let mut tasks = TaskSet::new();
        tasks.add(spawn("deaf", Phase::Drain, std::future::pending()));
        let start = tokio::time::Instant::now();
        assert_eq!(tasks.shut_down(&Shutdown::new(), GRACE).await, ["deaf"]);
        assert_eq!(start.elapsed(), GRACE);
    }

    #[tokio::test]
    async fn local_tasks_may_hold_values_that_stay_on_the_thread() {
        let local = tokio::task::LocalSet::new();
        let value = std::rc::Rc::new(5);
        let output = local.run_until(async { spawn_local("local", Phase::Stop, async move { *value }).join().await });
        assert_eq!(output.await, Ok(5));
    }
}

//! Named tasks, shutdown phases, clock and back-off; figures of the process as text; what to try when
//! an address cannot be listened on.
//!
//! A node stops in three steps ([`Phase`]): it stops accepting, it lets what is in flight end, it stops the rest.
//! Tasks are started with [`spawn`] only, so that each has a name for the log and a phase in which it ends.
//! Signals are not known here: who listens for them calls [`Shutdown::run`] or [`Shutdown::enter`].
#![warn(missing_docs)]
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod backoff;
mod clock;
mod figures;
mod listen;
mod shutdown;
mod task;

pub use backoff::Backoff;
pub use clock::{Clock, SystemClock, TestClock};
pub use figures::Family;
pub use listen::listen_hint;
pub use shutdown::{Phase, Shutdown};
pub use task::{Task, TaskError, TaskSet, spawn, spawn_local};

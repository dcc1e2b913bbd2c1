//! A worker that dies is started again.

use crate::listen::Bound;
use crate::stats::Stats;
use crate::worker::{Parts, Worker};
use std::cell::RefCell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Pause before a worker is started again; it doubles each time, up to the last one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// Runs one worker until the node stops. A panic in a request or a connection ends no more than these; what ends the
/// worker itself is written to the log and counted, and it begins anew on the same sockets.
pub(crate) fn supervise(number: usize, parts: &Parts, sockets: Vec<Bound>) {
    let spare = RefCell::new(sockets);
    let run = || {
        let bound: io::Result<Vec<Bound>> = spare.borrow().iter().map(Bound::again).collect();
        Worker::run(parts, bound?, &spare)
    };
    again(number, &parts.stats, PAUSES.0, || *parts.stopping.borrow(), run);
}

fn again(
    number: usize,
    stats: &Stats,
    mut pause: Duration,
    stopping: impl Fn() -> bool,
    mut run: impl FnMut() -> io::Result<()>,
) {
    loop {
        let error = match catch_unwind(AssertUnwindSafe(&mut run)) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it panicked, a bug of gwctl".to_owned(),
        };
        if stopping() {
            tracing::error!(worker = number, error, "worker failed while stopping");
            return;
        }
        tracing::error!(worker = number, error, "worker failed and is started again");
        stats.worker_restarted();
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSES.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_worker_that_panics_or_fails_is_started_again_and_counted() {
        let (stats, runs) = (Stats::default(), Cell::new(0));
        let run = || {
            runs.set(runs.get() + 1);
            match runs.get() {
                1 => panic!("on purpose"),
                2 => Err(io::Error::other("on purpose")),
                _ => Ok(()),
            }
        };
        again(0, &stats, Duration::ZERO, || false, run);
        assert_eq!((runs.get(), stats.worker_restarts()), (3, 2));
    }

    #[test]
    fn a_worker_that_fails_during_a_stop_stays_down() {
        let stats = Stats::default();
        again(0, &stats, Duration::ZERO, || true, || Err(io::Error::other("on purpose")));
        assert_eq!(stats.worker_restarts(), 0);
    }
}

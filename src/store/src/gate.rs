//! Counts readers, and holds new ones back while the map is moved.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Entering is two atomic operations, so readers do not slow each other down.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    readers: AtomicUsize,
    closed: AtomicBool,
    door: Mutex<()>,
    moved: Condvar,
}

/// Leave to read; while one lives, the gate cannot close.
#[derive(Debug)]
pub(crate) struct Pass<'g>(&'g Gate);

/// The gate is closed while this lives.
#[derive(Debug)]
pub(crate) struct Closed<'g>(&'g Gate);

impl Gate {
    /// Enters; waits while the gate is closed.
    pub(crate) fn enter(&self) -> Pass<'_> {
        loop {
            // Counted first and looked second, while closing shuts first and counts second: one of them sees the other.
            self.readers.fetch_add(1, SeqCst);
            let pass = Pass(self);
            if !self.closed.load(SeqCst) {
                return pass;
            }
            drop(pass);
            let mut door = self.door.lock().unwrap_or_else(PoisonError::into_inner);
            while self.closed.load(SeqCst) {
                door = self.moved.wait(door).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Closes once all readers have left; the number of readers still there when that takes longer than `patience`.
    pub(crate) fn close(&self, patience: Duration) -> Result<Closed<'_>, usize> {
        let deadline = Instant::now() + patience;
        let mut door = self.door.lock().unwrap_or_else(PoisonError::into_inner);
        self.closed.store(true, SeqCst);
        let closed = Closed(self);
        loop {
            let readers = self.readers.load(SeqCst);
            if readers == 0 {
                return Ok(closed);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(door);
                return Err(readers);
            }
            door = self.moved.wait_timeout(door, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether it is closed or waits for readers to leave.
    #[cfg(test)]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }

    fn tell(&self) {
        // Under the door's lock, so that nobody misses it between looking and waiting.
        drop(self.door.lock().unwrap_or_else(PoisonError::into_inner));
        self.moved.notify_all();
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let last = self.0.readers.fetch_sub(1, SeqCst) == 1;
        if last && self.0.closed.load(SeqCst) {
            self.0.tell();
        }
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.closed.store(false, SeqCst);
        self.0.tell();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const SOON: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn closing_gives_up_while_a_reader_stays() {
        let gate = Gate::default();
        let pass = gate.enter();
        assert_eq!(gate.close(SOON).map(drop), Err(1));
        drop(gate.enter());
        drop(pass);
        assert!(gate.close(SOON).is_ok());
    }

    #[test]
    fn closing_waits_for_the_last_reader_and_readers_for_the_opening() {
        let gate = Gate::default();
        let (sender, events) = mpsc::channel();
        let pass = gate.enter();
        std::thread::scope(|scope| {
            let closer = sender.clone();
            let gate = &gate;
            scope.spawn(move || {
                let closed = gate.close(LONG);
                let _ = closer.send(if closed.is_ok() { "closed" } else { "given up" });
                drop(closed);
            });
            while !gate.is_closed() {
                std::thread::yield_now();
            }
            scope.spawn(move || {
                drop(gate.enter());
                let _ = sender.send("entered");
            });
            drop(pass);
        });
        assert_eq!(events.iter().collect::<Vec<_>>(), ["closed", "entered"]);
    }
}

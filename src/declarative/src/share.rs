//! Work on many things that do not depend on each other, shared among threads.
//!
//! The threads live no longer than the call and touch nothing but what they are given, so a function that uses them
//! stays pure: the same things give the same results, whatever the number of threads.

use gwctl_entities::Fill;
use std::panic::resume_unwind;

/// Fewest things for which another thread is worth its start.
const WORTH_A_THREAD: usize = 128;

/// Time that stands still. What is drawn from it is worth nothing: the work is done again with the caller's own.
struct Still {
    now_millis: u64,
    drawn: bool,
}

impl Fill for Still {
    fn now_millis(&mut self) -> u64 {
        self.now_millis
    }
    fn uuid(&mut self) -> String {
        self.drawn = true;
        "00000000-0000-4000-8000-000000000000".to_owned()
    }
    fn token(&mut self) -> String {
        self.drawn = true;
        "0".repeat(32)
    }
}

/// The results of `work`, in the order of the things, on so many threads at most.
///
/// Work that draws something at random is done once more on the caller's thread, in order, and only then with the
/// caller's `fill`: it must be repeatable. With one thread it is done once, with `fill`.
pub(crate) fn each<T: Send, R: Send>(
    things: &mut [T],
    threads: usize,
    fill: &mut dyn Fill,
    work: impl Fn(&mut T, &mut dyn Fill) -> R + Sync,
) -> Vec<R> {
    if threads_for(things.len(), threads) < 2 {
        return things.iter_mut().map(|thing| work(thing, fill)).collect();
    }
    let now_millis = fill.now_millis();
    let results = parts(things, threads, |thing| {
        let mut still = Still { now_millis, drawn: false };
        let result = work(thing, &mut still);
        (!still.drawn).then_some(result)
    });
    things.iter_mut().zip(results).map(|(thing, result)| result.unwrap_or_else(|| work(thing, fill))).collect()
}

/// As [`each`] for work that needs neither clock nor randomness.
pub(crate) fn parts<T: Send, R: Send>(things: &mut [T], threads: usize, work: impl Fn(&mut T) -> R + Sync) -> Vec<R> {
    let part = |part: &mut [T]| -> Vec<R> { part.iter_mut().map(&work).collect() };
    let size = things.len().div_ceil(threads_for(things.len(), threads));
    std::thread::scope(|scope| {
        let (own, others) = things.split_at_mut(size);
        let others: Vec<_> = others.chunks_mut(size.max(1)).map(|others| scope.spawn(|| part(others))).collect();
        let mut results = part(own);
        for other in others {
            results.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    })
}

/// The results of two works, at the same time where more than one thread may be used.
pub(crate) fn both<A, B: Send>(threads: usize, one: impl FnOnce() -> A, other: impl FnOnce() -> B + Send) -> (A, B) {
    if threads < 2 {
        return (one(), other());
    }
    std::thread::scope(|scope| {
        let other = scope.spawn(other);
        let one = one();
        (one, other.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

fn threads_for(things: usize, threads: usize) -> usize {
    threads.min(things / WORTH_A_THREAD).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::tests::Counter;

    #[test]
    fn any_number_of_threads_gives_the_same_results_in_the_same_order() {
        let with = |threads| {
            let mut things: Vec<usize> = (0..1000).collect();
            each(&mut things, threads, &mut Counter(0), |thing, fill| {
                // Every tenth draws something.
                let drawn = thing.is_multiple_of(10).then(|| fill.uuid());
                format!("{thing} {} {drawn:?}", fill.now_millis())
            })
        };
        let alone = with(1);
        assert!(alone[10].contains("8000-000000000002"), "{}", alone[10]);
        for threads in [0, 2, 3, 7, 100] {
            assert_eq!(with(threads), alone, "{threads} threads");
        }
    }

    #[test]
    fn nothing_to_do_gives_nothing() {
        assert_eq!(parts(&mut [] as &mut [u8], 4, |thing| *thing), Vec::<u8>::new());
    }
}

//! The time, as requests need it: read once for each turn of a worker's task, not each time it is asked for.
//!
//! What a request does in one turn takes microseconds, and what is told of its times is milliseconds. Whoever is called
//! by the runtime begins a turn ([`turn`]); whatever may have taken long in between, such as a plugin, does so, too.

use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The calendar is looked at again after this time: it may have been set.
const CALENDAR: Duration = Duration::from_millis(500);

thread_local! {
    static NOW: Cell<Option<Instant>> = const { Cell::new(None) };
    /// A moment and what the calendar said then, since 1970.
    static READ: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

/// Begins a turn: the time is read when it is asked for next.
pub(crate) fn turn() {
    NOW.set(None);
}

/// The time of this turn.
pub(crate) fn now() -> Instant {
    NOW.get().unwrap_or_else(|| {
        let now = Instant::now();
        NOW.set(Some(now));
        now
    })
}

/// The time of this turn since 1970.
pub(crate) fn since_1970() -> Duration {
    let now = now();
    if let Some((then, calendar)) = READ.get() {
        let passed = now.saturating_duration_since(then);
        if passed < CALENDAR {
            return calendar + passed;
        }
    }
    let calendar = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    READ.set(Some((now, calendar)));
    calendar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_has_one_time_and_the_next_a_later_one() {
        turn();
        let first = now();
        while Instant::now() == first {}
        assert_eq!(now(), first);
        turn();
        assert!(now() > first);
    }

    #[test]
    fn the_calendar_goes_on_between_two_looks_at_it() {
        turn();
        let (moment, told) = (now(), since_1970());
        NOW.set(Some(moment + CALENDAR / 2));
        assert_eq!(since_1970(), told + CALENDAR / 2);
        NOW.set(Some(moment + 2 * CALENDAR));
        assert!(since_1970() < told + CALENDAR, "it was looked at again");
    }
}

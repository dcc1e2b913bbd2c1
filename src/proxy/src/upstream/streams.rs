//! How many streams an HTTP/2 connection to an upstream carries, and how many the upstream allows: the library of HTTP/2
//! lets a request wait for a free stream without a word, and streams of gRPC may last for hours.

use std::cell::Cell;
use std::rc::Rc;

/// Streams of a connection until the upstream has said how many there may be, which it does with its first frame. So many
/// may have to wait if it allows fewer; more would mean a connection for each of the requests that come meanwhile.
pub(crate) const AT_FIRST: usize = 8;

/// What all shares of a connection know.
pub(crate) struct Streams {
    /// As the upstream said last.
    allowed: Box<dyn Fn() -> usize>,
    open: Cell<usize>,
}

impl Streams {
    pub(crate) fn new(allowed: impl Fn() -> usize + 'static) -> Streams {
        Streams { allowed: Box::new(allowed), open: Cell::new(0) }
    }

    /// Whether one more need not wait for the end of another.
    pub(crate) fn have_room(&self) -> bool {
        self.open.get() < (self.allowed)()
    }
}

/// A stream that is counted until this is dropped.
pub(crate) struct Place(Rc<Streams>);

impl Place {
    pub(crate) fn of(streams: &Rc<Streams>) -> Place {
        streams.open.set(streams.open.get() + 1);
        Place(streams.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_until_they_are_dropped() {
        let said = Rc::new(Cell::new(2));
        let allowed = said.clone();
        let streams = Rc::new(Streams::new(move || allowed.get()));
        let first = [Place::of(&streams), Place::of(&streams)];
        assert!(!streams.have_room());
        said.set(3);
        assert!(streams.have_room());
        let last = Place::of(&streams);
        said.set(1);
        drop(last);
        assert!(!streams.have_room());
        drop(first);
        assert!(streams.have_room());
    }
}

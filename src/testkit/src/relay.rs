//! A wire between two nodes that can be cut, held still and measured.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a pump waits for bytes before it looks at its orders again.
const TICK: Duration = Duration::from_millis(20);

/// Forwards connections from a port of its own to another of loopback, until the test ends.
#[derive(Debug, Clone)]
pub struct Relay {
    /// Where to connect to.
    pub port: u16,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes that may still pass; below zero: no limit.
    left: AtomicI64,
    /// Bytes are taken from neither side: the connection looks open and nothing moves.
    still: AtomicBool,
    /// At the limit the wire is held still and not cut.
    holds: AtomicBool,
    /// New connections are closed at once.
    closed: AtomicBool,
    up: AtomicU64,
    down: AtomicU64,
    connections: AtomicUsize,
    open: Mutex<Vec<(TcpStream, TcpStream)>>,
}

impl State {
    fn wait_while_still(&self) {
        while self.still.load(Ordering::Relaxed) {
            thread::sleep(TICK);
        }
    }
}

impl Relay {
    /// Starts it on a free port, towards `target`.
    pub fn start(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State { left: AtomicI64::new(-1), ..State::default() });
        let relay = Self { port, state };
        let shared = relay.clone();
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                shared.state.connections.fetch_add(1, Ordering::Relaxed);
                if !shared.state.closed.load(Ordering::Relaxed)
                    && let Ok(far) = TcpStream::connect(("127.0.0.1", target))
                {
                    shared.join(near, far);
                }
            }
        });
        relay
    }

    fn join(&self, near: TcpStream, far: TcpStream) {
        // It must not wait for more bytes where the ends do not.
        near.set_nodelay(true).unwrap();
        far.set_nodelay(true).unwrap();
        let (near_again, far_again) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        self.open().push((near.try_clone().unwrap(), far.try_clone().unwrap()));
        let (up, down) = (self.state.clone(), self.state.clone());
        thread::spawn(move || pump(&near, &far, &up, &up.up));
        thread::spawn(move || pump(&far_again, &near_again, &down, &down.down));
    }

    /// Bytes that went from those who connected to the target, and back.
    pub fn bytes(&self) -> (u64, u64) {
        (self.state.up.load(Ordering::Relaxed), self.state.down.load(Ordering::Relaxed))
    }

    /// Connections asked for so far.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// Cuts all connections after so many more bytes in either direction, in the middle of whatever they belong to.
    pub fn cut_after(&self, bytes: u32) {
        self.state.holds.store(false, Ordering::Relaxed);
        self.state.left.store(i64::from(bytes), Ordering::Relaxed);
    }

    /// Holds everything still after so many more bytes in either direction, in the middle of whatever they belong to.
    pub fn hold_after(&self, bytes: u32) {
        self.state.holds.store(true, Ordering::Relaxed);
        self.state.left.store(i64::from(bytes), Ordering::Relaxed);
    }

    /// Whether everything is held still.
    pub fn is_held(&self) -> bool {
        self.state.still.load(Ordering::Relaxed)
    }

    /// Whether a cut that was ordered has happened.
    pub fn is_cut(&self) -> bool {
        self.state.left.load(Ordering::Relaxed) < 0
    }

    /// Cuts all connections now.
    pub fn cut(&self) {
        for (near, far) in self.open().drain(..) {
            // A side that is gone already is no fault.
            let _ = near.shutdown(Shutdown::Both);
            let _ = far.shutdown(Shutdown::Both);
        }
    }

    /// Holds everything still, as a network that drops packets does: no end hears of it.
    pub fn hold(&self, still: bool) {
        self.state.still.store(still, Ordering::Relaxed);
    }

    /// Refuses new connections, or takes them again.
    pub fn refuse(&self, closed: bool) {
        self.state.closed.store(closed, Ordering::Relaxed);
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Vec<(TcpStream, TcpStream)>> {
        self.state.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Moves bytes one way until either side ends or the wire is cut.
fn pump(mut from: &TcpStream, mut to: &TcpStream, state: &State, moved: &AtomicU64) {
    from.set_read_timeout(Some(TICK)).unwrap();
    let mut bytes = vec![0; 16 * 1024];
    loop {
        state.wait_while_still();
        let length = match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(_) => break,
        };
        // What was read while the order came waits as well.
        state.wait_while_still();
        let allowed = allowed(state, length);
        moved.fetch_add(allowed as u64, Ordering::Relaxed);
        if to.write_all(&bytes[..allowed]).is_err() {
            break;
        }
        if allowed < length {
            if !state.holds.load(Ordering::Relaxed) {
                break;
            }
            state.still.store(true, Ordering::Relaxed);
            state.wait_while_still();
            moved.fetch_add((length - allowed) as u64, Ordering::Relaxed);
            if to.write_all(&bytes[allowed..length]).is_err() {
                break;
            }
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// How many of so many bytes may pass. The first that may not takes the limit away again: later connections are whole.
fn allowed(state: &State, length: usize) -> usize {
    let wanted = i64::try_from(length).unwrap_or(i64::MAX);
    let taken = state.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| match left {
        ..0 => None,
        left if left >= wanted => Some(left - wanted),
        _ => Some(-1),
    });
    match taken {
        Ok(left) if left < wanted => usize::try_from(left).unwrap_or(0),
        _ => length,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Request, Upstream, get, request};

    #[test]
    fn it_forwards_counts_and_cuts() {
        let upstream = Upstream::start();
        let relay = Relay::start(upstream.port);
        assert_eq!(get(relay.port, "/x").status, 200);
        let (up, down) = relay.bytes();
        assert!(up > 20 && down > 50, "{up} {down}");
        let asked = Request { method: "GET", path: "/x", ..Request::default() };
        relay.cut_after(10);
        assert!(request(relay.port, &asked).is_err());
        assert!(relay.is_cut());
        assert_eq!(get(relay.port, "/x").status, 200, "later connections are whole");
        relay.refuse(true);
        assert!(request(relay.port, &asked).is_err());
        assert_eq!(relay.connections(), 4);
    }

    #[test]
    fn a_wire_that_is_held_goes_on_where_it_was() {
        let upstream = Upstream::start();
        let relay = Relay::start(upstream.port);
        relay.hold_after(10);
        let port = relay.port;
        let client = thread::spawn(move || get(port, "/x").status);
        crate::wait_until("the wire to be held", || relay.is_held());
        assert_eq!((relay.bytes(), upstream.requests()), ((10, 0), 0));
        relay.hold(false);
        assert_eq!(client.join().unwrap(), 200);
    }
}

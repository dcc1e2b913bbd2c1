//! Test support for whole-system tests: real processes, real ports, a plain HTTP client, an upstream that echoes.
//!
//! Everything here panics with the reason when it cannot do its work: it is used by tests only.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "test support fails by panicking")]

mod fleet;
pub mod fuzz;
mod http;
mod node;
mod random;
mod relay;
mod upstream;

pub use fleet::{Fleet, Protocol};
pub use http::{Answer, Request, delete, get, patch, post, put, read_answer, request};
pub use node::{Cluster, Node, NodeOptions, free_ports};
pub use random::Random;
pub use relay::Relay;
pub use upstream::Upstream;

use std::time::{Duration, Instant};

/// Time a condition has to come true.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Waits until the probe gives a value; panics with `what` after [`LIMIT`].
pub fn wait_for<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + LIMIT;
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(Instant::now() < until, "waited {} s for {what}", LIMIT.as_secs());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until the condition holds; panics with `what` after [`LIMIT`].
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

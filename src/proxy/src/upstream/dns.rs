//! Names of upstream hosts to addresses, with a small cache per worker.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// How long an answer that has run out is still used while the resolver does not answer.
const STALE: Duration = Duration::from_secs(3600);
/// Names kept before those that ran out are dropped.
const SWEEP_AT: usize = 1024;

struct Answer {
    addresses: Vec<IpAddr>,
    until: Instant,
    turn: usize,
}

/// Cache over the system's resolver (`/etc/hosts` included).
pub(crate) struct Resolver {
    ttl: Duration,
    answers: RefCell<HashMap<Box<str>, Answer>>,
}

impl Resolver {
    pub(crate) fn new(ttl: Duration) -> Resolver {
        Resolver { ttl, answers: RefCell::default() }
    }

    /// An address of the host, the next one each time; None when the name cannot be resolved.
    pub(crate) async fn resolve(&self, host: &str) -> Option<IpAddr> {
        if let Ok(address) = host.parse() {
            return Some(address);
        }
        if let Some(address) = self.cached(host, Duration::ZERO) {
            return Some(address);
        }
        match tokio::net::lookup_host((host, 0)).await {
            Ok(found) => self.keep(host, found.map(|address| address.ip()).collect()),
            Err(error) => {
                tracing::warn!(host, %error, "name resolution failed");
            }
        }
        self.cached(host, STALE)
    }

    fn cached(&self, host: &str, stale: Duration) -> Option<IpAddr> {
        let mut answers = self.answers.borrow_mut();
        let answer = answers.get_mut(host).filter(|answer| answer.until + stale > Instant::now())?;
        answer.turn = answer.turn.wrapping_add(1);
        answer.addresses.get(answer.turn % answer.addresses.len().max(1)).copied()
    }

    /// IPv4 where there is some, as Kong's resolver asks for A records first.
    fn keep(&self, host: &str, mut addresses: Vec<IpAddr>) {
        if addresses.iter().any(IpAddr::is_ipv4) {
            addresses.retain(IpAddr::is_ipv4);
        }
        addresses.dedup();
        let now = Instant::now();
        let mut answers = self.answers.borrow_mut();
        if answers.len() >= SWEEP_AT {
            answers.retain(|_, answer| answer.until > now);
        }
        answers.insert(host.into(), Answer { addresses, until: now + self.ttl, turn: 0 });
    }
}

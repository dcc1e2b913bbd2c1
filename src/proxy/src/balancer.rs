//! Choosing a target of an upstream.
//!
//! A [`Balancer`] is the upstream in one configuration: its addresses ([`Members`]) and who of them may be chosen
//! ([`Ring`]). What is known of an address ([`peer::PeerState`]) is handed on from one configuration to the next. All workers
//! share a balancer; a request reads it without a lock. When the health of an address turns, a counter (`turns`) moves
//! and the next request makes a new ring.

mod checks;
mod continuum;
mod health;
mod latency;
mod limits;
mod members;
mod peer;
mod ring;
mod sources;
mod wheel;

pub(crate) use checks::{Active, Checks, Kind};
pub(crate) use health::Fault;
pub use limits::BalancerOptions;
pub(crate) use members::{Members, names_of};
pub(crate) use peer::{Lease, Peer, split_target};
pub(crate) use sources::{Key, Sources, set_cookie};

use crate::upstream::dns::Found;
use arc_swap::{ArcSwap, Guard};
use gwctl_entities::view::{Target, Upstream};
use http::HeaderValue;
use ring::Ring;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// `algorithm` of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    RoundRobin,
    LeastConnections,
    ConsistentHashing,
    Latency,
}

/// What all configurations of an upstream share.
#[derive(Debug, Default)]
struct Shared {
    /// Turns of round-robin.
    counter: AtomicU64,
    /// Moves whenever a ring may have to look different.
    turns: AtomicU64,
}

/// How an attempt at an address went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It answered with this status.
    Status(u16),
    Failed(Fault),
    /// It is there, without a status.
    Fine,
    /// Not its fault.
    Unknown,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Balancer {
    pub(crate) upstream: Arc<Upstream>,
    /// `Host` to send instead of the target's.
    pub(crate) host_header: Option<String>,
    pub(crate) rows: Vec<Arc<Target>>,
    pub(crate) algorithm: Algorithm,
    pub(crate) checks: Checks,
    sources: Sources,
    shared: Arc<Shared>,
    members: ArcSwap<Members>,
    ring: ArcSwap<Ring>,
}

impl Balancer {
    /// Makes the balancer of an upstream with its targets, ascending by id. `previous` is the one it takes the place of:
    /// what that one knows of addresses that stay is carried over.
    pub(crate) fn new(upstream: Arc<Upstream>, rows: Vec<Arc<Target>>, previous: Option<&Balancer>) -> Balancer {
        let algorithm = match upstream.algorithm.as_deref() {
            Some("least-connections") => Algorithm::LeastConnections,
            Some("consistent-hashing") => Algorithm::ConsistentHashing,
            Some("latency") => Algorithm::Latency,
            _ => Algorithm::RoundRobin,
        };
        let before = previous.map(|old| old.members.load_full());
        let mut names = before.as_ref().map(|before| before.names.clone()).unwrap_or_default();
        names.retain(|name, _| names_of(&rows).any(|other| other == &**name));
        let members = Arc::new(Members::new(&upstream, &rows, algorithm, before.as_deref(), names));
        let checks = Checks::read(&upstream.healthchecks);
        if !checks.are_on() {
            // What was found while checks were on says nothing when they are turned on again.
            members.peers.iter().for_each(|peer| _ = peer.state.health.force(true));
        }
        let shared = previous.map(|old| old.shared.clone()).unwrap_or_default();
        let ring = Ring::new(members.clone(), &checks, shared.turns.load(Ordering::Acquire));
        Balancer {
            host_header: upstream.host_header.clone(),
            sources: Sources::read(&upstream),
            upstream,
            rows,
            algorithm,
            checks,
            shared,
            members: ArcSwap::new(members),
            ring: ArcSwap::from_pointee(ring),
        }
    }

    /// What a request is hashed to; `new_value` makes the value of a cookie.
    pub(crate) fn key(&self, context: &gwctl_plugins::Context, new_value: impl FnOnce() -> String) -> Key {
        match self.algorithm {
            Algorithm::ConsistentHashing => self.sources.key(context, new_value),
            _ => Key::default(),
        }
    }

    /// What a connection without requests is hashed to: the client's address or nothing.
    pub(crate) fn stream_hash(&self, client: IpAddr) -> Option<u32> {
        (self.algorithm == Algorithm::ConsistentHashing).then(|| self.sources.stream_hash(client)).flatten()
    }

    /// Whether it hashes groups of the route's path.
    pub(crate) fn needs_captures(&self) -> bool {
        self.algorithm == Algorithm::ConsistentHashing && self.sources.need_captures()
    }

    /// The next address, none of those tried unless all have been; None when there is none to be used.
    #[cfg(test)]
    pub(crate) fn choose(&self, hash: Option<u32>, tried: &[Arc<Peer>]) -> Option<Arc<Peer>> {
        self.next(hash, tried, 0.0)
    }

    fn next(&self, hash: Option<u32>, tried: &[Arc<Peer>], slow_start: f64) -> Option<Arc<Peer>> {
        self.ring().choose(self.algorithm, &self.shared.counter, hash, tried, slow_start).cloned()
    }

    /// The same with the limits of the node, and the request counted there where that matters.
    pub(crate) fn take(
        &self,
        hash: Option<u32>,
        tried: &[Arc<Peer>],
        options: &BalancerOptions,
    ) -> Option<(Arc<Peer>, Option<Lease>)> {
        let slow_start = options.slow_start.as_secs_f64();
        if options.max_connections_per_target == 0 {
            let peer = self.next(hash, tried, slow_start)?;
            let lease = (self.algorithm == Algorithm::LeastConnections).then(|| peer.state.lease());
            return Some((peer, lease));
        }
        let limit = options.max_connections_per_target;
        let mut passed = tried.to_vec();
        loop {
            let peer = self.next(hash, &passed, slow_start)?;
            let is_peer = |other: &Arc<Peer>| Arc::ptr_eq(&other.state, &peer.state);
            if passed[tried.len()..].iter().any(is_peer) {
                break;
            }
            if let Some(lease) = peer.state.lease_below(limit) {
                return Some((peer, Some(lease)));
            }
            passed.push(peer);
            // Those tried before may be tried again once all others are full.
            if passed.len() > tried.len() + self.members.load().peers.len() {
                break;
            }
        }
        let full = &passed[tried.len()..];
        let free = tried.iter().filter(|peer| !full.iter().any(|full| Arc::ptr_eq(&full.state, &peer.state)));
        let again = free.filter(|peer| self.may_be_tried(peer));
        let found = again.filter_map(|peer| Some((peer.clone(), Some(peer.state.lease_below(limit)?)))).next();
        if found.is_none() {
            tracing::debug!(upstream = self.upstream.name, limit, "every target has as many requests as it may have");
        }
        found
    }

    fn may_be_tried(&self, peer: &Peer) -> bool {
        peer.weight > 0 && (!self.checks.are_on() || peer.state.health.is_healthy()) && self.has(peer)
    }

    /// Takes in how an attempt went and how long it took.
    pub(crate) fn observe(&self, peer: &Peer, outcome: Outcome, took: impl FnOnce() -> Duration) {
        // A refused connection is quick and says nothing of the time an answer takes.
        let timed = matches!(outcome, Outcome::Status(_) | Outcome::Failed(Fault::Timeout));
        if timed && self.algorithm == Algorithm::Latency {
            peer.state.latency.observe(took(), latency::clock());
        }
        if self.checks.are_on() {
            // To Kong an answer that says so is a timeout, whoever timed out.
            let timed_out = outcome == Outcome::Status(504);
            let outcome = if timed_out { Outcome::Failed(Fault::Timeout) } else { outcome };
            self.judge(peer, outcome, &self.checks.passive);
        }
    }

    /// Counts a result for or against an address by the rules of a check.
    pub(crate) fn judge(&self, peer: &Peer, outcome: Outcome, rules: &checks::Rules) {
        let health = &peer.state.health;
        let turned = match outcome {
            Outcome::Unknown => false,
            Outcome::Fine => !health.is_clean() && health.succeed(rules.successes),
            Outcome::Failed(Fault::Timeout) => health.fail(Fault::Timeout, rules.timeouts),
            Outcome::Failed(Fault::Tcp) => health.fail(Fault::Tcp, rules.tcp_failures),
            Outcome::Failed(Fault::Http) => health.fail(Fault::Http, rules.http_failures),
            Outcome::Status(status) if rules.healthy.contains(status) => {
                !health.is_clean() && health.succeed(rules.successes)
            }
            Outcome::Status(status) if rules.unhealthy.contains(status) => {
                health.fail(Fault::Http, rules.http_failures)
            }
            Outcome::Status(_) => false,
        };
        if turned {
            self.turned(peer);
        }
    }

    /// Sets the health of an address by hand.
    pub(crate) fn force(&self, peer: &Peer, healthy: bool) {
        if peer.state.health.force(healthy) {
            self.turned(peer);
        }
    }

    /// Whether it still has the address.
    pub(crate) fn has(&self, peer: &Peer) -> bool {
        self.members.load().peers.iter().any(|other| Arc::ptr_eq(&other.state, &peer.state))
    }

    fn turned(&self, peer: &Peer) {
        if peer.state.health.is_healthy() {
            peer.state.begin();
        }
        self.shared.turns.fetch_add(1, Ordering::Release);
        let (upstream, host, port, address) = (&self.upstream.name, &*peer.host, peer.port, peer.address);
        if peer.state.health.is_healthy() {
            tracing::info!(upstream, host, port, ?address, "target is healthy again");
        } else {
            tracing::warn!(upstream, host, port, ?address, "target is unhealthy");
        }
    }

    /// The host names among its targets.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        names_of(&self.rows)
    }

    /// Takes in what its names stand for; `find` gives None where nothing is known yet.
    pub(crate) fn learn(&self, find: impl Fn(&str) -> Option<Found>) {
        let old = self.members.load_full();
        let mut names = old.names.clone();
        for name in self.names() {
            let Some(found) = find(name) else { continue };
            if names.get(name) != Some(&found) {
                names.insert(name.into(), found);
            }
        }
        if names == old.names {
            return;
        }
        let members = Members::new(&self.upstream, &self.rows, self.algorithm, Some(&old), names);
        self.members.store(Arc::new(members));
        self.shared.turns.fetch_add(1, Ordering::Release);
    }

    /// The addresses now.
    pub(crate) fn members(&self) -> Arc<Members> {
        self.members.load_full()
    }

    /// Whether so much of the weight is healthy that the upstream is served.
    pub(crate) fn is_healthy(&self) -> bool {
        self.ring().healthy
    }

    fn ring(&self) -> Guard<Arc<Ring>> {
        let ring = self.ring.load();
        let turns = self.shared.turns.load(Ordering::Acquire);
        if ring.turns == turns {
            return ring;
        }
        let fresh = Ring::new(self.members.load_full(), &self.checks, turns);
        if fresh.healthy != ring.healthy {
            let state = if fresh.healthy { "healthy" } else { "unhealthy" };
            tracing::warn!(upstream = self.upstream.name, "upstream as a whole is {state}");
        }
        self.ring.store(Arc::new(fresh));
        self.ring.load()
    }
}

/// `Host` for a peer: without the port when it is the default of the scheme.
pub(crate) fn host_value(host: &str, port: u16, default_port: u16) -> Option<HeaderValue> {
    let bare = host.contains(':') && !host.starts_with('[');
    let mut text = String::with_capacity(host.len() + "[]:65535".len());
    if bare {
        text.push('[');
    }
    text.push_str(host);
    if bare {
        text.push(']');
    }
    if port != default_port {
        text.push(':');
        let mut unit = [10_000, 1000, 100, 10, 1].into_iter().find(|unit| port >= *unit).unwrap_or(1);
        while unit > 0 {
            // One digit: the cast is exact.
            text.push(char::from(b'0' + (port / unit % 10) as u8));
            unit /= 10;
        }
    }
    HeaderValue::try_from(text).ok()
}

#[cfg(test)]
mod tests;

//! Choosing a target of an upstream.

use gwctl_entities::view::{Target, Upstream};
use http::HeaderValue;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An address to try: a host name or IP literal, and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) host: Arc<str>,
    pub(crate) port: u16,
}

/// An upstream with its targets; weighted round-robin, shared by all workers.
///
/// Targets lie on a ring as long as the sum of their weights. A shared counter walks it in steps near the golden
/// section of its length and coprime to it: any sum-of-weights consecutive requests meet the weights exactly, heavy
/// targets are spread evenly in between, and memory does not depend on the weights.
#[derive(Debug)]
pub(crate) struct Balancer {
    /// `Host` to send instead of the target's.
    pub(crate) host_header: Option<String>,
    peers: Vec<Peer>,
    /// End of each peer's part of the ring.
    ends: Vec<u64>,
    step: u64,
    turn: AtomicU64,
}

impl Balancer {
    /// Makes the balancer of an upstream with its targets, ascending by id. `previous` is the one it takes the place of:
    /// what that one remembers of targets that stay is carried over.
    pub(crate) fn new(upstream: Arc<Upstream>, rows: Vec<Arc<Target>>, previous: Option<&Balancer>) -> Balancer {
        let mut peers = Vec::new();
        let mut ends = Vec::new();
        let mut length = 0;
        for row in rows.iter().filter(|row| row.weight > 0) {
            length += u64::from(row.weight);
            peers.push(split_target(&row.target));
            ends.push(length);
        }
        let algorithm = upstream.algorithm.as_deref().unwrap_or("round-robin");
        if algorithm != "round-robin" {
            tracing::warn!(upstream = upstream.name, algorithm, "algorithm not supported yet, round-robin is used");
        }
        let host_header = upstream.host_header.clone();
        let turn = previous.map_or(0, |previous| previous.turn.load(Ordering::Relaxed));
        Balancer { host_header, peers, ends, step: golden_step(length), turn: AtomicU64::new(turn) }
    }

    /// The next target; None when there is none with a weight.
    pub(crate) fn next(&self) -> Option<&Peer> {
        let length = *self.ends.last()?;
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % length;
        let place = (u128::from(turn) * u128::from(self.step) % u128::from(length)) as u64;
        self.peers.get(self.ends.partition_point(|end| *end <= place))
    }

    /// The next target that is none of those tried, or any when all have been.
    pub(crate) fn next_but(&self, tried: &[Peer]) -> Option<&Peer> {
        let next = self.next()?;
        if !tried.contains(next) {
            return Some(next);
        }
        Some(self.peers.iter().find(|peer| !tried.contains(peer)).unwrap_or(next))
    }
}

/// `host:port` or `[v6]:port`; a missing port is 8000, as the schema fills it.
fn split_target(target: &str) -> Peer {
    let (host, port) = match target.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?))) {
        Some((host, port)) => (host, port),
        None => (target, 8000),
    };
    Peer { host: host.trim_start_matches('[').trim_end_matches(']').into(), port }
}

fn golden_step(length: u64) -> u64 {
    let near = (length as f64 * 0.618_033_988_749_895) as u64;
    (near.max(1)..=length.max(1)).find(|step| gcd(*step, length) == 1).unwrap_or(1)
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// `Host` for a peer: without the port when it is the default of the scheme.
pub(crate) fn host_value(host: &str, port: u16, default_port: u16) -> Option<HeaderValue> {
    let bare = host.contains(':') && !host.starts_with('[');
    let host = if bare { format!("[{host}]") } else { host.to_owned() };
    let text = if port == default_port { host } else { format!("{host}:{port}") };
    HeaderValue::try_from(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn balancer(targets: &[(&str, u32)]) -> Balancer {
        let upstream = serde_json::from_value(json!({"id": "u", "name": "u"})).unwrap();
        let row = |(target, weight): &(&str, u32)| {
            Arc::new(serde_json::from_value(json!({"id": target, "target": target, "weight": weight})).unwrap())
        };
        Balancer::new(Arc::new(upstream), targets.iter().map(row).collect(), None)
    }

    fn turns(balancer: &Balancer, count: usize) -> Vec<u16> {
        (0..count).filter_map(|_| balancer.next().map(|peer| peer.port)).collect()
    }

    #[test]
    fn shares_follow_the_weights_exactly_over_one_round() {
        let balancer = balancer(&[("a:1", 10), ("b:2", 100), ("c:3", 0), ("d:4", 37)]);
        let turns = turns(&balancer, 147);
        let share = |port| turns.iter().filter(|turn| **turn == port).count();
        assert_eq!((share(1), share(2), share(3), share(4)), (10, 100, 0, 37));
    }

    #[test]
    fn equal_targets_take_turns() {
        let balancer = balancer(&[("a:1", 100), ("b:2", 100)]);
        let turns = turns(&balancer, 200);
        let longest = turns.chunk_by(|one, other| one == other).map(<[u16]>::len).max();
        assert!(longest <= Some(2), "one target was asked {longest:?} times in a row");
    }

    #[test]
    fn huge_weights_cost_no_memory() {
        let targets: Vec<String> = (0..200).map(|number| format!("t{number}:1")).collect();
        let targets: Vec<(&str, u32)> = targets.iter().map(|target| (target.as_str(), 65_535)).collect();
        assert_eq!(balancer(&targets).peers.len(), 200);
    }

    #[test]
    fn a_retry_goes_to_another_target() {
        let balancer = balancer(&[("a:1", 1), ("b:2", 1)]);
        for _ in 0..4 {
            let first = balancer.next().unwrap().clone();
            assert_ne!(balancer.next_but(std::slice::from_ref(&first)), Some(&first));
        }
    }

    #[test]
    fn without_weight_there_is_no_target() {
        assert!(balancer(&[]).next().is_none());
        assert!(balancer(&[("a:1", 0)]).next().is_none());
    }

    #[test]
    fn targets_split_at_their_port() {
        assert_eq!(split_target("[::1]:80"), Peer { host: "::1".into(), port: 80 });
        assert_eq!(split_target("a.test:8080"), Peer { host: "a.test".into(), port: 8080 });
        assert_eq!(host_value("::1", 81, 80).unwrap(), "[::1]:81");
        assert_eq!(host_value("a", 80, 80).unwrap(), "a");
    }
}

//! The addresses of an upstream.

use crate::balancer::Algorithm;
use crate::balancer::continuum::{Continuum, Place};
use crate::balancer::latency::clock;
use crate::balancer::peer::{Peer, PeerState, split_target};
use gwctl_entities::view::{Target, Upstream};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Default of `slots`.
const SLOTS: u32 = 10_000;

/// See the module. Immutable; another one takes its place when targets or the answers to their names change.
#[derive(Debug, Default)]
pub(crate) struct Members {
    pub(crate) peers: Vec<Arc<Peer>>,
    /// For consistent hashing, else empty.
    pub(crate) continuum: Continuum,
}

/// What tells addresses of an upstream apart.
type Address<'a> = (&'a str, u16, Option<IpAddr>);

impl Members {
    /// Of the targets; what `before` knows of an address is taken over.
    pub(crate) fn new(
        upstream: &Upstream,
        rows: &[Arc<Target>],
        algorithm: Algorithm,
        before: Option<&Members>,
    ) -> Members {
        let old = before.map(|before| before.peers.as_slice()).unwrap_or_default();
        let known: HashMap<Address<'_>, &Arc<Peer>> =
            old.iter().map(|peer| ((&*peer.host, peer.port, peer.address), peer)).collect();
        let usual = average(old);
        let peer = |(row, target): (usize, &Arc<Target>)| {
            let (host, port) = split_target(&target.target);
            let address = host.parse().ok();
            let old = known.get(&(host, port, address));
            Arc::new(Peer {
                host: old.map_or_else(|| host.into(), |old| old.host.clone()),
                port,
                address,
                weight: target.weight,
                row,
                state: old.map_or_else(|| newcomer(usual), |old| old.state.clone()),
            })
        };
        let peers: Vec<_> = rows.iter().enumerate().map(peer).collect();
        let continuum = match algorithm {
            Algorithm::ConsistentHashing => continuum(upstream, rows, &peers),
            _ => Continuum::default(),
        };
        Members { peers, continuum }
    }
}

/// The mean of the averages known.
fn average(peers: &[Arc<Peer>]) -> Option<f64> {
    let sum: f64 = peers.iter().map(|peer| peer.state.latency.average()).sum();
    (!peers.is_empty() && sum > 0.0).then(|| sum / peers.len() as f64)
}

/// What is supposed of an address that nothing is known of: it is as quick as the others, or else all requests would
/// go to it at once.
fn newcomer(usual: Option<f64>) -> Arc<PeerState> {
    let state = PeerState::default();
    if let Some(usual) = usual {
        state.latency.set(usual, clock());
    }
    Arc::new(state)
}

fn continuum(upstream: &Upstream, rows: &[Arc<Target>], peers: &[Arc<Peer>]) -> Continuum {
    let place = |(member, peer): (usize, &Arc<Peer>)| {
        let ip = match peer.address {
            Some(address) if address.to_string() != *peer.host && !peer.host.contains(':') => address.to_string(),
            _ => peer.host.to_string(),
        };
        let ip = if ip.contains(':') { format!("[{ip}]") } else { ip };
        let order = (split_target(&rows[peer.row].target).0, peer.port, format!("{ip}:{}", peer.port));
        Place { order, ip, port: peer.port, weight: peer.weight, member }
    };
    let places = peers.iter().enumerate().map(place).collect();
    Continuum::new(upstream.slots.unwrap_or(SLOTS), rows.len(), places)
}

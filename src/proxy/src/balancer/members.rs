//! The addresses of an upstream.

use crate::balancer::Algorithm;
use crate::balancer::continuum::{Continuum, Place};
use crate::balancer::latency::clock;
use crate::balancer::peer::{HostValues, Peer, PeerState, split_target};
use crate::upstream::dns::{Endpoint, Found};
use gwctl_entities::view::{Target, Upstream};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Default of `slots`.
const SLOTS: u32 = 10_000;

/// What names stand for. A name that is not here is resolved for each request.
pub(crate) type Names = HashMap<Arc<str>, Found>;

/// See the module. Immutable; another one takes its place when targets or the answers to their names change.
#[derive(Debug, Default)]
pub(crate) struct Members {
    pub(crate) peers: Vec<Arc<Peer>>,
    pub(crate) names: Names,
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
        names: Names,
    ) -> Members {
        let old = before.map(|before| before.peers.as_slice()).unwrap_or_default();
        let known: HashMap<Address<'_>, &Arc<Peer>> =
            old.iter().map(|peer| ((&*peer.host, peer.port, peer.address), peer)).collect();
        let usual = average(old);
        let mut peers = Vec::new();
        for (row, target) in rows.iter().enumerate() {
            for seat in seats(upstream, target, &names) {
                let old = known.get(&(seat.host, seat.port, seat.address));
                peers.push(Arc::new(Peer {
                    host: old.map_or_else(|| seat.host.into(), |old| old.host.clone()),
                    port: seat.port,
                    address: seat.address,
                    weight: seat.weight,
                    row,
                    state: old.map_or_else(|| newcomer(usual, !known.is_empty()), |old| old.state.clone()),
                    values: HostValues::default(),
                }));
            }
        }
        let continuum = match algorithm {
            Algorithm::ConsistentHashing => continuum(upstream, rows, &peers),
            _ => Continuum::default(),
        };
        Members { peers, names, continuum }
    }
}

/// One address of a target, before what is known of it is looked up.
struct Seat<'a> {
    host: &'a str,
    port: u16,
    address: Option<IpAddr>,
    weight: u32,
}

/// The addresses of a target: its own, or those of its name. None when the name cannot be resolved.
fn seats<'a>(upstream: &Upstream, target: &'a Target, names: &'a Names) -> Vec<Seat<'a>> {
    let (host, port) = split_target(&target.target);
    let itself = |address| vec![Seat { host, port, address, weight: target.weight }];
    if let Ok(address) = host.parse() {
        return itself(Some(address));
    }
    let answer = match names.get(host) {
        None => return itself(None),
        Some(Ok(answer)) if answer.each_time => return itself(None),
        Some(Err(_)) => return Vec::new(),
        Some(Ok(answer)) => answer,
    };
    let seat = |endpoint: &'a Endpoint| Seat {
        host: endpoint.name.as_deref().filter(|_| upstream.use_srv_name == Some(true)).unwrap_or(host),
        port: endpoint.port.unwrap_or(port),
        address: Some(endpoint.ip),
        weight: endpoint.weight.filter(|_| target.weight > 0).unwrap_or(target.weight),
    };
    answer.endpoints.iter().map(seat).collect()
}

/// The names among the targets.
pub(crate) fn names_of(rows: &[Arc<Target>]) -> impl Iterator<Item = &str> {
    rows.iter().map(|row| split_target(&row.target).0).filter(|host| host.parse::<IpAddr>().is_err())
}

/// The mean of the averages known.
fn average(peers: &[Arc<Peer>]) -> Option<f64> {
    let sum: f64 = peers.iter().map(|peer| peer.state.latency.average()).sum();
    (!peers.is_empty() && sum > 0.0).then(|| sum / peers.len() as f64)
}

/// What is supposed of an address that nothing is known of: it is as quick as the others, or else all requests would
/// go to it at once.
fn newcomer(usual: Option<f64>, beside_others: bool) -> Arc<PeerState> {
    let state = PeerState::default();
    if beside_others {
        state.begin();
    }
    if let Some(usual) = usual {
        state.latency.set(usual, clock());
    }
    Arc::new(state)
}

fn continuum(upstream: &Upstream, rows: &[Arc<Target>], peers: &[Arc<Peer>]) -> Continuum {
    let place = |(member, peer): (usize, &Arc<Peer>)| {
        let ip = peer.literal();
        let order = (split_target(&rows[peer.row].target).0, peer.port, format!("{ip}:{}", peer.port));
        Place { order, ip, port: peer.port, weight: peer.weight, member }
    };
    let places = peers.iter().enumerate().map(place).collect();
    Continuum::new(upstream.slots.unwrap_or(SLOTS), rows.len(), places)
}

//! Active health checks: one thread for the node asks the targets of upstreams how they are.
//!
//! Each upstream has two rounds that come again and again: one over its healthy targets, one over its unhealthy ones. A
//! change of the configuration reaches the rounds without moving them: an upstream that is edited more often than its
//! interval is probed all the same, and a target that was removed is not asked again.

mod grpc;
mod probe;

use crate::balancer::{Active, Balancer, Kind, Outcome, Peer};
use crate::names;
use crate::options::ProxyOptions;
use crate::snapshot::SnapshotHandle;
use crate::upstream::dns::Resolver;
use crate::upstream::dns::hosts::Hosts;
use crate::upstream::tls::{TlsSettings, UpstreamTls};
use crate::worker::Stopping;
use probe::{Probe, probe};
use rustls::sign::CertifiedKey;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, sleep_until};

/// See the module.
pub(crate) struct Prober {
    snapshots: SnapshotHandle,
    options: Arc<ProxyOptions>,
    hosts: Arc<Hosts>,
}

/// The rounds of an upstream; dropping it ends them at once.
struct Rounds {
    balancer: watch::Sender<Arc<Balancer>>,
    _tasks: JoinSet<()>,
}

impl Prober {
    pub(crate) fn new(snapshots: SnapshotHandle, options: Arc<ProxyOptions>, hosts: Arc<Hosts>) -> Prober {
        Prober { snapshots, options, hosts }
    }

    /// Runs until told to stop.
    pub(crate) fn run(self, stopping: Stopping) {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                tracing::error!(%error, "targets are not probed");
                return;
            }
        };
        LocalSet::new().block_on(&runtime, self.follow(stopping));
    }

    /// Keeps the rounds equal to the snapshot in force.
    async fn follow(self, mut stopping: Stopping) {
        let mut swaps = self.snapshots.swaps();
        let resolver = Resolver::new(self.options.clone(), self.hosts.clone());
        let tools =
            Rc::new(Tools { resolver: resolver.clone(), snapshots: self.snapshots.clone(), made: RefCell::default() });
        // Ends with the thread.
        tokio::task::spawn_local(names::keep(self.snapshots.clone(), resolver));
        let mut rounds: HashMap<Arc<str>, Rounds> = HashMap::new();
        loop {
            let snapshot = self.snapshots.load();
            let probed = snapshot.balancers.probed();
            rounds.retain(|upstream, _| probed.contains_key(upstream));
            for (upstream, balancer) in probed {
                match rounds.get(upstream) {
                    Some(rounds) => _ = rounds.balancer.send_if_modified(|old| replace(old, balancer)),
                    None => _ = rounds.insert(upstream.clone(), Rounds::start(balancer, &tools)),
                }
            }
            drop(snapshot);
            tokio::select! {
                biased;
                _ = stopping.wait_for(|stop| *stop) => return,
                swapped = swaps.changed() => if swapped.is_err() {
                    return;
                },
            }
        }
    }
}

fn replace(old: &mut Arc<Balancer>, new: &Arc<Balancer>) -> bool {
    let differs = !Arc::ptr_eq(old, new);
    if differs {
        *old = new.clone();
    }
    differs
}

impl Rounds {
    fn start(balancer: &Arc<Balancer>, tools: &Rc<Tools>) -> Rounds {
        let (sender, receiver) = watch::channel(balancer.clone());
        let mut tasks = JoinSet::new();
        for healthy in [true, false] {
            tasks.spawn_local(go_round(healthy, receiver.clone(), tools.clone()));
        }
        Rounds { balancer: sender, _tasks: tasks }
    }
}

/// The rounds over the targets that are healthy, or over those that are not.
async fn go_round(healthy: bool, mut balancer: watch::Receiver<Arc<Balancer>>, tools: Rc<Tools>) {
    let mut last = None;
    let spread = Instant::now();
    loop {
        let active = &balancer.borrow_and_update().clone().checks.active;
        let interval = if healthy { active.healthy_interval } else { active.unhealthy_interval };
        let Some(interval) = interval else {
            if balancer.changed().await.is_err() {
                return;
            }
            continue;
        };
        let due = match last {
            Some(last) => last + interval,
            // Soon, but not all upstreams at once.
            None => spread + (interval / 10).min(Duration::from_secs(1)).mul_f64(fraction()),
        };
        tokio::select! {
            () = sleep_until(due) => {
                last = Some(Instant::now());
                ask_all(healthy, &balancer, &tools).await;
            }
            changed = balancer.changed() => if changed.is_err() {
                return;
            },
        }
    }
}

/// Between 0 and 1.
fn fraction() -> f64 {
    RandomState::new().hash_one(0) as f64 / u64::MAX as f64
}

/// One round. Each target is asked by the settings that are in force by then.
async fn ask_all(healthy: bool, balancer: &watch::Receiver<Arc<Balancer>>, tools: &Rc<Tools>) {
    let members = balancer.borrow().members();
    let is_due = |peer: &&Arc<Peer>| peer.weight > 0 && peer.state.health.is_healthy() == healthy;
    let mut asked = JoinSet::new();
    for peer in members.peers.iter().filter(is_due) {
        let current = balancer.borrow().clone();
        if !current.has(peer) {
            continue;
        }
        while asked.len() >= current.checks.active.concurrency {
            asked.join_next().await;
        }
        let (peer, balancer, tools) = (peer.clone(), balancer.clone(), tools.clone());
        asked.spawn_local(async move {
            let outcome = tools.ask(&current, &peer).await;
            let latest = balancer.borrow().clone();
            if latest.has(&peer) {
                latest.judge(&peer, outcome, &latest.checks.active.rules);
            }
        });
    }
    while asked.join_next().await.is_some() {}
}

/// Settings of TLS by what is asked of them, with the certificate they present and what the node said then.
type Made = HashMap<(bool, bool, Option<Arc<str>>), (Option<Arc<CertifiedKey>>, Arc<UpstreamTls>, TlsSettings)>;

/// What probes share.
struct Tools {
    snapshots: SnapshotHandle,
    resolver: Rc<Resolver>,
    made: RefCell<Made>,
}

impl Tools {
    async fn ask(&self, balancer: &Balancer, peer: &Peer) -> Outcome {
        let active = &balancer.checks.active;
        let address = match peer.address {
            Some(address) => Some(SocketAddr::new(address, peer.port)),
            None => self.resolver.resolve(&peer.host, peer.port).await,
        };
        let Some(address) = address else { return Outcome::Unknown };
        let tls = match active.kind {
            Kind::Https | Kind::Grpcs => match self.tls(active, balancer.upstream.client_certificate.as_ref()) {
                Some(tls) => Some(tls),
                None => return Outcome::Unknown,
            },
            _ => None,
        };
        let asked =
            Probe { active, address, host: balancer.host_header.as_deref().unwrap_or(&peer.host), tls: tls.as_ref() };
        let outcome = probe(&asked).await;
        tracing::debug!(upstream = balancer.upstream.name, target = %asked.address, ?outcome, "target probed");
        outcome
    }

    fn tls(&self, active: &Active, certificate: Option<&Arc<str>>) -> Option<TlsSettings> {
        let snapshot = self.snapshots.load();
        let pairs = certificate.and_then(|id| snapshot.certificates.pairs(id));
        let own = pairs.and_then(|pairs| pairs.first()).cloned();
        let key = (active.verify, active.kind == Kind::Grpcs, certificate.cloned());
        let mut made = self.made.borrow_mut();
        let node = &snapshot.upstream_tls;
        if let Some((presented, trusted, tls)) = made.get(&key)
            && presented.as_ref().map(Arc::as_ptr) == own.as_ref().map(Arc::as_ptr)
            && Arc::ptr_eq(trusted, node)
        {
            return Some(tls.clone());
        }
        let protocols: &[&[u8]] = if active.kind == Kind::Grpcs { &[b"h2"] } else { &[] };
        match TlsSettings::for_probes(active.verify.then_some(&**node), own.clone(), protocols) {
            Ok(tls) => {
                made.insert(key, (own, node.clone(), tls.clone()));
                Some(tls)
            }
            Err(error) => {
                tracing::error!(%error, "targets cannot be probed over tls");
                None
            }
        }
    }
}

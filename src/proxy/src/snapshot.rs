//! One configuration as the request path reads it. Immutable; a request uses one from start to end.
//!
//! All parts are persistent: a snapshot that follows on another shares with it whatever the change between them does not
//! touch, so that a change costs what it changes, not what the configuration holds.

use crate::balancers::Balancers;
use crate::certificates::Certificates;
use crate::plans::{Materials, Plans};
use crate::tables::{Link, Problem, Tables, changes};
use crate::unrun::log_unrun;
use crate::upstream::tls::UpstreamTls;
use arc_swap::ArcSwap;
use gwctl_entities::view::{Plugin, Route, Service};
use gwctl_plugins::{Builder, Chains, Exported, Node, PluginHost};
use gwctl_router::{Change, Flavor, RouteEntry, Router};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::watch;

/// What a snapshot is built with besides the rows.
pub struct SnapshotOptions {
    /// `router_flavor`.
    pub flavor: Flavor,
    /// What builds plugins, asked in order.
    pub hosts: Vec<Arc<dyn PluginHost>>,
    /// What plugins share between requests.
    pub node: Arc<Node>,
    /// What the node says of TLS towards upstreams. Another object makes the next snapshot take it over everywhere.
    pub upstream_tls: Arc<UpstreamTls>,
}

/// See the module.
pub struct Snapshot {
    tables: Tables,
    pub(crate) router: Router,
    pub(crate) chains: Chains,
    pub(crate) plans: Plans,
    pub(crate) balancers: Balancers,
    pub(crate) certificates: Certificates,
    pub(crate) upstream_tls: Arc<UpstreamTls>,
    pub(crate) node: Arc<Node>,
}

impl Snapshot {
    /// A snapshot without routes.
    pub fn empty(node: Arc<Node>) -> Snapshot {
        Snapshot::empty_of(Flavor::default(), node)
    }

    fn empty_of(flavor: Flavor, node: Arc<Node>) -> Snapshot {
        let (tables, chains, plans, balancers, certificates, upstream_tls) = Default::default();
        Snapshot { tables, router: Router::empty(flavor), chains, plans, balancers, certificates, upstream_tls, node }
    }

    /// The rows it was built from. Change a copy of them row by row and build the next snapshot from it.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// What the node said of TLS towards upstreams when it was built.
    pub fn upstream_tls(&self) -> &Arc<UpstreamTls> {
        &self.upstream_tls
    }

    /// What plugins share between requests.
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// What became of what plugins send to other servers.
    pub fn exported(&self) -> Exported {
        self.node.exports.exported()
    }

    /// Builds the snapshot that follows on `previous`. Only the parts whose rows say something else are made anew;
    /// compiled routes, plugin objects, balancers with their state and read certificates of all others are shared.
    ///
    /// Costs the rows that `tables` does not share with those of `previous`: for a copy with some rows changed the
    /// changed rows, for tables that were read anew all of them, of which most then turn out to say the same.
    ///
    /// # Errors
    /// Everything wrong with the configuration. It is refused as a whole; the snapshot in force stays.
    pub fn build(
        tables: &Tables,
        options: &SnapshotOptions,
        previous: Option<&Snapshot>,
    ) -> Result<Snapshot, Vec<Problem>> {
        match previous {
            Some(previous) if previous.router.flavor() == options.flavor => previous.follow(tables, options),
            _ => Snapshot::empty_of(options.flavor, options.node.clone()).follow(tables, options),
        }
    }

    fn follow(&self, tables: &Tables, options: &SnapshotOptions) -> Result<Snapshot, Vec<Problem>> {
        let old = &self.tables;
        let tables = tables.clone().settled(old);
        let mut problems = Vec::new();
        let certificates = self.certificates.changed(old, &tables);
        let balancers = self.balancers.changed(old, &tables);
        let materials = Materials { certificates: &certificates, balancers: &balancers, node: &options.upstream_tls };
        let plans = if Arc::ptr_eq(&self.upstream_tls, &options.upstream_tls) {
            self.plans.changed(old, &tables, &materials, &mut problems)
        } else {
            // Any plan may hold something of it.
            Plans::default().changed(&Tables::default(), &tables, &materials, &mut problems)
        };
        let (router, faults) = self.router.change(route_changes(old, &tables, &mut problems));
        problems.extend(faults.into_iter().map(|fault| Problem::new("routes", &*fault.id.clone(), fault)));
        let chains = self.chains_of(&tables, options).unwrap_or_else(|faults| {
            problems.extend(faults);
            Chains::default()
        });
        if !problems.is_empty() {
            return Err(problems);
        }
        if router.stream_len() > 0 {
            log_unrun(old, &tables);
        }
        let (upstream_tls, node) = (options.upstream_tls.clone(), options.node.clone());
        Ok(Snapshot { tables, router, chains, plans, balancers, certificates, upstream_tls, node })
    }

    fn chains_of(&self, tables: &Tables, options: &SnapshotOptions) -> Result<Chains, Vec<Problem>> {
        let service_of = |route: &str| tables.routes.get(route).map(|route| route.service.clone());
        let builder = Builder { hosts: &options.hosts, node: &options.node, service_of: &service_of };
        let rows = changes::<Plugin>(&self.tables, tables);
        let rows = rows.into_iter().map(|change| (change.id, change.new));
        let routes = changes::<Route>(&self.tables, tables).into_iter().map(|change| change.id);
        let chains = self.chains.change(rows, routes, &builder);
        chains.map_err(|faults| {
            faults.into_iter().map(|fault| Problem::new("plugins", fault.id.clone(), fault)).collect()
        })
    }

    /// Whether the upstream of this name, if there is one, hashes groups of the route's path.
    pub(crate) fn hashes_captures(&self, host: &str) -> bool {
        self.balancers.hash_captures() && self.balancers.get(host).is_some_and(|balancer| balancer.needs_captures())
    }
}

/// What a change of the tables is to the router.
fn route_changes(old: &Tables, new: &Tables, problems: &mut Vec<Problem>) -> Vec<Change> {
    let mut found = Vec::new();
    let mut touched = BTreeSet::new();
    for change in changes::<Route>(old, new) {
        found.extend(match change.new {
            Some(route) => route_change(&route, new, problems),
            None => Some(Change::Remove(change.id.clone())),
        });
        touched.insert(change.id);
    }
    for change in changes::<Service>(old, new) {
        let is_on = |service: Option<&Arc<Service>>| service.is_some_and(|service| service.enabled);
        // Routes of a service that is turned off are as if they were not there; without a service they are wrong.
        if change.new.is_none() || is_on(change.old.as_ref()) != is_on(change.new.as_ref()) {
            let untouched = new.linked(Link::RouteOfService, &change.id).filter(|id| !touched.contains(*id));
            for route in untouched.filter_map(|id| new.routes.get(id)) {
                found.extend(route_change(route, new, problems));
            }
        }
        found.push(match change.new {
            Some(service) => Change::PutService(service),
            None => Change::RemoveService(change.id),
        });
    }
    found
}

fn route_change(route: &Arc<Route>, tables: &Tables, problems: &mut Vec<Problem>) -> Option<Change> {
    let service = match &route.service {
        None => None,
        Some(id) => match tables.services.get(id) {
            Some(service) if !service.enabled => return Some(Change::Remove(route.id.clone())),
            Some(service) => Some(service.clone()),
            None => {
                problems.push(Problem::new("routes", &*route.id, format!("there is no service {id}")));
                return None;
            }
        },
    };
    Some(Change::Put(RouteEntry { route: route.clone(), service }))
}

/// The snapshot in force, swapped by its owner; clones share it. Requests in flight keep the one they began with.
#[derive(Clone)]
pub struct SnapshotHandle(Arc<Held>);

struct Held {
    snapshot: ArcSwap<Snapshot>,
    swapped: watch::Sender<()>,
}

impl SnapshotHandle {
    /// Starts with a snapshot.
    pub fn new(snapshot: Snapshot) -> SnapshotHandle {
        SnapshotHandle(Arc::new(Held { snapshot: ArcSwap::from_pointee(snapshot), swapped: watch::Sender::new(()) }))
    }

    /// Puts another snapshot in force: every request that begins afterwards sees it.
    pub fn swap(&self, snapshot: Arc<Snapshot>) {
        self.0.snapshot.store(snapshot);
        self.0.swapped.send_replace(());
    }

    /// The snapshot in force.
    pub fn load(&self) -> Arc<Snapshot> {
        self.0.snapshot.load_full()
    }

    /// Tells of each swap.
    pub(crate) fn swaps(&self) -> watch::Receiver<()> {
        self.0.swapped.subscribe()
    }
}

#[cfg(test)]
mod tests;

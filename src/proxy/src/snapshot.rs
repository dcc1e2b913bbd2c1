//! One configuration as the request path reads it. Immutable; a request uses one from start to end.

use crate::balancers::Balancers;
use crate::certificates::Certificates;
use crate::tables::{Problem, Tables};
use crate::upstream::tls::{TlsSettings, TlsWish};
use arc_swap::ArcSwap;
use gwctl_entities::view::{Route, Service};
use gwctl_plugins::{Chain, Chains, Node, PluginHost, Scheme};
use gwctl_router::{Flavor, RouteEntry, Router};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// What a snapshot is built with besides the rows.
pub struct SnapshotOptions {
    /// `router_flavor`.
    pub flavor: Flavor,
    /// What builds plugins, asked in order.
    pub hosts: Vec<Arc<dyn PluginHost>>,
    /// What plugins share between requests.
    pub node: Arc<Node>,
}

/// What is known of a route before any request.
pub(crate) struct Plan {
    pub(crate) chain: Arc<Chain>,
    pub(crate) scheme: Scheme,
    pub(crate) host: Arc<str>,
    pub(crate) connect_timeout: Duration,
    pub(crate) write_timeout: Duration,
    pub(crate) read_timeout: Duration,
    /// For services over TLS.
    pub(crate) tls: Option<Arc<TlsSettings>>,
}

/// See the module.
pub struct Snapshot {
    tables: Tables,
    pub(crate) router: Router,
    pub(crate) chains: Chains,
    pub(crate) plans: HashMap<Arc<str>, Plan>,
    pub(crate) balancers: Balancers,
    pub(crate) certificates: Certificates,
    pub(crate) node: Arc<Node>,
}

impl Snapshot {
    /// A snapshot without routes.
    pub fn empty(node: Arc<Node>) -> Snapshot {
        let (tables, router, chains, plans, balancers, certificates) = Default::default();
        Snapshot { tables, router, chains, plans, balancers, certificates, node }
    }

    /// The rows it was built from. Change a copy of them row by row and build the next snapshot from it.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Builds a snapshot; parts of `previous` that did not change are taken over (compiled routes, plugin objects,
    /// the state of balancers).
    ///
    /// # Errors
    /// Everything wrong with the configuration. It is refused as a whole; the snapshot in force stays.
    pub fn build(
        tables: &Tables,
        options: &SnapshotOptions,
        previous: Option<&Snapshot>,
    ) -> Result<Snapshot, Vec<Problem>> {
        let mut problems = Vec::new();
        let tables = &previous.map_or_else(|| tables.clone(), |old| tables.clone().settled(&old.tables));
        let entries: Vec<RouteEntry> =
            tables.routes.values().filter_map(|route| entry(tables, route, &mut problems)).collect();
        let ids: Vec<_> =
            entries.iter().map(|entry| (&entry.route.id, entry.service.as_ref().map(|service| &service.id))).collect();
        let rows = tables.plugins.values().map(|row| (**row).clone());
        let chains = Chains::build(rows, ids, &options.hosts, &options.node, previous.map(|old| &old.chains));
        let chains = chains.unwrap_or_else(|faults| {
            problems.extend(faults.into_iter().map(|fault| Problem::new("plugins", fault.id.clone(), fault)));
            Chains::default()
        });
        let certificates = Certificates::build(tables, previous.map(|old| &old.certificates));
        let mut secure = Secure { tables, certificates: &certificates, made: HashMap::new() };
        let mut plans = HashMap::new();
        for entry in &entries {
            match secure.settings(entry.service.as_deref()) {
                Ok(tls) => _ = plans.insert(entry.route.id.clone(), plan(entry, &chains, tls)),
                Err(problem) => problems.push(problem),
            }
        }
        let router = router(options.flavor, entries, previous, &mut problems);
        let (none, nothing) = (Balancers::default(), Tables::default());
        let (balancers, before) = previous.map_or((&none, &nothing), |old| (&old.balancers, &old.tables));
        let balancers = balancers.changed(before, tables);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Snapshot {
            tables: tables.clone(),
            router,
            chains,
            plans,
            balancers,
            certificates,
            node: options.node.clone(),
        })
    }

    /// Whether the upstream of this name, if there is one, hashes groups of the route's path.
    pub(crate) fn hashes_captures(&self, host: &str) -> bool {
        self.balancers.hash_captures() && self.balancers.get(host).is_some_and(|balancer| balancer.needs_captures())
    }
}

fn entry(tables: &Tables, route: &Arc<Route>, problems: &mut Vec<Problem>) -> Option<RouteEntry> {
    let service = match &route.service {
        None => None,
        Some(id) => match tables.services.get(id) {
            // Routes of a service that is turned off are as if they were not there.
            Some(service) if !service.enabled => return None,
            Some(service) => Some(service.clone()),
            None => {
                problems.push(Problem::new("routes", &*route.id, format!("there is no service {id}")));
                return None;
            }
        },
    };
    Some(RouteEntry { route: route.clone(), service })
}

fn plan(entry: &RouteEntry, chains: &Chains, tls: Option<Arc<TlsSettings>>) -> Plan {
    let service = entry.service.as_deref();
    let timeout = |time: Option<u64>| Duration::from_millis(time.unwrap_or(60_000));
    Plan {
        chain: chains.of_route(&entry.route.id, service.map(|service| &*service.id)).clone(),
        scheme: service.map_or(Scheme::Http, scheme),
        host: service.map_or_else(|| "".into(), |service| service.host.as_str().into()),
        connect_timeout: timeout(service.and_then(|service| service.connect_timeout)),
        write_timeout: timeout(service.and_then(|service| service.write_timeout)),
        read_timeout: timeout(service.and_then(|service| service.read_timeout)),
        tls,
    }
}

/// Settings of TLS towards services, made once for all that want the same.
struct Secure<'a> {
    tables: &'a Tables,
    certificates: &'a Certificates,
    made: HashMap<TlsWish, Arc<TlsSettings>>,
}

impl Secure<'_> {
    fn settings(&mut self, service: Option<&Service>) -> Result<Option<Arc<TlsSettings>>, Problem> {
        let Some(service) = service.filter(|service| scheme(service) == Scheme::Https) else { return Ok(None) };
        let wish = TlsWish {
            verify: service.tls_verify.unwrap_or(false),
            authorities: service.ca_certificates.clone().unwrap_or_default(),
            certificate: service.client_certificate.clone(),
        };
        if let Some(made) = self.made.get(&wish) {
            return Ok(Some(made.clone()));
        }
        let fault = |reason: String| Problem::new("services", &*service.id, reason);
        let mut pem = Vec::new();
        for id in &wish.authorities {
            let row = self.tables.ca_certificates.get(id);
            let row = row.ok_or_else(|| fault(format!("there is no ca_certificate {id}")))?;
            pem.push((&**id, row.cert.as_str()));
        }
        let own = match &wish.certificate {
            None => None,
            Some(id) => {
                let pairs = self.certificates.pairs(id);
                let missing = || fault(format!("there is no usable certificate {id}"));
                Some(pairs.and_then(|pairs| pairs.first()).ok_or_else(missing)?.clone())
            }
        };
        let made = TlsSettings::new(&wish, &pem, own).map_err(|error| fault(error.to_string()))?;
        Ok(Some(self.made.entry(wish).or_insert(Arc::new(made)).clone()))
    }
}

fn scheme(service: &Service) -> Scheme {
    match service.protocol.as_str() {
        "https" | "grpcs" | "tls" => Scheme::Https,
        _ => Scheme::Http,
    }
}

fn router(
    flavor: Flavor,
    entries: Vec<RouteEntry>,
    previous: Option<&Snapshot>,
    problems: &mut Vec<Problem>,
) -> Router {
    let built = match previous {
        Some(old) if flavor == old.router.flavor() => Ok(old.router.rebuild(entries)),
        _ => Router::build(flavor, entries),
    };
    match built {
        Ok((router, faults)) => {
            problems.extend(faults.into_iter().map(|fault| Problem::new("routes", &*fault.id.clone(), fault)));
            router
        }
        Err(unsupported) => {
            problems.push(Problem::new("routes", "*", unsupported));
            Router::default()
        }
    }
}

/// The snapshot in force, swapped by its owner; clones share it. Requests in flight keep the one they began with.
#[derive(Clone)]
pub struct SnapshotHandle(Arc<ArcSwap<Snapshot>>);

impl SnapshotHandle {
    /// Starts with a snapshot.
    pub fn new(snapshot: Snapshot) -> SnapshotHandle {
        SnapshotHandle(Arc::new(ArcSwap::from_pointee(snapshot)))
    }

    /// Puts another snapshot in force: every request that begins afterwards sees it.
    pub fn swap(&self, snapshot: Arc<Snapshot>) {
        self.0.store(snapshot);
    }

    /// The snapshot in force.
    pub fn load(&self) -> Arc<Snapshot> {
        self.0.load_full()
    }
}

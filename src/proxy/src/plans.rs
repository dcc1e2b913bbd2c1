//! What is known of the way to each service before any request.

use crate::balancer::host_value;
use crate::balancers::Balancers;
use crate::certificates::Certificates;
use crate::keyed::Keyed;
use crate::tables::{CaCertificate, Change, Link, Problem, Tables, changes};
use crate::upstream::tls::{DEFAULT_DEPTH, TlsSettings, TlsWish, UpstreamTls};
use gwctl_entities::view::{Certificate, Route, Service, Upstream};
use gwctl_plugins::{Scheme, Upstream as Way};
use http::HeaderValue;
use imbl::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The way to a service.
pub(crate) struct Plan {
    pub(crate) scheme: Scheme,
    pub(crate) host: Arc<str>,
    /// The host, where it is an address.
    address: Option<IpAddr>,
    pub(crate) port: u16,
    /// `Host` for it, unless there is something else to say; made when it is first asked for.
    host_value: OnceLock<Option<HeaderValue>>,
    pub(crate) connect_timeout: Duration,
    pub(crate) write_timeout: Duration,
    pub(crate) read_timeout: Duration,
    /// For services over TLS.
    pub(crate) tls: Option<Arc<TlsSettings>>,
    wish: Option<TlsWish>,
}

/// The plans of all services that some route leads to. A copy costs nothing.
#[derive(Clone, Default)]
pub(crate) struct Plans {
    by_service: Keyed<Arc<Plan>>,
    /// Settings of TLS, made once for all services that want the same, and how many do.
    secure: HashMap<TlsWish, (Arc<TlsSettings>, usize)>,
}

/// What plans are made of besides the tables, as of the snapshot to come.
pub(crate) struct Materials<'a> {
    pub(crate) certificates: &'a Certificates,
    pub(crate) balancers: &'a Balancers,
    pub(crate) node: &'a UpstreamTls,
}

impl Plan {
    /// `Host` for a request that goes where the service says.
    pub(crate) fn host_value(&self, way: &Way) -> Option<&HeaderValue> {
        let unchanged = Arc::ptr_eq(&way.host, &self.host) && way.port == self.port && way.scheme == self.scheme;
        let own = || host_value(&self.host, self.port, self.scheme.default_port());
        if unchanged { self.host_value.get_or_init(own).as_ref() } else { None }
    }

    /// The address of the host of this way, where it is one.
    pub(crate) fn address(&self, way: &Way) -> Option<IpAddr> {
        if Arc::ptr_eq(&way.host, &self.host) { self.address } else { way.host.parse().ok() }
    }
}

impl Plans {
    /// The plan of a service.
    pub(crate) fn of(&self, service: &str) -> Option<&Arc<Plan>> {
        self.by_service.get(service)
    }

    /// The plans after a change of the tables; only those are made anew whose service, certificates or first or last
    /// route changed.
    pub(crate) fn changed(
        &self,
        old: &Tables,
        new: &Tables,
        materials: &Materials<'_>,
        problems: &mut Vec<Problem>,
    ) -> Plans {
        let mut plans = self.clone();
        let mut touched: BTreeSet<Arc<str>> =
            changes::<Service>(old, new).into_iter().map(|change| change.id).collect();
        let own = changes::<Certificate>(old, new).into_iter().map(|change| (Link::ServiceOfCertificate, change.id));
        let others = changes::<CaCertificate>(old, new).into_iter().map(|change| (Link::ServiceOfAuthority, change.id));
        let mut outdated = Vec::new();
        for (link, id) in own.chain(others) {
            let services = old.linked(link, &id).filter_map(|service| plans.by_service.get(service));
            outdated.extend(services.filter_map(|plan| plan.wish.clone()));
            touched.extend(old.linked(link, &id).chain(new.linked(link, &id)).cloned());
        }
        for (service, renewed) in by_upstream(old, new) {
            if renewed {
                outdated.extend(plans.by_service.get(&service).and_then(|plan| plan.wish.clone()));
            }
            touched.insert(service);
        }
        let ends = |change: Change<Route>| [change.old, change.new].into_iter().flatten();
        let led_to = changes::<Route>(old, new).into_iter().flat_map(ends).filter_map(|route| route.service.clone());
        let led_to: BTreeSet<Arc<str>> = led_to.collect();
        touched.extend(led_to.into_iter().filter(|service| plans.is_due(service, new)));
        let mut wishes: Vec<_> = touched.iter().filter_map(|id| plans.by_service.remove(id)?.wish.clone()).collect();
        // All that had these are touched: nobody is left to let them go.
        outdated.iter().for_each(|wish| _ = plans.secure.remove(wish));
        wishes.retain(|wish| !outdated.contains(wish));
        for id in &touched {
            let Some(service) = new.services.get(id).filter(|service| is_routed(service, new)) else { continue };
            match plans.plan(service, new, materials) {
                Ok(plan) => _ = plans.by_service.insert(id.clone(), Arc::new(plan)),
                Err(problem) => problems.push(problem),
            }
        }
        // Only now, so that settings which pass from service to service are not made anew.
        wishes.iter().for_each(|wish| plans.release(wish));
        plans
    }

    /// Whether a service gains its first route or loses its last one.
    fn is_due(&self, service: &Arc<str>, new: &Tables) -> bool {
        let routed = new.services.get(service).is_some_and(|row| is_routed(row, new));
        routed != self.by_service.contains_key(service)
    }

    fn release(&mut self, wish: &TlsWish) {
        let Some((_, services)) = self.secure.get_mut(wish) else { return };
        *services = services.saturating_sub(1);
        if *services == 0 {
            self.secure.remove(wish);
        }
    }

    fn plan(&mut self, service: &Service, tables: &Tables, materials: &Materials<'_>) -> Result<Plan, Problem> {
        let timeout = |time: Option<u64>| Duration::from_millis(time.unwrap_or(60_000));
        let wish = wish(service, materials.balancers);
        Ok(Plan {
            scheme: scheme(service),
            host: service.host.as_str().into(),
            address: service.host.parse().ok(),
            port: service.port,
            host_value: OnceLock::new(),
            connect_timeout: timeout(service.connect_timeout),
            write_timeout: timeout(service.write_timeout),
            read_timeout: timeout(service.read_timeout),
            tls: wish.as_ref().map(|wish| self.settings(service, wish, tables, materials)).transpose()?,
            wish,
        })
    }

    fn settings(
        &mut self,
        service: &Service,
        wish: &TlsWish,
        tables: &Tables,
        materials: &Materials<'_>,
    ) -> Result<Arc<TlsSettings>, Problem> {
        if let Some((made, services)) = self.secure.get_mut(wish) {
            *services += 1;
            return Ok(made.clone());
        }
        let fault = |reason: String| Problem::new("services", &*service.id, reason);
        let mut pem = Vec::new();
        for id in &wish.authorities {
            let row = tables.ca_certificates.get(id);
            let row = row.ok_or_else(|| fault(format!("there is no ca_certificate {id}")))?;
            pem.push((&**id, row.cert.as_str()));
        }
        let own = match &wish.certificate {
            None => None,
            Some(id) => {
                let pairs = materials.certificates.pairs(id);
                let missing = || fault(format!("there is no usable certificate {id}"));
                Some(pairs.and_then(|pairs| pairs.first()).ok_or_else(missing)?.clone())
            }
        };
        let made =
            Arc::new(TlsSettings::new(wish, &pem, own, materials.node).map_err(|error| fault(error.to_string()))?);
        self.secure.insert(wish.clone(), (made.clone(), 1));
        Ok(made)
    }
}

/// Whether some route leads to a service that is on.
fn is_routed(service: &Service, tables: &Tables) -> bool {
    service.enabled && tables.linked(Link::RouteOfService, &service.id).next().is_some()
}

/// The services whose upstream presents another certificate than before, and whether that is a renewed one of the same
/// id. Rare: services are only looked through when there is one.
fn by_upstream(old: &Tables, new: &Tables) -> Vec<(Arc<str>, bool)> {
    let certificate = |row: Option<&Arc<Upstream>>| row.and_then(|row| row.client_certificate.clone());
    let mut names: BTreeMap<&str, bool> = BTreeMap::new();
    let upstreams = changes::<Upstream>(old, new);
    for change in &upstreams {
        let (before, after) = (change.old.as_ref(), change.new.as_ref());
        let renamed = before.map(|row| &row.name) != after.map(|row| &row.name);
        if certificate(before) != certificate(after) || renamed && certificate(before.or(after)).is_some() {
            names.extend([before, after].into_iter().flatten().map(|row| (row.name.as_str(), false)));
        }
    }
    for change in changes::<Certificate>(old, new) {
        for tables in [old, new] {
            let rows = tables.linked(Link::UpstreamOfCertificate, &change.id);
            names.extend(rows.filter_map(|id| tables.upstreams.get(id)).map(|row| (row.name.as_str(), true)));
        }
    }
    if names.is_empty() {
        return Vec::new();
    }
    let rows = old.services.values().chain(new.services.values());
    rows.filter_map(|service| Some((service.id.clone(), *names.get(service.host.as_str())?))).collect()
}

/// The service's own certificate comes before that of its upstream, as in Kong.
fn wish(service: &Service, balancers: &Balancers) -> Option<TlsWish> {
    let of_upstream = || balancers.get(&service.host).and_then(|balancer| balancer.upstream.client_certificate.clone());
    (scheme(service) == Scheme::Https).then(|| TlsWish {
        verify: service.tls_verify.unwrap_or(false),
        depth: service.tls_verify_depth.map_or(DEFAULT_DEPTH, |depth| depth as usize),
        authorities: service.ca_certificates.clone().unwrap_or_default(),
        certificate: service.client_certificate.clone().or_else(of_upstream),
        http2: service.protocol == "grpcs",
    })
}

fn scheme(service: &Service) -> Scheme {
    match service.protocol.as_str() {
        "https" | "grpcs" | "tls" => Scheme::Https,
        _ => Scheme::Http,
    }
}

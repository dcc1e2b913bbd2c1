//! The router: one table of compiled routes, in the form its flavor asks for.

use crate::compatible::Compatible;
use crate::explain::{Explanation, explain};
use crate::expressions::Expressions;
use crate::matched::Match;
use crate::problem::{Flavor, RouteProblem, UnsupportedFlavor};
use crate::request::Request;
use crate::streams::{StreamMatch, StreamRequest, Streams};
use crate::traditional::Traditional;
use gwctl_entities::view::{Route, Service};
use imbl::GenericHashMap;
use imbl::shared_ptr::DefaultSharedPtr;
use std::sync::Arc;

/// A route and the service it leads to.
#[derive(Debug, Clone)]
pub struct RouteEntry {
    /// The route.
    pub route: Arc<Route>,
    /// Its service; None for a route that only runs plugins.
    pub service: Option<Arc<Service>>,
}

impl RouteEntry {
    fn kind(&self) -> Served {
        let any = |names: &[&str]| self.route.protocols.iter().any(|protocol| names.contains(&protocol.as_str()));
        if self.service.as_ref().is_some_and(|service| !service.enabled) {
            Served::No
        } else if any(&["http", "https", "grpc", "grpcs"]) {
            Served::Http
        } else if any(&["tcp", "tls", "tls_passthrough", "udp"]) {
            Served::Stream
        } else {
            Served::No
        }
    }
}

/// Where a route belongs; its protocols are of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Served {
    Http,
    Stream,
    No,
}

/// A route as the tables keep it: with the id of its service only.
#[derive(Debug, Clone)]
pub(crate) struct FiledRoute {
    pub(crate) route: Arc<Route>,
    pub(crate) service: Option<Arc<str>>,
    pub(crate) protocols: Protocols,
}

/// Which protocols of requests a route takes: asked for with every request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Protocols {
    pub(crate) http: bool,
    pub(crate) https: bool,
    pub(crate) grpc: bool,
    pub(crate) grpcs: bool,
}

impl Protocols {
    fn of(route: &Route) -> Self {
        let has = |name: &str| route.protocols.iter().any(|protocol| protocol == name);
        Protocols { http: has("http"), https: has("https"), grpc: has("grpc"), grpcs: has("grpcs") }
    }
}

impl FiledRoute {
    pub(crate) fn of(entry: &RouteEntry) -> Self {
        let service = entry.service.as_ref().map(|service| service.id.clone());
        FiledRoute { route: entry.route.clone(), service, protocols: Protocols::of(&entry.route) }
    }
}

/// A step from one set of routes to the next; see [`Router::change`].
#[derive(Debug, Clone)]
pub enum Change {
    /// A route is new or says something else, or leads to another service.
    Put(RouteEntry),
    /// The route with this id is gone or no longer served.
    Remove(Arc<str>),
    /// A service says something else; the routes that lead to it stay as they are.
    PutService(Arc<Service>),
    /// No route leads to the service with this id any more.
    RemoveService(Arc<str>),
}

/// Services by id. Whoever sends requests does not choose these, so that the hash may be a quick one.
type Services = GenericHashMap<Arc<str>, Arc<Service>, foldhash::quality::RandomState, DefaultSharedPtr>;

/// A compiled set of routes. A copy costs nothing and shares everything with the original.
#[derive(Debug, Clone)]
pub struct Router {
    pub(crate) table: Table,
    /// Boxed: requests never look at it.
    streams: Box<Streams>,
    /// Services by id, apart from the routes, so that a changed service costs the same for one route and for all.
    services: Services,
}

/// The routes in the form of a flavor.
#[derive(Debug, Clone)]
pub(crate) enum Table {
    Compatible(Box<Compatible>),
    Traditional(Box<Traditional>),
    Expressions(Box<Expressions>),
}

impl Table {
    fn put(&mut self, entry: &RouteEntry) -> Result<(), Vec<RouteProblem>> {
        match self {
            Table::Compatible(table) => table.put(entry),
            Table::Traditional(table) => table.put(entry),
            Table::Expressions(table) => table.put(entry),
        }
    }

    fn remove(&mut self, id: &str) {
        match self {
            Table::Compatible(table) => table.remove(id),
            Table::Traditional(table) => table.remove(id),
            Table::Expressions(table) => table.remove(id),
        }
    }

    fn find<'r, 'q>(&'r self, request: &Request<'q>) -> Option<Match<'r, 'q>> {
        match self {
            Table::Compatible(table) => table.find(request),
            Table::Traditional(table) => table.find(request),
            Table::Expressions(table) => table.find(request),
        }
    }
}

impl Default for Router {
    fn default() -> Self {
        Router::empty(Flavor::default())
    }
}

impl Router {
    /// A router without routes.
    pub fn empty(flavor: Flavor) -> Self {
        let table = match flavor {
            Flavor::TraditionalCompatible => Table::Compatible(Box::default()),
            Flavor::Traditional => Table::Traditional(Box::default()),
            Flavor::Expressions => Table::Expressions(Box::default()),
        };
        Router { table, streams: Box::default(), services: Services::new() }
    }

    /// Compiles routes. Routes that cannot be compiled are left out and reported; the others serve.
    ///
    /// Left out without report: routes for UDP only, and, as in Kong, routes whose service is disabled.
    ///
    /// # Errors
    /// Never now that every flavor is supported; the type stays for flavors to come.
    pub fn build(
        flavor: Flavor,
        routes: impl IntoIterator<Item = RouteEntry>,
    ) -> Result<(Self, Vec<RouteProblem>), UnsupportedFlavor> {
        Ok(Router::empty(flavor).change(routes.into_iter().map(Change::Put)))
    }

    /// The router after some changes. Costs what changes, whatever the number of routes; the rest is shared.
    ///
    /// Routes that cannot be compiled are left out and reported, as by [`Router::build`].
    pub fn change(&self, changes: impl IntoIterator<Item = Change>) -> (Self, Vec<RouteProblem>) {
        let mut router = self.clone();
        let mut problems = Vec::new();
        for change in changes {
            match change {
                Change::Put(entry) => problems.extend(router.put(entry).err().unwrap_or_default()),
                Change::Remove(id) => router.remove(&id),
                Change::PutService(service) => router.put_service(service),
                Change::RemoveService(id) => _ = router.services.remove(&id),
            }
        }
        (router, problems)
    }

    /// A route may have changed its family: it goes from where it was.
    fn put(&mut self, entry: RouteEntry) -> Result<(), Vec<RouteProblem>> {
        let outcome = match entry.kind() {
            Served::No => {
                self.remove(&entry.route.id);
                return Ok(());
            }
            Served::Http => {
                self.streams.remove(&entry.route.id);
                self.table.put(&entry)
            }
            Served::Stream => {
                self.table.remove(&entry.route.id);
                self.streams.put(&entry, self.flavor())
            }
        };
        if let Some(service) = entry.service {
            self.put_service(service);
        }
        outcome
    }

    fn remove(&mut self, id: &str) {
        self.table.remove(id);
        self.streams.remove(id);
    }

    fn put_service(&mut self, service: Arc<Service>) {
        // Routes come one by one with the service they share.
        if self.services.get(&service.id).is_none_or(|known| !Arc::ptr_eq(known, &service)) {
            self.services.insert(service.id.clone(), service);
        }
    }

    /// The flavor it was built for.
    pub fn flavor(&self) -> Flavor {
        match &self.table {
            Table::Compatible(_) => Flavor::TraditionalCompatible,
            Table::Traditional(_) => Flavor::Traditional,
            Table::Expressions(_) => Flavor::Expressions,
        }
    }

    /// The number of routes of streams.
    pub fn stream_len(&self) -> usize {
        self.streams.len()
    }

    /// The route of a connection; None is closed at once.
    pub fn find_stream(&self, asked: &StreamRequest<'_>) -> Option<StreamMatch<'_>> {
        let mut found = self.streams.find(asked)?;
        found.service = found.leads_to.and_then(|id| self.services.get(id));
        Some(found)
    }

    /// The number of routes served over HTTP.
    pub fn len(&self) -> usize {
        match &self.table {
            Table::Compatible(table) => table.routes.len(),
            Table::Traditional(table) => table.routes.len(),
            Table::Expressions(table) => table.routes.len(),
        }
    }

    /// Whether no route is served over HTTP.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The route for a request; None is answered with 404.
    pub fn find<'r, 'q>(&'r self, request: &Request<'q>) -> Option<Match<'r, 'q>> {
        let mut found = self.table.find(request)?;
        found.service = found.leads_to().and_then(|id| self.services.get(id));
        Some(found)
    }

    /// Tries every matcher in order: what a match is by definition.
    #[cfg(test)]
    pub(crate) fn find_by_scan<'r, 'q>(&'r self, request: &Request<'q>) -> Option<Match<'r, 'q>> {
        match &self.table {
            Table::Compatible(table) => table.find_by_scan(request),
            Table::Traditional(table) => table.find_by_scan(request),
            Table::Expressions(table) => table.find_by_scan(request),
        }
    }

    /// Tells for every route whether the request fits it and, if not, at which field it fails first.
    ///
    /// Costs a pass over all routes; for people, not for the request path.
    pub fn explain<'r>(&'r self, request: &Request<'_>) -> Explanation<'r> {
        explain(self, request)
    }
}

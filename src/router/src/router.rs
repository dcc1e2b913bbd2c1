//! The router: one table of compiled routes, in the form its flavor asks for.

use crate::compatible::Compatible;
use crate::explain::{Explanation, explain};
use crate::expressions::Expressions;
use crate::matched::Match;
use crate::problem::{Flavor, RouteProblem, UnsupportedFlavor};
use crate::request::Request;
use crate::traditional::Traditional;
use gwctl_entities::view::{Route, Service};
use imbl::HashMap;
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
    fn is_served(&self) -> bool {
        let over_http = |protocol: &String| matches!(protocol.as_str(), "http" | "https" | "grpc" | "grpcs");
        self.route.protocols.iter().any(over_http) && self.service.as_ref().is_none_or(|service| service.enabled)
    }
}

/// A route as the tables keep it: with the id of its service only.
#[derive(Debug, Clone)]
pub(crate) struct FiledRoute {
    pub(crate) route: Arc<Route>,
    pub(crate) service: Option<Arc<str>>,
}

impl FiledRoute {
    pub(crate) fn of(entry: &RouteEntry) -> Self {
        FiledRoute { route: entry.route.clone(), service: entry.service.as_ref().map(|service| service.id.clone()) }
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

/// A compiled set of routes. A copy costs nothing and shares everything with the original.
#[derive(Debug, Clone)]
pub struct Router {
    pub(crate) table: Table,
    /// Services by id, apart from the routes, so that a changed service costs the same for one route and for all.
    services: HashMap<Arc<str>, Arc<Service>>,
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
        Router { table, services: HashMap::new() }
    }

    /// Compiles routes. Routes that cannot be compiled are left out and reported; the others serve.
    ///
    /// Left out without report, as in Kong: routes for streams only, and routes whose service is disabled.
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
                Change::Put(entry) if entry.is_served() => {
                    problems.extend(router.table.put(&entry).err().unwrap_or_default());
                    if let Some(service) = entry.service {
                        router.put_service(service);
                    }
                }
                Change::Put(entry) => router.table.remove(&entry.route.id),
                Change::Remove(id) => router.table.remove(&id),
                Change::PutService(service) => router.put_service(service),
                Change::RemoveService(id) => _ = router.services.remove(&id),
            }
        }
        (router, problems)
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

    /// The number of routes served.
    pub fn len(&self) -> usize {
        match &self.table {
            Table::Compatible(table) => table.routes.len(),
            Table::Traditional(table) => table.routes.len(),
            Table::Expressions(table) => table.routes.len(),
        }
    }

    /// Whether no route is served.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The route for a request; None is answered with 404.
    pub fn find<'r, 'q>(&'r self, request: &Request<'q>) -> Option<Match<'r, 'q>> {
        let mut found = self.table.find(request)?;
        found.service = found.leads_to.and_then(|id| self.services.get(id));
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

//! The router: one table of compiled routes, in the form its flavor asks for.

use crate::compatible::Compatible;
use crate::explain::{Explanation, explain};
use crate::expressions::Expressions;
use crate::matched::Match;
use crate::problem::{Flavor, RouteProblem, UnsupportedFlavor};
use crate::request::Request;
use crate::traditional::Traditional;
use gwctl_entities::view::{Route, Service};
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
    /// Whether both hold the very same route and service.
    pub(crate) fn is_same(&self, other: &RouteEntry) -> bool {
        let same_service = match (&self.service, &other.service) {
            (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs),
            (None, None) => true,
            _ => false,
        };
        same_service && Arc::ptr_eq(&self.route, &other.route)
    }

    fn is_served(&self) -> bool {
        let over_http = |protocol: &String| matches!(protocol.as_str(), "http" | "https" | "grpc" | "grpcs");
        self.route.protocols.iter().any(over_http) && self.service.as_ref().is_none_or(|service| service.enabled)
    }
}

/// A compiled set of routes. Immutable; share it behind an `Arc`.
#[derive(Debug)]
pub struct Router {
    pub(crate) table: Table,
}

/// The routes in the form of a flavor.
#[derive(Debug)]
pub(crate) enum Table {
    Compatible(Box<Compatible>),
    Traditional(Box<Traditional>),
    Expressions(Box<Expressions>),
}

impl Default for Router {
    fn default() -> Self {
        Router::empty(Flavor::default())
    }
}

impl Router {
    fn empty(flavor: Flavor) -> Self {
        let table = match flavor {
            Flavor::TraditionalCompatible => Table::Compatible(Box::default()),
            Flavor::Traditional => Table::Traditional(Box::default()),
            Flavor::Expressions => Table::Expressions(Box::default()),
        };
        Router { table }
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
        Ok(Router::empty(flavor).rebuild(routes))
    }

    /// Compiles a changed set of routes in the same flavor, taking over what this router has already compiled.
    ///
    /// A route is taken over when its entry holds the same `Arc`s as before, so unchanged routes must keep theirs.
    pub fn rebuild(&self, routes: impl IntoIterator<Item = RouteEntry>) -> (Self, Vec<RouteProblem>) {
        let served = routes.into_iter().filter(RouteEntry::is_served);
        let (table, problems) = match &self.table {
            Table::Compatible(table) => {
                let (table, problems) = table.rebuild(served);
                (Table::Compatible(Box::new(table)), problems)
            }
            Table::Traditional(table) => {
                let (table, problems) = table.rebuild(served);
                (Table::Traditional(Box::new(table)), problems)
            }
            Table::Expressions(table) => {
                let (table, problems) = table.rebuild(served);
                (Table::Expressions(Box::new(table)), problems)
            }
        };
        (Router { table }, problems)
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
        match &self.table {
            Table::Compatible(table) => table.find(request),
            Table::Traditional(table) => table.find(request),
            Table::Expressions(table) => table.find(request),
        }
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

//! The router: compiled routes in the order in which they are tried.

use crate::compile::Compiled;
use crate::conditions::Target;
use crate::explain::{Explanation, explain};
use crate::matched::Match;
use crate::problem::{Flavor, RouteProblem, UnsupportedFlavor};
use crate::request::Request;
use gwctl_entities::view::{Route, Service};
use std::collections::HashMap;
use std::sync::Arc;

/// A route and the service it leads to.
#[derive(Debug, Clone)]
pub struct RouteEntry {
    /// The route.
    pub route: Arc<Route>,
    /// Its service; None for a route that only runs plugins.
    pub service: Option<Arc<Service>>,
}

/// A compiled set of routes. Immutable; share it behind an `Arc`.
#[derive(Debug, Default)]
pub struct Router {
    pub(crate) routes: Vec<Arc<Compiled>>,
    /// Index into `routes` and into its parts, first tried first.
    pub(crate) matchers: Vec<Matcher>,
    /// Whether any route looks at the path.
    pub(crate) uses_paths: bool,
    by_id: HashMap<Arc<str>, u32>,
}

/// A place in the order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matcher {
    pub(crate) route: u32,
    pub(crate) part: u32,
}

impl Router {
    /// Compiles routes. Routes that cannot be compiled are left out and reported; the others serve.
    ///
    /// Left out without report, as in Kong: routes for streams only, and routes whose service is disabled.
    ///
    /// # Errors
    /// When the flavor is not supported.
    pub fn build(
        flavor: Flavor,
        routes: impl IntoIterator<Item = RouteEntry>,
    ) -> Result<(Self, Vec<RouteProblem>), UnsupportedFlavor> {
        match flavor {
            Flavor::TraditionalCompatible => Ok(Router::default().rebuild(routes)),
            Flavor::Traditional | Flavor::Expressions => Err(UnsupportedFlavor { flavor }),
        }
    }

    /// Compiles a changed set of routes, taking over what this router has already compiled.
    ///
    /// A route is taken over when its entry holds the same `Arc`s as before, so unchanged routes must keep theirs.
    pub fn rebuild(&self, routes: impl IntoIterator<Item = RouteEntry>) -> (Self, Vec<RouteProblem>) {
        let mut router = Router::default();
        let mut problems = Vec::new();
        for entry in routes.into_iter().filter(is_served) {
            match self.taken_over(&entry).map_or_else(|| Compiled::new(entry).map(Arc::new), Ok) {
                Ok(compiled) => router.add(compiled),
                Err(faults) => problems.extend(faults),
            }
        }
        router.sort();
        (router, problems)
    }

    fn taken_over(&self, entry: &RouteEntry) -> Option<Arc<Compiled>> {
        let known = self.routes.get(*self.by_id.get(&entry.route.id)? as usize)?;
        let same_service = match (&known.entry.service, &entry.service) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (None, None) => true,
            _ => false,
        };
        (same_service && Arc::ptr_eq(&known.entry.route, &entry.route)).then(|| known.clone())
    }

    fn add(&mut self, compiled: Arc<Compiled>) {
        let route = self.routes.len() as u32;
        self.by_id.insert(compiled.entry.route.id.clone(), route);
        self.uses_paths |= !compiled.entry.route.paths.is_empty();
        self.matchers.extend((0..compiled.parts.len() as u32).map(|part| Matcher { route, part }));
        self.routes.push(compiled);
    }

    fn sort(&mut self) {
        let routes = &self.routes;
        let order = |matcher: &Matcher| routes[matcher.route as usize].parts[matcher.part as usize].order;
        self.matchers.sort_by_key(|matcher| std::cmp::Reverse(order(matcher)));
    }

    /// The number of routes served.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether no route is served.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// The route for a request; None is answered with 404.
    pub fn find<'r, 'q>(&'r self, request: &Request<'q>) -> Option<Match<'r, 'q>> {
        self.find_by_scan(request)
    }

    /// Tries every matcher in order: what a match is by definition.
    pub(crate) fn find_by_scan<'r, 'q>(&'r self, request: &Request<'q>) -> Option<Match<'r, 'q>> {
        if self.uses_paths && request.path.as_str().is_none() {
            return None;
        }
        let target = Target::of(request);
        self.matchers.iter().find_map(|matcher| self.attempt(*matcher, request, target))
    }

    /// Tries one matcher.
    pub(crate) fn attempt<'r, 'q>(
        &'r self,
        matcher: Matcher,
        request: &Request<'q>,
        target: Target<'q>,
    ) -> Option<Match<'r, 'q>> {
        let compiled = &self.routes[matcher.route as usize];
        if !compiled.meets(request, target) {
            return None;
        }
        let taken = compiled.parts[matcher.part as usize].find_path(request.path.as_str())?;
        Some(Match::new(&compiled.entry, request, taken))
    }

    /// Tells for every route whether the request fits it and, if not, at which field it fails first.
    ///
    /// Costs a pass over all routes; for people, not for the request path.
    pub fn explain<'r>(&'r self, request: &Request<'_>) -> Explanation<'r> {
        explain(self, request)
    }
}

fn is_served(entry: &RouteEntry) -> bool {
    let over_http = |protocol: &String| matches!(protocol.as_str(), "http" | "https" | "grpc" | "grpcs");
    entry.route.protocols.iter().any(over_http) && entry.service.as_ref().is_none_or(|service| service.enabled)
}

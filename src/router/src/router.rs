//! The router: compiled routes in the order in which they are tried.

use crate::compile::{Compiled, PathRule};
use crate::conditions::Target;
use crate::explain::{Explanation, explain};
use crate::index::Index;
use crate::matched::Match;
use crate::pattern::Span;
use crate::problem::{Flavor, RouteProblem, UnsupportedFlavor};
use crate::request::Request;
use crate::trie::{ANY_PATH, Filed};
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
    index: Index,
    has_yielding: bool,
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
        router.fill_index();
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
        self.has_yielding |= compiled.yields_plain;
        self.uses_paths |= !compiled.entry.route.paths.is_empty();
        self.matchers.extend((0..compiled.parts.len() as u32).map(|part| Matcher { route, part }));
        self.routes.push(compiled);
    }

    fn sort(&mut self) {
        let routes = &self.routes;
        let order = |matcher: &Matcher| routes[matcher.route as usize].parts[matcher.part as usize].order;
        self.matchers.sort_by_key(|matcher| std::cmp::Reverse(order(matcher)));
    }

    fn fill_index(&mut self) {
        for (rank, matcher) in self.matchers.iter().enumerate() {
            self.index.add(rank as u32, &self.routes[matcher.route as usize], matcher.part as usize);
        }
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
    ///
    /// Plain HTTP does not look at server names, so a route with names that is for HTTPS only may come out first, to be
    /// answered with a redirect. It yields when another route fits as well. In Kong that depends on what its cache has
    /// seen before: a request of the same look over TLS without server name, which only the other route fits.
    pub fn find<'r, 'q>(&'r self, request: &Request<'q>) -> Option<Match<'r, 'q>> {
        self.choose(request, |skip_yielding| self.find_in_index(request, skip_yielding))
    }

    fn choose<T>(&self, request: &Request<'_>, find: impl Fn(bool) -> Option<T>) -> Option<T> {
        if self.uses_paths && request.path.as_str().is_none() {
            return None;
        }
        let skip_yielding = self.has_yielding && !request.https;
        find(skip_yielding).or_else(|| if skip_yielding { find(false) } else { None })
    }

    fn find_in_index<'r, 'q>(&'r self, request: &Request<'q>, skip_yielding: bool) -> Option<Match<'r, 'q>> {
        let target = Target::of(request);
        let path = request.path.as_str();
        let mut best = None;
        self.index.candidates(target.host, request.path.as_bytes(), |list| {
            for filed in list {
                if best.is_some_and(|(known, _)| known <= *filed) {
                    return;
                }
                if let Some(taken) = self.attempt(*filed, request, target, path, skip_yielding) {
                    best = Some((*filed, taken));
                    return;
                }
            }
        });
        let (filed, taken) = best?;
        Some(Match::new(&self.compiled(filed.rank).entry, request, taken))
    }

    fn compiled(&self, rank: u32) -> &Compiled {
        &self.routes[self.matchers[rank as usize].route as usize]
    }

    /// Checks a candidate of the index: what its place in the index has not proven yet.
    fn attempt(
        &self,
        filed: Filed,
        request: &Request<'_>,
        target: Target<'_>,
        path: Option<&str>,
        skip_yielding: bool,
    ) -> Option<Option<(&PathRule, Span)>> {
        let compiled = self.compiled(filed.rank);
        if skip_yielding && compiled.yields_plain || !compiled.meets_in_tree(request, target) {
            return None;
        }
        if filed.path == ANY_PATH {
            return Some(None);
        }
        let part = self.matchers[filed.rank as usize].part;
        let rule = &compiled.parts[part as usize].paths[filed.path as usize];
        match rule {
            PathRule::Prefix(prefix) => Some(Some((rule, (0, prefix.len())))),
            PathRule::Regex { pattern, .. } => Some(Some((rule, pattern.find(path?)?))),
        }
    }

    /// Tries every matcher in order: what a match is by definition.
    #[cfg(test)]
    pub(crate) fn find_by_scan<'r, 'q>(&'r self, request: &Request<'q>) -> Option<Match<'r, 'q>> {
        let target = Target::of(request);
        self.choose(request, |skip_yielding| {
            self.matchers.iter().find_map(|matcher| {
                let compiled = &self.routes[matcher.route as usize];
                if skip_yielding && compiled.yields_plain || !compiled.meets(request, target) {
                    return None;
                }
                let taken = compiled.parts[matcher.part as usize].find_path(request.path.as_str())?;
                Some(Match::new(&compiled.entry, request, taken))
            })
        })
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

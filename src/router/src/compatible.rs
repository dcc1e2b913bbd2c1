//! Routes by the rules of `traditional_compatible`: matchers in the order of a computed priority.

use crate::compile::{Compiled, PathRule};
use crate::conditions::Target;
use crate::index::Index;
use crate::matched::{Captures, Match, Taken};
use crate::pattern::Span;
use crate::problem::RouteProblem;
use crate::request::Request;
use crate::router::RouteEntry;
use crate::trie::{ANY_PATH, Filed};
use std::collections::HashMap;
use std::sync::Arc;

/// The compiled routes.
#[derive(Debug, Default)]
pub(crate) struct Compatible {
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

impl Compatible {
    /// Compiles routes, taking over what `self` has compiled of the same entries.
    pub(crate) fn rebuild(&self, routes: impl Iterator<Item = RouteEntry>) -> (Self, Vec<RouteProblem>) {
        let mut table = Compatible::default();
        let mut problems = Vec::new();
        for entry in routes {
            match self.taken_over(&entry).map_or_else(|| Compiled::new(entry).map(Arc::new), Ok) {
                Ok(compiled) => table.add(compiled),
                Err(faults) => problems.extend(faults),
            }
        }
        table.sort();
        table.fill_index();
        (table, problems)
    }

    fn taken_over(&self, entry: &RouteEntry) -> Option<Arc<Compiled>> {
        let known = self.routes.get(*self.by_id.get(&entry.route.id)? as usize)?;
        known.entry.is_same(entry).then(|| known.clone())
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
            let compiled = &self.routes[matcher.route as usize];
            let hosts = compiled.conditions.hosts.iter().map(|rule| &rule.name);
            self.index.add(rank as u32, hosts, compiled.parts[matcher.part as usize].prefixes());
        }
    }

    /// The route for a request.
    ///
    /// Plain HTTP does not look at server names, so a route with names that is for HTTPS only may come out first, to be
    /// answered with a redirect. It yields when another route fits as well. In Kong that depends on what its cache has
    /// seen before: a request of the same look over TLS without server name, which only the other route fits.
    pub(crate) fn find<'r, 'q>(&'r self, request: &Request<'q>) -> Option<Match<'r, 'q>> {
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
        Some(matched(&self.compiled(filed.rank).entry, request, taken))
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
                Some(matched(&compiled.entry, request, taken))
            })
        })
    }
}

fn matched<'r, 'q>(entry: &'r RouteEntry, request: &Request<'q>, taken: Option<(&'r PathRule, Span)>) -> Match<'r, 'q> {
    let part = taken.and_then(|(_, (start, end))| request.path.as_str()?.get(start..end));
    let captures = match taken {
        Some((PathRule::Regex { pattern, .. }, _)) => Captures::Of(pattern),
        _ => Captures::None,
    };
    Match::new(entry, request, part.map_or(Taken::Nothing, Taken::Path), captures)
}

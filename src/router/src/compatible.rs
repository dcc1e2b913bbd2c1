//! Routes by the rules of `traditional_compatible`: matchers in the order of a computed priority.

use crate::compile::{Compiled, PathRule};
use crate::conditions::Target;
use crate::index::Index;
use crate::matched::{Captures, Match, Taken};
use crate::pattern::{Pattern, Span};
use crate::problem::RouteProblem;
use crate::request::Request;
use crate::router::{FiledRoute, RouteEntry};
use imbl::OrdMap;
use std::cmp::{Ordering, Reverse};
use std::sync::Arc;
use uuid::Uuid;

/// The compiled routes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Compatible {
    pub(crate) routes: OrdMap<Arc<str>, Arc<Compiled>>,
    index: Index<Matcher>,
    /// How many routes yield over plain HTTP.
    yielding: usize,
    /// How many routes look at the path.
    with_paths: usize,
}

/// A part of a route in the index, with one of its paths. The smaller is tried first.
#[derive(Debug, Clone)]
struct Matcher {
    order: Reverse<(u64, Uuid)>,
    part: u32,
    /// Number of the path in the part.
    path: u32,
    takes: Takes,
    /// Nothing but host and path is asked for, so that a candidate fits without a look at its route.
    is_plain: bool,
    route: Arc<Compiled>,
}

/// What a matcher takes of a path under whose beginning it is filed.
#[derive(Debug, Clone, Copy)]
enum Takes {
    /// Nothing, of any path.
    Any,
    /// So many bytes.
    Prefix(u32),
    /// What the expression says.
    Regex,
}

/// What was taken of a path: a part of it, and by which expression.
type Took<'r> = Option<(Span, Option<&'r Pattern>)>;

impl Matcher {
    /// What tells matchers of the same order apart.
    fn place(&self) -> (&str, u32, u32) {
        (&self.route.filed.route.id, self.part, self.path)
    }
}

impl Ord for Matcher {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order.cmp(&other.order).then_with(|| self.place().cmp(&other.place()))
    }
}

impl PartialOrd for Matcher {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Matcher {}

impl Compatible {
    /// Compiles a route and puts it in the place of the one with its id, which is gone even if it cannot be compiled.
    pub(crate) fn put(&mut self, entry: &RouteEntry) -> Result<(), Vec<RouteProblem>> {
        self.remove(&entry.route.id);
        let compiled = Arc::new(Compiled::new(entry)?);
        self.yielding += usize::from(compiled.yields_plain);
        self.with_paths += usize::from(!entry.route.paths.is_empty());
        for filed in filed(&compiled) {
            self.index.add(compiled.conditions.hosts.iter().map(|rule| &rule.name), &filed);
        }
        self.routes.insert(entry.route.id.clone(), compiled);
        Ok(())
    }

    /// Takes a route out, if it is there.
    pub(crate) fn remove(&mut self, id: &str) {
        let Some(compiled) = self.routes.remove(id) else { return };
        self.yielding -= usize::from(compiled.yields_plain);
        self.with_paths -= usize::from(!compiled.filed.route.paths.is_empty());
        for filed in filed(&compiled) {
            self.index.remove(compiled.conditions.hosts.iter().map(|rule| &rule.name), &filed);
        }
    }

    /// Whether the request's path cannot be compared, so that it meets no route.
    pub(crate) fn is_unreadable(&self, request: &Request<'_>) -> bool {
        self.with_paths > 0 && request.path.as_str().is_none()
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
        if self.is_unreadable(request) {
            return None;
        }
        let skip_yielding = self.yielding > 0 && !request.https;
        find(skip_yielding).or_else(|| if skip_yielding { find(false) } else { None })
    }

    fn find_in_index<'r, 'q>(&'r self, request: &Request<'q>, skip_yielding: bool) -> Option<Match<'r, 'q>> {
        let target = Target::of(request);
        let path = request.path.as_str();
        let mut best: Option<(&Matcher, Took<'_>)> = None;
        self.index.candidates(target.host, request.path.as_bytes(), |list| {
            for matcher in list.iter() {
                if best.is_some_and(|(known, _)| known <= matcher) {
                    return;
                }
                if let Some(taken) = matcher.attempt(request, target, path, skip_yielding) {
                    best = Some((matcher, taken));
                    return;
                }
            }
        });
        let (matcher, taken) = best?;
        Some(matched(&matcher.route.filed, request, taken))
    }

    /// Tries every matcher in order: what a match is by definition.
    #[cfg(test)]
    pub(crate) fn find_by_scan<'r, 'q>(&'r self, request: &Request<'q>) -> Option<Match<'r, 'q>> {
        let target = Target::of(request);
        let parts = self.routes.values().flat_map(|route| route.parts.iter().map(move |part| (route, part)));
        let mut parts: Vec<_> = parts.collect();
        parts.sort_by_key(|(_, part)| Reverse(part.order));
        self.choose(request, |skip_yielding| {
            parts.iter().find_map(|(compiled, part)| {
                if skip_yielding && compiled.yields_plain || !compiled.meets(request, target) {
                    return None;
                }
                let taken = part.find_path(request.path.as_str())?.map(|(rule, span)| match rule {
                    PathRule::Prefix(_) => (span, None),
                    PathRule::Regex { pattern, .. } => (span, Some(pattern)),
                });
                Some(matched(&compiled.filed, request, taken))
            })
        })
    }
}

/// What is filed of each part of a route, and under which beginning of a path.
fn filed(compiled: &Arc<Compiled>) -> impl Iterator<Item = Vec<(Matcher, &str)>> {
    compiled.parts.iter().zip(0..).map(move |(part, number)| {
        let order = Reverse(part.order);
        let is_plain = compiled.is_plain();
        let matcher = |path, takes| Matcher { order, part: number, path, takes, is_plain, route: compiled.clone() };
        if part.paths.is_empty() {
            return vec![(matcher(0, Takes::Any), "")];
        }
        let filed = part.paths.iter().zip(0..).map(|(rule, path)| match rule {
            PathRule::Prefix(prefix) => (matcher(path, Takes::Prefix(prefix.len() as u32)), &**prefix),
            PathRule::Regex { literal, .. } => (matcher(path, Takes::Regex), &**literal),
        });
        filed.collect()
    })
}

impl Matcher {
    /// Checks a candidate of the index: what its place in the index has not proven yet.
    fn attempt<'r>(
        &'r self,
        request: &Request<'_>,
        target: Target<'_>,
        path: Option<&str>,
        skip_yielding: bool,
    ) -> Option<Took<'r>> {
        let fits =
            |compiled: &Compiled| !(skip_yielding && compiled.yields_plain) && compiled.meets_in_tree(request, target);
        if !self.is_plain && !fits(&self.route) {
            return None;
        }
        match self.takes {
            Takes::Any => Some(None),
            Takes::Prefix(length) => Some(Some(((0, length as usize), None))),
            Takes::Regex => {
                let rule = &self.route.parts[self.part as usize].paths[self.path as usize];
                let PathRule::Regex { pattern, .. } = rule else { return None };
                Some(Some((pattern.find(path?)?, Some(pattern))))
            }
        }
    }
}

fn matched<'r, 'q>(filed: &'r FiledRoute, request: &Request<'q>, taken: Took<'r>) -> Match<'r, 'q> {
    let part = taken.and_then(|((start, end), _)| request.path.as_str()?.get(start..end));
    let captures = match taken {
        Some((_, Some(pattern))) => Captures::Of(pattern),
        _ => Captures::None,
    };
    Match::new(filed, request, part.map_or(Taken::Nothing, Taken::Path), captures)
}

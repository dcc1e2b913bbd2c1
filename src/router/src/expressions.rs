//! Routes by the rules of the flavor `expressions`: expressions in the order of their priority.

use crate::compile::{Problems, part_id};
use crate::conditions::Target;
use crate::expression::{Narrow, Program};
use crate::index::Index;
use crate::matched::{Captures, Match};
use crate::priority::{PathKind, priority};
use crate::problem::RouteProblem;
use crate::request::Request;
use crate::router::RouteEntry;
use crate::transform;
use crate::trie::{ANY_PATH, Filed};
use gwctl_entities::view::Route;
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

/// Set in the priority of a route with an expression: it comes before routes with fields, unless those use four kinds.
const EXPRESSION: u64 = 0xff << 56;

/// The compiled routes.
#[derive(Debug, Default)]
pub(crate) struct Expressions {
    pub(crate) routes: Vec<Arc<Written>>,
    by_id: HashMap<Arc<str>, u32>,
    /// A route's place in `routes` and a part's place in it, first tried first.
    matchers: Vec<(u32, u32)>,
    index: Index,
    uses_paths: bool,
}

/// A route, compiled once and shared by the tables it is in.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) entry: RouteEntry,
    /// One for an expression; for fields one for each length of its prefixes and one for its regexes.
    pub(crate) parts: Vec<Part>,
}

/// An expression and its place in the order.
#[derive(Debug)]
pub(crate) struct Part {
    /// The greater is tried first.
    pub(crate) order: (u64, Uuid),
    program: Program,
    narrow: Narrow,
}

impl Part {
    pub(crate) fn holds(&self, request: &Request<'_>, target: Target<'_>) -> bool {
        self.program.holds(request, target)
    }
}

impl Written {
    fn new(entry: RouteEntry) -> Result<Self, Vec<RouteProblem>> {
        let mut problems = Problems::of(&entry.route);
        let route = &*entry.route;
        let id = problems.keep("id", Uuid::parse_str(&route.id).map_err(|_| "is no UUID".to_owned()));
        let mut parts = Vec::new();
        for (order, text) in texts(route, id.unwrap_or_default()) {
            let field = if route.expression.is_some() { "expression" } else { "paths" };
            let program = Program::compile(&text, &route.protocols)
                .map_err(|fault| format!("amounts to no valid expression: {}", fault.trim_start()));
            if let Some(program) = problems.keep(field, program) {
                parts.push(Part { order, narrow: program.narrow(), program });
            }
        }
        if problems.list.is_empty() { Ok(Written { entry, parts }) } else { Err(problems.list) }
    }
}

/// The expressions of a route with their places in the order.
fn texts(route: &Route, id: Uuid) -> Vec<((u64, Uuid), String)> {
    let protocols = protocols(route);
    if let Some(expression) = &route.expression {
        let order = (EXPRESSION | route.priority.unwrap_or(0), id);
        return vec![(order, format!("{}{protocols}", transform::amended(expression)))];
    }
    let mut groups: Vec<(PathKind, Vec<&str>)> = Vec::new();
    for path in &route.paths {
        let kind = if path.starts_with('~') { PathKind::Regex } else { PathKind::Prefix(path.len()) };
        match groups.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, paths)) => paths.push(path),
            None => groups.push((kind, vec![path])),
        }
    }
    if groups.is_empty() {
        groups.push((PathKind::None, Vec::new()));
    }
    let several = groups.len() > 1;
    let text = |(index, (kind, paths)): (usize, (PathKind, Vec<&str>))| {
        let id = if several { part_id(&route.id, index + 1) } else { id };
        ((priority(route, kind), id), format!("{}{protocols}", transform::of_fields(route, &paths)))
    };
    groups.into_iter().enumerate().map(text).collect()
}

/// What the protocols ask for; nothing for HTTPS alone, so that plain HTTP can be redirected.
fn protocols(route: &Route) -> String {
    match route.protocols.as_slice() {
        [] => String::new(),
        [only] if matches!(only.as_str(), "https" | "tls" | "tls_passthrough") => String::new(),
        protocols => {
            let test = |protocol: &String| {
                let plain = match protocol.as_str() {
                    "grpc" => "http",
                    "grpcs" => "https",
                    "tls_passthrough" => "tcp",
                    other => other,
                };
                format!("net.protocol == r#\"{plain}\"#")
            };
            format!(" && ({})", protocols.iter().map(test).collect::<Vec<_>>().join(" || "))
        }
    }
}

impl Expressions {
    /// Compiles routes, taking over what `self` has compiled of the same entries.
    pub(crate) fn rebuild(&self, routes: impl Iterator<Item = RouteEntry>) -> (Self, Vec<RouteProblem>) {
        let mut table = Expressions::default();
        let mut problems = Vec::new();
        for entry in routes {
            match self.taken_over(&entry).map_or_else(|| Written::new(entry).map(Arc::new), Ok) {
                Ok(compiled) => table.add(compiled),
                Err(faults) => problems.extend(faults),
            }
        }
        let routes = &table.routes;
        let order = |(route, part): &(u32, u32)| routes[*route as usize].parts[*part as usize].order;
        table.matchers.sort_by_key(|matcher| std::cmp::Reverse(order(matcher)));
        for (rank, (route, part)) in table.matchers.iter().enumerate() {
            let narrow = &table.routes[*route as usize].parts[*part as usize].narrow;
            let prefixes = narrow.prefixes.iter().flatten().map(|prefix| (ANY_PATH, &**prefix));
            table.index.add(rank as u32, narrow.hosts.iter().flatten(), prefixes);
        }
        (table, problems)
    }

    fn taken_over(&self, entry: &RouteEntry) -> Option<Arc<Written>> {
        let known = self.routes.get(*self.by_id.get(&entry.route.id)? as usize)?;
        known.entry.is_same(entry).then(|| known.clone())
    }

    fn add(&mut self, compiled: Arc<Written>) {
        let route = self.routes.len() as u32;
        self.by_id.insert(compiled.entry.route.id.clone(), route);
        self.uses_paths |= compiled.parts.iter().any(|part| part.program.uses_path());
        self.matchers.extend((0..compiled.parts.len() as u32).map(|part| (route, part)));
        self.routes.push(compiled);
    }

    /// Whether the request's path cannot be compared, so that it meets no route.
    pub(crate) fn is_unreadable(&self, request: &Request<'_>) -> bool {
        self.uses_paths && request.path.as_str().is_none()
    }

    fn part(&self, rank: u32) -> (&Written, &Part) {
        let (route, part) = self.matchers[rank as usize];
        let route = &*self.routes[route as usize];
        (route, &route.parts[part as usize])
    }

    /// The route for a request.
    pub(crate) fn find<'r, 'q>(&'r self, request: &Request<'q>) -> Option<Match<'r, 'q>> {
        if self.is_unreadable(request) {
            return None;
        }
        let target = Target::of(request);
        let mut best: Option<u32> = None;
        self.index.candidates(target.host, request.path.as_bytes(), |list| {
            for Filed { rank, .. } in list {
                if best.is_some_and(|known| known <= *rank) {
                    return;
                }
                if self.part(*rank).1.holds(request, target) {
                    best = Some(*rank);
                    return;
                }
            }
        });
        best.map(|rank| self.matched(rank, request, target))
    }

    fn matched<'r, 'q>(&'r self, rank: u32, request: &Request<'q>, target: Target<'q>) -> Match<'r, 'q> {
        let (route, part) = self.part(rank);
        let (taken, captures) = part.program.outcome(request, target);
        let captures = captures.map_or(Captures::None, |captures| Captures::Kept(Box::new(captures)));
        Match::new(&route.entry, request, taken, captures)
    }

    /// Tries every expression in order: what a match is by definition.
    #[cfg(test)]
    pub(crate) fn find_by_scan<'r, 'q>(&'r self, request: &Request<'q>) -> Option<Match<'r, 'q>> {
        if self.is_unreadable(request) {
            return None;
        }
        let target = Target::of(request);
        let rank = (0..self.matchers.len() as u32).find(|rank| self.part(*rank).1.holds(request, target))?;
        Some(self.matched(rank, request, target))
    }
}

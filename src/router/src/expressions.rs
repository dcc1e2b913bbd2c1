//! Routes by the rules of the flavor `expressions`: expressions in the order of their priority.

use crate::compile::{Problems, part_id};
use crate::conditions::Target;
use crate::expression::{Narrow, Program, Trace};
use crate::index::Index;
use crate::matched::{Captures, Match};
use crate::priority::{PathKind, priority};
use crate::problem::RouteProblem;
use crate::request::Request;
use crate::router::{FiledRoute, RouteEntry};
use crate::transform;
use gwctl_entities::view::Route;
use imbl::OrdMap;
use std::cmp::{Ordering, Reverse};
use std::sync::Arc;
use uuid::Uuid;

/// Set in the priority of a route with an expression: it comes before routes with fields, unless those use four kinds.
const EXPRESSION: u64 = 0xff << 56;

/// The compiled routes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expressions {
    pub(crate) routes: OrdMap<Arc<str>, Arc<Written>>,
    index: Index<Matcher>,
    /// How many routes look at the path.
    with_paths: usize,
}

/// A part of a route in the index. The smaller is tried first.
#[derive(Debug, Clone)]
struct Matcher {
    order: Reverse<(u64, Uuid)>,
    part: u32,
    /// Its place in the index proves all it asks for, so that a candidate fits without a look at its route.
    is_proven: bool,
    route: Arc<Written>,
}

impl Matcher {
    /// What tells matchers of the same order apart.
    fn place(&self) -> (&str, u32) {
        (&self.route.filed.route.id, self.part)
    }

    fn part(&self) -> &Part {
        &self.route.parts[self.part as usize]
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

/// A route, compiled once and shared by the tables it is in.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) filed: FiledRoute,
    /// One for an expression; for fields one for each length of its prefixes and one for its regexes.
    pub(crate) parts: Vec<Part>,
}

/// An expression and its place in the order.
#[derive(Debug)]
pub(crate) struct Part {
    /// The greater is tried first.
    pub(crate) order: (u64, Uuid),
    program: Program,
}

impl Part {
    pub(crate) fn holds(&self, request: &Request<'_>, target: Target<'_>) -> bool {
        self.program.holds(request, target)
    }
}

impl Written {
    fn uses_path(&self) -> bool {
        self.parts.iter().any(|part| part.program.uses_path())
    }

    fn new(entry: &RouteEntry) -> Result<Self, Vec<RouteProblem>> {
        let mut problems = Problems::of(&entry.route);
        let route = &*entry.route;
        let id = problems.keep("id", Uuid::parse_str(&route.id).map_err(|_| "is no UUID".to_owned()));
        let mut parts = Vec::new();
        for (order, text) in texts(route, id.unwrap_or_default()) {
            let field = if route.expression.is_some() { "expression" } else { "paths" };
            let program = Program::compile(&text, &route.protocols)
                .map_err(|fault| format!("amounts to no valid expression: {}", fault.trim_start()));
            if let Some(program) = problems.keep(field, program) {
                parts.push(Part { order, program });
            }
        }
        if problems.list.is_empty() { Ok(Written { filed: FiledRoute::of(entry), parts }) } else { Err(problems.list) }
    }
}

/// The expressions of a route with their places in the order.
fn texts(route: &Route, id: Uuid) -> Vec<((u64, Uuid), String)> {
    let protocols = protocols(route);
    if let Some(expression) = &route.expression {
        let order = (expressed_priority(route), id);
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

/// The priority of a route with an expression.
pub(crate) fn expressed_priority(route: &Route) -> u64 {
    EXPRESSION | route.priority.unwrap_or(0)
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
    /// Compiles a route and puts it in the place of the one with its id, which is gone even if it cannot be compiled.
    pub(crate) fn put(&mut self, entry: &RouteEntry) -> Result<(), Vec<RouteProblem>> {
        self.remove(&entry.route.id);
        let compiled = Arc::new(Written::new(entry)?);
        self.with_paths += usize::from(compiled.uses_path());
        for (narrow, filed) in filed(&compiled) {
            self.index.add(narrow.hosts.iter().flatten(), &filed);
        }
        self.routes.insert(entry.route.id.clone(), compiled);
        Ok(())
    }

    /// Takes a route out, if it is there.
    pub(crate) fn remove(&mut self, id: &str) {
        let Some(compiled) = self.routes.remove(id) else { return };
        self.with_paths -= usize::from(compiled.uses_path());
        for (narrow, filed) in filed(&compiled) {
            self.index.remove(narrow.hosts.iter().flatten(), &filed);
        }
    }

    /// Whether the request's path cannot be compared, so that it meets no route.
    pub(crate) fn is_unreadable(&self, request: &Request<'_>) -> bool {
        self.with_paths > 0 && request.path.as_str().is_none()
    }

    /// The route for a request.
    pub(crate) fn find<'r, 'q>(&'r self, request: &Request<'q>) -> Option<Match<'r, 'q>> {
        if self.is_unreadable(request) {
            return None;
        }
        let target = Target::of(request);
        let mut best: Option<(&Matcher, Option<Trace<'r, 'q>>)> = None;
        self.index.candidates(target.host, request.path.as_bytes(), |list| {
            for matcher in list.iter() {
                if best.as_ref().is_some_and(|(known, _)| *known <= matcher) {
                    return;
                }
                if matcher.is_proven {
                    best = Some((matcher, None));
                    return;
                }
                if let Some(trace) = matcher.part().program.run(request, target) {
                    best = Some((matcher, Some(trace)));
                    return;
                }
            }
        });
        let (matcher, trace) = best?;
        Some(matched(&matcher.route, trace.unwrap_or_else(|| matcher.part().program.begin()), request))
    }

    /// Tries every expression in order: what a match is by definition.
    #[cfg(test)]
    pub(crate) fn find_by_scan<'r, 'q>(&'r self, request: &Request<'q>) -> Option<Match<'r, 'q>> {
        if self.is_unreadable(request) {
            return None;
        }
        let target = Target::of(request);
        let parts = self.routes.values().flat_map(|route| route.parts.iter().map(move |part| (route, part)));
        let (route, part) = parts.filter(|(_, part)| part.holds(request, target)).max_by_key(|(_, part)| part.order)?;
        Some(matched(route, part.program.run_whole(request, target)?, request))
    }
}

/// What is filed of each part of a route, and under which hosts and beginnings of paths.
fn filed(compiled: &Arc<Written>) -> impl Iterator<Item = (&Narrow, Vec<(Matcher, &str)>)> {
    compiled.parts.iter().zip(0..).map(move |(part, number)| {
        let is_proven = part.program.is_proven();
        let matcher = Matcher { order: Reverse(part.order), part: number, is_proven, route: compiled.clone() };
        let filed = match &part.program.narrow().prefixes {
            None => vec![(matcher, "")],
            Some(prefixes) => prefixes.iter().map(|prefix| (matcher.clone(), &**prefix)).collect(),
        };
        (part.program.narrow(), filed)
    })
}

fn matched<'r, 'q>(route: &'r Written, trace: Trace<'r, 'q>, request: &Request<'q>) -> Match<'r, 'q> {
    let (taken, captures) = trace.outcome();
    let captures = captures.map_or(Captures::None, |captures| Captures::Kept(Box::new(captures)));
    Match::new(&route.filed, request, taken, captures)
}

//! A route turned into matchers.

use crate::conditions::{Affix, Conditions, HeaderRule, HeaderValue, HostRule, Target};
use crate::pattern::{Pattern, Span, literal_prefix, path_source};
use crate::priority::{PathKind, priority};
use crate::problem::RouteProblem;
use crate::request::Request;
use crate::router::{FiledRoute, RouteEntry};
use gwctl_entities::view::Route;
use std::sync::Arc;
use uuid::Uuid;

/// Namespace of the ids that Kong gives to the parts of a route with several kinds of paths.
const PART_NAMESPACE: Uuid = Uuid::from_u128(0x7f14_5bf9_0dce_4f91_98eb_debb_ce4b_9f6b);

/// A path of a route.
#[derive(Debug)]
pub(crate) enum PathRule {
    Prefix(Box<str>),
    Regex { source: Box<str>, literal: Box<str>, pattern: Pattern },
}

impl PathRule {
    /// The part of `path` that this rule takes.
    pub(crate) fn find(&self, path: &str) -> Option<Span> {
        match self {
            PathRule::Prefix(prefix) => path.starts_with(&**prefix).then_some((0, prefix.len())),
            PathRule::Regex { pattern, .. } => pattern.find(path),
        }
    }

    /// Whether this rule comes from the path `written` of a route.
    pub(crate) fn is_written(&self, written: &str) -> bool {
        match self {
            PathRule::Prefix(prefix) => **prefix == *written,
            PathRule::Regex { source, .. } => written.strip_prefix('~') == Some(source),
        }
    }
}

/// A route, compiled once and shared by its matchers.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) filed: FiledRoute,
    pub(crate) conditions: Conditions,
    pub(crate) parts: Vec<Part>,
    /// For HTTPS only and with server names: see `Router::find`.
    pub(crate) yields_plain: bool,
}

/// One matcher of a route: its paths of one kind.
#[derive(Debug)]
pub(crate) struct Part {
    /// The greater is tried first: the priority, then the id, which is random and so breaks ties without meaning.
    pub(crate) order: (u64, Uuid),
    /// Empty: any path.
    pub(crate) paths: Vec<PathRule>,
}

impl Part {
    /// The first path rule that takes the path, and what it takes; `Some(None)` when any path will do.
    pub(crate) fn find_path(&self, path: Option<&str>) -> Option<Option<(&PathRule, Span)>> {
        if self.paths.is_empty() {
            return Some(None);
        }
        let path = path?;
        self.paths.iter().find_map(|rule| rule.find(path).map(|span| Some((rule, span))))
    }
}

impl Compiled {
    /// Compiles a route, or lists everything that is wrong with it.
    pub(crate) fn new(entry: &RouteEntry) -> Result<Self, Vec<RouteProblem>> {
        let mut problems = Problems::of(&entry.route);
        let route = &*entry.route;
        let id = problems.keep("id", Uuid::parse_str(&route.id).map_err(|_| "is no UUID".to_owned()));
        if route.expression.is_some() {
            problems.add("expression", "needs router flavor 'expressions'".to_owned());
        }
        let hosts: Vec<_> = route.hosts.iter().map(|host| HostRule::parse(host)).collect();
        let conditions = Conditions {
            asks_port: hosts.iter().any(|rule| rule.port.is_some()),
            snis: route.snis.iter().map(|sni| sni_rule(sni)).collect(),
            methods: route.methods.iter().map(|method| method.as_str().into()).collect(),
            hosts,
            headers: route.headers.iter().map(|(name, values)| header_rule(name, values, &mut problems)).collect(),
        };
        let parts = parts(route, id.unwrap_or_default(), &mut problems);
        let has = |name: &str| route.protocols.iter().any(|protocol| protocol == name);
        let yields_plain = !route.snis.is_empty() && has("https") && !has("http");
        if problems.list.is_empty() {
            Ok(Compiled { filed: FiledRoute::of(entry), conditions, parts, yields_plain })
        } else {
            Err(problems.list)
        }
    }

    /// Whether the request meets everything but the path.
    #[cfg(test)]
    pub(crate) fn meets(&self, request: &Request<'_>, target: Target<'_>) -> bool {
        self.conditions.match_host(target) && self.meets_beyond_host(request)
    }

    /// The same for a request whose host is known to fit a host rule of this route, the port aside.
    pub(crate) fn meets_in_tree(&self, request: &Request<'_>, target: Target<'_>) -> bool {
        (!self.conditions.asks_port || self.conditions.match_host(target)) && self.meets_beyond_host(request)
    }

    /// Whether host without port and path are all that it asks for.
    pub(crate) fn is_plain(&self) -> bool {
        let Conditions { snis, methods, asks_port, headers, .. } = &self.conditions;
        snis.is_empty() && methods.is_empty() && !asks_port && headers.is_empty()
    }

    fn meets_beyond_host(&self, request: &Request<'_>) -> bool {
        let conditions = &self.conditions;
        conditions.match_method(request) && conditions.match_sni(request) && conditions.match_headers(request)
    }
}

/// Gathers what is wrong with a route.
pub(crate) struct Problems {
    route: Arc<Route>,
    pub(crate) list: Vec<RouteProblem>,
}

impl Problems {
    pub(crate) fn of(route: &Arc<Route>) -> Self {
        Problems { route: route.clone(), list: Vec::new() }
    }

    pub(crate) fn add(&mut self, field: &str, reason: String) {
        let Route { id, name, .. } = &*self.route;
        self.list.push(RouteProblem { id: id.clone(), name: name.clone(), field: field.to_owned(), reason });
    }

    pub(crate) fn keep<T>(&mut self, field: &str, outcome: Result<T, String>) -> Option<T> {
        outcome.map_err(|reason| self.add(field, reason)).ok()
    }
}

/// A closing dot of a full name is not compared.
fn sni_rule(sni: &str) -> Affix {
    match sni.strip_suffix('.') {
        Some(name) if !name.is_empty() && !sni.ends_with('*') => Affix::parse(name),
        _ => Affix::parse(sni),
    }
}

/// Kong turns a header regex into lower case like any value, `\D` into `\d` included.
fn header_rule(name: &str, values: &[String], problems: &mut Problems) -> HeaderRule {
    let mut rules = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        let lower = value.to_ascii_lowercase();
        match lower.strip_prefix("~*") {
            Some(source) => {
                let pattern = Pattern::compile(source).map_err(bad_regex);
                rules.extend(problems.keep(&format!("headers.{name}[{index}]"), pattern).map(HeaderValue::Regex));
            }
            None => rules.push(HeaderValue::Equal(lower.into())),
        }
    }
    HeaderRule::new(name, rules)
}

pub(crate) fn bad_regex(fault: String) -> String {
    format!("is no valid regular expression: {fault}")
}

/// Groups the paths: one part for each prefix length, one for all regexes, in the order in which each first appears.
fn parts(route: &Route, id: Uuid, problems: &mut Problems) -> Vec<Part> {
    let mut groups: Vec<(PathKind, Vec<PathRule>)> = Vec::new();
    for (index, path) in route.paths.iter().enumerate() {
        let (kind, rule) = match path.strip_prefix('~') {
            None => (PathKind::Prefix(path.len()), Some(PathRule::Prefix(path.as_str().into()))),
            Some(source) => {
                let pattern = Pattern::compile(&path_source(source)).map_err(bad_regex);
                let pattern = problems.keep(&format!("paths[{index}]"), pattern);
                (
                    PathKind::Regex,
                    pattern.map(|pattern| PathRule::Regex {
                        source: source.into(),
                        literal: literal_prefix(source).into(),
                        pattern,
                    }),
                )
            }
        };
        match groups.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, rules)) => rules.extend(rule),
            None => groups.push((kind, rule.into_iter().collect())),
        }
    }
    if groups.is_empty() {
        groups.push((PathKind::None, Vec::new()));
    }
    let several = groups.len() > 1;
    let parts = groups.into_iter().enumerate().map(|(index, (kind, paths))| {
        let id = if several { part_id(&route.id, index + 1) } else { id };
        Part { order: (priority(route, kind), id), paths }
    });
    parts.collect()
}

/// The id that breaks ties for one of several parts; Kong derives it from the route's id as written.
pub(crate) fn part_id(route: &str, number: usize) -> Uuid {
    Uuid::new_v5(&PART_NAMESPACE, format!("{route}#{number}").as_bytes())
}

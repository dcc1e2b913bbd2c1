//! A route as the old router sees it: one part for each of its paths.

use super::host::{AskedHost, OldHost};
use super::order::Order;
use crate::compile::{Problems, bad_regex};
use crate::matched::{Captures, Taken};
use crate::pattern::{Pattern, has_bare_alternation, literal_prefix};
use crate::problem::RouteProblem;
use crate::request::Request;
use crate::router::{FiledRoute, RouteEntry};
use gwctl_entities::view::Route;

/// The kinds of fields a route uses or a request could meet, as a set.
pub(crate) mod rule {
    pub(crate) const HOST: u8 = 0x40;
    pub(crate) const HEADER: u8 = 0x20;
    pub(crate) const PATH: u8 = 0x10;
    pub(crate) const METHOD: u8 = 0x08;
    pub(crate) const SNI: u8 = 0x04;
}

/// A path of a route.
#[derive(Debug)]
pub(crate) enum OldPath {
    Prefix(Box<str>),
    Regex {
        source: Box<str>,
        literal: Box<str>,
        pattern: Pattern,
        /// The expression with a last group for the rest of the path, where that group may stay out of a match.
        with_rest: Option<Box<Pattern>>,
    },
}

impl OldPath {
    fn parse(path: &str) -> Result<Self, String> {
        let Some(source) = path.strip_prefix('~') else { return Ok(OldPath::Prefix(path.into())) };
        let pattern = Pattern::compile(&format!("^(?:{source})")).map_err(bad_regex)?;
        // Without a branch of its own the rest follows whatever the expression took.
        let with_rest = has_bare_alternation(source).then(|| Pattern::compile(&format!("^(?:{source}(.*))")));
        let with_rest = with_rest.transpose().map_err(bad_regex)?.map(Box::new);
        Ok(OldPath::Regex { source: source.into(), literal: literal_prefix(source).into(), pattern, with_rest })
    }

    /// The path without the mark of a regex: what lists of routes are looked up by.
    pub(crate) fn value(&self) -> &str {
        match self {
            OldPath::Prefix(value) | OldPath::Regex { source: value, .. } => value,
        }
    }

    /// What every path begins with that this one fits.
    pub(crate) fn literal(&self) -> &str {
        match self {
            OldPath::Prefix(value) | OldPath::Regex { literal: value, .. } => value,
        }
    }

    pub(crate) fn is_regex(&self) -> bool {
        matches!(self, OldPath::Regex { .. })
    }

    pub(crate) fn fits(&self, path: &str) -> bool {
        match self {
            OldPath::Prefix(prefix) => path.starts_with(&**prefix),
            OldPath::Regex { pattern, .. } => pattern.is_match(path),
        }
    }

    /// What is taken off a path that fits, and how captures are made.
    pub(crate) fn take<'r, 'q>(&'r self, path: &'q str) -> (Taken<'r, 'q>, Captures<'r>) {
        match self {
            OldPath::Prefix(prefix) => (Taken::part(path, prefix.len()), Captures::None),
            OldPath::Regex { pattern, with_rest: None, .. } => {
                let taken = pattern.find(path).map_or(Taken::Nothing, |(_, end)| Taken::part(path, end));
                (taken, Captures::OfWhole(pattern))
            }
            OldPath::Regex { pattern, with_rest: Some(with_rest), .. } => {
                let rest = with_rest.groups(path).and_then(|groups| groups.last().and_then(|(_, text)| *text));
                let taken = rest.map_or(Taken::Nothing, |rest| Taken::part(path, path.len() - rest.len()));
                (taken, Captures::OfWhole(pattern))
            }
        }
    }
}

/// A header of a route.
#[derive(Debug)]
pub(crate) struct OldHeader {
    pub(crate) name: HeaderName,
    /// In lower case.
    values: Vec<Box<str>>,
    pattern: Option<Pattern>,
}

/// A header's name, and the spelling tried when a request lacks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderName {
    pub(crate) lower: Box<str>,
    dashed: Option<Box<str>>,
}

impl HeaderName {
    fn new(name: &str) -> Self {
        let lower = name.to_ascii_lowercase();
        let dashed = lower.contains('_').then(|| lower.replace('_', "-").into());
        HeaderName { lower: lower.into(), dashed }
    }

    /// Calls `accept` with the values until it answers true; None when the request has no such header.
    fn any_value(&self, request: &Request<'_>, accept: &mut dyn FnMut(&[u8]) -> bool) -> Option<bool> {
        let mut seen = false;
        let mut watch = |value: &[u8]| {
            seen = true;
            accept(value)
        };
        let mut found = request.headers.any_value(&self.lower, &mut watch);
        if let Some(dashed) = self.dashed.as_ref().filter(|_| !seen) {
            found = request.headers.any_value(dashed, &mut |value| {
                seen = true;
                accept(value)
            });
        }
        seen.then_some(found)
    }

    pub(crate) fn is_in(&self, request: &Request<'_>) -> bool {
        self.any_value(request, &mut |_| true).is_some()
    }
}

impl OldHeader {
    fn fits(&self, request: &Request<'_>) -> bool {
        let mut accept = |value: &[u8]| {
            let lower = value.to_ascii_lowercase();
            self.values.iter().any(|known| known.as_bytes() == lower)
                || self
                    .pattern
                    .as_ref()
                    .is_some_and(|pattern| std::str::from_utf8(&lower).is_ok_and(|text| pattern.is_match(text)))
        };
        self.name.any_value(request, &mut accept) == Some(true)
    }
}

/// A route, compiled once and shared by the tables it is in.
#[derive(Debug)]
pub(crate) struct OldRoute {
    pub(crate) filed: FiledRoute,
    /// The kinds of fields it uses.
    pub(crate) rules: u8,
    pub(crate) hosts: Vec<OldHost>,
    pub(crate) headers: Vec<OldHeader>,
    pub(crate) methods: Vec<Box<str>>,
    pub(crate) snis: Vec<Box<str>>,
    pub(crate) paths: Vec<OldPath>,
}

impl OldRoute {
    /// Compiles a route, or lists everything that is wrong with it.
    pub(crate) fn new(entry: &RouteEntry) -> Result<Self, Vec<RouteProblem>> {
        let mut problems = Problems::of(&entry.route);
        let route = &*entry.route;
        if route.expression.is_some() {
            problems.add("expression", "needs router flavor 'expressions'".to_owned());
        }
        let mut paths = Vec::with_capacity(route.paths.len());
        for (index, path) in route.paths.iter().enumerate() {
            paths.extend(problems.keep(&format!("paths[{index}]"), OldPath::parse(path)));
        }
        let dotless = |sni: &String| sni.strip_suffix('.').filter(|name| !name.is_empty()).unwrap_or(sni).into();
        let mut compiled = OldRoute {
            rules: 0,
            hosts: route.hosts.iter().map(|host| OldHost::parse(host)).collect(),
            headers: headers(route, &mut problems),
            methods: route.methods.iter().map(|method| method.to_ascii_uppercase().into()).collect(),
            snis: route.snis.iter().map(dotless).collect(),
            paths,
            filed: FiledRoute::of(entry),
        };
        compiled.rules = compiled.used();
        if compiled.rules == 0 && problems.list.is_empty() {
            problems.add("paths", "must not be empty when hosts, methods, headers and snis are".to_owned());
        }
        if problems.list.is_empty() { Ok(compiled) } else { Err(problems.list) }
    }

    /// A path of this route as it is written in it.
    pub(crate) fn written(&self, path: &OldPath) -> Option<&str> {
        let paths = self.paths.iter().zip(&self.filed.route.paths);
        paths.into_iter().find(|(known, _)| std::ptr::eq(*known, path)).map(|(_, text)| text.as_str())
    }

    fn used(&self) -> u8 {
        [
            (rule::HOST, !self.hosts.is_empty()),
            (rule::HEADER, !self.headers.is_empty()),
            (rule::PATH, !self.paths.is_empty()),
            (rule::METHOD, !self.methods.is_empty()),
            (rule::SNI, !self.snis.is_empty()),
        ]
        .into_iter()
        .filter(|(_, used)| *used)
        .fold(0, |rules, (rule, _)| rules | rule)
    }

    /// The place of a part among others; `path` is the part's path, if the route has any.
    pub(crate) fn order(&self, path: Option<&OldPath>) -> Order {
        let is_regex = path.is_some_and(OldPath::is_regex);
        let plain_hosts = !self.hosts.is_empty() && !self.hosts.iter().any(OldHost::is_wildcard);
        let wildcard_port = self.hosts.iter().any(OldHost::is_wildcard_with_port);
        Order {
            kind: u8::from(wildcard_port) << 2 | u8::from(plain_hosts) << 1 | u8::from(is_regex),
            headers: self.headers.len(),
            regex_priority: if is_regex { self.filed.route.regex_priority } else { 0 },
            length: path.filter(|path| !path.is_regex()).map_or(0, |path| path.value().len()),
            created_at: self.filed.route.created_at,
        }
    }

    /// `first` stands for the host as received when it is the first wildcard of all routes that fits.
    pub(crate) fn fits_host(&self, host: Option<&AskedHost<'_>>, first: Option<&str>) -> bool {
        let Some(host) = host else { return self.hosts.is_empty() };
        let named = first.unwrap_or(host.raw);
        self.hosts.is_empty()
            || self
                .hosts
                .iter()
                .any(|rule| *rule.value == *named || *rule.value == *host.bare || rule.fits_wildcard(host))
    }

    pub(crate) fn fits_method(&self, request: &Request<'_>) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|method| **method == *request.method)
    }

    pub(crate) fn fits_sni(&self, request: &Request<'_>) -> bool {
        self.snis.is_empty() || !request.https || self.snis.iter().any(|sni| Some(&**sni) == request.sni)
    }

    /// The first header that does not fit.
    pub(crate) fn missing_header(&self, request: &Request<'_>) -> Option<&str> {
        self.headers.iter().find(|header| !header.fits(request)).map(|header| &*header.name.lower)
    }
}

fn headers(route: &Route, problems: &mut Problems) -> Vec<OldHeader> {
    let mut headers = Vec::with_capacity(route.headers.len());
    for (name, values) in route.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host")) {
        // Only a value that stands alone can be a regex. It is not turned into lower case, the request's value is.
        let source = match values.as_slice() {
            [value] => value.strip_prefix("~*"),
            _ => None,
        };
        let pattern = source.map(|source| Pattern::compile(source).map_err(bad_regex));
        let pattern = pattern.and_then(|pattern| problems.keep(&format!("headers.{name}[0]"), pattern));
        let values = values.iter().map(|value| value.to_ascii_lowercase().into()).collect();
        headers.push(OldHeader { name: HeaderName::new(name), values, pattern });
    }
    headers
}

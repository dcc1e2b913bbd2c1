//! Routes by the rules of the flavor `traditional`: the router of Kong before 3.0.
//!
//! A request is first held against all routes at once, field by field: is its host, its path, its method, its server
//! name or one of its headers known to any route? The kinds of fields found make a category; the search begins at the
//! routes that use exactly these kinds (at the top when there are none) and goes down to those that use fewer. Within a
//! category the routes that share the rarest value of the request come before the others, then the order of the parts
//! counts: `order` holds it. The result therefore depends on more than one order; `find_by_scan` states it plainly.
//!
//! Source: Kong 3.9.1 `kong/router/traditional.lua`.

mod category;
mod host;
mod order;
mod route;
#[cfg(test)]
mod tests;

use crate::explain::Field;
use crate::index::Index;
use crate::matched::{Captures, Match, Taken};
use crate::problem::RouteProblem;
use crate::request::Request;
use crate::router::RouteEntry;
use crate::trie::{ANY_PATH, Filed, Forest, NodeId};
use category::Category;
use host::AskedHost;
use order::lua_sort;
use route::{HeaderName, rule};
pub(crate) use route::{OldPath, OldRoute};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The compiled routes.
#[derive(Debug, Default)]
pub(crate) struct Traditional {
    pub(crate) routes: Vec<Arc<OldRoute>>,
    by_id: HashMap<Arc<str>, u32>,
    /// First tried first.
    parts: Vec<Part>,
    /// In the order in which they are gone through.
    categories: Vec<Category>,
    known: Known,
}

/// A route with one of its paths.
#[derive(Debug, Clone, Copy)]
struct Part {
    route: u32,
    /// None for a route without paths.
    path: Option<u32>,
}

/// The values that any route asks for.
#[derive(Debug, Default)]
struct Known {
    /// In the order of the parts.
    headers: Vec<HeaderName>,
    hosts: HashSet<Box<str>>,
    /// Wildcards, by the rank of the first part that has them and their number there.
    wildcards: Index,
    methods: HashSet<Box<str>>,
    snis: HashSet<Box<str>>,
    paths: Forest,
    regexes: Option<NodeId>,
    prefixes: Option<NodeId>,
    /// Whether any host names a port.
    ports_matter: bool,
}

/// A request, and the values of it that some route asks for.
pub(crate) struct Asked<'a> {
    host: Option<AskedHost<'a>>,
    method: &'a str,
    sni: Option<&'a str>,
    /// The first wildcard that fits when no plain host does.
    first_host: Option<&'a str>,
    first_header: Option<&'a str>,
    /// The first regex that fits, else the longest prefix.
    first_path: Option<&'a str>,
    /// The kinds of fields with a value that some route asks for.
    rules: u8,
}

impl Traditional {
    /// Compiles routes, taking over what `self` has compiled of the same entries.
    pub(crate) fn rebuild(&self, routes: impl Iterator<Item = RouteEntry>) -> (Self, Vec<RouteProblem>) {
        let mut table = Traditional::default();
        let mut problems = Vec::new();
        for entry in routes {
            match self.taken_over(&entry).map_or_else(|| OldRoute::new(entry).map(Arc::new), Ok) {
                Ok(compiled) => table.routes.push(compiled),
                Err(faults) => problems.extend(faults),
            }
        }
        // Kong reads routes by id.
        table.routes.sort_by(|one, other| one.entry.route.id.cmp(&other.entry.route.id));
        table.by_id =
            table.routes.iter().zip(0..).map(|(compiled, index)| (compiled.entry.route.id.clone(), index)).collect();
        table.sort();
        table.index();
        (table, problems)
    }

    fn taken_over(&self, entry: &RouteEntry) -> Option<Arc<OldRoute>> {
        let known = self.routes.get(*self.by_id.get(&entry.route.id)? as usize)?;
        known.entry.is_same(entry).then(|| known.clone())
    }

    fn sort(&mut self) {
        let mut parts = Vec::with_capacity(self.routes.len());
        for (compiled, route) in self.routes.iter().zip(0..) {
            if compiled.paths.is_empty() {
                parts.push((compiled.order(None), Part { route, path: None }));
            }
            for (path, number) in compiled.paths.iter().zip(0..) {
                parts.push((compiled.order(Some(path)), Part { route, path: Some(number) }));
            }
        }
        lua_sort(&mut parts, &|(one, _), (other, _)| one.precedes(other));
        self.parts = parts.into_iter().map(|(_, part)| part).collect();
    }

    fn index(&mut self) {
        let mut categories: HashMap<u8, Category> = HashMap::new();
        let mut known = std::mem::take(&mut self.known);
        for (part, rank) in self.parts.iter().zip(0..) {
            let (route, path) = self.part(*part);
            let category = categories.entry(route.rules).or_insert_with(|| Category::of(route.rules));
            category.add(rank, route, path);
            known.add(rank, route, path);
        }
        self.known = known;
        self.categories = categories.into_values().collect();
        self.categories.sort_by_key(|category| std::cmp::Reverse((category.rules.count_ones(), category.rules)));
    }

    fn part(&self, part: Part) -> (&OldRoute, Option<&OldPath>) {
        let route = &*self.routes[part.route as usize];
        (route, part.path.map(|number| &route.paths[number as usize]))
    }

    /// The route for a request.
    pub(crate) fn find<'r, 'q>(&'r self, request: &Request<'q>) -> Option<Match<'r, 'q>> {
        self.choose(request, |category, asked| self.find_in(category, asked, request))
    }

    fn choose<'r, 'q>(
        &'r self,
        request: &Request<'q>,
        find: impl Fn(&Category, &Asked<'_>) -> Option<u32>,
    ) -> Option<Match<'r, 'q>> {
        let asked = self.ask(request);
        if asked.rules == 0 {
            return None;
        }
        let start = self.categories.iter().position(|category| category.rules == asked.rules).unwrap_or(0);
        let rank = self.categories[start..].iter().find_map(|category| find(category, &asked))?;
        let part = self.parts[rank as usize];
        let (route, path) = self.part(part);
        let (taken, captures) = match (path, request.path.as_str()) {
            (Some(path), Some(text)) => path.take(text),
            _ => (Taken::Nothing, Captures::None),
        };
        Some(Match::new(&route.entry, request, taken, captures).joined_by_route())
    }

    /// Holds a request against the values that any route asks for.
    fn ask<'a>(&'a self, request: &Request<'a>) -> Asked<'a> {
        let known = &self.known;
        let host = AskedHost::new(request.host, request.https, known.ports_matter);
        let plain =
            host.as_ref().is_some_and(|host| known.hosts.contains(host.bare) || known.hosts.contains(&*host.full));
        let first_host = host.as_ref().filter(|_| !plain).and_then(|host| self.first_wildcard(host));
        let first_header = known.headers.iter().find(|name| name.is_in(request)).map(|name| &*name.lower);
        let first_path = request.path.as_str().and_then(|path| self.first_path(path));
        let sni = request.sni.filter(|sni| known.snis.contains(*sni));
        let mut asked = Asked { host, method: request.method, sni, first_host, first_header, first_path, rules: 0 };
        asked.rules = [
            (rule::HOST, plain || first_host.is_some()),
            (rule::HEADER, first_header.is_some()),
            (rule::PATH, first_path.is_some()),
            (rule::METHOD, known.methods.contains(request.method)),
            (rule::SNI, sni.is_some()),
        ]
        .into_iter()
        .filter(|(_, found)| *found)
        .fold(0, |rules, (rule, _)| rules | rule);
        asked
    }

    fn first_wildcard(&self, host: &AskedHost<'_>) -> Option<&str> {
        let mut best: Option<Filed> = None;
        for form in host.forms() {
            self.known.wildcards.candidates(form, b"", |list| {
                for filed in list.iter().take_while(|filed| best.is_none_or(|known| **filed < known)) {
                    if self.wildcard(*filed).fits_wildcard(host) {
                        best = Some(*filed);
                        return;
                    }
                }
            });
        }
        best.map(|filed| &*self.wildcard(filed).value)
    }

    fn wildcard(&self, filed: Filed) -> &host::OldHost {
        &self.routes[self.parts[filed.rank as usize].route as usize].hosts[filed.path as usize]
    }

    fn first_path(&self, path: &str) -> Option<&str> {
        let known = &self.known;
        let path_of = |rank: u32| self.part(self.parts[rank as usize]).1;
        let mut best = None;
        for list in known.regexes.iter().flat_map(|root| known.paths.prefixes_of(*root, path.as_bytes())) {
            for filed in list.iter().take_while(|filed| best.is_none_or(|known| filed.rank < known)) {
                if path_of(filed.rank).is_some_and(|rule| rule.fits(path)) {
                    best = Some(filed.rank);
                    break;
                }
            }
        }
        let longest = || {
            let root = known.prefixes.as_ref()?;
            known.paths.prefixes_of(*root, path.as_bytes()).next()?.first().map(|filed| filed.rank)
        };
        best.or_else(longest).and_then(path_of).map(OldPath::value)
    }

    /// The first part of a category that fits, those with its rarest value before the others.
    fn find_in(&self, category: &Category, asked: &Asked<'_>, request: &Request<'_>) -> Option<u32> {
        let key = category.shortest(asked);
        let (mut preferred, mut other) = (None, None);
        category.candidates(asked.host.as_ref(), request.path.as_bytes(), |list| {
            for Filed { rank, .. } in list {
                if preferred.is_some_and(|known| known <= *rank) {
                    return;
                }
                let (route, path) = self.part(self.parts[*rank as usize]);
                let first = key.is_some_and(|key| key.is_of(route, path));
                if !first && (preferred.is_some() || other.is_some_and(|known| known <= *rank)) {
                    continue;
                }
                if fits(route, path, asked, request) {
                    if first {
                        preferred = Some(*rank);
                        return;
                    }
                    other = Some(*rank);
                }
            }
        });
        preferred.or(other)
    }

    /// Every part: its route's place in `routes`, its path, and where it stands among all (the greater comes first).
    pub(crate) fn standings(&self) -> impl Iterator<Item = (usize, Option<&OldPath>, u64)> {
        let place = |rules| self.categories.iter().rev().position(|category| category.rules == rules).unwrap_or(0);
        self.parts.iter().rev().zip(0_u64..).map(move |(part, rank)| {
            let (route, path) = self.part(*part);
            (part.route as usize, path, (place(route.rules) as u64) << 32 | rank)
        })
    }

    /// The first field of a route that a request does not meet.
    pub(crate) fn first_failure(&self, route: &OldRoute, request: &Request<'_>) -> Option<Field> {
        let asked = self.ask(request);
        let fits_path = |path: &OldPath| request.path.as_str().is_some_and(|text| path.fits(text));
        if !route.fits_sni(request) {
            Some(Field::Sni)
        } else if !route.fits_method(request) {
            Some(Field::Method)
        } else if !route.fits_host(asked.host.as_ref(), asked.first_host) {
            Some(Field::Host)
        } else if !route.paths.is_empty() && !route.paths.iter().any(fits_path) {
            Some(Field::Path)
        } else {
            route.missing_header(request).map(|name| Field::Header(name.to_owned()))
        }
    }

    /// What a match is by definition: every part of a category in order, twice.
    #[cfg(test)]
    pub(crate) fn find_by_scan<'r, 'q>(&'r self, request: &Request<'q>) -> Option<Match<'r, 'q>> {
        self.choose(request, |category, asked| {
            let key = category.shortest(asked);
            let scan = |wanted: &dyn Fn(&OldRoute, Option<&OldPath>) -> bool| {
                self.parts.iter().position(|part| {
                    let (route, path) = self.part(*part);
                    route.rules == category.rules && wanted(route, path) && fits(route, path, asked, request)
                })
            };
            let first = key.and_then(|key| scan(&|route, path| key.is_of(route, path)));
            first.or_else(|| scan(&|_, _| true)).map(|rank| rank as u32)
        })
    }
}

/// Whether a request meets everything a part asks for.
fn fits(route: &OldRoute, path: Option<&OldPath>, asked: &Asked<'_>, request: &Request<'_>) -> bool {
    route.fits_host(asked.host.as_ref(), asked.first_host)
        && route.fits_method(request)
        && route.fits_sni(request)
        && path.is_none_or(|rule| request.path.as_str().is_some_and(|text| rule.fits(text)))
        && route.missing_header(request).is_none()
}

impl Known {
    fn add(&mut self, rank: u32, route: &OldRoute, path: Option<&OldPath>) {
        for (number, host) in route.hosts.iter().enumerate() {
            self.ports_matter |= host.asks_port();
            if host.is_wildcard() {
                self.wildcards.add(rank, std::iter::once(&host.filed), std::iter::once((number as u32, "")));
            } else {
                self.hosts.insert(host.value.clone());
            }
        }
        for header in &route.headers {
            if !self.headers.contains(&header.name) {
                self.headers.push(header.name.clone());
            }
        }
        self.methods.extend(route.methods.iter().cloned());
        self.snis.extend(route.snis.iter().cloned());
        if let Some(path) = path {
            let root = if path.is_regex() { &mut self.regexes } else { &mut self.prefixes };
            let root = *root.get_or_insert_with(|| self.paths.plant());
            self.paths.file(root, path.literal().as_bytes(), Filed { rank, path: ANY_PATH });
        }
    }
}

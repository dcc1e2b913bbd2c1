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
mod known;
mod order;
mod part;
mod route;
#[cfg(test)]
mod tests;

use crate::explain::Field;
use crate::matched::{Captures, Match, Taken};
use crate::problem::RouteProblem;
use crate::request::Request;
use crate::router::RouteEntry;
use category::Category;
use host::AskedHost;
use imbl::OrdMap;
use known::Known;
use part::{OldPart, Ranks, Standing};
use route::rule;
pub(crate) use route::{OldPath, OldRoute};
use std::cmp::{Ordering, Reverse};
use std::sync::{Arc, OnceLock};

/// The compiled routes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traditional {
    /// By id.
    pub(crate) routes: OrdMap<Arc<str>, Arc<OldRoute>>,
    /// In the order in which they are gone through; none is empty.
    categories: Vec<Category>,
    known: Known,
    /// How many routes have no date.
    undated: usize,
    /// Of these routes and no others.
    ranks: Arc<OnceLock<Ranks>>,
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
    /// Compiles a route and puts it in the place of the one with its id, which is gone even if it cannot be compiled.
    pub(crate) fn put(&mut self, entry: &RouteEntry) -> Result<(), Vec<RouteProblem>> {
        self.remove(&entry.route.id);
        let route = Arc::new(OldRoute::new(entry)?);
        self.edit(&route, true);
        self.routes.insert(entry.route.id.clone(), route);
        Ok(())
    }

    /// Takes a route out, if it is there.
    pub(crate) fn remove(&mut self, id: &str) {
        if let Some(route) = self.routes.remove(id) {
            self.edit(&route, false);
        }
    }

    fn edit(&mut self, route: &Arc<OldRoute>, add: bool) {
        self.ranks = Arc::default();
        let undated = usize::from(route.filed.route.created_at.is_none());
        self.undated = if add { self.undated + undated } else { self.undated - undated };
        let place = |category: &Category| Reverse((category.rules.count_ones(), category.rules));
        let wanted = Reverse((route.rules.count_ones(), route.rules));
        let at = match self.categories.binary_search_by_key(&wanted, place) {
            Ok(at) => at,
            Err(at) => {
                self.categories.insert(at, Category::of(route.rules));
                at
            }
        };
        for part in OldPart::all(route) {
            self.categories[at].edit(&part, add);
            self.known.edit(&part, add);
        }
        if self.categories[at].parts == 0 {
            self.categories.remove(at);
        }
    }

    fn standing(&self) -> Standing<'_> {
        Standing { routes: &self.routes, undated: self.undated > 0, ranks: &self.ranks }
    }

    /// The route for a request.
    pub(crate) fn find<'r, 'q>(&'r self, request: &Request<'q>) -> Option<Match<'r, 'q>> {
        self.choose(request, |category, asked| self.find_in(category, asked, request))
    }

    fn choose<'r, 'q>(
        &'r self,
        request: &Request<'q>,
        find: impl Fn(&'r Category, &Asked<'_>) -> Option<&'r OldPart>,
    ) -> Option<Match<'r, 'q>> {
        let asked = self.ask(request);
        if asked.rules == 0 {
            return None;
        }
        let start = self.categories.iter().position(|category| category.rules == asked.rules).unwrap_or(0);
        let part = self.categories[start..].iter().find_map(|category| find(category, &asked))?;
        let (taken, captures) = match (part.path(), request.path.as_str()) {
            (Some(path), Some(text)) => path.take(text),
            _ => (Taken::Nothing, Captures::None),
        };
        Some(Match::new(&part.route.filed, request, taken, captures).joined_by_route())
    }

    /// Holds a request against the values that any route asks for.
    fn ask<'a>(&'a self, request: &Request<'a>) -> Asked<'a> {
        let (known, standing) = (&self.known, self.standing());
        let host = AskedHost::new(request.host, request.https, known.ports_matter());
        let plain = host.as_ref().is_some_and(|host| known.has_host(host));
        let first_host = host.as_ref().filter(|_| !plain).and_then(|host| known.first_wildcard(host, &standing));
        let first_header = known.first_header(request, &standing);
        let first_path = request.path.as_str().and_then(|path| known.first_path(path, &standing));
        let sni = request.sni.filter(|sni| known.has_sni(sni));
        let mut asked = Asked { host, method: request.method, sni, first_host, first_header, first_path, rules: 0 };
        asked.rules = [
            (rule::HOST, plain || first_host.is_some()),
            (rule::HEADER, first_header.is_some()),
            (rule::PATH, first_path.is_some()),
            (rule::METHOD, known.has_method(request.method)),
            (rule::SNI, sni.is_some()),
        ]
        .into_iter()
        .filter(|(_, found)| *found)
        .fold(0, |rules, (rule, _)| rules | rule);
        asked
    }

    /// The first part of a category that fits, those with its rarest value before the others.
    fn find_in<'r>(&self, category: &'r Category, asked: &Asked<'_>, request: &Request<'_>) -> Option<&'r OldPart> {
        let (key, standing) = (category.shortest(asked), self.standing());
        let (mut preferred, mut other): (Option<&OldPart>, Option<&OldPart>) = (None, None);
        let follows = |part: &OldPart, known: Option<&OldPart>| {
            known.is_some_and(|known| part == known || standing.roughly(part, known) == Ordering::Greater)
        };
        category.candidates(asked.host.as_ref(), request.path.as_bytes(), |list| {
            for part in list.iter() {
                if preferred.is_some_and(|known| standing.roughly(part, known) == Ordering::Greater) {
                    return;
                }
                let first = key.is_some_and(|key| key.is_of(part));
                if !first && preferred.is_some() {
                    continue;
                }
                let best = if first { &mut preferred } else { &mut other };
                let precedes = |best| standing.exactly(part, best).is_lt();
                if !follows(part, *best) && fits(part, asked, request) && best.is_none_or(precedes) {
                    *best = Some(part);
                }
            }
        });
        preferred.or(other)
    }

    /// Every part with where it stands among all (the greater comes first).
    pub(crate) fn standings(&self) -> impl Iterator<Item = (&OldPart, u64)> {
        let place = |rules| self.categories.iter().rev().position(|category| category.rules == rules).unwrap_or(0);
        let sorted = self.standing().ranks().sorted.iter();
        sorted.rev().zip(0_u64..).map(move |(part, rank)| (part, (place(part.route.rules) as u64) << 32 | rank))
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
            let scan = |wanted: &dyn Fn(&OldPart) -> bool| {
                let of_category = |part: &&OldPart| part.route.rules == category.rules;
                let mut parts = self.standing().ranks().sorted.iter();
                parts.find(|part| of_category(part) && wanted(part) && fits(part, asked, request))
            };
            let first = key.and_then(|key| scan(&|part| key.is_of(part)));
            first.or_else(|| scan(&|_| true))
        })
    }
}

/// Whether a request meets everything a part asks for.
fn fits(part: &OldPart, asked: &Asked<'_>, request: &Request<'_>) -> bool {
    let route = &*part.route;
    route.fits_host(asked.host.as_ref(), asked.first_host)
        && route.fits_method(request)
        && route.fits_sni(request)
        && part.path().is_none_or(|rule| request.path.as_str().is_some_and(|text| rule.fits(text)))
        && route.missing_header(request).is_none()
}

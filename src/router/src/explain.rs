//! Why a request took its route, and why it did not take the others.

use crate::compile::Compiled;
use crate::conditions::Target;
use crate::request::Request;
use crate::router::Router;
use gwctl_entities::view::Route;
use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

/// A field of a route that a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// `snis`
    Sni,
    /// `methods`
    Method,
    /// `hosts`
    Host,
    /// `paths`
    Path,
    /// `headers`, with the name of the first that failed.
    Header(String),
}

impl fmt::Display for Field {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Sni => out.write_str("snis"),
            Field::Method => out.write_str("methods"),
            Field::Host => out.write_str("hosts"),
            Field::Path => out.write_str("paths"),
            Field::Header(name) => write!(out, "headers.{name}"),
        }
    }
}

/// What became of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was chosen.
    Won,
    /// It fits too, but the chosen route comes first in the order.
    Outranked,
    /// It does not fit; this is the first field that failed.
    Failed(Field),
}

/// One route's part in a decision.
#[derive(Debug, Clone)]
pub struct Verdict<'r> {
    /// The route.
    pub route: &'r Arc<Route>,
    /// What became of it.
    pub outcome: Outcome,
    /// The priority of the part that fits, or the highest of all its parts; the greater is tried first.
    pub priority: u64,
    /// The path of the route that fits, as written.
    pub path: Option<&'r str>,
}

/// A decision, route by route: the winner, those it outranked in order, then those that do not fit.
#[derive(Debug, Clone)]
pub struct Explanation<'r> {
    /// One for each route.
    pub verdicts: Vec<Verdict<'r>>,
}

impl<'r> Explanation<'r> {
    /// The route chosen.
    pub fn winner(&self) -> Option<&Verdict<'r>> {
        self.verdicts.first().filter(|verdict| verdict.outcome == Outcome::Won)
    }
}

pub(crate) fn explain<'r>(router: &'r Router, request: &Request<'_>) -> Explanation<'r> {
    let target = Target::of(request);
    let unreadable = router.uses_paths && request.path.as_str().is_none();
    let mut ranked: Vec<_> = router
        .routes
        .iter()
        .map(|compiled| {
            let failed = if unreadable { Some(Field::Path) } else { first_failure(compiled, request, target) };
            let fits = |index: usize| compiled.parts[index].find_path(request.path.as_str()).is_some();
            let best = (0..compiled.parts.len())
                .filter(|index| failed.is_some() || fits(*index))
                .max_by_key(|index| compiled.parts[*index].order)
                .unwrap_or_default();
            (failed, compiled.parts[best].order, best, compiled)
        })
        .collect();
    let yields = |compiled: &Compiled| compiled.yields_plain && !request.https;
    ranked.sort_by_key(|(failed, order, _, compiled)| (failed.is_some(), yields(compiled), Reverse(*order)));
    let verdicts = ranked.into_iter().enumerate().map(|(index, (failed, order, best, compiled))| Verdict {
        route: &compiled.entry.route,
        path: if failed.is_none() { fitting_path(compiled, best, request) } else { None },
        outcome: match failed {
            Some(field) => Outcome::Failed(field),
            None if index == 0 => Outcome::Won,
            None => Outcome::Outranked,
        },
        priority: order.0,
    });
    Explanation { verdicts: verdicts.collect() }
}

fn first_failure(compiled: &Compiled, request: &Request<'_>, target: Target<'_>) -> Option<Field> {
    let conditions = &compiled.conditions;
    let path_fits = || compiled.parts.iter().any(|part| part.find_path(request.path.as_str()).is_some());
    if !conditions.match_sni(request) {
        Some(Field::Sni)
    } else if !conditions.match_method(request) {
        Some(Field::Method)
    } else if !conditions.match_host(target) {
        Some(Field::Host)
    } else if !path_fits() {
        Some(Field::Path)
    } else {
        conditions.missing_header(request).map(|name| Field::Header(name.to_owned()))
    }
}

/// The route's path that took the request's, as written in the route.
fn fitting_path<'r>(compiled: &'r Compiled, part: usize, request: &Request<'_>) -> Option<&'r str> {
    let (rule, _) = compiled.parts[part].find_path(request.path.as_str())??;
    compiled.entry.route.paths.iter().map(String::as_str).find(|path| rule.is_written(path))
}

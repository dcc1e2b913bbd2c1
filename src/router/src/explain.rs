//! Why a request took its route, and why it did not take the others.

use crate::compatible::Compatible;
use crate::compile::Compiled;
use crate::conditions::Target;
use crate::expressions::{Expressions, Written};
use crate::request::Request;
use crate::router::{Router, Table};
use crate::traditional::{OldPath, OldRoute, Traditional};
use gwctl_entities::view::Route;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

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
    /// `expression`, or the fields of a route where the flavor is `expressions`.
    Expression,
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
            Field::Expression => out.write_str("expression"),
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
    let mut judged = match &router.table {
        Table::Compatible(table) => compatible(table, request),
        Table::Traditional(table) => traditional(table, request),
        Table::Expressions(table) => expressions(table, request),
    };
    judged.sort_by_key(|one| (one.failed.is_some(), one.last, Reverse(one.order)));
    let verdicts = judged.into_iter().enumerate().map(|(index, one)| Verdict {
        route: one.route,
        path: one.path.filter(|_| one.failed.is_none()),
        outcome: match one.failed {
            Some(field) => Outcome::Failed(field),
            None if index == 0 => Outcome::Won,
            None => Outcome::Outranked,
        },
        priority: one.order.0,
    });
    Explanation { verdicts: verdicts.collect() }
}

/// A route held against a request.
struct Judged<'r> {
    route: &'r Arc<Route>,
    failed: Option<Field>,
    /// The part that fits, or else the first one; the greater is tried first.
    order: (u64, Uuid),
    /// Comes after all others that fit.
    last: bool,
    path: Option<&'r str>,
}

fn compatible<'r>(table: &'r Compatible, request: &Request<'_>) -> Vec<Judged<'r>> {
    let target = Target::of(request);
    let unreadable = table.is_unreadable(request);
    let judge = |compiled: &'r Arc<Compiled>| {
        let failed = if unreadable { Some(Field::Path) } else { first_failure(compiled, request, target) };
        let fits = |index: usize| compiled.parts[index].find_path(request.path.as_str()).is_some();
        let best = (0..compiled.parts.len())
            .filter(|index| failed.is_some() || fits(*index))
            .max_by_key(|index| compiled.parts[*index].order)
            .unwrap_or_default();
        Judged {
            route: &compiled.filed.route,
            failed,
            order: compiled.parts[best].order,
            last: compiled.yields_plain && !request.https,
            path: fitting_path(compiled, best, request),
        }
    };
    table.routes.values().map(judge).collect()
}

fn traditional<'r>(table: &'r Traditional, request: &Request<'_>) -> Vec<Judged<'r>> {
    let mut best: HashMap<&str, (bool, u64, Option<&OldPath>)> = HashMap::new();
    for (part, standing) in table.standings() {
        let path = part.path();
        let fits = path.is_none_or(|path| request.path.as_str().is_some_and(|text| path.fits(text)));
        let known = best.entry(&part.route.filed.route.id).or_insert((false, 0, None));
        if (fits, standing) >= (known.0, known.1) {
            *known = (fits, standing, path);
        }
    }
    let winner = table.find(request).map(|found| found.route.id.clone());
    let judge = |compiled: &'r Arc<OldRoute>| {
        let (_, standing, path) = best.get(&*compiled.filed.route.id).copied().unwrap_or_default();
        let won = winner.as_deref() == Some(&*compiled.filed.route.id);
        Judged {
            route: &compiled.filed.route,
            // What fits and is not found was passed over for its server names: plain HTTP has none.
            failed: match table.first_failure(compiled, request) {
                _ if won => None,
                None if winner.is_none() => Some(Field::Sni),
                failed => failed,
            },
            order: (standing, Uuid::nil()),
            last: !won,
            path: path.and_then(|path| compiled.written(path)),
        }
    };
    table.routes.values().map(judge).collect()
}

fn expressions<'r>(table: &'r Expressions, request: &Request<'_>) -> Vec<Judged<'r>> {
    let target = Target::of(request);
    let readable = !table.is_unreadable(request);
    let judge = |compiled: &'r Arc<Written>| {
        let parts = compiled.parts.iter().map(|part| (readable && part.holds(request, target), part.order));
        let (holds, order) = parts.max().unwrap_or_default();
        let failed = (!holds).then_some(Field::Expression);
        Judged { route: &compiled.filed.route, failed, order, last: false, path: None }
    };
    table.routes.values().map(judge).collect()
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
    compiled.filed.route.paths.iter().map(String::as_str).find(|path| rule.is_written(path))
}

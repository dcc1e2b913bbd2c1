//! The expression language of routes.
//!
//! `grammar` reads tokens, `ast` makes a tree of them, this module checks the tree against the fields there are and
//! runs it, `narrow` tells which requests cannot fit.

mod ast;
mod field;
mod grammar;
mod narrow;
#[cfg(test)]
mod tests;

use crate::conditions::Target;
use crate::matched::{Taken, UriCaptures};
use crate::pattern::Pattern;
use crate::request::Request;
use crate::transform;
pub(crate) use ast::Network;
use ast::{Node, Operator, Test, Transform, Value};
use field::{Field, Kind, Schema, Scope};
use gwctl_entities::view::Route;
pub(crate) use narrow::Narrow;
use std::borrow::Cow;
use std::net::IpAddr;

/// Begins every refusal.
const REFUSED: &str = "Router Expression failed validation: ";

/// Checks an expression for a route with these protocols.
///
/// # Errors
/// What is wrong, in the words of Kong 3.9.1: with the place for what cannot be read, in one line for fields that do
/// not exist and comparisons that make no sense.
pub fn check(text: &str, protocols: &[String]) -> Result<(), String> {
    let text = transform::amended(text);
    let refused = |fault: String| format!("{REFUSED}{fault}");
    let node = Node::parse(&text).map_err(refused)?;
    Program::new(&node, Schema::of(protocols)).map_err(refused)?;
    let mut names = Vec::new();
    gather(&node, &mut names);
    if names.into_iter().all(field::is_well_formed) {
        Ok(())
    } else {
        Err(refused("illformed http.path.segments.* field".to_owned()))
    }
}

/// Checks what a route asks of requests: its expression, or the one that its fields amount to.
///
/// This is what a control plane of flavor `traditional_compatible` or `expressions` holds against every route.
///
/// # Errors
/// See [`check`].
pub fn check_route(route: &Route) -> Result<(), String> {
    let fields = !route.methods.is_empty()
        || !route.hosts.is_empty()
        || !route.paths.is_empty()
        || !route.headers.is_empty()
        || !route.snis.is_empty()
        || !route.sources.is_empty()
        || !route.destinations.is_empty();
    match (&route.expression, fields) {
        (None, false) => Ok(()),
        (Some(_), true) => Err(format!(
            "{REFUSED}cannot set 'expression' with 'methods', 'hosts', 'paths', 'headers', 'snis', 'sources' or \
             'destinations' simultaneously"
        )),
        (Some(_), false) if route.regex_priority != 0 => {
            Err(format!("{REFUSED}cannot set 'regex_priority' with 'expression' simultaneously"))
        }
        (None, true) if route.priority.unwrap_or(0) != 0 => Err(format!(
            "{REFUSED}cannot set 'priority' with 'methods', 'hosts', 'paths', 'headers', 'snis', 'sources' or \
             'destinations' simultaneously"
        )),
        _ => check(&transform::expression(route), &route.protocols),
    }
}

fn gather<'n>(node: &'n Node, names: &mut Vec<&'n str>) {
    match node {
        Node::And(items) | Node::Or(items) => items.iter().for_each(|item| gather(item, names)),
        Node::Not(inner) => gather(inner, names),
        Node::Test(test) => names.push(&test.field),
    }
}

/// An expression that can be run.
#[derive(Debug)]
pub(crate) struct Program {
    /// All must hold. First come those that a place in the index proves, see [`Program::run`].
    all: Vec<Step>,
    /// How many those are.
    proven: usize,
    narrow: Narrow,
    /// Whether some regex has groups, so that what it took must be noted.
    has_groups: bool,
}

#[derive(Debug)]
enum Step {
    And(Vec<Step>),
    Or(Vec<Step>),
    Not(Box<Step>),
    Check(Check),
}

/// A comparison with its field found.
#[derive(Debug)]
struct Check {
    field: Field,
    lower: bool,
    any: bool,
    rule: Rule,
}

/// What a value is compared with.
#[derive(Debug)]
enum Rule {
    Equal(Box<str>),
    NotEqual(Box<str>),
    Prefix(Box<str>),
    Suffix(Box<str>),
    Contains(Box<str>),
    Regex(Box<Pattern>),
    Int(Operator, i64),
    Ip(bool, IpAddr),
    Network(bool, Network),
}

/// What an expression that holds leaves behind: what it took of the path and the groups of its regexes.
#[derive(Debug, Default)]
pub(crate) struct Trace<'r, 'q> {
    path: Option<Taken<'r, 'q>>,
    captures: UriCaptures,
    /// Groups are wanted.
    wants_groups: bool,
}

impl<'r, 'q> Trace<'r, 'q> {
    /// What was taken of the request's path, and the captures.
    pub(crate) fn outcome(self) -> (Taken<'r, 'q>, Option<UriCaptures>) {
        let UriCaptures { numbered, named } = &self.captures;
        let taken = numbered.iter().flatten().count() + named.len();
        (self.path.unwrap_or(Taken::Nothing), (taken > 1).then_some(self.captures))
    }
}

impl Program {
    /// Reads an expression and checks it against a schema.
    pub(crate) fn compile(text: &str, protocols: &[String]) -> Result<Self, String> {
        Program::new(&Node::parse(text)?, Schema::of(protocols))
    }

    fn new(node: &Node, schema: Schema) -> Result<Self, String> {
        let mut all = Vec::new();
        flatten(step(node, schema)?, &mut all);
        all.retain(|step| !narrow::always_holds(step));
        let narrow = narrow::narrow(&all);
        let (mut paths, mut has_groups) = (0, false);
        all.iter().for_each(|step| {
            step.each(&mut |check| {
                paths += usize::from(check.field == Field::Path);
                has_groups |= matches!(&check.rule, Rule::Regex(pattern) if pattern.source().contains('('));
            });
        });
        // The last comparison of the path says what is taken of it: only an only one may change its place.
        let (proven, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|step| narrow.proves(step, paths == 1));
        let count = proven.len();
        Ok(Program { all: proven.into_iter().chain(rest).collect(), proven: count, narrow, has_groups })
    }

    /// Whether any part looks at the path.
    pub(crate) fn uses_path(&self) -> bool {
        let mut uses = false;
        self.all.iter().for_each(|step| step.each(&mut |check| uses |= check.field.is_of_path()));
        uses
    }

    /// Which requests cannot fit.
    pub(crate) fn narrow(&self) -> &Narrow {
        &self.narrow
    }

    /// Whether it holds for a request.
    pub(crate) fn holds(&self, request: &Request<'_>, target: Target<'_>) -> bool {
        let scope = Scope { request, target };
        self.all.iter().all(|step| step.holds(&scope, None))
    }

    /// Whether it holds for every request that has a host and a beginning of a path of [`Program::narrow`].
    pub(crate) fn is_proven(&self) -> bool {
        self.proven == self.all.len()
    }

    /// Runs it for a request that has a host and a beginning of a path of [`Program::narrow`]; None when it does not
    /// hold.
    pub(crate) fn run<'r, 'q>(&'r self, request: &Request<'q>, target: Target<'q>) -> Option<Trace<'r, 'q>> {
        self.run_from(self.proven, request, target)
    }

    /// Runs all of it for any request.
    #[cfg(test)]
    pub(crate) fn run_whole<'r, 'q>(&'r self, request: &Request<'q>, target: Target<'q>) -> Option<Trace<'r, 'q>> {
        self.run_from(0, request, target)
    }

    fn run_from<'r, 'q>(&'r self, first: usize, request: &Request<'q>, target: Target<'q>) -> Option<Trace<'r, 'q>> {
        let scope = Scope { request, target };
        let mut trace = self.begin();
        self.all[first..].iter().all(|step| step.holds(&scope, Some(&mut trace))).then_some(trace)
    }

    /// What is left behind by what the index proves.
    pub(crate) fn begin<'r, 'q>(&'r self) -> Trace<'r, 'q> {
        let path = self.all[..self.proven].iter().find_map(|step| match step {
            Step::Check(Check { field: Field::Path, rule: Rule::Prefix(text), .. }) => Some(Taken::Written(text)),
            _ => None,
        });
        Trace { path, captures: UriCaptures::default(), wants_groups: self.has_groups }
    }
}

/// The steps of nested conjunctions in one list.
fn flatten(step: Step, all: &mut Vec<Step>) {
    match step {
        Step::And(items) => items.into_iter().for_each(|item| flatten(item, all)),
        other => all.push(other),
    }
}

fn step(node: &Node, schema: Schema) -> Result<Step, String> {
    let all = |items: &[Node]| items.iter().map(|item| step(item, schema)).collect::<Result<Vec<_>, _>>();
    match node {
        Node::And(items) => all(items).map(Step::And),
        Node::Or(items) => all(items).map(Step::Or),
        Node::Not(inner) => Ok(Step::Not(Box::new(step(inner, schema)?))),
        Node::Test(test) => check_of(test, schema).map(Step::Check),
    }
}

/// Finds the field of a comparison and checks that the comparison makes sense for it.
///
/// Source: atc-router 1.6.2 `src/semantics.rs`, whose order of checks and wording this keeps.
fn check_of(test: &Test, schema: Schema) -> Result<Check, String> {
    let field = Field::parse(&test.field, schema).ok_or("Unknown LHS field")?;
    let kind = field.kind();
    let lower = test.transforms.contains(&Transform::Lower);
    let same = match &test.value {
        Value::Text(_) => kind == Kind::Text,
        Value::Int(_) => kind == Kind::Int,
        Value::Ip(_) => kind == Kind::Ip,
        Value::Regex(_) | Value::Network(_) => false,
    };
    if !same && !matches!(test.operator, Operator::Regex | Operator::In | Operator::NotIn) {
        return Err("Type mismatch between the LHS and RHS values of predicate".to_owned());
    }
    if lower && kind != Kind::Text {
        return Err("lower-case transformation function only supported with String type fields".to_owned());
    }
    let rule = match (test.operator, &test.value) {
        (Operator::Regex, Value::Regex(pattern)) if kind == Kind::Text => Rule::Regex(pattern.clone()),
        (Operator::Regex, _) => return Err("Regex operators only supports string operands".to_owned()),
        (Operator::In | Operator::NotIn, Value::Network(network)) if kind == Kind::Ip => {
            Rule::Network(test.operator == Operator::In, *network)
        }
        (Operator::In | Operator::NotIn, _) => {
            return Err("In/NotIn operators only supports IP in CIDR".to_owned());
        }
        (Operator::Equal, Value::Text(text)) => Rule::Equal(text.clone()),
        (Operator::NotEqual, Value::Text(text)) => Rule::NotEqual(text.clone()),
        (Operator::Prefix, Value::Text(text)) => Rule::Prefix(text.clone()),
        (Operator::Suffix, Value::Text(text)) => Rule::Suffix(text.clone()),
        (Operator::Contains, Value::Text(text)) => Rule::Contains(text.clone()),
        (Operator::Prefix | Operator::Suffix, _) => {
            return Err("Regex/Prefix/Postfix operators only supports string operands".to_owned());
        }
        (Operator::Contains, _) => return Err("Contains operator only supports string operands".to_owned()),
        (Operator::Equal, Value::Ip(address)) => Rule::Ip(true, *address),
        (Operator::NotEqual, Value::Ip(address)) => Rule::Ip(false, *address),
        (operator, Value::Int(number)) => Rule::Int(operator, *number),
        _ => {
            return Err(
                "Greater/GreaterOrEqual/Lesser/LesserOrEqual operators only supports integer operands".to_owned()
            );
        }
    };
    Ok(Check { field, lower, any: test.transforms.contains(&Transform::Any), rule })
}

impl Step {
    fn each(&self, visit: &mut dyn FnMut(&Check)) {
        match self {
            Step::And(items) | Step::Or(items) => items.iter().for_each(|item| item.each(visit)),
            Step::Not(inner) => inner.each(visit),
            Step::Check(check) => visit(check),
        }
    }

    fn holds<'r, 'q>(&'r self, scope: &Scope<'_, 'q>, mut trace: Option<&mut Trace<'r, 'q>>) -> bool {
        match self {
            Step::And(items) => items.iter().all(|item| item.holds(scope, trace.as_deref_mut())),
            Step::Or(items) => items.iter().any(|item| item.holds(scope, trace.as_deref_mut())),
            Step::Not(inner) => !inner.holds(scope, trace),
            Step::Check(check) => check.holds(scope, trace),
        }
    }
}

impl Check {
    /// A field that a request lacks meets no comparison, not even `!=`.
    fn holds<'r, 'q>(&'r self, scope: &Scope<'_, 'q>, mut trace: Option<&mut Trace<'r, 'q>>) -> bool {
        match (&self.rule, &self.field) {
            (Rule::Int(operator, number), field) => {
                scope.int(field).is_some_and(|value| compare(value, *operator, *number))
            }
            (Rule::Ip(wanted, address), field) => scope.ip(field).is_some_and(|value| (value == *address) == *wanted),
            (Rule::Network(wanted, network), field) => {
                scope.ip(field).is_some_and(|value| network.contains(value) == *wanted)
            }
            (_, field @ (Field::Header(..) | Field::Query(_))) => {
                // All values must fit, or with `any` one: the search is for the first that decides.
                let mut decides =
                    |value: Option<&str>| value.is_some_and(|value| self.fits(value, trace.as_deref_mut())) == self.any;
                scope.any_value(field, &mut decides).is_some_and(|decided| decided == self.any)
            }
            (_, field) => scope.text(field).is_some_and(|value| self.fits_path(value, trace)),
        }
    }

    /// Compares a value and notes what the comparison took of the path.
    fn fits_path<'r, 'q>(&'r self, value: &'q str, trace: Option<&mut Trace<'r, 'q>>) -> bool {
        let Some(trace) = trace else { return self.fits(value, None) };
        if self.field != Field::Path {
            return self.fits(value, Some(trace));
        }
        let taken = match &self.rule {
            Rule::Regex(pattern) if self.lower => {
                take(pattern, &value.to_lowercase(), trace).map(|part| Taken::Lowered(part.into()))
            }
            Rule::Regex(pattern) => take(pattern, value, trace).map(Taken::Path),
            _ if !self.fits(value, None) => None,
            Rule::Equal(text) | Rule::Prefix(text) | Rule::Suffix(text) => Some(Taken::Written(text)),
            _ => return true,
        };
        let fits = taken.is_some();
        trace.path = taken.or(trace.path.take());
        fits
    }

    /// Compares a value, and notes the groups of a regex that matches.
    fn fits(&self, value: &str, trace: Option<&mut Trace<'_, '_>>) -> bool {
        let value = if self.lower && value.bytes().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii()) {
            Cow::Owned(value.to_lowercase())
        } else {
            Cow::Borrowed(value)
        };
        match &self.rule {
            Rule::Equal(text) => **text == *value,
            Rule::NotEqual(text) => **text != *value,
            Rule::Prefix(text) => value.starts_with(&**text),
            Rule::Suffix(text) => value.ends_with(&**text),
            Rule::Contains(text) => value.contains(&**text),
            Rule::Regex(pattern) => match trace {
                Some(trace) if trace.wants_groups => take(pattern, &value, trace).is_some(),
                _ => pattern.is_match(&value),
            },
            Rule::Int(..) | Rule::Ip(..) | Rule::Network(..) => false,
        }
    }
}

/// What a regex takes of a text; notes its groups when they are wanted.
fn take<'t>(pattern: &Pattern, text: &'t str, trace: &mut Trace<'_, '_>) -> Option<&'t str> {
    if !trace.wants_groups {
        return pattern.find(text).map(|(start, end)| &text[start..end]);
    }
    let groups = pattern.groups(text)?;
    trace.captures.overlay(&groups);
    groups.first()?.1
}

fn compare(value: i64, operator: Operator, number: i64) -> bool {
    match operator {
        Operator::Equal => value == number,
        Operator::NotEqual => value != number,
        Operator::Greater => value > number,
        Operator::GreaterOrEqual => value >= number,
        Operator::Less => value < number,
        Operator::LessOrEqual => value <= number,
        _ => false,
    }
}

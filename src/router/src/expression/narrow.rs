//! What requests must have in common to fit an expression.

use super::field::Field;
use super::{Check, Rule, Step};
use crate::conditions::Affix;
use crate::pattern::literal_prefix;

/// Hosts and beginnings of paths of which a request must have one. None: any.
#[derive(Debug, Default)]
pub(crate) struct Narrow {
    pub(crate) hosts: Option<Vec<Affix>>,
    pub(crate) prefixes: Option<Vec<Box<str>>>,
}

impl Narrow {
    /// Whether a step holds for every request that has one of the hosts and beginnings. Of a path that is only asked
    /// for one: what was taken is then known.
    pub(super) fn proves(&self, step: &Step, is_only_path: bool) -> bool {
        let of_step = of_step(step);
        match step {
            Step::Check(Check { field: Field::Path, rule: Rule::Prefix(_), .. }) => {
                is_only_path && of_step.prefixes.is_some() && of_step.prefixes == self.prefixes
            }
            Step::Check(_) | Step::Or(_) => is_of_hosts(step) && of_step.hosts.is_some() && of_step.hosts == self.hosts,
            Step::And(_) | Step::Not(_) => false,
        }
    }
}

/// Whether it asks for hosts and nothing else. An empty text is met by the end of every host, not by a missing one.
fn is_of_hosts(step: &Step) -> bool {
    match step {
        Step::Check(Check { field: Field::Host, rule, .. }) => {
            matches!(rule, Rule::Equal(text) | Rule::Suffix(text) | Rule::Prefix(text) if !text.is_empty())
        }
        Step::Or(items) => items.iter().all(is_of_hosts),
        _ => false,
    }
}

/// Whether it names all protocols that a request can have.
pub(super) fn always_holds(step: &Step) -> bool {
    let Step::Or(items) = step else { return false };
    ["http", "https"].iter().all(|protocol| {
        items.iter().any(|item| {
            matches!(item, Step::Check(Check { field: Field::Protocol, rule: Rule::Equal(text), .. }) if **text == **protocol)
        })
    })
}

/// Of steps that must all hold.
pub(super) fn narrow(all: &[Step]) -> Narrow {
    all.iter().map(of_step).fold(Narrow::default(), |one, other| Narrow {
        hosts: fewer(one.hosts, other.hosts, |_| 0),
        prefixes: fewer(one.prefixes, other.prefixes, |prefix| prefix.len()),
    })
}

fn of_step(step: &Step) -> Narrow {
    match step {
        Step::And(items) => narrow(items),
        Step::Or(items) => {
            let mut items = items.iter().map(of_step);
            let first = items.next().unwrap_or_default();
            items.fold(first, |one, other| Narrow {
                hosts: both(one.hosts, other.hosts),
                prefixes: both(one.prefixes, other.prefixes),
            })
        }
        Step::Not(_) => Narrow::default(),
        Step::Check(check) => of_check(check),
    }
}

/// Any of two lists that must both be met is enough: the shorter one, of equals the one that says more.
fn fewer<T>(one: Option<Vec<T>>, other: Option<Vec<T>>, says: fn(&T) -> usize) -> Option<Vec<T>> {
    let least = |list: &[T]| list.iter().map(says).min().unwrap_or(0);
    match (one, other) {
        (Some(one), Some(other)) if (other.len(), least(&one)) < (one.len(), least(&other)) => Some(other),
        (one, other) => one.or(other),
    }
}

fn both<T>(one: Option<Vec<T>>, other: Option<Vec<T>>) -> Option<Vec<T>> {
    let mut all = one?;
    all.extend(other?);
    Some(all)
}

fn of_check(check: &Check) -> Narrow {
    let hosts = |name: Affix| Narrow { hosts: Some(vec![name]), prefixes: None };
    let prefixes = |prefix: &str| Narrow { hosts: None, prefixes: Some(vec![prefix.into()]) };
    match (&check.field, &check.rule) {
        _ if check.lower => Narrow::default(),
        (Field::Host, Rule::Equal(text)) => hosts(Affix::Exact(text.clone())),
        (Field::Host, Rule::Suffix(text)) => hosts(Affix::Suffix(text.clone())),
        (Field::Host, Rule::Prefix(text)) => hosts(Affix::Prefix(text.clone())),
        (Field::Path, Rule::Equal(text) | Rule::Prefix(text)) => prefixes(text),
        (Field::Path, Rule::Regex(pattern)) => match pattern.source().strip_prefix('^').map(literal_prefix) {
            Some(prefix) if !prefix.is_empty() => prefixes(&prefix),
            _ => Narrow::default(),
        },
        _ => Narrow::default(),
    }
}

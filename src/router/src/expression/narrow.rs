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

pub(super) fn narrow(step: &Step) -> Narrow {
    match step {
        Step::And(items) => items.iter().map(narrow).fold(Narrow::default(), |one, other| Narrow {
            hosts: fewer(one.hosts, other.hosts, |_| 0),
            prefixes: fewer(one.prefixes, other.prefixes, |prefix| prefix.len()),
        }),
        Step::Or(items) => {
            let mut items = items.iter().map(narrow);
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

//! The values that any route asks for.

use super::host::{AskedHost, OldHost};
use super::part::{OldPart, Standing};
use super::route::{HeaderName, OldPath, OldRoute};
use crate::index::Index;
use crate::list::List;
use crate::request::Request;
use crate::trie::Trie;
use imbl::{HashMap, OrdMap};
use std::cmp::Ordering;

/// How many routes or parts have each of some values.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts(HashMap<Box<str>, u32>);

impl Counts {
    pub(crate) fn get(&self, value: &str) -> Option<u32> {
        self.0.get(value).copied()
    }

    pub(crate) fn has(&self, value: &str) -> bool {
        self.0.contains_key(value)
    }

    /// Counts a value once more (true) or once less.
    pub(crate) fn count(&mut self, value: &str, more: bool) {
        match self.0.get_mut(value) {
            Some(count) if more => *count += 1,
            Some(count) if *count > 1 => *count -= 1,
            Some(_) => _ = self.0.remove(value),
            None if more => _ = self.0.insert(value.into(), 1),
            None => {}
        }
    }
}

/// A part with one of its route's wildcards, by number; in the order of the parts.
type WithHost = (OldPart, u32);

/// See the module.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    hosts: Counts,
    wildcards: Index<WithHost>,
    headers: OrdMap<Box<str>, (HeaderName, Option<List<OldPart>>)>,
    methods: Counts,
    snis: Counts,
    /// How many parts have a prefix.
    prefixes: Trie<u32>,
    /// Parts by what their regexes begin with.
    regexes: Trie<List<OldPart>>,
    /// How many hosts name a port.
    ports: usize,
}

impl Known {
    /// Takes a part in (true) or out.
    pub(crate) fn edit(&mut self, part: &OldPart, add: bool) {
        for (host, number) in part.route.hosts.iter().zip(0..) {
            self.ports = if !host.asks_port() {
                self.ports
            } else if add {
                self.ports + 1
            } else {
                self.ports - 1
            };
            if host.is_wildcard() {
                let (host, filed) = (std::iter::once(&host.filed), [((part.clone(), number), "")]);
                if add { self.wildcards.add(host, &filed) } else { self.wildcards.remove(host, &filed) }
            } else {
                self.hosts.count(&host.value, add);
            }
        }
        part.route.headers.iter().for_each(|header| self.edit_header(&header.name, part, add));
        part.route.methods.iter().for_each(|method| self.methods.count(method, add));
        part.route.snis.iter().for_each(|sni| self.snis.count(sni, add));
        match part.path() {
            Some(OldPath::Prefix(prefix)) => self.prefixes.edit(prefix.as_bytes(), |count| {
                let parts = count.unwrap_or(0);
                *count = Some(if add { parts + 1 } else { parts - 1 }).filter(|parts| *parts > 0);
            }),
            Some(regex) => self.regexes.edit(regex.literal().as_bytes(), |list| match add {
                true => List::insert(list, part.clone()),
                false => List::remove(list, part),
            }),
            None => {}
        }
    }

    fn edit_header(&mut self, name: &HeaderName, part: &OldPart, add: bool) {
        let (_, parts) = self.headers.entry(name.lower.clone()).or_insert_with(|| (name.clone(), None));
        if add {
            List::insert(parts, part.clone());
        } else {
            List::remove(parts, part);
            if parts.is_none() {
                self.headers.remove(&name.lower);
            }
        }
    }

    /// Whether a request's host can only be told apart with its port.
    pub(crate) fn ports_matter(&self) -> bool {
        self.ports > 0
    }

    pub(crate) fn has_host(&self, host: &AskedHost<'_>) -> bool {
        self.hosts.has(host.bare) || self.hosts.has(&host.full)
    }

    pub(crate) fn has_method(&self, method: &str) -> bool {
        self.methods.has(method)
    }

    pub(crate) fn has_sni(&self, sni: &str) -> bool {
        self.snis.has(sni)
    }

    /// The wildcard that fits, of several that of the first part.
    pub(crate) fn first_wildcard(&self, host: &AskedHost<'_>, standing: &Standing<'_>) -> Option<&str> {
        let mut best: Option<&WithHost> = None;
        for form in host.forms() {
            self.wildcards.candidates(form, b"", |list| {
                for filed in list.iter() {
                    let known = best.map(|best| (best, standing.roughly(&filed.0, &best.0)));
                    match known {
                        Some((_, Ordering::Greater)) => return,
                        // The same value again says nothing new.
                        Some((best, Ordering::Equal)) if wildcard(best).value == wildcard(filed).value => continue,
                        _ => {}
                    }
                    let precedes =
                        |best: &WithHost| standing.exactly(&filed.0, &best.0).then(filed.1.cmp(&best.1)).is_lt();
                    if wildcard(filed).fits_wildcard(host) && best.is_none_or(precedes) {
                        best = Some(filed);
                    }
                }
            });
        }
        best.map(|best| &*wildcard(best).value)
    }

    /// The header that the request has, of several that of the first part.
    pub(crate) fn first_header(&self, request: &Request<'_>, standing: &Standing<'_>) -> Option<&str> {
        let mut best: Option<(&HeaderName, &List<OldPart>)> = None;
        for (name, parts) in self.headers.values() {
            let Some(parts) = parts.as_ref().filter(|_| name.is_in(request)) else { continue };
            if best.is_none_or(|best| standing.header_precedes((name, parts), best)) {
                best = Some((name, parts));
            }
        }
        best.map(|(name, _)| &*name.lower)
    }

    /// The regex that fits, of several that of the first part; else the longest prefix.
    pub(crate) fn first_path<'a>(&'a self, path: &'a str, standing: &Standing<'_>) -> Option<&'a str> {
        let mut best: Option<(&OldPart, &OldPath)> = None;
        self.regexes.prefixes(path.as_bytes(), |list| {
            for part in list.iter() {
                let Some(rule) = part.path() else { continue };
                match best.map(|(known, known_rule)| (standing.roughly(part, known), known_rule)) {
                    Some((Ordering::Greater, _)) => return,
                    Some((Ordering::Equal, known)) if known.value() == rule.value() => continue,
                    _ => {}
                }
                let precedes = |(known, _)| standing.exactly(part, known).is_lt();
                if rule.fits(path) && best.is_none_or(precedes) {
                    best = Some((part, rule));
                }
            }
        });
        best.map(|(_, rule)| rule.value()).or_else(|| path.get(..self.prefixes.longest(path.as_bytes())?.0))
    }
}

fn wildcard((part, number): &WithHost) -> &OldHost {
    &part.route.hosts[*number as usize]
}

/// Whether a route has a header.
pub(crate) fn has_header(route: &OldRoute, name: &str) -> bool {
    route.headers.iter().any(|header| *header.name.lower == *name)
}

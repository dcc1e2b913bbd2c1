//! Routes that use the same kinds of fields.

use super::Asked;
use super::host::AskedHost;
use super::route::{OldPath, OldRoute, rule};
use crate::index::Index;
use crate::trie::{ANY_PATH, Filed};
use std::collections::HashMap;

/// The parts of routes that use the same kinds of fields.
#[derive(Debug, Default)]
pub(crate) struct Category {
    pub(crate) rules: u8,
    /// The parts by host and path.
    pub(crate) index: Index,
    hosts: HashMap<Box<str>, u32>,
    headers: HashMap<Box<str>, u32>,
    paths: HashMap<Box<str>, u32>,
    methods: HashMap<Box<str>, u32>,
    snis: HashMap<Box<str>, u32>,
}

/// The value of a field that the fewest routes share; those routes are tried before the others of their category.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Key<'a> {
    Host(&'a str),
    Header(&'a str),
    Path(&'a str),
    Method(&'a str),
    Sni(&'a str),
}

impl Key<'_> {
    /// Whether a part of a route has the value.
    pub(crate) fn is_of(self, route: &OldRoute, path: Option<&OldPath>) -> bool {
        match self {
            Key::Host(name) => route.hosts.iter().any(|host| *host.value == *name),
            Key::Header(name) => route.headers.iter().any(|header| *header.name.lower == *name),
            Key::Path(value) => path.is_some_and(|path| path.value() == value),
            Key::Method(name) => route.methods.iter().any(|method| **method == *name),
            Key::Sni(name) => route.snis.iter().any(|sni| **sni == *name),
        }
    }
}

impl Category {
    /// An empty one.
    pub(crate) fn of(rules: u8) -> Self {
        Category { rules, ..Category::default() }
    }

    /// Takes a part in. Ranks must come in ascending order.
    pub(crate) fn add(&mut self, rank: u32, route: &OldRoute, path: Option<&OldPath>) {
        let count = |map: &mut HashMap<Box<str>, u32>, key: &str| match map.get_mut(key) {
            Some(count) => *count += 1,
            None => {
                map.insert(key.into(), 1);
            }
        };
        route.hosts.iter().for_each(|host| count(&mut self.hosts, &host.value));
        route.headers.iter().for_each(|header| count(&mut self.headers, &header.name.lower));
        route.methods.iter().for_each(|method| count(&mut self.methods, method));
        route.snis.iter().for_each(|sni| count(&mut self.snis, sni));
        path.into_iter().for_each(|path| count(&mut self.paths, path.value()));
        let hosts = route.hosts.iter().map(|host| &host.filed);
        self.index.add(rank, hosts, path.into_iter().map(|path| (ANY_PATH, path.literal())));
    }

    /// The list of routes to try first: by header when there is one, else the shortest, the earlier kind on a tie.
    pub(crate) fn shortest<'a>(&self, asked: &Asked<'a>) -> Option<Key<'a>> {
        let of = |map: &HashMap<Box<str>, u32>, value: Option<&str>| value.and_then(|value| map.get(value).copied());
        let uses = |rule| self.rules & rule != 0;
        let host = asked.first_host.or(asked.host.as_ref().map(|host| host.raw)).filter(|_| uses(rule::HOST));
        let header = asked.first_header.filter(|_| uses(rule::HEADER));
        if let Some(name) = header.filter(|name| self.headers.contains_key(*name)) {
            return Some(Key::Header(name));
        }
        let path = asked.first_path.filter(|_| uses(rule::PATH));
        let method = Some(asked.method).filter(|_| uses(rule::METHOD));
        let sni = asked.sni.filter(|_| uses(rule::SNI));
        [
            (of(&self.hosts, host), host.map(Key::Host)),
            (of(&self.paths, path), path.map(Key::Path)),
            (of(&self.methods, method), method.map(Key::Method)),
            (of(&self.snis, sni), sni.map(Key::Sni)),
        ]
        .into_iter()
        .filter_map(|(count, key)| Some((count?, key?)))
        .min_by_key(|(count, _)| *count)
        .map(|(_, key)| key)
    }

    /// Calls `try_list` with each list of parts whose hosts and paths may fit.
    pub(crate) fn candidates(&self, host: Option<&AskedHost<'_>>, path: &[u8], mut try_list: impl FnMut(&[Filed])) {
        match host.filter(|_| self.rules & rule::HOST != 0) {
            Some(host) => host.forms().for_each(|form| self.index.candidates(form, path, &mut try_list)),
            None => self.index.candidates("", path, try_list),
        }
    }
}

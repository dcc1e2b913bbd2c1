//! Routes that use the same kinds of fields.

use super::Asked;
use super::host::AskedHost;
use super::known::{Counts, has_header};
use super::part::OldPart;
use super::route::rule;
use crate::index::Index;
use crate::list::List;

/// The parts of routes that use the same kinds of fields.
#[derive(Debug, Clone, Default)]
pub(crate) struct Category {
    pub(crate) rules: u8,
    /// How many parts there are.
    pub(crate) parts: usize,
    /// The parts by host and path.
    index: Index<OldPart>,
    hosts: Counts,
    headers: Counts,
    paths: Counts,
    methods: Counts,
    snis: Counts,
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
    pub(crate) fn is_of(self, part: &OldPart) -> bool {
        let route = &*part.route;
        match self {
            Key::Host(name) => route.hosts.iter().any(|host| *host.value == *name),
            Key::Header(name) => has_header(route, name),
            Key::Path(value) => part.path().is_some_and(|path| path.value() == value),
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

    /// Takes a part in (true) or out.
    pub(crate) fn edit(&mut self, part: &OldPart, add: bool) {
        let route = &*part.route;
        route.hosts.iter().for_each(|host| self.hosts.count(&host.value, add));
        route.headers.iter().for_each(|header| self.headers.count(&header.name.lower, add));
        route.methods.iter().for_each(|method| self.methods.count(method, add));
        route.snis.iter().for_each(|sni| self.snis.count(sni, add));
        part.path().into_iter().for_each(|path| self.paths.count(path.value(), add));
        let hosts = route.hosts.iter().map(|host| &host.filed);
        let filed = [(part.clone(), part.path().map_or("", |path| path.literal()))];
        if add {
            self.parts += 1;
            self.index.add(hosts, &filed);
        } else {
            self.parts -= 1;
            self.index.remove(hosts, &filed);
        }
    }

    /// The list of routes to try first: by header when there is one, else the shortest, the earlier kind on a tie.
    pub(crate) fn shortest<'a>(&self, asked: &Asked<'a>) -> Option<Key<'a>> {
        let of = |counts: &Counts, value: Option<&str>| value.and_then(|value| counts.get(value));
        let uses = |rule| self.rules & rule != 0;
        let host = asked.first_host.or(asked.host.as_ref().map(|host| host.raw)).filter(|_| uses(rule::HOST));
        let header = asked.first_header.filter(|_| uses(rule::HEADER));
        if let Some(name) = header.filter(|name| self.headers.has(name)) {
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
    pub(crate) fn candidates<'c>(
        &'c self,
        host: Option<&AskedHost<'_>>,
        path: &[u8],
        mut try_list: impl FnMut(&'c List<OldPart>),
    ) {
        match host.filter(|_| self.rules & rule::HOST != 0) {
            Some(host) => host.forms().for_each(|form| self.index.candidates(form, path, &mut try_list)),
            None => self.index.candidates("", path, try_list),
        }
    }
}

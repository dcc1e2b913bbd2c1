//! Finds the candidates for a request without trying every matcher: by host, then by the start of the path.
//!
//! A matcher is filed once for each of its hosts and paths: in the tree of the host, under the prefix that a path must
//! have. What a tree yields for a request is a superset of what fits; the router checks the rest.

use crate::conditions::Affix;
use crate::trie::{ANY_PATH, Filed, Forest, NodeId};
use std::collections::HashMap;

/// The candidates of a router by host and path.
#[derive(Debug, Default)]
pub(crate) struct Index {
    forest: Forest,
    exact: HashMap<Box<str>, NodeId>,
    /// `*.name` under `.name`.
    suffixes: HashMap<Box<str>, NodeId>,
    /// `name.*` under `name.`.
    prefixes: HashMap<Box<str>, NodeId>,
    /// Wildcards that do not stand at a dot.
    others: Vec<(Affix, NodeId)>,
    /// Matchers without hosts.
    any: Option<NodeId>,
}

impl Index {
    /// Files a matcher under each of its hosts (none: any) and under what its paths begin with (none: any).
    ///
    /// Paths come with their number, which `Filed::path` gives back. Ranks must come in ascending order.
    pub(crate) fn add<'a>(
        &mut self,
        rank: u32,
        hosts: impl Iterator<Item = &'a Affix>,
        prefixes: impl Iterator<Item = (u32, &'a str)> + Clone,
    ) {
        let mut hosts: Vec<NodeId> = hosts.map(|name| self.tree(name)).collect();
        if hosts.is_empty() {
            let forest = &mut self.forest;
            hosts.push(*self.any.get_or_insert_with(|| forest.plant()));
        }
        // Two host rules that differ in the port share a tree.
        hosts.sort_unstable();
        hosts.dedup();
        for root in hosts {
            if prefixes.clone().next().is_none() {
                self.forest.file(root, b"", Filed { rank, path: ANY_PATH });
            }
            for (path, prefix) in prefixes.clone() {
                self.forest.file(root, prefix.as_bytes(), Filed { rank, path });
            }
        }
    }

    fn tree(&mut self, name: &Affix) -> NodeId {
        let forest = &mut self.forest;
        let (map, key) = match name {
            Affix::Exact(host) => (&mut self.exact, host),
            Affix::Suffix(suffix) if suffix.starts_with('.') => (&mut self.suffixes, suffix),
            Affix::Prefix(prefix) if prefix.ends_with('.') => (&mut self.prefixes, prefix),
            other => {
                if let Some((_, root)) = self.others.iter().find(|(known, _)| known == other) {
                    return *root;
                }
                let root = forest.plant();
                self.others.push((other.clone(), root));
                return root;
            }
        };
        if let Some(root) = map.get(key) {
            return *root;
        }
        let root = forest.plant();
        map.insert(key.clone(), root);
        root
    }

    /// Calls `try_list` with each list of candidates; lists are in order, likely winners come first.
    ///
    /// Every candidate is filed under a host rule that fits `host`, ports aside, and under a prefix of `path`.
    pub(crate) fn candidates(&self, host: &str, path: &[u8], mut try_list: impl FnMut(&[Filed])) {
        let mut visit = |root: Option<&NodeId>| {
            if let Some(root) = root {
                self.forest.prefixes_of(*root, path).for_each(&mut try_list);
            }
        };
        visit(self.exact.get(host));
        let dots = || host.bytes().enumerate().filter(|(_, byte)| *byte == b'.').map(|(index, _)| index);
        if !self.suffixes.is_empty() {
            dots().for_each(|dot| visit(self.suffixes.get(&host[dot..])));
        }
        if !self.prefixes.is_empty() {
            dots().for_each(|dot| visit(self.prefixes.get(&host[..=dot])));
        }
        self.others.iter().filter(|(name, _)| name.matches(host)).for_each(|(_, root)| visit(Some(root)));
        visit(self.any.as_ref());
    }
}

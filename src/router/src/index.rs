//! Finds the candidates for a request without trying every matcher: by host, then by the start of the path.
//!
//! A matcher is filed once for each of its hosts and paths: in the tree of the host, under the prefix that a path must
//! have. What a tree yields for a request is a superset of what fits; the router checks the rest. All of it is
//! persistent: filing a matcher copies the few nodes that lead to it.

use crate::conditions::Affix;
use crate::list::List;
use crate::trie::Trie;

/// Lists of matchers by what a path begins with.
pub(crate) type Tree<T> = Trie<List<T>>;

/// The candidates of a router by host and path; `T` is a matcher, ordered as it is tried.
#[derive(Debug, Clone)]
pub(crate) struct Index<T: Ord> {
    exact: Trie<Tree<T>>,
    /// `*name` under the bytes of `name` from the last to the first.
    suffixes: Trie<Tree<T>>,
    /// `name*` under `name`.
    prefixes: Trie<Tree<T>>,
    /// Matchers without hosts.
    any: Tree<T>,
}

impl<T: Ord> Default for Index<T> {
    fn default() -> Self {
        Index { exact: Trie::default(), suffixes: Trie::default(), prefixes: Trie::default(), any: Trie::default() }
    }
}

/// Longest host that is turned round without allocating.
const HOST_LENGTH: usize = 255;

impl<T: Ord + Clone> Index<T> {
    /// Files matchers under each of the hosts (none: any), each under what its path begins with.
    pub(crate) fn add<'a>(&mut self, hosts: impl Iterator<Item = &'a Affix>, filed: &[(T, &str)]) {
        self.edit(hosts, |tree| {
            for (item, prefix) in filed {
                tree.edit(prefix.as_bytes(), |list| List::insert(list, item.clone()));
            }
        });
    }

    /// Takes out what was filed in the same way.
    pub(crate) fn remove<'a>(&mut self, hosts: impl Iterator<Item = &'a Affix>, filed: &[(T, &str)]) {
        self.edit(hosts, |tree| {
            for (item, prefix) in filed {
                tree.edit(prefix.as_bytes(), |list| List::remove(list, item));
            }
        });
    }

    fn edit<'a>(&mut self, hosts: impl Iterator<Item = &'a Affix>, edit: impl Fn(&mut Tree<T>)) {
        let mut is_any = true;
        let edit_below = |place: &mut Option<Tree<T>>| {
            let tree = place.get_or_insert_default();
            edit(tree);
            if tree.is_empty() {
                *place = None;
            }
        };
        for host in hosts {
            is_any = false;
            match host {
                Affix::Exact(name) => self.exact.edit(name.as_bytes(), edit_below),
                Affix::Suffix(suffix) => {
                    let reversed: Vec<u8> = suffix.bytes().rev().collect();
                    self.suffixes.edit(&reversed, edit_below);
                }
                Affix::Prefix(prefix) => self.prefixes.edit(prefix.as_bytes(), edit_below),
            }
        }
        if is_any {
            edit(&mut self.any);
        }
    }

    /// Calls `try_list` with each list of candidates; lists are in order, likely winners come first.
    ///
    /// Every candidate is filed under a host rule that fits `host`, ports aside, and under a prefix of `path`.
    pub(crate) fn candidates<'i>(&'i self, host: &str, path: &[u8], mut try_list: impl FnMut(&'i List<T>)) {
        if let Some(tree) = self.exact.get(host.as_bytes()) {
            tree.prefixes(path, &mut try_list);
        }
        if !self.suffixes.is_empty() {
            reversed(host, |host| self.suffixes.prefixes(host, |tree| tree.prefixes(path, &mut try_list)));
        }
        if !self.prefixes.is_empty() {
            self.prefixes.prefixes(host.as_bytes(), |tree| tree.prefixes(path, &mut try_list));
        }
        self.any.prefixes(path, try_list);
    }
}

/// Calls a function with the bytes of a host from the last to the first.
fn reversed(host: &str, call: impl FnOnce(&[u8])) {
    let mut buffer = [0; HOST_LENGTH];
    let Some(room) = buffer.get_mut(..host.len()) else {
        return call(&host.bytes().rev().collect::<Vec<_>>());
    };
    room.copy_from_slice(host.as_bytes());
    room.reverse();
    call(room);
}

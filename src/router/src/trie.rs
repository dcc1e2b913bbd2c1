//! A persistent radix tree over byte strings: a copy costs nothing, a change copies the nodes on its path and shares
//! the rest with the tree it came from.

use std::ops::Deref;
use std::sync::Arc;

/// Values by key. Under a request's text, [`Trie::prefixes`] finds the values of all keys that the text begins with.
#[derive(Debug, Clone)]
pub(crate) struct Trie<V> {
    root: Arc<Node<V>>,
}

/// Below the root every node has a value or at least two children.
#[derive(Debug, Clone)]
struct Node<V> {
    label: Label,
    /// By the first byte of the child's label.
    children: Vec<(u8, Arc<Node<V>>)>,
    value: Option<V>,
}

/// A text that mostly fits into the node, so that comparing it takes no further step through memory.
#[derive(Debug, Clone)]
enum Label {
    Short(u8, [u8; SHORT]),
    Long(Box<[u8]>),
}

/// Longest label that is kept in the node.
const SHORT: usize = 22;

impl Label {
    fn new(text: &[u8]) -> Label {
        let mut short = [0; SHORT];
        match short.get_mut(..text.len()) {
            Some(room) => {
                room.copy_from_slice(text);
                Label::Short(text.len() as u8, short)
            }
            None => Label::Long(text.into()),
        }
    }
}

impl Deref for Label {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Label::Short(length, text) => &text[..usize::from(*length)],
            Label::Long(text) => text,
        }
    }
}

/// Values on one path that are found without allocating.
const SHALLOW: usize = 12;

impl<V> Default for Trie<V> {
    fn default() -> Self {
        Trie { root: Arc::new(Node { label: Label::new(b""), children: Vec::new(), value: None }) }
    }
}

impl<V> Trie<V> {
    /// Whether it holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.root.value.is_none() && self.root.children.is_empty()
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&V> {
        let (mut node, mut rest) = (&*self.root, key);
        while let Some(first) = rest.first() {
            node = node.child(*first)?;
            rest = node.behind(rest)?;
        }
        node.value.as_ref()
    }

    /// Visits the values of the keys that `text` begins with, the longest key first.
    pub(crate) fn prefixes<'t>(&'t self, text: &[u8], mut visit: impl FnMut(&'t V)) {
        let mut shallow = [None; SHALLOW];
        let mut count = 0;
        let mut deep = Vec::new();
        self.walk(text, |_, value| {
            match shallow.get_mut(count) {
                Some(place) => *place = Some(value),
                None => deep.push(value),
            }
            count += 1;
        });
        deep.into_iter().rev().for_each(&mut visit);
        shallow[..count.min(SHALLOW)].iter().rev().flatten().for_each(|value| visit(value));
    }

    /// Length and value of the longest key that `text` begins with.
    pub(crate) fn longest(&self, text: &[u8]) -> Option<(usize, &V)> {
        let mut longest = None;
        self.walk(text, |length, value| longest = Some((length, value)));
        longest
    }

    /// Visits length and value of the keys that `text` begins with, the shortest first.
    fn walk<'t>(&'t self, text: &[u8], mut visit: impl FnMut(usize, &'t V)) {
        let (mut node, mut rest) = (&*self.root, text);
        loop {
            if let Some(value) = &node.value {
                visit(text.len() - rest.len(), value);
            }
            let Some(child) = rest.first().and_then(|first| node.child(*first)) else { return };
            let Some(tail) = child.behind(rest) else { return };
            (node, rest) = (child, tail);
        }
    }
}

impl<V: Clone> Trie<V> {
    /// Changes the value of a key, which is gone when none is left behind.
    pub(crate) fn edit(&mut self, key: &[u8], edit: impl FnOnce(&mut Option<V>)) {
        let mut node = Arc::make_mut(&mut self.root);
        let (mut rest, mut is_root) = (key, true);
        loop {
            let Some(first) = rest.first() else { return edit(&mut node.value) };
            let at = match node.place(*first) {
                Ok(at) => at,
                Err(at) => {
                    node.grow(at, rest, edit);
                    break;
                }
            };
            let child = Arc::make_mut(&mut node.children[at].1);
            let common = child.label.iter().zip(rest).take_while(|(ours, theirs)| ours == theirs).count();
            if common < child.label.len() {
                child.split(common);
            }
            rest = &rest[common..];
            if rest.is_empty() {
                edit(&mut child.value);
                child.join();
                if child.value.is_none() && child.children.is_empty() {
                    node.children.remove(at);
                }
                break;
            }
            node = Arc::make_mut(&mut node.children[at].1);
            is_root = false;
        }
        if !is_root {
            node.join();
        }
    }
}

impl<V> Node<V> {
    fn place(&self, first: u8) -> Result<usize, usize> {
        self.children.binary_search_by_key(&first, |(byte, _)| *byte)
    }

    fn child(&self, first: u8) -> Option<&Node<V>> {
        self.place(first).ok().map(|at| &*self.children[at].1)
    }

    /// What follows on the label in a text that begins with its first byte.
    fn behind<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        match &*self.label {
            [_] => text.get(1..),
            label => text.strip_prefix(label),
        }
    }

    /// Puts a leaf below, unless it stays without value.
    fn grow(&mut self, at: usize, label: &[u8], edit: impl FnOnce(&mut Option<V>)) {
        let mut value = None;
        edit(&mut value);
        if value.is_some() {
            let leaf = Node { label: Label::new(label), children: Vec::new(), value };
            self.children.reserve_exact(1);
            self.children.insert(at, (label[0], Arc::new(leaf)));
        }
    }

    /// Becomes the node for the first `length` bytes of its label; what it was goes below.
    fn split(&mut self, length: usize) {
        let (head, tail) = self.label.split_at(length);
        let (head, first, tail) = (Label::new(head), tail[0], Label::new(tail));
        let below = Node { label: tail, children: std::mem::take(&mut self.children), value: self.value.take() };
        self.label = head;
        self.children = vec![(first, Arc::new(below))];
    }
}

impl<V: Clone> Node<V> {
    /// A node without value takes in its only child.
    fn join(&mut self) {
        if self.value.is_some() || self.children.len() != 1 {
            return;
        }
        let Some((_, only)) = self.children.pop() else { return };
        let only = Arc::unwrap_or_clone(only);
        self.label = Label::new(&[&*self.label, &*only.label].concat());
        (self.children, self.value) = (only.children, only.value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn found(trie: &Trie<u32>, text: &str) -> Vec<u32> {
        let mut found = Vec::new();
        trie.prefixes(text.as_bytes(), |value| found.push(*value));
        found
    }

    #[test]
    fn every_prefix_is_found_the_longest_first() {
        let mut trie = Trie::default();
        for (number, prefix) in ["/a/bc", "/a", "/a/bd", "", "/a/b", "/x"].into_iter().enumerate() {
            trie.edit(prefix.as_bytes(), |value| *value = Some(number as u32));
        }
        assert_eq!(found(&trie, "/a/bcd"), [0, 4, 1, 3]);
        assert_eq!(found(&trie, "/a/b"), [4, 1, 3]);
        assert_eq!(found(&trie, "/ab"), [1, 3]);
        assert_eq!(found(&trie, "/"), [3]);
        assert_eq!(found(&trie, ""), [3]);
        assert_eq!(trie.longest(b"/a/x"), Some((2, &1)));
        assert_eq!((trie.get(b"/a/b"), trie.get(b"/a/")), (Some(&4), None));
    }

    #[test]
    fn long_paths_find_more_than_fits_the_stack() {
        let mut trie = Trie::default();
        let text = "/".repeat(40);
        for length in 0..text.len() {
            trie.edit(&text.as_bytes()[..length], |value| *value = Some(length as u32));
        }
        assert_eq!(found(&trie, &text), (0..40).rev().collect::<Vec<_>>());
    }

    /// The rule that keeps a tree as small as what it holds.
    fn is_tidy(node: &Node<u32>, is_root: bool) -> bool {
        (is_root || node.value.is_some() || node.children.len() > 1)
            && node.children.iter().all(|(first, child)| child.label.first() == Some(first) && is_tidy(child, false))
    }

    proptest! {
        #[test]
        fn edits_give_what_a_map_gives_and_leave_copies_alone(
            edits in prop::collection::vec(("[ab]{0,5}", prop::option::of(0..9_u32)), 0..60),
        ) {
            let (mut trie, mut map) = (Trie::default(), BTreeMap::new());
            let mut copies = Vec::new();
            for (key, value) in edits {
                trie.edit(key.as_bytes(), |place| *place = value);
                match value {
                    Some(value) => _ = map.insert(key, value),
                    None => _ = map.remove(&key),
                }
                prop_assert!(is_tidy(&trie.root, true));
                copies.push((trie.clone(), map.clone()));
            }
            for (trie, map) in copies {
                prop_assert_eq!(trie.is_empty(), map.is_empty());
                for text in ["", "a", "abba", "bbbbb", "abaab"] {
                    let expected = map.iter().rev().filter(|(key, _)| text.starts_with(key.as_str()));
                    prop_assert_eq!(found(&trie, text), expected.map(|(_, value)| *value).collect::<Vec<_>>());
                    prop_assert_eq!(trie.get(text.as_bytes()), map.get(text));
                }
            }
        }
    }
}

//! A radix tree over byte strings, many trees in one arena.

/// A tree node by its place in the arena.
pub(crate) type NodeId = u32;

/// Something filed under a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Filed {
    /// The matcher's place in the order.
    pub(crate) rank: u32,
    /// The path of the matcher; `ANY_PATH` for a matcher without paths.
    pub(crate) path: u32,
}

/// Stands for "any path" in `Filed::path`.
pub(crate) const ANY_PATH: u32 = u32::MAX;

/// The nodes of all trees.
#[derive(Debug, Default)]
pub(crate) struct Forest {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    label: Box<[u8]>,
    parent: Option<NodeId>,
    /// By the first byte of the child's label.
    children: Vec<(u8, NodeId)>,
    /// In order.
    filed: Vec<Filed>,
}

impl Forest {
    /// Plants an empty tree.
    pub(crate) fn plant(&mut self) -> NodeId {
        self.push(Node::default())
    }

    fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        (self.nodes.len() - 1) as NodeId
    }

    fn child(&self, node: NodeId, first: u8) -> Option<NodeId> {
        let children = &self.nodes[node as usize].children;
        children.binary_search_by_key(&first, |(byte, _)| *byte).ok().map(|index| children[index].1)
    }

    fn adopt(&mut self, parent: NodeId, child: NodeId) {
        let Some(first) = self.nodes[child as usize].label.first().copied() else { return };
        let children = &mut self.nodes[parent as usize].children;
        match children.binary_search_by_key(&first, |(byte, _)| *byte) {
            Ok(index) => children[index].1 = child,
            Err(index) => children.insert(index, (first, child)),
        }
    }

    /// Files an item under `prefix`. Items must come in order.
    pub(crate) fn file(&mut self, root: NodeId, prefix: &[u8], item: Filed) {
        let node = self.node_for(root, prefix);
        let filed = &mut self.nodes[node as usize].filed;
        if filed.last() != Some(&item) {
            filed.push(item);
        }
    }

    fn node_for(&mut self, root: NodeId, prefix: &[u8]) -> NodeId {
        let (mut node, mut rest) = (root, prefix);
        while let Some(first) = rest.first() {
            let Some(child) = self.child(node, *first) else {
                let leaf = self.push(Node { label: rest.into(), parent: Some(node), ..Node::default() });
                self.adopt(node, leaf);
                return leaf;
            };
            let label = &self.nodes[child as usize].label;
            let common = label.iter().zip(rest).take_while(|(ours, theirs)| ours == theirs).count();
            node = if common == label.len() { child } else { self.split(child, common) };
            rest = &rest[common..];
        }
        node
    }

    /// Puts a node above `lower` that takes the first `length` bytes of its label.
    fn split(&mut self, lower: NodeId, length: usize) -> NodeId {
        let below = &mut self.nodes[lower as usize];
        let (head, tail) = below.label.split_at(length);
        let (head, tail) = (head.into(), tail.into());
        below.label = tail;
        let above = below.parent;
        let middle = self.push(Node { label: head, parent: above, ..Node::default() });
        self.nodes[lower as usize].parent = Some(middle);
        self.adopt(middle, lower);
        if let Some(above) = above {
            self.adopt(above, middle);
        }
        middle
    }

    /// The lists filed under the prefixes of `text`, the longest prefix first.
    pub(crate) fn prefixes_of<'f>(&'f self, root: NodeId, text: &[u8]) -> impl Iterator<Item = &'f [Filed]> {
        let (mut deepest, mut rest) = (root, text);
        while let Some(child) = rest.first().and_then(|first| self.child(deepest, *first)) {
            let Some(tail) = rest.strip_prefix(&*self.nodes[child as usize].label) else { break };
            (deepest, rest) = (child, tail);
        }
        let upwards = std::iter::successors(Some(deepest), |node| self.nodes[*node as usize].parent);
        upwards.map(|node| self.nodes[node as usize].filed.as_slice()).filter(|filed| !filed.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(forest: &Forest, root: NodeId, text: &str) -> Vec<u32> {
        forest.prefixes_of(root, text.as_bytes()).flatten().map(|filed| filed.rank).collect()
    }

    #[test]
    fn every_prefix_is_found_the_longest_first() {
        let mut forest = Forest::default();
        let root = forest.plant();
        for (rank, prefix) in ["/a/bc", "/a", "/a/bd", "", "/a/b", "/x"].into_iter().enumerate() {
            forest.file(root, prefix.as_bytes(), Filed { rank: rank as u32, path: 0 });
        }
        assert_eq!(ranks(&forest, root, "/a/bcd"), [0, 4, 1, 3]);
        assert_eq!(ranks(&forest, root, "/a/b"), [4, 1, 3]);
        assert_eq!(ranks(&forest, root, "/ab"), [1, 3]);
        assert_eq!(ranks(&forest, root, "/"), [3]);
        assert_eq!(ranks(&forest, root, ""), [3]);
    }

    #[test]
    fn trees_do_not_see_each_other() {
        let mut forest = Forest::default();
        let (one, two) = (forest.plant(), forest.plant());
        forest.file(one, b"/a", Filed { rank: 1, path: 0 });
        forest.file(two, b"/a", Filed { rank: 2, path: 0 });
        assert_eq!((ranks(&forest, one, "/a"), ranks(&forest, two, "/a")), (vec![1], vec![2]));
    }
}

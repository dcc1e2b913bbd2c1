//! Where in a text the values of a document stand.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use std::collections::BTreeMap;

/// A place in a text: line and column from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Line of the value, or of its key for lists and maps.
    pub line: usize,
    /// Column in characters.
    pub column: usize,
    /// Characters from there that belong to it; at least 1.
    pub width: usize,
    /// Steps of the path that were found: fewer than asked for when the rest is not in the text.
    pub depth: usize,
}

/// Finds where the ends of paths (members and positions from 0) stand; of a path that the text does not have, where
/// its deepest part stands. None: the text has nothing of it, or cannot be read so far.
///
/// Reads the text again, so that documents without mistakes pay nothing for positions.
pub fn locate(text: &str, paths: &[Vec<String>]) -> Vec<Option<Place>> {
    let mut wanted = Wanted::default();
    let ends: Vec<usize> = paths.iter().map(|path| wanted.add(path)).collect();
    let mut finder = Finder { wanted: &mut wanted, open: Vec::new(), documents: 0 };
    for event in Parser::new_from_str(text.strip_prefix('\u{feff}').unwrap_or(text)) {
        let Ok((event, span)) = event else { break };
        finder.event(&event, &span);
        if finder.documents > 0 {
            break;
        }
    }
    ends.into_iter().map(|end| wanted.place_of(end)).collect()
}

/// The paths asked for, as a tree.
struct Wanted {
    nodes: Vec<Node>,
}

#[derive(Default)]
struct Node {
    parent: usize,
    depth: usize,
    children: BTreeMap<String, usize>,
    place: Option<Place>,
}

impl Default for Wanted {
    fn default() -> Self {
        Wanted { nodes: vec![Node::default()] }
    }
}

impl Wanted {
    fn add(&mut self, path: &[String]) -> usize {
        path.iter().fold(0, |at, step| {
            if let Some(&known) = self.nodes[at].children.get(step) {
                return known;
            }
            let (new, depth) = (self.nodes.len(), self.nodes[at].depth + 1);
            self.nodes.push(Node { parent: at, depth, ..Node::default() });
            self.nodes[at].children.insert(step.clone(), new);
            new
        })
    }

    fn place_of(&self, mut at: usize) -> Option<Place> {
        loop {
            match (self.nodes[at].place, at) {
                (Some(place), _) => return Some(place),
                (None, 0) => return None,
                (None, _) => at = self.nodes[at].parent,
            }
        }
    }
}

/// A list or map that is open; `node` when it or something in it is wanted.
struct Open {
    node: Option<usize>,
    /// Position of the next element; None in a map.
    position: Option<usize>,
    /// Key whose value comes next: its node, and where the key stands.
    key: Option<(Option<usize>, Place)>,
}

struct Finder<'a> {
    wanted: &'a mut Wanted,
    open: Vec<Open>,
    documents: usize,
}

impl Finder<'_> {
    fn event(&mut self, event: &Event<'_>, span: &Span) {
        match event {
            Event::Scalar(text, style, _, _) => {
                if !self.is_key(text, span) {
                    let multiline = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                    self.value(span, multiline);
                }
            }
            Event::Alias(_) => {
                if !self.is_key("", span) {
                    self.value(span, false);
                }
            }
            Event::SequenceStart(..) => self.start(span, Some(0)),
            Event::MappingStart(..) => self.start(span, None),
            Event::SequenceEnd | Event::MappingEnd => drop(self.open.pop()),
            Event::DocumentEnd => self.documents += 1,
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) => {}
        }
    }

    /// Takes a scalar as the key of an open map.
    fn is_key(&mut self, text: &str, span: &Span) -> bool {
        let Some(Open { node, position: None, key: key @ None }) = self.open.last_mut() else { return false };
        let child = node.and_then(|node| self.wanted.nodes[node].children.get(text).copied());
        *key = Some((child, place(span)));
        true
    }

    /// The node of the value that comes now, and the place of its key in a map.
    fn next(&mut self) -> (Option<usize>, Option<Place>) {
        let Some(open) = self.open.last_mut() else { return (Some(0), None) };
        match (&mut open.position, open.key.take()) {
            (Some(position), _) => {
                let step = position.to_string();
                *position += 1;
                (open.node.and_then(|node| self.wanted.nodes[node].children.get(&step).copied()), None)
            }
            (None, Some((node, place))) => (node, Some(place)),
            (None, None) => (None, None),
        }
    }

    fn value(&mut self, span: &Span, multiline: bool) {
        let (node, key) = self.next();
        let at = if multiline { key } else { None };
        self.note(node, at.unwrap_or_else(|| place(span)));
    }

    fn start(&mut self, span: &Span, position: Option<usize>) {
        let (node, key) = self.next();
        let start = Place { width: 1, ..place(span) };
        self.note(node, key.unwrap_or(start));
        self.open.push(Open { node, position, key: None });
    }

    fn note(&mut self, node: Option<usize>, place: Place) {
        // The whole text is no place, and of a repeated key the last one counts.
        if let Some(node) = node.filter(|node| *node > 0) {
            let depth = self.wanted.nodes[node].depth;
            self.wanted.nodes[node].place = Some(Place { depth, ..place });
        }
    }
}

fn place(span: &Span) -> Place {
    let (start, end) = (&span.start, &span.end);
    let width = if start.line() == end.line() { end.col().saturating_sub(start.col()) } else { 1 };
    Place { line: start.line(), column: start.col() + 1, width: width.max(1), depth: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, path: &str) -> Option<(usize, usize, usize, usize)> {
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        locate(text, &[path]).pop().flatten().map(|place| (place.line, place.column, place.width, place.depth))
    }

    const YAML: &str =
        "services:\n- name: a\n  port: 99999\n  routes:\n  - paths:\n    - /x\n    - nope\n- {name: b, host: 'h'}\n";

    #[test]
    fn values_are_found_where_they_stand() {
        assert_eq!(at(YAML, "services.0.port"), Some((3, 9, 5, 3)));
        assert_eq!(at(YAML, "services.0.routes.0.paths.1"), Some((7, 7, 4, 6)));
        assert_eq!(at(YAML, "services.1.host"), Some((8, 19, 3, 3)));
    }

    #[test]
    fn lists_and_maps_stand_at_their_key() {
        assert_eq!(at(YAML, "services.0.routes"), Some((4, 3, 6, 3)));
        assert_eq!(at(YAML, "services.1"), Some((8, 3, 1, 2)));
    }

    #[test]
    fn what_is_missing_is_told_by_what_should_have_it() {
        assert_eq!(at(YAML, "services.0.host"), Some((2, 3, 1, 2)));
        assert_eq!(at(YAML, "services.7.host"), Some((1, 1, 8, 1)));
        assert_eq!(at(YAML, "routes"), None);
    }

    #[test]
    fn json_has_places_too() {
        assert_eq!(at("{\n  \"a\": [\n    {\"b\": true}\n  ]\n}", "a.0.b"), Some((3, 11, 4, 3)));
    }

    #[test]
    fn what_an_alias_brings_is_told_by_the_alias() {
        assert_eq!(at("x: &x {p: 1}\ny: *x\n", "y.p"), Some((2, 4, 2, 1)));
        assert_eq!(at("cert: |\n  aaa\n  bbb\n", "cert"), Some((1, 1, 4, 1)));
    }
}

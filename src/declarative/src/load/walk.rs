//! Takes a document apart: nested and flat entities become a list of items.

use super::facts::Facts;
use super::mistakes::{self, Mistake};
use gwctl_entities::{Map, Record, Value};

/// One entity of the document.
pub(crate) struct Item<'r> {
    pub(crate) kind: usize,
    /// The item it is nested in and the field that links to it.
    pub(crate) parent: Option<(usize, &'r str)>,
    /// Place in its list, from 0.
    pub(crate) position: usize,
    /// As written, without nested children and annotations.
    pub(crate) input: Record,
    pub(crate) fault: Fault,
}

/// What is wrong with an item.
#[derive(Default)]
pub(crate) enum Fault {
    #[default]
    None,
    /// The item as a whole.
    Whole(String),
    /// Single fields.
    Fields(Map<String, Value>),
}

impl Fault {
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Fault::None)
    }

    /// The error tree, made when there is none yet.
    pub(crate) fn fields(&mut self) -> &mut Map<String, Value> {
        loop {
            match self {
                Fault::Fields(fields) => return fields,
                Fault::None | Fault::Whole(_) => *self = Fault::Fields(Map::new()),
            }
        }
    }
}

/// Everything found in a document.
#[derive(Default)]
pub(crate) struct Walk<'r> {
    /// Parents before their children.
    pub(crate) items: Vec<Item<'r>>,
    /// Items in the order in which duplicates are looked for: children before their parent.
    pub(crate) order: Vec<usize>,
    /// Errors of top-level members.
    pub(crate) faults: Map<String, Value>,
}

impl<'r> Walk<'r> {
    /// Takes the entities out of the document; what stays are members that are no entities.
    pub(crate) fn document(facts: &Facts<'r>, document: &mut Record) -> Walk<'r> {
        let mut walk = Walk::default();
        for (kind, facts_of) in facts.kinds.iter().enumerate() {
            if let Some(value) = document.remove(facts_of.name()) {
                walk.list(facts, kind, None, value);
            }
        }
        walk
    }

    /// What is wrong with the shape of the document.
    pub(crate) fn mistakes(&self, facts: &Facts<'r>) -> Vec<Mistake> {
        mistakes::all(facts, self, &[], &[])
    }

    fn list(&mut self, facts: &Facts<'r>, kind: usize, parent: Option<(usize, &'r str)>, value: Value) {
        let records = match value {
            Value::Null => return,
            Value::Object(map) if map.is_empty() => return,
            Value::Array(records) => records,
            _ => {
                let faults = match parent {
                    Some((item, _)) => self.items[item].fault.fields(),
                    None => &mut self.faults,
                };
                faults.insert(facts.kinds[kind].name().to_owned(), Value::from("expected an array"));
                return;
            }
        };
        for (position, record) in records.into_iter().enumerate() {
            self.item(facts, Item { kind, parent, position, input: Map::new(), fault: Fault::None }, record);
        }
    }

    fn item(&mut self, facts: &Facts<'r>, mut item: Item<'r>, record: Value) {
        let index = self.items.len();
        let Value::Object(mut input) = record else {
            item.fault = Fault::Whole("expected a record".to_owned());
            self.items.push(item);
            return;
        };
        let kind = &facts.kinds[item.kind];
        annotations(&mut input, &mut item.fault);
        let nested: Vec<_> = kind
            .children
            .iter()
            .filter_map(|&(child, link)| Some((child, link, input.remove(facts.kinds[child].name())?)))
            .collect();
        item.input = input;
        self.items.push(item);
        for (child, link, value) in nested {
            self.list(facts, child, Some((index, link)), value);
        }
        self.order.push(index);
    }
}

/// Drops `_comment` and `_ignore`, noting wrong types.
pub(super) fn annotations(input: &mut Record, fault: &mut Fault) {
    match input.remove("_comment") {
        None | Some(Value::Null | Value::String(_)) => {}
        Some(_) => {
            fault.fields().insert("_comment".to_owned(), Value::from("expected a string"));
        }
    }
    match input.remove("_ignore") {
        None | Some(Value::Null | Value::Array(_)) => {}
        Some(_) => {
            fault.fields().insert("_ignore".to_owned(), Value::from("expected an array"));
        }
    }
}

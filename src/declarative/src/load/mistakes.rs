//! What is wrong with a document, each mistake with its path in the document.

use super::facts::Facts;
use super::links::{Dangling, Twice, dangling_text};
use super::walk::{Fault, Walk};
use gwctl_entities::Value;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Members and positions (from 0) that lead to it: `services`, `3`, `routes`, `0`, `paths`.
    pub path: Vec<String>,
    /// What is wrong, without secrets.
    pub message: String,
    /// See [`MistakeKind`].
    pub kind: MistakeKind,
}

/// What kind of mistake it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MistakeKind {
    /// A value or the shape of the document.
    Value,
    /// A reference to something the document does not have; stored records may have it.
    Reference,
    /// A name or key that occurs twice.
    Duplicate,
}

impl Mistake {
    /// A mistake of kind [`MistakeKind::Value`].
    pub fn value(path: Vec<String>, message: impl Into<String>) -> Mistake {
        Mistake { path, message: message.into(), kind: MistakeKind::Value }
    }
}

/// Members and positions that lead to an item.
pub(crate) fn path_of(facts: &Facts<'_>, walk: &Walk<'_>, index: usize) -> Vec<String> {
    let item = &walk.items[index];
    let mut path = item.parent.map(|(parent, _)| path_of(facts, walk, parent)).unwrap_or_default();
    path.extend([facts.kinds[item.kind].name().to_owned(), item.position.to_string()]);
    path
}

/// Everything that is wrong, in the order of the document. To be called before errors are folded into a tree.
pub(super) fn all(facts: &Facts<'_>, walk: &Walk<'_>, dangling: &[&Dangling], twice: &[Twice]) -> Vec<Mistake> {
    let mut found = Vec::new();
    for (member, error) in &walk.faults {
        flatten(&mut found, vec![member.clone()], error);
    }
    for (index, item) in walk.items.iter().enumerate() {
        let path = path_of(facts, walk, index);
        match &item.fault {
            Fault::None => {}
            Fault::Whole(text) => found.push(Mistake::value(path.clone(), text)),
            Fault::Fields(fields) => {
                let leads_nowhere =
                    |field: &str| dangling.iter().any(|dangling| dangling.item == index && dangling.field == field);
                for (field, error) in fields.iter().filter(|(field, _)| !leads_nowhere(field)) {
                    flatten(&mut found, step(&path, field), error);
                }
            }
        }
    }
    found.extend(dangling.iter().map(|dangling| Mistake {
        path: step(&path_of(facts, walk, dangling.item), &dangling.field),
        message: dangling_text(facts, dangling),
        kind: MistakeKind::Reference,
    }));
    found.extend(twice.iter().map(|twice| Mistake {
        path: step(&path_of(facts, walk, twice.item), &twice.field),
        message: twice.told.clone(),
        kind: MistakeKind::Duplicate,
    }));
    found
}

fn step(path: &[String], last: &str) -> Vec<String> {
    path.iter().map(String::as_str).chain([last]).map(str::to_owned).collect()
}

/// The messages of an error tree below a path; those of `@entity` belong to what has it.
pub(crate) fn flatten(found: &mut Vec<Mistake>, path: Vec<String>, error: &Value) {
    match error {
        Value::Null => {}
        Value::Object(fields) => fields.iter().for_each(|(name, error)| flatten(found, step(&path, name), error)),
        Value::Array(list) => {
            for (position, error) in list.iter().enumerate() {
                flatten(found, step(&path, &position.to_string()), error);
            }
        }
        message => {
            let end = path.iter().position(|step| step == "@entity").unwrap_or(path.len());
            let text = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
            found.push(Mistake::value(path[..end].to_vec(), text));
        }
    }
}

//! The error tree of a refused document, and its flattened form.

use super::facts::Facts;
use super::walk::{Fault, Item, Walk};
use gwctl_entities::{EntityError, Map, Value};
use serde_json::json;

/// The refusal of a document whose errors stand in its walk.
pub(super) fn refusal(facts: &Facts<'_>, walk: &mut Walk<'_>, flatten: bool) -> EntityError {
    let flattened = flatten.then(|| flat_errors(facts, walk));
    EntityError::InvalidDeclarative { fields: tree(facts, walk), flattened }
}

/// Folds the errors of children into their parents, those of top-level items into lists by entity.
fn tree(facts: &Facts<'_>, walk: &mut Walk<'_>) -> Map<String, Value> {
    for index in (0..walk.items.len()).rev() {
        let item = &mut walk.items[index];
        let error = match std::mem::take(&mut item.fault) {
            Fault::None => continue,
            Fault::Whole(text) => Value::String(text),
            Fault::Fields(fields) => Value::Object(fields),
        };
        let (name, position, parent) = (facts.kinds[item.kind].name(), item.position, item.parent);
        let fields = match parent {
            Some((parent, _)) => walk.items[parent].fault.fields(),
            None => &mut walk.faults,
        };
        place(fields, name, position, error);
    }
    std::mem::take(&mut walk.faults)
}

/// Sets the error of the element at `position` in the list `name`, with nulls before it.
pub(super) fn place(fields: &mut Map<String, Value>, name: &str, position: usize, error: Value) {
    let slot = fields.entry(name).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = slot {
        if list.len() <= position {
            list.resize(position + 1, Value::Null);
        }
        list[position] = error;
    }
}

/// Takes the errors of records out of the walk, children before their parents.
fn flat_errors(facts: &Facts<'_>, walk: &mut Walk<'_>) -> Vec<Value> {
    let mut flat = Vec::new();
    for position in 0..walk.order.len() {
        let index = walk.order[position];
        let Fault::Fields(fields) = &walk.items[index].fault else { continue };
        let mut errors = Vec::new();
        collect(&mut errors, &mut String::new(), fields);
        flat.push(flat_error(facts, walk, index, errors));
        walk.items[index].fault = Fault::None;
    }
    flat
}

fn flat_error(facts: &Facts<'_>, walk: &Walk<'_>, index: usize, errors: Vec<Value>) -> Value {
    let item: &Item<'_> = &walk.items[index];
    let name = facts.kinds[item.kind].name();
    let mut entity = item.input.clone();
    let mut entry = Map::new();
    entry.insert("entity_type".to_owned(), json!(name.strip_suffix('s').unwrap_or(name)));
    if let Some(Value::String(text)) = entity.get("name") {
        entry.insert("entity_name".to_owned(), json!(text));
    }
    if let Some(id) = entity.get("id").and_then(Value::as_str).filter(|id| is_uuid(id)) {
        entry.insert("entity_id".to_owned(), json!(id));
    }
    if let Some(tags) = entity.get("tags").filter(|tags| !tags.is_null()) {
        entry.insert("entity_tags".to_owned(), tags.clone());
    }
    if let Some((parent, link)) = item.parent
        && let Some(id) = walk.items[parent].input.get("id")
    {
        entity.insert(link.to_owned(), json!({ "id": id }));
    }
    entry.insert("entity".to_owned(), Value::Object(entity));
    entry.insert("errors".to_owned(), Value::Array(errors));
    Value::Object(entry)
}

/// Whether the text is a UUID in its usual form.
pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

/// Turns a tree into a list: dotted fields, elements counted from 1.
fn collect(errors: &mut Vec<Value>, path: &mut String, fields: &Map<String, Value>) {
    for (name, error) in fields {
        if name == "@entity" {
            for message in error.as_array().map_or(std::slice::from_ref(error), Vec::as_slice) {
                let mut entry = json!({"type": "entity", "message": message});
                if !path.is_empty() {
                    entry["field"] = json!(path);
                }
                errors.push(entry);
            }
        } else {
            below(errors, path, name, error);
        }
    }
}

fn below(errors: &mut Vec<Value>, path: &mut String, name: &str, error: &Value) {
    let length = path.len();
    if length > 0 {
        path.push('.');
    }
    path.push_str(name);
    match error {
        Value::Object(fields) => collect(errors, path, fields),
        Value::Array(list) => {
            for (index, error) in list.iter().enumerate().filter(|(_, error)| !error.is_null()) {
                below(errors, path, &(index + 1).to_string(), error);
            }
        }
        message => errors.push(json!({"type": "field", "field": path, "message": message})),
    }
    path.truncate(length);
}

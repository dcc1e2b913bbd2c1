//! Records of a valid document as a server may be asked about them (`POST /schemas/{entity}/validate`).

use crate::load::facts::Facts;
use crate::load::{Walk, convert_paths, path_of};
use crate::{LoadOptions, Mistake, Mode, load};
use gwctl_entities::{Fill, Map, Record, Registry, Value};
use serde_json::json;
use std::collections::BTreeMap;

/// A record to ask about.
#[derive(Debug, Clone, PartialEq)]
pub struct ToSend {
    /// Schema name.
    pub entity: String,
    /// Where it stands in the document.
    pub path: Vec<String>,
    /// As written, references as ids.
    pub body: Record,
}

impl ToSend {
    /// The mistakes that a server's `fields` tell of this record.
    pub fn mistakes(&self, fields: &Map<String, Value>) -> Vec<Mistake> {
        let mut found = Vec::new();
        crate::load::flatten(&mut found, self.path.clone(), &Value::Object(fields.clone()));
        found
    }
}

/// Every record of a document that [`crate::load()`] accepts; empty for one it refuses.
pub fn records_to_send(registry: &Registry, document: &Record, fill: &mut dyn Fill) -> Vec<ToSend> {
    let Ok(loaded) = load(registry, Value::Object(document.clone()), &LoadOptions::of(Mode::Partial), fill) else {
        return Vec::new();
    };
    let facts = Facts::new(registry);
    let mut document = document.clone();
    if matches!(document.get("_format_version").and_then(Value::as_str), Some("1.1" | "2.1")) {
        convert_paths(&mut document);
    }
    let walk = Walk::document(&facts, &mut document);
    // Records of a kind come in the order of the document.
    let mut rows: BTreeMap<usize, std::slice::Iter<'_, Record>> = BTreeMap::new();
    let mut found = Vec::with_capacity(walk.items.len());
    for (index, item) in walk.items.iter().enumerate() {
        let kind = &facts.kinds[item.kind];
        let Some(record) = rows.entry(item.kind).or_insert_with(|| loaded.records(kind.name()).iter()).next() else {
            continue;
        };
        let mut body = item.input.clone();
        for (field, _) in &kind.foreign {
            if let Some(id) = kind.schema.foreign_id(record, field) {
                body.insert((*field).to_owned(), json!({ "id": id }));
            }
        }
        found.push(ToSend { entity: kind.name().to_owned(), path: path_of(&facts, &walk, index), body });
    }
    found
}

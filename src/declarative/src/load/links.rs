//! References between records, and what may occur only once.

use super::errors::place;
use super::facts::{Facts, Kind};
use super::walk::Walk;
use crate::secret::{MASK, is_secret};
use gwctl_entities::{Map, Record, Value};
use serde_json::json;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Records by name and by id, per kind.
pub(super) struct Index {
    names: Vec<BTreeMap<String, String>>,
    ids: Vec<BTreeSet<String>>,
}

/// A reference that leads nowhere.
pub(super) struct Dangling {
    pub(super) item: usize,
    pub(super) field: String,
    pub(super) value: Value,
    pub(super) target: usize,
}

impl Dangling {
    pub(super) fn new(item: usize, field: &str, value: &Value, target: usize) -> Dangling {
        Dangling { item, field: field.to_owned(), value: value.clone(), target }
    }
}

impl Index {
    pub(super) fn new(facts: &Facts<'_>) -> Index {
        let size = facts.kinds.len();
        Index { names: vec![BTreeMap::new(); size], ids: vec![BTreeSet::new(); size] }
    }

    /// Adds a record with its final id.
    pub(super) fn add(&mut self, kind: usize, name: Option<String>, id: &str) {
        if let Some(name) = name {
            self.names[kind].entry(name).or_insert_with(|| id.to_owned());
        }
        self.ids[kind].insert(id.to_owned());
    }

    /// The id behind a name or id.
    pub(super) fn find(&self, kind: usize, text: &str) -> Option<&str> {
        self.names[kind].get(text).map(String::as_str).or_else(|| self.find_id(kind, text))
    }

    /// The id, when a record has it.
    pub(super) fn find_id(&self, kind: usize, id: &str) -> Option<&str> {
        self.ids[kind].get(id).map(String::as_str)
    }
}

/// The error of a reference to nothing.
pub(super) fn dangling_text(facts: &Facts<'_>, dangling: &Dangling) -> String {
    let value = match &dangling.value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    format!(
        "invalid reference '{}: {value}' (no such entry in '{}')",
        dangling.field,
        facts.kinds[dangling.target].name()
    )
}

/// Errors of references to nothing: by the name of the record, else by its id, else by its place.
pub(super) fn dangling_errors(facts: &Facts<'_>, walk: &Walk<'_>, all: &[Dangling]) -> Map<String, Value> {
    let mut fields = Map::new();
    for dangling in all {
        let item = &walk.items[dangling.item];
        let kind = &facts.kinds[item.kind];
        let given = || item.input.get("id").and_then(Value::as_str).map(str::to_owned);
        let name = kind.named.then(|| kind.endpoint_value(&item.input)).flatten();
        let at = name.or_else(given).unwrap_or_else(|| (item.position + 1).to_string());
        let records = fields.entry(kind.name()).or_insert_with(|| json!({}));
        if let Some(records) = records.as_object_mut()
            && let Some(list) = records.entry(at).or_insert_with(|| json!([])).as_array_mut()
        {
            list.push(Value::String(dangling_text(facts, dangling)));
        }
    }
    fields
}

/// A name or key that an earlier record has too.
pub(super) struct Twice {
    pub(super) item: usize,
    pub(super) field: String,
    /// As Kong words it.
    text: String,
    /// The same without a secret value.
    pub(super) told: String,
    /// How the record is known where errors are listed by name.
    at: String,
}

/// Names and primary keys that occur twice.
pub(super) fn duplicates(facts: &Facts<'_>, walk: &Walk<'_>, records: &[Option<Record>]) -> Vec<Twice> {
    let mut names: Vec<BTreeSet<Cow<'_, str>>> = vec![BTreeSet::new(); facts.kinds.len()];
    let mut keys: Vec<BTreeSet<Cow<'_, str>>> = vec![BTreeSet::new(); facts.kinds.len()];
    let mut found = Vec::new();
    for &index in &walk.order {
        let (item, Some(record)) = (&walk.items[index], &records[index]) else { continue };
        let kind = &facts.kinds[item.kind];
        let endpoint = kind.schema.endpoint_key.as_deref();
        let named = endpoint.unwrap_or("name");
        let name = endpoint.filter(|_| kind.named).and_then(|field| text_of(record.get(field)?));
        if let Some(name) = name
            && !names[item.kind].insert(name.clone())
        {
            found.push(twice(kind, record, index, named, named, &name));
            continue;
        }
        let key = match record.get("id") {
            Some(Value::String(id)) if kind.schema.primary_key == ["id"] => Some(Cow::Borrowed(id.as_str())),
            _ => kind.schema.id_of(record).map(Cow::Owned),
        };
        if let Some(key) = key
            && !keys[item.kind].insert(key.clone())
        {
            found.push(twice(kind, record, index, "id", "primary key", &key));
        }
    }
    found
}

/// A text or number as text.
fn text_of(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        _ => None,
    }
}

/// Errors of twice used names and primary keys, by place in the list they stand in.
pub(super) fn duplicate_errors(facts: &Facts<'_>, walk: &Walk<'_>, found: &[Twice]) -> Map<String, Value> {
    let mut fields = Map::new();
    for twice in found {
        let item = &walk.items[twice.item];
        place(&mut fields, facts.kinds[item.kind].name(), item.position, Value::from(twice.text.as_str()));
    }
    fields
}

/// Other unique fields that occur twice.
pub(super) fn late_duplicates(facts: &Facts<'_>, walk: &Walk<'_>, records: &[Option<Record>]) -> Vec<Twice> {
    let mut seen: BTreeMap<(usize, &str), BTreeSet<Cow<'_, str>>> = BTreeMap::new();
    let mut found = Vec::new();
    for &index in &walk.order {
        let (item, Some(record)) = (&walk.items[index], &records[index]) else { continue };
        let kind = &facts.kinds[item.kind];
        for unique in &kind.schema.unique_fields {
            // The name was looked at before.
            if kind.named && kind.schema.endpoint_key.as_ref() == Some(&unique.field) {
                continue;
            }
            let Some(value) = unique_text(record.get(&unique.field)) else { continue };
            if !seen.entry((item.kind, &unique.field)).or_default().insert(value.clone()) {
                found.push(twice(kind, record, index, &unique.field, &unique.field, &value));
            }
        }
    }
    found
}

/// Errors of other unique fields, by name (else id) of the record.
pub(super) fn late_errors(facts: &Facts<'_>, walk: &Walk<'_>, found: &[Twice]) -> Map<String, Value> {
    let mut fields = Map::new();
    for twice in found {
        let kind = &facts.kinds[walk.items[twice.item].kind];
        fields.entry(kind.name()).or_insert_with(|| json!({}))[&twice.at] = Value::from(twice.text.as_str());
    }
    fields
}

fn unique_text(value: Option<&Value>) -> Option<Cow<'_, str>> {
    match value? {
        Value::Object(foreign) => foreign.get("id").and_then(Value::as_str).map(Cow::Borrowed),
        other => text_of(other),
    }
}

fn twice(kind: &Kind<'_>, record: &Record, item: usize, field: &str, called: &str, value: &str) -> Twice {
    let at = kind.endpoint_value(record).or_else(|| kind.schema.id_of(record)).unwrap_or_default();
    let told = if is_secret(kind.schema.schema.field(field), field) { MASK } else { value };
    Twice {
        item,
        field: field.to_owned(),
        text: twice_text(kind, called, value),
        told: twice_text(kind, called, told),
        at,
    }
}

fn twice_text(kind: &Kind<'_>, field: &str, value: &str) -> String {
    format!("uniqueness violation: '{}' entity with {field} set to '{value}' already declared", kind.name())
}

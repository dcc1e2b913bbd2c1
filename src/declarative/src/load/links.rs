//! References between records, and what may occur only once.

use super::errors::place;
use super::facts::{Facts, Kind};
use super::walk::Walk;
use crate::secret::{MASK, is_secret};
use gwctl_entities::{Map, Record, Value};
use serde_json::json;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Records by name and by id, for the kinds that something refers to.
pub(super) struct Index {
    kinds: Vec<Option<Keys>>,
}

/// Names with ids, and ids, of one kind.
#[derive(Default)]
struct Keys {
    names: BTreeMap<String, String>,
    ids: BTreeSet<String>,
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
        Index { kinds: facts.kinds.iter().map(|_| None).collect() }
    }

    /// Indexes a kind, unless it is already, by the names and final ids of its records. Of one name the first counts.
    pub(super) fn build(&mut self, kind: usize, records: impl Iterator<Item = (Option<String>, String)>) {
        if self.kinds[kind].is_some() {
            return;
        }
        let (mut names, mut ids) = (Vec::new(), Vec::new());
        for (name, id) in records {
            names.extend(name.map(|name| (name, id.clone())));
            ids.push(id);
        }
        // A map made of a list is sorted once; of equal keys it keeps the last.
        names.reverse();
        self.kinds[kind] = Some(Keys { names: names.into_iter().collect(), ids: ids.into_iter().collect() });
    }

    /// Adds a record with its final id to a kind that is indexed.
    pub(super) fn add(&mut self, kind: usize, name: impl FnOnce() -> Option<String>, id: &str) {
        let Some(keys) = &mut self.kinds[kind] else { return };
        if let Some(name) = name() {
            keys.names.entry(name).or_insert_with(|| id.to_owned());
        }
        keys.ids.insert(id.to_owned());
    }

    /// The id behind a name or id.
    pub(super) fn find(&self, kind: usize, text: &str) -> Option<&str> {
        let named = self.kinds[kind].as_ref().and_then(|keys| keys.names.get(text));
        named.map(String::as_str).or_else(|| self.find_id(kind, text))
    }

    /// The id, when a record has it.
    pub(super) fn find_id(&self, kind: usize, id: &str) -> Option<&str> {
        self.kinds[kind].as_ref()?.ids.get(id).map(String::as_str)
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

/// The names or keys of one kind, each with the place of its record in the order of the walk.
type Seen<'a> = Vec<(Cow<'a, str>, usize)>;

/// Places at which a text stands that stood before.
fn repeated(mut seen: Seen<'_>) -> Vec<usize> {
    // Sorting is cheaper than keeping a sorted set, and hardly ever is something found.
    seen.sort_unstable();
    seen.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].1).collect()
}

/// Names and primary keys that occur twice. A record whose name does is not looked at for its key.
pub(super) fn duplicates(facts: &Facts<'_>, walk: &Walk<'_>, records: &[Option<Record>]) -> Vec<Twice> {
    let mut names: Vec<Seen<'_>> = vec![Vec::new(); facts.kinds.len()];
    let each = || {
        walk.order.iter().enumerate().filter_map(|(place, &index)| {
            let item = &walk.items[index];
            Some((place, item.kind, records[index].as_ref()?))
        })
    };
    for (place, kind, record) in each() {
        if let Some((_, name)) = name_of(&facts.kinds[kind], record) {
            names[kind].push((name, place));
        }
    }
    let named: BTreeSet<usize> = names.into_iter().flat_map(repeated).collect();
    let mut keys: Vec<Seen<'_>> = vec![Vec::new(); facts.kinds.len()];
    for (place, kind, record) in each().filter(|(place, ..)| !named.contains(place)) {
        let schema = facts.kinds[kind].schema;
        let key = match record.get("id") {
            Some(Value::String(id)) if schema.primary_key == ["id"] => Some(Cow::Borrowed(id.as_str())),
            _ => schema.id_of(record).map(Cow::Owned),
        };
        keys[kind].extend(key.map(|key| (key, place)));
    }
    let keyed: BTreeSet<usize> = keys.into_iter().flat_map(repeated).collect();
    let found = named.union(&keyed).filter_map(|place| {
        let index = walk.order[*place];
        let (kind, record) = (&facts.kinds[walk.items[index].kind], records[index].as_ref()?);
        Some(match name_of(kind, record).filter(|_| named.contains(place)) {
            Some((field, name)) => twice(kind, record, index, field, field, &name),
            None => twice(kind, record, index, "id", "primary key", &kind.schema.id_of(record)?),
        })
    });
    found.collect()
}

/// The field that names a record by itself, and its value.
fn name_of<'a>(kind: &Kind<'a>, record: &'a Record) -> Option<(&'a str, Cow<'a, str>)> {
    let field = kind.schema.endpoint_key.as_deref().filter(|_| kind.named)?;
    Some((field, text_of(record.get(field)?)?))
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
    let mut seen: BTreeMap<(usize, usize), Seen<'_>> = BTreeMap::new();
    for (place, &index) in walk.order.iter().enumerate() {
        let (kind, Some(record)) = (walk.items[index].kind, &records[index]) else { continue };
        for (number, field) in late_fields(&facts.kinds[kind]).enumerate() {
            let value = unique_text(record.get(field));
            seen.entry((kind, number)).or_default().extend(value.map(|value| (value, place)));
        }
    }
    let of_field = |((_, number), seen)| repeated(seen).into_iter().map(move |place| (place, number));
    let found: BTreeSet<(usize, usize)> = seen.into_iter().flat_map(of_field).collect();
    let found = found.into_iter().filter_map(|(place, number)| {
        let index = walk.order[place];
        let (kind, record) = (&facts.kinds[walk.items[index].kind], records[index].as_ref()?);
        let field = late_fields(kind).nth(number)?;
        Some(twice(kind, record, index, field, field, &unique_text(record.get(field))?))
    });
    found.collect()
}

/// Unique fields but the name, which is looked at before.
fn late_fields<'a>(kind: &Kind<'a>) -> impl Iterator<Item = &'a str> {
    let name = kind.schema.endpoint_key.as_deref().filter(|_| kind.named);
    let unique = kind.schema.unique_fields.iter().map(|unique| unique.field.as_str());
    unique.filter(move |field| Some(*field) != name)
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

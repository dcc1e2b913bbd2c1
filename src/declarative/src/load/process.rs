//! One item after the other, parents first: references, id, validation.

use super::existing::Existing;
use super::facts::{Facts, Kind};
use super::links::{Dangling, Index, dangling_text};
use super::validate::{Outcome, Prepared, Validator};
use super::walk::{Fault, Item, Walk};
use super::{LoadOptions, Loaded, Mode, Table};
use gwctl_entities::{EntityError, Fill, Map, Page, PageQuery, Read, Record, Registry, Value};
use serde_json::json;
use std::collections::BTreeMap;

/// Items that are prepared, validated and settled together.
const PORTION: usize = 4096;

/// Stands for a reference that leads nowhere while the other fields are validated.
pub(super) const NOWHERE: &str = "00000000-0000-4000-8000-000000000000";

/// A store without records: references are resolved in the document, before the engine sees them.
pub(crate) struct NoRecords;

impl Read for NoRecords {
    fn version(&self) -> u64 {
        0
    }
    fn get(&self, _entity: &str, _id: &str) -> Result<Option<Record>, EntityError> {
        Ok(None)
    }
    fn get_by(&self, _entity: &str, _field: &str, _value: &str) -> Result<Option<Record>, EntityError> {
        Ok(None)
    }
    fn page(&self, _entity: &str, _query: &PageQuery) -> Result<Page, EntityError> {
        Ok(Page::default())
    }
}

pub(super) struct Process<'a, 'r> {
    validator: Validator<'r>,
    threads: usize,
    facts: &'a Facts<'r>,
    mode: Mode,
    transform: bool,
    existing: Option<&'a Existing>,
    /// The items as written are needed for answers.
    keep_inputs: bool,
    index: Index,
    /// Final ids by item.
    ids: Vec<Option<String>>,
    /// Validated records by item.
    pub(super) records: Vec<Option<Record>>,
    pub(super) dangling: Vec<Dangling>,
    /// References of nested items that lead nowhere; their errors stand in the items.
    pub(super) nested_dangling: Vec<Dangling>,
    /// Foreign fields given in nested items: tolerated as long as nothing else is wrong.
    given_nested: Vec<(usize, &'r str)>,
    as_written: BTreeMap<(String, String), Record>,
}

impl<'a, 'r> Process<'a, 'r> {
    pub(super) fn new(
        registry: &'r Registry,
        facts: &'a Facts<'r>,
        options: &LoadOptions<'a>,
        transform: bool,
    ) -> Process<'a, 'r> {
        Process {
            validator: Validator { registry, mode: options.mode, transform },
            threads: options.threads,
            facts,
            mode: options.mode,
            transform,
            existing: options.existing,
            keep_inputs: options.mode != Mode::DataPlane || options.flatten_errors,
            index: Index::new(facts),
            ids: Vec::new(),
            records: Vec::new(),
            dangling: Vec::new(),
            nested_dangling: Vec::new(),
            given_nested: Vec::new(),
            as_written: BTreeMap::new(),
        }
    }

    /// Validates every item; errors go to the items.
    pub(super) fn run(&mut self, walk: &mut Walk<'r>, fill: &mut dyn Fill) {
        self.ids = vec![None; walk.items.len()];
        self.records = vec![None; walk.items.len()];
        let mut by_kind: Vec<Vec<usize>> = vec![Vec::new(); self.facts.kinds.len()];
        for (index, item) in walk.items.iter().enumerate() {
            if !matches!(item.fault, Fault::Whole(_)) {
                by_kind[item.kind].push(index);
            }
        }
        for (kind, indexes) in by_kind.iter().enumerate() {
            let of_itself = self.index_targets(kind, walk, &by_kind);
            // Items that refer to other kinds only may be worked on at once.
            for portion in indexes.chunks(if of_itself { 1 } else { PORTION }) {
                self.portion(portion, walk, fill);
            }
        }
    }

    /// Indexes what items of a kind refer to by name or id. Whether that is their own kind too.
    fn index_targets(&mut self, kind: usize, walk: &Walk<'r>, by_kind: &[Vec<usize>]) -> bool {
        let mut of_itself = false;
        for &(field, target) in &self.facts.kinds[kind].foreign {
            let refers = |index: &usize| walk.items[*index].input.get(field).is_some_and(|value| !value.is_null());
            if !by_kind[kind].iter().any(refers) {
                continue;
            }
            of_itself |= target == kind;
            let named = |index: &usize| {
                let id = self.ids[*index].clone()?;
                Some((self.facts.kinds[target].endpoint_value(&walk.items[*index].input), id))
            };
            self.index.build(target, by_kind[target].iter().filter_map(named));
        }
        of_itself
    }

    fn portion(&mut self, portion: &[usize], walk: &mut Walk<'r>, fill: &mut dyn Fill) {
        let mut prepared: Vec<Prepared<'r>> =
            portion.iter().map(|index| self.prepare(*index, &mut walk.items[*index], fill)).collect();
        // Where inputs are not kept, nothing can be tried twice, and a second thread may have to.
        let threads = if self.keep_inputs { self.threads } else { 1 };
        let outcomes = self.validator.all(self.facts, &walk.items, &mut prepared, threads, fill);
        for (prepared, outcome) in prepared.into_iter().zip(outcomes) {
            self.settle(&mut walk.items[prepared.index], prepared, outcome);
        }
    }

    /// What must be known of an item before it is validated.
    fn prepare(&mut self, index: usize, item: &mut Item<'r>, fill: &mut dyn Fill) -> Prepared<'r> {
        let kind = &self.facts.kinds[item.kind];
        let (links, refused) = self.references(index, item);
        let parent = item.parent.and_then(|(parent, link)| Some((link, self.ids[parent].clone()?)));
        let given_id = kind.lacks_id(&item.input).then(|| {
            let parent = parent.as_ref().map(|(link, id)| (*link, id.as_str()));
            kind.stable_id(&item.input, parent).unwrap_or_else(|| fill.uuid())
        });
        // Rows of a control plane are flat: nothing is tried twice there.
        let flat = !self.keep_inputs && parent.is_none();
        let taken = flat.then(|| take_input(kind, item));
        Prepared { index, links, refused, parent, given_id, taken }
    }

    /// Notes what became of an item.
    fn settle(&mut self, item: &mut Item<'r>, prepared: Prepared<'r>, outcome: Outcome) {
        let kind = &self.facts.kinds[item.kind];
        let (index, generated, refused) = (prepared.index, prepared.given_id.is_some(), prepared.refused);
        let mut id = outcome.id;
        match outcome.result {
            Ok(mut record) => {
                if generated && let Some(known) = self.existing.and_then(|existing| existing.find(kind.schema, &record))
                {
                    record.insert("id".to_owned(), Value::from(known));
                    id = Some(known.to_owned());
                }
                self.keep_written(kind, item, &mut record);
                self.records[index] = Some(record);
            }
            Err(mut fields) => {
                name_target(kind, &item.input, &mut fields);
                item.fault.fields().extend(fields);
            }
        }
        if !refused.is_empty() {
            item.fault.fields().extend(refused);
        }
        if let Some(id) = &id {
            self.index.add(item.kind, || kind.endpoint_value(&item.input), id);
        }
        self.ids[index] = id;
    }

    /// Foreign fields as `{"id": ...}`, and the errors of those that cannot be one.
    fn references(&mut self, index: usize, item: &Item<'r>) -> (Record, Map<String, Value>) {
        let (mut links, mut refused) = (Map::new(), Map::new());
        let nowhere = || json!({"id": NOWHERE});
        for &(field, target) in &self.facts.kinds[item.kind].foreign {
            let Some(value) = item.input.get(field).filter(|value| !value.is_null()) else { continue };
            let given = match value {
                Value::String(text) => text,
                Value::Object(object) => match object.get("id") {
                    Some(Value::String(id)) => id,
                    Some(_) => continue,
                    None => {
                        refused.insert(field.to_owned(), json!({"id": "missing primary key"}));
                        links.insert(field.to_owned(), nowhere());
                        continue;
                    }
                },
                _ => continue,
            };
            let nested = item.parent.is_some();
            if nested {
                self.given_nested.push((index, field));
            }
            match self.find(target, given, value.is_string()) {
                Some(id) => {
                    links.insert(field.to_owned(), json!({ "id": id }));
                }
                None if value.is_string() => {
                    links.insert(field.to_owned(), nowhere());
                    if nested {
                        refused.insert(field.to_owned(), Value::from("value must be null"));
                        self.nested_dangling.push(Dangling::new(index, field, value, target));
                    } else {
                        self.dangling.push(Dangling::new(index, field, value, target));
                    }
                }
                None => self.dangling.push(Dangling::new(index, field, value, target)),
            }
        }
        (links, refused)
    }

    /// The id of the record a reference leads to, in the document or stored already.
    fn find(&self, target: usize, given: &str, by_name: bool) -> Option<&str> {
        let found = if by_name { self.index.find(target, given) } else { self.index.find_id(target, given) };
        found.or_else(|| self.existing?.refer(self.facts.kinds[target].schema, given))
    }

    /// Notes texts the engine transformed; without transformation puts them back. Targets are always stored
    /// normalised.
    fn keep_written(&mut self, kind: &Kind<'r>, item: &Item<'r>, record: &mut Record) {
        if self.mode == Mode::DataPlane {
            return;
        }
        let mut written = Map::new();
        for (name, value) in &item.input {
            if name != "id" && value.is_string() && record.get(name).is_some_and(|now| now.is_string() && now != value)
            {
                written.insert(name.clone(), value.clone());
            }
        }
        if written.is_empty() {
            return;
        }
        if !self.transform && kind.name() != "targets" {
            record.extend(written);
        } else if let Some(id) = kind.schema.id_of(record) {
            self.as_written.insert((kind.name().to_owned(), id), written);
        }
    }

    /// Errors that show only when others are there: foreign fields of nested items, references to nothing, and the
    /// certificate that nested server names lack while ids are not settled.
    pub(super) fn add_parent_errors(&self, walk: &mut Walk<'r>) {
        for dangling in &self.dangling {
            let text = Value::String(dangling_text(self.facts, dangling));
            walk.items[dangling.item].fault.fields().insert(dangling.field.clone(), text);
        }
        for &(item, field) in &self.given_nested {
            walk.items[item].fault.fields().insert(field.to_owned(), Value::from("value must be null"));
        }
        for item in &mut walk.items {
            if let Some((_, link)) = item.parent
                && self.facts.kinds[item.kind].name() == "snis"
                && !matches!(item.fault, Fault::Whole(_))
            {
                item.fault.fields().insert(link.to_owned(), Value::from("required field missing"));
            }
        }
    }

    /// References that lead nowhere, of all items.
    pub(super) fn all_dangling(&self) -> Vec<&Dangling> {
        self.dangling.iter().chain(&self.nested_dangling).collect()
    }

    /// The records as tables.
    pub(super) fn finish(self, walk: &Walk<'r>) -> Loaded {
        let mut by_kind: Vec<Vec<Record>> = self.facts.kinds.iter().map(|_| Vec::new()).collect();
        let mut nested_names: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for ((record, item), id) in self.records.into_iter().zip(&walk.items).zip(&self.ids) {
            if let (Some((parent, _)), Some(id), "snis") = (item.parent, id, self.facts.kinds[item.kind].name())
                && let Some(certificate) = &self.ids[parent]
            {
                nested_names.entry(certificate.clone()).or_default().push(id.clone());
            }
            by_kind[item.kind].extend(record);
        }
        let tables = self.facts.kinds.iter().zip(by_kind).filter(|(_, records)| !records.is_empty());
        Loaded {
            tables: tables.map(|(kind, records)| Table { entity: kind.name().to_owned(), records }).collect(),
            default_workspace: String::new(),
            transform: self.transform,
            as_written: self.as_written,
            nested_names,
        }
    }
}

/// Takes the input out of an item; its id and name stay, for errors.
fn take_input(kind: &Kind<'_>, item: &mut Item<'_>) -> Record {
    let input = std::mem::take(&mut item.input);
    for field in kind.schema.endpoint_key.iter().map(String::as_str).chain(["id"]) {
        if let Some(value) = input.get(field) {
            item.input.insert(field.to_owned(), value.clone());
        }
    }
    input
}

/// In a document the error of an address names the address.
fn name_target(kind: &Kind<'_>, input: &Record, fields: &mut Map<String, Value>) {
    if kind.name() != "targets" {
        return;
    }
    if let (Some(target), Some(Value::String(error))) =
        (input.get("target").and_then(Value::as_str), fields.get_mut("target"))
        && let Some(rest) = error.strip_prefix("Invalid target;")
    {
        *error = format!("Invalid target ('{target}');{rest}");
    }
}

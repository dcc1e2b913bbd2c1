//! The validation of items: each by itself, so many at once where there are many.

use super::Mode;
use super::facts::{Facts, Kind};
use super::process::NoRecords;
use super::walk::Item;
use crate::share::each;
use gwctl_entities::{EntityError, Fill, Map, Record, Registry, Value};
use serde_json::json;

/// Makes records of inputs. It knows nothing of other items and changes nothing.
#[derive(Clone, Copy)]
pub(super) struct Validator<'r> {
    pub(super) registry: &'r Registry,
    pub(super) mode: Mode,
    pub(super) transform: bool,
}

/// An item whose references and id are settled.
pub(super) struct Prepared<'r> {
    pub(super) index: usize,
    /// Foreign fields as `{"id": ...}`.
    pub(super) links: Record,
    /// Errors of references.
    pub(super) refused: Map<String, Value>,
    /// The field that links to the item this one is nested in, and the id of that.
    pub(super) parent: Option<(&'r str, String)>,
    /// The id of an item that has none of its own.
    pub(super) given_id: Option<String>,
    /// The input where the item does not keep it.
    pub(super) taken: Option<Record>,
}

impl Prepared<'_> {
    /// The input with references and id.
    fn complete(&self, mut input: Record) -> Record {
        input.extend(self.links.iter().map(|(field, link)| (field.clone(), link.clone())));
        if let Some(id) = &self.given_id {
            input.insert("id".to_owned(), Value::from(id.as_str()));
        }
        input
    }
}

/// What became of an item.
pub(super) struct Outcome {
    pub(super) id: Option<String>,
    pub(super) result: Result<Record, Map<String, Value>>,
}

impl<'r> Validator<'r> {
    /// Validates items of one kind, in their order, on so many threads at most.
    pub(super) fn all(
        &self,
        facts: &Facts<'r>,
        items: &[Item<'r>],
        prepared: &mut [Prepared<'r>],
        threads: usize,
        fill: &mut dyn Fill,
    ) -> Vec<Outcome> {
        each(prepared, threads, fill, |prepared, fill| {
            let item = &items[prepared.index];
            self.one(&facts.kinds[item.kind], item, prepared, fill)
        })
    }

    fn one(&self, kind: &Kind<'r>, item: &Item<'r>, prepared: &mut Prepared<'r>, fill: &mut dyn Fill) -> Outcome {
        let input = prepared.taken.take().unwrap_or_else(|| item.input.clone());
        let input = prepared.complete(input);
        let id = kind.schema.id_of(&input);
        let result = self.validate(kind, input, item, prepared, fill);
        Outcome { id, result }
    }

    /// The record of an input, or its errors. The link to a nesting parent is shown to the engine only where it must
    /// be: plugins may be nested where they may not refer to.
    fn validate(
        &self,
        kind: &Kind<'r>,
        mut input: Record,
        item: &Item<'r>,
        prepared: &Prepared<'r>,
        fill: &mut dyn Fill,
    ) -> Result<Record, Map<String, Value>> {
        let Some((field, id)) = &prepared.parent else { return self.record(kind, input, fill) };
        let required = kind.schema.schema.field(field).is_some_and(|field| field.required);
        let linked = || json!({ "id": id });
        if required {
            input.insert((*field).to_owned(), linked());
        } else {
            input.remove(*field);
        }
        let record = match self.record(kind, input, fill) {
            Err(_) if !required => {
                let mut input = prepared.complete(item.input.clone());
                input.insert((*field).to_owned(), linked());
                self.record(kind, input, fill)
            }
            result => result,
        };
        record.map(|mut record| {
            record.insert((*field).to_owned(), linked());
            record
        })
    }

    fn record(&self, kind: &Kind<'r>, mut input: Record, fill: &mut dyn Fill) -> Result<Record, Map<String, Value>> {
        let stored = self.mode == Mode::DataPlane && !self.transform;
        if stored {
            return self.registry.import_row(kind.name(), input, fill).map_err(fields_of);
        }
        if self.mode == Mode::DataPlane {
            input.retain(|name, value| !value.is_null() || kind.schema.schema.field(name).is_some());
        }
        let ttl = if kind.schema.ttl { input.remove("ttl") } else { None };
        let touched = input.get("updated_at").filter(|value| value.is_number()).cloned();
        let result = self.registry.process_insert(kind.name(), input, fill, &NoRecords).map_err(fields_of);
        let expiry = match ttl {
            None | Some(Value::Null) => Ok(Value::Null),
            Some(ttl) if ttl.as_f64().is_some_and(|seconds| seconds >= 0.0) => Ok(ttl),
            Some(_) => Err(Map::from_iter([("ttl".to_owned(), Value::from("expected a number"))])),
        };
        let mut record = match (result, &expiry) {
            (Ok(record), _) => record,
            (Err(mut fields), Err(more)) => {
                fields.extend(more.clone());
                return Err(fields);
            }
            (Err(fields), Ok(_)) => return Err(fields),
        };
        if kind.schema.ttl {
            record.insert("ttl".to_owned(), expiry?);
        }
        if let Some(touched) = touched {
            record.insert("updated_at".to_owned(), touched);
        }
        Ok(record)
    }
}

/// The error tree of a refusal by the engine.
fn fields_of(error: EntityError) -> Map<String, Value> {
    match error {
        EntityError::SchemaViolation { fields } | EntityError::ForeignKeysUnresolved { fields } => fields,
        EntityError::InvalidPrimaryKey { key } => key,
        other => Map::from_iter([("@entity".to_owned(), json!([other.to_string()]))]),
    }
}

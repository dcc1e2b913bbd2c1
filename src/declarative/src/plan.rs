//! The ordered operations that lead from one configuration to another.

mod compare;
mod moves;
mod order;
mod recorded;
#[cfg(test)]
mod tests;

pub(crate) use order::{NOT_PLANNED, label, referred, selected};
pub use order::{diff, is_planned};
pub use recorded::{Recorded, changed_secrets, name_of, recorded};

use crate::answer::flat;
use crate::share::each;
use crate::{Existing, LoadOptions, Mode, Refusal, Table, load_located};
use gwctl_entities::{Fill, Record, Registry, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Stands for a value from the environment, as in decK.
const MASKED: &str = "[masked]";

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// `+`: the record is new.
    Create,
    /// `~`: the record exists and changes.
    Update,
    /// `-`: the record goes.
    Delete,
}

/// One field that changes; nested fields are dotted (`config.minute`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Dotted path.
    pub field: String,
    /// Value before; null when absent.
    pub before: Value,
    /// Value after; null when absent.
    pub after: Value,
    /// The values are secret and must not be shown.
    pub secret: bool,
}

/// A record that another one hangs below.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// Schema name.
    pub entity: String,
    /// Id of the record.
    pub id: String,
    /// What people call it, else the id.
    pub name: String,
}

/// One request to an Admin API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// See [`Action`].
    pub action: Action,
    /// Schema name.
    pub entity: String,
    /// Id of the record.
    pub id: String,
    /// What people call it: name, username, target ...; else the id.
    pub name: String,
    /// The record it hangs below, if any.
    pub parent: Option<Parent>,
    /// Stored record before; None for a create.
    pub before: Option<Record>,
    /// Record after; None for a delete.
    pub after: Option<Record>,
    /// Fields that change; for a create those that differ from their default, none for a delete.
    pub changes: Vec<Change>,
    /// `PUT` and `DELETE` go to this path (`/services/<id>`, `/consumers/<id>/acls/<id>`).
    pub path: String,
    /// Where a `POST` of the same body creates it when the `PUT` answers 404 (`/upstreams/<id>/targets`).
    pub post_path: Option<String>,
    /// Body of the `PUT` (or `POST`): values as written in the file, `created_at` of the stored record, `ttl` absolute
    /// (see [`Operation::body`]).
    pub body_for_put: Option<Record>,
    /// The password in the body is the stored hash of one: a server that hashes what it is sent must not get it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stored: bool,
}

impl Operation {
    /// HTTP method of the request.
    pub fn method(&self) -> &'static str {
        if self.action == Action::Delete { "DELETE" } else { "PUT" }
    }

    /// Body to send at this time: `ttl` as the seconds that remain. None for a delete.
    pub fn body(&self, now_millis: u64) -> Option<Record> {
        let mut body = self.body_for_put.clone()?;
        if let Some(expiry) = body.remove("ttl").as_ref().and_then(Value::as_f64) {
            #[expect(clippy::cast_precision_loss, reason = "milliseconds of the present are exact in a double")]
            let remaining = (expiry - now_millis as f64 / 1000.0).max(1.0).ceil();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, casts saturate")]
            body.insert("ttl".to_owned(), Value::from(remaining as u64));
        }
        Some(body)
    }
}

/// What to compare.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffOptions {
    /// Only records that carry all of these tags are deleted; records of the file get them.
    pub select_tags: Vec<String>,
    /// Delete what the file does not name.
    pub prune: bool,
    /// See [`LoadOptions::threads`].
    pub threads: usize,
}

/// Ordered operations: deletes that make room for a record of the same name, creates and updates parents first,
/// then the other deletes children first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// See [`Operation`].
    pub operations: Vec<Operation>,
    /// Records that exist, are not in the file and stay because pruning was not asked for: entity and name.
    pub left: Vec<(String, String)>,
    /// Things to know before applying.
    pub warnings: Vec<String>,
    /// Names by id of the records that changes refer to (`service`, `consumer`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, String>,
}

impl Plan {
    /// Number of operations of this kind.
    pub fn count(&self, action: Action) -> usize {
        self.operations.iter().filter(|operation| operation.action == action).count()
    }

    /// Puts `[masked]` in place of these values (the longest first) in all that is shown: changes, names, warnings.
    /// What is sent stays. Values of one or two characters are masked only where they are the whole value.
    pub fn mask(&mut self, values: &[String]) {
        if values.is_empty() {
            return;
        }
        let text = |text: &mut String| mask_text(text, values);
        for operation in &mut self.operations {
            text(&mut operation.name);
            operation.parent.iter_mut().for_each(|parent| text(&mut parent.name));
            for change in &mut operation.changes {
                mask_value(&mut change.before, values);
                mask_value(&mut change.after, values);
            }
        }
        self.left.iter_mut().for_each(|(_, name)| text(name));
        self.warnings.iter_mut().for_each(text);
        self.names.values_mut().for_each(text);
    }

    /// Nothing to do.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}

/// Reads `document` against the stored records and compares.
///
/// `current` may be in stored form or as the Admin API shows records. Records of the file without id keep the id of
/// the stored one with the same name or place; references may lead to stored records. Errors: as [`load_located`].
pub fn plan(
    registry: &Registry,
    current: &[Table],
    document: Value,
    options: &DiffOptions,
    fill: &mut dyn Fill,
) -> Result<Plan, Refusal> {
    let current = settled(registry, current, options.threads, fill);
    let existing = Existing::new(registry, &current);
    let (existing, threads) = (&existing, options.threads);
    let load_options = LoadOptions { existing: Some(existing), threads, ..LoadOptions::of(Mode::Partial) };
    let target = load_located(registry, document, &load_options, fill)?;
    Ok(diff(registry, &current, existing, &target, options))
}

fn mask_text(text: &mut String, values: &[String]) {
    for value in values {
        if text == value {
            *text = MASKED.to_owned();
        } else if value.len() > 2 && text.contains(value.as_str()) {
            *text = text.replace(value.as_str(), MASKED);
        }
    }
}

fn mask_value(value: &mut Value, values: &[String]) {
    match value {
        Value::String(text) => mask_text(text, values),
        Value::Array(list) => list.iter_mut().for_each(|value| mask_value(value, values)),
        Value::Object(map) => map.values_mut().for_each(|value| mask_value(value, values)),
        Value::Number(_) | Value::Bool(_) if values.contains(&value.to_string()) => *value = Value::from(MASKED),
        _ => {}
    }
}

/// Records as the Admin API shows them, brought back to stored form: without echoed deprecated fields, complete.
/// One that the engine does not accept (of a newer server) stays as it is.
pub(crate) fn settled(registry: &Registry, tables: &[Table], threads: usize, fill: &mut dyn Fill) -> Vec<Table> {
    let mut settled = Vec::with_capacity(tables.len());
    for table in tables {
        let Some(schema) = registry.entity(&table.entity) else { continue };
        let mut records: Vec<&Record> = table.records.iter().collect();
        let records = each(&mut records, threads, fill, |record, fill| {
            let mut row = flat(schema, record);
            if table.entity == "certificates" {
                row.remove("snis");
            }
            registry.import_row(&table.entity, row, fill).unwrap_or_else(|_| (*record).clone())
        });
        settled.push(Table { entity: table.entity.clone(), records });
    }
    settled
}

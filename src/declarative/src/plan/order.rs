//! Operations in the order in which they may be sent.

use super::compare::{changes, settings};
use super::{Action, DiffOptions, Operation, Parent, Plan};
use crate::share::parts;
use crate::{Existing, Loaded, Table};
use gwctl_entities::{EntitySchema, Record, Registry, Value};
use serde_json::json;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Entities that the gateway itself writes while it runs, and internal ones: never part of a plan.
pub(crate) const NOT_PLANNED: [&str; 9] = [
    "workspaces",
    "parameters",
    "tags",
    "clustering_data_planes",
    "acme_storage",
    "oauth2_tokens",
    "oauth2_authorization_codes",
    "sessions",
    "ratelimiting_metrics",
];

/// Whether an entity is configuration: not written by the gateway itself while it runs, not internal.
pub fn is_planned(entity: &str) -> bool {
    !NOT_PLANNED.contains(&entity)
}

/// Fields by which people know a record, none of them secret.
const LABELS: [&str; 9] =
    ["name", "username", "custom_id", "target", "prefix", "group", "client_id", "kid", "cert_digest"];

/// Records by entity and id.
type Records<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a Record>>;

/// Compares stored records with a loaded document by id. `existing` are the keys of `current`; the document must have
/// been loaded with them, so that ids are kept.
pub fn diff(
    registry: &Registry,
    current: &[Table],
    existing: &Existing,
    target: &Loaded,
    options: &DiffOptions,
) -> Plan {
    Differ { registry, options, target, existing, before: by_id(current), after: by_id(&target.tables) }.plan()
}

fn by_id(tables: &[Table]) -> Records<'_> {
    let mut records = Records::new();
    for table in tables.iter().filter(|table| !NOT_PLANNED.contains(&table.entity.as_str())) {
        let rows = table.records.iter().filter_map(|record| Some((record.get("id")?.as_str()?, record)));
        // A map made of a list is sorted once.
        records.insert(&table.entity, rows.collect());
    }
    records
}

fn find<'a>(records: &Records<'a>, entity: &str, id: &str) -> Option<&'a Record> {
    records.get(entity)?.get(id).copied()
}

/// What is to be done about one record.
struct Step<'a> {
    name: &'a str,
    id: &'a str,
    warnings: Vec<String>,
    /// The stored record that must go first.
    replaced: Option<String>,
    operation: Option<Operation>,
}

struct Differ<'a> {
    registry: &'a Registry,
    options: &'a DiffOptions,
    target: &'a Loaded,
    existing: &'a Existing,
    before: Records<'a>,
    after: Records<'a>,
}

impl Differ<'_> {
    fn plan(&self) -> Plan {
        let mut plan = Plan::default();
        let (mut replaced, mut written) = (Vec::new(), Vec::new());
        for schema in self.planned() {
            for step in self.steps(schema) {
                plan.warnings.extend(step.warnings);
                replaced.extend(step.replaced.map(|old| (schema.name.clone(), old)));
                written.extend(step.operation);
            }
        }
        let gone: BTreeSet<&(String, String)> = replaced.iter().collect();
        let mut deletes = Vec::new();
        for schema in self.planned().into_iter().rev() {
            let after = self.after.get(schema.name.as_str());
            let leaves = |id: &str, before: &Record| {
                after.is_none_or(|after| !after.contains_key(id))
                    && !gone.contains(&(schema.name.clone(), id.to_owned()))
                    && selected(before, &self.options.select_tags)
            };
            for (id, before) in sorted(schema, &self.before, leaves) {
                if self.options.prune {
                    deletes.push(self.delete(schema, id, before));
                } else {
                    plan.left.push((schema.name.clone(), label(before, id)));
                }
            }
        }
        let first = replaced.iter().rev().filter_map(|(entity, id)| {
            let before = find(&self.before, entity, id)?;
            Some(self.delete(self.registry.entity(entity)?, id, before))
        });
        plan.operations = first.chain(written).chain(deletes).collect();
        plan.names = gather_names(&plan.operations, &|id| self.name_of_id(id));
        plan.tell_moves(self.registry);
        plan
    }

    /// What is to be done about the records of an entity that are in the target, by name.
    fn steps(&self, schema: &EntitySchema) -> Vec<Box<Step<'_>>> {
        let before = self.before.get(schema.name.as_str());
        let mut records: Vec<(&str, &Record)> =
            self.after.get(schema.name.as_str()).into_iter().flatten().map(|(id, record)| (*id, *record)).collect();
        let steps = parts(&mut records, self.options.threads, |(id, after)| {
            self.step(schema, id, before.and_then(|before| before.get(id)).copied(), after)
        });
        let mut steps: Vec<_> = steps.into_iter().flatten().collect();
        steps.sort_unstable_by_key(|step| (step.name, step.id));
        steps
    }

    /// None for a record that stays as it is, as most do.
    fn step<'s>(
        &'s self,
        schema: &EntitySchema,
        id: &'s str,
        known: Option<&Record>,
        after: &'s Record,
    ) -> Option<Box<Step<'s>>> {
        let mut warnings = Vec::new();
        let replaced = if known.is_none() { self.in_the_way(schema, id, after) } else { None };
        warnings.extend(replaced.as_ref().map(|old| {
            let name = label(after, id);
            format!(
                "{} {name}: the id changes from {old} to {id}, so the record is deleted and made again",
                schema.name
            )
        }));
        let operation = self.write(schema, id, known, after, &mut warnings);
        let any = operation.is_some() || replaced.is_some() || !warnings.is_empty();
        any.then(|| Box::new(Step { name: known_as(after, id), id, warnings, replaced, operation }))
    }

    /// Entities a plan may touch, parents before children.
    fn planned(&self) -> Vec<&EntitySchema> {
        self.registry.entities().filter(|schema| !NOT_PLANNED.contains(&schema.name.as_str())).collect()
    }

    /// A stored record that holds the unique values of a new one and is not part of the target.
    fn in_the_way(&self, schema: &EntitySchema, id: &str, after: &Record) -> Option<String> {
        let old = self.existing.find(schema, after)?;
        let stays = find(&self.after, &schema.name, old).is_some();
        (old != id && !stays).then(|| old.to_owned())
    }

    fn write(
        &self,
        schema: &EntitySchema,
        id: &str,
        before: Option<&Record>,
        after: &Record,
        warnings: &mut Vec<String>,
    ) -> Option<Operation> {
        let after = self.tagged(schema, after);
        let after = after.as_ref();
        let fields = schema.schema_of(after);
        let mut changes = match before {
            Some(before) => changes(fields, before, after),
            None => settings(fields, after),
        };
        // A file made from stored records holds the hash of a password where others hold the password.
        if before.is_some() && !changes.is_empty() {
            let written = self.target.as_written.get(&(schema.name.clone(), id.to_owned()));
            changes.retain(|change| {
                change.before.is_null()
                    || written.and_then(|written| written.get(&change.field)) != Some(&change.before)
            });
        }
        let count = changes.len();
        changes.retain(|change| !is_salted(&change.before) || !is_salted(&change.after));
        if changes.len() < count {
            let name = label(after, id);
            warnings.push(format!(
                "{} {name}: the stored secret is a salted hash and is not compared; change another field too to send \
                 the one of the file",
                schema.name
            ));
        }
        if before.is_some() && changes.is_empty() {
            return None;
        }
        if let Some(before) = before
            && !selected(before, &self.options.select_tags)
        {
            let tags = self.options.select_tags.join(", ");
            let name = label(before, id);
            warnings.push(format!("{} {name}: stored without the tags {tags}; this plan takes it over", schema.name));
        }
        let action = if before.is_some() { Action::Update } else { Action::Create };
        let mut operation = self.operation(action, schema, id, after);
        operation.body_for_put = Some(self.body(schema, &operation.id, before, after));
        operation.before = before.cloned();
        operation.after = Some(after.clone());
        operation.changes = changes;
        operation.stored = self.holds_stored_password(&operation);
        if !operation.stored && before.is_none() && password_of(&operation).is_some_and(is_digest) {
            warnings.push(format!(
                "{} {}: the password looks like a stored hash and is hashed again; if it is one, write \
                 `_transform: false` at the top of the file",
                schema.name, operation.name
            ));
        }
        Some(operation)
    }

    /// Whether the file gives the password of a credential as it is stored: it says so, or the stored one is the same.
    fn holds_stored_password(&self, operation: &Operation) -> bool {
        let Some(password) = password_of(operation) else { return false };
        let before = operation.before.as_ref().and_then(|before| before.get("password")?.as_str());
        !self.target.transform || before == Some(password)
    }

    fn delete(&self, schema: &EntitySchema, id: &str, before: &Record) -> Operation {
        let mut operation = self.operation(Action::Delete, schema, id, before);
        operation.before = Some(before.clone());
        operation
    }

    fn operation(&self, action: Action, schema: &EntitySchema, id: &str, record: &Record) -> Operation {
        let (path, post_path) = paths(schema, id, record);
        Operation {
            action,
            entity: schema.name.clone(),
            name: label(record, id),
            parent: self.parent(schema, record),
            before: None,
            after: None,
            changes: Vec::new(),
            path,
            post_path: post_path.filter(|_| action != Action::Delete),
            body_for_put: None,
            stored: false,
            id: id.to_owned(),
        }
    }

    /// The record with the selected tags.
    fn tagged<'r>(&self, schema: &EntitySchema, record: &'r Record) -> Cow<'r, Record> {
        if self.options.select_tags.is_empty() || schema.schema.field("tags").is_none() {
            return Cow::Borrowed(record);
        }
        let mut record = record.clone();
        let mut tags = record.get("tags").and_then(Value::as_array).cloned().unwrap_or_default();
        let missing = self.options.select_tags.iter().map(|tag| json!(tag)).filter(|tag| !tags.contains(tag));
        tags.extend(missing.collect::<Vec<_>>());
        record.insert("tags".to_owned(), Value::Array(tags));
        Cow::Owned(record)
    }

    fn body(&self, schema: &EntitySchema, id: &str, before: Option<&Record>, after: &Record) -> Record {
        let mut body = after.clone();
        if let Some(written) = self.target.as_written.get(&(schema.name.clone(), id.to_owned())) {
            body.extend(written.clone());
        }
        for time in ["created_at", "updated_at"] {
            body.remove(time);
        }
        if let Some(created) = before.and_then(|before| before.get("created_at")).filter(|value| !value.is_null()) {
            body.insert("created_at".to_owned(), created.clone());
        }
        if body.get("ttl").is_some_and(Value::is_null) {
            body.remove("ttl");
        }
        body
    }

    /// The first record this one refers to.
    fn parent(&self, schema: &EntitySchema, record: &Record) -> Option<Parent> {
        parent_in(schema, record, &|entity, id| self.name_in(entity, id))
    }

    fn name_in(&self, entity: &str, id: &str) -> Option<String> {
        let record = find(&self.after, entity, id).or_else(|| find(&self.before, entity, id))?;
        Some(label(record, id))
    }

    fn name_of_id(&self, id: &str) -> Option<String> {
        let entities: BTreeSet<&str> = self.after.keys().chain(self.before.keys()).copied().collect();
        entities.into_iter().find_map(|entity| self.name_in(entity, id))
    }
}

/// The first record that one refers to; `named` tells what people call a record of an entity.
pub(super) fn parent_in(
    schema: &EntitySchema,
    record: &Record,
    named: &dyn Fn(&str, &str) -> Option<String>,
) -> Option<Parent> {
    let key = schema.foreign_keys.iter().find(|key| schema.foreign_id(record, &key.field).is_some())?;
    let id = schema.foreign_id(record, &key.field)?.to_owned();
    let name = named(&key.references, &id).unwrap_or_else(|| id.clone());
    Some(Parent { entity: key.references.clone(), id, name })
}

/// The names of all records that the changes of these operations refer to.
pub(super) fn gather_names(
    operations: &[Operation],
    named: &dyn Fn(&str) -> Option<String>,
) -> BTreeMap<String, String> {
    let changes = operations.iter().flat_map(|operation| &operation.changes);
    let ids: BTreeSet<&str> = changes.flat_map(|change| [&change.before, &change.after]).filter_map(referred).collect();
    ids.into_iter().filter_map(|id| Some((id.to_owned(), named(id)?))).collect()
}

/// The id in `{"id": ...}`.
pub(crate) fn referred(value: &Value) -> Option<&str> {
    value.as_object().filter(|object| object.len() == 1)?.get("id")?.as_str()
}

/// Whether a record carries all of these tags.
pub(crate) fn selected(record: &Record, tags: &[String]) -> bool {
    let own = record.get("tags").and_then(Value::as_array);
    tags.iter().all(|tag| own.is_some_and(|own| own.iter().any(|have| have.as_str() == Some(tag))))
}

/// The records of one entity that are wanted, by name.
fn sorted<'a>(
    schema: &EntitySchema,
    records: &Records<'a>,
    wanted: impl Fn(&str, &Record) -> bool,
) -> Vec<(&'a str, &'a Record)> {
    let of_entity = records.get(schema.name.as_str()).into_iter().flatten();
    let mut list: Vec<(&str, &str, &Record)> = of_entity
        .filter(|(id, record)| wanted(id, record))
        .map(|(id, record)| (known_as(record, id), *id, *record))
        .collect();
    list.sort_unstable_by_key(|(name, id, _)| (*name, *id));
    list.into_iter().map(|(_, id, record)| (id, record)).collect()
}

/// What people call a record.
pub(crate) fn label(record: &Record, id: &str) -> String {
    known_as(record, id).to_owned()
}

fn known_as<'a>(record: &'a Record, id: &'a str) -> &'a str {
    LABELS.iter().find_map(|field| record.get(*field)?.as_str()).unwrap_or(id)
}

/// The password of a basic-auth credential as it is to be sent.
fn password_of(operation: &Operation) -> Option<&str> {
    let body = operation.body_for_put.as_ref().filter(|_| operation.entity == "basicauth_credentials")?;
    body.get("password")?.as_str()
}

/// Whether a text has the form in which passwords are stored: SHA-1 in hexadecimal digits.
fn is_digest(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|letter| letter.is_ascii_digit() || (b'a'..=b'f').contains(&letter))
}

/// A hash that is another one each time it is made (`hash_secret` of OAuth 2.0 clients).
fn is_salted(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.starts_with("$pbkdf2-sha512$"))
}

/// Path of the record, and of the list below its parent where a `PUT` does not create.
fn paths(schema: &EntitySchema, id: &str, record: &Record) -> (String, Option<String>) {
    let below = |field: &str, parents: &str| {
        let parent = schema.foreign_id(record, field)?;
        Some(format!("/{parents}/{parent}/{}", schema.nested_name))
    };
    if schema.name == "targets"
        && let Some(list) = below("upstream", "upstreams")
    {
        return (format!("{list}/{id}"), Some(list));
    }
    if schema.plugin.is_some()
        && let Some(list) = below("consumer", "consumers")
    {
        return (format!("{list}/{id}"), None);
    }
    (format!("/{}/{id}", schema.endpoint.as_deref().unwrap_or(&schema.name)), None)
}

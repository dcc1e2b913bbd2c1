//! Operations in the order in which they may be sent.

use super::compare::{changes, settings};
use super::{Action, DiffOptions, Operation, Parent, Plan};
use crate::{Existing, Loaded, Table};
use gwctl_entities::{EntitySchema, Record, Registry, Value};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Entities that the gateway itself writes while it runs, and internal ones: never part of a plan.
const NOT_PLANNED: [&str; 9] = [
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

/// Fields by which people know a record, none of them secret.
const LABELS: [&str; 9] =
    ["name", "username", "custom_id", "target", "prefix", "group", "client_id", "kid", "cert_digest"];

type Records<'a> = BTreeMap<(&'a str, String), &'a Record>;

/// Compares stored records with a loaded document by id. Load it with [`Existing`] so that ids are kept.
pub fn diff(registry: &Registry, current: &[Table], target: &Loaded, options: &DiffOptions) -> Plan {
    let existing = Existing::new(registry, current);
    let differ = Differ {
        registry,
        options,
        target,
        existing: &existing,
        before: by_id(registry, current),
        after: by_id(registry, &target.tables),
    };
    differ.plan()
}

fn by_id<'a>(registry: &Registry, tables: &'a [Table]) -> Records<'a> {
    let mut records = BTreeMap::new();
    for table in tables {
        let Some(schema) = registry.entity(&table.entity) else { continue };
        let rows = table.records.iter().filter_map(|record| Some((schema.id_of(record)?, record)));
        records.extend(rows.map(|(id, record)| ((table.entity.as_str(), id), record)));
    }
    records
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
            for (id, after) in sorted(schema, &self.after) {
                let known = self.before.get(&(schema.name.as_str(), id.clone())).copied();
                if known.is_none()
                    && let Some(old) = self.in_the_way(schema, &id, after)
                {
                    plan.warnings.push(format!(
                        "{} {}: the id changes from {old} to {id}, so the record is deleted and made again",
                        schema.name,
                        label(after, &id)
                    ));
                    replaced.push((schema.name.clone(), old));
                }
                written.extend(self.write(schema, id, known, after, &mut plan.warnings));
            }
        }
        let gone: BTreeSet<&(String, String)> = replaced.iter().collect();
        let mut deletes = Vec::new();
        for schema in self.planned().into_iter().rev() {
            for (id, before) in sorted(schema, &self.before) {
                let kept = self.after.contains_key(&(schema.name.as_str(), id.clone()));
                if kept || gone.contains(&(schema.name.clone(), id.clone())) || !self.selected(before) {
                    continue;
                }
                if self.options.prune {
                    deletes.push(self.delete(schema, id, before));
                } else {
                    plan.left.push((schema.name.clone(), label(before, &id)));
                }
            }
        }
        let first = replaced.iter().rev().filter_map(|(entity, id)| {
            let before = self.before.get(&(entity.as_str(), id.clone()))?;
            Some(self.delete(self.registry.entity(entity)?, id.clone(), before))
        });
        plan.operations = first.chain(written).chain(deletes).collect();
        plan
    }

    /// Entities a plan may touch, parents before children.
    fn planned(&self) -> Vec<&EntitySchema> {
        self.registry.entities().filter(|schema| !NOT_PLANNED.contains(&schema.name.as_str())).collect()
    }

    /// A stored record that holds the unique values of a new one and is not part of the target.
    fn in_the_way(&self, schema: &EntitySchema, id: &str, after: &Record) -> Option<String> {
        let old = self.existing.find(schema, after)?;
        let stays = self.after.contains_key(&(schema.name.as_str(), old.to_owned()));
        (old != id && !stays).then(|| old.to_owned())
    }

    fn selected(&self, record: &Record) -> bool {
        let tags = record.get("tags").and_then(Value::as_array);
        let has = |tag: &String| tags.is_some_and(|tags| tags.iter().any(|have| have.as_str() == Some(tag)));
        self.options.select_tags.iter().all(has)
    }

    fn write(
        &self,
        schema: &EntitySchema,
        id: String,
        before: Option<&Record>,
        after: &Record,
        warnings: &mut Vec<String>,
    ) -> Option<Operation> {
        let after = &self.tagged(schema, after);
        let fields = schema.schema_of(after);
        let mut changes = match before {
            Some(before) => changes(fields, before, after),
            None => settings(fields, after),
        };
        let count = changes.len();
        changes.retain(|change| !is_salted(&change.before) || !is_salted(&change.after));
        if changes.len() < count {
            let name = label(after, &id);
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
            && !self.selected(before)
        {
            let tags = self.options.select_tags.join(", ");
            let name = label(before, &id);
            warnings.push(format!("{} {name}: stored without the tags {tags}; this plan takes it over", schema.name));
        }
        if !self.target.transform && after.get("password").is_some_and(Value::is_string) {
            let name = label(after, &id);
            warnings.push(format!(
                "{} {name}: the file holds the stored hash of the password (_transform: false); \
                 sent to an Admin API it is hashed again",
                schema.name
            ));
        }
        let action = if before.is_some() { Action::Update } else { Action::Create };
        let mut operation = self.operation(action, schema, id, after);
        operation.body_for_put = Some(self.body(schema, &operation.id, before, after));
        operation.before = before.cloned();
        operation.after = Some(after.clone());
        operation.changes = changes;
        Some(operation)
    }

    fn delete(&self, schema: &EntitySchema, id: String, before: &Record) -> Operation {
        let mut operation = self.operation(Action::Delete, schema, id, before);
        operation.before = Some(before.clone());
        operation
    }

    fn operation(&self, action: Action, schema: &EntitySchema, id: String, record: &Record) -> Operation {
        let (path, post_path) = paths(schema, &id, record);
        Operation {
            action,
            entity: schema.name.clone(),
            name: label(record, &id),
            parent: self.parent(schema, record),
            before: None,
            after: None,
            changes: Vec::new(),
            path,
            post_path: post_path.filter(|_| action != Action::Delete),
            body_for_put: None,
            id,
        }
    }

    /// The record with the selected tags.
    fn tagged(&self, schema: &EntitySchema, record: &Record) -> Record {
        let mut record = record.clone();
        if self.options.select_tags.is_empty() || schema.schema.field("tags").is_none() {
            return record;
        }
        let mut tags = record.get("tags").and_then(Value::as_array).cloned().unwrap_or_default();
        let missing = self.options.select_tags.iter().map(|tag| json!(tag)).filter(|tag| !tags.contains(tag));
        tags.extend(missing.collect::<Vec<_>>());
        record.insert("tags".to_owned(), Value::Array(tags));
        record
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
        let key = schema.foreign_keys.iter().find(|key| schema.foreign_id(record, &key.field).is_some())?;
        let id = schema.foreign_id(record, &key.field)?.to_owned();
        let at = (key.references.as_str(), id.clone());
        let referred = self.after.get(&at).or_else(|| self.before.get(&at));
        let name = referred.map_or_else(|| id.clone(), |record| label(record, &id));
        Some(Parent { entity: key.references.clone(), id, name })
    }
}

/// Records of one entity by name.
fn sorted<'a>(schema: &EntitySchema, records: &Records<'a>) -> Vec<(String, &'a Record)> {
    let of_entity = records.iter().filter(|((entity, _), _)| *entity == schema.name);
    let mut list: Vec<(String, &Record)> = of_entity.map(|((_, id), record)| (id.clone(), *record)).collect();
    list.sort_by_cached_key(|(id, record)| (label(record, id), id.clone()));
    list
}

fn label(record: &Record, id: &str) -> String {
    let named = LABELS.iter().find_map(|field| record.get(*field)?.as_str());
    named.unwrap_or(id).to_owned()
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

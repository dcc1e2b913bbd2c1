//! Changes of the log as a plan to show: what a version did, what a rollback would do.

use super::compare::{changes, settings};
use super::order::{gather_names, label, parent_in};
use super::{Action, Change, Operation, Plan};
use crate::secret::MASK;
use gwctl_entities::{EntitySchema, Record, Registry, Value};
use std::collections::BTreeMap;

/// What happened to one record; secrets may be masked already.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recorded {
    /// Schema name.
    pub entity: String,
    /// Id of the record.
    pub id: String,
    /// The record before; None when it was created.
    pub old: Option<Record>,
    /// The record after; None when it was deleted.
    pub new: Option<Record>,
    /// Dotted paths of secrets that changed, which masked records do not tell.
    pub secrets_changed: Vec<String>,
}

/// Dotted paths of the secrets that differ between two records of an entity.
pub fn changed_secrets(registry: &Registry, entity: &str, old: &Record, new: &Record) -> Vec<String> {
    let Some(schema) = registry.entity(entity) else { return Vec::new() };
    let changes = changes(schema.schema_of(new), old, new);
    changes.into_iter().filter(|change| change.secret).map(|change| change.field).collect()
}

/// What people call a record: name, username, target ...; None when it has none of these. Never a secret.
pub fn name_of(record: &Record) -> Option<String> {
    Some(label(record, "")).filter(|name| !name.is_empty())
}

/// Recorded changes as operations to show, in their order. Nothing of it can be sent. `names` are names by id of records
/// that these refer to; those of the changes themselves are added.
pub fn recorded(registry: &Registry, recorded: &[Recorded], names: &BTreeMap<String, String>) -> Plan {
    let mut names = names.clone();
    for change in recorded {
        let name = change.new.as_ref().or(change.old.as_ref()).and_then(name_of);
        names.extend(name.map(|name| (change.id.clone(), name)));
    }
    let mut plan = Plan::default();
    for change in recorded {
        plan.operations.extend(operation(registry, change, &names));
    }
    plan.names = gather_names(&plan.operations, &|id| names.get(id).cloned());
    plan.tell_moves(registry);
    plan
}

fn operation(registry: &Registry, change: &Recorded, names: &BTreeMap<String, String>) -> Option<Operation> {
    let schema = registry.entity(&change.entity);
    let record = change.new.as_ref().or(change.old.as_ref())?;
    let action = match (&change.old, &change.new) {
        (None, _) => Action::Create,
        (_, None) => Action::Delete,
        _ => Action::Update,
    };
    let named = |_: &str, id: &str| names.get(id).cloned();
    Some(Operation {
        action,
        entity: change.entity.clone(),
        id: change.id.clone(),
        name: label(record, &change.id),
        parent: schema.and_then(|schema| parent_in(schema, record, &named)),
        before: change.old.clone(),
        after: change.new.clone(),
        changes: schema.map(|schema| differences(schema, change)).unwrap_or_default(),
        path: String::new(),
        post_path: None,
        body_for_put: None,
        stored: false,
    })
}

fn differences(schema: &EntitySchema, change: &Recorded) -> Vec<Change> {
    let Some(new) = &change.new else { return Vec::new() };
    let fields = schema.schema_of(new);
    let Some(old) = &change.old else { return settings(fields, new) };
    let mut found = changes(fields, old, new);
    for field in &change.secrets_changed {
        if !found.iter().any(|change| change.field == *field) {
            let mask = Value::from(MASK);
            found.push(Change { field: field.clone(), before: mask.clone(), after: mask, secret: true });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::tests::registry;
    use serde_json::json;

    fn record(value: Value) -> Option<Record> {
        value.as_object().cloned()
    }

    #[test]
    fn changes_of_the_log_are_told_like_those_of_a_plan() {
        let (alice, bob, key) = ("aaaa", "bbbb", "kkkk");
        let changes = [
            Recorded {
                entity: "consumers".into(),
                id: bob.into(),
                new: record(json!({"id": bob, "username": "bob"})),
                ..Recorded::default()
            },
            Recorded {
                entity: "keyauth_credentials".into(),
                id: key.into(),
                old: record(json!({"id": key, "key": MASK, "consumer": {"id": alice}})),
                new: record(json!({"id": key, "key": MASK, "consumer": {"id": bob}})),
                secrets_changed: vec!["key".into()],
            },
            Recorded {
                entity: "services".into(),
                id: "s".into(),
                old: record(json!({"id": "s", "name": "orders"})),
                ..Recorded::default()
            },
        ];
        let names = BTreeMap::from([(alice.to_owned(), "alice".to_owned())]);
        let text = recorded(registry(), &changes, &names).to_text();
        let expected = "+ create consumers bob\n    username: \"bob\"\n\
                        ~ change keyauth_credentials kkkk (consumers bob)\n    consumer: alice -> bob\n    \
                        key: •••• (changed)\n- delete services orders\n\
                        ! MOVES keyauth_credentials kkkk from consumer alice to consumer bob: requests that carry it \
                        count as bob from then on\n\n\
                        1 to create, 1 to change, 1 to delete\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn secrets_that_changed_are_named_at_every_depth() {
        let plugin = |password: &str, minute: u32| {
            let config = json!({"minute": minute, "redis": {"password": password}});
            record(json!({"name": "rate-limiting", "config": config})).unwrap()
        };
        let told = changed_secrets(registry(), "plugins", &plugin("a", 1), &plugin("b", 2));
        assert_eq!(told, ["config.redis.password"]);
    }
}

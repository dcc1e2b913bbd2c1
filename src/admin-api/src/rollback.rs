//! `POST /gwctl/rollback`: the configuration as it was at a version, made anew as one version.

use crate::answer::{Answer, bare};
use crate::backend::Origin;
use crate::context::Context;
use crate::history::{self, Undone};
use crate::record_log::RecordChange;
use crate::request::Body;
use gwctl_declarative::is_planned;
use gwctl_entities::{EntityError, EntitySchema, Record, Value, Write};
use serde_json::json;
use std::collections::BTreeSet;

/// How often the log is read anew when others write meanwhile and the client did not say which version it means.
const ATTEMPTS: usize = 5;

/// `POST /gwctl/rollback`.
pub(crate) fn post(context: &Context<'_>) -> Result<Answer, EntityError> {
    let to = wanted(context)?;
    for _ in 0..ATTEMPTS {
        let now = context.read()?.version();
        if to > now {
            return Err(history::not_made(to, now));
        }
        let undone = history::undo(context, to, now)?;
        let origin = &context.request.origin;
        let from = format!("{} (rollback to {to})", origin.from);
        let origin = Origin { who: origin.who.clone(), from };
        let done = context.transact_as(&origin, "cannot roll back when not using a database", |write| {
            // What is to be undone was read before this transaction began.
            if write.version() == now { restore(context, write, &undone, to).map(Some) } else { Ok(None) }
        })?;
        if let Some(changes) = done {
            return Ok(told(context, to, &changes));
        }
    }
    Err(bare(409, "others keep changing the configuration: nothing was rolled back, try again"))
}

/// The version of the body; every mistake at once.
fn wanted(context: &Context<'_>) -> Result<u64, EntityError> {
    let Body::Json(body) = &context.request.body else {
        return Err(bare(400, "expected a JSON object with `version`"));
    };
    let version = body.get("version").and_then(Value::as_u64);
    let mut mistakes: Vec<String> =
        body.keys().filter(|name| *name != "version").map(|name| format!("{name}: unknown field")).collect();
    if version.is_none() {
        mistakes.insert(0, "version: expected a version, a whole number".to_owned());
    }
    version.filter(|_| mistakes.is_empty()).ok_or_else(|| bare(400, mistakes.join("; ")))
}

fn told(context: &Context<'_>, to: u64, changes: &[RecordChange]) -> Answer {
    let count = |action: &str| changes.iter().filter(|change| change.action() == action).count();
    let shown: Vec<Value> = changes.iter().map(|change| history::change_shown(context, change, false)).collect();
    Answer::ok(json!({
        "version": context.version.get(),
        "rolled_back_to": to,
        "dry_run": context.request.dry_run,
        "created": count("created"),
        "updated": count("updated"),
        "deleted": count("deleted"),
        "changes": shown,
    }))
}

/// Puts every record back; what it changed, parents before children.
fn restore(
    context: &Context<'_>,
    write: &mut dyn Write,
    undone: &Undone,
    to: u64,
) -> Result<Vec<RecordChange>, EntityError> {
    let plan = differences(context, write, undone, to)?;
    make_room(context, write, &plan)?;
    for (schema, change) in &plan {
        let Some(record) = &change.new else { continue };
        match write.get(&schema.name, &change.id)? {
            Some(_) => write.replace(&schema.name, record.clone())?,
            None => write.insert(&schema.name, record.clone())?,
        }
    }
    for (schema, change) in plan.iter().rev().filter(|(_, change)| change.new.is_none()) {
        // Its parent may have taken it along.
        write.delete(&schema.name, &change.id)?;
    }
    Ok(plan.into_iter().map(|(_, change)| change).collect())
}

/// What differs from then. Records the gateway itself writes while it runs (tokens, sessions) are nobody's
/// configuration and stay, and what had an end that has passed does not come back.
fn differences<'c>(
    context: &'c Context<'_>,
    write: &dyn Write,
    undone: &Undone,
    to: u64,
) -> Result<Vec<(&'c EntitySchema, RecordChange)>, EntityError> {
    let mut plan = Vec::new();
    for schema in context.registry.entities().filter(|schema| is_planned(&schema.name)) {
        for (id, then) in undone.get(&schema.name).into_iter().flatten() {
            let old = write.get(&schema.name, id)?;
            let new = match then {
                Some(then) if !ended(context.backend.now_millis(), schema, then) => {
                    Some(checked(context, schema, id, then, to)?)
                }
                _ => None,
            };
            if old != new {
                let (entity, id) = (schema.name.clone(), id.clone());
                plan.push((schema, RecordChange { entity, id, old, new }));
            }
        }
    }
    Ok(plan)
}

fn ended(now_millis: u64, schema: &EntitySchema, record: &Record) -> bool {
    let end = record.get("ttl").and_then(Value::as_f64).filter(|_| schema.ttl);
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of the present are exact in a double")]
    end.is_some_and(|end| end * 1000.0 <= now_millis as f64)
}

/// A record of the past must be one of today: a plugin may be gone, a rule may be new.
fn checked(
    context: &Context<'_>,
    schema: &EntitySchema,
    id: &str,
    then: &Record,
    to: u64,
) -> Result<Record, EntityError> {
    context.registry.import_row(&schema.name, then.clone(), &mut context.filler()).map(|_| then.clone()).map_err(
        |error| {
            let why = error.body().get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
            let entity = &schema.name;
            bare(400, format!("version {to} cannot come back: {entity} {id} is not valid any more: {why}"))
        },
    )
}

/// Frees the unique values that records of then need and others have now.
///
/// A record without children is taken away at once; one with children would take them along, so it gives its values up
/// and is changed or deleted later in the same transaction.
fn make_room(
    context: &Context<'_>,
    write: &mut dyn Write,
    plan: &[(&EntitySchema, RecordChange)],
) -> Result<(), EntityError> {
    let needed: BTreeSet<(&str, String, String)> = plan
        .iter()
        .filter_map(|(schema, change)| Some((schema, change.new.as_ref()?)))
        .flat_map(|(schema, new)| keys(schema, new).into_iter().map(|(field, key)| (schema.name.as_str(), field, key)))
        .collect();
    for (schema, change) in plan.iter().rev() {
        let Some(old) = &change.old else { continue };
        let kept = change.new.as_ref().map(|new| keys(schema, new)).unwrap_or_default();
        let mut given_up = keys(schema, old);
        given_up.retain(|held| {
            let (field, key) = held;
            !kept.contains(held) && needed.contains(&(schema.name.as_str(), field.clone(), key.clone()))
        });
        if given_up.is_empty() {
            continue;
        }
        if can_be_made_anew(context, schema, &given_up) {
            write.delete(&schema.name, &change.id)?;
            continue;
        }
        let mut nameless = old.clone();
        for (field, _) in given_up.into_iter().filter(|(field, _)| field != "cache_key") {
            nameless.insert(field, Value::from(format!("given up by {}", change.id)));
        }
        write.replace(&schema.name, nameless)?;
    }
    Ok(())
}

/// Whether a record that gives up values is better deleted and made again: nothing refers to it; or it is unique by
/// several fields together, which cannot be given up one by one, and only what the gateway itself writes refers to it.
fn can_be_made_anew(context: &Context<'_>, schema: &EntitySchema, given_up: &[(String, String)]) -> bool {
    let children = context.registry.referenced_by(&schema.name);
    let together = schema.cache_key.len() > 1 && given_up.iter().any(|(field, _)| field == "cache_key");
    children.is_empty() || (together && !children.iter().any(|(child, _)| is_planned(child)))
}

/// The unique values of a record, by field; those of several fields together by `cache_key`.
fn keys(schema: &EntitySchema, record: &Record) -> Vec<(String, String)> {
    let fields = schema.unique_fields.iter().filter_map(|unique| {
        let value = record.get(&unique.field)?.as_str()?;
        Some((unique.field.clone(), value.to_owned()))
    });
    let together = schema.cache_key_of(record).map(|key| ("cache_key".to_owned(), key));
    fields.chain(together).collect()
}

#[cfg(test)]
mod tests;

//! `POST /gwctl/changes`: many operations in one transaction, one version, one push.
//!
//! The body is read operation by operation, inside the transaction: what is held at once is the body's text, one
//! operation, and what the store keeps of the batch. A store that starts a batch over has the text read again.

use crate::answer::{Answer, Content, bare};
use crate::context::Context;
use crate::lookup::{self, Key};
use crate::request::Body;
use crate::write::Values;
use crate::{list, write};
use gwctl_entities::{EntityError, EntitySchema, Record, Value, Write};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::json;
use std::collections::HashMap;
use std::fmt;

/// Refusals listed in an answer; all are counted.
const LISTED_REFUSALS: usize = 1000;

const NOT_A_LIST: &str = "expected a JSON object with a list `operations`, or the list itself";

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Create,
    Upsert,
    Update,
    Delete,
}

/// What an answer tells of each operation (`?results=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Results {
    None,
    /// Action, entity and id.
    Ids,
    /// The record as well.
    Records,
}

/// One operation as sent.
struct Operation {
    action: Action,
    entity: String,
    id: Option<String>,
    key: Option<String>,
    body: Record,
    values: Values,
}

/// `POST /gwctl/changes`.
pub(crate) fn post(context: &Context<'_>) -> Result<Answer, EntityError> {
    let Body::Raw(text) = &context.request.body else { return Err(bare(400, NOT_A_LIST)) };
    let results = match context.request.query.text("results") {
        None | Some("ids") => Results::Ids,
        Some("records") => Results::Records,
        Some("none") => Results::None,
        Some(_) => return Err(bare(400, "results must be ids, records or none")),
    };
    let mut refused = None;
    let done = context.transact("cannot change entities when not using a database", |write| {
        let mut batch = Batch::new(context, write, results);
        batch.read(text)?;
        if batch.refused > 0 {
            refused = Some(batch.refusal());
            return Err(bare(400, "refused"));
        }
        refused = None;
        Ok(batch.done)
    });
    match (done, refused) {
        (Err(EntityError::Bare { status: 400, .. }), Some(refusal)) => Ok(Answer::json(400, refusal)),
        (done, _) => done.map(|done| done.answer(context)),
    }
}

/// What was done so far.
#[derive(Default)]
struct Done {
    created: u64,
    updated: u64,
    deleted: u64,
    absent: u64,
    /// Members of the list `results`, as JSON: a hundred thousand of them are written, never held as values.
    results: String,
}

impl Done {
    fn answer(self, context: &Context<'_>) -> Answer {
        let Self { created, updated, deleted, absent, results } = self;
        let version = context.version.get().unwrap_or_default();
        let text = format!(
            r#"{{"version":{version},"dry_run":{},"created":{created},"updated":{updated},"deleted":{deleted},"absent":{absent},"results":[{results}]}}"#,
            context.request.dry_run
        );
        let content = Content::Text { content_type: "application/json; charset=utf-8", text };
        Answer { status: 200, content, headers: Vec::new() }
    }
}

/// The operations of one request inside their transaction.
struct Batch<'a, 'c> {
    context: &'a Context<'c>,
    write: &'a mut dyn Write,
    shown: Results,
    index: usize,
    done: Done,
    refused: usize,
    refusals: Vec<Value>,
    /// Operations refused, by entity and the id they were to make: what refers to it is refused because of them.
    missing: HashMap<(String, String), usize>,
    /// The store failed: no operation can follow.
    fatal: Option<EntityError>,
}

impl<'a, 'c> Batch<'a, 'c> {
    fn new(context: &'a Context<'c>, write: &'a mut dyn Write, shown: Results) -> Self {
        let (done, refusals, missing) = (Done::default(), Vec::new(), HashMap::new());
        Self { context, write, shown, index: 0, done, refused: 0, refusals, missing, fatal: None }
    }

    /// Applies every operation of the body. Fails on a body that is none, and when the store fails.
    fn read(&mut self, text: &[u8]) -> Result<(), EntityError> {
        let mut parser = serde_json::Deserializer::from_slice(text);
        let read = Whole(self).deserialize(&mut parser).and_then(|()| parser.end());
        if let Some(error) = self.fatal.take() {
            return Err(error);
        }
        read.map_err(|error| bare(400, format!("cannot read the body at operation {}: {error}", self.index)))
    }

    /// One operation; a refusal is noted and the rest goes on, so that all mistakes are told at once.
    fn apply(&mut self, sent: Value) {
        let index = self.index;
        self.index += 1;
        let named = Named::of(&sent);
        let outcome = Operation::read(sent)
            .map_err(Refusal::Form)
            .and_then(|operation| self.carry_out(operation).map_err(Refusal::Entity));
        match outcome {
            Ok(()) => {}
            Err(Refusal::Entity(error @ EntityError::Database(_))) => self.fatal = Some(error),
            Err(refusal) => self.refuse(index, named, &refusal),
        }
    }

    fn refuse(&mut self, index: usize, named: Named, refusal: &Refusal) {
        self.refused += 1;
        let because = match refusal {
            Refusal::Entity(EntityError::ForeignKeyMissing { entity, key, .. }) => {
                let id = key.get("id").and_then(Value::as_str).unwrap_or_default();
                self.missing.get(&(entity.clone(), id.to_owned())).copied()
            }
            _ => None,
        };
        if self.refusals.len() < LISTED_REFUSALS {
            self.refusals.push(named.refusal(index, refusal, because));
        }
        if let (Some(entity), Some(id)) = (named.entity, named.id) {
            self.missing.entry((entity, id)).or_insert(index);
        }
    }

    fn refusal(&mut self) -> Value {
        let (refused, operations) = (self.refused, self.index);
        json!({
            "name": "changes refused",
            "message": format!("{refused} of {operations} operations refused, nothing was changed"),
            "refused": refused,
            "operations": operations,
            "errors": std::mem::take(&mut self.refusals),
        })
    }

    fn carry_out(&mut self, operation: Operation) -> Result<(), EntityError> {
        let context = self.context;
        let schema = schema_of(context, &operation.entity)?;
        let entity = schema.name.as_str();
        let key = key_of(context, schema, &operation)?;
        let stored = match &key {
            Some(key) if operation.action != Action::Create => lookup::find(self.write.as_read(), entity, key)?,
            _ => None,
        };
        let need = || bare(400, format!("needs `id` or `key` of the {entity} record"));
        let (mut body, values) = (operation.body, operation.values);
        let (action, record) = match (operation.action, stored, key) {
            (Action::Create, _, key) => {
                match key {
                    Some(Key::Id(id)) => body.insert("id".to_owned(), Value::from(id)),
                    Some(Key::Named { field, value }) => body.insert(field, Value::from(value)),
                    None => None,
                };
                ("created", write::create(context, self.write, schema, body, values)?)
            }
            (_, _, None) => return Err(need()),
            (Action::Upsert, stored, Some(key)) => {
                let action = if stored.is_some() { "updated" } else { "created" };
                (action, write::put(context, self.write, schema, &key, stored.as_ref(), body, values)?)
            }
            (Action::Update, Some(stored), _) => {
                ("updated", write::patch(context, self.write, schema, &stored, body, values)?)
            }
            (Action::Update, None, Some(key)) => return Err(key.not_found()),
            (Action::Delete, Some(stored), _) => {
                write::delete(self.write, schema, &stored)?;
                ("deleted", stored)
            }
            (Action::Delete, None, _) => ("absent", Record::new()),
        };
        match action {
            "created" => self.done.created += 1,
            "updated" => self.done.updated += 1,
            "deleted" => self.done.deleted += 1,
            _ => self.done.absent += 1,
        }
        self.tell(action, entity, &record)
    }

    fn tell(&mut self, action: &str, entity: &str, record: &Record) -> Result<(), EntityError> {
        let mut told = json!({"action": action, "entity": entity, "id": record.get("id")});
        match self.shown {
            Results::None => return Ok(()),
            Results::Records if matches!(action, "created" | "updated") => {
                told["record"] = Value::Object(list::shown(self.context, self.write.as_read(), entity, record)?);
                crate::answer::tidy_numbers(&mut told);
            }
            Results::Ids | Results::Records => {}
        }
        if !self.done.results.is_empty() {
            self.done.results.push(',');
        }
        self.done.results.push_str(&told.to_string());
        Ok(())
    }
}

/// Why an operation is refused.
enum Refusal {
    /// It is no operation.
    Form(Vec<String>),
    Entity(EntityError),
}

/// What an operation says it is about, to find it again by.
struct Named {
    action: Value,
    entity: Option<String>,
    id: Option<String>,
    key: Option<String>,
}

impl Named {
    fn of(sent: &Value) -> Self {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let id = text(sent.get("id")).or_else(|| text(sent.get("body").and_then(|body| body.get("id"))));
        let action = sent.get("action").cloned().unwrap_or_default();
        Self { action, entity: text(sent.get("entity")), id, key: text(sent.get("key")) }
    }

    fn refusal(&self, index: usize, refusal: &Refusal, because: Option<usize>) -> Value {
        let (status, error) = match refusal {
            Refusal::Form(mistakes) => (400, json!({"message": mistakes.join("; ")})),
            Refusal::Entity(error) => (error.status(), error.body()),
        };
        let (action, entity) = (&self.action, &self.entity);
        let mut told = json!({"index": index, "action": action, "entity": entity, "status": status, "error": error});
        for (name, value) in [("id", &self.id), ("key", &self.key)] {
            if let Some(value) = value {
                told[name] = Value::from(value.as_str());
            }
        }
        if let Some(because) = because {
            told["because_of"] = Value::from(because);
        }
        told
    }
}

impl Operation {
    /// Reads an operation, or tells every mistake of its form.
    fn read(sent: Value) -> Result<Self, Vec<String>> {
        let Value::Object(mut members) = sent else { return Err(vec!["expected an object".to_owned()]) };
        let mut mistakes = Vec::new();
        let mut text = |members: &mut Record, name: &str| match members.remove(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text),
            Some(_) => {
                mistakes.push(format!("{name}: expected a string"));
                None
            }
        };
        let action = text(&mut members, "action");
        let entity = text(&mut members, "entity");
        let (id, key) = (text(&mut members, "id"), text(&mut members, "key"));
        let action = match action.as_deref() {
            Some("create") => Some(Action::Create),
            Some("upsert") => Some(Action::Upsert),
            Some("update") => Some(Action::Update),
            Some("delete") => Some(Action::Delete),
            _ => {
                mistakes.push("action: expected one of create, upsert, update, delete".to_owned());
                None
            }
        };
        if entity.is_none() {
            mistakes.push("entity: required".to_owned());
        }
        if id.is_some() && key.is_some() {
            mistakes.push("only one of `id` and `key`".to_owned());
        }
        let body = match members.remove("body") {
            None | Some(Value::Null) => Record::new(),
            Some(Value::Object(body)) => body,
            Some(_) => {
                mistakes.push("body: expected an object".to_owned());
                Record::new()
            }
        };
        let values = match members.remove("transform") {
            None | Some(Value::Null | Value::Bool(true)) => Values::Written,
            Some(Value::Bool(false)) => Values::Stored,
            Some(_) => {
                mistakes.push("transform: expected true or false".to_owned());
                Values::Written
            }
        };
        mistakes.extend(members.keys().map(|name| format!("{name}: unknown member")));
        match (action, entity) {
            (Some(action), Some(entity)) if mistakes.is_empty() => Ok(Self { action, entity, id, key, body, values }),
            _ => Err(mistakes),
        }
    }
}

/// The entity by its schema name or by the name of its endpoint.
fn schema_of<'a>(context: &'a Context<'_>, name: &str) -> Result<&'a EntitySchema, EntityError> {
    let found = context.registry.entity(name).or_else(|| context.registry.by_endpoint(name));
    // Tags have endpoints too, but are no records: they follow from the fields of others.
    let writable = |schema: &&EntitySchema| schema.generate_admin_api && schema.primary_key == ["id"];
    found.filter(writable).ok_or_else(|| bare(400, format!("no entity named '{name}'")))
}

/// What the operation names: by `id`, by `key`, or in its body.
fn key_of(context: &Context<'_>, schema: &EntitySchema, operation: &Operation) -> Result<Option<Key>, EntityError> {
    let in_body = |field: &str| operation.body.get(field).and_then(Value::as_str).map(str::to_owned);
    if let Some(id) = operation.id.clone().or_else(|| in_body("id").filter(|_| operation.key.is_none())) {
        if !lookup::is_uuid(&id) {
            let key = Record::from_iter([("id".to_owned(), Value::from("expected a valid UUID"))]);
            return Err(EntityError::InvalidPrimaryKey { key });
        }
        return Ok(Some(Key::Id(id.to_ascii_lowercase())));
    }
    let Some(field) = &schema.endpoint_key else {
        return match &operation.key {
            Some(_) => Err(bare(400, format!("{} records have no key, name them by `id`", schema.name))),
            None => Ok(None),
        };
    };
    let Some(value) = operation.key.clone().or_else(|| in_body(field)) else { return Ok(None) };
    lookup::check_name(context, schema, field, &value)?;
    Ok(Some(Key::Named { field: field.clone(), value }))
}

/// The body as a whole.
struct Whole<'b, 'a, 'c>(&'b mut Batch<'a, 'c>);

impl<'de> DeserializeSeed<'de> for Whole<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Whole<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(NOT_A_LIST)
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let mut seen = false;
        while let Some(name) = map.next_key::<String>()? {
            if name != "operations" || std::mem::replace(&mut seen, true) {
                return Err(M::Error::custom(NOT_A_LIST));
            }
            map.next_value_seed(List(self.0))?;
        }
        if seen { Ok(()) } else { Err(M::Error::custom(NOT_A_LIST)) }
    }

    fn visit_seq<S: SeqAccess<'de>>(self, seq: S) -> Result<(), S::Error> {
        List(self.0).visit_seq(seq)
    }
}

/// The list of operations.
struct List<'b, 'a, 'c>(&'b mut Batch<'a, 'c>);

impl<'de> DeserializeSeed<'de> for List<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of operations")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<(), S::Error> {
        while let Some(sent) = seq.next_element::<Value>()? {
            self.0.apply(sent);
            if self.0.fatal.is_some() {
                return Err(S::Error::custom("the store failed"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

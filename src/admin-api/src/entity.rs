//! The generated endpoints of entities: `/E`, `/E/{}`, `/P/{}/N`, `/P/{}/N/{}`.

use crate::answer::{Answer, bare, not_found, unexpected};
use crate::context::Context;
use crate::lookup::{self, Key, reference};
use crate::place::Place;
use crate::write::Values;
use crate::{list, write};
use gwctl_entities::{EntityError, EntitySchema, Map, Record, Value, Write};
use http::Method;

/// A collection below a parent: entity of the parent, its segment, and the child's field that refers to it.
#[derive(Clone, Copy)]
pub(crate) struct Below<'a> {
    pub(crate) parent: &'a str,
    pub(crate) segment: &'a str,
    pub(crate) field: &'a str,
}

/// Texts of code 12, for nodes without a store.
pub(crate) fn unsupported(verb: &str, entity: &str, field: Option<&str>) -> String {
    let by = field.map(|field| format!(" by '{field}'")).unwrap_or_default();
    format!("cannot {verb} '{entity}' entities{by} when not using a database")
}

/// The field by which a segment addresses an entity, None for its id.
fn addressed_by<'a>(schema: &'a EntitySchema, segment: &str) -> Option<&'a str> {
    schema.endpoint_key.as_deref().filter(|_| !lookup::is_uuid(segment))
}

/// `POST` of a collection, top-level or nested.
pub(crate) fn post(context: &Context<'_>, entity: &str, below: Option<Below<'_>>) -> Result<Answer, EntityError> {
    let schema = context.schema(entity)?;
    let record = context.transact(&unsupported("create", entity, None), |write| {
        let parent = match below {
            Some(below) => Some(lookup::parent(context, write.as_read(), below.parent, below.segment)?),
            None => None,
        };
        let mut input = context.input(schema, None);
        if let (Some(below), Some(parent)) = (below, parent) {
            input.insert(below.field.to_owned(), reference(lookup::id_of(&parent)));
        }
        let record = write::create(context, write, schema, input, Values::Written)?;
        list::shown(context, write.as_read(), entity, &record)
    })?;
    Ok(Answer::json(201, Value::Object(record)))
}

/// Any method on `/E/{}`.
pub(crate) fn item(context: &Context<'_>, entity: &str, segment: &str) -> Result<Answer, EntityError> {
    let schema = context.schema(entity)?;
    match context.request.method {
        Method::PUT => put_item(context, schema, segment),
        Method::PATCH => patch_item(context, schema, segment),
        Method::DELETE => delete_item(context, schema, segment),
        _ => {
            let read = context.read()?;
            let key = lookup::key(context, read.as_ref(), schema, segment)?;
            let found = lookup::find(read.as_ref(), entity, &key)?;
            let absent = || if entity == "certificates" { key.not_found() } else { not_found() };
            let shown = list::shown(context, read.as_ref(), entity, &found.ok_or_else(absent)?)?;
            Ok(Answer::ok(Value::Object(shown)))
        }
    }
}

fn put_item(context: &Context<'_>, schema: &EntitySchema, segment: &str) -> Result<Answer, EntityError> {
    let entity = schema.name.as_str();
    let field = addressed_by(schema, segment);
    if field.is_some() && upsert_by_name_fails(entity) && !context.storeless() {
        return Err(unexpected());
    }
    let record = context.transact(&unsupported("create or update", entity, field), |write| {
        let mut input = context.input(schema, None);
        let key = match lookup::key(context, write.as_read(), schema, segment) {
            // The name of a certificate that is still to be made: attached only to a list that the body gives.
            Err(EntityError::Bare { status: 404, .. }) if entity == "certificates" => {
                adopt_name(&mut input, segment);
                Key::Id(context.backend.new_uuid())
            }
            other => other?,
        };
        let stored = lookup::find(write.as_read(), entity, &key)?;
        let record = write::put(context, write, schema, &key, stored.as_ref(), input, Values::Written)?;
        list::shown(context, write.as_read(), entity, &record)
    })?;
    Ok(Answer::ok(Value::Object(record)))
}

/// Kong's tables of these have no constraint on the name alone, and its upsert by name fails.
fn upsert_by_name_fails(entity: &str) -> bool {
    matches!(entity, "keys" | "key_sets")
}

fn adopt_name(input: &mut Record, name: &str) {
    if let Some(Value::Array(names)) = input.get_mut("snis")
        && !names.iter().any(|given| given.as_str() == Some(name))
    {
        names.push(Value::from(name));
    }
}

fn patch_item(context: &Context<'_>, schema: &EntitySchema, segment: &str) -> Result<Answer, EntityError> {
    let entity = schema.name.as_str();
    let refusal = unsupported("update", entity, addressed_by(schema, segment));
    let record = context.transact(&refusal, |write| {
        let key = lookup::key(context, write.as_read(), schema, segment)?;
        let stored = lookup::find(write.as_read(), entity, &key)?;
        let input = context.input(schema, stored.as_ref());
        let Some(stored) = stored else {
            // Without a name nothing tells which plugin's settings the body holds.
            let nameless = entity == "plugins" && !input.contains_key("name");
            return Err(if nameless { not_found() } else { key.not_found() });
        };
        let record = write::patch(context, write, schema, &stored, input, Values::Written)?;
        list::shown(context, write.as_read(), entity, &record)
    })?;
    Ok(Answer::ok(Value::Object(record)))
}

fn delete_item(context: &Context<'_>, schema: &EntitySchema, segment: &str) -> Result<Answer, EntityError> {
    let entity = schema.name.as_str();
    let refusal = unsupported("remove", entity, addressed_by(schema, segment));
    let outcome = context.transact(&refusal, |write| {
        let key = lookup::key(context, write.as_read(), schema, segment)?;
        match lookup::find(write.as_read(), entity, &key)? {
            Some(stored) => write::delete(write, schema, &stored),
            None => Ok(()),
        }
    });
    match outcome {
        // Code 19 is told by its message alone.
        Err(EntityError::ReferencedByOthers { entity, by }) => Ok(referenced(&entity, &by)),
        other => other.map(|()| Answer::empty(204)),
    }
}

fn referenced(entity: &str, by: &str) -> Answer {
    let message = format!("{entity} is still referenced by {by}");
    Answer::json(400, serde_json::json!({"code": 19, "name": "referenced by others", "message": message}))
}

/// Any method on `/P/{}/N/{}`.
pub(crate) fn nested_item(
    context: &Context<'_>,
    below: Below<'_>,
    entity: &str,
    segment: &str,
) -> Result<Answer, EntityError> {
    match nested_item_of_entity(context, below, entity, segment) {
        // For a group name Kong answers with a request id beside the message.
        Err(EntityError::NotFound { .. }) if entity == "acls" => {
            let id = context.backend.new_uuid().replace('-', "");
            Ok(Answer::json(404, serde_json::json!({"message": "Not found", "request_id": id})))
        }
        other => other,
    }
}

fn nested_item_of_entity(
    context: &Context<'_>,
    below: Below<'_>,
    entity: &str,
    segment: &str,
) -> Result<Answer, EntityError> {
    let schema = context.schema(entity)?;
    match context.request.method {
        // A target is never created by PUT: clients depend on the 404.
        Method::PUT if entity != "targets" => put_nested(context, below, schema, segment),
        Method::PUT | Method::PATCH => patch_nested(context, below, schema, segment),
        Method::DELETE => delete_nested(context, below, schema, segment),
        _ => {
            let read = context.read()?;
            let parent = lookup::parent(context, read.as_ref(), below.parent, below.segment)?;
            let own = (below.field, lookup::id_of(&parent));
            let (_, found) = lookup::child(context, read.as_ref(), schema, own, segment)?;
            let (row, _) = found.filter(|(_, own)| *own).ok_or_else(|| absent(entity, segment))?;
            Ok(Answer::ok(Value::Object(list::shown(context, read.as_ref(), entity, &row)?)))
        }
    }
}

/// The 404 of a nested item; the coded one stands for a group name, see [`nested_item`].
fn absent(entity: &str, segment: &str) -> EntityError {
    if entity == "acls" && !lookup::is_uuid(segment) {
        return Key::Named { field: "group".to_owned(), value: segment.to_owned() }.not_found();
    }
    not_found()
}

fn put_nested(
    context: &Context<'_>,
    below: Below<'_>,
    schema: &EntitySchema,
    segment: &str,
) -> Result<Answer, EntityError> {
    let entity = schema.name.as_str();
    let refusal = unsupported("create or update", entity, addressed_by(schema, segment));
    let record = context.transact(&refusal, |write| {
        let parent = lookup::parent(context, write.as_read(), below.parent, below.segment)?;
        let parent_id = lookup::id_of(&parent);
        let (key, found) = lookup::child(context, write.as_read(), schema, (below.field, parent_id), segment)?;
        let mut input = context.input(schema, None);
        input.insert(below.field.to_owned(), reference(parent_id));
        let stored = found.map(|(row, _)| row);
        let record = write::put(context, write, schema, &key, stored.as_ref(), input, Values::Written)?;
        list::shown(context, write.as_read(), entity, &record)
    })?;
    Ok(Answer::ok(Value::Object(record)))
}

fn patch_nested(
    context: &Context<'_>,
    below: Below<'_>,
    schema: &EntitySchema,
    segment: &str,
) -> Result<Answer, EntityError> {
    let entity = schema.name.as_str();
    let refusal = unsupported("update", entity, addressed_by(schema, segment));
    let record = context.transact(&refusal, |write| {
        let stored = own_child(context, write, below, schema, segment)?;
        let mut input = context.input(schema, Some(&stored));
        let parent = stored.get(below.field).cloned().unwrap_or(Value::Null);
        input.entry(below.field.to_owned()).or_insert(parent);
        let record = write::patch(context, write, schema, &stored, input, Values::Written)?;
        list::shown(context, write.as_read(), entity, &record)
    })?;
    Ok(Answer::ok(Value::Object(record)))
}

fn delete_nested(
    context: &Context<'_>,
    below: Below<'_>,
    schema: &EntitySchema,
    segment: &str,
) -> Result<Answer, EntityError> {
    let refusal = unsupported("remove", &schema.name, addressed_by(schema, segment));
    context.transact(&refusal, |write| {
        let stored = own_child(context, write, below, schema, segment)?;
        write::delete(write, schema, &stored)
    })?;
    Ok(Answer::empty(204))
}

/// The child of just this parent, or the 404.
fn own_child(
    context: &Context<'_>,
    write: &dyn Write,
    below: Below<'_>,
    schema: &EntitySchema,
    segment: &str,
) -> Result<Record, EntityError> {
    let parent = lookup::parent(context, write.as_read(), below.parent, below.segment)?;
    let own = (below.field, lookup::id_of(&parent));
    let (_, found) = lookup::child(context, write.as_read(), schema, own, segment)?;
    let (row, _) = found.filter(|(_, own)| *own).ok_or_else(|| absent(&schema.name, segment))?;
    Ok(row)
}

/// Any method on `/E/{}/f`: the entity that field `f` refers to.
pub(crate) fn parent(context: &Context<'_>, entity: &str, segment: &str, field: &str) -> Result<Answer, EntityError> {
    let schema = context.schema(entity)?;
    let foreign = schema.foreign_keys.iter().find(|foreign| foreign.field == field).ok_or_else(not_found)?;
    let parent_schema = context.schema(&foreign.references)?;
    let parent_entity = parent_schema.name.as_str();
    if context.request.method == Method::GET || context.request.method == Method::HEAD {
        let read = context.read()?;
        let child = lookup::parent(context, read.as_ref(), entity, segment)?;
        let id = schema.foreign_id(&child, field).ok_or_else(not_found)?;
        let row = read.get(parent_entity, id)?.ok_or_else(not_found)?;
        return Ok(Answer::ok(Value::Object(shown_parent(context, parent_entity, &row))));
    }
    let verb = if context.request.method == Method::PATCH { "update" } else { "create or update" };
    let record = context.transact(&unsupported(verb, parent_entity, None), |write| {
        let child = lookup::parent(context, write.as_read(), entity, segment)?;
        let parent_id = schema.foreign_id(&child, field).map(str::to_owned);
        let stored = match &parent_id {
            Some(id) => write.get(parent_entity, id)?,
            None => None,
        };
        let record = match (&context.request.method, stored) {
            (&Method::DELETE, Some(_)) => return Err(bare(405, "Method not allowed")),
            (&Method::DELETE | &Method::PATCH, None) => return Err(not_found()),
            (&Method::PATCH, Some(stored)) => {
                let input = context.input(parent_schema, Some(&stored));
                write::patch(context, write, parent_schema, &stored, input, Values::Written)?
            }
            (_, stored) => {
                let id = parent_id.clone().unwrap_or_else(|| context.backend.new_uuid());
                let input = context.input(parent_schema, None);
                let key = Key::Id(id.clone());
                let record = write::put(context, write, parent_schema, &key, stored.as_ref(), input, Values::Written)?;
                if parent_id.is_none() {
                    let link = Map::from_iter([(field.to_owned(), reference(&id))]);
                    write::patch(context, write, schema, &child, link, Values::Written)?;
                }
                record
            }
        };
        Ok(shown_parent(context, parent_entity, &record))
    })?;
    Ok(Answer::ok(Value::Object(record)))
}

/// Whether `OPTIONS` of an endpoint that resolves a name first finds it.
pub(crate) fn options_exist(context: &Context<'_>, place: &Place) -> Result<(), EntityError> {
    match place {
        Place::Item { entity, key } if entity == "certificates" && !lookup::is_uuid(key) => {
            let read = context.read()?;
            lookup::key(context, read.as_ref(), context.schema(entity)?, key).map(|_| ())
        }
        Place::NestedItem { parent, parent_key, entity, field, key } if entity == "acls" && !lookup::is_uuid(key) => {
            let read = context.read()?;
            let parent = lookup::parent(context, read.as_ref(), parent, parent_key)?;
            let own = (field.as_str(), lookup::id_of(&parent));
            let (_, found) = lookup::child(context, read.as_ref(), context.schema(entity)?, own, key)?;
            found.filter(|(_, own)| *own).map(|_| ()).ok_or_else(not_found)
        }
        _ => Ok(()),
    }
}

/// A certificate seen through what uses it does not list its server names.
fn shown_parent(context: &Context<'_>, entity: &str, row: &Record) -> Record {
    let mut shown = context.present(entity, row);
    if entity == "certificates" {
        shown.insert("snis".to_owned(), Value::Null);
    }
    shown
}

//! Writes of one entity inside a transaction: what the Admin API does around the schema engine.

use crate::certificate;
use crate::context::Context;
use crate::lookup::{self, Key};
use gwctl_entities::{EntityError, EntitySchema, PageQuery, Read, Record, Value, Write};

/// Puts a `ttl` of JSON null as no end, and fails on a text as Kong does (it compares it with a number).
fn tidy_ttl(schema: &EntitySchema, input: &mut Record) -> Result<(), EntityError> {
    match input.get("ttl").filter(|_| schema.ttl) {
        Some(Value::Null) => input.insert("ttl".to_owned(), Value::from(0)),
        Some(Value::String(_)) => return Err(crate::answer::unexpected()),
        _ => None,
    };
    Ok(())
}

/// Whether values are given as people write them, or as they are stored (`_transform: false` of declarative files).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Values {
    Written,
    Stored,
}

/// Field that is stored as a hash of what was written. Secrets of OAuth 2.0 clients tell by their form what they are.
const HASHED: (&str, &str) = ("basicauth_credentials", "password");

/// Digits of such a hash.
const HASH_DIGITS: usize = 40;

/// The stored form of a hashed field, to be put back once everything else is settled.
fn stored_hash(schema: &EntitySchema, input: &Record, values: Values) -> Result<Option<Value>, EntityError> {
    let (entity, field) = HASHED;
    if values == Values::Written || schema.name != entity {
        return Ok(None);
    }
    let Some(Value::String(hash)) = input.get(field) else { return Ok(None) };
    let digit = |letter: u8| letter.is_ascii_digit() || (b'a'..=b'f').contains(&letter);
    if hash.len() == HASH_DIGITS && hash.bytes().all(digit) {
        return Ok(Some(Value::from(hash.as_str())));
    }
    let text = format!("expected the stored hash, {HASH_DIGITS} hexadecimal digits, as transform is false");
    Err(EntityError::SchemaViolation { fields: Record::from_iter([(field.to_owned(), Value::from(text))]) })
}

/// Adds a new record.
pub(crate) fn create(
    context: &Context<'_>,
    write: &mut dyn Write,
    schema: &EntitySchema,
    input: Record,
    values: Values,
) -> Result<Record, EntityError> {
    store_whole(context, write, schema, input, None, values)
}

/// Creates the record a key names or replaces it whole.
pub(crate) fn put(
    context: &Context<'_>,
    write: &mut dyn Write,
    schema: &EntitySchema,
    key: &Key,
    stored: Option<&Record>,
    mut input: Record,
    values: Values,
) -> Result<Record, EntityError> {
    input.remove("id");
    if let Some(stored) = stored {
        input.insert("id".to_owned(), Value::from(lookup::id_of(stored)));
    }
    match key {
        Key::Id(id) => input.insert("id".to_owned(), Value::from(id.as_str())),
        Key::Named { field, value } => input.insert(field.clone(), Value::from(value.as_str())),
    };
    store_whole(context, write, schema, input, stored, values)
}

fn store_whole(
    context: &Context<'_>,
    write: &mut dyn Write,
    schema: &EntitySchema,
    mut input: Record,
    stored: Option<&Record>,
    values: Values,
) -> Result<Record, EntityError> {
    let entity = schema.name.as_str();
    let hash = stored_hash(schema, &input, values)?;
    tidy_ttl(schema, &mut input)?;
    let names = match entity {
        "certificates" => certificate::take_names(context, write.as_read(), &mut input, stored.map(lookup::id_of))?,
        _ => None,
    };
    let mut filler = if entity == "targets" { context.target_filler() } else { context.filler() };
    let mut record = context.registry.process_insert(entity, input, &mut filler, write.as_read())?;
    record.extend(hash.map(|hash| (HASHED.1.to_owned(), hash)));
    let id = lookup::id_of(&record).to_owned();
    match stored {
        Some(_) => write.replace(entity, record.clone())?,
        None => write.insert(entity, record.clone())?,
    }
    if entity == "certificates" {
        certificate::set_names(context, write, &id, &names.unwrap_or_default())?;
    }
    Ok(record)
}

/// Merges the request over a stored record.
pub(crate) fn patch(
    context: &Context<'_>,
    write: &mut dyn Write,
    schema: &EntitySchema,
    stored: &Record,
    mut input: Record,
    values: Values,
) -> Result<Record, EntityError> {
    let entity = schema.name.as_str();
    let id = lookup::id_of(stored).to_owned();
    input.remove("id");
    let hash = stored_hash(schema, &input, values)?;
    tidy_ttl(schema, &mut input)?;
    let names = match entity {
        "certificates" => certificate::take_names(context, write.as_read(), &mut input, Some(&id))?,
        _ => None,
    };
    let mut filler = context.filler();
    let mut record = context.registry.process_update(entity, stored, input, &mut filler, write.as_read())?;
    record.extend(hash.map(|hash| (HASHED.1.to_owned(), hash)));
    write.replace(entity, record.clone())?;
    if let Some(names) = names {
        certificate::set_names(context, write, &id, &names)?;
    }
    Ok(record)
}

/// Deletes a stored record and what hangs on it.
pub(crate) fn delete(write: &mut dyn Write, schema: &EntitySchema, stored: &Record) -> Result<(), EntityError> {
    let id = lookup::id_of(stored);
    match schema.name.as_str() {
        "certificates" => certificate::delete_names(write, id)?,
        "ca_certificates" => refuse_used_authority(write.as_read(), id)?,
        _ => {}
    }
    write.delete(&schema.name, id)?;
    Ok(())
}

/// Services name their CA certificates in a plain list, which the store does not watch over.
fn refuse_used_authority(read: &dyn Read, id: &str) -> Result<(), EntityError> {
    let mut query = PageQuery { size: 1000, ..PageQuery::default() };
    loop {
        let page = read.page("services", &query)?;
        let uses = |service: &&Record| {
            let list = service.get("ca_certificates").and_then(Value::as_array);
            list.is_some_and(|list| list.iter().any(|listed| listed.as_str() == Some(id)))
        };
        if let Some(service) = page.rows.iter().find(uses) {
            return Err(EntityError::ReferencedByOthers {
                entity: format!("ca certificate {id}"),
                by: format!("services (id = {})", lookup::id_of(service)),
            });
        }
        match page.next {
            Some(next) => query.from = Some(next),
            None => return Ok(()),
        }
    }
}

//! From client input to a record that may be stored.
//!
//! The order of steps is Kong's: options, plugin protocols, shorthands, automatic fields and defaults, references by
//! unique field, validation and checks, transformations. Source: Kong 3.9.1 `kong/db/dao/init.lua`.

use super::before::{plugin_protocols, take_ttl};
use super::{EntitySchema, Registry};
use crate::engine::fill::{self, Purpose};
use crate::engine::validate::{REQUIRED, Validation};
use crate::engine::{Errors, lua_text, normalise_numbers};
use crate::schema::{FieldType, Schema};
use crate::{EntityError, Fill, Read, Record, transform};
use serde_json::{Map, Value};

/// How [`Registry::validate`] treats a record.
#[derive(Debug, Clone, Copy, Default)]
pub struct ValidateMode<'a> {
    /// Foreign fields may be plain text (names or ids, as declarative files have them).
    pub foreign_text: bool,
    /// Foreign field that a parent fills: neither required nor checked.
    pub implied: Option<&'a str>,
}

impl Registry {
    /// A new record from client input (POST, and PUT with its id set): shorthands, automatic fields, defaults,
    /// references by unique field (looked up in `read`), validation, entity checks, transformations. All errors at once.
    ///
    /// `ttl`, where the entity has one, is a duration in seconds here.
    pub fn process_insert(
        &self,
        entity: &str,
        mut input: Record,
        fill: &mut dyn Fill,
        read: &dyn Read,
    ) -> Result<Record, EntityError> {
        let entity = self.known(entity)?;
        input.values_mut().for_each(normalise_numbers);
        let ttl = take_ttl(entity, &mut input, fill.now_millis() / 1000)?;
        let sent: Vec<String> = input.keys().cloned().collect();
        plugin_protocols(entity, &input, &input, read)?;
        if entity.name == "targets" {
            transform::normalise_target(&mut input)?;
        }
        expand(entity.schema_of(&input), &mut input)?;
        fill::fill_record(entity.schema_of(&input), &mut input, Purpose::Insert, fill);
        self.resolve_references(entity, &mut input, read)?;
        self.check(entity, &input, self.circumstances(fill))?;
        transform::apply(entity, &mut input, &sent, fill)?;
        finish(entity, &mut input, ttl.unwrap_or(Value::Null));
        Ok(input)
    }

    /// PATCH: `input` merged over `stored` by section 5.4 rules, then validated like an insert.
    ///
    /// Records merge member by member; arrays, sets and maps are replaced. `id` and `updated_at` of the input are
    /// ignored; without `ttl` the stored expiry stays.
    pub fn process_update(
        &self,
        entity: &str,
        stored: &Record,
        mut input: Record,
        fill: &mut dyn Fill,
        read: &dyn Read,
    ) -> Result<Record, EntityError> {
        let entity = self.known(entity)?;
        input.values_mut().for_each(normalise_numbers);
        for key in &entity.primary_key {
            input.remove(key);
        }
        let ttl = take_ttl(entity, &mut input, fill.now_millis() / 1000)?;
        let sent: Vec<String> = input.keys().cloned().collect();
        plugin_protocols(entity, &input, &overlaid(stored, &input), read)?;
        expand(entity.schema_of(&overlaid(stored, &input)), &mut input)?;
        let schema = entity.schema_of(&overlaid(stored, &input));
        let stored_ttl = stored.get("ttl").cloned().unwrap_or(Value::Null);
        let mut merged = merge(schema, stored.clone(), input);
        if entity.ttl {
            merged.remove("ttl");
        }
        if let Some(field) = schema.field("updated_at").filter(|field| field.auto) {
            merged.insert("updated_at".to_owned(), fill::now(field, fill));
        }
        fill::fill_record(schema, &mut merged, Purpose::Complete, fill);
        self.resolve_references(entity, &mut merged, read)?;
        self.check(entity, &merged, Validation { updating: true, ..self.circumstances(fill) })?;
        transform::apply(entity, &mut merged, &sent, fill)?;
        finish(entity, &mut merged, ttl.unwrap_or(stored_ttl));
        Ok(merged)
    }

    /// Fills and validates a record without looking anything up and without transformations: for declarative files
    /// and `POST /schemas/*/validate`. The error is the `fields` tree.
    ///
    /// `ttl` is kept as given (absolute seconds in declarative files). Run [`Registry::transform`] on the result once
    /// references are resolved.
    pub fn validate(
        &self,
        entity: &str,
        mut input: Record,
        fill: &mut dyn Fill,
        mode: ValidateMode<'_>,
    ) -> Result<Record, Map<String, Value>> {
        let Some(entity) = self.entity(entity) else {
            return Err(Map::from_iter([(
                "@entity".to_owned(),
                Value::from(vec![format!("unknown entity {entity}")]),
            )]));
        };
        input.values_mut().for_each(normalise_numbers);
        let ttl = if entity.ttl { input.remove("ttl").unwrap_or(Value::Null) } else { Value::Null };
        let mut errors = Errors::new();
        fill::expand_shorthands(entity.schema_of(&input), &mut input, &mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        fill::fill_record(entity.schema_of(&input), &mut input, Purpose::Insert, fill);
        let circumstances =
            Validation { foreign_text: mode.foreign_text, implied: mode.implied, ..self.circumstances(fill) };
        let mut errors = self.faults(entity, &input, circumstances);
        if !(ttl.is_null() || ttl.as_i64().is_some()) {
            errors.insert("ttl".to_owned(), Value::from("expected an integer"));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        if entity.ttl {
            input.insert("ttl".to_owned(), ttl);
        }
        Ok(input)
    }

    /// Transformations of a validated record with resolved references (password hash, certificate digest).
    pub fn transform(&self, entity: &str, record: &mut Record, fill: &mut dyn Fill) -> Result<(), EntityError> {
        let entity = self.known(entity)?;
        let all: Vec<String> = record.keys().cloned().collect();
        transform::apply(entity, record, &all, fill)
    }

    /// Judges one value by its field: for path segments that stand for an endpoint key. The error is the message.
    pub fn validate_field(&self, entity: &str, field: &str, value: &Value) -> Result<(), Value> {
        match self.entity(entity).and_then(|entity| entity.schema.field(field)) {
            Some(field) => Validation::default().value(field, value),
            None => Err(Value::from("unknown field")),
        }
    }

    pub(super) fn known(&self, entity: &str) -> Result<&EntitySchema, EntityError> {
        self.entity(entity).ok_or_else(|| EntityError::Database(format!("unknown entity {entity:?}")))
    }

    pub(crate) fn circumstances<'a>(&self, fill: &mut dyn Fill) -> Validation<'a> {
        Validation { kind: self.options.kind, now_seconds: fill.now_millis() / 1000, ..Validation::default() }
    }

    pub(super) fn check(
        &self,
        entity: &EntitySchema,
        record: &Record,
        circumstances: Validation<'_>,
    ) -> Result<(), EntityError> {
        let fields = self.faults(entity, record, circumstances);
        if fields.is_empty() { Ok(()) } else { Err(EntityError::SchemaViolation { fields }) }
    }

    /// Every error of a filled record. When no variant can be chosen that is the only one.
    fn faults(&self, entity: &EntitySchema, record: &Record, circumstances: Validation<'_>) -> Errors {
        if let Some(key) = &entity.subschema_key
            && entity.variant_of(record).is_none()
        {
            let value = record.get(key).unwrap_or(&Value::Null);
            let text = unknown_variant(&entity.name, value);
            return Map::from_iter([(key.clone(), Value::from(text))]);
        }
        let mut errors = circumstances.record(entity.schema_of(record), record);
        if let Some(check) = self.route_check.as_ref().filter(|_| entity.name == "routes" && errors.is_empty())
            && let Err(text) = check.judge(record)
        {
            errors.insert("@entity".to_owned(), Value::from(vec![text]));
        }
        errors
    }
}

/// Puts the fields that shorthands stand for in their place.
fn expand(schema: &Schema, input: &mut Record) -> Result<(), EntityError> {
    let mut errors = Errors::new();
    fill::expand_shorthands(schema, input, &mut errors);
    if errors.is_empty() { Ok(()) } else { Err(EntityError::SchemaViolation { fields: errors }) }
}

fn unknown_variant(entity: &str, value: &Value) -> String {
    if value.is_null() {
        return REQUIRED.to_owned();
    }
    let name = match value {
        Value::Array(list) => list.first().map_or_else(|| "nil".to_owned(), lua_text),
        other => lua_text(other),
    };
    match entity {
        "plugins" => format!("plugin '{name}' not enabled; add it to the 'plugins' configuration property"),
        "vaults" => format!("vault '{name}' is not installed"),
        _ => format!("unknown type: {name}"),
    }
}

fn overlaid(stored: &Record, input: &Record) -> Record {
    let mut whole = stored.clone();
    whole.extend(input.clone());
    whole
}

/// The input laid over the stored record: records member by member, everything else whole.
fn merge(schema: &Schema, stored: Record, input: Record) -> Record {
    let mut merged = stored;
    for (name, value) in input {
        let nested = schema.field(&name).filter(|field| field.kind == FieldType::Record);
        let nested = nested.and_then(|field| field.record.as_ref());
        let value = match (nested, merged.get_mut(&name).map(Value::take), value) {
            (Some(schema), Some(Value::Object(old)), Value::Object(new)) => Value::Object(merge(schema, old, new)),
            (_, _, value) => value,
        };
        merged.insert(name, value);
    }
    merged
}

/// Unsets what is never stored and sets the time to live.
fn finish(entity: &EntitySchema, record: &mut Record, ttl: Value) {
    for field in entity.schema.fields().filter(|field| field.transient) {
        record.insert(field.name.clone(), Value::Null);
    }
    if entity.ttl {
        record.insert("ttl".to_owned(), ttl);
    }
}

//! From client input to a record that may be stored.
//!
//! The order of steps is Kong's: options, plugin protocols, shorthands, automatic fields and defaults, references by
//! unique field, validation and checks, transformations. Source: Kong 3.9.1 `kong/db/dao/init.lua`.

use super::{EntitySchema, Registry, entity::subschema_value};
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

/// Longest time to live of a row, in seconds.
const TTL_LIMIT: i64 = 100_000_000;

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
        self.expand(entity, &mut input)?;
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
        self.expand_for(entity, &overlaid(stored, &input), &mut input)?;
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

    fn expand(&self, entity: &EntitySchema, input: &mut Record) -> Result<(), EntityError> {
        let chosen: Record =
            entity.subschema_key.iter().filter_map(|key| input.get_key_value(key)).map(owned).collect();
        self.expand_for(entity, &chosen, input)
    }

    /// Expands shorthands of the variant that `chosen` selects.
    fn expand_for(&self, entity: &EntitySchema, chosen: &Record, input: &mut Record) -> Result<(), EntityError> {
        let mut errors = Errors::new();
        fill::expand_shorthands(entity.schema_of(chosen), input, &mut errors);
        if errors.is_empty() { Ok(()) } else { Err(EntityError::SchemaViolation { fields: errors }) }
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

    /// Replaces references by unique field with ids; all that resolve to nothing are reported together.
    fn resolve_references(
        &self,
        entity: &EntitySchema,
        record: &mut Record,
        read: &dyn Read,
    ) -> Result<(), EntityError> {
        let mut unresolved = Map::new();
        for key in &entity.foreign_keys {
            let Some(Value::Object(reference)) = record.get(&key.field) else { continue };
            if reference.get("id").is_some_and(|id| !id.is_null()) {
                let id = reference.get("id").cloned().unwrap_or_default();
                let id = id.as_str().map(str::to_ascii_lowercase).map_or(id, Value::from);
                record.insert(key.field.clone(), Value::Object(Map::from_iter([("id".to_owned(), id)])));
                continue;
            }
            match self.resolve(&key.references, reference, read)? {
                Some(Ok(id)) => {
                    let id = Map::from_iter([("id".to_owned(), Value::from(id))]);
                    record.insert(key.field.clone(), Value::Object(id));
                }
                Some(Err(fault)) => {
                    unresolved.insert(key.field.clone(), Value::Object(fault));
                }
                None => {}
            }
        }
        if unresolved.is_empty() { Ok(()) } else { Err(EntityError::ForeignKeysUnresolved { fields: unresolved }) }
    }

    /// None when the reference holds no unique field of the target.
    fn resolve(
        &self,
        target: &str,
        reference: &Map<String, Value>,
        read: &dyn Read,
    ) -> Result<Option<Resolution>, EntityError> {
        let Some(entity) = self.entity(target) else { return Ok(None) };
        for unique in &entity.unique_fields {
            let Some(value) = reference.get(&unique.field).filter(|value| !value.is_null()) else { continue };
            let fault = |text: Value| Ok(Some(Err(Map::from_iter([(unique.field.clone(), text)]))));
            if let Err(error) = self.validate_field(target, &unique.field, value) {
                return fault(error);
            }
            let text = lua_text(value);
            let found = read.get_by(target, &unique.field, &text)?;
            return match found.and_then(|found| entity.id_of(&found)) {
                Some(id) => Ok(Some(Ok(id))),
                None => fault(Value::from(format!(
                    "the foreign key cannot be resolved with '{{{}=\"{text}\"}}' for an existing '{target}' entity",
                    unique.field
                ))),
            };
        }
        Ok(None)
    }
}

/// The id a reference by unique field stands for, or what is wrong with it.
type Resolution = Result<String, Map<String, Value>>;

fn unknown_variant(entity: &str, value: &Value) -> String {
    if value.is_null() {
        return REQUIRED.to_owned();
    }
    let name = subschema_value(value).map_or_else(|| lua_text(value), str::to_owned);
    match entity {
        "plugins" => format!("plugin '{name}' not enabled; add it to the 'plugins' configuration property"),
        "vaults" => format!("vault '{name}' is not installed"),
        _ => format!("unknown type: {name}"),
    }
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
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

/// Takes the duration out of the input: the absolute second of expiry, Null for none, None when not given.
fn take_ttl(entity: &EntitySchema, input: &mut Record, now_seconds: u64) -> Result<Option<Value>, EntityError> {
    if !entity.ttl {
        return Ok(None);
    }
    let Some(given) = input.remove("ttl") else { return Ok(None) };
    // Forms give text.
    let seconds = given.as_i64().or_else(|| given.as_str()?.parse().ok());
    match seconds {
        Some(0) => Ok(Some(Value::Null)),
        Some(seconds) if (1..=TTL_LIMIT).contains(&seconds) => Ok(Some(Value::from(now_seconds + seconds as u64))),
        _ => {
            let text = format!("must be an integer between 0 and {TTL_LIMIT}");
            Err(EntityError::InvalidOptions { options: Map::from_iter([("ttl".to_owned(), Value::from(text))]) })
        }
    }
}

/// Protocols a plugin names must be among those of its route, or of one of its service's routes.
///
/// References are compared as sent: one by name is not looked up.
fn plugin_protocols(entity: &EntitySchema, input: &Record, whole: &Record, read: &dyn Read) -> Result<(), EntityError> {
    let touched = ["protocols", "route", "service"].iter().any(|name| input.contains_key(*name));
    let Some(Value::Array(protocols)) = whole.get("protocols").filter(|_| entity.name == "plugins" && touched) else {
        return Ok(());
    };
    let shares = |record: &Record| {
        let theirs = record.get("protocols").and_then(Value::as_array);
        theirs.is_none_or(|theirs| theirs.iter().any(|protocol| protocols.contains(protocol)))
    };
    let refuse = |text: &str| {
        let fields = Map::from_iter([("protocols".to_owned(), Value::from(text))]);
        Err(EntityError::SchemaViolation { fields })
    };
    if whole.get("route").is_some_and(Value::is_object) {
        let Some(id) = entity.foreign_id(whole, "route") else { return Ok(()) };
        return match read.get("routes", id)? {
            Some(route) if !shares(&route) => refuse("must match the associated route's protocols"),
            _ => Ok(()),
        };
    }
    let Some(id) = entity.foreign_id(whole, "service") else { return Ok(()) };
    let parent = Some(("service".to_owned(), id.to_owned()));
    let mut query = crate::PageQuery { size: 1000, parent, ..crate::PageQuery::default() };
    let mut any = false;
    loop {
        let page = read.page("routes", &query)?;
        if page.rows.iter().any(&shares) {
            return Ok(());
        }
        any |= !page.rows.is_empty();
        match page.next {
            Some(next) => query.from = Some(next),
            None => break,
        }
    }
    if any {
        refuse("must match the protocols of at least one route pointing to this Plugin's service")
    } else {
        Ok(())
    }
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

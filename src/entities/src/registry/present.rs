//! Records as others see them: Admin API answers and rows for data planes.

use super::{EntitySchema, Registry};
use crate::engine::fill::{self, Purpose};
use crate::engine::validate::Validation;
use crate::engine::{Errors, normalise_numbers, shorthand};
use crate::schema::{Field, FieldType, Schema};
use crate::{EntityError, Fill, Record};
use serde_json::{Map, Value};

impl Registry {
    /// What the Admin API shows of a stored record: remaining `ttl`, echoed deprecated fields, no write-only ones.
    pub fn present(&self, entity: &str, stored: &Record, now_millis: u64) -> Record {
        let mut shown = stored.clone();
        let Some(entity) = self.entity(entity) else { return shown };
        echo(entity.schema_of(stored), &mut shown);
        if entity.ttl {
            let expiry = stored.get("ttl").and_then(Value::as_f64);
            let left = expiry.map(|expiry| (expiry - now_millis as f64 / 1000.0).floor().max(0.0) as u64);
            shown.insert("ttl".to_owned(), left.map_or(Value::Null, Value::from));
        }
        shown
    }

    /// The row a v1 data plane is sent: flat foreign ids, absolute `ttl`, deprecated fields beside their replacement.
    /// Source: cluster protocol, section 3.6.
    pub fn export_row(&self, entity: &str, stored: &Record) -> Record {
        let mut row = stored.clone();
        let Some(entity) = self.entity(entity) else { return row };
        let schema = entity.schema_of(stored);
        echo(schema, &mut row);
        for field in schema.fields() {
            let value = row.entry(field.name.clone()).or_insert(Value::Null);
            export_value(field, value);
        }
        row
    }

    /// The reverse of [`Registry::export_row`] for a row received from a control plane: unknown null fields are
    /// dropped, defaults filled, foreign ids made objects, everything validated.
    pub fn import_row(&self, entity: &str, mut row: Record, fill: &mut dyn Fill) -> Result<Record, EntityError> {
        let entity = self.known(entity)?;
        row.values_mut().for_each(normalise_numbers);
        row.remove("_comment");
        row.remove("_ignore");
        let ttl = if entity.ttl { row.remove("ttl").unwrap_or(Value::Null) } else { Value::Null };
        drop_unknown_nulls(entity.schema_of(&row), &mut row);
        let mut errors = Errors::new();
        fill::expand_stored(entity.schema_of(&row), &mut row, &mut errors);
        if !errors.is_empty() {
            return Err(EntityError::SchemaViolation { fields: errors });
        }
        fill::fill_record(entity.schema_of(&row), &mut row, Purpose::Import, fill);
        foreign_objects(entity, &mut row);
        self.check(entity, &row, Validation { now_seconds: 0, ..self.circumstances(fill) })?;
        if entity.ttl {
            row.insert("ttl".to_owned(), ttl);
        }
        Ok(row)
    }
}

/// Repeats the value of each replacement under the deprecated name, at every depth.
fn echo(schema: &Schema, record: &mut Map<String, Value>) {
    for old in schema.shorthands().filter(|old| old.echo) {
        let Some(path) = old.expand.first() else { continue };
        let value = shorthand::lookup(record, path).cloned().unwrap_or_default();
        record.insert(old.name.clone(), value);
    }
    for field in schema.fields() {
        if let (Some(schema), Some(Value::Object(inner))) = (&field.record, record.get_mut(&field.name)) {
            echo(schema, inner);
        }
    }
}

fn export_value(field: &Field, value: &mut Value) {
    let empty = field.kind == FieldType::String && value.as_str() == Some("");
    if empty && field.rules.len_min.is_none_or(|least| least >= 1) {
        *value = Value::Null;
    }
    if let Some(default) = field.default.as_ref().filter(|_| value.is_null() && field.required) {
        *value = default.clone();
    }
    if field.kind == FieldType::Foreign {
        *value = value.get("id").cloned().unwrap_or_else(|| value.take());
    }
    if let (Some(schema), Value::Object(record)) = (&field.record, value) {
        for field in schema.fields() {
            export_value(field, record.entry(field.name.clone()).or_insert(Value::Null));
        }
    }
}

fn drop_unknown_nulls(schema: &Schema, record: &mut Map<String, Value>) {
    record.retain(|name, value| !value.is_null() || schema.field(name).is_some() || schema.shorthand(name).is_some());
    for field in schema.fields() {
        if let (Some(schema), Some(Value::Object(inner))) = (&field.record, record.get_mut(&field.name)) {
            drop_unknown_nulls(schema, inner);
        }
    }
}

fn foreign_objects(entity: &EntitySchema, row: &mut Record) {
    for key in &entity.foreign_keys {
        if let Some(value) = row.get_mut(&key.field).filter(|value| value.is_string()) {
            *value = Value::Object(Map::from_iter([("id".to_owned(), value.take())]));
        }
    }
}

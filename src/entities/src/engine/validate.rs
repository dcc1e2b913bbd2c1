//! Validates values and records against fields and schemas, collecting every error.

use super::{Errors, checks, is_vault_reference, rules};
use crate::registry::NodeKind;
use crate::schema::{Field, FieldType, Schema};
use crate::validators;
use serde_json::{Map, Value};

pub(crate) const REQUIRED: &str = "required field missing";

/// Circumstances of a validation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Validation<'a> {
    /// Foreign fields may be plain text (declarative files).
    pub(crate) foreign_text: bool,
    /// Foreign field that a parent fills: not checked.
    pub(crate) implied: Option<&'a str>,
    /// A merged record of a PATCH: some messages say so.
    pub(crate) updating: bool,
    pub(crate) kind: NodeKind,
    pub(crate) now_seconds: u64,
}

impl Default for Validation<'_> {
    fn default() -> Self {
        Self { foreign_text: false, implied: None, updating: false, kind: NodeKind::Traditional, now_seconds: 0 }
    }
}

impl Validation<'_> {
    /// Every error of a record; empty when it is valid.
    pub(crate) fn record(&self, schema: &Schema, record: &Map<String, Value>) -> Errors {
        let mut errors = Errors::new();
        let mut stranger = |name: &String| _ = errors.insert(name.clone(), Value::from("unknown field"));
        // Both by name, side by side.
        let mut members = record.iter().peekable();
        let mut faults = Vec::new();
        for field in schema.fields_by_name() {
            while let Some((name, _)) = members.next_if(|(name, _)| **name < field.name) {
                stranger(name);
            }
            let value = members.next_if(|(name, _)| **name == field.name).map_or(&Value::Null, |(_, value)| value);
            if self.implied != Some(field.name.as_str())
                && let Err(error) = self.value(field, value)
            {
                faults.push((field.name.clone(), error));
            }
        }
        members.for_each(|(name, _)| stranger(name));
        errors.extend(faults);
        checks::run(self, schema, record, &mut errors);
        errors
    }

    /// One value: presence, type, parts, rules, and the named validator last.
    pub(crate) fn value(&self, field: &Field, value: &Value) -> Result<(), Value> {
        if field.is_abstract {
            return Ok(());
        }
        if value.is_null() {
            return rules::check_null(field);
        }
        if field.rules.eq == Some(Value::Null) {
            return Err(rules::message(field, "value must be null".to_owned()));
        }
        if field.referenceable && is_vault_reference(value) {
            return Ok(());
        }
        self.typed(field, value)?;
        rules::check(field, value)?;
        match field.validator.as_deref() {
            Some(name) => validators::run(name, value),
            None => Ok(()),
        }
    }

    fn typed(&self, field: &Field, value: &Value) -> Result<(), Value> {
        let expected = |name: &str| Err(Value::from(format!("expected {name}")));
        match (field.kind, value) {
            (FieldType::Any | FieldType::Json, _) if field.elements.is_none() => Ok(()),
            (FieldType::String, Value::String(_))
            | (FieldType::Number, Value::Number(_))
            | (FieldType::Boolean, Value::Bool(_)) => Ok(()),
            (FieldType::Integer, Value::Number(number)) if number.is_i64() || number.is_u64() => Ok(()),
            (FieldType::Array | FieldType::Set | FieldType::Any, Value::Array(list)) => self.list(field, list),
            // An empty table of Lua is written as an empty object.
            (FieldType::Array | FieldType::Set, Value::Object(object)) if object.is_empty() => Ok(()),
            (FieldType::Map, Value::Object(map)) => self.map(field, map),
            (FieldType::Map | FieldType::Record, Value::Array(list)) if list.is_empty() => Ok(()),
            (FieldType::Record, Value::Object(record)) => self.members(field, record),
            (FieldType::Foreign, value) => self.foreign(value),
            (FieldType::String, _) => expected("a string"),
            (FieldType::Number, _) => expected("a number"),
            (FieldType::Integer, _) => expected("an integer"),
            (FieldType::Boolean, _) => expected("a boolean"),
            (FieldType::Array, _) => expected("an array"),
            (FieldType::Set, _) => expected("a set"),
            (FieldType::Map, _) => expected("a map"),
            (FieldType::Record, _) => expected("a record"),
            (FieldType::Any | FieldType::Json, _) => Ok(()),
        }
    }

    fn list(&self, field: &Field, list: &[Value]) -> Result<(), Value> {
        let Some(elements) = &field.elements else { return Ok(()) };
        let mut errors: Vec<Value> = Vec::new();
        for (index, element) in list.iter().enumerate() {
            let fault = match element {
                Value::Null => Err(Value::from(REQUIRED)),
                element => self.value(elements, element),
            };
            if let Err(error) = fault {
                errors.resize(index, Value::Null);
                errors.push(error);
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(Value::Array(errors)) }
    }

    /// The first bad key or value speaks for the whole map.
    fn map(&self, field: &Field, map: &Map<String, Value>) -> Result<(), Value> {
        for (key, value) in map {
            if let Some(keys) = &field.keys {
                self.value(keys, &Value::from(key.as_str()))?;
            }
            match (&field.values, value) {
                (Some(_), Value::Null) => return Err(Value::from(REQUIRED)),
                (Some(values), value) => self.value(values, value)?,
                (None, _) => {}
            }
        }
        Ok(())
    }

    fn members(&self, field: &Field, record: &Map<String, Value>) -> Result<(), Value> {
        let Some(schema) = &field.record else { return Ok(()) };
        let inner = Validation { implied: None, ..*self };
        let errors = inner.record(schema, record);
        if errors.is_empty() { Ok(()) } else { Err(Value::Object(errors)) }
    }

    fn foreign(&self, value: &Value) -> Result<(), Value> {
        let fault = |text: &str| {
            let mut errors = Errors::new();
            errors.insert("id".to_owned(), Value::from(text));
            Err(Value::Object(errors))
        };
        match value {
            Value::String(_) if self.foreign_text => Ok(()),
            Value::Object(reference) => match reference.get("id") {
                None | Some(Value::Null) => fault("missing primary key"),
                Some(Value::String(id)) if rules::is_uuid(id) => Ok(()),
                Some(Value::String(_)) => fault("expected a valid UUID"),
                Some(_) => fault("expected a string"),
            },
            _ => fault("missing primary key"),
        }
    }
}

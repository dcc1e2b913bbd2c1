//! Checks over several fields of a record.

use super::validate::Validation;
use super::{Errors, is_empty, is_vault_reference, set_at, value_at};
use crate::schema::{Check, Conditional, ConditionalAtLeastOneOf, Schema};
use crate::validators::entity;
use serde_json::{Map, Value};

/// Runs every check of the schema, adding messages under `@entity` and at the fields concerned.
pub(crate) fn run(validation: &Validation<'_>, schema: &Schema, record: &Map<String, Value>, errors: &mut Errors) {
    let mut found: Vec<Fault> = Vec::new();
    for check in &schema.checks {
        if !references_vault(schema, record, check) && !concerns_errors(check, errors) {
            found.extend(one(validation, record, check));
        }
    }
    let mut messages: Vec<Value> = Vec::new();
    for fault in found {
        if let Some((path, error)) = fault.field {
            set_at(errors, path.split('.'), error);
        }
        messages.extend(fault.message.map(Value::from));
    }
    if !messages.is_empty() {
        errors.insert("@entity".to_owned(), Value::Array(messages));
    }
}

/// What a failed check says: about the record, about one field, or both.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) message: Option<String>,
    pub(crate) field: Option<(String, Value)>,
}

impl Fault {
    pub(crate) fn entity(message: impl Into<String>) -> Fault {
        Fault { message: Some(message.into()), field: None }
    }
}

/// Whether something holds of a field that the check speaks of.
fn any_field(check: &Check, mut holds: impl FnMut(&str) -> bool) -> bool {
    match check {
        Check::AtLeastOneOf(fields)
        | Check::OnlyOneOf(fields)
        | Check::Distinct(fields)
        | Check::MutuallyRequired(fields)
        | Check::MutuallyExclusive(fields)
        | Check::Custom { fields, .. } => fields.iter().any(|field| holds(field)),
        Check::MutuallyExclusiveSets(first, second) => holds(first) || holds(second),
        Check::Conditional(check) => holds(&check.if_field) || holds(&check.then_field),
        Check::ConditionalAtLeastOneOf(check) => {
            holds(&check.if_field) || check.fields.iter().any(|field| holds(field))
        }
    }
}

/// Values that stand in a vault cannot be compared here.
fn references_vault(schema: &Schema, record: &Map<String, Value>, check: &Check) -> bool {
    any_field(check, |path| {
        is_vault_reference(value_at(record, path)) && schema.field_at(path).is_some_and(|field| field.referenceable)
    })
}

/// Checks that compare values wait until each of them is valid by itself.
fn concerns_errors(check: &Check, errors: &Errors) -> bool {
    let waits = match check {
        Check::Conditional(_) | Check::Distinct(_) => true,
        Check::Custom { run_with_invalid_fields, .. } => !run_with_invalid_fields,
        _ => false,
    };
    waits && !errors.is_empty() && any_field(check, |path| has_error(errors, path))
}

fn has_error(errors: &Errors, path: &str) -> bool {
    let mut steps = path.split('.');
    let mut error = steps.next().and_then(|name| errors.get(name));
    for name in steps {
        match error {
            Some(Value::Object(members)) => error = members.get(name),
            other => return other.is_some(),
        }
    }
    error.is_some()
}

fn quoted(fields: &[String]) -> String {
    fields.iter().map(|field| format!("'{field}'")).collect::<Vec<_>>().join(", ")
}

fn one(validation: &Validation<'_>, record: &Map<String, Value>, check: &Check) -> Vec<Fault> {
    let set = |fields: &[String]| fields.iter().filter(|path| !is_empty(value_at(record, path))).count();
    let fault = |failed: bool, text: String| if failed { vec![Fault::entity(text)] } else { Vec::new() };
    let prefix = if validation.updating { "when updating, " } else { "" };
    match check {
        Check::AtLeastOneOf(fields) => fault(
            set(fields) == 0,
            format!("{prefix}at least one of these fields must be non-empty: {}", quoted(fields)),
        ),
        Check::OnlyOneOf(fields) => {
            fault(set(fields) != 1, format!("exactly one of these fields must be non-empty: {}", quoted(fields)))
        }
        Check::Distinct(fields) => {
            fault(repeats(record, fields), format!("values of these fields must be distinct: {}", quoted(fields)))
        }
        Check::MutuallyRequired(fields) => {
            let failed = !matches!(set(fields), 0) && set(fields) != fields.len();
            fault(failed, format!("all or none of these fields must be set: {}", quoted(fields)))
        }
        Check::MutuallyExclusive(fields) => {
            fault(set(fields) > 1, format!("only one or none of these fields must be set: {}", quoted(fields)))
        }
        Check::MutuallyExclusiveSets(first, second) => exclusive_sets(record, first, second),
        Check::Conditional(check) => conditional(validation, record, check),
        Check::ConditionalAtLeastOneOf(check) => conditional_at_least_one_of(validation, record, check),
        Check::Custom { name, .. } => entity::run(validation, name, record),
    }
}

fn repeats(record: &Map<String, Value>, fields: &[String]) -> bool {
    let values: Vec<&Value> = fields.iter().map(|path| value_at(record, path)).filter(|v| !is_empty(v)).collect();
    values.iter().enumerate().any(|(index, value)| values[..index].contains(value))
}

fn exclusive_sets(record: &Map<String, Value>, first: &str, second: &str) -> Vec<Fault> {
    let set = |path: &str| value_at(record, path).as_array().map(Vec::as_slice).unwrap_or_default();
    let right = set(second);
    if !set(first).iter().any(|value| right.contains(value)) {
        return Vec::new();
    }
    vec![Fault::entity(format!("these sets are mutually exclusive: '{first}', '{second}'"))]
}

fn holds(validation: &Validation<'_>, field: &crate::Field, value: &Value) -> bool {
    // An unset value only satisfies a condition that speaks of null.
    if value.is_null() && field.rules.eq != Some(Value::Null) {
        return false;
    }
    let rules = &field.rules;
    let among = |list: &Option<Vec<Value>>| list.as_ref().map(|list| list.contains(value));
    // Most conditions are about single values; nobody reads the message of one that does not hold.
    if among(&rules.one_of) == Some(false) || among(&rules.not_one_of) == Some(true) {
        return false;
    }
    validation.value(field, value).is_ok()
}

fn conditional(validation: &Validation<'_>, record: &Map<String, Value>, check: &Conditional) -> Vec<Fault> {
    if !holds(validation, &check.if_match, value_at(record, &check.if_field)) {
        return Vec::new();
    }
    match validation.value(&check.then_match, value_at(record, &check.then_field)) {
        Ok(()) => Vec::new(),
        Err(error) => {
            let text = format!("failed conditional validation given value of field '{}'", check.if_field);
            vec![Fault {
                message: Some(check.message.clone().unwrap_or(text)),
                field: Some((check.then_field.clone(), error)),
            }]
        }
    }
}

fn conditional_at_least_one_of(
    validation: &Validation<'_>,
    record: &Map<String, Value>,
    check: &ConditionalAtLeastOneOf,
) -> Vec<Fault> {
    let value = value_at(record, &check.if_field);
    let (fields, message) = if holds(validation, &check.if_match, value) {
        (&check.fields, &check.message)
    } else {
        match &check.otherwise {
            Some((condition, fields, message)) if holds(validation, condition, value) => (fields, message),
            _ => return Vec::new(),
        }
    };
    if fields.iter().any(|path| !is_empty(value_at(record, path))) {
        return Vec::new();
    }
    let prefix = if validation.updating { "when updating, " } else { "" };
    let text = match message {
        Some(message) => message.replace("%s", &quoted(fields)),
        None => format!("{prefix}at least one of these fields must be non-empty: {}", quoted(fields)),
    };
    vec![Fault::entity(text)]
}

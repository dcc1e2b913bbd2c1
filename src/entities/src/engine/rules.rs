//! The declared limits on one value, in the order in which Kong applies them.
//!
//! Source: Kong 3.9.1 `kong/db/schema/init.lua`, `VALIDATORS_ORDER`.

use super::validate::REQUIRED;
use super::{lua_text, number_text};
use crate::lua_pattern;
use crate::schema::{Field, FieldType, Rules};
use serde_json::Value;

/// The field's own message when it has one, else this.
pub(crate) fn message(field: &Field, text: String) -> Value {
    Value::from(field.rules.message.clone().unwrap_or(text))
}

pub(crate) fn check_null(field: &Field) -> Result<(), Value> {
    let rules = &field.rules;
    if rules.ne == Some(Value::Null) {
        return Err(message(field, "value must not be null".to_owned()));
    }
    if let Some(eq) = rules.eq.as_ref().filter(|eq| !eq.is_null()) {
        return Err(message(field, format!("value must be {}", lua_text(eq))));
    }
    if field.required { Err(Value::from(REQUIRED)) } else { Ok(()) }
}

pub(crate) fn check(field: &Field, value: &Value) -> Result<(), Value> {
    let outcome = equality(&field.rules, value)
        .and_then(|()| numbers(field, value))
        .and_then(|()| length(field, value))
        .and_then(|()| text(&field.rules, value))
        .and_then(|()| sets(&field.rules, value));
    outcome.map_err(|text| message(field, text))
}

fn equality(rules: &Rules, value: &Value) -> Result<(), String> {
    let list = |values: &[Value]| values.iter().map(lua_text).collect::<Vec<_>>().join(", ");
    if let Some(eq) = rules.eq.as_ref().filter(|eq| *eq != value) {
        return Err(format!("value must be {}", lua_text(eq)));
    }
    if rules.ne.as_ref() == Some(value) {
        return Err(format!("value must not be {}", lua_text(value)));
    }
    if let Some(forbidden) = rules.not_one_of.as_ref().filter(|list| list.contains(value)) {
        return Err(format!("must not be one of: {}", list(forbidden)));
    }
    match rules.one_of.as_ref().filter(|list| !list.contains(value)) {
        Some(allowed) => Err(format!("expected one of: {}", list(allowed))),
        None => Ok(()),
    }
}

fn numbers(field: &Field, value: &Value) -> Result<(), String> {
    let number = value.as_f64();
    if let (Some(limit), Some(number)) = (field.rules.gt, number)
        && number <= limit
    {
        return Err(format!("value must be greater than {}", number_text(limit.trunc())));
    }
    if field.timestamp && number.is_some_and(|number| number < 0.0) {
        return Err("expected a valid timestamp".to_owned());
    }
    if field.uuid && !value.as_str().is_some_and(is_uuid) {
        return Err("expected a valid UUID".to_owned());
    }
    if let (true, Some(text)) = (field.rules.is_regex, value.as_str())
        && fancy_regex::Regex::new(text).is_err()
    {
        return Err(format!("not a valid regex: {text}"));
    }
    match (field.rules.between, number) {
        (Some((low, high)), Some(number)) if !(low..=high).contains(&number) => {
            Err(format!("value should be between {} and {}", number_text(low.trunc()), number_text(high.trunc())))
        }
        _ => Ok(()),
    }
}

/// 8-4-4-4-12 hexadecimal digits, any letter case, any version.
pub(crate) fn is_uuid(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 36
        && bytes.iter().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn length(field: &Field, value: &Value) -> Result<(), String> {
    let length = match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.len(),
        Value::Object(object) => object.len(),
        _ => return Ok(()),
    } as u64;
    let rules = &field.rules;
    let least = rules.len_min.or((field.kind == FieldType::String).then_some(1));
    if let Some(wanted) = rules.len_eq.filter(|wanted| *wanted != length) {
        return Err(format!("length must be {wanted}"));
    }
    if let Some(least) = least.filter(|least| length < *least) {
        return Err(format!("length must be at least {least}"));
    }
    match rules.len_max.filter(|most| length > *most) {
        Some(most) => Err(format!("length must be at most {most}")),
        None => Ok(()),
    }
}

fn text(rules: &Rules, value: &Value) -> Result<(), String> {
    let Some(text) = value.as_str() else { return Ok(()) };
    let invalid = || format!("invalid value: {text}");
    if let Some(start) = rules.starts_with.as_ref().filter(|start| !text.starts_with(start.as_str())) {
        return Err(format!("should start with: {start}"));
    }
    if rules.not_match.as_ref().is_some_and(|pattern| lua_pattern::matches(text, pattern)) {
        return Err(invalid());
    }
    if let Some(found) = rules.match_none.iter().find(|entry| lua_pattern::matches(text, &entry.pattern)) {
        return Err(found.message.clone().unwrap_or_else(invalid));
    }
    if rules.match_.as_ref().is_some_and(|pattern| !lua_pattern::matches(text, pattern)) {
        return Err(invalid());
    }
    if let Some(missed) = rules.match_all.iter().find(|entry| !lua_pattern::matches(text, &entry.pattern)) {
        return Err(missed.message.clone().unwrap_or_else(invalid));
    }
    match &rules.match_any {
        Some(any) if !any.patterns.iter().any(|pattern| lua_pattern::matches(text, pattern)) => {
            Err(any.message.clone().unwrap_or_else(invalid))
        }
        _ => Ok(()),
    }
}

fn sets(rules: &Rules, value: &Value) -> Result<(), String> {
    let Some(list) = value.as_array() else { return Ok(()) };
    if let Some(wanted) = rules.contains.as_ref().filter(|wanted| !list.contains(wanted)) {
        return Err(format!("expected to contain: {}", lua_text(wanted)));
    }
    exclusive_subsets(&rules.mutually_exclusive_subsets, list)
}

/// Names the subsets the values come from, in the order of the values, when there is more than one.
fn exclusive_subsets(subsets: &[Vec<String>], list: &[Value]) -> Result<(), String> {
    let mut touched: Vec<&Vec<String>> = Vec::new();
    for text in list.iter().filter_map(Value::as_str) {
        if let Some(subset) = subsets.iter().find(|subset| subset.iter().any(|member| member == text))
            && !touched.contains(&subset)
        {
            touched.push(subset);
        }
    }
    if touched.len() < 2 {
        return Ok(());
    }
    let shown = |subset: &&Vec<String>| {
        let quoted: Vec<String> = subset.iter().map(|member| format!("'{member}'")).collect();
        format!("({})", quoted.join(", "))
    };
    let shown: Vec<String> = touched.iter().map(shown).collect();
    Err(format!("these sets are mutually exclusive: {}", shown.join(", ")))
}

//! Reads schemas from JSON: our own files and Kong's shape, in which each field is an object with one member.

use super::{AnyOfPatterns, Check, Conditional, ConditionalAtLeastOneOf, Field, FieldType, Pattern, Rules, Schema};
use crate::registry::OnDelete;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A schema that cannot be read: where, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("schema {path}: {fault}")]
pub struct SchemaError {
    /// Dotted path from the schema's root.
    pub path: String,
    /// What is wrong there.
    pub fault: String,
}

/// Node facts that select between variants inside a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileOptions<'a> {
    /// The node has a database of its own and proxies: enumerations may be longer.
    pub(crate) traditional: bool,
    pub(crate) router_flavor: &'a str,
    /// Value in place of `default_token`.
    pub(crate) default_token: Option<&'a str>,
}

/// Attributes of our own, never shown.
const INTERNAL: [&str; 10] = [
    "name",
    "validator",
    "validator_traditional",
    "with_database",
    "default_token",
    "only_flavor",
    "expand",
    "echo",
    "convert",
    "quoted",
];

/// Attributes that hold nested definitions.
const NESTED: [&str; 6] = ["elements", "keys", "values", "fields", "shorthand_fields", "entity_checks"];

type Object = Map<String, Value>;

fn fault<T>(path: &str, text: impl Into<String>) -> Result<T, SchemaError> {
    Err(SchemaError { path: path.to_owned(), fault: text.into() })
}

/// Reads `fields`, `shorthand_fields` and `entity_checks` of an object.
pub(crate) fn schema_from(object: &Object, path: &str, options: FileOptions<'_>) -> Result<Schema, SchemaError> {
    let mut schema = Schema::new(
        fields(object.get("fields"), path, options)?,
        fields(object.get("shorthand_fields"), path, options)?,
    );
    for check in object.get("entity_checks").and_then(Value::as_array).into_iter().flatten() {
        let Some(check) = check.as_object() else {
            return fault(path, "an entity check must be an object");
        };
        let flavors = check.get("custom_entity_check").and_then(|custom| custom.get("flavors"));
        if flavors.is_some_and(|flavors| !strings(Some(flavors)).iter().any(|name| name == options.router_flavor)) {
            continue;
        }
        if let Some(parsed) = read_check(check, &schema, path, options)? {
            schema.checks.push(parsed);
        }
        schema.checks_json.push(shown_check(check));
    }
    Ok(schema)
}

fn fields(list: Option<&Value>, path: &str, options: FileOptions<'_>) -> Result<Vec<Arc<Field>>, SchemaError> {
    let mut read = Vec::new();
    // An empty list written by Lua arrives as an empty object.
    for entry in list.and_then(Value::as_array).into_iter().flatten() {
        let Some(object) = entry.as_object() else {
            return fault(path, "a field must be an object");
        };
        let field = match (object.get("name"), object.iter().next()) {
            (Some(Value::String(name)), _) => read_field(name, object, path, options)?,
            (_, Some((name, Value::Object(attributes)))) => read_field(name, attributes, path, options)?,
            _ => return fault(path, "a field needs a name and attributes"),
        };
        let only = object.get("only_flavor").and_then(Value::as_str);
        if only.is_none_or(|flavor| flavor == options.router_flavor) {
            read.push(Arc::new(field));
        }
    }
    Ok(read)
}

/// Reads one field's attributes.
fn read_field(name: &str, given: &Object, parent: &str, options: FileOptions<'_>) -> Result<Field, SchemaError> {
    let path = if name.is_empty() { parent.to_owned() } else { format!("{parent}.{name}") };
    let mut object = given.clone();
    if options.traditional
        && let Some(Value::Object(more)) = given.get("with_database")
    {
        object.extend(more.clone());
    }
    if let Some(token) = options.default_token.filter(|_| given.contains_key("default_token")) {
        object.insert("default".to_owned(), Value::from(token));
    }
    let flag = |name: &str| object.get(name).and_then(Value::as_bool).unwrap_or(false);
    let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
    let nested = |name: &str| match object.get(name) {
        Some(Value::Object(nested)) => read_field("", nested, &path, options).map(|field| Some(Arc::new(field))),
        _ => Ok(None),
    };
    let kind = field_type(&object, &path)?;
    let record = match kind {
        FieldType::Record if !flag("abstract") => Some(Arc::new(schema_from(&object, &path, options)?)),
        _ => None,
    };
    let validator = match text("validator_traditional") {
        Some(validator) if options.router_flavor == "traditional" => Some(validator),
        _ => text("validator"),
    };
    let on_delete = match object.get("on_delete").and_then(Value::as_str) {
        Some("cascade") => Some(OnDelete::Cascade),
        Some("restrict") => Some(OnDelete::Restrict),
        _ => None,
    };
    Ok(Field {
        name: name.to_owned(),
        kind,
        required: flag("required"),
        default: object.get("default").cloned(),
        auto: flag("auto"),
        uuid: flag("uuid"),
        timestamp: flag("timestamp"),
        unique: flag("unique"),
        unique_across_workspaces: flag("unique_across_ws"),
        reference: text("reference"),
        on_delete,
        referenceable: flag("referenceable"),
        encrypted: flag("encrypted"),
        is_abstract: flag("abstract"),
        transient: flag("transient"),
        rules: rules(&object, &path)?,
        elements: nested("elements")?,
        keys: nested("keys")?,
        values: nested("values")?,
        record,
        validator,
        default_token: flag("default_token"),
        expand: expansion(&object),
        echo: flag("echo"),
        convert: text("convert"),
        deprecated: object.contains_key("deprecation"),
        attributes: object
            .iter()
            .filter(|(name, _)| !INTERNAL.contains(&name.as_str()) && !NESTED.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    })
}

fn field_type(object: &Object, path: &str) -> Result<FieldType, SchemaError> {
    Ok(match object.get("type").and_then(Value::as_str) {
        None => FieldType::Any,
        Some("string") => FieldType::String,
        Some("number") => FieldType::Number,
        Some("integer") => FieldType::Integer,
        Some("boolean") => FieldType::Boolean,
        Some("array") => FieldType::Array,
        Some("set") => FieldType::Set,
        Some("map") => FieldType::Map,
        Some("record") => FieldType::Record,
        Some("foreign") => FieldType::Foreign,
        Some("json" | "any") => FieldType::Json,
        Some("function") => FieldType::Any,
        Some(other) => return fault(path, format!("unknown field type {other:?}")),
    })
}

/// Where a shorthand's value goes: our `expand`, else Kong's `deprecation.replaced_with`.
fn expansion(object: &Object) -> Vec<Vec<String>> {
    let steps = |path: &Value| -> Vec<String> { strings(Some(path)) };
    if let Some(Value::Array(paths)) = object.get("expand") {
        return paths.iter().map(steps).collect();
    }
    let replaced = object.get("deprecation").and_then(|deprecation| deprecation.get("replaced_with"));
    replaced
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(|entry| entry.get("path")).map(steps).collect())
        .unwrap_or_default()
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array);
    list.map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect()).unwrap_or_default()
}

fn rules(object: &Object, path: &str) -> Result<Rules, SchemaError> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
    let list = |name: &str| object.get(name).and_then(Value::as_array).cloned();
    let between = match object.get("between").and_then(Value::as_array).map(Vec::as_slice) {
        None => None,
        Some([low, high]) => match (bound(low), bound(high)) {
            (Some(low), Some(high)) => Some((low, high)),
            _ => return fault(path, "`between` needs two numbers"),
        },
        Some(_) => return fault(path, "`between` needs two numbers"),
    };
    let subsets = list("mutually_exclusive_subsets").unwrap_or_default();
    Ok(Rules {
        eq: object.get("eq").cloned(),
        ne: object.get("ne").cloned(),
        one_of: list("one_of"),
        not_one_of: list("not_one_of"),
        gt: object.get("gt").and_then(Value::as_f64),
        between,
        len_eq: object.get("len_eq").and_then(Value::as_u64),
        len_min: object.get("len_min").and_then(Value::as_u64),
        len_max: object.get("len_max").and_then(Value::as_u64),
        starts_with: text("starts_with"),
        match_: text("match"),
        not_match: text("not_match"),
        match_all: patterns(object.get("match_all")),
        match_none: patterns(object.get("match_none")),
        match_any: object.get("match_any").and_then(Value::as_object).map(|any| AnyOfPatterns {
            patterns: strings(any.get("patterns")),
            message: any.get("err").and_then(Value::as_str).map(str::to_owned),
        }),
        contains: object.get("contains").cloned(),
        is_regex: object.get("is_regex").and_then(Value::as_bool).unwrap_or(false),
        mutually_exclusive_subsets: subsets.iter().map(|subset| strings(Some(subset))).collect(),
        message: text("err"),
    })
}

/// A bound of `between`; infinities are written as text.
fn bound(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) if text.ends_with("inf") => {
            Some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY })
        }
        other => other.as_f64(),
    }
}

fn patterns(value: Option<&Value>) -> Vec<Pattern> {
    let list = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .filter_map(|entry| {
            Some(Pattern {
                pattern: entry.get("pattern")?.as_str()?.to_owned(),
                message: entry.get("err").and_then(Value::as_str).map(str::to_owned),
            })
        })
        .collect()
}

/// The check without our own attributes.
fn shown_check(check: &Object) -> Value {
    let mut shown = check.clone();
    shown.remove("quoted");
    if let Some(Value::Object(custom)) = shown.get_mut("custom_entity_check") {
        custom.remove("check");
        custom.remove("flavors");
    }
    if let Some(Value::Object(condition)) = shown.get_mut("conditional") {
        for part in ["if_match", "then_match"] {
            if let Some(Value::Object(conditions)) = condition.get_mut(part) {
                conditions.remove("validator");
            }
        }
    }
    Value::Object(shown)
}

fn read_check(
    check: &Object,
    schema: &Schema,
    path: &str,
    options: FileOptions<'_>,
) -> Result<Option<Check>, SchemaError> {
    let Some((kind, argument)) = check.iter().find(|(name, _)| *name != "quoted") else {
        return fault(path, "an entity check needs a kind");
    };
    // The order in messages may differ from the order shown.
    let fields = || strings(check.get("quoted").or(Some(argument)));
    let object = || argument.as_object().map_or_else(|| fault(path, format!("{kind} needs an object")), Ok);
    Ok(Some(match kind.as_str() {
        "at_least_one_of" => Check::AtLeastOneOf(fields()),
        "only_one_of" => Check::OnlyOneOf(fields()),
        "distinct" => Check::Distinct(fields()),
        "mutually_required" => Check::MutuallyRequired(fields()),
        "mutually_exclusive" => Check::MutuallyExclusive(fields()),
        "mutually_exclusive_sets" => {
            let object = object()?;
            let set = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            Check::MutuallyExclusiveSets(set("set1"), set("set2"))
        }
        "conditional" => conditional(object()?, schema, path, options)?,
        "conditional_at_least_one_of" => conditional_at_least_one_of(object()?, schema, path, options)?,
        "custom_entity_check" => {
            let object = object()?;
            let flag = object.get("run_with_invalid_fields").and_then(Value::as_bool);
            match object.get("check").and_then(Value::as_str) {
                Some(name) => Check::Custom {
                    name: name.to_owned(),
                    fields: strings(object.get("field_sources")),
                    run_with_invalid_fields: flag.unwrap_or(false),
                },
                // A function of a Lua plugin: the Lua host runs it.
                None => return Ok(None),
            }
        }
        // An unknown kind only shows; refusing the plugin for it would help nobody.
        _ => return Ok(None),
    }))
}

fn conditional(object: &Object, schema: &Schema, path: &str, options: FileOptions<'_>) -> Result<Check, SchemaError> {
    let (if_field, if_match) = condition(object, "if_field", "if_match", schema, path, options)?;
    let (then_field, then_match) = condition(object, "then_field", "then_match", schema, path, options)?;
    let message = object.get("then_err").and_then(Value::as_str).map(str::to_owned);
    Ok(Check::Conditional(Box::new(Conditional { if_field, if_match, then_field, then_match, message })))
}

fn conditional_at_least_one_of(
    object: &Object,
    schema: &Schema,
    path: &str,
    options: FileOptions<'_>,
) -> Result<Check, SchemaError> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
    let (if_field, if_match) = condition(object, "if_field", "if_match", schema, path, options)?;
    let otherwise = match object.contains_key("else_match") {
        true => {
            let (_, field) = condition(object, "if_field", "else_match", schema, path, options)?;
            Some((field, strings(object.get("else_then_at_least_one_of")), text("else_then_err")))
        }
        false => None,
    };
    Ok(Check::ConditionalAtLeastOneOf(Box::new(ConditionalAtLeastOneOf {
        if_field,
        if_match,
        fields: strings(object.get("then_at_least_one_of")),
        message: text("then_err"),
        otherwise,
    })))
}

/// The field a condition is about, with the condition's attributes laid over its own type.
fn condition(
    object: &Object,
    field_name: &str,
    match_name: &str,
    schema: &Schema,
    path: &str,
    options: FileOptions<'_>,
) -> Result<(String, Field), SchemaError> {
    let name = object.get(field_name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(Value::Object(conditions)) = object.get(match_name) else {
        return fault(path, format!("a condition needs `{match_name}`"));
    };
    let mut field = read_field("", conditions, path, options)?;
    if let Some(target) = schema.field_at(&name)
        && field.kind == FieldType::Any
    {
        field.kind = target.kind;
        field.validator = field.validator.or_else(|| target.validator.clone());
        field.rules.len_min = field.rules.len_min.or(target.rules.len_min);
        field.record = target.record.clone();
        field.reference = target.reference.clone();
    }
    Ok((name, field))
}

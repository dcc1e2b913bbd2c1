//! Texts and bodies of the coded errors.
//!
//! Source: Kong 3.9.1 `kong/db/errors.lua`, with tables printed as Penlight's `pretty.write` does.

use crate::EntityError;
use serde_json::{Map, Value, json};

impl EntityError {
    /// Body of the Admin API's answer.
    pub fn body(&self) -> Value {
        match self {
            Self::Bare { message, .. } => json!({ "message": message }),
            Self::Database(_) => json!({ "message": "An unexpected error occurred" }),
            Self::InvalidPrimaryKey { key } => {
                coded(1, "invalid primary key", format!("invalid primary key: '{}'", inline(key)), key)
            }
            Self::SchemaViolation { fields } => coded(2, "schema violation", violations(fields), fields),
            Self::PrimaryKeyViolation { key } => {
                coded(3, "primary key violation", format!("primary key violation on key '{}'", inline(key)), key)
            }
            Self::ForeignKeyMissing { field, entity, key } => coded(
                4,
                "foreign key violation",
                format!("the foreign key '{}' does not reference an existing '{entity}' entity.", inline(key)),
                &Map::from_iter([(field.clone(), Value::Object(key.clone()))]),
            ),
            Self::ForeignKeyRestrict { entity, by } => coded(
                4,
                "foreign key violation",
                format!("an existing '{by}' entity references this '{entity}' entity"),
                &referenced_by(by),
            ),
            Self::UniqueViolation { fields } => coded(
                5,
                "unique constraint violation",
                format!("UNIQUE violation detected on '{}'", inline(fields)),
                fields,
            ),
            Self::NotFound { key, primary } => {
                let which = if *primary { "primary key " } else { "" };
                coded(6, "not found", format!("could not find the entity with {which}'{}'", inline(key)), key)
            }
            Self::InvalidOffset { offset, reason } => {
                bare_coded(7, "invalid offset", format!("'{offset}' is not a valid offset: {reason}"))
            }
            Self::InvalidSize(reason) => bare_coded(9, "invalid size", reason.clone()),
            Self::InvalidUnique { field, reason } => bare_coded(10, &format!("invalid unique {field}"), reason.clone()),
            Self::InvalidOptions { options } => json!({
                "code": 11,
                "name": "invalid options",
                "message": counted("invalid option", options),
                "options": options,
            }),
            Self::Unsupported(reason) => bare_coded(12, "operation unsupported", reason.clone()),
            Self::ForeignKeysUnresolved { fields } => {
                coded(13, "foreign keys unresolved", counted("foreign key unresolved", fields), fields)
            }
            Self::InvalidDeclarative { fields, flattened } => declarative(fields, flattened.as_deref()),
            Self::ReferencedByOthers { entity, by } => coded(
                19,
                "referenced by others",
                format!("an existing '{by}' entity references this '{entity}' entity"),
                &referenced_by(by),
            ),
        }
    }
}

fn referenced_by(by: &str) -> Map<String, Value> {
    Map::from_iter([("@referenced_by".to_owned(), Value::from(by))])
}

fn coded(code: u8, name: &str, message: String, fields: &Map<String, Value>) -> Value {
    json!({ "code": code, "name": name, "message": message, "fields": fields })
}

fn bare_coded(code: u8, name: &str, message: String) -> Value {
    json!({ "code": code, "name": name, "message": message })
}

fn declarative(fields: &Map<String, Value>, flattened: Option<&[Value]>) -> Value {
    let message = format!("declarative config is invalid: {}", inline(fields));
    let mut body = coded(14, "invalid declarative configuration", message, fields);
    if let (Some(flattened), Value::Object(body)) = (flattened, &mut body) {
        // Lua writes an empty list as an object.
        let list = if flattened.is_empty() { json!({}) } else { Value::Array(flattened.to_vec()) };
        body.insert("flattened_errors".to_owned(), list);
    }
    body
}

fn violations(fields: &Map<String, Value>) -> String {
    counted("schema violation", fields)
}

/// `<what> (<one>)` or `<n> <what>s (<one>; <two>)`.
fn counted(what: &str, fields: &Map<String, Value>) -> String {
    let parts = contributions(fields);
    match parts.as_slice() {
        [one] => format!("{what} ({one})"),
        parts => format!("{} {what}s ({})", parts.len(), parts.join("; ")),
    }
}

/// Messages about the whole first, then one for each field or member of a field.
fn contributions(fields: &Map<String, Value>) -> Vec<String> {
    let whole = fields.get("@entity").and_then(Value::as_array).into_iter().flatten();
    let mut parts: Vec<String> = whole.map(plain).collect();
    for (name, error) in fields.iter().filter(|(name, _)| *name != "@entity") {
        match error {
            Value::Object(members) => {
                parts.extend(members.iter().map(|(member, error)| format!("{name}.{member}: {}", plain(error))));
            }
            Value::Array(list) => {
                let present = list.iter().enumerate().filter(|(_, error)| !error.is_null());
                parts.extend(present.map(|(index, error)| format!("{name}.{}: {}", index + 1, plain(error))));
            }
            error => parts.push(format!("{name}: {}", plain(error))),
        }
    }
    parts
}

fn plain(error: &Value) -> String {
    match error {
        Value::String(text) => text.clone(),
        error => table(error, Some(0)),
    }
}

/// `{a="b",c={...}}`, keys sorted.
pub(crate) fn inline(fields: &Map<String, Value>) -> String {
    table(&Value::Object(fields.clone()), None)
}

/// A value in Lua notation; `indent` is the current depth, None for a single line.
fn table(value: &Value, indent: Option<usize>) -> String {
    let inner = indent.map(|depth| depth + 1);
    let entries: Vec<String> = match value {
        Value::Object(object) => {
            object.iter().map(|(name, value)| format!("{}{}", assignment(name, indent), table(value, inner))).collect()
        }
        Value::Array(list) => {
            let whole = list.iter().take_while(|value| !value.is_null()).count();
            let listed = list[..whole].iter().map(|value| table(value, inner));
            let rest = list.iter().enumerate().skip(whole).filter(|(_, value)| !value.is_null());
            let numbered = rest.map(|(index, value)| {
                let equals = if indent.is_some() { " = " } else { "=" };
                format!("[{}]{equals}{}", index + 1, table(value, inner))
            });
            listed.chain(numbered).collect()
        }
        Value::String(text) => return quote(text),
        Value::Null => return "null".to_owned(),
        other => return other.to_string(),
    };
    match indent {
        _ if entries.is_empty() => "{}".to_owned(),
        None => format!("{{{}}}", entries.join(",")),
        Some(depth) => {
            let pad = "  ".repeat(depth + 1);
            let lines: Vec<String> = entries.iter().map(|entry| format!("{pad}{entry}")).collect();
            format!("{{\n{}\n{}}}", lines.join(",\n"), "  ".repeat(depth))
        }
    }
}

const KEYWORDS: [&str; 22] = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local", "nil",
    "not", "or", "repeat", "return", "then", "true", "until", "while",
];

fn assignment(name: &str, indent: Option<usize>) -> String {
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let legal = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let equals = if indent.is_some() { " = " } else { "=" };
    if starts && legal && !KEYWORDS.contains(&name) {
        format!("{name}{equals}")
    } else {
        format!("[{}]{equals}", quote(name))
    }
}

/// Text with line breaks goes between long brackets.
fn quote(text: &str) -> String {
    if text.contains('\n') {
        let mut level = 0;
        while text.contains(&format!("]{}]", "=".repeat(level))) {
            level += 1;
        }
        let equals = "=".repeat(level);
        return format!("[{equals}[\n{text}]{equals}]");
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

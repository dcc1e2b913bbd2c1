//! Shorthand and renamed fields: how an old or combined name becomes the real fields.

use super::{Errors, lua_text, set_at, validate::Validation};
use crate::schema::Field;
use serde_json::{Map, Value, json};

/// Validates one shorthand's value, compares it with its replacement and puts it in place.
pub(crate) fn expand(field: &Field, record: &mut Map<String, Value>, errors: &mut Errors) {
    let Some(value) = record.get(&field.name).cloned() else { return };
    if let Err(error) = Validation::default().value(field, &value) {
        errors.insert(field.name.clone(), error);
        return;
    }
    // `algorithm` and `hash_on` are real fields too and stay.
    let renames_itself = field.expand.iter().any(|path| path.len() == 1 && path[0] == field.name);
    if !renames_itself {
        record.remove(&field.name);
    }
    match field.convert.as_deref() {
        Some("url") => expand_url(&value, record),
        Some("algorithm") => expand_algorithm(&value, record),
        Some("hash_on") => expand_hash_on(value, record),
        convert => rename(field, converted(convert, value), record, errors),
    }
}

fn converted(convert: Option<&str>, value: Value) -> Value {
    match (convert, &value) {
        (Some("null_to_zero"), Value::Null) => json!(0),
        (Some("off_to_lax"), Value::String(text)) if text == "off" => json!("Lax"),
        _ => value,
    }
}

/// A renamed field fills its replacement unless that is set; a plain shorthand overwrites it.
fn rename(field: &Field, value: Value, record: &mut Map<String, Value>, errors: &mut Errors) {
    for path in &field.expand {
        match lookup(record, path) {
            Some(known) if field.deprecated && !known.is_null() => {
                if !value.is_null() && *known != value {
                    errors.insert(field.name.clone(), Value::from(mismatch(field, &value, path, known)));
                }
            }
            _ => set_at(record, path.iter().map(String::as_str), value.clone()),
        }
    }
}

/// The value at a path inside a record.
pub(crate) fn lookup<'a>(record: &'a Map<String, Value>, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(record.get(first)?, |value, name| value.get(name))
}

fn mismatch(field: &Field, value: &Value, path: &[String], known: &Value) -> String {
    format!(
        "both deprecated and new field are used but their values mismatch: {} = {} vs {} = {}",
        field.name,
        lua_text(value),
        path.join("."),
        lua_text(known)
    )
}

fn expand_algorithm(value: &Value, record: &mut Map<String, Value>) {
    if matches!(value.as_str(), Some("least-connections" | "latency")) {
        record.insert("hash_on".to_owned(), Value::Null);
    }
}

fn expand_hash_on(value: Value, record: &mut Map<String, Value>) {
    match value.as_str() {
        None => {
            record.insert("hash_on".to_owned(), json!("none"));
        }
        Some("none") => {
            record.insert("algorithm".to_owned(), json!("round-robin"));
        }
        Some(_) => {
            record.insert("algorithm".to_owned(), json!("consistent-hashing"));
        }
    }
}

fn expand_url(value: &Value, record: &mut Map<String, Value>) {
    // A null `url` gives nothing.
    let Some(text) = value.as_str() else { return };
    let parts = UrlParts::of(text);
    let by_port = match parts.port {
        Some(80) => Some("http"),
        Some(443) => Some("https"),
        _ => None,
    };
    let protocol = parts.scheme.or(by_port).unwrap_or("http");
    let port = parts.port.unwrap_or(if protocol == "https" { 443 } else { 80 });
    record.insert("protocol".to_owned(), json!(protocol));
    record.insert("host".to_owned(), json!(parts.host));
    record.insert("port".to_owned(), json!(port));
    record.insert("path".to_owned(), json!(parts.path));
}

/// A URL taken apart without judging it.
pub(crate) struct UrlParts<'a> {
    pub(crate) scheme: Option<&'a str>,
    pub(crate) host: Option<&'a str>,
    pub(crate) port: Option<u64>,
    pub(crate) path: Option<&'a str>,
    pub(crate) fragment: Option<&'a str>,
}

impl<'a> UrlParts<'a> {
    /// Source: LuaSocket, `url.parse`.
    pub(crate) fn of(text: &'a str) -> UrlParts<'a> {
        let (rest, fragment) = match text.split_once('#') {
            Some((rest, fragment)) => (rest, Some(fragment)),
            None => (text, None),
        };
        let (scheme, rest) = match rest.split_once(':') {
            Some((scheme, after)) if is_scheme(scheme) => (Some(scheme), after),
            _ => (None, rest),
        };
        let (authority, rest) = match rest.strip_prefix("//") {
            Some(after) => {
                let end = after.find('/').unwrap_or(after.len());
                (Some(&after[..end]), &after[end..])
            }
            None => (None, rest),
        };
        // Without a path the query clings to the authority.
        let authority = authority.map(|authority| authority.split('?').next().unwrap_or(authority));
        let path = rest.split('?').next().unwrap_or(rest);
        let path = path.split(';').next().unwrap_or(path);
        let address = authority.map(|authority| authority.rsplit_once('@').map_or(authority, |(_, host)| host));
        let (host, port) = address.map_or((None, None), split_port);
        UrlParts {
            scheme,
            host: host.filter(|host| !host.is_empty()),
            port,
            path: Some(path).filter(|path| !path.is_empty()),
            fragment,
        }
    }
}

fn split_port(address: &str) -> (Option<&str>, Option<u64>) {
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()),
        _ => (address, None),
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    (Some(bare.unwrap_or(host)), port)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

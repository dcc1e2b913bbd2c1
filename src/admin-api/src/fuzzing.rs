//! What reads the bytes of clients, for fuzzers. Not part of the API.

use crate::request::{Body, body_kind, parse_body, parse_query, segments};
use crate::{form, list};
use gwctl_entities::{Record, Registry, Value};

/// Reads a body by its content type, a form with the schema of an entity; the record, when there is one.
pub fn body(registry: &Registry, entity: &str, content_type: &str, bytes: &[u8]) -> Option<Record> {
    let kind = body_kind(Some(content_type), !bytes.is_empty(), true).ok()?;
    match parse_body(&kind, bytes).ok()? {
        Body::Json(record) => Some(record),
        Body::Form(pairs) => Some(form::record(&pairs, registry.entity(entity)?.schema_of(&chosen(&pairs)))),
        _ => None,
    }
}

/// What picks the schema of a plugin.
fn chosen(pairs: &[(String, form::Given)]) -> Record {
    let name = pairs.iter().find(|(key, _)| key == "name");
    let name = name.and_then(|(_, given)| if let form::Given::Text(text) = given { Some(text.as_str()) } else { None });
    Record::from_iter([("name".to_owned(), name.map_or(Value::Null, Value::from))])
}

/// Reads the target of a request: its path and its query with the size of a page.
pub fn target(text: &str) {
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    drop(segments(path));
    if let Ok(arguments) = parse_query(query) {
        drop(list::size(&arguments));
    }
}

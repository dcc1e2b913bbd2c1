//! Stored records as a file for people, and a file of one dialect as one of the other.

#[cfg(test)]
mod tests;

use crate::bundle::Bundle;
use crate::compact::{compact, whole};
use crate::load::facts::Facts;
use crate::load::{Fault, Walk, convert_paths};
use crate::plan::{NOT_PLANNED, label, selected, settled};
use crate::secret::is_secret;
use crate::shape::{Dialect, Node, Shape};
use crate::{Mistake, Table};
use gwctl_entities::{EntitySchema, Fill, Record, Registry, Value};
use serde_json::json;
use uuid::Uuid;

/// What a dump holds.
#[derive(Debug, Clone)]
pub struct DumpOptions {
    /// Dialect of the file.
    pub dialect: Dialect,
    /// Write defaults too.
    pub defaults: bool,
    /// Leave ids out where names and places say enough.
    pub without_ids: bool,
    /// Only records that carry all of these tags.
    pub select_tags: Vec<String>,
}

/// A document to write.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// The document; [`crate::to_yaml`] gives its text.
    pub document: Record,
    /// What the dialect cannot say.
    pub warnings: Vec<String>,
    /// Number of secret values in it (keys, passwords, private keys).
    pub secrets: usize,
}

/// Records (stored ones, or as the Admin API shows them) as a document: entities in the order of the schemas, records
/// by name, children below their parents. The same records give the same document.
pub fn dump(registry: &Registry, tables: &[Table], options: &DumpOptions, fill: &mut dyn Fill) -> Written {
    let facts = Facts::new(registry);
    let mut written = Written::default();
    let (mut nodes, mut hashed) = (Vec::new(), false);
    let now = fill.now_millis() / 1000;
    for table in settled(registry, tables, 1, fill) {
        let position = facts.kinds.iter().position(|kind| kind.name() == table.entity);
        let (Some(kind), false) = (position, NOT_PLANNED.contains(&table.entity.as_str())) else { continue };
        let schema = facts.kinds[kind].schema;
        let mut records: Vec<Record> =
            table.records.into_iter().filter(|record| selected(record, &options.select_tags)).collect();
        records.sort_by_cached_key(|record| {
            let id = schema.id_of(record).unwrap_or_default();
            (label(record, &id), id)
        });
        for mut record in records {
            hashed |= is_hashed(schema, &record);
            written.secrets += secrets(schema, &record);
            if let Some(left) = record.get("ttl").and_then(Value::as_u64).filter(|_| schema.ttl) {
                record.insert("ttl".to_owned(), Value::from(now + left));
            }
            let mut record = if options.defaults { whole(&record) } else { compact(registry, schema, &record, fill) };
            if options.dialect == Dialect::Deck {
                for_deck(schema, &mut record, &options.select_tags, &mut written.warnings);
            }
            nodes.push(Node { kind, record, parent: None });
        }
    }
    let shape = Shape { registry, dialect: options.dialect, without_ids: options.without_ids };
    written.document = shape.members(nodes, &mut written.warnings);
    written.document.insert("_format_version".to_owned(), Value::from("3.0"));
    if options.dialect == Dialect::Deck && !options.select_tags.is_empty() {
        written.document.insert("_info".to_owned(), json!({ "select_tags": options.select_tags }));
    }
    if hashed {
        if options.dialect == Dialect::Kong {
            written.document.insert("_transform".to_owned(), Value::Bool(false));
        }
        written.warnings.push(match options.dialect {
            Dialect::Kong => "passwords are stored as hashes and written so (`_transform: false`): `gwctl apply` \
                              creates them as they are on a control plane of gwctl; a plain Kong would hash them \
                              again, so it is not sent them"
                .to_owned(),
            Dialect::Deck => "passwords are stored as hashes and written so: decK cannot say that, where they do not \
                              exist yet they are hashed again; write the passwords themselves, or use --format kong"
                .to_owned(),
        });
    }
    written
}

fn is_hashed(schema: &EntitySchema, record: &Record) -> bool {
    match schema.name.as_str() {
        "basicauth_credentials" => record.get("password").is_some_and(Value::is_string),
        "oauth2_credentials" => record.get("hash_secret") == Some(&Value::Bool(true)),
        _ => false,
    }
}

/// Number of secret values of a record.
fn secrets(schema: &EntitySchema, record: &Record) -> usize {
    let shown = schema.schema_of(record);
    let secret = |name: &str, value: &Value| {
        let reference = value.as_str().is_some_and(|text| text.starts_with("{vault://"));
        value.is_string() && !reference && is_secret(shown.field(name), name)
    };
    record.iter().filter(|(name, value)| secret(name, value)).count()
}

/// Tags that `_info.select_tags` says go, and times to live, which decK counts from when it sends them.
fn for_deck(schema: &EntitySchema, record: &mut Record, select_tags: &[String], warnings: &mut Vec<String>) {
    if let Some(Value::Array(tags)) = record.get_mut("tags") {
        let count = tags.len();
        tags.retain(|tag| !tag.as_str().is_some_and(|tag| select_tags.iter().any(|selected| selected == tag)));
        if tags.is_empty() && count > 0 {
            record.remove("tags");
        }
    }
    if schema.ttl && record.remove("ttl").is_some_and(|ttl| !ttl.is_null()) {
        let id = schema.id_of(record).unwrap_or_default();
        warnings.push(format!("{} {id}: its end (ttl) is left out, decK's files cannot say it", schema.name));
    }
}

/// The files of a bundle as one document of a dialect, format 3.0. Values, names and ids stay as written; defaults of
/// `_info`, named plugin settings and values of the environment are written out.
pub fn convert(registry: &Registry, bundle: &Bundle, dialect: Dialect) -> Result<Written, Vec<Mistake>> {
    let mut document = bundle.document.clone();
    let mut written = Written::default();
    let version = document.remove("_format_version");
    match version.as_ref().and_then(Value::as_str) {
        Some("1.1" | "2.1") => convert_paths(&mut document),
        Some("3.0") => {}
        // decK reads a file without version as 1.1.
        None if version.is_none() => convert_paths(&mut document),
        _ => return Err(vec![Mistake::value(vec!["_format_version".to_owned()], "expected one of: 1.1, 2.1, 3.0")]),
    }
    let transform = document.remove("_transform");
    for annotation in ["_comment", "_ignore"] {
        if document.remove(annotation).is_some() {
            written.warnings.push(format!("{annotation} is left out"));
        }
    }
    let facts = Facts::new(registry);
    let walk = Walk::document(&facts, &mut document);
    let mut mistakes: Vec<Mistake> =
        document.keys().map(|member| Mistake::value(vec![member.clone()], "unknown field")).collect();
    mistakes.extend(walk.mistakes(&facts));
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let mut nodes = Vec::with_capacity(walk.items.len());
    for item in walk.items {
        debug_assert!(matches!(item.fault, Fault::None));
        let schema = facts.kinds[item.kind].schema;
        let mut record = item.input;
        written.secrets += secrets(schema, &record);
        match dialect {
            Dialect::Kong => add_tags(schema, &mut record, &bundle.head.select_tags),
            Dialect::Deck => name_for_deck(schema, &mut record, &mut written.warnings),
        }
        let parent = item.parent.map(|(parent, link)| (parent, link.to_owned()));
        nodes.push(Node { kind: item.kind, record, parent });
    }
    written.document = Shape { registry, dialect, without_ids: false }.members(nodes, &mut written.warnings);
    written.document.insert("_format_version".to_owned(), Value::from("3.0"));
    match (transform, dialect) {
        (Some(Value::Bool(false)), Dialect::Kong) => {
            written.document.insert("_transform".to_owned(), Value::Bool(false));
        }
        (Some(Value::Bool(false)), Dialect::Deck) => written.warnings.push(
            "_transform: false is left out, decK does not know it: password hashes would be hashed again".to_owned(),
        ),
        _ => {}
    }
    if dialect == Dialect::Deck && !bundle.head.select_tags.is_empty() {
        written.document.insert("_info".to_owned(), json!({ "select_tags": bundle.head.select_tags }));
    }
    if !bundle.environment_values().is_empty() {
        written.warnings.push("values of the environment are written out".to_owned());
    }
    Ok(written)
}

fn add_tags(schema: &EntitySchema, record: &mut Record, select_tags: &[String]) {
    if select_tags.is_empty() || schema.schema.field("tags").is_none() {
        return;
    }
    let tags = record.entry("tags").or_insert(Value::Null);
    if tags.is_null() {
        *tags = json!([]);
    }
    if let Value::Array(tags) = tags {
        let missing: Vec<Value> = select_tags.iter().map(|tag| json!(tag)).filter(|tag| !tags.contains(tag)).collect();
        tags.extend(missing);
    }
}

/// decK wants a name or id of some entities, and the id of certificates.
fn name_for_deck(schema: &EntitySchema, record: &mut Record, warnings: &mut Vec<String>) {
    if record.contains_key("id") {
        return;
    }
    match (schema.name.as_str(), record.get("cert").and_then(Value::as_str)) {
        ("certificates", Some(cert)) => {
            let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, cert.as_bytes()).to_string();
            record.insert("id".to_owned(), Value::from(id));
        }
        ("services" | "routes" | "keys" | "key_sets", _) if !record.contains_key("name") => {
            warnings.push(format!("one of the {} has neither name nor id; decK needs one of them", schema.name));
        }
        _ => {}
    }
}

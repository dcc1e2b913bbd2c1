//! Bodies of `POST /config` and `GET /config`, and the configuration hash.

use crate::yaml::write_map;
use crate::{Loaded, Table};
use gwctl_entities::{EntitySchema, Map, Record, Registry, Value};
use md5::{Digest, Md5};
use serde_json::json;
use std::collections::BTreeMap;

/// Hash of a configuration without any entity.
pub const EMPTY_HASH: &str = "00000000000000000000000000000000";

/// Hash of a configuration given as text: the MD5 of that text in hex; [`EMPTY_HASH`] when it has no entities.
pub fn text_hash(text: &str, loaded: &Loaded) -> String {
    if loaded.is_empty() { EMPTY_HASH.to_owned() } else { md5_of(text.as_bytes()) }
}

/// Hash of a configuration given as a JSON object: the MD5 of its loaded records in hex. Opaque: it covers
/// timestamps, so it changes with each load.
pub fn object_hash(loaded: &Loaded) -> String {
    if loaded.is_empty() {
        return EMPTY_HASH.to_owned();
    }
    let tables = loaded.tables.iter().map(|table| json!([table.entity, table.records])).collect();
    md5_of(Value::Array(tables).to_string().as_bytes())
}

/// MD5 of these bytes in hex, as `check_hash` compares it for text input.
pub fn md5_of(bytes: &[u8]) -> String {
    Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Body of the 201 answer of `POST /config`: entity to id to record, values as they were before transformation.
///
/// Workspaces are left out; a certificate also shows the server names nested in it.
pub fn config_answer(registry: &Registry, loaded: &Loaded) -> Value {
    let mut body = Map::new();
    let names: BTreeMap<&str, &Record> =
        loaded.records("snis").iter().filter_map(|record| Some((record.get("id")?.as_str()?, record))).collect();
    for table in loaded.tables.iter().filter(|table| table.entity != "workspaces") {
        let Some(schema) = registry.entity(&table.entity) else { continue };
        let records = table.records.iter().filter_map(|record| {
            let id = schema.id_of(record)?;
            let record = shown(loaded, &names, &table.entity, &id, record);
            Some((id, Value::Object(record)))
        });
        body.insert(table.entity.clone(), Value::Object(records.collect()));
    }
    Value::Object(body)
}

fn shown(loaded: &Loaded, names: &BTreeMap<&str, &Record>, entity: &str, id: &str, record: &Record) -> Record {
    let mut record = record.clone();
    if let Some(written) = loaded.as_written.get(&(entity.to_owned(), id.to_owned())) {
        record.extend(written.clone());
    }
    if record.get("ttl").is_some_and(Value::is_null) {
        record.remove("ttl");
    }
    if entity == "certificates"
        && let Some(nested) = loaded.nested_names.get(id)
    {
        let records = nested.iter().filter_map(|id| names.get(id.as_str()));
        let records = records.map(|record| Value::Object(with_annotations(record))).collect();
        record.insert("snis".to_owned(), Value::Array(records));
    }
    record
}

/// Nested server names show the annotations a document may hold, always null.
fn with_annotations(record: &Record) -> Record {
    let mut record = record.clone();
    record.insert("_comment".to_owned(), Value::Null);
    record.insert("_ignore".to_owned(), Value::Null);
    record
}

/// The document that reproduces these stored records: `_transform: false`, one list per entity, foreign fields as
/// plain ids. Workspaces and entities that are not exported are left out.
pub fn export_document(registry: &Registry, tables: &[Table]) -> Value {
    Value::Object(members(registry, tables).into_iter().collect())
}

/// The text of [`export_document`] as `GET /config` gives it: parents before children.
pub fn export_text(registry: &Registry, tables: &[Table]) -> String {
    let mut out = String::new();
    let members = members(registry, tables);
    write_map(&mut out, members.iter().map(|(name, value)| (name, value)), 0, false);
    out
}

fn members(registry: &Registry, tables: &[Table]) -> Vec<(String, Value)> {
    let mut members =
        vec![("_transform".to_owned(), Value::Bool(false)), ("_format_version".to_owned(), Value::from("3.0"))];
    for schema in registry.entities().filter(|schema| schema.db_export && schema.name != "workspaces") {
        let records = tables.iter().filter(|table| table.entity == schema.name).flat_map(|table| &table.records);
        let rows: Vec<Value> = records.map(|record| Value::Object(flat(schema, record))).collect();
        if !rows.is_empty() {
            members.push((schema.name.clone(), Value::Array(rows)));
        }
    }
    members
}

/// The record with foreign fields as plain ids.
pub(crate) fn flat(schema: &EntitySchema, record: &Record) -> Record {
    let mut row = record.clone();
    for key in &schema.foreign_keys {
        if let Some(id) = schema.foreign_id(record, &key.field) {
            row.insert(key.field.clone(), Value::from(id));
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::tests::{Counter, document, registry};
    use crate::{LoadOptions, Mode, load};

    fn loaded(text: &str) -> Loaded {
        load(registry(), document(text), &LoadOptions::of(Mode::DbLess), &mut Counter(0)).unwrap()
    }

    #[test]
    fn an_empty_configuration_has_the_zero_hash_and_a_short_export() {
        let empty = loaded("services: []\n");
        assert_eq!(text_hash("services: []", &empty), EMPTY_HASH);
        assert_eq!(object_hash(&empty), EMPTY_HASH);
        assert_eq!(config_answer(registry(), &empty), json!({}));
        assert_eq!(export_text(registry(), &empty.tables), "_transform: false\n_format_version: '3.0'\n");
    }

    #[test]
    fn a_text_is_hashed_as_it_is() {
        let some = loaded("services:\n- {name: a, host: h}\n");
        assert_eq!(text_hash("a", &some), "0cc175b9c0f1b6a831c399e269772661");
        assert_ne!(object_hash(&some), EMPTY_HASH);
    }

    #[test]
    fn the_answer_is_keyed_by_id_and_shows_foreign_fields_as_objects() {
        let some = loaded("services:\n- {name: a, host: h, routes: [{name: r, paths: [/a]}]}\n");
        let answer = config_answer(registry(), &some);
        let service = "72734e2a-702d-5711-b9ef-697178108ad8";
        assert_eq!(answer["services"][service]["host"], "h");
        assert_eq!(answer["routes"]["da7ba03a-f1be-52d4-8a7e-c8f32640689a"]["service"], json!({ "id": service }));
        assert!(answer.get("workspaces").is_none());
    }

    #[test]
    fn the_export_lists_parents_first_with_plain_foreign_ids() {
        let some = loaded("services:\n- {name: a, host: h, routes: [{name: r, paths: [/a]}]}\n");
        let text = export_text(registry(), &some.tables);
        assert!(text.find("services:").unwrap() < text.find("routes:").unwrap(), "{text}");
        assert!(text.contains("\n  service: 72734e2a-702d-5711-b9ef-697178108ad8\n"), "{text}");
        assert!(text.contains("\n  methods: ~\n"), "{text}");
    }
}

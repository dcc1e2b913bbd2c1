//! The endpoints of one entity.

use super::schema::{self, Side};
use super::{OF_WRITES, faults, json_of, reference};
use gwctl_entities::{EntitySchema, Map, Registry, Value};
use serde_json::json;

/// Paths and schemas of an entity. `stored`: records can be changed through the API.
pub(super) fn add(
    registry: &Registry,
    entity: &EntitySchema,
    stored: bool,
    paths: &mut Map<String, Value>,
    schemas: &mut Map<String, Value>,
) {
    let name = entity.name.as_str();
    let shown = schema::entity(entity, Side::Shown);
    let mut whole = schema::entity(entity, Side::Input);
    schemas.insert(name.to_owned(), shown);
    if let Some(object) = whole.as_object_mut() {
        let mut part = object.clone();
        part.remove("required");
        schemas.insert(format!("{name}_changes"), Value::Object(part));
    }
    schemas.insert(format!("{name}_input"), whole);
    schemas.insert(format!("{name}_page"), page(name));

    let maker = Operations { entity: name, stored };
    // Targets and the names of a certificate are reached through their parents.
    if let Some(endpoint) = entity.endpoint.as_deref().filter(|endpoint| *endpoint != "targets") {
        paths.insert(format!("/{endpoint}"), maker.collection(&[], ""));
        let key = match name {
            // Kong's upsert of these by name fails.
            "keys" | "key_sets" => id_parameter(),
            _ => key_parameter(entity),
        };
        paths.insert(format!("/{endpoint}/{{key}}"), maker.item(&[key], ""));
    }
    for foreign in &entity.foreign_keys {
        let parent = registry.entity(&foreign.references).filter(|parent| parent.generate_admin_api);
        let Some((parent, endpoint)) = parent.and_then(|parent| Some((parent, parent.endpoint.as_deref()?))) else {
            continue;
        };
        if parent.name == "workspaces" {
            continue;
        }
        let above = {
            let mut above = key_parameter(parent);
            above["name"] = Value::from("parent");
            above
        };
        let nested = format!("/{endpoint}/{{parent}}/{}", entity.nested_name);
        let below = format!("_of_{}", parent.name);
        paths.insert(nested.clone(), maker.collection(std::slice::from_ref(&above), &below));
        let key = match name {
            "keys" | "key_sets" => id_parameter(),
            _ => key_parameter(entity),
        };
        paths.insert(format!("{nested}/{{key}}"), maker.item(&[above, key], &below));
    }
}

fn page(name: &str) -> Value {
    json!({
        "type": "object",
        "required": ["data", "next"],
        "properties": {
            "data": {"type": "array", "items": reference("schemas", name)},
            "next": {"type": ["string", "null"], "description": "Path of the next page"},
            "offset": {"type": "string", "description": "Token of the next page"},
        },
    })
}

fn key_parameter(entity: &EntitySchema) -> Value {
    let Some(field) = &entity.endpoint_key else { return id_parameter() };
    let text = format!("Its id, or its {field}");
    json!({
        "name": "key",
        "in": "path",
        "required": true,
        "description": text,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9_.~-]{1,64}$"},
    })
}

fn id_parameter() -> Value {
    json!({
        "name": "key",
        "in": "path",
        "required": true,
        "description": "Its id",
        "schema": {"type": "string", "format": "uuid"},
    })
}

struct Operations<'a> {
    entity: &'a str,
    stored: bool,
}

impl Operations<'_> {
    fn body(&self, suffix: &str) -> Value {
        let schema = reference("schemas", &format!("{}{suffix}", self.entity));
        json!({"required": true, "content": json_of(schema)})
    }

    fn operation(&self, verb: &str, below: &str, parameters: Vec<Value>, answers: Map<String, Value>) -> Value {
        json!({
            "operationId": format!("{verb}_{}{below}", self.entity),
            "tags": [self.entity],
            "parameters": parameters,
            "responses": answers,
        })
    }

    fn answers(&self, status: &str, text: &str, schema: &str, more: &[(&str, &str)]) -> Map<String, Value> {
        let mut answers = faults(more);
        let etag = json!({ "ETag": reference("headers", "ETag") });
        let answer = match status {
            "204" => json!({ "description": text, "headers": etag }),
            _ => json!({"description": text, "headers": etag, "content": json_of(reference("schemas", schema))}),
        };
        answers.insert(status.to_owned(), answer);
        answers
    }

    fn collection(&self, above: &[Value], below: &str) -> Value {
        let page = format!("{}_page", self.entity);
        let size = ["size", "offset", "tags"].map(|name| reference("parameters", name)).to_vec();
        let mut endpoint = json!({
            "get": self.operation("list", below, size, self.answers("200", "A page of records", &page, &[])),
        });
        if self.stored {
            let made = self.answers("201", "The record made", self.entity, OF_WRITES);
            endpoint["post"] = self.operation("create", below, of_writes(), made);
            endpoint["post"]["requestBody"] = self.body("_input");
        }
        with_path(endpoint, above)
    }

    fn item(&self, path: &[Value], below: &str) -> Value {
        let read = self.answers("200", "The record", self.entity, &[]);
        let mut endpoint = json!({ "get": self.operation("get", below, Vec::new(), read) });
        if self.stored {
            let written = |text| self.answers("200", text, self.entity, OF_WRITES);
            endpoint["put"] = self.operation("put", below, of_writes(), written("The record made or replaced"));
            endpoint["put"]["requestBody"] = self.body("_input");
            endpoint["patch"] = self.operation("patch", below, of_writes(), written("The record changed"));
            endpoint["patch"]["requestBody"] = self.body("_changes");
            let gone = self.answers("204", "It is gone, or never was", "", OF_WRITES);
            endpoint["delete"] = self.operation("delete", below, of_writes(), gone);
        }
        with_path(endpoint, path)
    }
}

fn with_path(mut endpoint: Value, path: &[Value]) -> Value {
    if !path.is_empty() {
        endpoint["parameters"] = Value::from(path);
    }
    endpoint
}

fn of_writes() -> Vec<Value> {
    ["dry_run", "if_match"].map(|name| reference("parameters", name)).to_vec()
}

//! The endpoints that follow from no entity: of the node, of the cluster, and gwctl's own.

use super::{OF_WRITES, faults, json_of, reference};
use gwctl_entities::{Map, NodeKind, Value};
use serde_json::json;

/// A GET with a JSON answer.
fn read(operation: &str, text: &str, schema: Value, parameters: Vec<Value>) -> Value {
    let mut answers = faults(&[]);
    answers.insert("200".to_owned(), json!({"description": text, "content": json_of(schema)}));
    json!({"get": {"operationId": operation, "parameters": parameters, "responses": answers}})
}

fn path_text(name: &str, text: &str) -> Value {
    json!({
        "name": name,
        "in": "path",
        "required": true,
        "description": text,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,40}$"},
    })
}

fn query(name: &str, text: &str, schema: Value) -> Value {
    json!({"name": name, "in": "query", "description": text, "schema": schema})
}

/// Paths.
pub(super) fn paths(kind: NodeKind) -> Map<String, Value> {
    let object = || json!({"type": "object"});
    let mut paths = Map::new();
    let mut add = |path: &str, endpoint: Value| paths.insert(path.to_owned(), endpoint);
    add("/", read("node", "The node and its settings", object(), Vec::new()));
    add("/status", read("status", "Counters and memory", object(), Vec::new()));
    add("/endpoints", read("endpoints", "Every path there is", object(), Vec::new()));
    add("/plugins/enabled", read("enabled_plugins", "Names of the plugins", object(), Vec::new()));
    let name = |text: &str| vec![path_text("name", text)];
    add("/schemas/{name}", read("entity_schema", "Schema of an entity", object(), name("An entity")));
    add("/schemas/plugins/{name}", read("plugin_schema", "Schema of a plugin", object(), name("A plugin")));
    let paged = ["size", "offset"].map(|name| reference("parameters", name)).to_vec();
    add("/tags", read("tags", "Every tag of every entity", object(), paged.clone()));
    let mut tagged = paged;
    tagged.push(path_text("tag", "A tag"));
    add("/tags/{tag}", read("tag", "The entities with a tag", object(), tagged));
    if kind == NodeKind::ControlPlane {
        let rows = read("data_planes", "The data planes, as Kong tells of them", object(), Vec::new());
        add("/clustering/data-planes", rows);
        add("/gwctl/fleet", read("fleet", "The data planes and how far each is", object(), Vec::new()));
        add("/gwctl/data-planes", read("gwctl_data_planes", "The same as /gwctl/fleet", object(), Vec::new()));
    }
    own(&mut paths, !matches!(kind, NodeKind::DbLess | NodeKind::DataPlane));
    paths
}

fn own(paths: &mut Map<String, Value>, stored: bool) {
    let mut add = |path: &str, endpoint: Value| paths.insert(path.to_owned(), endpoint);
    if stored {
        add("/gwctl/changes", changes());
        add("/gwctl/rollback", rollback());
    }
    let mut events =
        read("events", "Server-sent events", json!({}), vec![query("since", "Version to begin after", version())]);
    events["get"]["responses"]["200"]["content"] = json!({"text/event-stream": {"schema": {"type": "string"}}});
    events["get"]["responses"]["503"] = reference("responses", "busy");
    add("/gwctl/events", events);
    let parameters = vec![
        reference("parameters", "size"),
        query("before", "Only versions before this one", version()),
        query(
            "records",
            "Name so many records of each version",
            json!({"type": "integer", "minimum": 0, "maximum": 100}),
        ),
    ];
    add(
        "/gwctl/history",
        read("history", "Who changed what, newest first", reference("schemas", "history"), parameters),
    );
    add("/gwctl/versions/{versions}", versions());
    add("/gwctl/tokens", tokens());
    add("/gwctl/tokens/{key}", token());
    add("/gwctl/openapi.json", read("openapi", "This document", json!({"type": "object"}), Vec::new()));
}

fn version() -> Value {
    json!({"type": "integer", "minimum": 0, "maximum": 1_000_000_000_000_u64})
}

fn changes() -> Value {
    let mut answers = faults(OF_WRITES);
    let done = json!({"description": "All of it was done", "content": json_of(reference("schemas", "changes_done"))});
    answers.insert("200".to_owned(), done);
    let refused = json!({
        "description": "Nothing was changed; every mistake with the index of its operation",
        "content": json_of(json!({"anyOf": [reference("schemas", "changes_refused"), reference("schemas", "error")]})),
    });
    answers.insert("400".to_owned(), refused);
    let results = query(
        "results",
        "What is told of each operation",
        json!({"type": "string", "enum": ["ids", "records", "none"]}),
    );
    json!({"post": {
        "operationId": "change",
        "description": "Many operations in one transaction, one version, one push",
        "parameters": [reference("parameters", "dry_run"), reference("parameters", "if_match"), results],
        "requestBody": {"required": true, "content": json_of(reference("schemas", "changes"))},
        "responses": answers,
    }})
}

fn rollback() -> Value {
    let mut answers = faults(OF_WRITES);
    let done = json!({"description": "What it did", "content": json_of(reference("schemas", "rolled_back"))});
    answers.insert("200".to_owned(), done);
    answers.insert("410".to_owned(), reference("responses", "gone"));
    json!({"post": {
        "operationId": "rollback",
        "description": "Makes the configuration what it was at a version: one transaction, one new version",
        "parameters": [reference("parameters", "dry_run"), reference("parameters", "if_match")],
        "requestBody": {"required": true, "content": json_of(reference("schemas", "rollback"))},
        "responses": answers,
    }})
}

fn versions() -> Value {
    let which = json!({
        "name": "versions",
        "in": "path",
        "required": true,
        "description": "A version, for the configuration as of then; or two as in 4..7, for what happened between them",
        "schema": {"type": "string", "pattern": "^[0-9]{1,9}([.][.][0-9]{1,9})?$"},
    });
    let parameters = vec![
        which,
        reference("parameters", "secrets"),
        reference("parameters", "size"),
        query(
            "entity",
            "Only this entity",
            json!({"type": "string", "enum": ["services", "routes", "consumers", "plugins"]}),
        ),
        query(
            "format",
            "A declarative file in place of JSON",
            json!({"type": "string", "enum": ["json", "declarative"]}),
        ),
    ];
    let mut endpoint = read("versions", "The configuration, or the changes", json!({"type": "object"}), parameters);
    endpoint["get"]["responses"]["200"]["content"]["application/yaml"] = json!({"schema": {"type": "object"}});
    endpoint["get"]["responses"]["410"] = reference("responses", "gone");
    endpoint
}

fn tokens() -> Value {
    let listed =
        json!({"type": "object", "properties": {"data": {"type": "array", "items": reference("schemas", "token")}}});
    let mut endpoint = read("list_tokens", "Every token, without its secret", listed, Vec::new());
    let mut answers = faults(OF_WRITES);
    let made = json!({"description": "The token, its secret shown this once", "content": json_of(reference("schemas", "token"))});
    answers.insert("201".to_owned(), made);
    endpoint["post"] = json!({
        "operationId": "make_token",
        "requestBody": {"required": true, "content": json_of(reference("schemas", "token_input"))},
        "responses": answers,
    });
    endpoint
}

fn token() -> Value {
    let key = vec![path_text("key", "Id or name of a token")];
    let mut endpoint = read("get_token", "A token, without its secret", reference("schemas", "token"), key.clone());
    let mut answers = faults(OF_WRITES);
    answers.insert("204".to_owned(), json!({"description": "It is revoked"}));
    endpoint["delete"] = json!({"operationId": "revoke_token", "parameters": key, "responses": answers});
    endpoint
}

/// Schemas.
pub(super) fn schemas() -> Map<String, Value> {
    let uuid = json!({"type": "string", "format": "uuid"});
    let operation = json!({
        "type": "object",
        "required": ["action", "entity"],
        "additionalProperties": false,
        "properties": {
            "action": {"type": "string", "enum": ["create", "upsert", "update", "delete"]},
            "entity": {"type": "string", "description": "Schema name or path, as in GET /schemas/{name}"},
            "id": uuid,
            "key": {"type": "string", "description": "Name, username ... in place of the id"},
            "body": {"type": "object"},
            "transform": {"type": "boolean", "description": "false: passwords are hashes already, as _transform says"},
        },
    });
    let error = json!({
        "type": "object",
        "required": ["message"],
        "properties": {
            "message": {"type": "string"},
            "code": {"type": "integer", "description": "Kong's number of the fault"},
            "name": {"type": "string"},
            "fields": {"type": "object", "description": "Every mistake by field"},
        },
    });
    let count = || json!({"type": "integer", "minimum": 0});
    let heading = json!({
        "type": "object",
        "properties": {
            "version": count(), "time_millis": count(), "changes": count(),
            "who": {"type": "string"}, "from": {"type": "string"},
            "counts": {"type": "object", "description": "Records created, updated and deleted (?records=)"},
            "records": {"type": "array", "items": {"type": "object"}},
        },
    });
    let token = json!({
        "type": "object",
        "required": ["id", "name", "role"],
        "properties": {
            "id": uuid, "name": {"type": "string"}, "role": role(),
            "created_at_millis": count(), "created_by": {"type": "string"},
            "expires_at_millis": {"type": ["integer", "null"]},
            "token": {"type": "string", "description": "The secret, only where it is made"},
        },
    });
    let token_input = json!({
        "type": "object",
        "required": ["name", "role"],
        "additionalProperties": false,
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 64},
            "role": role(),
            "expires_in": {"type": ["integer", "null"], "minimum": 1, "description": "Seconds"},
        },
    });
    let done = json!({
        "type": "object",
        "required": ["version", "dry_run", "results"],
        "properties": {
            "version": count(), "dry_run": {"type": "boolean"}, "created": count(), "updated": count(),
            "deleted": count(), "absent": count(), "results": {"type": "array", "items": {"type": "object"}},
        },
    });
    let refused = json!({
        "type": "object",
        "required": ["message", "errors"],
        "properties": {
            "message": {"type": "string"}, "refused": count(), "operations": count(),
            "errors": {"type": "array", "items": {"type": "object", "required": ["index", "error"]}},
        },
    });
    let changes = json!({
        "type": "object",
        "required": ["operations"],
        "additionalProperties": false,
        "properties": {"operations": {"type": "array", "items": operation}},
    });
    let rollback = json!({
        "type": "object",
        "required": ["version"],
        "additionalProperties": false,
        "properties": {"version": version()},
    });
    let rolled_back = json!({
        "type": "object",
        "required": ["version", "rolled_back_to", "dry_run", "changes"],
        "properties": {
            "version": count(), "rolled_back_to": count(), "dry_run": {"type": "boolean"}, "created": count(),
            "updated": count(), "deleted": count(), "changes": {"type": "array", "items": {"type": "object"}},
        },
    });
    let history = json!({
        "type": "object",
        "required": ["data", "next"],
        "properties": {
            "version": count(),
            "data": {"type": "array", "items": heading},
            "next": {"type": ["string", "null"]},
        },
    });
    let named = [
        ("error", error),
        ("history", history),
        ("rollback", rollback),
        ("rolled_back", rolled_back),
        ("token", token),
        ("token_input", token_input),
        ("changes", changes),
        ("changes_done", done),
        ("changes_refused", refused),
    ];
    named.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

fn role() -> Value {
    json!({"type": "string", "enum": ["read", "write", "operate"]})
}

//! `GET /gwctl/openapi.json`: the API as an OpenAPI 3.1 document, made from the schemas in force.

mod entity;
mod own;
mod schema;

use crate::answer::Answer;
use crate::context::Context;
use gwctl_entities::{Map, NodeKind, Registry, Value};
use serde_json::json;

/// `GET /gwctl/openapi.json`.
pub(crate) fn openapi(context: &Context<'_>) -> Answer {
    let url = context.request.host.as_ref().map_or_else(|| "/".to_owned(), |host| format!("http://{host}"));
    Answer::ok(document(&context.registry, context.node.kind, context.asks_for_tokens, &url))
}

/// The document.
pub(crate) fn document(registry: &Registry, kind: NodeKind, tokens: bool, url: &str) -> Value {
    let mut paths = own::paths(kind);
    let mut schemas = own::schemas();
    let stored = !matches!(kind, NodeKind::DbLess | NodeKind::DataPlane);
    let served = registry.entities().filter(|schema| schema.generate_admin_api && schema.name != "filter_chains");
    for schema in served {
        entity::add(registry, schema, stored, &mut paths, &mut schemas);
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://spec.openapis.org/oas/3.1/dialect/base",
        "info": {
            "title": "gwctl Admin API",
            "description": "Kong's Admin API and what gwctl adds to it. Made from the schemas this node has in force.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{ "url": url }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": responses(),
            "parameters": parameters(),
            "headers": {
                "ETag": {
                    "description": "Version of the configuration, for If-Match of a later write",
                    "schema": {"type": "string"},
                },
            },
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "A token of POST /gwctl/tokens"},
            },
        },
    });
    if tokens {
        document["security"] = json!([{ "token": [] }]);
    }
    document
}

fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

fn responses() -> Value {
    let error = |text: &str| json!({"description": text, "content": json_of(reference("schemas", "error"))});
    json!({
        "bad_request": error("The request is wrong; every mistake is named"),
        "unauthorized": error("No token, or one that is not valid"),
        "forbidden": error("The token's role does not suffice"),
        "not_found": error("There is no such record"),
        "not_allowed": error("Not with this method, or not without a store"),
        "conflict": error("Another record has a value that must be unique"),
        "precondition_failed": error("The configuration is at another version than If-Match names"),
        "gone": error("The log of changes does not reach so far back"),
        "too_large": {"description": "The body is too long", "content": {"text/html": {"schema": {"type": "string"}}}},
        "unsupported_type": {
            "description": "No body of this content type is read",
            "content": {"text/html": {"schema": {"type": "string"}}},
        },
        "busy": error("Too many at once: try again"),
    })
}

fn parameters() -> Value {
    let query = |name: &str, text: &str, schema: Value| json!({"name": name, "in": "query", "description": text, "schema": schema});
    json!({
        "size": query("size", "Rows of a page", json!({"type": "integer", "minimum": 1, "maximum": 1000})),
        "offset": query("offset", "Where the page begins: `offset` of the page before", json!({"type": "string"})),
        "tags": query(
            "tags",
            "Only rows with all of these tags (a,b) or any of them (a/b), five at most",
            json!({"type": "string", "pattern": "^[A-Za-z0-9_.~-]+$"}),
        ),
        "dry_run": query(
            "dry_run",
            "Do everything but keep the change",
            json!({"type": "string", "enum": ["1", "0"]}),
        ),
        "secrets": query("secrets", "Show secrets in clear", json!({"type": "string", "enum": ["1"]})),
        "if_match": {
            "name": "If-Match",
            "in": "header",
            "description": "ETag of an answer: the write is refused when the configuration has changed since",
            "schema": {"type": "string", "pattern": "^\"[0-9]{1,15}\"$"},
        },
    })
}

fn json_of(schema: Value) -> Value {
    json!({"application/json": {"schema": schema}})
}

/// Answers that any operation may come to.
fn faults(names: &[(&str, &str)]) -> Map<String, Value> {
    let common = [("400", "bad_request"), ("401", "unauthorized"), ("403", "forbidden"), ("404", "not_found")];
    common.iter().chain(names).map(|(status, name)| ((*status).to_owned(), reference("responses", name))).collect()
}

/// Faults of a write.
const OF_WRITES: &[(&str, &str)] = &[
    ("405", "not_allowed"),
    ("409", "conflict"),
    ("412", "precondition_failed"),
    ("413", "too_large"),
    ("415", "unsupported_type"),
];

#[cfg(test)]
mod tests;

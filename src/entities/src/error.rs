//! The coded errors of the Admin API.
//!
//! Bodies come from here and nowhere else, so every face (Admin API, declarative, command line) words a fault alike.

use serde_json::{Map, Value};

/// A refusal with Kong's code, status and body.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EntityError {
    /// Code 1, 400: a path segment is no UUID and the entity has no endpoint key. Fields: the key's errors.
    #[error("invalid primary key")]
    InvalidPrimaryKey { key: Map<String, Value> },
    /// Code 2, 400: validation failed. `fields` is the error tree of `admin-api` section 7.3.
    #[error("schema violation")]
    SchemaViolation { fields: Map<String, Value> },
    /// Code 3, 400: the id is in use. `key` = primary key.
    #[error("primary key violation")]
    PrimaryKeyViolation { key: Map<String, Value> },
    /// Code 4, 400: a foreign key refers to nothing. `field` -> `key` of `entity`.
    #[error("foreign key violation: no {entity} for {field}")]
    ForeignKeyMissing { field: String, entity: String, key: Map<String, Value> },
    /// Code 4, 400: a delete is refused because `by` still refers to `entity`.
    #[error("foreign key violation: {entity} is referenced by {by}")]
    ForeignKeyRestrict { entity: String, by: String },
    /// Code 5, 409: `fields` are the colliding fields and values (all components of a cache key, nulls included).
    #[error("unique constraint violation")]
    UniqueViolation { fields: Map<String, Value> },
    /// Code 6, 404: `key` names what was looked for; `primary` tells whether it is the primary key.
    #[error("not found")]
    NotFound { key: Map<String, Value>, primary: bool },
    /// Code 7, 400.
    #[error("invalid offset")]
    InvalidOffset { offset: String, reason: String },
    /// Code 8, 500: the store failed; the text is for the log, never for the body.
    #[error("database error: {0}")]
    Database(String),
    /// Code 9, 400.
    #[error("invalid size: {0}")]
    InvalidSize(String),
    /// Code 10, 400: path segment invalid for the endpoint key.
    #[error("invalid unique {field}")]
    InvalidUnique { field: String, reason: String },
    /// Code 11, 400: options (`tags`, `ttl`) and what is wrong with each.
    #[error("invalid options")]
    InvalidOptions { options: Map<String, Value> },
    /// Code 12, 405: writes on a node without a store.
    #[error("operation unsupported: {0}")]
    Unsupported(String),
    /// Code 13, 400: references by unique field that resolve to nothing: `{"<fk>": {"<key>": "<message>"}}`.
    #[error("foreign keys unresolved")]
    ForeignKeysUnresolved { fields: Map<String, Value> },
    /// Code 14, 400: the declarative document is refused. `flattened` only when asked for.
    #[error("invalid declarative configuration")]
    InvalidDeclarative { fields: Map<String, Value>, flattened: Option<Vec<Value>> },
    /// Code 19, 400.
    #[error("referenced by others")]
    ReferencedByOthers { entity: String, by: String },
    /// A bare `{"message": ...}` with this status.
    #[error("{message}")]
    Bare { status: u16, message: String },
}

impl EntityError {
    /// HTTP status of the answer.
    pub fn status(&self) -> u16 {
        match self {
            Self::UniqueViolation { .. } => 409,
            Self::NotFound { .. } => 404,
            Self::Database(_) => 500,
            Self::Unsupported(_) => 405,
            Self::Bare { status, .. } => *status,
            _ => 400,
        }
    }
}

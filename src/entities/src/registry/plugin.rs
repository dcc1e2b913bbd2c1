//! A plugin's own schema: the fields it adds to or changes in the plugin entity.

use crate::schema::{FileOptions, Schema, SchemaError, schema_from};
use serde_json::Value;

/// What a plugin says about itself.
#[derive(Debug, Clone)]
pub struct PluginSchema {
    /// Name of the plugin, as in `name` of the plugin entity.
    pub name: String,
    /// Its version, empty when it tells none.
    pub version: String,
    /// Order of execution, higher first; integer or fraction.
    pub priority: Value,
    /// `config`, and the fields of the plugin entity it restricts (`protocols`, `consumer` ...).
    pub schema: Schema,
}

impl PluginSchema {
    /// Reads a schema in Kong's shape (`{"fields": [{"config": {...}}], "entity_checks": [...]}`), with `version` and
    /// `priority` beside the fields. Checks that are functions are left to the plugin's own runtime.
    ///
    /// Fails on a shape that is none, naming the path inside the schema.
    pub fn from_json(name: &str, value: &Value) -> Result<PluginSchema, SchemaError> {
        let options = FileOptions { traditional: false, router_flavor: "traditional_compatible", default_token: None };
        PluginSchema::read(name, value, options)
    }

    pub(crate) fn read(name: &str, value: &Value, options: FileOptions<'_>) -> Result<PluginSchema, SchemaError> {
        let Some(object) = value.as_object() else {
            return Err(SchemaError { path: name.to_owned(), fault: "a schema must be an object".to_owned() });
        };
        Ok(PluginSchema {
            name: name.to_owned(),
            version: object.get("version").and_then(Value::as_str).unwrap_or_default().to_owned(),
            priority: object.get("priority").cloned().unwrap_or(Value::from(0)),
            schema: schema_from(object, name, options)?,
        })
    }
}

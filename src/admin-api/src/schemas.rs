//! `/schemas/*` and `/plugins/schema/{}`.

use crate::answer::{Answer, bare};
use crate::context::Context;
use gwctl_entities::{EntityError, Value};
use serde_json::json;

fn no_entity(name: &str) -> EntityError {
    bare(404, format!("No entity named '{name}'"))
}

fn no_plugin(name: &str) -> EntityError {
    bare(404, format!("No plugin named '{name}'"))
}

/// `GET /schemas/{}`.
pub(crate) fn entity(context: &Context<'_>, name: &str) -> Result<Answer, EntityError> {
    context.registry.schema_json(name).map(Answer::ok).ok_or_else(|| no_entity(name))
}

/// `GET /schemas/plugins/{}`.
pub(crate) fn plugin(context: &Context<'_>, name: &str) -> Result<Answer, EntityError> {
    context.registry.plugin_schema_json(name).map(Answer::ok).ok_or_else(|| no_plugin(name))
}

/// `GET /schemas/vaults/{}`.
pub(crate) fn vault(context: &Context<'_>, name: &str) -> Result<Answer, EntityError> {
    let missing = || bare(404, format!("No vault named '{name}'"));
    context.registry.vault_schema_json(name).map(Answer::ok).ok_or_else(missing)
}

/// `GET /plugins/schema/{}`: only the settings of the plugin.
pub(crate) fn plugin_config(context: &Context<'_>, name: &str) -> Result<Answer, EntityError> {
    let whole = context.registry.plugin_schema_json(name).ok_or_else(|| no_plugin(name))?;
    let fields = whole.get("fields").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let config = fields.iter().find_map(|field| field.get("config"));
    let part = |member: &str| config.and_then(|config| config.get(member)).cloned().unwrap_or_else(|| json!([]));
    let mut body = json!({"fields": part("fields"), "entity_checks": part("entity_checks")});
    let shorthands = part("shorthand_fields");
    if shorthands.as_array().is_some_and(|list| !list.is_empty()) {
        body["shorthand_fields"] = shorthands;
    }
    Ok(Answer::ok(body))
}

/// `POST /schemas/{}/validate`. Treated as an insert; what it refers to need not exist.
pub(crate) fn validate(context: &Context<'_>, name: &str) -> Result<Answer, EntityError> {
    let schema = context.registry.entity(name).ok_or_else(|| no_entity(name))?;
    let mut input = context.input(schema, None);
    for (argument, value) in &context.request.query.0 {
        let value = Value::from(value.clone().unwrap_or_default());
        input.entry(argument.clone()).or_insert(value);
    }
    if name == "certificates" {
        input.remove("snis");
    }
    if schema.ttl {
        input.remove("ttl");
    }
    let read = context.read()?;
    context.registry.process_insert(name, input, &mut context.filler(), read.as_ref())?;
    Ok(Answer::message(200, "schema validation successful"))
}

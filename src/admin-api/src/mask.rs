//! Records without their secrets.

use gwctl_declarative::secret::{is_secret, shown};
use gwctl_entities::schema::{Field, Schema};
use gwctl_entities::{Map, Record, Registry, Value};

/// The record with a mask in place of each secret. References to a vault are none.
pub(crate) fn masked(registry: &Registry, entity: &str, record: &Record) -> Record {
    match registry.entity(entity) {
        Some(known) => members(Some(known.schema_of(record)), record, ""),
        None => members(None, record, ""),
    }
}

fn members(schema: Option<&Schema>, record: &Map<String, Value>, above: &str) -> Map<String, Value> {
    let masked = record.iter().map(|(name, value)| {
        let field = schema.and_then(|schema| schema.field(name).or_else(|| schema.shorthand(name)));
        let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        (name.clone(), value_of(field, value, &path))
    });
    masked.collect()
}

fn value_of(field: Option<&Field>, value: &Value, path: &str) -> Value {
    if is_secret(field, path) {
        return shown(value, true);
    }
    let part = field.and_then(|field| field.elements.as_deref().or(field.values.as_deref()));
    match value {
        Value::Object(inner) => match field.and_then(|field| field.record.as_deref()) {
            Some(schema) => Value::Object(members(Some(schema), inner, path)),
            None => {
                let inner =
                    inner.iter().map(|(name, value)| (name.clone(), value_of(part, value, &format!("{path}.{name}"))));
                Value::Object(inner.collect())
            }
        },
        Value::Array(items) => items.iter().map(|item| value_of(part, item, path)).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gwctl_declarative::secret::MASK;
    use gwctl_entities::{NodeKind, RegistryOptions};
    use serde_json::json;

    #[test]
    fn keys_passwords_and_secrets_inside_settings_are_masked_and_nothing_else() {
        let options = RegistryOptions {
            kind: NodeKind::ControlPlane,
            router_flavor: "traditional_compatible".to_owned(),
            plugins: None,
        };
        let registry = Registry::bundled(&options);
        let mask = |entity: &str, record: Value| Value::Object(masked(&registry, entity, record.as_object().unwrap()));
        let key = mask("keyauth_credentials", json!({"id": "1", "key": "secret", "tags": ["a"]}));
        assert_eq!(key, json!({"id": "1", "key": MASK, "tags": ["a"]}));
        let plugin = json!({"name": "rate-limiting", "config": {"minute": 5, "redis": {"host": "h", "password": "p"}}});
        let plugin = mask("plugins", plugin);
        assert_eq!((&plugin["config"]["minute"], &plugin["config"]["redis"]["password"]), (&json!(5), &json!(MASK)));
        let vault = mask("jwt_secrets", json!({"secret": "{vault://env/x}"}));
        assert_eq!(vault["secret"], "{vault://env/x}");
    }
}

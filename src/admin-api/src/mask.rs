//! Records without their secrets.

use gwctl_declarative::secret::{is_secret, shown};
use gwctl_entities::schema::{Field, Schema};
use gwctl_entities::{Map, Record, Registry, Value};

/// Fields that hold whatever their users put there, secrets among it: private keys of certificates, data of sessions,
/// credentials in the headers of probes.
const UNTOLD: [(&str, &[&str]); 3] =
    [("acme_storage", &["value"]), ("sessions", &["data"]), ("upstreams", &["healthchecks", "active", "headers"])];

/// The record with a mask in place of each secret. References to a vault are none.
pub(crate) fn masked(registry: &Registry, entity: &str, record: &Record) -> Record {
    let mut masked = match registry.entity(entity) {
        Some(known) => members(Some(known.schema_of(record)), record, ""),
        None => members(None, record, ""),
    };
    for (_, path) in UNTOLD.iter().filter(|(name, _)| *name == entity) {
        hide(&mut masked, path);
    }
    masked
}

fn hide(record: &mut Map<String, Value>, path: &[&str]) {
    let Some((first, rest)) = path.split_first() else { return };
    match record.get_mut(*first) {
        Some(value) if rest.is_empty() => *value = shown(value, true),
        Some(Value::Object(inner)) => hide(inner, rest),
        _ => {}
    }
}

fn members(schema: Option<&Schema>, record: &Map<String, Value>, above: &str) -> Map<String, Value> {
    let masked = record.iter().map(|(name, value)| {
        let field = schema.and_then(|schema| schema.field(name).or_else(|| schema.shorthand(name)));
        let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        // A deprecated name shows what its replacement holds.
        let replaced = |target: &Vec<String>| {
            let target = target.join(".");
            is_secret(schema.and_then(|schema| schema.field_at(&target)), &target)
        };
        let hidden = field.is_some_and(|field| field.expand.iter().any(replaced));
        (name.clone(), if hidden { shown(value, true) } else { value_of(field, value, &path) })
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

    fn mask(entity: &str, record: Value) -> Value {
        let options = RegistryOptions {
            kind: NodeKind::Traditional,
            router_flavor: "traditional_compatible".to_owned(),
            plugins: None,
        };
        Value::Object(masked(&Registry::bundled(&options), entity, record.as_object().unwrap()))
    }

    /// Every plugin of the build, each secret given by each of its names: none is shown.
    #[test]
    fn a_deprecated_name_hides_what_the_new_one_hides() {
        let redis = json!({"host": "h", "username": "sesame-1", "password": "sesame-2"});
        let old = json!({"redis_host": "h", "redis_username": "sesame-1", "redis_password": "sesame-2"});
        for name in ["rate-limiting", "response-ratelimiting"] {
            let mut config = old.as_object().unwrap().clone();
            config.insert("redis".to_owned(), redis.clone());
            let shown = mask("plugins", json!({"name": name, "config": config}));
            assert!(!shown.to_string().contains("sesame"), "{shown}");
            assert_eq!(shown["config"]["redis_host"], "h");
        }
        let storage = json!({"redis": {"auth": "sesame", "password": "sesame", "host": "h"}});
        let shown = mask("plugins", json!({"name": "acme", "config": {"storage_config": storage}}));
        assert!(!shown.to_string().contains("sesame"), "{shown}");
    }

    #[test]
    fn what_users_put_anything_into_is_not_shown() {
        let headers = json!({"healthchecks": {"active": {"headers": {"authorization": ["sesame"]}, "timeout": 1}}});
        let shown = mask("upstreams", headers);
        assert_eq!(shown["healthchecks"]["active"], json!({"headers": MASK, "timeout": 1}));
        assert_eq!(mask("acme_storage", json!({"key": "k", "value": "sesame"}))["value"], MASK);
        assert_eq!(mask("sessions", json!({"data": "sesame"}))["data"], MASK);
        assert_eq!(mask("sessions", json!({"data": null}))["data"], Value::Null);
    }

    #[test]
    fn keys_passwords_and_secrets_inside_settings_are_masked_and_nothing_else() {
        let key = mask("keyauth_credentials", json!({"id": "1", "key": "secret", "tags": ["a"]}));
        assert_eq!(key, json!({"id": "1", "key": MASK, "tags": ["a"]}));
        let plugin = json!({"name": "rate-limiting", "config": {"minute": 5, "redis": {"host": "h", "password": "p"}}});
        let plugin = mask("plugins", plugin);
        assert_eq!((&plugin["config"]["minute"], &plugin["config"]["redis"]["password"]), (&json!(5), &json!(MASK)));
        let vault = mask("jwt_secrets", json!({"secret": "{vault://env/x}"}));
        assert_eq!(vault["secret"], "{vault://env/x}");
    }
}

//! What the registry says about entities, in the form placement and ids need.

use gwctl_entities::{EntitySchema, Record, Registry, Value};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Root of the namespaces of generated ids.
///
/// Source: Kong 3.9.1, declarative configuration.
const ID_ROOT: Uuid = Uuid::from_u128(0xfd02_801f_0957_4a15_a55a_c8d9_606f_30b5);

/// Every entity that may stand in a document, parents before children.
pub(crate) struct Facts<'r> {
    pub(crate) kinds: Vec<Kind<'r>>,
}

/// One entity.
pub(crate) struct Kind<'r> {
    pub(crate) schema: &'r EntitySchema,
    /// Field and the kind it refers to.
    pub(crate) foreign: Vec<(&'r str, usize)>,
    /// Kinds that may be nested below, with the field that links them.
    pub(crate) children: Vec<(usize, &'r str)>,
    /// The endpoint key is unique, so it names the record.
    pub(crate) named: bool,
    /// The id may be generated.
    generated: bool,
    namespace: Uuid,
}

impl<'r> Facts<'r> {
    pub(crate) fn new(registry: &'r Registry) -> Facts<'r> {
        let declared = || registry.entities().filter(|schema| schema.name != "tags");
        let by_name: BTreeMap<&str, usize> =
            declared().enumerate().map(|(index, schema)| (schema.name.as_str(), index)).collect();
        let mut kinds: Vec<Kind<'r>> = declared().map(|schema| Kind::new(schema, &by_name)).collect();
        for child in 0..kinds.len() {
            for (field, parent) in kinds[child].foreign.clone() {
                kinds[parent].children.push((child, field));
            }
        }
        Facts { kinds }
    }
}

impl<'r> Kind<'r> {
    fn new(schema: &'r EntitySchema, by_name: &BTreeMap<&'r str, usize>) -> Kind<'r> {
        let foreign = schema.foreign_keys.iter();
        let foreign = foreign.filter_map(|key| Some((key.field.as_str(), *by_name.get(key.references.as_str())?)));
        let named = schema
            .endpoint_key
            .as_ref()
            .is_some_and(|key| schema.unique_fields.iter().any(|unique| unique.field == *key));
        let generated = schema.primary_key == ["id"] && schema.schema.field("id").is_some_and(|field| field.uuid);
        Kind {
            schema,
            foreign: foreign.collect(),
            children: Vec::new(),
            named,
            generated,
            namespace: Uuid::new_v5(&ID_ROOT, schema.name.as_bytes()),
        }
    }

    pub(crate) fn name(&self) -> &'r str {
        &self.schema.name
    }

    /// The value of the endpoint key, when it is text or a number.
    pub(crate) fn endpoint_value(&self, input: &Record) -> Option<String> {
        text_of(input.get(self.schema.endpoint_key.as_ref()?)?)
    }

    /// Whether a record without id is given one here.
    pub(crate) fn lacks_id(&self, input: &Record) -> bool {
        self.generated && input.get("id").is_none_or(Value::is_null)
    }

    /// Whether a record says who it is without its id.
    pub(crate) fn may_lose_id(&self, record: &Record) -> bool {
        let placed = !self.named || !self.schema.cache_key.is_empty();
        self.generated && (placed || self.endpoint_value(record).is_some())
    }

    /// The id made from what identifies the record; None when it must be random.
    ///
    /// Foreign fields count as written, so a nested record and a flat one have different ids.
    /// `parent` is the field that links to the nesting parent and the parent's id.
    pub(crate) fn stable_id(&self, input: &Record, parent: Option<(&str, &str)>) -> Option<String> {
        let text = match parent {
            Some(_) if self.name() == "snis" => return None,
            _ if self.schema.cache_key.is_empty() => self.endpoint_value(input)?,
            _ => self.cache_key_text(input, parent)?,
        };
        Some(Uuid::new_v5(&self.namespace, text.as_bytes()).to_string())
    }

    fn cache_key_text(&self, input: &Record, parent: Option<(&str, &str)>) -> Option<String> {
        let workspace = input.get("ws_id").and_then(Value::as_str).unwrap_or("*");
        let mut parts = vec![self.name().to_owned(), workspace.to_owned()];
        for name in &self.schema.cache_key {
            let field = self.schema.schema.field(name)?;
            match input.get(name) {
                _ if field.auto => return None,
                Some(value) => parts.extend(text_of(value)),
                None => match parent {
                    Some((link, id)) if link == name => parts.push(id.to_owned()),
                    _ if field.required => return None,
                    _ => parts.push(String::new()),
                },
            }
        }
        Some(parts.join(":"))
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gwctl_entities::{NodeKind, RegistryOptions};
    use serde_json::json;

    const ROUTE: &str = "da7ba03a-f1be-52d4-8a7e-c8f32640689a";
    const SERVICE: &str = "72734e2a-702d-5711-b9ef-697178108ad8";
    const CONSUMER: &str = "006a59a7-8eb1-5cc5-9890-db96d542fcca";
    const UPSTREAM: &str = "152df2f3-4eb2-505d-ba48-f128b77c4e89";

    fn registry() -> Registry {
        let flavor = "traditional_compatible".to_owned();
        Registry::bundled(&RegistryOptions { kind: NodeKind::DbLess, router_flavor: flavor, plugins: None })
    }

    fn id(entity: &str, input: Value, parent: Option<(&str, &str)>) -> Option<String> {
        let registry = registry();
        let facts = Facts::new(&registry);
        let kind = facts.kinds.iter().find(|kind| kind.name() == entity).unwrap();
        kind.stable_id(input.as_object().unwrap(), parent)
    }

    #[test]
    fn ids_are_those_that_kong_generates() {
        let vectors = [
            ("services", json!({"name": "a"}), None, SERVICE),
            ("routes", json!({"name": "r"}), None, ROUTE),
            ("consumers", json!({"username": "u"}), None, CONSUMER),
            ("upstreams", json!({"name": "up"}), None, UPSTREAM),
            ("key_sets", json!({"name": "ks"}), None, "27667a42-60c3-58a6-98a9-1ce7ab79e2d7"),
            ("vaults", json!({"prefix": "my-env"}), None, "3dc3bf8d-e9b4-576c-af74-01619966a0d0"),
            ("plugins", json!({"name": "prometheus"}), None, "18f2f6e2-5e0a-5bfa-93be-849850c0c527"),
            ("plugins", json!({"name": "key-auth"}), Some(("route", ROUTE)), "7fb65597-f0ac-581f-967a-e1413399f0ae"),
            ("plugins", json!({"name": "cors"}), Some(("service", SERVICE)), "9de34e9d-3858-546f-85c7-7bf1dbfd672b"),
            (
                "plugins",
                json!({"name": "request-termination"}),
                Some(("consumer", CONSUMER)),
                "9cec25bd-f19e-5472-98b7-3fa2db32c6f0",
            ),
            ("plugins", json!({"name": "rate-limiting", "service": "a"}), None, "a4da34dd-efe4-5f1a-9726-c1e69792fea2"),
            ("acls", json!({"group": "g"}), Some(("consumer", CONSUMER)), "87bb557c-dc75-5234-88ea-8d45c0c4701b"),
            ("basicauth_credentials", json!({"username": "bu"}), None, "4e1586cb-151b-530e-9d46-10b31324079c"),
            ("hmacauth_credentials", json!({"username": "hu"}), None, "f7c50c9d-0c5c-5585-96f3-8d8768c2a2a5"),
            (
                "targets",
                json!({"target": "1.2.3.4"}),
                Some(("upstream", UPSTREAM)),
                "ad3a87b1-e022-5f78-8b58-063ad177b134",
            ),
            (
                "targets",
                json!({"target": "[::1]:80"}),
                Some(("upstream", UPSTREAM)),
                "a904b10b-3a4d-5950-ab2f-63e631fcf95b",
            ),
        ];
        for (entity, input, parent, expected) in vectors {
            assert_eq!(id(entity, input.clone(), parent).as_deref(), Some(expected), "{entity} {input}");
        }
    }

    #[test]
    fn generated_keys_missing_names_and_nested_server_names_give_random_ids() {
        for (entity, input, parent) in [
            ("keyauth_credentials", json!({"key": "k"}), Some(("consumer", CONSUMER))),
            ("jwt_secrets", json!({"key": "k"}), Some(("consumer", CONSUMER))),
            ("services", json!({"host": "h"}), None),
            ("services", json!({"name": null}), None),
            ("certificates", json!({"cert": "c"}), None),
            ("snis", json!({"name": "s"}), Some(("certificate", CONSUMER))),
            ("acls", json!({"group": "g"}), None),
        ] {
            assert_eq!(id(entity, input.clone(), parent), None, "{entity} {input}");
        }
    }

    #[test]
    fn a_null_reference_and_an_object_drop_out_of_the_key() {
        let absent = id("plugins", json!({"name": "cors"}), None);
        let null = id("plugins", json!({"name": "cors", "service": null}), None);
        let object = id("plugins", json!({"name": "cors", "service": {"id": SERVICE}}), None);
        assert_ne!(absent, null);
        assert_eq!(null, object);
    }
}

//! "Did you mean" for names in files that nothing has. The mistakes themselves say what Kong says, word for word.

use gwctl_declarative::Mistake;
use gwctl_entities::{EntitySchema, Record, Registry, Schema, Value};

/// The mistakes, those of mistyped names with the name that was meant.
pub fn suggested(registry: &Registry, document: &Record, mistakes: &[Mistake]) -> Vec<Mistake> {
    let mistakes = mistakes.iter().map(|mistake| {
        let mut mistake = mistake.clone();
        if let Some(name) = meant(registry, document, &mistake) {
            mistake.message += &format!("; did you mean `{name}`?");
        }
        mistake
    });
    mistakes.collect()
}

fn meant(registry: &Registry, document: &Record, mistake: &Mistake) -> Option<String> {
    let (name, path) = mistake.path.split_last()?;
    if mistake.message.starts_with("plugin '") && name == "name" {
        let given = record_at(document, path)?.get("name")?.as_str()?;
        return nearest(given, registry.plugin_names());
    }
    if mistake.message != "unknown field" {
        return None;
    }
    let Some(at) = path.iter().rposition(|key| registry.entity(key).is_some()) else {
        return nearest(name, registry.entities().map(|entity| &*entity.name));
    };
    let entity = registry.entity(&path[at])?;
    let schema = entity.schema_of(record_at(document, path.get(..at + 2)?)?);
    let inner = path.get(at + 2..)?;
    if inner.is_empty() {
        return nearest(name, names(schema).chain(below(registry, entity)));
    }
    let fields = schema.field_at(&inner.join("."))?.record.as_deref()?;
    nearest(name, names(fields))
}

fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    gwctl_conf::nearest(name, candidates).map(str::to_owned)
}

fn names(schema: &Schema) -> impl Iterator<Item = &str> {
    schema.fields().chain(schema.shorthands()).map(|field| &*field.name)
}

/// Lists that may stand in a record of this kind.
fn below<'a>(registry: &'a Registry, entity: &EntitySchema) -> impl Iterator<Item = &'a str> {
    registry.referenced_by(&entity.name).iter().map(|(name, _)| name.as_str())
}

/// The record that a path of members and positions leads to.
fn record_at<'a>(document: &'a Record, path: &[String]) -> Option<&'a Record> {
    let (first, rest) = path.split_first()?;
    let mut value = document.get(first)?;
    for key in rest {
        value = match value {
            Value::Array(list) => list.get(key.parse::<usize>().ok()?)?,
            value => value.get(key)?,
        };
    }
    value.as_object()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::connect::registry;
    use serde_json::json;

    #[test]
    fn mistyped_names_get_the_nearest_of_their_place() {
        let document = json!({
            "service": [],
            "services": [{
                "name": "a", "conect_timeout": 5, "route": [],
                "routes": [{"pats": ["/x"]}],
                "plugins": [{"name": "key-auht"}, {"name": "rate-limiting", "config": {"minut": 1, "redis": {"hots": "x"}}}],
            }],
        });
        let Value::Object(document) = document else { panic!("an object") };
        let cases = [
            ("service", "unknown field", Some("services")),
            ("zebras", "unknown field", None),
            ("services.0.conect_timeout", "unknown field", Some("connect_timeout")),
            ("services.0.route", "unknown field", Some("routes")),
            ("services.0.routes.0.pats", "unknown field", Some("paths")),
            ("services.0.routes.0.colour", "unknown field", None),
            ("services.0.plugins.0.name", "plugin 'key-auht' not enabled; ...", Some("key-auth")),
            ("services.0.plugins.1.config.minut", "unknown field", Some("minute")),
            ("services.0.plugins.1.config.redis.hots", "unknown field", Some("host")),
            ("services.0.name", "expected a string", None),
            ("services.7.nam", "unknown field", None),
        ];
        let registry = registry("traditional_compatible");
        for (path, message, name) in cases {
            let mistake = Mistake::value(path.split('.').map(str::to_owned).collect(), message);
            assert_eq!(meant(&registry, &document, &mistake).as_deref(), name, "{path}");
        }
    }
}

//! Plugins that never run, because what they are on passes on bytes.

use crate::tables::{Tables, changes};
use gwctl_entities::view::Plugin;

/// Names those that a change brings, once for each.
pub(crate) fn log_unrun(old: &Tables, new: &Tables) {
    for id in unrun(old, new) {
        tracing::warn!(
            plugin = &*id,
            "plugin is on a route or a service of tcp or tls, where this version runs no plugins: it has no effect"
        );
    }
}

fn unrun(old: &Tables, new: &Tables) -> Vec<String> {
    let is_stream = |protocol: &String| matches!(protocol.as_str(), "tcp" | "tls" | "tls_passthrough" | "udp");
    let has_no_effect = |plugin: &Plugin| {
        let route = plugin.route.as_ref().and_then(|id| new.routes.get(id));
        let service = plugin.service.as_ref().and_then(|id| new.services.get(id));
        route.is_some_and(|route| route.protocols.iter().any(is_stream))
            || service.is_some_and(|service| is_stream(&service.protocol))
    };
    let rows = changes::<Plugin>(old, new).into_iter().filter_map(|change| change.new);
    rows.filter(|plugin| plugin.enabled && has_no_effect(plugin))
        .map(|plugin| format!("{} {}", plugin.name, plugin.id))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gwctl_entities::{NodeKind, Registry, RegistryOptions};
    use gwctl_plugins::natives;
    use serde_json::{Value, json};

    /// The day this fails a plugin has come that Kong runs on streams: they then need the phases preread and log.
    #[test]
    fn no_plugin_of_this_build_is_one_for_streams() {
        let options =
            RegistryOptions { kind: NodeKind::DataPlane, router_flavor: "traditional".to_owned(), plugins: None };
        let registry = Registry::bundled(&options);
        for native in natives() {
            let schema = registry.plugin_schema_json(native.name).unwrap();
            let fields = schema["fields"].as_array().unwrap();
            let protocols = fields.iter().find_map(|field| field.get("protocols")).unwrap();
            let known: Vec<_> = protocols["elements"]["one_of"].as_array().unwrap().iter().map(Value::as_str).collect();
            assert!(known.contains(&Some("http")) && !known.contains(&Some("tcp")), "{}: {known:?}", native.name);
        }
    }

    #[test]
    fn plugins_of_streams_are_named_when_they_come() {
        let mut tables = Tables::default();
        for (entity, row) in [
            ("services", json!({"id": "web", "protocol": "http", "host": "a", "port": 1})),
            ("services", json!({"id": "raw", "protocol": "tcp", "host": "a", "port": 1})),
            ("routes", json!({"id": "r", "protocols": ["tls"], "snis": ["a"], "service": {"id": "raw"}})),
            ("plugins", json!({"id": "1", "name": "cors", "config": {}, "service": {"id": "web"}})),
            ("plugins", json!({"id": "2", "name": "cors", "config": {}, "service": {"id": "raw"}})),
            ("plugins", json!({"id": "3", "name": "cors", "config": {}, "route": {"id": "r"}})),
            ("plugins", json!({"id": "4", "name": "cors", "config": {}})),
        ] {
            assert!(tables.put(entity, row.as_object().unwrap()).unwrap(), "{row}");
        }
        let mut named = unrun(&Tables::default(), &tables);
        named.sort();
        assert_eq!(named, ["cors 2", "cors 3"]);
        assert!(unrun(&tables, &tables).is_empty());
    }
}

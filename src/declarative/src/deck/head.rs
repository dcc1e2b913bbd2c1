//! The members of decK beside the entities, and what only Kong Enterprise has.

use super::fill_in;
use crate::Mistake;
use gwctl_entities::{Map, Record, Value};

/// What the heads of all files say together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Head {
    /// `_info.select_tags`: tags of everything the files describe.
    pub select_tags: Vec<String>,
    /// `_info.defaults`: fields by entity (`service`, `route`, `upstream`, `target`).
    pub defaults: Map<String, Value>,
    /// `_plugin_configs`: settings of plugins by name.
    pub plugin_configs: Map<String, Value>,
    /// Members without effect here.
    pub idle: Vec<String>,
}

/// What only Kong Enterprise and Konnect have, and what to do about it.
const ENTERPRISE: &[(&str, &str)] = &[
    ("consumer_groups", "scope the plugins to the consumers, or use the acl plugin, and remove the list"),
    ("licenses", "remove the list: gwctl needs no licence"),
    ("rbac_roles", "remove the list: access to the Admin API is a setting of the node (admin_auth)"),
    ("rbac_users", "remove the list: access to the Admin API is a setting of the node (admin_auth)"),
    ("admins", "remove the list: access to the Admin API is a setting of the node (admin_auth)"),
    ("partials", "write the shared settings into each plugin, or use _plugin_configs"),
    ("custom_entities", "remove the list"),
    ("service_packages", "remove the list"),
    ("service_versions", "remove the list"),
    ("document_objects", "remove the list"),
    ("documents", "remove the list"),
    ("developers", "remove the list"),
    ("cloned_plugins", "give the plugin its own file under lua/ and remove the list"),
    ("custom_plugins", "install the plugin's files on the nodes (`plugins`, `lua_package_path`) and remove the list"),
    ("mtls_auth_credentials", "use another kind of credential and remove the list"),
    ("degraphql_routes", "remove the list"),
    ("graphql_ratelimiting_advanced_cost_decoration", "remove the list"),
];

/// Says of each Enterprise entity of a file that it cannot be had, and what to do.
pub(crate) fn refuse_foreign(document: &Record) -> Vec<Mistake> {
    let mut found = Vec::new();
    look(document, None, &mut Vec::new(), &mut found);
    found
}

fn look(record: &Record, inside: Option<&str>, path: &mut Vec<String>, found: &mut Vec<Mistake>) {
    for (member, value) in record {
        path.push(member.clone());
        let empty = match value {
            Value::Null => true,
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        let remedy = match (inside, member.as_str()) {
            (Some("consumers"), "groups") => Some("remove `groups`, or use the acl plugin with `acls`"),
            (Some("plugins"), "consumer_group") => Some("scope the plugin to a consumer, a route or a service"),
            (Some("plugins"), "partials") => Some("write the shared settings into the plugin, or use _plugin_configs"),
            (_, name) => ENTERPRISE.iter().find(|(known, _)| *known == name).map(|(_, remedy)| *remedy),
        };
        match (remedy, value) {
            (Some(remedy), _) if !empty => {
                let text = format!("{member} exists in Kong Enterprise and Konnect only: {remedy}");
                found.push(Mistake::value(path.clone(), text));
            }
            (None, Value::Array(list)) if super::LISTS.contains(&member.as_str()) => {
                for (position, item) in list.iter().enumerate() {
                    let Value::Object(item) = item else { continue };
                    path.push(position.to_string());
                    look(item, Some(member), path, found);
                    path.pop();
                }
            }
            _ => {}
        }
        path.pop();
    }
}

/// Takes the head of a file out of it and adds it to what files before said. Empty Enterprise lists go too.
pub(crate) fn take_head(document: &mut Record, head: &mut Head) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    let mut wrong = |path: &[&str], text: String| {
        mistakes.push(Mistake::value(path.iter().map(|step| (*step).to_owned()).collect(), text));
    };
    document.retain(|member, value| {
        let empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        !(empty && ENTERPRISE.iter().any(|(known, _)| known == member))
    });
    match document.remove("_workspace") {
        None | Some(Value::Null) => {}
        Some(Value::String(workspace)) if workspace == "default" || workspace.is_empty() => {}
        Some(workspace) => wrong(
            &["_workspace"],
            format!(
                "there is no workspace {workspace}, only \"default\": workspaces exist in Kong Enterprise only; \
                     remove _workspace, and tell configurations apart by tags (_info.select_tags)"
            ),
        ),
    }
    if document.remove("_konnect").is_some_and(|konnect| !konnect.is_null()) {
        wrong(&["_konnect"], "the file is meant for a control plane of Konnect: remove _konnect to use it here".into());
    }
    match document.remove("_plugin_configs") {
        None | Some(Value::Null) => {}
        Some(Value::Object(configs)) => {
            for (name, config) in configs {
                let known = head.plugin_configs.get(&name).is_some_and(|known| *known != config);
                if !config.is_object() {
                    wrong(&["_plugin_configs", &name], "expected a map of plugin settings".into());
                } else if known {
                    wrong(&["_plugin_configs", &name], format!("{name} has other settings in a file before"));
                }
                head.plugin_configs.entry(name).or_insert(config);
            }
        }
        Some(_) => wrong(&["_plugin_configs"], "expected a map of plugin settings by name".into()),
    }
    match document.remove("_info") {
        None | Some(Value::Null) => {}
        Some(Value::Object(info)) => take_info(info, head, &mut wrong),
        Some(_) => wrong(&["_info"], "expected a map".into()),
    }
    mistakes
}

fn take_info(info: Record, head: &mut Head, wrong: &mut dyn FnMut(&[&str], String)) {
    for (member, value) in info {
        match (member.as_str(), value) {
            (_, Value::Null) | ("default_lookup_tags", Value::Object(_)) => {}
            ("select_tags", Value::Array(tags)) => {
                for (position, tag) in tags.into_iter().enumerate() {
                    match tag {
                        Value::String(tag) if head.select_tags.contains(&tag) => {}
                        Value::String(tag) => head.select_tags.push(tag),
                        _ => wrong(&["_info", "select_tags", &position.to_string()], "expected a string".into()),
                    }
                }
            }
            ("defaults", Value::Object(defaults)) => take_defaults(defaults, head, wrong),
            ("skip_hash_for_basic_auth", Value::Bool(true)) => wrong(
                &["_info", &member],
                "its passwords are hashes, which decK can send to Konnect only: write `_transform: false` at the top \
                 of the file in its place"
                    .into(),
            ),
            ("consumer_group_policy_overrides" | "skip_hash_for_basic_auth" | "include_plugin_definitions", _) => {
                head.idle.push(format!("_info.{member}"));
            }
            ("select_tags", _) => wrong(&["_info", &member], "expected a list of tags".into()),
            ("defaults" | "default_lookup_tags", _) => wrong(&["_info", &member], "expected a map".into()),
            _ => wrong(
                &["_info", &member],
                "unknown member; known are select_tags, defaults and default_lookup_tags".into(),
            ),
        }
    }
}

fn take_defaults(defaults: Record, head: &mut Head, wrong: &mut dyn FnMut(&[&str], String)) {
    for (entity, fields) in defaults {
        let path = ["_info", "defaults", entity.as_str()];
        match (entity.as_str(), fields) {
            (_, Value::Null) => {}
            ("service" | "route" | "upstream" | "target", Value::Object(fields)) => {
                for own in fields.keys().filter(|field| matches!(field.as_str(), "id" | "name" | "target")) {
                    wrong(&[path[0], path[1], path[2], own], format!("{own} is of one record, it has no default"));
                }
                let known = head.defaults.entry(entity).or_insert_with(|| Value::Object(Map::new()));
                if let Value::Object(known) = known {
                    fill_in(known, fields.iter());
                }
            }
            ("service" | "route" | "upstream" | "target", _) => wrong(&path, "expected a map of fields".into()),
            _ => wrong(&path, "has no defaults; service, route, upstream and target have".into()),
        }
    }
}

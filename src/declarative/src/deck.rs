//! decK's file dialect: what its files have beside the entities of Kong's declarative format.
//!
//! Both dialects may be mixed: everything here is an addition to what [`crate::load()`] reads. A file first gives up
//! its head (`take_head`: `_info`, `_workspace`, `_konnect`, `_plugin_configs`); once all files are joined,
//! `settle` turns the rest into Kong's form.

mod head;
mod template;

pub use head::Head;
pub(crate) use head::{refuse_foreign, take_head};
pub use template::{Rendered, render};

use crate::Mistake;
use gwctl_entities::{Map, Record, Value};
use serde_json::json;

/// Entities that stand in lists, at the top or below another one.
const LISTS: [&str; 12] = [
    "services",
    "routes",
    "plugins",
    "consumers",
    "upstreams",
    "targets",
    "certificates",
    "snis",
    "keys",
    "key_sets",
    "filter_chains",
    "ca_certificates",
];

/// Calls `act` with each record of the document: its entity, itself, its path. Parents first.
pub(crate) fn each_record(
    document: &mut Record,
    path: &mut Vec<String>,
    act: &mut dyn FnMut(&str, &mut Record, &[String]),
) {
    for (member, value) in document.iter_mut().filter(|(member, _)| LISTS.contains(&member.as_str())) {
        path.push(member.clone());
        for (position, item) in value.as_array_mut().into_iter().flatten().enumerate() {
            let Value::Object(record) = item else { continue };
            path.push(position.to_string());
            act(member, record, path);
            each_record(record, path, act);
            path.pop();
        }
        path.pop();
    }
}

/// Turns what decK writes in its own way into Kong's form: defaults of `_info`, named plugin settings, references as
/// `{name: ...}`, server names as plain texts.
pub(crate) fn settle(document: &mut Record, head: &Head) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    names_of_certificates(document);
    each_record(document, &mut Vec::new(), &mut |entity, record, path| {
        plain_references(entity, record);
        if entity == "plugins"
            && let Some(name) = record.remove("_config")
            && let Err(text) = named_settings(record, &name, &head.plugin_configs)
        {
            mistakes.push(Mistake::value(path.iter().cloned().chain(["_config".to_owned()]).collect(), text));
        }
        let singular = entity.strip_suffix('s').unwrap_or(entity);
        if let Some(Value::Object(defaults)) = head.defaults.get(singular) {
            let whole_url = entity == "services" && record.contains_key("url");
            let skipped = |name: &str| whole_url && matches!(name, "protocol" | "host" | "port" | "path");
            let defaults = defaults.iter().filter(|(name, _)| !skipped(name));
            fill_in(record, defaults);
        }
    });
    mistakes
}

/// `service: {name: orders}` becomes `service: orders`, which Kong's format reads.
fn plain_references(entity: &str, record: &mut Record) {
    let fields: &[&str] = match entity {
        "routes" | "filter_chains" => &["service", "route"],
        "plugins" => &["service", "route", "consumer"],
        "keys" => &["set"],
        _ => &[],
    };
    for field in fields {
        let name = record.get(*field).and_then(Value::as_object).filter(|reference| !reference.contains_key("id"));
        if let Some(name) = name.and_then(|reference| reference.get("name").or_else(|| reference.get("username"))) {
            let name = name.clone();
            record.insert((*field).to_owned(), name);
        }
    }
}

fn names_of_certificates(document: &mut Record) {
    let certificates = document.get_mut("certificates").and_then(Value::as_array_mut).into_iter().flatten();
    for name in certificates.filter_map(|certificate| certificate.get_mut("snis")?.as_array_mut()).flatten() {
        if name.is_string() {
            *name = json!({ "name": name.take() });
        }
    }
}

/// Adds the settings of this name; those of the plugin itself win.
fn named_settings(record: &mut Record, name: &Value, known: &Map<String, Value>) -> Result<(), String> {
    let Some(Value::Object(named)) = name.as_str().and_then(|name| known.get(name)) else {
        return Err(format!("no settings called {name} in _plugin_configs"));
    };
    let config = record.entry("config").or_insert(Value::Null);
    if config.is_null() {
        *config = json!({});
    }
    if let Value::Object(config) = config {
        for (field, value) in named {
            config.entry(field).or_insert_with(|| value.clone());
        }
    }
    Ok(())
}

/// Adds what a record does not have, member by member.
pub(crate) fn fill_in<'a>(record: &mut Record, defaults: impl Iterator<Item = (&'a String, &'a Value)>) {
    for (field, default) in defaults {
        match (record.get_mut(field), default) {
            (None, default) => drop(record.insert(field.clone(), default.clone())),
            (Some(Value::Object(own)), Value::Object(more)) => fill_in(own, more.iter()),
            (Some(_), _) => {}
        }
    }
}

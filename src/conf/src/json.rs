//! The settings as the Admin API's `GET /` and the cluster protocol's `process_conf` show them.

use serde_json::{Map, Value as Json, json};

use crate::is_reloadable;
use crate::keys::{KEYS, Kind};
use crate::listener::{KeepAlive, Listener, parse_all};
use crate::names;
use crate::node::NodeConf;
use crate::settings::{Setting, Settings};
use crate::show::MASK;
use crate::value::Value;

impl NodeConf {
    /// Every effective setting by its name in Kong, secrets masked. An unset key is absent, an empty list is `{}`.
    pub fn configuration_json(&self) -> Map<String, Json> {
        let mut shown = Map::new();
        for (name, setting) in &self.settings.rows {
            let kind = crate::key(name).map_or(Kind::Text, |key| key.kind);
            if let Some(value) = value(kind, setting) {
                shown.insert(name.clone(), value);
            }
        }
        // Kong writes these two in lower case.
        for key in ["headers", "headers_upstream"] {
            let lower = self.settings.list(key).iter().map(|item| item.to_lowercase());
            shown.insert(key.into(), list(lower));
        }
        shown.insert("prefix".into(), json!(self.prefix));
        shown.insert("database".into(), json!(self.database.as_str()));
        shown.insert("loaded_plugins".into(), all_true(&self.plugins));
        shown.insert("loaded_vaults".into(), all_true(&self.vaults));
        shown.insert("enabled_headers".into(), enabled(&self.headers, names::RESPONSE_HEADERS));
        shown.insert("enabled_headers_upstream".into(), enabled(&self.headers_upstream, names::UPSTREAM_HEADERS));
        let ports = self.port_maps.iter().map(|(inner, public)| (inner.to_string(), json!(public)));
        shown.insert("host_ports".into(), Json::Object(ports.collect()));
        shown.extend(listeners(&self.settings));
        shown
    }

    /// The same of a node that was started with these settings and took over from `newer` what a reload takes over.
    pub fn configuration_with(&self, newer: &Self) -> Map<String, Json> {
        let taken = |name: &str| is_reloadable(name) || matches!(name, "enabled_headers" | "enabled_headers_upstream");
        let mut shown = self.configuration_json();
        shown.retain(|name, _| !taken(name));
        shown.extend(newer.configuration_json().into_iter().filter(|(name, _)| taken(name)));
        shown
    }
}

fn value(kind: Kind, setting: &Setting) -> Option<Json> {
    if kind.secret() {
        return (setting.value != Value::Unset).then(|| json!(MASK));
    }
    Some(match &setting.value {
        Value::Unset => return None,
        Value::Flag(flag) => json!(flag),
        Value::Number(number) if number.fract() == 0.0 => json!(*number as i64),
        Value::Number(number) => json!(number),
        Value::Text(text) => json!(text),
        Value::List(items) => list(items.iter().cloned()),
    })
}

/// An empty list is an empty table in Lua, and so an object.
fn list(items: impl Iterator<Item = String>) -> Json {
    let items: Vec<Json> = items.map(Json::String).collect();
    if items.is_empty() { json!({}) } else { Json::Array(items) }
}

fn all_true<'a>(names: impl IntoIterator<Item = &'a String>) -> Json {
    Json::Object(names.into_iter().map(|name| (name.clone(), json!(true))).collect())
}

fn enabled(chosen: &std::collections::BTreeSet<&str>, known: &[(&str, &[&str])]) -> Json {
    Json::Object(known.iter().map(|(name, _)| ((*name).to_owned(), json!(chosen.contains(name)))).collect())
}

/// `proxy_listeners` and `proxy_ssl_enabled` for each `proxy_listen`, as for the other listeners.
fn listeners(settings: &Settings) -> Map<String, Json> {
    let mut shown = Map::new();
    for key in KEYS.iter().filter(|key| key.kind == Kind::Listen) {
        let name = key.name.trim_end_matches("_listen");
        // The kind of the key has checked the list.
        let parsed = parse_all(settings.list(key.name)).unwrap_or_default();
        if name != "cluster" {
            let ssl = if name == "stream" { "stream_proxy_ssl_enabled".into() } else { format!("{name}_ssl_enabled") };
            shown.insert(ssl, json!(parsed.iter().any(|listener| listener.ssl)));
        }
        let rows: Vec<Json> = parsed.iter().map(|one| listener(one, name == "stream")).collect();
        shown.insert(format!("{name}_listeners"), if rows.is_empty() { json!({}) } else { Json::Array(rows) });
    }
    shown
}

/// Flags with a value are shown under their pattern when absent, and as written when present.
fn listener(listener: &Listener, stream: bool) -> Json {
    let mut shown = json!({
        "listener": listener.text,
        "ip": listener.address.ip().to_string(),
        "port": listener.address.port(),
        "ssl": listener.ssl,
        "proxy_protocol": listener.proxy_protocol,
        "bind": listener.bind,
        "reuseport": listener.reuseport,
        "ipv6only=on": listener.ipv6only == Some(true),
        "ipv6only=off": listener.ipv6only == Some(false),
        "so_keepalive=on": listener.so_keepalive == Some(KeepAlive::On),
        "so_keepalive=off": listener.so_keepalive == Some(KeepAlive::Off),
    });
    let backlog = listener.backlog.map_or("backlog=%d+".into(), |backlog| format!("backlog={backlog}"));
    shown[backlog] = json!(listener.backlog.is_some());
    match &listener.so_keepalive {
        Some(KeepAlive::Tuned(text)) => shown[format!("so_keepalive={text}")] = json!(true),
        _ => shown["so_keepalive=%w*:%w*:%d*"] = json!(false),
    }
    if stream {
        shown["udp"] = json!(listener.udp);
    } else {
        shown["http2"] = json!(listener.http2);
        shown["deferred"] = json!(listener.deferred);
    }
    shown
}

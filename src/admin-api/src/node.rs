//! Endpoints about the node itself: `/`, `/timers`, log level, cache, plugins, `/config`.

use crate::answer::{Answer, Content, bare};
use crate::backend::{DeclarativeDocument, DeclarativeLoaded, DeclarativeOptions, LogScope};
use crate::context::Context;
use crate::form::Given;
use crate::request::Body;
use gwctl_entities::{EntityError, Map, PageQuery, Read, Record, Value};
use http::Method;
use serde_json::json;
use std::collections::BTreeSet;

/// `GET /`.
pub(crate) fn root(context: &Context<'_>) -> Result<Answer, EntityError> {
    let node = context.node;
    let available: Map<String, Value> = context
        .registry
        .plugin_names()
        .filter_map(|name| {
            let (version, priority) = context.registry.plugin_facts(name)?;
            Some((name.to_owned(), json!({"version": version, "priority": priority})))
        })
        .collect();
    let read = context.read()?;
    Ok(Answer::ok(json!({
        "tagline": "Welcome to kong",
        "version": node.version,
        "edition": "community",
        "hostname": node.hostname,
        "node_id": node.id,
        // Tools look for a text here; there is no Lua version to tell where plugins are native.
        "lua_version": "LuaJIT 2.1",
        "pids": {"master": node.process_id, "workers": node.worker_ids},
        "timers": {"running": 0, "pending": 0},
        "plugins": {"available_on_server": available, "enabled_in_cluster": configured_plugins(read.as_ref())?},
        "configuration": node.configuration.now(),
    })))
}

/// Names of the plugins that are configured somewhere.
fn configured_plugins(read: &dyn Read) -> Result<BTreeSet<String>, EntityError> {
    let mut names = BTreeSet::new();
    let mut query = PageQuery { size: 1000, ..PageQuery::default() };
    loop {
        let page = read.page("plugins", &query)?;
        names.extend(page.rows.iter().filter_map(|row| row.get("name")?.as_str().map(str::to_owned)));
        match page.next {
            Some(next) => query.from = Some(next),
            None => return Ok(names),
        }
    }
}

/// `GET /timers`.
pub(crate) fn timers(context: &Context<'_>) -> Answer {
    let count = context.node.worker_ids.len();
    let sys = json!({"total": 0, "runs": 0, "running": 0, "pending": 0, "waiting": 0});
    Answer::ok(json!({"worker": {"id": 0, "count": count}, "stats": {"sys": sys, "timers": {}, "flamegraph": {}}}))
}

/// `GET /plugins/enabled`.
pub(crate) fn enabled_plugins(context: &Context<'_>) -> Answer {
    let names: Vec<&str> = context.registry.plugin_names().collect();
    Answer::ok(json!({ "enabled_plugins": names }))
}

/// `GET /robots.txt`.
pub(crate) fn robots() -> Answer {
    let text = "User-agent: *\nDisallow: /".to_owned();
    Answer { status: 200, content: Content::Text { content_type: "text/plain", text }, headers: Vec::new() }
}

/// `GET /metrics`.
pub(crate) fn metrics(context: &Context<'_>) -> Answer {
    match context.backend.metrics() {
        Some(text) => {
            let content = Content::Text { content_type: "text/plain; charset=UTF-8", text };
            Answer { status: 200, content, headers: Vec::new() }
        }
        None => Answer::not_found(),
    }
}

/// `/cache` and `/cache/{}`: this node keeps no cache that a key could name.
pub(crate) fn cache_entry(context: &Context<'_>) -> Answer {
    if context.request.method == Method::DELETE { Answer::empty(204) } else { Answer::not_found() }
}

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warn", "error", "crit", "alert", "emerg"];
/// Seconds until a changed level goes back.
const LEVEL_TIMEOUT: u64 = 60;

/// `GET /debug/node/log-level`.
pub(crate) fn log_level(context: &Context<'_>) -> Answer {
    Answer::message(200, &format!("log level: {}", context.backend.log_level()))
}

/// `PUT /debug/{node,cluster}/log-level/{}`.
pub(crate) fn set_log_level(context: &Context<'_>, cluster: bool, level: &str) -> Result<Answer, EntityError> {
    if context.storeless() {
        return Err(bare(405, "cannot change log level when not using a database"));
    }
    if !LEVELS.contains(&level) {
        return Err(bare(400, format!("unknown log level: {level}")));
    }
    let seconds = seconds(context, "timeout")?;
    if !cluster && context.backend.log_level() == level {
        return Ok(Answer::message(200, &format!("log level is already {level}")));
    }
    let scope = if cluster { LogScope::Cluster } else { LogScope::Node };
    context.backend.set_log_level(scope, level, seconds)?;
    let message = if cluster { "log level changed for the cluster" } else { "log level changed" };
    Ok(Answer::message(200, message))
}

/// How long a level lasts.
pub(crate) fn seconds(context: &Context<'_>, name: &str) -> Result<u64, EntityError> {
    match argument(context, name).map(|text| text.trim().parse::<f64>()) {
        None => Ok(LEVEL_TIMEOUT),
        Some(Ok(seconds)) if seconds >= 0.0 && seconds.is_finite() => Ok(seconds as u64),
        Some(_) => Err(bare(400, format!("{name} must be greater than or equal to 0"))),
    }
}

/// An argument of the query or the body: node endpoints see one merged set.
pub(crate) fn argument(context: &Context<'_>, name: &str) -> Option<String> {
    let of_body = match &context.request.body {
        Body::Json(record) => record.get(name).map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }),
        Body::Form(pairs) => pairs.iter().find(|(given, _)| given == name).map(|(_, given)| match given {
            Given::Text(text) => text.clone(),
            Given::Value(value) => value.to_string(),
        }),
        Body::Empty | Body::Text(_) | Body::Raw(_) => None,
    };
    of_body.or_else(|| context.request.query.text(name).map(str::to_owned))
}

const NEEDS_NO_STORE: &str = "this endpoint is only available when Kong is configured to not use a database";

/// `/config`.
pub(crate) fn config(context: &Context<'_>) -> Result<Answer, EntityError> {
    if !context.storeless() {
        return Err(bare(400, NEEDS_NO_STORE));
    }
    if context.request.method != Method::POST {
        return Ok(Answer::ok(json!({ "config": context.backend.export_declarative()? })));
    }
    let yes = |text: String| ["1", "true", "on", "yes"].contains(&text.to_ascii_lowercase().as_str());
    let options = DeclarativeOptions {
        check_hash: argument(context, "check_hash").is_some_and(|text| text == "1"),
        flatten_errors: argument(context, "flatten_errors").is_some_and(yes),
        dry_run: context.request.dry_run,
    };
    let document = document(&context.request.body).ok_or_else(|| bare(400, "expected a declarative configuration"))?;
    match context.backend.load_declarative(document, options)? {
        DeclarativeLoaded::Applied(body) => Ok(Answer::json(201, body)),
        DeclarativeLoaded::Unchanged => Ok(Answer::empty(304)),
    }
}

/// The declarative document of a body; None when there is none.
fn document(body: &Body) -> Option<DeclarativeDocument> {
    match body {
        Body::Text(text) => Some(DeclarativeDocument::Text(text.clone())),
        Body::Form(pairs) => pairs.iter().find(|(name, _)| name == "config").map(|(_, given)| match given {
            Given::Text(text) => DeclarativeDocument::Text(text.clone()),
            Given::Value(value) => DeclarativeDocument::Text(value.to_string()),
        }),
        Body::Json(record) => {
            let mut record = record.clone();
            record.retain(|name, _| name != "check_hash" && name != "flatten_errors");
            document_of_json(record)
        }
        Body::Empty | Body::Raw(_) => None,
    }
}

fn document_of_json(record: Record) -> Option<DeclarativeDocument> {
    if record.contains_key("_format_version") {
        return Some(DeclarativeDocument::Parsed(Value::Object(record)));
    }
    if let Some(Value::String(text)) = record.get("config") {
        return Some(DeclarativeDocument::Text(text.clone()));
    }
    // An object that is neither is read as a text, so that the missing format version is what is reported.
    (!record.is_empty()).then(|| DeclarativeDocument::Text(Value::Object(record).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json_body(value: Value) -> Body {
        Body::Json(value.as_object().cloned().unwrap_or_default())
    }

    #[test]
    fn a_configuration_comes_as_object_as_member_or_as_text() {
        let direct = json!({"_format_version": "3.0", "services": []});
        let mut sent = direct.clone();
        sent["check_hash"] = json!(1);
        assert_eq!(document(&json_body(sent)), Some(DeclarativeDocument::Parsed(direct)));
        let text = Some(DeclarativeDocument::Text("a: 1".to_owned()));
        assert_eq!(document(&json_body(json!({"config": "a: 1"}))), text);
        assert_eq!(document(&Body::Form(vec![("config".to_owned(), Given::Text("a: 1".to_owned()))])), text);
        assert_eq!(document(&Body::Text("a: 1".to_owned())), text);
        assert_eq!(document(&Body::Empty), None);
    }

    #[test]
    fn an_object_without_format_version_is_read_as_text() {
        let read = document(&json_body(json!({"services": []})));
        assert_eq!(read, Some(DeclarativeDocument::Text(r#"{"services":[]}"#.to_owned())));
    }
}

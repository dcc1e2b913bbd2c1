//! Values that older nodes do not know, and what they are sent in their place.
//!
//! Source: Kong 3.9.1 `kong/clustering/compat/checkers.lua` and the `clustering/compat/redis_translation.lua` of three
//! plugins. A field that is present counts there even if it is null; so it does here.

use super::Version;
use crate::table::text;
use gwctl_entities::Record;
use serde_json::{Map, Value};

/// One rewrite of the rows of one entity.
pub(super) struct Step {
    /// Nodes older than this are sent rewritten rows.
    pub(super) below: Version,
    /// The entity.
    pub(super) entity: &'static str,
    /// What is done, for the log.
    pub(super) what: &'static str,
    /// Whether a row is concerned. Such rows are rewritten.
    pub(super) concerns: fn(&Record) -> bool,
    /// Rewrites a concerned row.
    pub(super) rewrite: fn(&mut Record),
}

const V3_1: Version = Version::new(3, 1, 0);
const V3_2: Version = Version::new(3, 2, 0);
const V3_3: Version = Version::new(3, 3, 0);
const V3_4: Version = Version::new(3, 4, 0);
const V3_5: Version = Version::new(3, 5, 0);
const V3_6: Version = Version::new(3, 6, 0);
const V3_7: Version = Version::new(3, 7, 0);
const V3_8: Version = Version::new(3, 8, 0);
const V3_9: Version = Version::new(3, 9, 0);

const fn plugin(below: Version, what: &'static str, concerns: fn(&Record) -> bool, rewrite: fn(&mut Record)) -> Step {
    Step { below, entity: "plugins", what, concerns, rewrite }
}

const fn without_updated_at(entity: &'static str) -> Step {
    Step {
        below: V3_3,
        entity,
        what: "updated_at is left out",
        concerns: |row| row.get("updated_at").is_some_and(|value| *value != Value::Bool(false)),
        rewrite: |row| drop(row.remove("updated_at")),
    }
}

/// All rewrites, in the order in which they are made: each brings the table down by one version.
pub(super) const STEPS: &[Step] = &[
    plugin(V3_9, "provider huggingface becomes openai", uses_huggingface, to_openai),
    plugin(
        V3_8,
        "aws_sts_endpoint_url is left out",
        |row| is(row, "aws-lambda") && config(row).is_some_and(|config| config.contains_key("aws_sts_endpoint_url")),
        |row| drop(config_mut(row).remove("aws_sts_endpoint_url")),
    ),
    plugin(V3_8, "providers gemini and bedrock become openai", uses_gemini_or_bedrock, to_openai),
    plugin(V3_8, "mistral gets its public upstream_url", lacks_mistral_url, add_mistral_url),
    plugin(
        V3_7,
        "route_type preserve becomes llm/v1/chat",
        |row| is(row, "ai-proxy") && setting(row, "route_type") == Some("preserve"),
        |row| set(row, "route_type", "llm/v1/chat"),
    ),
    plugin(
        V3_6,
        "redis settings take their old names",
        |row| is(row, "acme") && setting(row, "storage") == Some("redis"),
        flatten_acme_redis,
    ),
    plugin(
        V3_6,
        "redis settings take their old names",
        |row| (is(row, "rate-limiting") || is(row, "response-ratelimiting")) && setting(row, "policy") == Some("redis"),
        flatten_redis,
    ),
    plugin(
        V3_5,
        "header_type gcp becomes preserve",
        |row| is_tracer(row) && setting(row, "header_type") == Some("gcp"),
        |row| set(row, "header_type", "preserve"),
    ),
    plugin(
        V3_5,
        "default_header_type gcp becomes b3",
        |row| is(row, "zipkin") && setting(row, "default_header_type") == Some("gcp"),
        |row| set(row, "default_header_type", "b3"),
    ),
    plugin(
        V3_4,
        "header_type aws becomes preserve",
        |row| is_tracer(row) && setting(row, "header_type") == Some("aws"),
        |row| set(row, "header_type", "preserve"),
    ),
    plugin(
        V3_4,
        "default_header_type aws becomes b3",
        |row| is(row, "zipkin") && setting(row, "default_header_type") == Some("aws"),
        |row| set(row, "default_header_type", "b3"),
    ),
    plugin(V3_3, "queue settings take their old names", lacks_old_queue, add_old_queue),
    Step {
        below: V3_3,
        entity: "vaults",
        what: "hyphens of an env prefix become underscores",
        concerns: |row| is(row, "env") && setting(row, "prefix").is_some_and(|prefix| prefix.contains('-')),
        rewrite: |row| {
            let prefix = setting(row, "prefix").unwrap_or_default().replace('-', "_");
            set(row, "prefix", &prefix);
        },
    },
    without_updated_at("ca_certificates"),
    without_updated_at("certificates"),
    without_updated_at("consumers"),
    without_updated_at("targets"),
    without_updated_at("upstreams"),
    without_updated_at("plugins"),
    without_updated_at("workspaces"),
    without_updated_at("snis"),
    Step {
        below: V3_2,
        entity: "services",
        what: "TLS settings of services with protocol tls are left out",
        concerns: |row| {
            let present = |field: &&str| row.get(*field).is_some_and(|value| *value != Value::Bool(false));
            text(row, "protocol") == Some("tls") && SERVICE_TLS.iter().any(present)
        },
        rewrite: |row| SERVICE_TLS.iter().for_each(|field| drop(row.remove(*field))),
    },
    Step {
        below: V3_2,
        entity: "upstreams",
        what: "algorithm latency becomes round-robin",
        concerns: |row| text(row, "algorithm") == Some("latency"),
        rewrite: |row| drop(row.insert("algorithm".to_owned(), "round-robin".into())),
    },
    plugin(
        V3_2,
        "instance_name is left out",
        |row| row.contains_key("instance_name"),
        |row| drop(row.remove("instance_name")),
    ),
    Step {
        below: V3_1,
        entity: "upstreams",
        what: "use_srv_name is left out",
        concerns: |row| row.contains_key("use_srv_name"),
        rewrite: |row| drop(row.remove("use_srv_name")),
    },
    // Renames come last, before the removed settings.
    plugin(
        V3_2,
        "session settings take their old names",
        |row| {
            let named = |(new, _): &(&str, &str)| config(row).is_some_and(|config| config.contains_key(*new));
            is(row, "session") && SESSION_NAMES.iter().any(named)
        },
        rename_session,
    ),
    plugin(
        V3_8,
        "traces_endpoint takes its old name endpoint",
        |row| is(row, "opentelemetry") && config(row).is_some_and(|config| config.contains_key("traces_endpoint")),
        |row| rename(config_mut(row), "traces_endpoint", "endpoint"),
    ),
];

const SERVICE_TLS: [&str; 4] = ["client_certificate", "tls_verify", "tls_verify_depth", "ca_certificates"];

/// New and old names.
const SESSION_NAMES: [(&str, &str); 6] = [
    ("idling_timeout", "cookie_idletime"),
    ("rolling_timeout", "cookie_lifetime"),
    ("stale_ttl", "cookie_discard"),
    ("cookie_same_site", "cookie_samesite"),
    ("cookie_http_only", "cookie_httponly"),
    ("remember", "cookie_persistent"),
];

fn is(row: &Record, name: &str) -> bool {
    text(row, "name") == Some(name)
}

fn is_tracer(row: &Record) -> bool {
    is(row, "opentelemetry") || is(row, "zipkin")
}

fn config(row: &Record) -> Option<&Record> {
    row.get("config")?.as_object()
}

/// The settings to be changed. A row without any gets an empty object; concerned rows have some.
fn config_mut(row: &mut Record) -> &mut Record {
    object_at(row, "config")
}

/// The object below a key; whatever else is there is replaced by an empty one.
fn object_at<'a>(record: &'a mut Record, key: &str) -> &'a mut Record {
    let value = record.entry(key).or_insert(Value::Null);
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made an object in the line before")
}

/// A setting that is a text.
fn setting<'a>(row: &'a Record, field: &str) -> Option<&'a str> {
    text(config(row)?, field)
}

fn set(row: &mut Record, field: &str, value: &str) {
    config_mut(row).insert(field.to_owned(), value.into());
}

fn rename(record: &mut Record, from: &str, to: &str) {
    if let Some(value) = record.remove(from) {
        record.insert(to.to_owned(), value);
    }
}

/// Copies a member under another name; a member that is missing takes the other away.
fn copy(from: &Record, name: &str, to: &mut Record, as_name: &str) {
    match from.get(name) {
        Some(value) => drop(to.insert(as_name.to_owned(), value.clone())),
        None => drop(to.remove(as_name)),
    }
}

/// Where a plugin keeps its model: at the top, or below `llm`.
fn model(row: &Record) -> Option<&Record> {
    let config = config(row)?;
    let holder = match text(row, "name")? {
        "ai-proxy" => config,
        "ai-request-transformer" | "ai-response-transformer" => config.get("llm")?.as_object()?,
        _ => return None,
    };
    holder.get("model")?.as_object()
}

fn provider(row: &Record) -> Option<&str> {
    text(model(row)?, "provider")
}

fn uses_huggingface(row: &Record) -> bool {
    provider(row) == Some("huggingface")
}

fn uses_gemini_or_bedrock(row: &Record) -> bool {
    matches!(provider(row), Some("gemini" | "bedrock"))
}

fn to_openai(row: &mut Record) {
    let at_top = is(row, "ai-proxy");
    let config = config_mut(row);
    if at_top {
        config.insert("route_type".to_owned(), "preserve".into());
    }
    let model = object_at(if at_top { config } else { object_at(config, "llm") }, "model");
    let provider = model.insert("provider".to_owned(), "openai".into());
    let options = model.get_mut("options").and_then(Value::as_object_mut);
    // The options of the other two providers are among the removed settings.
    if let (Some(options), Some("huggingface")) = (options, provider.as_ref().and_then(Value::as_str)) {
        options.remove("huggingface");
    }
}

fn lacks_mistral_url(row: &Record) -> bool {
    let url = model(row).and_then(|model| model.get("options")?.get("upstream_url"));
    is(row, "ai-proxy") && provider(row) == Some("mistral") && url.is_none_or(Value::is_null)
}

fn add_mistral_url(row: &mut Record) {
    let options = object_at(object_at(config_mut(row), "model"), "options");
    options.insert("upstream_url".to_owned(), "https://api.mistral.ai:443".into());
}

fn flatten_acme_redis(row: &mut Record) {
    let storage = object_at(config_mut(row), "storage_config");
    let new = std::mem::take(object_at(storage, "redis"));
    let none = Record::new();
    let extra = new.get("extra_options").and_then(Value::as_object).unwrap_or(&none);
    let old = object_at(storage, "redis");
    for name in ["host", "port", "database", "ssl", "ssl_verify"] {
        copy(&new, name, old, name);
    }
    copy(&new, "password", old, "auth");
    copy(&new, "server_name", old, "ssl_server_name");
    copy(extra, "namespace", old, "namespace");
    copy(extra, "scan_count", old, "scan_count");
}

fn flatten_redis(row: &mut Record) {
    let config = config_mut(row);
    let Some(Value::Object(redis)) = config.remove("redis") else { return };
    for name in ["host", "port", "username", "password", "database", "timeout", "ssl", "ssl_verify", "server_name"] {
        copy(&redis, name, config, &format!("redis_{name}"));
    }
}

/// Old names of queue settings: field, member of `queue` that it is taken from, value when there is none.
type OldQueue = [(&'static str, &'static str, u32)];

const STATSD_QUEUE: &OldQueue =
    &[("retry_count", "", 10), ("queue_size", "max_batch_size", 1), ("flush_timeout", "max_coalescing_delay", 2)];
const OPENTELEMETRY_QUEUE: &OldQueue =
    &[("batch_span_count", "max_batch_size", 200), ("batch_flush_delay", "max_coalescing_delay", 3)];

fn old_queue(row: &Record) -> &'static OldQueue {
    match text(row, "name") {
        Some("statsd" | "datadog") => STATSD_QUEUE,
        Some("opentelemetry") => OPENTELEMETRY_QUEUE,
        _ => &[],
    }
}

fn lacks_old_queue(row: &Record) -> bool {
    let is_number = |field: &str| config(row).and_then(|config| config.get(field)).is_some_and(Value::is_number);
    old_queue(row).iter().any(|(field, _, _)| !is_number(field))
}

fn add_old_queue(row: &mut Record) {
    let fields = old_queue(row);
    let config = config_mut(row);
    for (field, source, default) in fields {
        if !config.get(*field).is_some_and(Value::is_number) {
            let value = config.get("queue").and_then(|queue| queue.get(*source)).filter(|value| value.is_number());
            let value = value.cloned().unwrap_or_else(|| (*default).into());
            config.insert((*field).to_owned(), value);
        }
    }
}

fn rename_session(row: &mut Record) {
    let config = config_mut(row);
    for (new, old) in SESSION_NAMES {
        rename(config, new, old);
    }
    if text(config, "cookie_samesite") == Some("Default") {
        config.insert("cookie_samesite".to_owned(), "Lax".into());
    }
}

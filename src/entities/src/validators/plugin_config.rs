//! Rules over the settings of one bundled plugin.

use crate::engine::shorthand::UrlParts;
use serde_json::Value;

pub(crate) fn run(name: &str, value: &Value) -> Result<(), String> {
    match name {
        "period_order" => period_order(value),
        "rate_limiting_config" => rate_limiting(value),
        "request_termination_config" => request_termination(value),
        "oauth2_one_flow" => oauth2_one_flow(value),
        "http_log_auth_conflict" => http_log_authorization(value),
        "unique_static_tags" => unique_static_tags(value),
        "otel_attributes" => otel_attributes(value),
        "pem_key_pair" => crate::keys::check_pair(value),
        _ => Ok(()),
    }
}

const PERIODS: [&str; 6] = ["second", "minute", "hour", "day", "month", "year"];

fn period_order(config: &Value) -> Result<(), String> {
    let limits: Vec<(&str, f64)> =
        PERIODS.iter().filter_map(|period| Some((*period, config.get(period)?.as_f64()?))).collect();
    for (index, (short, lower)) in limits.iter().enumerate() {
        if let Some((long, higher)) = limits[index + 1..].iter().find(|(_, higher)| higher < lower) {
            return Err(format!(
                "The limit for {long}({higher:.1}) cannot be lower than the limit for {short}({lower:.1})"
            ));
        }
    }
    Ok(())
}

fn rate_limiting(config: &Value) -> Result<(), String> {
    period_order(config)?;
    let sync_rate = config.get("sync_rate").and_then(Value::as_f64).unwrap_or(-1.0);
    if sync_rate == -1.0 {
        return Ok(());
    }
    if config.get("policy").and_then(Value::as_str) != Some("redis") {
        return Err("sync_rate can only be used with the redis policy".to_owned());
    }
    if sync_rate < 0.02 {
        return Err("Config option 'sync_rate' must not be set lower than 0.02".to_owned());
    }
    Ok(())
}

fn request_termination(config: &Value) -> Result<(), String> {
    let given = |name: &str| config.get(name).is_some_and(|value| !value.is_null() && *value != Value::Bool(false));
    if given("message") && (given("content_type") || given("body")) {
        return Err("message cannot be used with content_type or body".to_owned());
    }
    if given("content_type") && !given("body") {
        return Err("content_type requires a body".to_owned());
    }
    if given("echo") && (given("content_type") || given("body")) {
        return Err("echo cannot be used with content_type and body".to_owned());
    }
    Ok(())
}

fn oauth2_one_flow(config: &Value) -> Result<(), String> {
    let flows =
        ["enable_authorization_code", "enable_implicit_grant", "enable_client_credentials", "enable_password_grant"];
    if flows.iter().any(|flow| config.get(flow) == Some(&Value::Bool(true))) {
        return Ok(());
    }
    Err(format!("at least one of these fields must be true: {}", flows.join(", ")))
}

fn http_log_authorization(config: &Value) -> Result<(), String> {
    let endpoint = config.get("http_endpoint").and_then(Value::as_str).unwrap_or_default();
    let after_scheme = endpoint.split_once("//").map_or(endpoint, |(_, rest)| rest);
    let user_info = UrlParts::of(endpoint).host.is_some()
        && after_scheme.split('/').next().is_some_and(|authority| authority.contains('@'));
    let headers = config.get("headers").and_then(Value::as_object);
    let authorization = headers.is_some_and(|headers| headers.keys().any(|n| n.eq_ignore_ascii_case("authorization")));
    if user_info && authorization {
        return Err("specifying both an 'Authorization' header and user info in 'http_endpoint' is not allowed".into());
    }
    Ok(())
}

fn unique_static_tags(tags: &Value) -> Result<(), String> {
    let mut seen = std::collections::BTreeSet::new();
    let names = tags.as_array().into_iter().flatten().filter_map(|tag| tag.get("name")?.as_str());
    match names.into_iter().find(|name| !seen.insert(name.to_owned())) {
        Some(name) => Err(format!("repeated tags are not allowed: {name}")),
        None => Ok(()),
    }
}

fn otel_attributes(attributes: &Value) -> Result<(), String> {
    let empty = attributes.as_object().into_iter().flatten().any(|(_, value)| value.as_str() == Some(""));
    if empty { Err("required field missing".to_owned()) } else { Ok(()) }
}

/// Key prefixes the acme plugin keeps for itself.
const ACME_PREFIXES: [&str; 4] = ["kong_acme:", "renew_config", "renew_last_run", "kong_acme"];

pub(crate) fn acme_namespace(text: &str) -> Result<(), String> {
    match ACME_PREFIXES.iter().find(|prefix| text.starts_with(*prefix)) {
        Some(prefix) => Err(format!("namespace can't be prefixed with reserved word: {prefix}")),
        None => Ok(()),
    }
}

//! Checks over a whole record that no declaration expresses.

use crate::engine::checks::Fault;
use crate::engine::validate::Validation;
use crate::engine::value_at;
use crate::keys;
use crate::registry::NodeKind;
use serde_json::{Map, Value};

/// Runs the check of this name.
pub(crate) fn run(validation: &Validation<'_>, name: &str, record: &Map<String, Value>) -> Vec<Fault> {
    let text = |path: &str| value_at(record, path).as_str();
    let outcome = match name {
        "cert_matches_key" => keys::certificate_matches_key(text("cert"), text("key"), "certificate"),
        "cert_alt_matches_key_alt" => {
            keys::certificate_matches_key(text("cert_alt"), text("key_alt"), "alternative certificate")
        }
        "cert_types_differ" => keys::types_differ(text("cert"), text("cert_alt")),
        "ca_certificate_is_ca" => keys::is_authority(text("cert"), validation.now_seconds),
        "jwk_and_pem_content" => keys::jwk_content(text("jwk"), text("kid")),
        "acme_storage_mode" => acme_storage(validation.kind, text("config.storage")),
        "proxy_url_scheme" => proxy_url(text("config.proxy_url")),
        "log_statistics_supported" => log_statistics(record),
        "wasm_enabled" => Err("no proxy-wasm filters are available on this node".to_owned()),
        "route_expression_rules" => super::route::rules(record),
        _ => Ok(()),
    };
    outcome.err().map(Fault::entity).into_iter().collect()
}

fn acme_storage(kind: NodeKind, storage: Option<&str>) -> Result<(), String> {
    match (kind, storage) {
        (NodeKind::DbLess, Some("kong")) => Err("\"kong\" storage can't be used with dbless mode".to_owned()),
        (NodeKind::ControlPlane, Some("shm")) => Err("\"shm\" storage can't be used in Hybrid mode".to_owned()),
        _ => Ok(()),
    }
}

fn proxy_url(url: Option<&str>) -> Result<(), String> {
    match url.and_then(|url| url.split_once("://")) {
        Some((scheme, _)) if scheme != "http" => Err("proxy_url scheme must be http".to_owned()),
        _ => Ok(()),
    }
}

/// Pairs that do not report usage.
const NO_STATISTICS: [(&str, &str); 4] = [
    ("llm/v1/completions", "anthropic"),
    ("llm/v1/chat", "llama2"),
    ("llm/v1/completions", "llama2"),
    ("llm/v1/completions", "huggingface"),
];

fn log_statistics(config: &Map<String, Value>) -> Result<(), String> {
    if *value_at(config, "logging.log_statistics") != Value::Bool(true) {
        return Ok(());
    }
    let route_type = value_at(config, "route_type").as_str().unwrap_or_default();
    let provider = value_at(config, "model.provider").as_str().unwrap_or_default();
    let raw_llama = value_at(config, "model.options.llama2_format").as_str() != Some("raw");
    if NO_STATISTICS.contains(&(route_type, provider)) && (provider != "llama2" || !raw_llama) {
        return Err(format!("{provider} does not support statistics when route_type is {route_type}"));
    }
    Ok(())
}

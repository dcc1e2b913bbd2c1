//! Named rules that schemas refer to by `validator` and by the `check` of a custom entity check.

pub(crate) mod entity;
mod host;
mod path;
mod plugin_config;
mod route;
mod text;

pub(crate) use host::parse_address;

use serde_json::Value;

/// Runs the rule of this name. A name without rule (a function of a Lua plugin) accepts everything.
pub(crate) fn run(name: &str, value: &Value) -> Result<(), Value> {
    let outcome = match (name, value) {
        (_, Value::String(given)) => of_text(name, given),
        _ => plugin_config::run(name, value),
    };
    outcome.map_err(Value::from)
}

fn of_text(name: &str, given: &str) -> Result<(), String> {
    match name {
        "host" => host::host(given),
        "host_with_optional_port" => host::host_with_optional_port(given),
        "route_host" => host::host_with_optional_port(&given.replace('*', "abc")),
        "sni" => host::sni(given),
        "wildcard_host" => host::wildcard_host(given),
        "upstream_name" => host::upstream_name(given),
        "target_address" => host::target(given),
        "ip" => host::ip(given),
        "ip_or_cidr" => host::ip_or_cidr(given),
        "uri_path" => path::uri_path(given),
        "route_path" => path::route_path(given),
        "url" => text::url(given),
        "redirect_uri" => text::redirect_uri(given),
        "header_name" => text::header_name(given),
        "header_name_prefix" => text::header_name_prefix(given),
        "header_rename_pair" => text::header_rename_pair(given),
        "name_value_template" => text::name_value_template(given),
        "http_token" => text::http_token(given),
        "tag" => text::tag(given),
        "utf8_name" => text::utf8_name(given),
        "star_or_regex" => text::star_or_regex(given),
        "acme_namespace" => plugin_config::acme_namespace(given),
        "certificate_pem" => crate::keys::check_certificate(given),
        "private_key_pem" => crate::keys::check_private_key(given),
        "public_key_pem" => crate::keys::check_public_key(given),
        // Shared memory zones and Lua code are the business of the node that has them.
        _ => Ok(()),
    }
}

//! Routes written out as expressions.
//!
//! Source: Kong 3.9.1 `kong/router/transform.lua`, `get_expression`, `amending_expression`.

use crate::request::split_host_port;
use gwctl_entities::view::{Endpoint, Route};
use std::borrow::Cow;
use std::net::Ipv4Addr;

/// The expression of a route: its own, or what its fields amount to. Empty when there is neither.
///
/// Kong's control plane compiles this text for every route, so its errors quote it.
pub fn expression(route: &Route) -> String {
    match &route.expression {
        Some(expression) => expression.clone(),
        None => of_fields(route, &route.paths.iter().map(String::as_str).collect::<Vec<_>>()),
    }
}

/// The fields of a route as an expression, with some of its paths only.
pub(crate) fn of_fields(route: &Route, paths: &[&str]) -> String {
    let stream = route
        .protocols
        .first()
        .is_some_and(|protocol| matches!(protocol.as_str(), "tcp" | "udp" | "tls" | "tls_passthrough"));
    let mut parts = Vec::new();
    if !route.snis.is_empty() {
        // Without TLS there is no server name to ask for.
        let tls = if stream { "tls" } else { "https" };
        parts.push(format!("(net.protocol != r#\"{tls}\"# || {})", any_of(route.snis.iter().map(|sni| sni_test(sni)))));
    }
    parts.extend(endpoints("src", &route.sources));
    parts.extend(endpoints("dst", &route.destinations));
    if stream {
        return parts.join(" && ");
    }
    if !route.methods.is_empty() {
        parts.push(any_of(route.methods.iter().map(|method| format!("http.method == {}", literal(method)))));
    }
    if !route.hosts.is_empty() {
        parts.push(any_of(route.hosts.iter().map(|host| host_test(host))));
    }
    if !paths.is_empty() {
        parts.push(any_of(paths.iter().map(|path| path_test(path))));
    }
    for (name, values) in &route.headers {
        let name = name.to_ascii_lowercase().replace('-', "_");
        parts.push(any_of(values.iter().map(|value| header_test(&name, value))));
    }
    parts.join(" && ")
}

fn any_of(tests: impl Iterator<Item = String>) -> String {
    format!("({})", tests.collect::<Vec<_>>().join(" || "))
}

/// A text as a literal: raw where it can be.
fn literal(text: &str) -> String {
    if text.contains("\"#") {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        format!("r#\"{text}\"#")
    }
}

fn sni_test(sni: &str) -> String {
    if let Some(prefix) = sni.strip_suffix('*').filter(|_| !sni.starts_with('*')) {
        return format!("tls.sni ^= {}", literal(prefix));
    }
    // The closing dot of a full name is not compared.
    let name = sni.strip_suffix('.').filter(|name| !name.is_empty()).unwrap_or(sni);
    match name.strip_prefix('*') {
        Some(suffix) => format!("tls.sni =^ {}", literal(suffix)),
        None => format!("tls.sni == {}", literal(name)),
    }
}

fn host_test(host: &str) -> String {
    let (name, port) = split_host_port(host);
    let (operator, name) = match (name.strip_prefix('*'), name.strip_suffix('*')) {
        (Some(suffix), _) => ("=^", suffix),
        (None, Some(prefix)) => ("^=", prefix),
        (None, None) => ("==", name),
    };
    let test = format!("http.host {operator} r#\"{name}\"#");
    match port {
        Some(port) => format!("({test} && net.dst.port == {port})"),
        None => test,
    }
}

fn path_test(path: &str) -> String {
    match path.strip_prefix('~') {
        Some(source) => format!("http.path ~ {}", literal(&format!("^{}", source.replace("?<", "?P<")))),
        None => format!("http.path ^= {}", literal(path)),
    }
}

fn header_test(name: &str, value: &str) -> String {
    let (operator, value) = match value.strip_prefix("~*") {
        Some(source) => ("~", source),
        None => ("==", value),
    };
    format!("any(lower(http.headers.{name})) {operator} {}", literal(&value.to_ascii_lowercase()))
}

fn endpoints(side: &str, endpoints: &[Endpoint]) -> Option<String> {
    let test = |endpoint: &Endpoint| {
        let port = endpoint.port.map(|port| format!("net.{side}.port == {port}"));
        let ip = endpoint.ip.as_deref().map(|ip| ip_test(side, ip));
        match (ip, port) {
            (Some(ip), Some(port)) => format!("({ip} && {port})"),
            (ip, port) => ip.or(port).unwrap_or_default(),
        }
    };
    (!endpoints.is_empty()).then(|| any_of(endpoints.iter().map(test)))
}

/// Networks may be written with any of their addresses; an expression wants the first.
fn ip_test(side: &str, ip: &str) -> String {
    let Some((address, length)) = ip.split_once('/') else { return format!("net.{side}.ip == {ip}") };
    let first = match (address.parse::<Ipv4Addr>(), length.parse::<u32>()) {
        (Ok(address), Ok(length @ 0..=32)) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            Ipv4Addr::from(u32::from(address) & mask).to_string()
        }
        _ => address.to_owned(),
    };
    format!("net.{side}.ip in {first}/{length}")
}

/// An expression with the field `net.port`, which Kong has renamed to `net.dst.port`, put right.
pub(crate) fn amended(text: &str) -> Cow<'_, str> {
    const OLD: &str = "net.port";
    if !text.contains(OLD) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while let Some(at) = rest.find(OLD) {
        let after = &rest[at + OLD.len()..];
        out.push_str(&rest[..at]);
        let compared = after.trim_start().starts_with(['=', '>', '<', '!']);
        out.push_str(if compared { "net.dst.port" } else { OLD });
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gwctl_entities::view::from_record;
    use serde_json::{Value, json};

    fn of(mut fields: Value) -> String {
        fields["id"] = json!("1");
        expression(&from_record(fields.as_object().unwrap()).unwrap())
    }

    #[test]
    fn fields_become_expressions() {
        for (fields, expected) in [
            (json!({}), ""),
            (json!({"expression": "a == 1", "paths": []}), "a == 1"),
            (json!({"methods": ["GET", "PUT"]}), "(http.method == r#\"GET\"# || http.method == r#\"PUT\"#)"),
            (
                json!({"hosts": ["a.test:81", "*.b", "c.*"], "paths": ["/a", "~/(?<id>\\d)"]}),
                "((http.host == r#\"a.test\"# && net.dst.port == 81) || http.host =^ r#\".b\"# || \
                 http.host ^= r#\"c.\"#) && (http.path ^= r#\"/a\"# || http.path ~ r#\"^/(?P<id>\\d)\"#)",
            ),
            (json!({"paths": ["/a\"#\\"]}), "(http.path ^= \"/a\\\"#\\\\\")"),
            (
                json!({"headers": {"X-A": ["V", "~*^B"]}}),
                "(any(lower(http.headers.x_a)) == r#\"v\"# || any(lower(http.headers.x_a)) ~ r#\"^b\"#)",
            ),
            (json!({"headers": {"x": []}}), "()"),
            (
                json!({"snis": ["a.", "*.b.", "c.*"]}),
                "(net.protocol != r#\"https\"# || (tls.sni == r#\"a\"# || tls.sni =^ r#\".b\"# || \
                 tls.sni ^= r#\"c.\"#))",
            ),
            (
                json!({"protocols": ["tcp"], "sources": [{"ip": "10.1.2.3/8", "port": 1}, {"port": 2}],
                       "destinations": [{"ip": "::1"}], "paths": ["/x"]}),
                "((net.src.ip in 10.0.0.0/8 && net.src.port == 1) || net.src.port == 2) && (net.dst.ip == ::1)",
            ),
        ] {
            assert_eq!(of(fields.clone()), expected, "{fields}");
        }
    }

    #[test]
    fn the_old_name_of_the_port_is_understood() {
        for (text, expected) in [
            ("net.port == 1 && net.port>2", "net.dst.port == 1 && net.dst.port>2"),
            ("http.path == \"net.port\"", "http.path == \"net.port\""),
        ] {
            assert_eq!(amended(text), expected);
        }
    }
}

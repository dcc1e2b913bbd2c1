//! Names that settings refer to as `bundled`, and names of headers.

/// Plugins meant by `plugins = bundled`, in the order of Kong 3.9.1.
#[rustfmt::skip]
pub const BUNDLED_PLUGINS: &[&str] = &[
    "jwt", "acl", "correlation-id", "cors", "oauth2", "tcp-log", "udp-log", "file-log", "http-log", "key-auth", "hmac-auth",
    "basic-auth", "ip-restriction", "request-transformer", "response-transformer", "request-size-limiting", "rate-limiting",
    "response-ratelimiting", "syslog", "loggly", "datadog", "ldap-auth", "statsd", "bot-detection", "aws-lambda",
    "request-termination", "prometheus", "proxy-cache", "session", "acme", "grpc-gateway", "grpc-web", "pre-function",
    "post-function", "azure-functions", "zipkin", "opentelemetry", "ai-proxy", "ai-prompt-decorator", "ai-prompt-template",
    "ai-prompt-guard", "ai-request-transformer", "ai-response-transformer", "standard-webhooks", "redirect",
];

/// Vaults meant by `vaults = bundled`.
pub const BUNDLED_VAULTS: &[&str] = &["env"];

/// What can be traced. Source: Kong 3.9.1 `kong/observability/tracing/instrumentation.lua`.
pub(crate) const TRACED: &[&str] = &[
    "off",
    "all",
    "request",
    "router",
    "balancer",
    "dns_query",
    "http_client",
    "db_query",
    "plugin_rewrite",
    "plugin_access",
    "plugin_header_filter",
];

/// What may stand in `headers`, each with the headers it stands for.
pub(crate) const RESPONSE_HEADERS: &[(&str, &[&str])] = &[
    ("server_tokens", &["Server", "Via"]),
    (
        "latency_tokens",
        &["X-Kong-Proxy-Latency", "X-Kong-Response-Latency", "X-Kong-Admin-Latency", "X-Kong-Upstream-Latency"],
    ),
    ("Server", &[]),
    ("Via", &[]),
    ("X-Kong-Proxy-Latency", &[]),
    ("X-Kong-Response-Latency", &[]),
    ("X-Kong-Admin-Latency", &[]),
    ("X-Kong-Upstream-Latency", &[]),
    ("X-Kong-Upstream-Status", &[]),
    ("X-Kong-Request-Id", &[]),
];

/// What may stand in `headers_upstream`.
pub(crate) const UPSTREAM_HEADERS: &[(&str, &[&str])] = &[("X-Kong-Request-Id", &[])];

/// The names a list stands for: `bundled` is replaced, `off` is none.
pub(crate) fn expanded(list: &[String], bundled: &[&str]) -> std::collections::BTreeSet<String> {
    let mut names = std::collections::BTreeSet::new();
    for name in list.iter().filter(|name| *name != "off") {
        match name.as_str() {
            "bundled" => names.extend(bundled.iter().map(|name| (*name).to_owned())),
            name => _ = names.insert(name.to_owned()),
        }
    }
    names
}

/// The headers a list stands for, by their canonical spelling.
pub(crate) fn headers(
    list: &[String],
    known: &[(&'static str, &[&'static str])],
) -> std::collections::BTreeSet<&'static str> {
    let chosen = known.iter().filter(|(name, _)| list.iter().any(|item| item.eq_ignore_ascii_case(name)));
    chosen.flat_map(|(name, parts)| std::iter::once(*name).chain(parts.iter().copied())).collect()
}

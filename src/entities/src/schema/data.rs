//! The bundled schema files, embedded.

use super::SchemaError;
use serde_json::Value;

/// One embedded schema file.
pub(crate) struct EntityFile {
    pub(crate) name: &'static str,
    text: &'static str,
}

impl EntityFile {
    pub(crate) fn value(&self) -> Result<Value, SchemaError> {
        serde_json::from_str(self.text)
            .map_err(|error| SchemaError { path: self.name.to_owned(), fault: error.to_string() })
    }
}

macro_rules! files {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$(EntityFile {
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/", $folder, "/", $name, ".json")),
        }),+]
    };
}

/// Parents before children.
pub(crate) fn entity_files() -> &'static [EntityFile] {
    files!("entities":
        "workspaces",
        "parameters",
        "clustering_data_planes",
        "tags",
        "ca_certificates",
        "certificates",
        "key_sets",
        "keys",
        "vaults",
        "consumers",
        "services",
        "routes",
        "upstreams",
        "targets",
        "snis",
        "filter_chains",
        "plugins",
        "keyauth_credentials",
        "basicauth_credentials",
        "hmacauth_credentials",
        "jwt_secrets",
        "acls",
        "oauth2_credentials",
        "oauth2_authorization_codes",
        "oauth2_tokens",
        "acme_storage",
        "sessions",
        "ratelimiting_metrics",
    )
}

/// Ascending by name.
pub(crate) fn plugin_files() -> &'static [EntityFile] {
    files!("plugins":
        "acl",
        "acme",
        "ai-prompt-decorator",
        "ai-prompt-guard",
        "ai-prompt-template",
        "ai-proxy",
        "ai-request-transformer",
        "ai-response-transformer",
        "aws-lambda",
        "azure-functions",
        "basic-auth",
        "bot-detection",
        "correlation-id",
        "cors",
        "datadog",
        "file-log",
        "grpc-gateway",
        "grpc-web",
        "hmac-auth",
        "http-log",
        "ip-restriction",
        "jwt",
        "key-auth",
        "ldap-auth",
        "loggly",
        "oauth2",
        "opentelemetry",
        "post-function",
        "pre-function",
        "prometheus",
        "proxy-cache",
        "rate-limiting",
        "redirect",
        "request-size-limiting",
        "request-termination",
        "request-transformer",
        "response-ratelimiting",
        "response-transformer",
        "session",
        "standard-webhooks",
        "statsd",
        "syslog",
        "tcp-log",
        "udp-log",
        "zipkin",
    )
}

pub(crate) fn vault_files() -> &'static [EntityFile] {
    files!("vaults": "env")
}

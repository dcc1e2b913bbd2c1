//! Plugin settings that older nodes do not know, as data.
//!
//! Source: Kong 3.9.1 `kong/clustering/compat/removed_fields.lua`. Dots descend into records.

use super::Version;

/// Settings of one plugin.
pub(super) type Fields = (&'static str, &'static [&'static str]);

/// Version that introduced the settings, and the settings: nodes older than it must not be sent them. Ascending.
pub(super) const REMOVED: &[(Version, &[Fields])] = &[
    (Version::new(3, 1, 0), BEFORE_3_1),
    (Version::new(3, 2, 0), BEFORE_3_2),
    (Version::new(3, 3, 0), BEFORE_3_3),
    (Version::new(3, 4, 0), BEFORE_3_4),
    (Version::new(3, 5, 0), BEFORE_3_5),
    (Version::new(3, 6, 0), BEFORE_3_6),
    (Version::new(3, 7, 0), BEFORE_3_7),
    (Version::new(3, 8, 0), BEFORE_3_8),
    (Version::new(3, 9, 1), BEFORE_3_9_1),
];

const BEFORE_3_1: &[Fields] = &[
    (
        "acme",
        &[
            "enable_ipv4_common_name",
            "storage_config.redis.ssl",
            "storage_config.redis.ssl_verify",
            "storage_config.redis.ssl_server_name",
        ],
    ),
    ("rate-limiting", &["error_code", "error_message"]),
    ("response-ratelimiting", &["redis_ssl", "redis_ssl_verify", "redis_server_name"]),
    ("datadog", &["retry_count", "queue_size", "flush_timeout"]),
    ("statsd", &["retry_count", "queue_size", "flush_timeout"]),
    ("session", &["cookie_persistent"]),
    ("zipkin", &["http_response_header_for_traceid"]),
];

const BEFORE_3_2: &[Fields] = &[
    ("statsd", &["tag_style"]),
    (
        "session",
        &[
            "audience",
            "absolute_timeout",
            "remember_cookie_name",
            "remember_rolling_timeout",
            "remember_absolute_timeout",
            "response_headers",
            "request_headers",
        ],
    ),
    ("aws-lambda", &["aws_imds_protocol_version"]),
    ("zipkin", &["phase_duration_flavor"]),
];

const BEFORE_3_3: &[Fields] = &[
    ("acme", &["account_key", "storage_config.redis.namespace"]),
    ("aws-lambda", &["disable_https"]),
    ("proxy-cache", &["ignore_uri_case"]),
    ("opentelemetry", &["http_response_header_for_traceid", "queue", "header_type"]),
    ("http-log", &["queue"]),
    ("statsd", &["queue"]),
    ("datadog", &["queue"]),
    ("zipkin", &["queue"]),
];

const BEFORE_3_4: &[Fields] = &[("rate-limiting", &["sync_rate"]), ("proxy-cache", &["response_headers"])];

const BEFORE_3_5: &[Fields] = &[
    ("acme", &["storage_config.redis.scan_count"]),
    ("cors", &["private_network"]),
    ("session", &["read_body_for_logout"]),
];

const BEFORE_3_6: &[Fields] = &[("opentelemetry", &["sampling_rate"]), ("basic-auth", &["realm"])];

const BEFORE_3_7: &[Fields] = &[
    ("opentelemetry", &["propagation"]),
    ("zipkin", &["propagation"]),
    ("ai-proxy", &["response_streaming", "model.options.upstream_path"]),
    ("ai-request-transformer", &["llm.model.options.upstream_path"]),
    ("ai-response-transformer", &["llm.model.options.upstream_path"]),
    ("key-auth", &["realm"]),
];

const BEFORE_3_8: &[Fields] = &[
    ("response-transformer", &["rename.json"]),
    ("aws-lambda", &["empty_arrays_mode"]),
    ("ldap-auth", &["realm"]),
    ("hmac-auth", &["realm"]),
    ("jwt", &["realm"]),
    ("oauth2", &["realm"]),
    ("opentelemetry", &["traces_endpoint", "logs_endpoint", "queue.concurrency_limit"]),
    (
        "ai-proxy",
        &[
            "max_request_body_size",
            "model.options.gemini",
            "auth.gcp_use_service_account",
            "auth.gcp_service_account_json",
            "model.options.bedrock",
            "auth.aws_access_key_id",
            "auth.aws_secret_access_key",
            "auth.allow_override",
            "model_name_header",
        ],
    ),
    ("ai-prompt-decorator", &["max_request_body_size"]),
    ("ai-prompt-guard", &["match_all_roles", "max_request_body_size"]),
    ("ai-prompt-template", &["max_request_body_size"]),
    ("ai-request-transformer", TRANSFORMER_BEFORE_3_8),
    ("ai-response-transformer", TRANSFORMER_BEFORE_3_8),
    ("prometheus", &["ai_metrics"]),
    ("acl", &["always_use_authenticated_groups"]),
    ("http-log", &["queue.concurrency_limit"]),
    ("statsd", &["queue.concurrency_limit"]),
    ("datadog", &["queue.concurrency_limit"]),
    ("zipkin", &["queue.concurrency_limit"]),
];

const TRANSFORMER_BEFORE_3_8: &[&str] = &[
    "max_request_body_size",
    "llm.model.options.gemini",
    "llm.auth.gcp_use_service_account",
    "llm.auth.gcp_service_account_json",
    "llm.model.options.bedrock",
    "llm.auth.aws_access_key_id",
    "llm.auth.aws_secret_access_key",
    "llm.auth.allow_override",
];

const BEFORE_3_9_1: &[Fields] =
    &[("ai-proxy", &["llm_format"]), ("ai-prompt-guard", &["llm_format"]), ("ai-prompt-decorator", &["llm_format"])];

//! What older nodes are sent, rewrite by rewrite.

use super::*;
use crate::ConfigTable;
use gwctl_entities::Record;
use proptest::prelude::*;
use serde_json::{Value, json};

fn record(value: Value) -> Record {
    serde_json::from_value(value).unwrap()
}

fn table(entity: &str, rows: Value) -> ConfigTable {
    let rows = rows.as_array().unwrap().iter().cloned().map(record).collect();
    ConfigTable::from_iter([(entity.to_owned(), rows)])
}

/// The one row of an entity as a node of this version is sent it.
fn sent(entity: &str, row: Value, node: &str) -> Value {
    let table = table(entity, json!([row]));
    let variant = Variant::of(Version::parse(node).unwrap());
    let rewritten = rewrite(&table, variant).map_or(table, |rewritten| rewritten.table);
    Value::Object(rewritten.rows(entity)[0].clone())
}

/// The settings of a plugin as a node of this version is sent them.
fn settings(name: &str, config: Value, node: &str) -> Value {
    sent("plugins", json!({"name": name, "config": config}), node)["config"].clone()
}

#[test]
fn a_node_of_the_same_or_a_newer_patch_shares_the_bytes() {
    let table = table("plugins", json!([{"name": "ai-proxy", "config": {"llm_format": "openai"}}]));
    for node in ["3.9.1", "3.9.9", "3.9.1.5"] {
        assert_eq!(rewrite(&table, Variant::of(Version::parse(node).unwrap())), None, "{node}");
    }
    assert!(rewrite(&table, Variant::of(Version::new(3, 9, 0))).is_some());
}

#[test]
fn a_table_without_anything_new_shares_the_bytes_with_every_node() {
    let table = table("routes", json!([{"id": "r", "updated_at": 1}]));
    assert_eq!(rewrite(&table, Variant::of(Version::new(3, 0, 0))), None);
}

#[test]
fn untouched_entities_are_shared_and_each_loss_is_named_once() {
    let mut table = table(
        "plugins",
        json!([
            {"name": "acl", "config": {"always_use_authenticated_groups": true}},
            {"name": "acl", "config": {"always_use_authenticated_groups": false}},
        ]),
    );
    table.set("routes", vec![record(json!({"id": "r"}))].into());
    let rewritten = rewrite(&table, Variant::of(Version::new(3, 7, 1))).unwrap();
    assert_eq!(rewritten.notices.into_iter().collect::<Vec<_>>(), ["acl: always_use_authenticated_groups is left out"]);
    assert!(std::ptr::eq(rewritten.table.rows("routes"), table.rows("routes")));
    assert_eq!(table.rows("plugins")[0]["config"], json!({"always_use_authenticated_groups": true}));
}

#[test]
fn versions_between_two_thresholds_are_one_variant() {
    assert_eq!(Variant::of(Version::new(3, 7, 0)), Variant::of(Version::new(3, 7, 9)));
    assert_ne!(Variant::of(Version::new(3, 7, 9)), Variant::of(Version::new(3, 8, 0)));
    assert_eq!(Variant::of(Version::new(3, 9, 1)), Variant::CURRENT);
}

#[test]
fn ai_providers_an_older_node_lacks_become_openai() {
    let proxy = |provider: &str| {
        json!({"route_type": "llm/v1/chat", "model": {
            "provider": provider, "options": {"huggingface": {"use_cache": true}, "top_k": 1},
        }})
    };
    let openai = |route: &str| json!({"route_type": route, "model": {"provider": "openai", "options": {"top_k": 1}}});
    assert_eq!(settings("ai-proxy", proxy("huggingface"), "3.8.1"), openai("preserve"));
    assert_eq!(settings("ai-proxy", proxy("huggingface"), "3.6.0"), openai("llm/v1/chat"));
    assert_eq!(settings("ai-proxy", proxy("gemini"), "3.8.0"), proxy("gemini"));
    assert_eq!(settings("ai-proxy", proxy("bedrock"), "3.7.0")["model"]["provider"], "openai");
    let transformer = json!({"llm": {"model": {"provider": "gemini", "options": {"gemini": {}, "top_k": 1}}}});
    let expected = json!({"llm": {"model": {"provider": "openai", "options": {"top_k": 1}}}});
    for name in ["ai-request-transformer", "ai-response-transformer"] {
        assert_eq!(settings(name, transformer.clone(), "3.7.0"), expected);
    }
}

#[test]
fn mistral_without_a_url_gets_the_public_one() {
    let url = |options: Value| {
        let config = json!({"model": {"provider": "mistral", "options": options}});
        settings("ai-proxy", config, "3.7.1")["model"]["options"]["upstream_url"].clone()
    };
    assert_eq!(url(Value::Null), "https://api.mistral.ai:443");
    assert_eq!(url(json!({"upstream_url": null})), "https://api.mistral.ai:443");
    assert_eq!(url(json!({"upstream_url": "http://own"})), "http://own");
}

#[test]
fn redis_settings_are_flat_before_3_6() {
    let redis = json!({"host": "h", "port": 1, "password": "p", "username": null, "server_name": "s"});
    let config = json!({"policy": "redis", "redis": redis, "redis_timeout": 2000});
    let flat = json!({"policy": "redis", "redis_host": "h", "redis_port": 1, "redis_password": "p",
                      "redis_username": null, "redis_server_name": "s"});
    for name in ["rate-limiting", "response-ratelimiting"] {
        assert_eq!(settings(name, config.clone(), "3.5.0"), flat, "{name}");
        assert_eq!(settings(name, config.clone(), "3.6.0"), config, "{name}");
    }
    let local = json!({"policy": "local", "redis": redis});
    assert_eq!(settings("rate-limiting", local.clone(), "3.5.0"), local);
    let mut acme = json!({"storage": "redis", "storage_config": {"redis": redis}});
    acme["storage_config"]["redis"]["extra_options"] = json!({"namespace": "n", "scan_count": 10});
    let expected =
        json!({"host": "h", "port": 1, "auth": "p", "ssl_server_name": "s", "namespace": "n", "scan_count": 10});
    assert_eq!(settings("acme", acme, "3.5.0")["storage_config"]["redis"], expected);
}

#[test]
fn a_rewrite_of_one_plugin_is_not_lost_because_the_next_needs_none() {
    let redis = json!({"policy": "redis", "redis": {"host": "h"}});
    let rows = json!([
        {"id": "1", "name": "rate-limiting", "config": redis},
        {"id": "2", "name": "cors", "config": {"origins": ["*"]}},
    ]);
    let rewritten = rewrite(&table("plugins", rows), Variant::of(Version::new(3, 5, 0))).expect("something changed");
    let plugins = rewritten.table.rows("plugins");
    assert_eq!((&plugins[0]["config"]["redis_host"], &plugins[1]["config"]["origins"]), (&json!("h"), &json!(["*"])));
}

#[test]
fn tracing_headers_an_older_node_lacks_fall_back() {
    let config = |kind: &str| json!({"header_type": kind, "default_header_type": kind});
    assert_eq!(settings("zipkin", config("gcp"), "3.5.0"), config("gcp"));
    let fallen = json!({"header_type": "preserve", "default_header_type": "b3"});
    assert_eq!(settings("zipkin", config("gcp"), "3.4.0"), fallen);
    assert_eq!(settings("zipkin", config("aws"), "3.4.0"), config("aws"));
    assert_eq!(settings("zipkin", config("aws"), "3.3.0"), fallen);
}

#[test]
fn queues_become_the_old_settings_before_3_3() {
    let config = json!({"retry_count": null, "queue": {"max_batch_size": 7, "max_coalescing_delay": 0.5}});
    let expected = json!({"retry_count": 10, "queue_size": 7, "flush_timeout": 0.5});
    assert_eq!(settings("statsd", config, "3.2.0"), expected);
    let expected = json!({"batch_span_count": 200, "batch_flush_delay": 3});
    assert_eq!(settings("opentelemetry", json!({"queue": null}), "3.2.0"), expected);
    let kept = json!({"retry_count": 1, "queue_size": 2, "flush_timeout": 3});
    assert_eq!(settings("datadog", kept.clone(), "3.1.0"), kept);
    assert_eq!(settings("datadog", kept, "3.0.0"), json!({}));
}

#[test]
fn fields_of_other_entities_follow_the_version() {
    let vault = |prefix: &str| json!({"name": "env", "config": {"prefix": prefix}});
    assert_eq!(sent("vaults", vault("a-b-"), "3.2.0"), vault("a_b_"));
    assert_eq!(sent("vaults", vault("a-b-"), "3.3.0"), vault("a-b-"));
    assert_eq!(sent("snis", json!({"id": "s", "updated_at": 1}), "3.2.0"), json!({"id": "s"}));
    let tls = json!({"protocol": "tls", "tls_verify": null, "ca_certificates": null, "host": "h"});
    assert_eq!(sent("services", tls.clone(), "3.1.0"), json!({"protocol": "tls", "host": "h"}));
    assert_eq!(sent("services", tls.clone(), "3.2.0"), tls);
    let upstream = json!({"algorithm": "latency", "use_srv_name": false});
    assert_eq!(sent("upstreams", upstream.clone(), "3.2.0"), upstream);
    assert_eq!(
        sent("upstreams", upstream.clone(), "3.1.0"),
        json!({"algorithm": "round-robin", "use_srv_name": false})
    );
    assert_eq!(sent("upstreams", upstream, "3.0.0"), json!({"algorithm": "round-robin"}));
    assert_eq!(sent("plugins", json!({"name": "x", "instance_name": null}), "3.1.0"), json!({"name": "x"}));
}

#[test]
fn renamed_settings_take_their_old_names() {
    let session = json!({"idling_timeout": 1, "remember": true, "cookie_same_site": "Default", "audience": "a"});
    let expected = json!({"cookie_idletime": 1, "cookie_persistent": true, "cookie_samesite": "Lax"});
    assert_eq!(settings("session", session.clone(), "3.1.0"), expected);
    assert_eq!(settings("session", session.clone(), "3.2.0"), session);
    let endpoint = json!({"traces_endpoint": "t", "logs_endpoint": "l"});
    assert_eq!(settings("opentelemetry", endpoint, "3.7.0"), json!({"endpoint": "t"}));
}

#[test]
fn every_step_and_every_removed_setting_starts_at_a_threshold() {
    let starts = steps::STEPS.iter().map(|step| step.below).chain(removed::REMOVED.iter().map(|(below, _)| *below));
    for below in starts {
        let parts = Version::parse(&below.to_string()).unwrap();
        assert_ne!(Variant::of(parts), variant_just_below(below), "{below}");
    }
}

/// The variant of the newest node that is older than a version.
fn variant_just_below(version: Version) -> Variant {
    let mut parts = version.to_string().split('.').map(|part| part.parse().unwrap()).collect::<Vec<u32>>();
    if parts[2] > 0 {
        parts[2] -= 1
    } else {
        (parts[1], parts[2]) = (parts[1] - 1, 99)
    }
    Variant::of(Version::new(parts[0], parts[1], parts[2]))
}

proptest! {
    /// Rows of any shape, even such as no schema would let through, must not bring a control plane down, and a second
    /// rewrite finds nothing more to do.
    #[test]
    fn rewriting_is_total_and_settles(
        name in prop_oneof![Just("acme"), Just("ai-proxy"), Just("session"), Just("statsd"), Just("rate-limiting"), Just("opentelemetry")],
        fields in proptest::collection::btree_map(
            prop_oneof![Just("storage"), Just("storage_config"), Just("model"), Just("queue"), Just("redis"), Just("policy"), Just("remember"), Just("llm_format")],
            prop_oneof![Just(json!(null)), Just(json!("redis")), Just(json!({})), Just(json!([])), Just(json!({"provider": "gemini", "options": 1}))],
            0..8,
        ),
        minor in 0_u32..10,
    ) {
        let config: Record = fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let table = table("plugins", json!([{"name": name, "config": config}, {"name": 1}, {}]));
        let variant = Variant::of(Version::new(3, minor, 0));
        if let Some(once) = rewrite(&table, variant) {
            let twice = rewrite(&once.table, variant).map_or_else(|| once.table.clone(), |again| again.table);
            prop_assert_eq!(twice, once.table);
        }
    }
}

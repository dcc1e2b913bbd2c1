//! What the upstream, the client and the collector are told.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::native::fixtures::{self, access, context, respond, text, with};
use crate::trace::{Trace, Tracing};
use crate::{Context, Phases, Plugin};
use gwctl_entities::Value;
use serde_json::json;
use std::sync::Arc;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

fn plugin(changed: Value) -> Arc<dyn Plugin> {
    let defaults = json!({
        "traces_endpoint": "http://127.0.0.1:1/v1/traces",
        "header_type": "preserve",
        "queue": {"max_batch_size": 200, "max_coalescing_delay": 3600},
        "propagation": {"default_format": "w3c"},
    });
    fixtures::try_build("opentelemetry", defaults, changed).unwrap()
}

fn traced(rate: f64) -> Context {
    let mut context = context("GET", "/");
    let tracing = Tracing::of(["all"], rate).unwrap();
    context.trace = Some(Box::new(Trace::begin(tracing, &context.times)));
    context
}

fn sent(context: Context, flags: &str) -> Context {
    with(context, "traceparent", &format!("00-{TRACE}-{SPAN}-{flags}"))
}

fn run(plugin: &dyn Plugin, mut context: Context) -> Context {
    assert!(access(plugin, &mut context).unwrap().is_none());
    context
}

/// Trace, span and flags that the upstream is told.
fn told(context: &Context) -> (String, String, String) {
    let parent = text(&context.request.headers, "traceparent");
    let [_, trace, span, flags] = parent.split('-').map(str::to_owned).collect::<Vec<_>>().try_into().unwrap();
    (trace, span, flags)
}

#[test]
fn a_trace_goes_on_with_a_new_parent() {
    let (trace, span, flags) = told(&run(&*plugin(json!({})), sent(traced(1.0), "01")));
    assert_eq!((&*trace, &*flags), (TRACE, "01"));
    assert_ne!(span, SPAN);
}

#[test]
fn a_node_that_traces_nothing_passes_a_trace_on_as_one_that_is_not_kept() {
    let plugin = plugin(json!({}));
    let (trace, span, flags) = told(&run(&*plugin, sent(context("GET", "/"), "01")));
    assert_eq!((&*trace, &*flags), (TRACE, "00"));
    assert_ne!(span, SPAN);
    let (one, other) = (told(&run(&*plugin, context("GET", "/"))), told(&run(&*plugin, context("GET", "/"))));
    assert_ne!(one.0, other.0);
}

#[test]
fn the_rate_of_the_plugin_goes_before_that_of_the_node() {
    let flags = |changed, context| told(&run(&*plugin(changed), context)).2;
    assert_eq!(flags(json!({"sampling_rate": 1}), traced(0.0)), "01");
    assert_eq!(flags(json!({"sampling_rate": 0}), traced(1.0)), "00");
    assert_eq!(flags(json!({"sampling_rate": 1}), sent(traced(1.0), "00")), "00");
}

#[test]
fn propagation_goes_before_the_header_type() {
    let headers = |changed| run(&*plugin(changed), sent(traced(1.0), "01")).request.headers;
    let both = headers(json!({"header_type": "jaeger"}));
    assert!(text(&both, "uber-trace-id").starts_with(TRACE) && text(&both, "traceparent").contains(TRACE));
    let moved = headers(json!({"header_type": "jaeger", "propagation": {
        "extract": ["aws", "w3c"], "inject": ["b3-single", "gcp"], "clear": ["traceparent"], "default_format": "w3c",
    }}));
    assert!(text(&moved, "b3").starts_with(TRACE) && text(&moved, "x-cloud-trace-context").starts_with(TRACE));
    assert_eq!((text(&moved, "uber-trace-id"), text(&moved, "traceparent")), (String::new(), String::new()));
    let begun = headers(json!({"header_type": "ignore", "propagation": {"default_format": "b3"}}));
    assert!(!text(&begun, "x-b3-traceid").is_empty() && !text(&begun, "x-b3-traceid").contains(TRACE));
}

#[test]
fn the_client_is_told_the_id_of_its_trace_also_by_answers_before_access() {
    let plugin = plugin(json!({"http_response_header_for_traceid": "X-Trace"}));
    let mut routed = run(&*plugin, sent(traced(1.0), "01"));
    assert_eq!(text(&respond(&*plugin, &mut routed, &[]), "x-trace"), TRACE);
    assert_eq!(text(&respond(&*plugin, &mut sent(traced(1.0), "01"), &[]), "x-trace"), TRACE);
}

#[test]
fn only_traces_that_are_kept_are_told() {
    let plugin = plugin(json!({}));
    let waiting = |mut context: Context| {
        plugin.log(&mut context);
        context.trace.as_ref().is_some_and(|trace| trace.is_kept())
    };
    assert!(waiting(run(&*plugin, sent(traced(1.0), "01"))));
    assert!(!waiting(run(&*plugin, sent(traced(1.0), "00"))));
    assert!(!waiting(sent(traced(1.0), "00")));
    assert!(!waiting(run(&*plugin, context("GET", "/"))));
}

#[test]
fn without_an_endpoint_nothing_is_done() {
    let plugin = plugin(json!({"traces_endpoint": null, "logs_endpoint": "http://127.0.0.1:1/v1/logs"}));
    assert_eq!(plugin.phases(), Phases::NONE);
}

#[test]
fn settings_that_cannot_be_used_are_named() {
    let error = |changed: Value| fixtures::try_build("opentelemetry", changed, json!({})).err().unwrap().0;
    assert!(error(json!({"traces_endpoint": "nowhere"})).contains("config.traces_endpoint"));
    assert!(
        error(json!({"http_response_header_for_traceid": "a b"})).contains("config.http_response_header_for_traceid")
    );
    assert!(error(json!({"header_type": "smoke"})).contains("'smoke'"));
}

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::native::fixtures::{self, Records, access, context, node, respond, text, with};
use crate::{Context, Node, Phases, Plugin, PluginError, PluginHost};
use gwctl_entities::{Value, view};
use gwctl_http1::Headers;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// 2024-02-29 12:34:56.
const NOW: u64 = 1_709_210_096_000;

fn defaults() -> Value {
    json!({
        "second": null, "minute": null, "hour": null, "day": null, "month": null, "year": null,
        "limit_by": "consumer", "header_name": null, "path": null, "policy": "local", "fault_tolerant": true,
        "hide_client_headers": false, "error_code": 429, "error_message": "API rate limit exceeded", "sync_rate": -1
    })
}

fn try_plugin(changed: Value) -> Result<Arc<dyn Plugin>, PluginError> {
    fixtures::try_build("rate-limiting", defaults(), changed)
}

fn plugin(changed: Value) -> Arc<dyn Plugin> {
    try_plugin(changed).unwrap()
}

fn counting() -> Arc<Node> {
    node(Records(Vec::new()))
}

fn request(node: &Arc<Node>, now: u64) -> Context {
    let mut context = context("GET", "/api");
    context.node = node.clone();
    context.times.started_millis = now;
    context
}

/// Status of the request (0 when it passes) and the response headers.
fn send(plugin: &dyn Plugin, mut context: Context) -> (u16, Headers) {
    let exit = access(plugin, &mut context).unwrap();
    (exit.map_or(0, |exit| exit.status.as_u16()), respond(plugin, &mut context, &[]))
}

fn status(plugin: &dyn Plugin, context: Context) -> u16 {
    send(plugin, context).0
}

#[test]
fn requests_pass_up_to_the_limit_and_each_is_told_what_is_left() {
    let (plugin, node) = (plugin(json!({"minute": 2})), counting());
    for (expected, remaining) in [(0, "1"), (0, "0"), (429, "0")] {
        let (status, headers) = send(&*plugin, request(&node, NOW));
        assert_eq!(status, expected);
        assert_eq!(text(&headers, "x-ratelimit-limit-minute"), "2");
        assert_eq!(text(&headers, "x-ratelimit-remaining-minute"), remaining);
        assert_eq!(text(&headers, "ratelimit-limit"), "2");
        assert_eq!(text(&headers, "ratelimit-remaining"), remaining);
        assert_eq!(text(&headers, "ratelimit-reset"), "4");
        assert_eq!(text(&headers, "retry-after"), if status == 429 { "4" } else { "" });
    }
}

#[test]
fn each_period_begins_anew_with_its_window() {
    let second = 1000;
    let waits = [("second", 1), ("minute", 4), ("hour", 1504), ("day", 41104), ("month", 41104), ("year", 26_479_504)];
    for (period, wait) in waits {
        let (plugin, node) = (plugin(json!({ period: 1 })), counting());
        assert_eq!(status(&*plugin, request(&node, NOW)), 0);
        assert_eq!(status(&*plugin, request(&node, NOW + wait * second - 1)), 429, "{period} has not passed");
        assert_eq!(status(&*plugin, request(&node, NOW + wait * second)), 0, "{period} has passed");
    }
}

#[test]
fn the_unnumbered_headers_tell_the_nearest_limit_and_of_equals_the_longest() {
    let (plugin, node) = (plugin(json!({"second": 5, "minute": 3, "hour": 3})), counting());
    let (_, headers) = send(&*plugin, request(&node, NOW));
    assert_eq!(text(&headers, "ratelimit-limit") + "/" + &text(&headers, "ratelimit-reset"), "3/1504");
    assert_eq!(text(&headers, "x-ratelimit-remaining-second"), "4");
    assert_eq!(text(&headers, "x-ratelimit-limit-hour"), "3");
}

#[test]
fn a_long_month_has_at_least_a_second_left() {
    let (plugin, node) = (plugin(json!({"month": 1})), counting());
    let last_day_of_march = 1_711_843_200_000;
    assert_eq!(text(&send(&*plugin, request(&node, last_day_of_march)).1, "ratelimit-reset"), "1");
}

#[test]
fn a_refused_request_counts_in_no_window() {
    let (plugin, node) = (plugin(json!({"second": 1, "minute": 3})), counting());
    let statuses: Vec<_> = (0..3).map(|_| status(&*plugin, request(&node, NOW))).collect();
    assert_eq!(statuses, [0, 429, 429]);
    let (_, headers) = send(&*plugin, request(&node, NOW));
    assert_eq!(text(&headers, "x-ratelimit-remaining-minute"), "2", "the refusal is not of this window");
    assert_eq!(status(&*plugin, request(&node, NOW + 1000)), 0);
}

#[test]
fn a_limit_may_be_broken() {
    let (plugin, node) = (plugin(json!({"minute": 1.5})), counting());
    let (_, headers) = send(&*plugin, request(&node, NOW));
    assert_eq!(text(&headers, "x-ratelimit-limit-minute") + text(&headers, "ratelimit-remaining").as_str(), "1.50.5");
    assert_eq!(status(&*plugin, request(&node, NOW)), 0);
    assert_eq!(status(&*plugin, request(&node, NOW)), 429);
}

/// Sends the first request, the same again and one that differs; the last two statuses.
fn same_and_other(settings: Value, one: impl Fn(Context) -> Context, other: impl Fn(Context) -> Context) -> (u16, u16) {
    let (plugin, node) = (plugin(settings), counting());
    assert_eq!(status(&*plugin, one(request(&node, NOW))), 0);
    (status(&*plugin, one(request(&node, NOW))), status(&*plugin, other(request(&node, NOW))))
}

fn identified(mut context: Context, consumer: Option<&str>, credential: Option<&str>) -> Context {
    let record = |id: &str| Arc::new(json!({ "id": id }).as_object().cloned().unwrap());
    context.authenticate(consumer.map(record), credential.map(record));
    context
}

fn from(mut context: Context, last: u8) -> Context {
    context.client.ip = [127, 0, 0, last].into();
    context
}

fn served(mut context: Context, id: &str) -> Context {
    let service = json!({"id": id, "protocol": "http", "host": "a.test", "port": 80, "retries": 5});
    context.service = Some(Arc::new(view::from_record(service.as_object().unwrap()).unwrap()));
    context
}

#[test]
fn clients_are_told_apart_by_what_the_settings_say() {
    let by = |limit_by: &str| json!({"minute": 1, "limit_by": limit_by});
    let apart = (429, 0);
    assert_eq!(same_and_other(by("ip"), |context| from(context, 1), |context| from(context, 2)), apart);
    let consumer = |name| move |context| identified(context, Some(name), Some("k"));
    assert_eq!(same_and_other(by("consumer"), consumer("a"), consumer("b")), apart);
    let credential = |name| move |context| identified(context, Some("c"), Some(name));
    assert_eq!(same_and_other(by("credential"), credential("a"), credential("b")), apart);
    let service = |id| move |context| served(context, id);
    assert_eq!(same_and_other(by("service"), service("a"), service("b")), apart);
    let header = json!({"minute": 1, "limit_by": "header", "header_name": "X-Team"});
    let team = |name| move |context| with(context, "x-team", name);
    assert_eq!(same_and_other(header, team("a"), team("b")), apart);
    let path = json!({"minute": 1, "limit_by": "path", "path": "/api"});
    let other = |mut context: Context| {
        context.request.uri = "/other?".parse().unwrap();
        context
    };
    assert_eq!(same_and_other(path, |context| context, other), apart);
}

#[test]
fn a_limited_path_is_known_however_it_is_written() {
    let (plugin, node) = (plugin(json!({"minute": 1, "limit_by": "path", "path": "/api"})), counting());
    for (target, expected) in [("/api", 0), ("/%61pi?again", 429), ("//x/../api", 429)] {
        let mut context = from(request(&node, NOW), target.len() as u8);
        context.request.uri = target.parse().unwrap();
        assert_eq!(status(&*plugin, context), expected, "{target}");
    }
}

#[test]
fn a_credential_without_consumer_stands_for_it() {
    let by = json!({"minute": 1, "limit_by": "consumer"});
    let credential = |name| move |context| identified(context, None, Some(name));
    assert_eq!(same_and_other(by, credential("a"), credential("b")), (429, 0));
}

#[test]
fn the_address_counts_when_what_is_asked_for_is_missing() {
    for limit_by in ["consumer", "credential", "service", "header", "path"] {
        let settings = json!({"minute": 1, "limit_by": limit_by, "header_name": "x-team", "path": "/elsewhere"});
        let sent = same_and_other(settings, |context| from(context, 1), |context| from(context, 2));
        assert_eq!(sent, (429, 0), "{limit_by}");
    }
    let null = json!({"minute": 1, "limit_by": null, "policy": null});
    assert_eq!(same_and_other(null, |context| from(context, 1), |context| from(context, 2)), (429, 0));
}

#[test]
fn rows_of_other_routes_and_services_count_for_themselves() {
    let node = counting();
    let settings = |mut config: Value| {
        config["minute"] = json!(1);
        config.as_object().unwrap().clone()
    };
    let bound = |route: Option<&str>, service: Option<&str>| {
        let mut facts = fixtures::facts("rate-limiting");
        (facts.route, facts.service) = (route.map(Into::into), service.map(Into::into));
        crate::Natives.build("rate-limiting", &settings(defaults()), &facts).unwrap()
    };
    for (route, service) in [(None, None), (Some("a"), None), (None, Some("a")), (Some("a"), Some("a"))] {
        assert_eq!(status(&*bound(route, service), request(&node, NOW)), 0);
        assert_eq!(status(&*bound(route, service), request(&node, NOW)), 429, "counters outlive the plugin object");
    }
}

#[test]
fn headers_can_be_hidden() {
    let (plugin, node) = (plugin(json!({"minute": 1, "hide_client_headers": true})), counting());
    assert_eq!(plugin.phases(), Phases::ACCESS);
    for expected in [0, 429] {
        let (status, headers) = send(&*plugin, request(&node, NOW));
        assert_eq!((status, headers.is_empty()), (expected, true));
    }
}

#[test]
fn status_and_message_of_a_refusal_can_be_set() {
    let (plugin, node) = (plugin(json!({"minute": 1, "error_code": 404, "error_message": "go away"})), counting());
    assert_eq!(status(&*plugin, request(&node, NOW)), 0);
    let mut exit = access(&*plugin, &mut request(&node, NOW)).unwrap().unwrap();
    assert_eq!(exit.status, 404);
    assert!(exit.render(&Headers::new(), "1").starts_with(b"{\n  \"message\":\"go away\""));
}

#[test]
fn a_code_that_is_no_error_fails_the_refused_request() {
    let (plugin, node) = (plugin(json!({"minute": 1, "error_code": 200})), counting());
    assert_eq!(status(&*plugin, request(&node, NOW)), 0);
    let error = access(&*plugin, &mut request(&node, NOW)).unwrap_err();
    assert!(error.0.contains("config.error_code"), "{error}");
}

#[test]
fn policies_that_need_others_are_refused_by_name() {
    for policy in ["redis", "cluster"] {
        let error = try_plugin(json!({"minute": 1, "policy": policy})).err().unwrap();
        assert!(error.0.contains(policy) && error.0.contains("'local'"), "{error}");
    }
}

#[test]
fn limits_of_the_upstream_stand_behind_ours() {
    let (plugin, node) = (plugin(json!({"minute": 2})), counting());
    let mut context = request(&node, NOW);
    assert!(access(&*plugin, &mut context).unwrap().is_none());
    let headers = respond(&*plugin, &mut context, &[("ratelimit-limit", "9")]);
    assert_eq!(text(&headers, "ratelimit-limit"), "2|9");
}

#[test]
fn windows_that_have_passed_leave_nothing_behind() {
    let (plugin, node) = (plugin(json!({"second": 1, "year": 9_000_000})), counting());
    for second in 0..2000 {
        assert_eq!(status(&*plugin, request(&node, NOW + second * 1000)), 0);
    }
    assert_eq!(node.counters.len(), 2, "one for each period of the client");
}

#[test]
fn threads_together_let_exactly_the_limit_pass() {
    let limit = 500;
    let (plugin, node) = (plugin(json!({"minute": limit, "hour": 100_000})), counting());
    let passed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..300 {
                    let passes = status(&*plugin, request(&node, NOW)) == 0;
                    passed.fetch_add(u64::from(passes), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(passed.into_inner(), limit);
    let (_, headers) = send(&*plugin, request(&node, NOW + 60_000));
    assert_eq!(text(&headers, "x-ratelimit-remaining-hour"), (100_000 - limit - 1).to_string());
}

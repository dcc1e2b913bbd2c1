#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::native::fixtures::{self, access, context, respond, text, with};
use crate::{Context, ExitBody, Plugin};
use gwctl_entities::Value;
use gwctl_http1::Headers;
use serde_json::json;
use std::sync::Arc;

fn plugin(changed: Value) -> Arc<dyn Plugin> {
    let methods = super::DEFAULT_METHODS.split(',').collect::<Vec<_>>();
    let defaults = json!({
        "origins": null, "headers": null, "exposed_headers": null, "methods": methods, "max_age": null,
        "credentials": false, "private_network": false, "preflight_continue": false
    });
    fixtures::try_build("cors", defaults, changed).unwrap()
}

fn from(origin: &str) -> Context {
    with(context("GET", "/"), "origin", origin)
}

fn preflight() -> Context {
    let asked = with(context("OPTIONS", "/"), "origin", "http://a.test");
    with(asked, "access-control-request-method", "GET")
}

/// The headers of a preflight answer.
fn answer(settings: Value, mut context: Context) -> Headers {
    let plugin = plugin(settings);
    let exit = access(&*plugin, &mut context).unwrap().expect("answered by the node");
    assert_eq!((exit.status.as_u16(), exit.body), (200, ExitBody::Bytes(bytes::Bytes::new())));
    assert!(respond(&*plugin, &mut context, &[]).is_empty(), "the answer is not changed again");
    exit.headers
}

/// The response headers of another request, whose upstream sent these.
fn response(settings: Value, mut context: Context, upstream: &[(&'static str, &'static str)]) -> Headers {
    let plugin = plugin(settings);
    assert!(access(&*plugin, &mut context).unwrap().is_none());
    respond(&*plugin, &mut context, upstream)
}

/// All pairs as lines.
fn lines(headers: &Headers) -> Vec<String> {
    let mut lines: Vec<_> =
        headers.iter().map(|(name, _)| format!("{}: {}", name.to_ascii_lowercase(), text(headers, name))).collect();
    lines.sort();
    lines.dedup();
    lines
}

#[test]
fn by_default_every_origin_and_method_is_allowed() {
    let methods = "access-control-allow-methods: GET,HEAD,PUT,PATCH,POST,DELETE,OPTIONS,TRACE,CONNECT";
    let origin = "access-control-allow-origin: *";
    assert_eq!(lines(&answer(json!({}), preflight())), [methods, origin]);
    assert_eq!(lines(&answer(json!({"methods": null}), preflight())), [methods, origin]);
    for all in [json!({}), json!({"origins": ["*"]}), json!({"origins": []})] {
        assert_eq!(lines(&response(all, context("GET", "/"), &[])), [origin]);
    }
}

#[test]
fn a_preflight_answer_tells_all_that_is_set() {
    let settings = json!({
        "origins": ["http://a.test", "http://b.test"], "headers": ["X-One", "X-Two"], "exposed_headers": ["X-Out"],
        "methods": ["GET", "PUT"], "max_age": 23, "credentials": true, "private_network": true
    });
    let asked = with(preflight(), "access-control-request-private-network", "true");
    let expected = [
        "access-control-allow-credentials: true",
        "access-control-allow-headers: X-One,X-Two",
        "access-control-allow-methods: GET,PUT",
        "access-control-allow-origin: http://a.test",
        "access-control-allow-private-network: true",
        "access-control-max-age: 23",
        "vary: Origin",
    ];
    assert_eq!(lines(&answer(settings, asked)), expected);
}

#[test]
fn headers_asked_for_are_allowed_when_none_are_set() {
    let asked = || with(preflight(), "access-control-request-headers", "x-a, x-b");
    for settings in [json!({}), json!({"headers": []})] {
        assert_eq!(text(&answer(settings, asked()), "access-control-allow-headers"), "x-a, x-b");
    }
}

#[test]
fn a_private_network_is_allowed_only_when_set_and_asked_for() {
    let asked = || with(preflight(), "access-control-request-private-network", "true");
    let allowed = |settings, context| text(&answer(settings, context), "access-control-allow-private-network");
    assert_eq!(allowed(json!({}), asked()), "");
    assert_eq!(allowed(json!({"private_network": true}), preflight()), "");
}

#[test]
fn a_preflight_request_may_be_left_to_the_upstream() {
    let sent = [("access-control-allow-origin", "theirs")];
    let headers = response(json!({"preflight_continue": true}), preflight(), &sent);
    assert_eq!(lines(&headers), ["access-control-allow-origin: theirs"]);
}

#[test]
fn only_a_complete_preflight_request_is_answered() {
    for missing in ["origin", "access-control-request-method"] {
        let mut context = preflight();
        context.request.headers.remove(missing);
        assert!(access(&*plugin(json!({})), &mut context).unwrap().is_none(), "without {missing}");
    }
    let mut post = preflight();
    post.request.method = http::Method::POST;
    assert!(access(&*plugin(json!({})), &mut post).unwrap().is_none());
}

#[test]
fn an_origin_that_is_not_allowed_is_told_nothing_of_the_upstream_either() {
    let list = json!({"origins": ["http://a.test", "http://b.test"]});
    let sent = [("access-control-allow-origin", "*"), ("vary", "Accept")];
    assert_eq!(lines(&response(list.clone(), from("http://c.test"), &sent)), ["vary: Accept|Origin"]);
    assert_eq!(lines(&response(list, context("GET", "/"), &sent)), ["vary: Accept|Origin"]);
}

#[test]
fn credentials_name_the_origin_instead_of_the_star() {
    let all = || json!({"credentials": true});
    let expected =
        ["access-control-allow-credentials: true", "access-control-allow-origin: http://a.test", "vary: Origin"];
    assert_eq!(lines(&response(all(), from("http://a.test"), &[])), expected);
    assert_eq!(lines(&response(all(), context("GET", "/"), &[])), ["access-control-allow-origin: *"]);
    let headers = answer(json!({"credentials": true, "origins": ["x", "*"]}), preflight());
    assert_eq!(text(&headers, "access-control-allow-origin"), "http://a.test");
    assert_eq!(text(&headers, "vary"), "Origin", "a preflight answer says it once");
}

#[test]
fn credentials_with_a_fixed_origin_are_allowed_to_it() {
    let settings = json!({"credentials": true, "origins": ["http://a.test"]});
    let expected =
        ["access-control-allow-credentials: true", "access-control-allow-origin: http://a.test", "vary: Origin"];
    assert_eq!(lines(&response(settings, context("GET", "/"), &[])), expected);
}

#[test]
fn exposed_headers_are_told_with_the_response_only() {
    let settings = json!({"exposed_headers": ["X-One", "X-Two"]});
    let headers = response(settings.clone(), from("http://a.test"), &[("access-control-expose-headers", "X-Three")]);
    assert_eq!(text(&headers, "access-control-expose-headers"), "X-One,X-Two");
    assert_eq!(text(&answer(settings, preflight()), "access-control-expose-headers"), "");
}

#[test]
fn settings_that_no_header_can_carry_are_refused() {
    let defaults = json!({"credentials": false, "private_network": false, "preflight_continue": false});
    let error = fixtures::try_build("cors", defaults, json!({"exposed_headers": ["a\nb"]})).err().unwrap();
    assert!(error.0.contains("config.exposed_headers"), "{error}");
}

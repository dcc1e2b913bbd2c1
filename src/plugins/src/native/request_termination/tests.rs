#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::native::fixtures::{self, Records, access, context, node, text, with, with_body};
use crate::{Context, Exit, Needs, Plugin};
use gwctl_entities::{Value, view};
use gwctl_http1::Headers;
use serde_json::json;
use std::sync::Arc;

fn plugin(changed: Value) -> Arc<dyn Plugin> {
    let defaults = json!({
        "status_code": 503, "message": null, "content_type": null, "body": null, "echo": false, "trigger": null
    });
    fixtures::try_build("request-termination", defaults, changed).unwrap()
}

fn exit(settings: Value, mut context: Context) -> Option<Box<Exit>> {
    access(&*plugin(settings), &mut context).unwrap()
}

/// Status, content type and body of the answer to a plain request.
fn answer(settings: Value) -> (u16, String, String) {
    let mut exit = exit(settings, context("GET", "/")).unwrap();
    let body = exit.render(&Headers::new(), "1");
    let content_type = text(&exit.headers, "content-type");
    (exit.status.as_u16(), content_type, String::from_utf8(body.to_vec()).unwrap())
}

fn message(text: &str) -> (String, String) {
    ("application/json; charset=utf-8".to_owned(), json!({ "message": text }).to_string())
}

#[test]
fn a_status_with_a_message_of_its_own_tells_it() {
    for (status, text) in [
        (401, "Unauthorized"),
        (404, "Not found"),
        (405, "Method not allowed"),
        (500, "An unexpected error occurred"),
        (502, "Bad Gateway"),
        (503, "Service unavailable"),
    ] {
        let (content_type, body) = message(text);
        assert_eq!(answer(json!({ "status_code": status })), (status, content_type, body));
    }
}

#[test]
fn another_status_without_message_has_no_body() {
    assert_eq!(answer(json!({"status_code": 418})), (418, String::new(), String::new()));
}

#[test]
fn the_message_can_be_set() {
    let (content_type, body) = message("so \"sad\"");
    assert_eq!(answer(json!({"status_code": 406, "message": "so \"sad\""})), (406, content_type, body));
}

#[test]
fn the_body_can_be_set_and_has_no_type_but_the_one_set() {
    let page = |content_type: Option<&str>| json!({"body": "<p>", "content_type": content_type});
    assert_eq!(answer(page(Some("text/html"))), (503, "text/html".to_owned(), "<p>".to_owned()));
    assert_eq!(answer(page(None)), (503, String::new(), "<p>".to_owned()));
}

#[test]
fn a_trigger_is_a_header_or_an_argument() {
    let settings = || json!({"trigger": "X-Stop"});
    assert!(exit(settings(), context("GET", "/?x-stop=1")).is_none(), "arguments are told by case");
    assert!(exit(settings(), context("GET", "/")).is_none());
    for target in ["/?X-Stop", "/?X-Stop=1", "/?X-Stop=1&X-Stop=2"] {
        assert!(exit(settings(), context("GET", target)).is_some(), "{target}");
    }
    assert!(exit(settings(), with(context("GET", "/"), "x-stop", "")).is_some());
    assert!(exit(json!({"trigger": "x_stop"}), with(context("GET", "/"), "x-stop", "")).is_some());
}

#[test]
fn body_and_captures_are_asked_for_only_to_echo_them() {
    assert_eq!(plugin(json!({})).needs(), Needs::default());
    assert_eq!(plugin(json!({"echo": true})).needs(), Needs { request_body: true, captures: true });
}

fn echo(context: Context) -> Value {
    let exit = exit(json!({"echo": true, "status_code": 404}), context).unwrap();
    assert_eq!(exit.status, 404);
    let crate::ExitBody::Bytes(body) = exit.body else { panic!("JSON is sent as it is") };
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn an_echo_tells_how_the_request_was_understood() {
    let mut context = with_body(context("POST", "/a/./b?one=1&flag&two=a&two=b"), "application/json", "[1]");
    context = with(with(context, "x-many", "1"), "x-many", "2");
    context.node = node(Records(vec![("routes", json!({"id": "r-1", "hosts": ["a.test"], "methods": null}))]));
    let row = |row: Value| row.as_object().cloned().unwrap();
    context.route = Some(Arc::new(
        view::from_record(&row(json!({"id": "r-1", "protocols": [], "strip_path": true, "preserve_host": false})))
            .unwrap(),
    ));
    context.service = Some(Arc::new(
        view::from_record(&row(json!({"id": "s-1", "protocol": "http", "host": "a", "port": 80}))).unwrap(),
    ));
    context.captures = vec![(None, "b".to_owned()), (Some("last".to_owned()), "b".to_owned())];
    let expected = json!({
        "message": "Not found",
        "kong": {"node_id": "node-1", "hostname": "host-1", "worker_pid": std::process::id()},
        "request": {
            "scheme": "http", "host": "example.test", "port": 8000, "method": "POST", "path": "/a/b",
            "headers": {"content-type": "application/json", "x-many": ["1", "2"]},
            "query": {"one": "1", "flag": true, "two": ["a", "b"]},
            "body": [1], "raw_body": "[1]",
            "uri_captures": {"named": {"last": "b"}, "unnamed": ["b"]}
        },
        "matched_route": {"id": "r-1", "hosts": ["a.test"]},
        "matched_service": {"id": "s-1"}
    });
    assert_eq!(echo(context), expected);
}

#[test]
fn an_echo_leaves_out_what_is_not_there() {
    let echoed = echo(context("GET", "/"));
    assert_eq!(echoed.get("matched_route").or(echoed.get("matched_service")), None);
    assert_eq!(echoed["request"].get("body"), None);
    assert_eq!(echoed["request"]["raw_body"], "");
}

#[test]
fn an_echo_shows_forms_by_name() {
    let form = with_body(context("POST", "/"), "application/x-www-form-urlencoded", "a=1&a=2&b");
    assert_eq!(echo(form)["request"]["body"], json!({"a": ["1", "2"], "b": true}));
    let part = "--x\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--";
    let parts = with_body(context("POST", "/"), "multipart/form-data; boundary=x", part);
    assert_eq!(echo(parts)["request"]["body"], json!({"a": "1"}));
}

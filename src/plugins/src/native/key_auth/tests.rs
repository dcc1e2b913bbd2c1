#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::native::fixtures::{self, Broken, Records, access, body, context, node, text, with, with_body};
use crate::{Context, Needs, Plugin};
use gwctl_entities::Value;
use serde_json::json;
use std::sync::Arc;

const GHOST: &str = "00000000-0000-4000-8000-000000000009";

fn plugin(changed: Value) -> Arc<dyn Plugin> {
    let defaults = json!({
        "key_names": ["apikey"], "hide_credentials": false, "anonymous": null, "key_in_header": true,
        "key_in_query": true, "key_in_body": false, "run_on_preflight": true, "realm": null
    });
    fixtures::try_build("key-auth", defaults, changed).unwrap()
}

/// Consumer `ann` with the key `secret`, `ghost` for the rest, and the key `lost` of nobody.
fn known(mut context: Context) -> Context {
    context.node = node(Records(vec![
        ("consumers", json!({"id": "c-1", "username": "ann", "custom_id": "né"})),
        ("consumers", json!({"id": GHOST, "username": "ghost", "custom_id": null})),
        ("keyauth_credentials", json!({"id": "k-1", "key": "secret", "consumer": {"id": "c-1"}})),
        ("keyauth_credentials", json!({"id": "k-2", "key": "lost", "consumer": {"id": "c-9"}})),
    ]));
    context
}

/// What a client without access reads, and its challenge.
fn refusal(settings: Value, context: Context) -> (String, String) {
    let mut context = known(context);
    let mut exit = access(&*plugin(settings), &mut context).unwrap().expect("refused");
    assert_eq!(exit.status, 401);
    assert!(context.consumer.is_none());
    let page: Value = serde_json::from_slice(&exit.render(&context.request.headers, "1")).unwrap();
    (page["message"].as_str().unwrap().to_owned(), text(&exit.headers, "www-authenticate"))
}

fn passes(settings: Value, context: Context) -> Context {
    let mut context = known(context);
    assert!(access(&*plugin(settings), &mut context).unwrap().is_none());
    context
}

#[test]
fn a_known_key_names_the_consumer_to_the_node_and_to_the_upstream() {
    let forged = with(context("GET", "/"), "x-anonymous-consumer", "true");
    let context = passes(json!({}), with(with(forged, "apikey", "secret"), "x-consumer-id", "root"));
    assert_eq!((context.consumer_id(), context.credential_id()), (Some("c-1"), Some("k-1")));
    let headers = &context.request.headers;
    assert_eq!(text(headers, "x-consumer-id"), "c-1");
    assert_eq!(text(headers, "x-consumer-custom-id"), "né");
    assert_eq!(text(headers, "x-consumer-username"), "ann");
    assert_eq!(text(headers, "x-credential-identifier"), "k-1");
    assert_eq!(text(headers, "x-anonymous-consumer"), "");
    assert_eq!(text(headers, "apikey"), "secret", "it is not hidden unless asked");
}

#[test]
fn each_refusal_has_its_message() {
    for (context, message) in [
        (context("GET", "/"), "No API key found in request"),
        (with(context("GET", "/"), "apikey", ""), "No API key found in request"),
        (context("GET", "/?apikey="), "No API key found in request"),
        (context("GET", "/?apikey"), "No API key found in request"),
        (context("GET", "/?apikey=wrong"), "Unauthorized"),
        (context("GET", "/?apikey=%ff"), "Unauthorized"),
        (context("GET", "/?apikey=secret&apikey=secret"), "Duplicate API key found"),
        (with(with(context("GET", "/"), "apikey", "secret"), "apikey", "b"), "Duplicate API key found"),
    ] {
        assert_eq!(refusal(json!({}), context), (message.to_owned(), "Key".to_owned()));
    }
}

#[test]
fn the_realm_is_part_of_the_challenge() {
    assert_eq!(refusal(json!({"realm": "my"}), context("GET", "/")).1, "Key realm=\"my\"");
    assert!(fixtures::try_build("key-auth", json!({}), json!({"realm": "a\nb"})).is_err());
}

#[test]
fn a_place_that_is_switched_off_is_not_searched() {
    let header = || with(context("GET", "/"), "apikey", "secret");
    assert_eq!(refusal(json!({"key_in_header": false}), header()).0, "No API key found in request");
    let query = || context("GET", "/?apikey=secret");
    assert_eq!(refusal(json!({"key_in_query": false}), query()).0, "No API key found in request");
    let form = || with_body(context("POST", "/"), "application/x-www-form-urlencoded", "apikey=secret");
    assert_eq!(refusal(json!({}), form()).0, "No API key found in request");
    passes(json!({"key_in_body": true}), form());
}

#[test]
fn the_body_is_asked_for_only_when_the_key_may_be_there() {
    assert_eq!(plugin(json!({})).needs(), Needs::default());
    assert!(plugin(json!({"key_in_body": true})).needs().request_body);
}

#[test]
fn names_are_tried_in_order_and_the_header_goes_before_the_query() {
    let names = json!({"key_names": ["first", "second"]});
    let both = with(context("GET", "/?first=secret"), "second", "wrong");
    passes(names.clone(), both);
    let header_first = with(context("GET", "/?first=secret"), "first", "wrong");
    assert_eq!(refusal(names, header_first).0, "Unauthorized");
}

#[test]
fn an_underscore_of_a_name_is_also_read_as_hyphen_in_headers() {
    for header in ["api_key", "api-key"] {
        passes(json!({"key_names": ["api_key"]}), with(context("GET", "/"), header, "secret"));
    }
    passes(json!({"key_names": ["Api_Key"]}), with(context("GET", "/"), "API-KEY", "secret"));
    assert_eq!(
        refusal(json!({"key_names": ["api_key"]}), context("GET", "/?api-key=secret")).0,
        "No API key found in request"
    );
}

#[test]
fn a_body_of_each_type_is_searched() {
    let multipart = "--x\r\nContent-Disposition: form-data; name=\"apikey\"\r\n\r\nsecret\r\n--x--\r\n";
    for (content_type, sent) in [
        ("application/x-www-form-urlencoded", "a=1&apikey=secret"),
        ("application/json; charset=utf-8", r#"{"apikey": "secret"}"#),
        ("multipart/form-data; boundary=x", multipart),
        ("multipart/form-data; boundary=\"x\"; more=1", multipart),
    ] {
        let context = passes(json!({"key_in_body": true}), with_body(context("POST", "/"), content_type, sent));
        assert_eq!(body(&context), sent);
    }
}

#[test]
fn a_body_without_a_usable_key_is_refused() {
    let multipart = "--x\r\nContent-Disposition: form-data; name=\"apikey\"\r\n\r\nsecret\r\n".repeat(2) + "--x--";
    let multipart: &'static str = multipart.leak();
    for (content_type, sent, message) in [
        ("text/plain", "apikey=secret", "No API key found in request"),
        ("application/json", "[\"apikey\"]", "No API key found in request"),
        ("application/json", "{", "No API key found in request"),
        ("application/json", r#"{"apikey": 1}"#, "No API key found in request"),
        ("application/json", r#"{"apikey": ["secret"]}"#, "Duplicate API key found"),
        ("application/x-www-form-urlencoded", "apikey=a&apikey=b", "Duplicate API key found"),
        ("multipart/form-data; boundary=x", multipart, "Duplicate API key found"),
        ("multipart/form-data; boundary=x", "--x\r\nno head", "No API key found in request"),
        ("multipart/form-data", multipart, "No API key found in request"),
    ] {
        let refused = refusal(json!({"key_in_body": true}), with_body(context("POST", "/"), content_type, sent));
        assert_eq!(refused.0, message, "{content_type} {sent}");
    }
}

#[test]
fn a_hidden_key_reaches_the_upstream_nowhere() {
    let sent = with(context("GET", "/?apikey=secret&q=a%20b"), "apikey", "secret");
    let context = passes(json!({"hide_credentials": true}), sent);
    assert_eq!(text(&context.request.headers, "apikey"), "");
    assert_eq!(context.upstream.unwrap().query.as_deref(), Some("q=a+b"));
}

#[test]
fn a_hidden_key_is_taken_out_of_the_body_and_the_rest_stays() {
    let file = "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f.txt\"\r\n\r\n1\r\n\r\n2\r\n--x--\r\n";
    let key = "--x\r\ncontent-disposition: form-data; name=\"apikey\"\r\n\r\nsecret\r\n";
    let multipart: &'static str = format!("{key}{file}").leak();
    for (content_type, sent, left) in [
        ("application/x-www-form-urlencoded", "a=%20&apikey=secret&b", "a=%20&b"),
        ("application/json", r#"{"apikey":"secret","n":1}"#, r#"{"n":1}"#),
        ("multipart/form-data; boundary=x", multipart, file),
    ] {
        let sent = with_body(context("POST", "/"), content_type, sent);
        let context = passes(json!({"key_in_body": true, "hide_credentials": true}), sent);
        assert_eq!(body(&context), left);
    }
}

#[test]
fn an_anonymous_consumer_by_id_or_name_takes_what_is_refused() {
    for anonymous in [GHOST, "ghost"] {
        let sent = with(context("GET", "/?apikey=wrong"), "x-credential-identifier", "forged");
        let context = passes(json!({"anonymous": anonymous, "hide_credentials": true}), sent);
        assert_eq!((context.consumer_id(), context.credential_id()), (Some(GHOST), None));
        let headers = &context.request.headers;
        assert_eq!(text(headers, "x-consumer-username"), "ghost");
        assert_eq!(text(headers, "x-anonymous-consumer"), "true");
        assert_eq!(text(headers, "x-consumer-custom-id") + &text(headers, "x-credential-identifier"), "");
        assert_eq!(context.upstream.unwrap().query.as_deref(), Some(""), "a wrong key is hidden, too");
    }
}

#[test]
fn an_anonymous_consumer_that_does_not_exist_fails_the_request() {
    let mut context = known(context("GET", "/"));
    let error = access(&*plugin(json!({"anonymous": "nobody"})), &mut context).unwrap_err();
    assert!(error.0.contains("'nobody' does not exist"), "{error}");
}

#[test]
fn an_identity_found_before_is_kept_only_when_alternatives_are_allowed() {
    let identified = || {
        let mut context = context("GET", "/");
        context.credential = Some(Arc::default());
        context
    };
    assert!(passes(json!({"anonymous": "ghost"}), identified()).consumer.is_none());
    assert_eq!(refusal(json!({}), identified()).0, "No API key found in request");
}

#[test]
fn preflight_requests_pass_only_when_told_so() {
    passes(json!({"run_on_preflight": false}), context("OPTIONS", "/"));
    assert_eq!(refusal(json!({}), context("OPTIONS", "/")).0, "No API key found in request");
    assert_eq!(refusal(json!({"run_on_preflight": false}), context("GET", "/")).0, "No API key found in request");
}

#[test]
fn a_key_whose_consumer_is_gone_counts_without_a_consumer() {
    let context = passes(json!({}), context("GET", "/?apikey=lost"));
    assert_eq!((context.consumer_id(), context.credential_id()), (None, Some("k-2")));
    assert_eq!(text(&context.request.headers, "x-credential-identifier"), "k-2");
}

#[test]
fn a_store_that_fails_lets_nobody_through() {
    for settings in [json!({}), json!({"anonymous": "ghost"})] {
        let mut context = context("GET", "/?apikey=secret");
        context.node = node(Broken);
        assert!(access(&*plugin(settings), &mut context).is_err());
    }
}

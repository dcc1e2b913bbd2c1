//! Plugins in the phases of a request.

use crate::stage::{PATIENCE, Stage, Upstream, header, to};
use bytes::Bytes;
use gwctl_entities::{Record, Value};
use gwctl_http1::Name;
use gwctl_plugins::{Context, Exit, Needs, Phases, Plugin, PluginError, PluginFacts, PluginHost, Source, Step};
use gwctl_proxy::ProxyOptions;
use http::{HeaderValue, StatusCode};
use serde_json::json;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// What a log phase saw.
#[derive(Debug)]
struct Entry {
    status: u16,
    source: Source,
    tries: usize,
    waited: bool,
    response_size: u64,
}

/// Does what its settings say.
struct Actor {
    config: Record,
    log: Sender<Entry>,
}

impl Actor {
    fn says(&self, key: &str) -> Option<&str> {
        self.config.get(key).and_then(Value::as_str)
    }
}

impl Plugin for Actor {
    fn phases(&self) -> Phases {
        let always = Phases::REWRITE | Phases::ACCESS | Phases::HEADER_FILTER | Phases::LOG;
        if self.says("body").is_some() { always | Phases::BODY_FILTER } else { always }
    }

    fn needs(&self) -> Needs {
        Needs { request_body: self.says("read").is_some(), captures: self.says("captures").is_some() }
    }

    fn rewrite<'a>(&'a self, _context: &'a mut Context) -> Step<'a> {
        match self.says("rewrite") {
            Some("exit") => Exit::empty(StatusCode::IM_A_TEAPOT).into(),
            _ => Step::Next,
        }
    }

    fn access<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        context.request.headers.insert(Name::from_static("x-plugin"), HeaderValue::from_static("was here"));
        if let (Some(path), Some(upstream)) = (self.says("path"), &mut context.upstream) {
            (upstream.path, upstream.query) = (path.to_owned(), Some(String::new()));
        }
        if self.says("captures").is_some() {
            let captures = format!("{:?}", context.captures);
            context.request.headers.insert(Name::from_static("x-captures"), HeaderValue::from_str(&captures).unwrap());
        }
        match self.says("access") {
            Some("exit") => Exit::json(StatusCode::FORBIDDEN, &json!({"message": "no"})).into(),
            Some("fail") => PluginError("asked to".to_owned()).into(),
            Some("read") => Step::Wait(Box::pin(async move {
                let body = context.request.body.read(1024).await.unwrap();
                context.request.headers.insert(Name::from_static("x-length"), HeaderValue::from(body.len()));
                Step::Next
            })),
            _ => Step::Next,
        }
    }

    fn header_filter(&self, context: &mut Context) -> Result<Option<Box<Exit>>, PluginError> {
        let response = context.response.as_mut().unwrap();
        response.headers.insert(Name::from_static("x-filter"), HeaderValue::from_static("yes"));
        if self.says("body").is_some() {
            response.headers.remove("content-length");
        }
        match self.says("header_filter") {
            Some("exit") => Ok(Some(Box::new(Exit::bytes(StatusCode::ACCEPTED, "text/plain", "instead")))),
            Some("fail") => Err(PluginError("asked to".to_owned())),
            _ => Ok(None),
        }
    }

    fn body_filter(&self, context: &mut Context, part: &mut Bytes, last: bool) -> Result<(), PluginError> {
        let mut kept: Vec<u8> = context.slots.take().unwrap_or_default();
        kept.extend_from_slice(part);
        *part = Bytes::new();
        if last {
            kept.extend_from_slice(self.says("body").unwrap_or_default().as_bytes());
            *part = kept.into();
        } else {
            context.slots.put(kept);
        }
        Ok(())
    }

    fn log(&self, context: &mut Context) {
        let response = context.response.as_ref().unwrap();
        let entry = Entry {
            status: response.status.as_u16(),
            source: response.source,
            tries: context.tries.len(),
            waited: context.times.waited().is_some(),
            response_size: context.response_size,
        };
        self.log.send(entry).unwrap();
    }
}

struct Actors(Mutex<Sender<Entry>>);

impl PluginHost for Actors {
    fn priority(&self, name: &str) -> Option<i64> {
        (name == "actor").then_some(1)
    }

    fn build(&self, _: &str, config: &Record, _: &PluginFacts) -> Result<Arc<dyn Plugin>, PluginError> {
        Ok(Arc::new(Actor { config: config.clone(), log: self.0.lock().unwrap().clone() }))
    }
}

/// A stage in front of an echo, with an actor for every request.
async fn play(settings: Value) -> (Stage, Receiver<Entry>) {
    let upstream = Upstream::echo().await;
    let mut config = to(upstream.address, json!({}));
    config["plugins"] = json!([{"id": "p", "name": "actor", "config": settings}]);
    let (sender, entries) = channel();
    (Stage::with(config, ProxyOptions::default(), vec![Arc::new(Actors(Mutex::new(sender)))]), entries)
}

#[tokio::test]
async fn access_changes_the_request_and_log_sees_the_end() {
    let (stage, entries) = play(json!({"path": "/elsewhere"})).await;
    let reply = stage.get("/x?y=1").await;
    assert!(reply.text().starts_with("GET /elsewhere HTTP/1.1"), "{}", reply.text());
    assert_eq!(header(&reply.text(), "x-plugin").unwrap(), "was here");
    assert_eq!(reply.header("x-filter").unwrap(), "yes");
    let entry = entries.recv_timeout(PATIENCE).unwrap();
    assert_eq!((entry.status, entry.source, entry.tries, entry.waited), (200, Source::Service, 1, true));
    assert_eq!(entry.response_size, reply.body.len() as u64);
}

#[tokio::test]
async fn an_exit_in_access_answers_for_the_upstream() {
    let (stage, entries) = play(json!({"access": "exit"})).await;
    let reply = stage.get("/").await;
    assert_eq!((reply.status(), reply.text().as_str()), (403, r#"{"message":"no"}"#));
    assert_eq!(reply.header("content-length").unwrap(), "16");
    assert_eq!(reply.header("x-filter").unwrap(), "yes");
    assert!(reply.header("x-kong-response-latency").is_some());
    let entry = entries.recv_timeout(PATIENCE).unwrap();
    assert_eq!((entry.status, entry.source, entry.tries), (403, Source::Exit, 0));
}

#[tokio::test]
async fn an_exit_in_rewrite_comes_before_routing() {
    assert_eq!(play(json!({"rewrite": "exit"})).await.0.get("/").await.status(), 418);
}

#[tokio::test]
async fn global_plugins_see_requests_without_a_route() {
    let (stage, entries) = play(json!({})).await;
    // Every path has a route here, but not every protocol version does.
    let mut config = to("127.0.0.1:1".parse().unwrap(), json!({}));
    config["routes"][0]["paths"] = json!(["/only"]);
    config["plugins"] = json!([{"id": "p", "name": "actor", "config": {}}]);
    stage.reconfigure(config);
    let reply = stage.get("/other").await;
    assert_eq!((reply.status(), reply.header("x-filter").as_deref()), (404, Some("yes")));
    assert_eq!(entries.recv_timeout(PATIENCE).unwrap().status, 404);
}

#[tokio::test]
async fn a_failed_plugin_is_a_500_that_tells_nothing() {
    for settings in [json!({"access": "fail"}), json!({"header_filter": "fail"})] {
        let reply = play(settings).await.0.get("/").await;
        assert_eq!(reply.status(), 500);
        assert!(reply.text().contains("An unexpected error occurred") && !reply.text().contains("asked to"));
    }
}

#[tokio::test]
async fn an_exit_in_header_filter_replaces_the_response() {
    let reply = play(json!({"header_filter": "exit"})).await.0.get("/").await;
    assert_eq!((reply.status(), reply.text().as_str()), (202, "instead"));
}

#[tokio::test]
async fn body_filter_may_hold_back_and_lengthen_the_body() {
    let reply = play(json!({"body": " and more"})).await.0.get("/").await;
    assert_eq!(reply.header("transfer-encoding").unwrap(), "chunked");
    assert!(
        reply.text().contains("GET / HTTP/1.1") && reply.text().contains(" and more\r\n0\r\n\r\n"),
        "{}",
        reply.text()
    );
}

#[tokio::test]
async fn a_body_that_was_read_still_goes_to_the_upstream() {
    for settings in [json!({"access": "read"}), json!({"read": "yes"})] {
        let request = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
        let seen = play(settings).await.0.raw(request).await.text();
        assert_eq!(header(&seen, "content-length").unwrap(), "5");
        assert_eq!(header(&seen, "transfer-encoding"), None);
        assert!(seen.ends_with("hello"), "{seen}");
    }
}

#[tokio::test]
async fn groups_of_the_path_are_there_for_plugins_that_need_them() {
    let upstream = Upstream::echo().await;
    let mut config = to(upstream.address, json!({}));
    config["routes"][0]["paths"] = json!(["~/u/(?<user>[a-z]+)/(\\d+)"]);
    config["plugins"] = json!([{"id": "p", "name": "actor", "config": {"captures": "yes"}}]);
    let (sender, _entries) = channel();
    let stage = Stage::with(config, ProxyOptions::default(), vec![Arc::new(Actors(Mutex::new(sender)))]);
    let seen = stage.get("/u/ann/42").await.text();
    assert_eq!(header(&seen, "x-captures").unwrap(), r#"[(None, "ann"), (None, "42"), (Some("user"), "ann")]"#);
}

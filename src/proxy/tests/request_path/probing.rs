//! Targets that the node asks by itself.

use crate::balancing::{balanced, nobody};
use crate::secure::{now, secure_upstream};
use crate::stage::{PATIENCE, Reply, Stage, Upstream, receive};
use bytes::Bytes;
use gwctl_proxy::UpstreamTls;
use http_body::Frame;
use http_body_util::StreamBody;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

/// Waits until the condition holds.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "waited too long for {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Active checks that turn a target at the first result, every few milliseconds; `more` are members of `active`.
fn active(more: Value) -> Value {
    let mut active = json!({"type": "http", "timeout": 60, "concurrency": 10, "http_path": "/", "https_verify_certificate": true,
        "healthy": {"interval": 0.01, "successes": 1, "http_statuses": [200]},
        "unhealthy": {"interval": 0.01, "http_failures": 1, "tcp_failures": 1, "timeouts": 1, "http_statuses": [500]}});
    active.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    json!({"healthchecks": {"active": active}})
}

fn health(stage: &Stage, target: SocketAddr) -> Value {
    let rows = stage.handle.load().upstream_health("u").unwrap();
    rows[&target.to_string()]["health"].clone()
}

async fn until_health(stage: &Stage, target: SocketAddr, word: &str) {
    until(&format!("{target} to be {word}"), || health(stage, target) == word).await;
}

/// An upstream that is fine as long as the switch is on.
async fn switched() -> (Upstream, Arc<AtomicBool>) {
    let fine = Arc::new(AtomicBool::new(true));
    let switch = fine.clone();
    let upstream = Upstream::new(move |mut stream, _| {
        let fine = fine.clone();
        async move {
            while receive(&mut stream).await.is_some() {
                let status = if fine.load(Ordering::SeqCst) { "200 OK" } else { "500 Broken" };
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                if stream.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    })
    .await;
    (upstream, switch)
}

#[tokio::test]
async fn a_target_is_taken_out_and_in_without_any_request() {
    let ((one, switch), (other, _)) = (switched().await, switched().await);
    let stage = Stage::new(balanced(&[one.address, other.address], json!({"retries": 0}), active(json!({}))));
    switch.store(false, Ordering::SeqCst);
    until_health(&stage, one.address, "UNHEALTHY").await;
    for _ in 0..10 {
        assert_eq!(stage.get("/").await.status(), 200);
    }
    assert_eq!(health(&stage, other.address), "HEALTHY");
    switch.store(true, Ordering::SeqCst);
    until_health(&stage, one.address, "HEALTHY").await;
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_is_unhealthy_by_every_kind() {
    for kind in ["http", "https", "tcp", "grpc", "grpcs"] {
        let dead = nobody();
        let stage = Stage::new(balanced(&[dead], json!({}), active(json!({"type": kind}))));
        until_health(&stage, dead, "UNHEALTHY").await;
        assert_eq!(stage.get("/").await.status(), 503, "{kind}");
    }
}

#[tokio::test]
async fn a_target_that_does_not_answer_a_probe_in_time_is_unhealthy() {
    let silent = Upstream::new(|mut stream, _| async move { while receive(&mut stream).await.is_some() {} }).await;
    let stage = Stage::new(balanced(&[silent.address], json!({}), active(json!({"timeout": 0.05}))));
    until_health(&stage, silent.address, "UNHEALTHY").await;
}

#[tokio::test]
async fn a_probe_asks_as_it_is_told() {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = heads.clone();
    let upstream = Upstream::new(move |mut stream, _| {
        let seen = seen.clone();
        async move {
            if let Some((head, _)) = receive(&mut stream).await {
                seen.lock().unwrap().push(head);
            }
        }
    })
    .await;
    let mut settings = active(json!({"http_path": "/up?deep=1", "headers": {"X-Probe": ["yes"]}}));
    settings["host_header"] = json!("h.test");
    let _stage = Stage::new(balanced(&[upstream.address], json!({}), settings));
    until("a probe", || !heads.lock().unwrap().is_empty()).await;
    let head = heads.lock().unwrap()[0].clone();
    assert_eq!(head, "GET /up?deep=1 HTTP/1.1\r\nHost: h.test\r\nX-Probe: yes\r\nConnection: close\r\n\r\n");
}

#[tokio::test]
async fn an_open_port_is_enough_for_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stage = Stage::new(balanced(&[address], json!({}), active(json!({"type": "tcp"}))));
    stage.handle.load().set_target_health("u", &address.to_string(), None, false).unwrap();
    until_health(&stage, address, "HEALTHY").await;
    drop(listener);
    until_health(&stage, address, "UNHEALTHY").await;
}

#[tokio::test]
async fn certificates_are_verified_unless_told_otherwise() {
    let (authority, root) = gwctl_certs::Authority::create("test ca", now(), 10).unwrap();
    let issued = authority.issue_control_plane(&["up.test".to_owned()], now(), 10).unwrap();
    let (address, names) = secure_upstream(issued).await;
    let trusted = vec![("test".to_owned(), root.certificate)];
    let trusting = UpstreamTls { trusted, trust_system: false, client: None };
    let strict = UpstreamTls { trust_system: false, ..UpstreamTls::default() };
    for (upstream_tls, sni, verify, word) in [
        (trusting.clone(), "up.test", true, "HEALTHY"),
        (trusting, "other.test", true, "UNHEALTHY"),
        (strict.clone(), "up.test", true, "UNHEALTHY"),
        (strict, "up.test", false, "HEALTHY"),
    ] {
        let checks = json!({"type": "https", "https_sni": sni, "https_verify_certificate": verify});
        let stage = Stage::towards(balanced(&[address], json!({}), active(checks)), upstream_tls);
        // Whatever it is found to be, it was something else before.
        stage.handle.load().set_target_health("u", &address.to_string(), None, word == "UNHEALTHY").unwrap();
        until_health(&stage, address, word).await;
    }
    assert!(names.lock().unwrap().contains(&Some("up.test".to_owned())));
}

/// A gRPC server whose health service says what the number says.
async fn grpc(serving: Arc<AtomicUsize>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let serving = serving.clone();
            let answer = hyper::service::service_fn(move |request: http::Request<hyper::body::Incoming>| {
                assert_eq!(request.uri().path(), "/grpc.health.v1.Health/Check");
                let message = vec![0, 0, 0, 0, 2, 8, serving.load(Ordering::SeqCst) as u8];
                let trailers = http::HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
                let frames = [Ok::<_, Infallible>(Frame::data(Bytes::from(message))), Ok(Frame::trailers(trailers))];
                let body = StreamBody::new(Frames(frames.into()));
                let answer = http::Response::builder().header("content-type", "application/grpc").body(body).unwrap();
                async move { Ok::<_, Infallible>(answer) }
            });
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(server.serve_connection(TokioIo::new(stream), answer));
        }
    });
    address
}

/// Frames that are all there.
struct Frames(std::collections::VecDeque<Result<Frame<Bytes>, Infallible>>);

impl futures_util::Stream for Frames {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.pop_front())
    }
}

#[tokio::test]
async fn a_grpc_server_is_asked_for_its_health() {
    let serving = Arc::new(AtomicUsize::new(1));
    let address = grpc(serving.clone()).await;
    let stage = Stage::new(balanced(&[address], json!({}), active(json!({"type": "grpc"}))));
    stage.handle.load().set_target_health("u", &address.to_string(), None, false).unwrap();
    until_health(&stage, address, "HEALTHY").await;
    serving.store(2, Ordering::SeqCst);
    until_health(&stage, address, "UNHEALTHY").await;
}

#[tokio::test]
async fn a_target_that_was_removed_is_not_asked_again() {
    let ((gone, _), (kept, _)) = (switched().await, switched().await);
    let settings = || active(json!({"type": "tcp"}));
    let stage = Stage::new(balanced(&[gone.address, kept.address], json!({}), settings()));
    until("probes", || gone.connections() > 2).await;
    stage.reconfigure(balanced(&[kept.address], json!({}), settings()));
    // One probe may be under way; after a round of the other target there is none.
    let mark = kept.connections();
    until("another round", || kept.connections() > mark + 2).await;
    let asked = gone.connections();
    let mark = kept.connections();
    until("ten rounds", || kept.connections() > mark + 10).await;
    assert_eq!(gone.connections(), asked);
}

#[tokio::test]
async fn changes_that_come_faster_than_the_interval_do_not_stop_the_probes() {
    let ((upstream, switch), mut changes) = (switched().await, 0);
    let mut settings = active(json!({"healthy": {"interval": 0.2, "successes": 1, "http_statuses": [200]}}));
    let stage = Stage::new(balanced(&[upstream.address], json!({}), settings.clone()));
    until("the first probe", || upstream.connections() > 0).await;
    switch.store(false, Ordering::SeqCst);
    let end = Instant::now() + PATIENCE;
    while health(&stage, upstream.address) != "UNHEALTHY" {
        assert!(Instant::now() < end, "no probe came through {changes} changes");
        changes += 1;
        settings["slots"] = json!(1000 + changes);
        stage.reconfigure(balanced(&[upstream.address], json!({}), settings.clone()));
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn health_survives_a_change_of_the_upstream_and_of_the_service() {
    let ((one, switch), (other, _)) = (switched().await, switched().await);
    let (third, _) = switched().await;
    // Only a probe of an unhealthy target could take it in again, and there are none.
    let settings = |slots: u32| {
        let mut settings = active(json!({"unhealthy": {"interval": 0, "http_failures": 1, "http_statuses": [500]}}));
        settings["slots"] = json!(slots);
        settings
    };
    let stage = Stage::new(balanced(&[one.address, other.address], json!({}), settings(1000)));
    switch.store(false, Ordering::SeqCst);
    until_health(&stage, one.address, "UNHEALTHY").await;
    switch.store(true, Ordering::SeqCst);
    let targets = [one.address, other.address, third.address];
    for config in [
        balanced(&targets, json!({}), settings(1000)),
        balanced(&targets, json!({}), settings(2000)),
        balanced(&targets, json!({"retries": 3, "read_timeout": 50_000}), settings(2000)),
    ] {
        stage.reconfigure(config);
        assert_eq!(health(&stage, one.address), "UNHEALTHY");
        let replies: Vec<Reply> = [stage.get("/").await, stage.get("/").await, stage.get("/").await].into();
        assert!(replies.iter().all(|reply| reply.status() == 200));
    }
}

#[tokio::test]
async fn no_more_probes_at_a_time_than_allowed() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut targets = Vec::new();
    let mut upstreams = Vec::new();
    for _ in 0..6 {
        let (now, most) = (now.clone(), most.clone());
        let upstream = Upstream::new(move |mut stream, _| {
            let (now, most) = (now.clone(), most.clone());
            async move {
                receive(&mut stream).await;
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                for _ in 0..50 {
                    tokio::task::yield_now().await;
                }
                now.fetch_sub(1, Ordering::SeqCst);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
            }
        })
        .await;
        targets.push(upstream.address);
        upstreams.push(upstream);
    }
    let _stage = Stage::new(balanced(&targets, json!({}), active(json!({"concurrency": 2}))));
    until("five rounds", || upstreams.iter().all(|upstream| upstream.connections() > 5)).await;
    assert!((1..=2).contains(&most.load(Ordering::SeqCst)), "{} at a time", most.load(Ordering::SeqCst));
}

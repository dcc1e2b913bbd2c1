//! Starting, changing the configuration, stopping.

use crate::stage::{PATIENCE, Reply, Stage, Upstream, client, receive, to};
use gwctl_proxy::{Listener, Proxy, ProxyError, ProxyOptions};
use http_body_util::{BodyExt, Full};
use serde_json::json;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;

#[tokio::test]
async fn a_swap_under_load_loses_no_request() {
    let (one, other) = (Upstream::echo().await, Upstream::echo().await);
    let options = ProxyOptions { workers: 2, ..Default::default() };
    let stage = Stage::with(to(one.address, json!({})), options, Vec::new());
    let mut clients = Vec::new();
    for _ in 0..8 {
        let mut client = client(stage.address).await;
        clients.push(tokio::spawn(async move {
            for _ in 0..200 {
                client.ready().await.unwrap();
                let request = http::Request::get("/").header("host", "a").body(Full::default()).unwrap();
                let response = client.send_request(request).await.unwrap();
                assert_eq!(response.status(), 200);
                response.into_body().collect().await.unwrap();
            }
        }));
    }
    let mut turn = 0;
    while clients.iter().any(|client| !client.is_finished()) {
        stage.reconfigure(to([&one, &other][turn % 2].address, json!({})));
        turn += 1;
        tokio::task::yield_now().await;
    }
    for client in clients {
        client.await.unwrap();
    }
    assert!(turn > 1 && other.connections() > 0, "{turn} swaps");
}

#[tokio::test]
async fn a_request_after_a_swap_goes_to_the_new_service() {
    let (one, other) = (Upstream::echo().await, Upstream::echo().await);
    let stage = Stage::new(to(one.address, json!({})));
    stage.get("/").await;
    stage.reconfigure(to(other.address, json!({})));
    assert!(stage.get("/").await.text().contains(&other.address.to_string()));
    stage.reconfigure(json!({}));
    assert_eq!(stage.get("/").await.status(), 404);
}

#[tokio::test]
async fn a_stop_lets_the_request_in_flight_end() {
    let (arrived, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (at_upstream, released) = (arrived.clone(), go_on.clone());
    let upstream = Upstream::new(move |mut stream, _| {
        let (arrived, go_on) = (at_upstream.clone(), released.clone());
        async move {
            receive(&mut stream).await;
            arrived.notify_one();
            go_on.notified().await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone").await.unwrap();
        }
    })
    .await;
    let mut stage = Stage::new(to(upstream.address, json!({})));
    let mut stream = TcpStream::connect(stage.address).await.unwrap();
    let idle = TcpStream::connect(stage.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    arrived.notified().await;
    let stopping = tokio::spawn(stage.proxy.take().unwrap().stop());
    // Once nobody listens the stop has begun.
    while TcpStream::connect(stage.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    go_on.notify_one();
    let reply = Reply::read(&mut stream).await;
    assert_eq!((reply.text().as_str(), reply.clean), ("done", true));
    tokio::time::timeout(PATIENCE, stopping).await.unwrap().unwrap();
    drop(idle);
}

#[tokio::test]
async fn a_stop_has_a_deadline() {
    let upstream = Upstream::new(|mut stream, _| async move {
        receive(&mut stream).await;
        receive(&mut stream).await;
    })
    .await;
    let options = ProxyOptions { shutdown_timeout: std::time::Duration::from_millis(50), ..Default::default() };
    let mut stage = Stage::with(to(upstream.address, json!({})), options, Vec::new());
    let mut stream = TcpStream::connect(stage.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    tokio::time::timeout(PATIENCE, stage.proxy.take().unwrap().stop()).await.unwrap();
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = taken.local_addr().unwrap();
    let stage = Stage::new(json!({}));
    let listeners = vec![Listener { addr, ssl: false, http2: false, proxy_protocol: false }];
    let error = Proxy::start(ProxyOptions { listeners, ..Default::default() }, stage.handle.clone()).err().unwrap();
    assert!(matches!(error, ProxyError::IoListen { address, .. } if address == addr));
}

#[tokio::test]
async fn a_connection_is_closed_after_its_requests_when_it_is_idle_or_with_each() {
    let upstream = Upstream::echo().await;
    let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let answers = async |options: ProxyOptions, requests: usize| {
        let stage = Stage::with(to(upstream.address, json!({})), options, Vec::new());
        let reply = stage.raw(get.repeat(requests)).await;
        assert!(reply.clean);
        let text = format!("{}{}", reply.head, reply.text());
        (text.matches("HTTP/1.1 200 OK").count(), text.matches("Connection: close").count())
    };
    let millis = std::time::Duration::from_millis;
    let three = ProxyOptions { keepalive_requests: 3, ..Default::default() };
    assert_eq!(answers(three, 3).await, (3, 1));
    let idle = ProxyOptions { keepalive_timeout: millis(100), ..Default::default() };
    assert_eq!(answers(idle, 2).await, (2, 0));
    let none = ProxyOptions { keepalive_timeout: millis(0), ..Default::default() };
    assert_eq!(answers(none, 1).await, (1, 1));
    // The time for a head counts from its first byte, however long the connection may stay idle.
    let head = ProxyOptions { header_timeout: millis(100), ..Default::default() };
    let stage = Stage::with(to(upstream.address, json!({})), head, Vec::new());
    let reply = stage.raw(format!("{get}GET / HTTP/1.1\r\nHost")).await;
    assert_eq!(reply.status(), 200);
}

#[tokio::test]
async fn an_idle_upstream_connection_is_kept_for_its_time_and_for_ever_without_one() {
    let millis = std::time::Duration::from_millis;
    for (idle, connections) in [(millis(0), 1), (millis(3_600_000), 1), (std::time::Duration::from_nanos(1), 2)] {
        let upstream = Upstream::echo().await;
        let options = ProxyOptions { upstream_keepalive_idle_timeout: idle, ..Default::default() };
        let stage = Stage::with(to(upstream.address, json!({})), options, Vec::new());
        for _ in 0..2 {
            assert_eq!(stage.get("/").await.status(), 200);
        }
        assert_eq!(upstream.connections(), connections, "{idle:?}");
    }
}

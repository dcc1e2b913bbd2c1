//! Upstreams that fail.

use crate::balancing::{balanced, nobody};
use crate::naming::NameServer;
use crate::stage::{Stage, Upstream, receive, to, unbuffered};
use gwctl_proxy::ProxyOptions;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn a_refused_connection_is_a_502() {
    let reply = Stage::new(to(nobody(), json!({}))).get("/").await;
    assert_eq!(reply.status(), 502);
    assert!(reply.text().contains("An invalid response was received from the upstream server"));
}

#[tokio::test]
async fn a_refused_connection_is_tried_at_the_next_target() {
    let upstream = Upstream::echo().await;
    let stage = Stage::new(balanced(&[nobody(), upstream.address], json!({"retries": 1}), json!({})));
    for _ in 0..4 {
        let reply = stage.raw("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody").await;
        assert_eq!(reply.status(), 200);
        assert!(reply.text().ends_with("body"));
    }
}

#[tokio::test]
async fn without_retries_there_is_one_attempt() {
    let upstream = Upstream::echo().await;
    let stage = Stage::new(balanced(&[nobody(), upstream.address], json!({"retries": 0}), json!({})));
    let mut statuses = [stage.get("/").await.status(), stage.get("/").await.status()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 502]);
}

#[tokio::test]
async fn a_get_without_response_is_sent_again_and_a_post_is_not() {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    let upstream = Upstream::new(move |mut stream, _| {
        let count = count.clone();
        async move {
            receive(&mut stream).await;
            count.fetch_add(1, Ordering::SeqCst);
        }
    })
    .await;
    let stage = Stage::new(to(upstream.address, json!({"retries": 2})));
    assert_eq!(stage.get("/").await.status(), 502);
    assert_eq!(seen.swap(0, Ordering::SeqCst), 3);
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    assert_eq!(stage.raw(post).await.status(), 502);
    assert_eq!(seen.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_silent_upstream_is_a_504() {
    let upstream = Upstream::new(|mut stream, _| async move {
        receive(&mut stream).await;
        // Until the proxy gives up.
        let _ = stream.read_u8().await;
    })
    .await;
    let stage = Stage::new(to(upstream.address, json!({"read_timeout": 50, "retries": 0})));
    let reply = stage.get("/").await;
    assert_eq!(reply.status(), 504);
    assert!(reply.text().contains("The upstream server is timing out"));
}

#[tokio::test]
async fn an_upstream_without_targets_is_a_503() {
    let mut config = balanced(&[nobody()], json!({}), json!({}));
    config["targets"][0]["weight"] = json!(0);
    let reply = Stage::new(config).get("/").await;
    assert_eq!(reply.status(), 503);
    assert!(reply.text().contains("failure to get a peer from the ring-balancer"));
}

#[tokio::test]
async fn an_unknown_name_is_a_503() {
    let server = NameServer::start().await;
    let config = to(nobody(), json!({"host": "does-not-exist.invalid"}));
    let reply = Stage::with(config, server.options(), Vec::new()).get("/").await;
    assert_eq!(reply.status(), 503);
    assert!(reply.text().contains("name resolution failed"));
}

#[tokio::test]
async fn garbage_is_a_502_and_asked_for_once() {
    for answer in ["SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 099 No\r\n\r\n", "HTTP/1.1 200 OK\r\nA b\r\n\r\n"] {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let upstream = Upstream::new(move |mut stream, _| {
            let count = count.clone();
            async move {
                while receive(&mut stream).await.is_some() {
                    count.fetch_add(1, Ordering::SeqCst);
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            }
        })
        .await;
        assert_eq!(Stage::new(to(upstream.address, json!({"retries": 5}))).get("/").await.status(), 502);
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{answer}");
    }
}

#[tokio::test]
async fn an_upstream_that_dies_in_the_body_cuts_the_client() {
    for head in ["Content-Length: 100", "Transfer-Encoding: chunked"] {
        let upstream = Upstream::new(move |mut stream, _| async move {
            receive(&mut stream).await;
            let part = if head.starts_with('C') { "half" } else { "4\r\nhalf\r\n" };
            stream.write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{part}").as_bytes()).await.unwrap();
        })
        .await;
        let reply = Stage::new(to(upstream.address, json!({}))).get("/").await;
        assert_eq!(reply.status(), 200);
        assert!(
            !reply.text().contains("\r\n0\r\n"),
            "the end of a broken body must not look regular: {}",
            reply.text()
        );
        assert!(reply.body.len() < 100);
    }
}

#[tokio::test]
async fn an_upstream_that_stalls_in_the_body_cuts_the_client() {
    let upstream = Upstream::new(|mut stream, _| async move {
        receive(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf").await.unwrap();
        let _ = stream.read_u8().await;
    })
    .await;
    let reply = Stage::new(to(upstream.address, json!({"read_timeout": 50}))).get("/").await;
    assert_eq!((reply.status(), reply.text().as_str()), (200, "half"));
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_is_not_an_error() {
    // Each connection serves one request and closes, without saying so before.
    let upstream = Upstream::new(|mut stream, _| async move {
        receive(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
    })
    .await;
    let stage = Stage::new(to(upstream.address, json!({"retries": 0})));
    for _ in 0..30 {
        assert_eq!(stage.get("/").await.status(), 200);
    }
}

#[tokio::test]
async fn a_client_that_leaves_frees_the_upstream() {
    let (told, gone) = tokio::sync::oneshot::channel();
    let told = Arc::new(std::sync::Mutex::new(Some(told)));
    let upstream = Upstream::new(move |mut stream, _| {
        let told = told.clone();
        async move {
            receive(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nsome").await.unwrap();
            let ended = stream.read_u8().await.is_err();
            if let Some(told) = told.lock().unwrap().take() {
                told.send(ended).unwrap();
            }
        }
    })
    .await;
    let stage = Stage::new(to(upstream.address, json!({})));
    let mut client = tokio::net::TcpStream::connect(stage.address).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let mut some = [0; 15];
    client.read_exact(&mut some).await.unwrap();
    drop(client);
    assert!(tokio::time::timeout(crate::stage::PATIENCE, gone).await.unwrap().unwrap());
}

#[tokio::test]
async fn a_client_that_stops_in_the_middle_of_its_body_is_told_408() {
    let upstream = Upstream::echo().await;
    let options = ProxyOptions { client_timeout: std::time::Duration::from_millis(50), ..Default::default() };
    let stage = Stage::with(to(upstream.address, json!({})), options, Vec::new());
    let reply = stage.raw("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf").await;
    assert_eq!(reply.status(), 408);
}

#[tokio::test]
async fn a_client_that_never_ends_its_head_is_cut_off() {
    let options = ProxyOptions { header_timeout: std::time::Duration::from_millis(50), ..Default::default() };
    let stage = Stage::with(json!({}), options, Vec::new());
    assert!(matches!(stage.raw("GET / HTTP/1.1\r\nHost: a\r\nX").await.status(), 0 | 408));
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_of_its_body_ends_the_upstream_request() {
    let (told, gone) = tokio::sync::oneshot::channel();
    let told = Arc::new(std::sync::Mutex::new(Some(told)));
    let upstream = Upstream::new(move |mut stream, _| {
        let told = told.clone();
        async move {
            let complete = receive(&mut stream).await.is_some();
            if let Some(told) = told.lock().unwrap().take() {
                told.send(complete).unwrap();
            }
        }
    })
    .await;
    let stage = Stage::new(unbuffered(to(upstream.address, json!({}))));
    let mut client = tokio::net::TcpStream::connect(stage.address).await.unwrap();
    client.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nsome").await.unwrap();
    while upstream.connections() == 0 {
        tokio::task::yield_now().await;
    }
    drop(client);
    let complete = tokio::time::timeout(crate::stage::PATIENCE, gone).await.unwrap().unwrap();
    assert!(!complete, "the upstream must not take half a body for a whole one");
}

#[tokio::test]
async fn a_client_that_takes_nothing_frees_the_upstream() {
    let (told, gone) = tokio::sync::oneshot::channel();
    let told = Arc::new(std::sync::Mutex::new(Some(told)));
    let upstream = Upstream::new(move |mut stream, _| {
        let told = told.clone();
        async move {
            receive(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n").await.unwrap();
            let block = vec![0; 1 << 20];
            while stream.write_all(&block).await.is_ok() {}
            if let Some(told) = told.lock().unwrap().take() {
                told.send(()).unwrap();
            }
        }
    })
    .await;
    let options = ProxyOptions { send_timeout: std::time::Duration::from_millis(50), ..Default::default() };
    let stage = Stage::with(to(upstream.address, json!({})), options, Vec::new());
    let mut client = tokio::net::TcpStream::connect(stage.address).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    tokio::time::timeout(crate::stage::PATIENCE, gone).await.unwrap().unwrap();
}

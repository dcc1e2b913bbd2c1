//! The figures of streams.

use crate::balancing::nobody;
use crate::stage::Stage;
use crate::streams::{read_rest, read_text, stream_to, streaming, talker};
use gwctl_proxy::ProxyOptions;
use serde_json::json;
use std::net::SocketAddr;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

fn figures(stage: &Stage) -> String {
    let mut text = String::new();
    stage.proxy.as_ref().unwrap().stats().metrics().write(&mut text);
    text
}

/// Waits until a line is among the figures.
async fn wait_for(stage: &Stage, line: &str) {
    let wait = async {
        while !figures(stage).lines().any(|other| other == line) {
            tokio::task::yield_now().await;
        }
    };
    let patience = tokio::time::timeout(crate::stage::PATIENCE, wait).await;
    assert!(patience.is_ok(), "`{line}` in {}", figures(stage));
}

async fn visit(address: SocketAddr) -> String {
    read_rest(&mut TcpStream::connect(address).await.unwrap()).await
}

#[tokio::test]
async fn open_streams_and_what_they_carry_are_told_while_they_last() {
    let upstream = talker("hello").await;
    let config = stream_to(upstream.address, json!({"name": "door"}), json!({"name": "db"}));
    let (stage, address) = streaming(config, false, ProxyOptions::default());
    let mut client = TcpStream::connect(address).await.unwrap();
    assert_eq!(read_text(&mut client, 5).await, "hello");
    client.write_all(b"ping").await.unwrap();
    assert_eq!(read_text(&mut client, 4).await, "ping");
    let of_route = r#"service="db",route="door""#;
    let bandwidth = |direction: &str, bytes: u64| {
        let labels = format!(r#"{of_route},direction="{direction}",workspace="default",consumer="""#);
        format!("kong_bandwidth_bytes{{{labels}}} {bytes}")
    };
    wait_for(&stage, &format!("gwctl_stream_sessions_open{{{of_route}}} 1")).await;
    wait_for(&stage, &bandwidth("ingress", 4)).await;
    wait_for(&stage, &bandwidth("egress", 9)).await;
    assert!(!figures(&stage).contains("kong_stream_sessions_total{"), "{}", figures(&stage));
    let now = stage.proxy.as_ref().unwrap().stats().now();
    assert_eq!((now.streams_accepted, now.streams_handled, now.streams_active), (1, 1, 1));
    drop(client);
    let ended =
        format!(r#"kong_stream_sessions_total{{{of_route},code="200",source="service",workspace="default"}} 1"#);
    wait_for(&stage, &ended).await;
    wait_for(&stage, &format!("gwctl_stream_sessions_open{{{of_route}}} 0")).await;
    wait_for(&stage, &format!(r#"kong_session_duration_ms_count{{{of_route},workspace="default"}} 1"#)).await;
}

#[tokio::test]
async fn streams_without_a_route_and_targets_that_do_not_answer_are_counted() {
    let deaf = nobody();
    let elsewhere = stream_to(deaf, json!({"sources": [{"ip": "10.0.0.0/8"}]}), json!({}));
    let (stage, address) = streaming(elsewhere, false, ProxyOptions::default());
    assert_eq!(visit(address).await, "");
    stage.reconfigure(stream_to(deaf, json!({"name": "door"}), json!({"name": "db", "retries": 2})));
    assert_eq!(visit(address).await, "");
    let sessions = |labels: &str| format!("kong_stream_sessions_total{{{labels},workspace=\"default\"}} 1");
    wait_for(&stage, &sessions(r#"service="",route="",code="500",source="exit""#)).await;
    wait_for(&stage, &sessions(r#"service="db",route="door",code="502",source="error""#)).await;
    wait_for(&stage, r#"gwctl_stream_connect_failures_total{service="db",route="door"} 3"#).await;
    wait_for(&stage, r#"gwctl_stream_sessions_open{service="",route=""} 0"#).await;
}

#[tokio::test]
async fn a_route_that_comes_to_another_service_is_counted_there() {
    let (one, other) = (talker("one").await, talker("two").await);
    let config = |address, service: &str| stream_to(address, json!({"name": "door"}), json!({"name": service}));
    let (stage, address) = streaming(config(one.address, "first"), false, ProxyOptions::default());
    let done = async || {
        let mut client = TcpStream::connect(address).await.unwrap();
        client.shutdown().await.unwrap();
        read_rest(&mut client).await
    };
    assert_eq!(done().await, "oneend of 0");
    stage.reconfigure(config(other.address, "second"));
    assert_eq!(done().await, "twoend of 0");
    for service in ["first", "second"] {
        let labels = format!(r#"service="{service}",route="door",code="200",source="service",workspace="default""#);
        wait_for(&stage, &format!("kong_stream_sessions_total{{{labels}}} 1")).await;
    }
}

//! Connections that are passed on as bytes.

use crate::balancing::nobody;
use crate::stage::{PATIENCE, Stage, Upstream};
use gwctl_entities::Value;
use gwctl_proxy::{ProxyOptions, StreamListener};
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub const ROUTE: &str = "00000000-0000-4000-8000-000000000001";
pub const SERVICE: &str = "00000000-0000-4000-8000-000000000002";

/// A stage that listens for streams; where.
pub fn streaming(config: Value, ssl: bool, options: ProxyOptions) -> (Stage, SocketAddr) {
    let streams = vec![StreamListener { addr: "127.0.0.1:0".parse().unwrap(), ssl, proxy_protocol: false, udp: false }];
    let stage = Stage::with(config, ProxyOptions { streams, ..options }, Vec::new());
    let address = stage.proxy.as_ref().unwrap().stream_addresses()[0];
    (stage, address)
}

/// One route to one service at an address, fields of both added.
pub fn stream_to(address: SocketAddr, route: Value, service: Value) -> Value {
    let mut config = json!({
        "services": [{"id": SERVICE, "protocol": "tcp", "host": address.ip().to_string(), "port": address.port(),
            "retries": 5, "connect_timeout": 60_000, "write_timeout": 60_000, "read_timeout": 60_000}],
        "routes": [{"id": ROUTE, "service": {"id": SERVICE}, "protocols": ["tcp"], "sources": [{"ip": "127.0.0.0/8"}]}],
    });
    let add = |row: &mut Value, fields: Value| row.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    add(&mut config["routes"][0], route);
    add(&mut config["services"][0], service);
    config
}

/// Says its name, then sends back what it gets; at the end of that it says how much it was.
pub async fn talker(name: &'static str) -> Upstream {
    Upstream::new(move |mut stream, _| async move {
        stream.write_all(name.as_bytes()).await.unwrap();
        let (mut buffer, mut total) = ([0; 4096], 0);
        loop {
            match stream.read(&mut buffer).await {
                Ok(0) => break,
                Ok(read) => {
                    total += read;
                    if stream.write_all(&buffer[..read]).await.is_err() {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
        let _ = stream.write_all(format!("end of {total}").as_bytes()).await;
    })
    .await
}

pub async fn read_text(stream: &mut (impl AsyncRead + Unpin), length: usize) -> String {
    let mut text = vec![0; length];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut text)).await.expect("nothing comes").unwrap();
    String::from_utf8(text).unwrap()
}

/// Everything up to the end of a stream, however it ends.
pub async fn read_rest(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the stream does not end");
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn bytes_go_both_ways_and_a_side_that_is_done_still_hears() {
    let upstream = talker("hello ").await;
    let (stage, address) = streaming(stream_to(upstream.address, json!({}), json!({})), false, ProxyOptions::default());
    let mut client = TcpStream::connect(address).await.unwrap();
    assert_eq!(read_text(&mut client, 6).await, "hello ", "the upstream may speak first");
    client.write_all(b"ping").await.unwrap();
    assert_eq!(read_text(&mut client, 4).await, "ping");
    client.shutdown().await.unwrap();
    assert_eq!(read_rest(&mut client).await, "end of 4");
    let stats = stage.proxy.as_ref().unwrap().stats();
    assert_eq!((stats.now().connections_accepted, stats.now().total_requests), (1, 0));
    while stats.now().connections_active > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn large_transfers_arrive_whole() {
    let upstream = talker("").await;
    let (_stage, address) =
        streaming(stream_to(upstream.address, json!({}), json!({})), false, ProxyOptions::default());
    let (mut reader, mut writer) = TcpStream::connect(address).await.unwrap().into_split();
    let sent: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    let expected = [sent.as_slice(), b"end of 3000000"].concat();
    let writing = tokio::spawn(async move {
        writer.write_all(&sent).await.unwrap();
        writer.shutdown().await.unwrap();
    });
    let mut received = Vec::new();
    tokio::time::timeout(PATIENCE, reader.read_to_end(&mut received)).await.unwrap().unwrap();
    writing.await.unwrap();
    assert!(received == expected, "{} bytes came back", received.len());
}

#[tokio::test]
async fn without_a_route_or_a_service_the_connection_is_closed_at_once() {
    let upstream = talker("hello").await;
    let elsewhere = json!({"sources": [{"ip": "10.0.0.0/8"}]});
    let (stage, address) = streaming(stream_to(upstream.address, elsewhere, json!({})), false, ProxyOptions::default());
    assert_eq!(read_rest(&mut TcpStream::connect(address).await.unwrap()).await, "");
    stage.reconfigure(stream_to(upstream.address, json!({"service": null}), json!({})));
    assert_eq!(read_rest(&mut TcpStream::connect(address).await.unwrap()).await, "");
    let here = json!({"sources": [], "destinations": [{"ip": "127.0.0.1", "port": address.port()}]});
    stage.reconfigure(stream_to(upstream.address, here, json!({})));
    assert_eq!(read_text(&mut TcpStream::connect(address).await.unwrap(), 5).await, "hello");
    assert_eq!(upstream.connections(), 1);
}

#[tokio::test]
async fn a_change_leaves_open_streams_alone() {
    let (one, other) = (talker("one").await, talker("two").await);
    let (stage, address) = streaming(stream_to(one.address, json!({}), json!({})), false, ProxyOptions::default());
    let mut before = TcpStream::connect(address).await.unwrap();
    assert_eq!(read_text(&mut before, 3).await, "one");
    stage.reconfigure(stream_to(other.address, json!({}), json!({})));
    let mut after = TcpStream::connect(address).await.unwrap();
    assert_eq!(read_text(&mut after, 3).await, "two");
    stage.reconfigure(json!({}));
    before.write_all(b"still").await.unwrap();
    assert_eq!(read_text(&mut before, 5).await, "still");
}

#[tokio::test]
async fn another_target_is_tried_and_the_dead_one_is_given_up() {
    let (dead, alive) = (nobody(), talker("alive").await);
    let mut config = stream_to(dead, json!({}), json!({"host": "u.test"}));
    config["upstreams"] = json!([{"id": "u", "name": "u.test",
        "healthchecks": {"passive": {"type": "tcp", "unhealthy": {"tcp_failures": 1}}}}]);
    config["targets"] = json!([
        {"id": "t1", "target": dead.to_string(), "weight": 100, "upstream": {"id": "u"}},
        {"id": "t2", "target": alive.address.to_string(), "weight": 100, "upstream": {"id": "u"}},
    ]);
    let (stage, address) = streaming(config, false, ProxyOptions::default());
    for _ in 0..4 {
        assert_eq!(read_text(&mut TcpStream::connect(address).await.unwrap(), 5).await, "alive");
    }
    let health = stage.handle.load().upstream_health("u").unwrap();
    assert_eq!((&health["t1"]["health"], &health["t2"]["health"]), (&json!("UNHEALTHY"), &json!("HEALTHY")));
}

#[tokio::test]
async fn when_no_target_answers_the_connection_is_closed() {
    let config = stream_to(nobody(), json!({}), json!({"retries": 1}));
    let (_stage, address) = streaming(config, false, ProxyOptions::default());
    assert_eq!(read_rest(&mut TcpStream::connect(address).await.unwrap()).await, "");
}

#[tokio::test]
async fn a_stream_on_which_nothing_moves_is_closed() {
    let upstream = talker("hello").await;
    // Long enough for the upstream to say its word on a busy machine.
    let config = stream_to(upstream.address, json!({}), json!({"read_timeout": 3000}));
    let (_stage, address) = streaming(config, false, ProxyOptions::default());
    assert_eq!(read_rest(&mut TcpStream::connect(address).await.unwrap()).await, "hello");
}

#[tokio::test]
async fn a_side_that_takes_nothing_is_given_up() {
    let upstream = Upstream::new(|stream, _| async move {
        // Held open, never read.
        let _held = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let config = stream_to(upstream.address, json!({}), json!({"write_timeout": 100, "read_timeout": 600_000}));
    let (_stage, address) = streaming(config, false, ProxyOptions::default());
    let mut client = TcpStream::connect(address).await.unwrap();
    let part = vec![0; 1 << 20];
    let flood = async { while client.write_all(&part).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, flood).await.expect("the stream is cut");
}

#[tokio::test]
async fn a_stop_waits_for_streams_and_cuts_those_that_stay() {
    let upstream = talker("hello").await;
    let config = stream_to(upstream.address, json!({}), json!({}));
    // A stream of a proxy that has been told to stop within this time.
    let stopping = async |limit: Duration| {
        let options = ProxyOptions { shutdown_timeout: limit, ..ProxyOptions::default() };
        let (mut stage, address) = streaming(config.clone(), false, options);
        let mut client = TcpStream::connect(address).await.unwrap();
        read_text(&mut client, 5).await;
        let stopping = tokio::spawn(stage.proxy.take().unwrap().stop());
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        (client, stopping)
    };
    let (mut ends, stopped) = stopping(Duration::from_secs(3600)).await;
    ends.write_all(b"x").await.unwrap();
    ends.shutdown().await.unwrap();
    assert_eq!(read_rest(&mut ends).await, "xend of 1");
    tokio::time::timeout(PATIENCE, stopped).await.unwrap().unwrap();
    let (mut stays, stopped) = stopping(Duration::from_millis(300)).await;
    assert_eq!(read_rest(&mut stays).await, "");
    tokio::time::timeout(PATIENCE, stopped).await.unwrap().unwrap();
}

//! Clients behind a balancer that speaks the PROXY protocol.

use crate::stage::{Reply, Stage, Upstream, to};
use crate::streams::{read_rest, read_text, stream_to, talker};
use gwctl_proxy::{Listener, Network, ProxyOptions, StreamListener};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Listens for both kinds behind a balancer on this machine.
fn options(trusted: &str) -> ProxyOptions {
    let addr = "127.0.0.1:0".parse().unwrap();
    ProxyOptions {
        listeners: vec![Listener { addr, ssl: false, http2: true, proxy_protocol: true }],
        streams: vec![StreamListener { addr, ssl: false, proxy_protocol: true, udp: false }],
        trusted_ips: vec![Network::parse(trusted).unwrap()],
        real_ip_header: "proxy_protocol".to_owned(),
        ..ProxyOptions::default()
    }
}

const LINE: &str = "PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n";
const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a.test\r\nproxy_protocol: 6.6.6.6\r\nConnection: close\r\n\r\n";

async fn ask(stage: &Stage, bytes: String) -> Reply {
    stage.raw(bytes).await
}

#[tokio::test]
async fn the_client_of_a_request_is_the_one_that_a_trusted_balancer_names() {
    let upstream = Upstream::echo().await;
    for (trusted, client) in [("127.0.0.1", "192.0.2.7"), ("10.0.0.1", "127.0.0.1")] {
        let stage = Stage::with(to(upstream.address, json!({})), options(trusted), Vec::new());
        let reply = ask(&stage, format!("{LINE}{REQUEST}")).await;
        assert!(reply.text().contains(&format!("X-Real-IP: {client}\r\n")), "{}", reply.text());
        let reply = ask(&stage, format!("PROXY UNKNOWN\r\n{REQUEST}")).await;
        assert!(reply.text().contains("X-Real-IP: 127.0.0.1\r\n"), "{}", reply.text());
    }
}

#[tokio::test]
async fn a_connection_without_the_header_is_closed() {
    let upstream = Upstream::echo().await;
    let stage = Stage::with(to(upstream.address, json!({})), options("127.0.0.1"), Vec::new());
    let reply = ask(&stage, REQUEST.to_owned()).await;
    assert_eq!((reply.head.as_str(), upstream.connections()), ("", 0));
}

#[tokio::test]
async fn a_stream_is_routed_by_the_client_that_is_named() {
    let upstream = talker("hello").await;
    let config = stream_to(upstream.address, json!({"sources": [{"ip": "192.0.2.0/24"}]}), json!({}));
    for (trusted, reaches) in [("127.0.0.1", true), ("10.0.0.1", false)] {
        let stage = Stage::with(config.clone(), options(trusted), Vec::new());
        let mut client = TcpStream::connect(stage.proxy.as_ref().unwrap().stream_addresses()[0]).await.unwrap();
        client.write_all(format!("{LINE}ping").as_bytes()).await.unwrap();
        if reaches {
            assert_eq!(read_text(&mut client, 9).await, "helloping");
        } else {
            assert_eq!(read_rest(&mut client).await, "");
        }
    }
}

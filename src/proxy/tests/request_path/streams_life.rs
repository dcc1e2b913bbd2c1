//! How streams begin and end: targets by hash and by load, health, half-closed sides, certificates for upstreams.

use crate::balancing::nobody;
use crate::client_certificates::{asking, leaf, row};
use crate::secure::{handshake, now, pair};
use crate::stage::{PATIENCE, Stage, Upstream};
use crate::streams::{read_rest, read_text, stream_to, streaming, talker};
use gwctl_certs::Authority;
use gwctl_entities::Value;
use gwctl_proxy::ProxyOptions;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Says goodbye first, then keeps what it hears.
async fn done_first() -> (Upstream, Arc<Mutex<String>>) {
    let heard = Arc::<Mutex<String>>::default();
    let notes = heard.clone();
    let upstream = Upstream::new(move |mut stream, _| {
        let notes = notes.clone();
        async move {
            stream.write_all(b"bye").await.unwrap();
            stream.shutdown().await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            notes.lock().unwrap().push_str(&text);
        }
    })
    .await;
    (upstream, heard)
}

async fn wait_for(heard: &Mutex<String>, text: &str) {
    let wait = async {
        while *heard.lock().unwrap() != text {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, wait).await.is_ok(), "{:?}", heard.lock());
}

#[tokio::test]
async fn an_upstream_that_is_done_still_hears() {
    let (upstream, heard) = done_first().await;
    let (_stage, address) =
        streaming(stream_to(upstream.address, json!({}), json!({})), false, ProxyOptions::default());
    let mut client = TcpStream::connect(address).await.unwrap();
    assert_eq!(read_rest(&mut client).await, "bye");
    client.write_all(b"and more").await.unwrap();
    client.shutdown().await.unwrap();
    wait_for(&heard, "and more").await;
}

#[tokio::test]
async fn over_tls_each_side_may_be_done_first_too() {
    let (upstream, heard) = done_first().await;
    let tls = json!({"protocols": ["tls"], "sources": [], "snis": ["end.test"]});
    let mut config = stream_to(upstream.address, tls, json!({}));
    config["certificates"] = json!([row("c", &pair("end.test"))]);
    config["snis"] = json!([{"id": "n", "name": "end.test", "certificate": {"id": "c"}}]);
    let (_stage, address) = streaming(config, true, ProxyOptions::default());
    let mut client = handshake(address, "end.test", &[]).await;
    assert_eq!(read_rest(&mut client).await, "bye");
    client.write_all(b"and more").await.unwrap();
    client.shutdown().await.unwrap();
    wait_for(&heard, "and more").await;
}

fn among(targets: &[SocketAddr], upstream: Value, service: Value) -> Value {
    with_targets(stream_to(targets[0], json!({}), service), targets, upstream)
}

/// A configuration with these targets in place of its service's host.
pub(crate) fn with_targets(mut config: Value, targets: &[SocketAddr], upstream: Value) -> Value {
    config["services"][0]["host"] = json!("u.test");
    let mut row = json!({"id": "u", "name": "u.test"});
    row.as_object_mut().unwrap().extend(upstream.as_object().unwrap().clone());
    config["upstreams"] = json!([row]);
    let target = |(number, address): (usize, &SocketAddr)| json!({"id": format!("t{number}"), "target": address.to_string(), "weight": 100, "upstream": {"id": "u"}});
    config["targets"] = targets.iter().enumerate().map(target).collect();
    config
}

/// Who answers a client with this address.
async fn answers(address: SocketAddr, client: [u8; 4]) -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((std::net::Ipv4Addr::from(client), 0).into()).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    read_text(&mut stream, 1).await
}

#[tokio::test]
async fn a_client_stays_at_its_target_by_hash_and_takes_turns_without() {
    let (one, other) = (talker("1").await, talker("2").await);
    let targets = [one.address, other.address];
    let hashed = json!({"algorithm": "consistent-hashing", "hash_on": "ip"});
    let (stage, address) = streaming(among(&targets, hashed, json!({})), false, ProxyOptions::default());
    let mut seen = String::new();
    for last in 1..=16 {
        let first = answers(address, [127, 0, 0, last]).await;
        assert_eq!(answers(address, [127, 0, 0, last]).await, first, "client {last}");
        seen.push_str(&first);
    }
    assert!(seen.contains('1') && seen.contains('2'), "both have clients: {seen}");
    stage.reconfigure(among(&targets, json!({"algorithm": "round-robin", "hash_on": "none"}), json!({})));
    let mut turns = Vec::new();
    for _ in 0..4 {
        turns.push(answers(address, [127, 0, 0, 1]).await);
    }
    assert!(turns[0] != turns[1] && turns[0] == turns[2] && turns[1] == turns[3], "{turns:?}");
}

#[tokio::test]
async fn a_stream_counts_at_its_target_for_as_long_as_it_lasts() {
    let (one, other) = (talker("1").await, talker("2").await);
    let least = json!({"algorithm": "least-connections"});
    let config = among(&[one.address, other.address], least, json!({}));
    let (_stage, address) = streaming(config, false, ProxyOptions::default());
    let mut open = Vec::new();
    let mut counts = [0, 0];
    for _ in 0..6 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        counts[usize::from(read_text(&mut stream, 1).await == "2")] += 1;
        open.push(stream);
    }
    assert_eq!(counts, [3, 3]);
}

fn health(stage: &Stage) -> Value {
    stage.handle.load().upstream_health("u").unwrap()["t0"]["health"].clone()
}

#[tokio::test]
async fn targets_that_refuse_or_say_nothing_are_given_up_by_their_own_rules() {
    let deaf = nobody();
    // Takes connections, answers no handshake.
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let rules = |tcp: u64, timeouts: u64| {
        json!({"healthchecks": {"passive": {"type": "tcp",
            "unhealthy": {"tcp_failures": tcp, "timeouts": timeouts}}}})
    };
    let service = |protocol: &str, connect_timeout: u64| json!({"protocol": protocol, "retries": 0, "connect_timeout": connect_timeout});
    let visit = async |address| read_rest(&mut TcpStream::connect(address).await.unwrap()).await;

    let (stage, address) =
        streaming(among(&[deaf], rules(2, 0), service("tcp", 60_000)), false, ProxyOptions::default());
    assert_eq!((visit(address).await, health(&stage)), (String::new(), json!("HEALTHY")), "one is not enough");
    assert_eq!((visit(address).await, health(&stage)), (String::new(), json!("UNHEALTHY")));

    let silent = mute.local_addr().unwrap();
    let (stage, address) = streaming(among(&[silent], rules(1, 0), service("tls", 50)), false, ProxyOptions::default());
    assert_eq!((visit(address).await, health(&stage)), (String::new(), json!("HEALTHY")), "a timeout is no failure");
    let (stage, address) = streaming(among(&[silent], rules(0, 1), service("tls", 50)), false, ProxyOptions::default());
    assert_eq!((visit(address).await, health(&stage)), (String::new(), json!("UNHEALTHY")));
}

#[tokio::test]
async fn an_upstream_of_tls_is_verified_and_shown_the_certificate_of_the_service() {
    let (authority, root) = Authority::create("root", now(), 10).unwrap();
    let ours = authority.issue_data_plane("us", now(), 10).unwrap();
    let (address, seen) = asking(&authority, &root, true).await;
    let service = json!({"protocol": "tls", "retries": 0, "tls_verify": true, "ca_certificates": ["ca"],
        "client_certificate": {"id": "c"}});
    let mut config = among(&[address], json!({"host_header": "up.test"}), service);
    config["certificates"] = json!([row("c", &ours)]);
    config["ca_certificates"] = json!([{"id": "ca", "cert": root.certificate}]);
    let (stage, listener) = streaming(config.clone(), false, ProxyOptions::default());
    let ask = async || {
        let mut client = TcpStream::connect(listener).await.unwrap();
        // It may be closed already.
        let _ = client.write_all(b"GET / HTTP/1.1\r\n\r\n").await;
        let _ = client.shutdown().await;
        read_rest(&mut client).await
    };
    assert!(ask().await.starts_with("HTTP/1.1 200 OK"));
    assert_eq!(*seen.lock().unwrap(), [leaf(&ours)]);
    config["upstreams"][0]["host_header"] = json!("other.test");
    stage.reconfigure(config);
    assert_eq!(ask().await, "", "the certificate is for another name");
}

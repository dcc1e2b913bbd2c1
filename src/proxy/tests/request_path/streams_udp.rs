//! Datagrams: sessions by client, targets, ends.

use crate::stage::{PATIENCE, Stage};
use crate::streams::{SERVICE, stream_to};
use crate::streams_life::with_targets;
use gwctl_entities::Value;
use gwctl_proxy::{AccessFormat, AccessLogOptions, AccessTarget, ProxyOptions, StreamListener};
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::UdpSocket;

/// A stage that takes in datagrams; where.
fn taking_in(config: Value, options: ProxyOptions) -> (Stage, SocketAddr) {
    let addr = "127.0.0.1:0".parse().unwrap();
    let streams = vec![StreamListener { addr, ssl: false, proxy_protocol: false, udp: true }];
    let stage = Stage::with(config, ProxyOptions { streams, ..options }, Vec::new());
    let address = stage.proxy.as_ref().unwrap().stream_addresses()[0];
    (stage, address)
}

/// A route for datagrams from this machine, fields of route and service added.
fn datagrams_to(address: SocketAddr, route: Value, service: Value) -> Value {
    let mut config = stream_to(address, json!({"protocols": ["udp"]}), json!({"protocol": "udp"}));
    let add = |row: &mut Value, fields: Value| row.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    add(&mut config["routes"][0], route);
    add(&mut config["services"][0], service);
    config
}

/// Answers each datagram with its name and what it was sent.
async fn echo(name: &'static str) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = vec![0; 65_535];
        while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
            let answer = [name.as_bytes(), &buffer[..length]].concat();
            socket.send_to(&answer, from).await.unwrap();
        }
    });
    address
}

async fn client(address: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(address).await.unwrap();
    socket
}

async fn hear(socket: &UdpSocket) -> String {
    let mut buffer = vec![0; 65_535];
    let length = tokio::time::timeout(PATIENCE, socket.recv(&mut buffer)).await.expect("nothing comes").unwrap();
    String::from_utf8(buffer[..length].to_vec()).unwrap()
}

async fn ask(socket: &UdpSocket, text: &str) -> String {
    socket.send(text.as_bytes()).await.unwrap();
    hear(socket).await
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, wait).await.is_ok(), "{what}");
}

/// Waits until so many sessions are open.
async fn wait_for_sessions(stage: &Stage, count: u64) {
    let stats = stage.proxy.as_ref().unwrap().stats().clone();
    until(&format!("{count} sessions"), || stats.now().streams_active == count).await;
}

fn figures(stage: &Stage) -> String {
    let mut text = String::new();
    stage.proxy.as_ref().unwrap().stats().metrics().write(&mut text);
    text
}

#[tokio::test]
async fn each_client_has_a_session_of_its_own_and_datagrams_keep_their_ends() {
    let (stage, address) = taking_in(datagrams_to(echo(">").await, json!({}), json!({})), ProxyOptions::default());
    let (one, other) = (client(address).await, client(address).await);
    assert_eq!((ask(&one, "a").await, ask(&other, "b").await), (">a".to_owned(), ">b".to_owned()));
    for text in ["x", "yy", "zzz"] {
        one.send(text.as_bytes()).await.unwrap();
    }
    assert_eq!([hear(&one).await, hear(&one).await, hear(&one).await], [">x", ">yy", ">zzz"]);
    assert_eq!(ask(&other, "").await, ">", "an empty datagram is one too");
    let large = "l".repeat(20_000);
    assert_eq!(ask(&other, &large).await.len(), 20_001);
    let now = stage.proxy.as_ref().unwrap().stats().now();
    assert_eq!((now.streams_accepted, now.streams_active), (2, 2));
}

#[tokio::test]
async fn a_session_ends_when_nothing_moves_and_is_told_as_any_stream() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("streams.log");
    let target = AccessTarget::File(path.clone());
    let log = AccessLogOptions { target, format: AccessFormat::Json, sample: 1.0 };
    let upstream = echo("> ").await;
    let config = datagrams_to(upstream, json!({"name": "door"}), json!({"name": "dns", "read_timeout": 3000}));
    let options = ProxyOptions { stream_access_log: Some(log), ..ProxyOptions::default() };
    let (mut stage, address) = taking_in(config, options);
    let visitor = client(address).await;
    assert_eq!(ask(&visitor, "name").await, "> name");
    wait_for_sessions(&stage, 0).await;
    let ended = r#"kong_stream_sessions_total{service="dns",route="door",code="200",source="service""#;
    assert!(figures(&stage).contains(ended), "{}", figures(&stage));
    for (direction, bytes) in [("ingress", 4), ("egress", 6)] {
        let labels = format!(r#"service="dns",route="door",direction="{direction}",workspace="default",consumer="""#);
        let line = format!("kong_bandwidth_bytes{{{labels}}} {bytes}");
        assert!(figures(&stage).lines().any(|other| other == line), "`{line}` in {}", figures(&stage));
    }
    stage.proxy.take().unwrap().stop().await;
    let line: Value = serde_json::from_str(std::fs::read_to_string(&path).unwrap().trim()).unwrap();
    let facts = ["protocol", "status", "end", "bytes_received", "bytes_sent", "upstream", "client_port"];
    let port = visitor.local_addr().unwrap().port();
    let expected = [json!("udp"), json!(200), json!("silent"), json!(4), json!(6), json!(upstream.to_string())];
    assert_eq!(facts.map(|name| line[name].clone()).to_vec(), [&expected[..], &[json!(port)]].concat());
}

#[tokio::test]
async fn routes_are_found_by_both_ends_and_protocol() {
    let (near, other) = (echo("1").await, echo("2").await);
    let mut config = datagrams_to(near, json!({"sources": [{"ip": "127.0.0.2"}]}), json!({}));
    let (stage, address) = taking_in(config.clone(), ProxyOptions::default());
    let second = json!({"id": "00000000-0000-4000-8000-000000000005", "service": {"id": SERVICE},
        "protocols": ["udp"], "sources": [{"ip": "127.0.0.0/8"}], "destinations": [{"port": address.port()}]});
    let mut service = config["services"][0].clone();
    service["id"] = json!("00000000-0000-4000-8000-000000000006");
    service["port"] = json!(other.port());
    config["services"].as_array_mut().unwrap().push(service.clone());
    config["routes"].as_array_mut().unwrap().push(second);
    config["routes"][1]["service"]["id"] = service["id"].clone();
    stage.reconfigure(config.clone());
    let from = async |ip: &str| {
        let socket = UdpSocket::bind((ip, 0)).await.unwrap();
        socket.connect(address).await.unwrap();
        socket
    };
    let (first, last) = (from("127.0.0.2").await, from("127.0.0.3").await);
    // Source and destination together come before one of them.
    assert_eq!((ask(&first, "a").await, ask(&last, "a").await), ("2a".to_owned(), "2a".to_owned()));
    config["routes"][1]["protocols"] = json!(["tcp"]);
    stage.reconfigure(config);
    let (first, last) = (from("127.0.0.2").await, from("127.0.0.3").await);
    assert_eq!(ask(&first, "a").await, "1a");
    last.send(b"a").await.unwrap();
    wait_for_sessions(&stage, 4).await;
    let refused = r#"kong_stream_sessions_total{service="",route="",code="500""#;
    until("the refusal to be counted", || figures(&stage).contains(refused)).await;
}

/// An address where nobody takes datagrams: the sockets of other tests are at other addresses of this machine.
async fn deaf() -> SocketAddr {
    UdpSocket::bind("127.0.0.77:0").await.unwrap().local_addr().unwrap()
}

fn among(targets: &[SocketAddr], upstream: Value, service: Value) -> Value {
    with_targets(datagrams_to(targets[0], json!({}), service), targets, upstream)
}

#[tokio::test]
async fn a_target_that_refuses_is_given_up_and_the_next_one_gets_the_datagram() {
    let (dead, alive) = (deaf().await, echo(">").await);
    let checks = json!({"healthchecks": {"passive": {"type": "tcp", "unhealthy": {"tcp_failures": 1}}}});
    let (stage, address) = taking_in(among(&[dead, alive], checks, json!({})), ProxyOptions::default());
    for _ in 0..4 {
        assert_eq!(ask(&client(address).await, "a").await, ">a");
    }
    let health = stage.handle.load().upstream_health("u").unwrap();
    assert_eq!((&health["t0"]["health"], &health["t1"]["health"]), (&json!("UNHEALTHY"), &json!("HEALTHY")));
}

#[tokio::test]
async fn when_every_target_refuses_the_session_ends_and_the_next_datagram_begins_another() {
    let (stage, address) =
        taking_in(datagrams_to(deaf().await, json!({}), json!({"retries": 1})), ProxyOptions::default());
    let visitor = client(address).await;
    visitor.send(b"a").await.unwrap();
    let stats = stage.proxy.as_ref().unwrap().stats().clone();
    until("the session to end", || stats.now().streams_accepted == 1 && stats.now().streams_active == 0).await;
    let text = figures(&stage);
    assert!(text.contains(r#"code="502",source="error",workspace="default"} 1"#), "{text}");
    stage.reconfigure(datagrams_to(echo(">").await, json!({}), json!({})));
    assert_eq!(ask(&visitor, "b").await, ">b");
}

#[tokio::test]
async fn sessions_are_spread_over_targets_and_stay_there() {
    let targets = [echo("1").await, echo("2").await];
    let (stage, address) = taking_in(among(&targets, json!({}), json!({})), ProxyOptions::default());
    let mut seen = Vec::new();
    for _ in 0..4 {
        let visitor = client(address).await;
        let first = ask(&visitor, "").await;
        assert_eq!(ask(&visitor, "").await, first);
        seen.push(first);
    }
    seen.sort();
    assert_eq!(seen, ["1", "1", "2", "2"]);
    let hashed = json!({"algorithm": "consistent-hashing", "hash_on": "ip"});
    stage.reconfigure(among(&targets, hashed, json!({})));
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(ask(&client(address).await, "").await);
    }
    assert!(seen.iter().all(|name| *name == seen[0]), "one client address: {seen:?}");
}

#[tokio::test]
async fn beyond_the_bound_further_clients_are_not_served_until_a_session_ends() {
    let options = ProxyOptions { max_udp_sessions: 2, ..ProxyOptions::default() };
    let (stage, address) = taking_in(datagrams_to(echo(">").await, json!({}), json!({"read_timeout": 5000})), options);
    let (one, two, three) = (client(address).await, client(address).await, client(address).await);
    assert_eq!((ask(&one, "a").await, ask(&two, "a").await), (">a".to_owned(), ">a".to_owned()));
    three.send(b"a").await.unwrap();
    assert_eq!(ask(&one, "b").await, ">b", "those who are there are served");
    let stats = stage.proxy.as_ref().unwrap().stats().clone();
    until("the third to be turned away", || stats.shed_for(gwctl_proxy::Shed::Sessions) == 1).await;
    wait_for_sessions(&stage, 0).await;
    assert_eq!(ask(&three, "b").await, ">b", "the datagram of before was dropped");
}

#[tokio::test]
async fn a_stop_ends_answered_sessions_at_once_and_waits_for_answers_that_are_due() {
    let upstream = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let config = datagrams_to(upstream.local_addr().unwrap(), json!({}), json!({"read_timeout": 3_600_000}));
    let options = ProxyOptions { shutdown_timeout: Duration::from_secs(3600), ..ProxyOptions::default() };
    let (mut stage, address) = taking_in(config, options);
    let (idle, waits) = (client(address).await, client(address).await);
    let mut buffer = [0; 16];
    idle.send(b"a").await.unwrap();
    let (_, from) = upstream.recv_from(&mut buffer).await.unwrap();
    upstream.send_to(b"b", from).await.unwrap();
    assert_eq!(hear(&idle).await, "b");
    waits.send(b"a").await.unwrap();
    let (_, from) = upstream.recv_from(&mut buffer).await.unwrap();
    wait_for_sessions(&stage, 2).await;
    let stats = stage.proxy.as_ref().unwrap().stats().clone();
    let stopping = tokio::spawn(stage.proxy.take().unwrap().stop());
    until("the idle one to end", || stats.now().streams_active == 1).await;
    assert!(!stopping.is_finished());
    upstream.send_to(b"late", from).await.unwrap();
    assert_eq!(hear(&waits).await, "late");
    tokio::time::timeout(PATIENCE, stopping).await.expect("no session keeps it").unwrap();
}

#[tokio::test]
async fn a_client_stays_at_its_worker() {
    let options = ProxyOptions { workers: 3, ..ProxyOptions::default() };
    let (stage, address) = taking_in(datagrams_to(echo(">").await, json!({}), json!({})), options);
    let mut visitors = Vec::new();
    for _ in 0..12 {
        visitors.push(client(address).await);
    }
    for round in 0..5 {
        for visitor in &visitors {
            assert_eq!(ask(visitor, &round.to_string()).await, format!(">{round}"));
        }
    }
    let now = stage.proxy.as_ref().unwrap().stats().now();
    assert_eq!((now.streams_accepted, now.streams_active), (12, 12), "no client has two sessions");
}

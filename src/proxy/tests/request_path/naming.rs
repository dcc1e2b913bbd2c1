//! Hosts and targets that are names, over a name server of the test's own.

use crate::balancing::{balanced, nobody};
use crate::probing::until;
use crate::stage::{Stage, Upstream, receive, to};
use gwctl_proxy::{DnsOptions, ProxyOptions};
use hickory_resolver::Name;
use hickory_resolver::proto::op::{Message, MessageType, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, CNAME, SRV};
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// A name server that answers from a list.
#[derive(Clone)]
pub struct NameServer {
    address: SocketAddr,
    records: Arc<Mutex<Vec<Record>>>,
    failing: Arc<AtomicBool>,
    /// It follows aliases itself, as a resolver does.
    recursive: Arc<AtomicBool>,
    questions: Arc<AtomicUsize>,
}

impl NameServer {
    pub async fn start() -> NameServer {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let (failing, recursive) = Default::default();
        let server = NameServer { address, records: Arc::default(), failing, recursive, questions: Arc::default() };
        let shared = server.clone();
        tokio::spawn(async move {
            let mut bytes = [0; 1500];
            while let Ok((length, peer)) = socket.recv_from(&mut bytes).await {
                shared.questions.fetch_add(1, Ordering::SeqCst);
                let answer = shared.answer(&Message::from_vec(&bytes[..length]).unwrap());
                socket.send_to(&answer.to_vec().unwrap(), peer).await.unwrap();
            }
        });
        server
    }

    fn answer(&self, asked: &Message) -> Message {
        let query = asked.queries()[0].clone();
        let mut answer = Message::new();
        answer.set_id(asked.id()).set_message_type(MessageType::Response).set_recursion_available(true);
        let records = self.records.lock().unwrap();
        let named: Vec<_> = records.iter().filter(|record| record.name() == query.name()).collect();
        if self.failing.load(Ordering::SeqCst) {
            answer.set_response_code(ResponseCode::ServFail);
        } else if named.is_empty() {
            answer.set_response_code(ResponseCode::NXDomain);
        }
        let answers = |record: &&Record| [query.query_type(), RecordType::CNAME].contains(&record.record_type());
        let mut found: Vec<Record> = named.into_iter().filter(answers).cloned().collect();
        while self.recursive.load(Ordering::SeqCst)
            && found.len() < 10
            && let Some(RData::CNAME(CNAME(target))) = found.last().map(Record::data)
        {
            let next: Vec<_> =
                records.iter().filter(|record| record.name() == target).filter(answers).cloned().collect();
            if next.is_empty() {
                break;
            }
            found.extend(next);
        }
        if !self.failing.load(Ordering::SeqCst) {
            answer.add_answers(found);
        }
        answer.add_query(query);
        answer
    }

    fn set(&self, records: &[(&str, u32, RData)]) {
        let record = |(name, ttl, data): &(&str, u32, RData)| {
            Record::from_rdata(Name::from_utf8(format!("{name}.")).unwrap(), *ttl, data.clone())
        };
        *self.records.lock().unwrap() = records.iter().map(record).collect();
    }

    fn questions(&self) -> usize {
        self.questions.load(Ordering::SeqCst)
    }

    /// Settings of a proxy that asks this server.
    pub fn options(&self) -> ProxyOptions {
        self.options_with(|_| {})
    }

    fn options_with(&self, change: impl FnOnce(&mut DnsOptions)) -> ProxyOptions {
        let mut dns = DnsOptions { servers: vec![self.address], ..DnsOptions::default() };
        change(&mut dns);
        ProxyOptions { dns, ..ProxyOptions::default() }
    }
}

fn a(last: u8) -> RData {
    RData::A(A(Ipv4Addr::new(127, 0, 0, last)))
}

fn srv(priority: u16, weight: u16, port: u16, host: &str) -> RData {
    RData::SRV(SRV::new(priority, weight, port, Name::from_utf8(format!("{host}.")).unwrap()))
}

fn alias(of: &str) -> RData {
    RData::CNAME(CNAME(Name::from_utf8(format!("{of}.")).unwrap()))
}

/// Answers with the address it was reached at.
async fn tell(mut stream: TcpStream, _: usize) {
    let own = stream.local_addr().unwrap().to_string();
    while receive(&mut stream).await.is_some() {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{own}", own.len());
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Upstreams at 127.0.0.1, 127.0.0.2, ... on one port.
async fn neighbours(count: u8) -> (u16, Vec<Upstream>) {
    loop {
        let mut listeners = vec![TcpListener::bind("127.0.0.1:0").await.unwrap()];
        let port = listeners[0].local_addr().unwrap().port();
        for last in 2..=count {
            listeners.extend(TcpListener::bind((Ipv4Addr::new(127, 0, 0, last), port)).await);
        }
        if listeners.len() == usize::from(count) {
            return (port, listeners.into_iter().map(|listener| Upstream::at(listener, tell)).collect());
        }
    }
}

/// One target, a name with a port.
fn named(name: &str, port: u16, service: Value, settings: Value) -> Value {
    let mut config = balanced(&["127.0.0.1:1".parse().unwrap()], service, settings);
    config["targets"] =
        json!([{"id": "t", "upstream": {"id": "u"}, "target": format!("{name}:{port}"), "weight": 100}]);
    config
}

fn health(stage: &Stage) -> Value {
    stage.handle.load().upstream_health("u").unwrap()["t"].clone()
}

/// Addresses of the target with their health.
fn addresses(stage: &Stage) -> BTreeMap<String, String> {
    let health = health(stage);
    let addresses = health["data"]["addresses"].as_array().cloned().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    addresses.iter().map(|address| (text(&address["ip"]), text(&address["health"]))).collect()
}

async fn until_addresses(stage: &Stage, expected: &[&str]) {
    until(&format!("{expected:?}"), || addresses(stage).keys().eq(expected)).await;
}

#[tokio::test]
async fn each_address_of_a_name_is_balanced_and_judged_by_itself() {
    let server = NameServer::start().await;
    server.set(&[("up.test", 60, a(1)), ("up.test", 60, a(2)), ("up.test", 60, a(3))]);
    let (port, _upstreams) = neighbours(2).await;
    let passive = json!({"healthchecks": {"passive": {"unhealthy": {"tcp_failures": 1}}}});
    let stage = Stage::with(named("up.test", port, json!({"retries": 1}), passive), server.options(), Vec::new());
    until_addresses(&stage, &["127.0.0.1", "127.0.0.2", "127.0.0.3"]).await;
    let mut reached = BTreeMap::new();
    for _ in 0..20 {
        let reply = stage.get("/").await;
        assert_eq!(reply.status(), 200);
        *reached.entry(reply.text()).or_insert(0) += 1;
    }
    assert_eq!(reached.len(), 2, "{reached:?}");
    let found = addresses(&stage);
    assert_eq!((&*found["127.0.0.1"], &*found["127.0.0.3"]), ("HEALTHY", "UNHEALTHY"));
    let data = &health(&stage)["data"];
    assert_eq!((&data["dns"], &data["weight"]["total"]), (&json!("A"), &json!(300)));
}

#[tokio::test]
async fn services_bring_their_ports_and_weights() {
    let server = NameServer::start().await;
    let (port, _upstreams) = neighbours(3).await;
    server.set(&[
        ("up.test", 60, srv(1, 10, port, "one.test")),
        ("up.test", 60, srv(1, 30, port, "two.test")),
        ("up.test", 60, srv(2, 90, port, "three.test")),
        ("one.test", 60, a(1)),
        ("two.test", 60, a(2)),
        ("three.test", 60, a(3)),
    ]);
    let stage = Stage::with(named("up.test", 9, json!({}), json!({})), server.options(), Vec::new());
    until_addresses(&stage, &["127.0.0.1", "127.0.0.2"]).await;
    assert_eq!(health(&stage)["data"]["dns"], "SRV");
    let mut second = 0;
    for _ in 0..40 {
        second += usize::from(stage.get("/").await.text() == format!("127.0.0.2:{port}"));
    }
    assert_eq!(second, 30);
    // A service whose host is such a name goes to the port of the record, too.
    let direct = to("127.0.0.1:9".parse().unwrap(), json!({"host": "up.test"}));
    assert_eq!(Stage::with(direct, server.options(), Vec::new()).get("/").await.status(), 200);
}

#[tokio::test]
async fn a_changed_answer_changes_the_addresses_and_keeps_what_is_known_of_the_others() {
    let server = NameServer::start().await;
    server.set(&[("up.test", 60, a(1)), ("up.test", 60, a(9))]);
    let (port, _upstreams) = neighbours(2).await;
    let options = server.options_with(|dns| dns.valid_ttl = Some(Duration::from_millis(1)));
    let passive = json!({"healthchecks": {"passive": {"unhealthy": {"tcp_failures": 1}}}});
    let stage = Stage::with(named("up.test", port, json!({}), passive), options, Vec::new());
    until_addresses(&stage, &["127.0.0.1", "127.0.0.9"]).await;
    stage.handle.load().set_target_health("u", "t", Some(&format!("127.0.0.9:{port}")), false).unwrap();
    server.set(&[("up.test", 60, a(2)), ("up.test", 60, a(9))]);
    until_addresses(&stage, &["127.0.0.2", "127.0.0.9"]).await;
    assert_eq!(addresses(&stage)["127.0.0.9"], "UNHEALTHY");
    assert_eq!(stage.get("/").await.text(), format!("127.0.0.2:{port}"));
    // And over a change of the configuration.
    stage.reconfigure(named(
        "up.test",
        port,
        json!({}),
        json!({"slots": 2000, "healthchecks": {"passive": {"unhealthy": {"tcp_failures": 1}}}}),
    ));
    assert_eq!(addresses(&stage)["127.0.0.9"], "UNHEALTHY");
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_shown_and_leaves_the_others_alone() {
    let server = NameServer::start().await;
    let alive = Upstream::new(tell).await;
    let mut config = named("gone.test", 80, json!({}), json!({}));
    let row = json!({"id": "t2", "upstream": {"id": "u"}, "target": alive.address.to_string(), "weight": 1});
    config["targets"].as_array_mut().unwrap().push(row);
    let stage = Stage::with(config, server.options(), Vec::new());
    until("the error", || health(&stage)["health"] == "DNS_ERROR").await;
    assert_eq!(health(&stage)["data"]["dns"], "dns server error: 3 name error");
    for _ in 0..5 {
        assert_eq!(stage.get("/").await.text(), alive.address.to_string());
    }
}

#[tokio::test]
async fn an_old_answer_is_used_while_no_server_answers() {
    let server = NameServer::start().await;
    server.set(&[("up.test", 60, a(1))]);
    let upstream = Upstream::new(tell).await;
    let config = to(upstream.address, json!({"host": "up.test"}));
    let options = server.options_with(|dns| dns.valid_ttl = Some(Duration::from_millis(1)));
    let stage = Stage::with(config.clone(), options, Vec::new());
    assert_eq!(stage.get("/").await.status(), 200);
    server.failing.store(true, Ordering::SeqCst);
    let before = server.questions();
    while server.questions() == before {
        assert_eq!(stage.get("/").await.status(), 200);
    }
    assert_eq!(stage.get("/").await.status(), 200);
    // Without a time for old answers the name is lost.
    let options = server.options_with(|dns| {
        dns.valid_ttl = Some(Duration::from_millis(1));
        dns.stale_ttl = Duration::ZERO;
    });
    assert_eq!(Stage::with(config, options, Vec::new()).get("/").await.status(), 503);
}

#[tokio::test]
async fn a_name_without_a_lifetime_is_resolved_for_each_request() {
    let server = NameServer::start().await;
    server.set(&[("up.test", 0, a(1))]);
    let upstream = Upstream::new(tell).await;
    let port = upstream.address.port();
    let stage = Stage::with(named("up.test", port, json!({}), json!({})), server.options(), Vec::new());
    until("the first answer", || server.questions() > 0).await;
    assert_eq!(stage.get("/").await.status(), 200);
    assert_eq!(health(&stage)["data"]["dns"], "ttl=0, virtual SRV");
    assert_eq!(health(&stage)["data"]["addresses"][0]["ip"], "up.test");
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_remembered() {
    let server = NameServer::start().await;
    let stage = Stage::with(to(nobody(), json!({"host": "gone.test"})), server.options(), Vec::new());
    assert_eq!(stage.get("/").await.status(), 503);
    let questions = server.questions();
    assert!(questions > 0);
    assert_eq!(stage.get("/").await.status(), 503);
    assert_eq!(server.questions(), questions);
}

#[tokio::test]
async fn a_failure_of_the_server_is_remembered_for_a_shorter_time() {
    let server = NameServer::start().await;
    server.failing.store(true, Ordering::SeqCst);
    let options = server.options_with(|dns| dns.error_ttl = Duration::ZERO);
    let upstream = Upstream::new(tell).await;
    let stage = Stage::with(to(upstream.address, json!({"host": "up.test"})), options, Vec::new());
    assert_eq!(stage.get("/").await.status(), 503);
    server.failing.store(false, Ordering::SeqCst);
    server.set(&[("up.test", 60, a(1))]);
    assert_eq!(stage.get("/").await.status(), 200);
}

#[tokio::test]
async fn the_hosts_file_comes_first() {
    let server = NameServer::start().await;
    let upstream = Upstream::new(tell).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "127.0.0.1 own.test\n").unwrap();
    let options = server.options_with(|dns| dns.hosts_file = file.path().to_owned());
    let stage = Stage::with(to(upstream.address, json!({"host": "own.test"})), options, Vec::new());
    assert_eq!(stage.get("/").await.status(), 200);
    assert_eq!(server.questions(), 0);
}

#[tokio::test]
async fn many_requests_for_one_name_ask_once() {
    let server = NameServer::start().await;
    server.set(&[("up.test", 60, a(1))]);
    let upstream = Upstream::new(tell).await;
    let stage = Stage::with(to(upstream.address, json!({"host": "up.test"})), server.options(), Vec::new());
    let asked = (0..10).map(|_| stage.get("/"));
    for reply in futures_util::future::join_all(asked).await {
        assert_eq!(reply.status(), 200);
    }
    // One for services, which there are none, one for addresses.
    assert_eq!(server.questions(), 2);
}

#[tokio::test]
async fn aliases_are_followed_unless_they_end_in_nothing_or_in_themselves() {
    let (server, (port, _upstreams)) = (NameServer::start().await, neighbours(2).await);
    server.set(&[
        ("alias.test", 60, alias("middle.test")),
        ("middle.test", 60, alias("end.test")),
        ("end.test", 60, a(2)),
        ("service.test", 60, srv(1, 1, port, "alias.test")),
        ("named-service.test", 60, alias("service.test")),
        ("lost.test", 60, alias("nothing.test")),
        ("self.test", 60, alias("self.test")),
        ("ping.test", 60, alias("pong.test")),
        ("pong.test", 60, alias("ping.test")),
    ]);
    let there = format!("127.0.0.2:{port}");
    for recursive in [true, false] {
        server.recursive.store(recursive, Ordering::SeqCst);
        for host in ["alias.test", "service.test", "named-service.test"] {
            let config = to(SocketAddr::from(([127, 0, 0, 1], port)), json!({"host": host}));
            let reply = Stage::with(config, server.options(), Vec::new()).get("/").await;
            assert_eq!((reply.status(), reply.text()), (200, there.clone()), "{host}, {recursive}");
        }
        for host in ["lost.test", "self.test", "ping.test"] {
            let config = to(SocketAddr::from(([127, 0, 0, 1], port)), json!({"host": host}));
            let reply = Stage::with(config, server.options(), Vec::new()).get("/").await;
            assert_eq!(reply.status(), 503, "{host}, {recursive}");
        }
    }
}

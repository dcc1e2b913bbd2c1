//! Tracing of requests: a real node between a client, an upstream that tells what it was sent, and a collector.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod collector;

use collector::{Arrived, Collector, read};
use gwctl_testkit::{Answer, Cluster, Node, NodeOptions, Request, free_ports, get, post, request, wait_until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};

const GWCTL: &str = env!("CARGO_BIN_EXE_gwctl");
const SPAN: &str = "b7ad6b7169203331";

/// An upstream that answers with the headers it was sent and closes, so that each request needs a connection. Its port.
fn upstream() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(&stream));
        }
    });
    port
}

fn answer(mut stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    if let Some((_, headers, _)) = read(&mut reader) {
        let body = json!(headers).to_string();
        let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    }
}

/// A node with the route `/echo`, tracing as `instrumentations` say, and the plugin with these settings.
fn traced(cluster: &Cluster, instrumentations: &str, config: Value) -> Node {
    traced_with(cluster, cluster.options("node", "traditional"), instrumentations, config)
}

fn traced_with(cluster: &Cluster, options: NodeOptions, instrumentations: &str, config: Value) -> Node {
    let options = options
        .set("tracing_instrumentations", instrumentations)
        .set("tracing_sampling_rate", 1)
        .set("proxy_access_log", "access.log json");
    let node = cluster.start(&options);
    // A name, so that it has to be resolved.
    let service = json!({"name": "echo", "host": "localhost", "port": upstream(), "retries": 1});
    assert_eq!(post(node.admin(), "/services", &service).status, 201);
    assert_eq!(post(node.admin(), "/services/echo/routes", &json!({"name": "echo", "paths": ["/echo"]})).status, 201);
    wait_until("the route to answer", || get(node.proxy(), "/echo").status == 200);
    let mut whole = json!({"http_response_header_for_traceid": "X-Trace", "queue": {"max_coalescing_delay": 0.05}});
    whole.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
    let plugin = post(node.admin(), "/plugins", &json!({"name": "opentelemetry", "config": whole}));
    assert_eq!(plugin.status, 201, "{}", plugin.body);
    wait_until("the plugin to run", || get(node.proxy(), "/none").header("x-trace").is_some());
    node
}

/// A request that belongs to the trace of this number.
fn ask(node: &Node, path: &str, number: u64, flags: &str) -> Answer {
    let parent = format!("00-{}-{SPAN}-{flags}", trace(number));
    let headers = [("traceparent", &*parent), ("tracestate", "vendor=1")];
    request(node.proxy(), &Request { method: "GET", path, headers: &headers, body: None }).unwrap()
}

fn trace(number: u64) -> String {
    format!("0af7651916cd43dd{number:016x}")
}

fn named<'a>(spans: &'a [Arrived], name: &str) -> &'a Arrived {
    let found = spans.iter().find(|span| span.name == name);
    found.unwrap_or_else(|| panic!("{name} in {:?}", spans.iter().map(|span| &*span.name).collect::<Vec<_>>()))
}

/// The only root is below the client's span, every other span is a part of one that takes no less time.
fn is_tree(spans: &[Arrived]) {
    let by_id: BTreeMap<_, _> = spans.iter().map(|span| (&*span.id, span)).collect();
    assert_eq!(by_id.len(), spans.len(), "ids are unique");
    for span in spans {
        assert!(span.started <= span.ended, "{span:?}");
        match by_id.get(&*span.parent) {
            Some(parent) => {
                assert!(parent.started <= span.started && span.ended <= parent.ended, "{span:?} in {parent:?}");
            }
            None => assert_eq!((&*span.name, &*span.parent), ("kong", SPAN)),
        }
    }
    assert_eq!(spans.iter().filter(|span| span.name == "kong").count(), 1);
}

/// A figure of `GET /metrics`.
fn figure(node: &Node, name: &str) -> u64 {
    let text = get(node.status(), "/metrics").body;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name} in {text}"));
    line.trim().parse().unwrap()
}

#[test]
fn a_request_is_one_tree_of_spans_below_the_span_of_its_client() {
    let (cluster, collector) = (Cluster::new(GWCTL), Collector::start());
    let config = json!({
        "traces_endpoint": collector.endpoint(),
        "headers": {"X-Key": "secret"},
        "resource_attributes": {"service.name": "edge", "zone": "a"},
    });
    let node = traced(&cluster, "all", config);
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    let (before, answer, after) = (now(), ask(&node, "/echo?secret=1", 1, "01"), now());
    assert_eq!((answer.status, answer.header("x-trace")), (200, Some(&*trace(1))));
    let spans = collector.trace(&trace(1));
    is_tree(&spans);

    // The upstream belongs below the attempt that reached it.
    let (sent, attempt) = (answer.json(), named(&spans, "kong.balancer"));
    assert_eq!(sent["traceparent"], format!("00-{}-{}-01", trace(1), attempt.id));
    assert_eq!(sent["tracestate"], "vendor=1");

    let (root, id) = (named(&spans, "kong"), answer.header("x-kong-request-id").unwrap());
    assert!(u128::from(root.started) >= before && u128::from(root.ended) <= after, "the client waited for all of it");
    for (name, value) in [
        ("kong.request.id", id),
        ("http.request.method", "GET"),
        ("url.path", "/echo"),
        ("http.url", "http://127.0.0.1/echo"),
        ("http.route", "/echo"),
        ("http.response.status_code", "200"),
        ("http.status_code", "200"),
        ("client.address", "127.0.0.1"),
        ("server.address", "127.0.0.1"),
        ("kong.service.name", "echo"),
        ("kong.route.name", "echo"),
    ] {
        assert_eq!(root.attribute(name), value, "{name}");
    }
    assert_eq!((root.kind, attempt.kind, root.failed, attempt.failed), (2, 3, false, false));
    assert_eq!((attempt.attribute("try_count"), attempt.attribute("net.peer.ip")), ("1", "127.0.0.1"));
    for part in ["kong.dns", "kong.upstream.connect", "kong.upstream.ttfb", "kong.upstream.read_response"] {
        assert_eq!(named(&spans, part).parent, attempt.id, "{part}");
    }
    assert_eq!(named(&spans, "kong.dns").attribute("dns.record.domain"), "localhost");
    for part in ["kong.router", "kong.access.plugin.opentelemetry", "kong.header_filter.plugin.opentelemetry"] {
        assert_eq!(named(&spans, part).parent, root.id, "{part}");
    }
    let resource = |name: &str| root.resource.get(name).map(String::as_str);
    assert_eq!((resource("service.name"), resource("zone")), (Some("edge"), Some("a")));
    assert!(resource("service.instance.id").is_some_and(|id| id.len() == 36));
    assert_eq!(root.headers["x-key"], "secret");
}

#[test]
fn the_request_id_is_the_same_in_headers_pages_access_log_and_spans() {
    let (cluster, collector) = (Cluster::new(GWCTL), Collector::start());
    let node = traced(&cluster, "all", json!({"traces_endpoint": collector.endpoint()}));
    let [nobody] = free_ports();
    let service = json!({"name": "gone", "host": "127.0.0.1", "port": nobody, "retries": 1});
    assert_eq!(post(node.admin(), "/services", &service).status, 201);
    assert_eq!(post(node.admin(), "/services/gone/routes", &json!({"name": "gone", "paths": ["/gone"]})).status, 201);
    wait_until("the route to be known", || get(node.proxy(), "/gone").status == 502);
    let logged = |id: &str| {
        let log = std::fs::read_to_string(cluster.path("node").join("access.log")).unwrap_or_default();
        log.lines().any(|line| serde_json::from_str::<Value>(line).is_ok_and(|line| line["request_id"] == id))
    };
    for (number, path, status) in [(1, "/echo", 200), (2, "/gone", 502), (3, "/none", 404)] {
        let answer = ask(&node, path, number, "01");
        assert_eq!(answer.status, status, "{path}");
        let id = answer.header("x-kong-request-id").unwrap().to_owned();
        let spans = collector.trace(&trace(number));
        is_tree(&spans);
        assert_eq!(named(&spans, "kong").attribute("kong.request.id"), id);
        if status == 200 {
            assert_eq!(answer.json()["x-kong-request-id"], id);
        } else {
            assert!(answer.body.contains(&id), "{}", answer.body);
        }
        assert_eq!(named(&spans, "kong").failed, status == 502);
        wait_until("the line in the access log", || logged(&id));
    }
    // One try and one retry, each with its own span.
    let mut tries: Vec<_> = collector.trace(&trace(2));
    tries.retain(|span| span.name == "kong.balancer");
    assert!(tries.len() == 2 && tries.iter().all(|span| span.failed), "{tries:?}");
    assert_eq!(tries[1].attribute("try_count"), "2");
}

#[test]
fn a_trace_that_its_client_does_not_keep_is_passed_on_and_not_exported() {
    let (cluster, collector) = (Cluster::new(GWCTL), Collector::start());
    let node = traced(&cluster, "all", json!({"traces_endpoint": collector.endpoint()}));
    let sent = ask(&node, "/echo", 1, "00").json();
    let parent = sent["traceparent"].as_str().unwrap();
    assert!(parent.starts_with(&format!("00-{}-", trace(1))) && parent.ends_with("-00"), "{parent}");
    assert!(!parent.contains(SPAN));
    // One worker sends in order: what comes later has arrived.
    ask(&node, "/echo", 2, "01");
    collector.trace(&trace(2));
    assert!(collector.spans().iter().all(|span| span.trace != trace(1)));
}

#[test]
fn a_node_that_traces_nothing_passes_traces_on() {
    let (cluster, collector) = (Cluster::new(GWCTL), Collector::start());
    let mut node = traced(&cluster, "off", json!({"traces_endpoint": collector.endpoint()}));
    let sent = ask(&node, "/echo", 1, "01").json();
    let parent = sent["traceparent"].as_str().unwrap().to_owned();
    assert!(parent.starts_with(&format!("00-{}-", trace(1))) && !parent.contains(SPAN), "{parent}");
    assert!(node.stop().success());
    assert!(collector.spans().is_empty());
}

#[test]
fn spans_wait_for_a_collector_that_is_down() {
    let cluster = Cluster::new(GWCTL);
    let [port] = free_ports();
    let endpoint = format!("http://127.0.0.1:{port}/v1/traces");
    let queue = json!({"max_coalescing_delay": 0.01, "initial_retry_delay": 0.01, "max_retry_delay": 0.1});
    let node = traced(&cluster, "all", json!({"traces_endpoint": endpoint, "queue": queue}));
    (1..=20).for_each(|number| assert_eq!(ask(&node, "/echo", number, "01").status, 200));
    wait_until("a failure to be told", || node.log().contains("cannot export, trying again"));
    assert_eq!(figure(&node, "gwctl_exports_total{result=\"sent\"}"), 0);
    let collector = Collector::start_at(port);
    (1..=20).for_each(|number| is_tree(&collector.trace(&trace(number))));
    wait_until("nothing to wait", || figure(&node, "gwctl_exports_waiting") == 0);
    assert_eq!(figure(&node, "gwctl_exports_total{result=\"dropped\"}"), 0);
}

#[test]
fn a_collector_that_never_answers_holds_nothing_up_and_costs_the_oldest_spans() {
    let cluster = Cluster::new(GWCTL);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1/traces", silent.local_addr().unwrap());
    let queue = json!({"max_coalescing_delay": 0, "max_entries": 50, "max_batch_size": 20});
    let mut node =
        traced(&cluster, "all", json!({"traces_endpoint": endpoint, "queue": queue, "read_timeout": 600_000}));
    (1..=100).for_each(|number| assert_eq!(ask(&node, "/echo", number, "01").status, 200));
    assert!(figure(&node, "gwctl_exports_waiting") <= 70);
    assert!(figure(&node, "gwctl_exports_total{result=\"dropped\"}") > 500);
    assert!(node.log().contains("the queue is full"));
    // Nor does it hold the end up for longer than a stop may take, whatever it may take for an answer.
    assert!(node.stop().success());
    assert!(node.log().contains("stops before all could be exported"));
}

#[test]
fn a_collector_with_tls_is_asked_when_its_authority_is_trusted() {
    let cluster = Cluster::new(GWCTL);
    let (collector, certificate) = Collector::start_tls();
    let endpoint = format!("https://localhost:{}/v1/traces", collector.port);
    let config = json!({"traces_endpoint": endpoint, "queue": {"max_coalescing_delay": 0.01, "max_retry_time": 0}});
    let node = traced(&cluster, "all", config.clone());
    ask(&node, "/echo", 1, "01");
    wait_until("a failure to be told", || node.log().contains("the entries are lost"));
    assert!(collector.spans().is_empty());
    drop(node);
    std::fs::write(cluster.path("authority.pem"), certificate).unwrap();
    let options = cluster.options("trusting", "traditional");
    let options = options.set("lua_ssl_trusted_certificate", cluster.path("authority.pem").display());
    let node = traced_with(&cluster, options, "all", config);
    ask(&node, "/echo", 2, "01");
    is_tree(&collector.trace(&trace(2)));
}

#[test]
fn a_stop_sends_what_waits() {
    let (cluster, collector) = (Cluster::new(GWCTL), Collector::start());
    let queue = json!({"max_coalescing_delay": 3600, "max_batch_size": 100_000});
    let mut node = traced(&cluster, "all", json!({"traces_endpoint": collector.endpoint(), "queue": queue}));
    (1..=5).for_each(|number| assert_eq!(ask(&node, "/echo", number, "01").status, 200));
    assert!(collector.spans().is_empty());
    assert!(node.stop().success());
    (1..=5).for_each(|number| is_tree(&collector.trace(&trace(number))));
}

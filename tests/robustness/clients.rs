//! HTTP clients that mean harm, on the proxy and the Admin API.

use super::wire::{connect, exchange, status, until_end};
use super::{GWCTL, is_well, peak_memory};
use gwctl_testkit::{Cluster, Node, NodeOptions, get, post, wait_until};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// An upstream that keeps the heads it was sent, answers each and closes.
struct Recorder {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let recorder = Self { port: listener.local_addr().unwrap().port(), heads: Arc::default() };
        let heads = recorder.heads.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let heads = heads.clone();
                std::thread::spawn(move || serve(stream, &heads));
            }
        });
        recorder
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.heads.lock().unwrap())
    }
}

/// Reads one request to the end of its body, so that no part of it can be taken for a second one.
fn serve(stream: std::net::TcpStream, heads: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(&stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let _ = reader.read_exact(&mut vec![0; length]);
    let mut line = String::new();
    while lower.contains("transfer-encoding: chunked") && line != "0\r\n" {
        line.clear();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
    }
    heads.lock().unwrap().push(head);
    let _ = (&stream).write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
}

fn serving(cluster: &Cluster, upstream: u16) -> Node {
    let options: NodeOptions = cluster.options("node", "traditional");
    let node = cluster.start(&options);
    let service = json!({"name": "echo", "host": "127.0.0.1", "port": upstream});
    assert_eq!(post(node.admin(), "/services", &service).status, 201);
    let route = json!({"paths": ["/echo"], "preserve_host": true});
    assert_eq!(post(node.admin(), "/services/echo/routes", &route).status, 201);
    wait_until("the route to answer", || get(node.proxy(), "/echo").status == 200);
    node
}

/// Framing of a request that two servers could read in two ways. None may be passed on.
const AMBIGUOUS: &[(&str, &str)] = &[
    ("two lengths", "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcdGET /echo/smuggled HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a list of lengths", "Content-Length: 4, 5\r\n\r\nabcd"),
    ("a signed length", "Content-Length: +4\r\n\r\nabcd"),
    ("a negative length", "Content-Length: -4\r\n\r\nabcd"),
    ("a length beyond numbers", "Content-Length: 99999999999999999999999\r\n\r\nabcd"),
    ("an unknown coding", "Transfer-Encoding: xchunked\r\n\r\nabcd"),
    ("chunks that are not last", "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
    ("two codings", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"),
    ("a space before the colon", "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
    ("a folded header", "X-A: b\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("a header without name", ": chunked\r\n\r\n"),
    ("a bare carriage return", "X-A: b\rContent-Length: 4\r\n\r\nabcd"),
    ("a zero byte", "X-A: b\0c\r\n\r\n"),
];

/// Bodies in chunks that are broken after a good head.
const BROKEN_CHUNKS: &[&str] =
    &["ZZ\r\nabc\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFFF\r\nabc\r\n", "-1\r\nabc\r\n", "3\r\nabcd\r\n0\r\n\r\n"];

#[test]
fn requests_that_can_be_read_in_two_ways_are_refused_and_never_passed_on() {
    let (cluster, upstream) = (Cluster::new(GWCTL), Recorder::start());
    let node = serving(&cluster, upstream.port);
    upstream.take();
    for port in [node.proxy(), node.admin()] {
        for (name, rest) in AMBIGUOUS {
            let answer = exchange(port, format!("POST /echo HTTP/1.1\r\nHost: a\r\n{rest}").as_bytes());
            assert_eq!(status(&answer), 400, "{name}: {answer}");
            assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{name}: {answer}");
        }
        for chunks in BROKEN_CHUNKS {
            let head = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
            let answer = exchange(port, format!("{head}{chunks}").as_bytes());
            assert_eq!(status(&answer), 400, "{chunks:?}: {answer}");
        }
    }
    assert_eq!(upstream.take(), Vec::<String>::new());
    is_well(&node);
}

#[test]
fn a_request_with_a_length_and_chunks_is_never_passed_on() {
    let (cluster, upstream) = (Cluster::new(GWCTL), Recorder::start());
    let node = serving(&cluster, upstream.port);
    upstream.take();
    // RFC 9112, 6.3: the proxy refuses it, as nginx does; for the Admin API chunks win. Nothing that follows is believed.
    let request = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\
                   GET /echo/smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    for port in [node.proxy(), node.admin()] {
        let answer = exchange(port, request.as_bytes());
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
        assert!(port != node.proxy() || status(&answer) == 400, "{answer}");
    }
    assert_eq!(upstream.take(), Vec::<String>::new());
    is_well(&node);
}

#[test]
fn heads_that_are_no_http_1_1_are_answered_or_refused_and_the_connection_ends() {
    let (cluster, upstream) = (Cluster::new(GWCTL), Recorder::start());
    let node = serving(&cluster, upstream.port);
    let long = "a".repeat(100_000);
    let many: String = (0..1000).map(|number| format!("X-{number}: a\r\n")).collect();
    let cases: Vec<(&str, String, &[u16])> = vec![
        ("noise", "\0\u{1}\u{2} noise\r\n\r\n".to_owned(), &[400]),
        ("http/0.9", "GET /echo\r\n\r\n".to_owned(), &[400]),
        ("http/1.0", "GET /echo HTTP/1.0\r\n\r\n".to_owned(), &[200, 404]),
        ("http/1.2", "GET /echo HTTP/1.2\r\nHost: a\r\n\r\n".to_owned(), &[400, 505]),
        ("a long header", format!("GET /echo HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n"), &[400, 431]),
        ("a long target", format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"), &[414, 431]),
        ("many headers", format!("GET /echo HTTP/1.1\r\nHost: a\r\n{many}\r\n"), &[400, 431]),
        ("a target with a zero byte", "GET /echo\0x HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), &[400]),
        ("an empty authority", "GET http:///echo HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), &[400]),
        ("tls", "\u{16}\u{3}\u{1}\0\u{5}\u{1}\0\0\u{1}\u{3}\r\n\r\n".to_owned(), &[400]),
        ("no method", " /echo HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), &[400]),
    ];
    for port in [node.proxy(), node.admin()] {
        for (name, request, expected) in &cases {
            let answer = exchange(port, request.as_bytes());
            assert!(expected.contains(&status(&answer)), "{name}: {answer}");
        }
        let pipelined = exchange(port, b"GET /status HTTP/1.1\r\nHost: a\r\n\r\n\0\xff noise\r\n\r\n");
        assert_eq!(pipelined.matches("HTTP/1.1 ").count(), 2, "{pipelined}");
        assert!(pipelined.contains("HTTP/1.1 400"), "{pipelined}");
    }
    let peak = peak_memory(&node);
    assert!(peak < 160, "{peak} MiB");
    is_well(&node);
}

#[test]
fn targets_and_hosts_in_unusual_forms_reach_no_upstream_they_should_not() {
    let (cluster, upstream) = (Cluster::new(GWCTL), Recorder::start());
    let node = serving(&cluster, upstream.port);
    upstream.take();
    let open = json!({"hosts": ["open.test"], "strip_path": false});
    assert_eq!(post(node.admin(), "/services/echo/routes", &open).status, 201);
    wait_until("a route without a path", || {
        status(&exchange(node.proxy(), b"GET / HTTP/1.1\r\nHost: open.test\r\nConnection: close\r\n\r\n")) == 200
    });
    upstream.take();
    let refused = [
        ("connect", "CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n"),
        ("no host", "GET /echo HTTP/1.1\r\n"),
        ("two hosts", "GET /echo HTTP/1.1\r\nHost: a\r\nHost: b\r\n"),
        ("a host with a path", "GET /echo HTTP/1.1\r\nHost: a/b\r\n"),
        ("a host with a space", "GET /echo HTTP/1.1\r\nHost: a b\r\n"),
        ("a host without a name", "GET /echo HTTP/1.1\r\nHost: :80\r\n"),
        ("an empty host", "GET /echo HTTP/1.1\r\nHost:\r\n"),
        ("a host that is a dot", "GET /echo HTTP/1.1\r\nHost: .\r\n"),
        ("an absolute target with a user", "GET http://user@open.test/ HTTP/1.1\r\nHost: open.test\r\n"),
        ("an absolute target with an odd port", "GET http://open.test:8x/ HTTP/1.1\r\nHost: open.test\r\n"),
        ("an absolute target without a name", "GET http://:80/ HTTP/1.1\r\nHost: open.test\r\n"),
        ("an absolute target and no host", "GET http://open.test/ HTTP/1.1\r\n"),
        ("an absolute target and two hosts", "GET http://open.test/ HTTP/1.1\r\nHost: open.test\r\nHost: b\r\n"),
        ("an absolute target and an odd host", "GET http://open.test/ HTTP/1.1\r\nHost: a/b\r\n"),
        ("an asterisk", "OPTIONS * HTTP/1.1\r\nHost: open.test\r\n"),
        ("dots above the root", "GET /echo/../../etc/passwd HTTP/1.1\r\nHost: a\r\n"),
    ];
    for (name, head) in refused {
        let answer = exchange(node.proxy(), format!("{head}Connection: close\r\n\r\n").as_bytes());
        assert!((400..500).contains(&status(&answer)), "{name}: {answer}");
        assert_eq!(upstream.take(), Vec::<String>::new(), "{name}");
    }
    // The target in absolute form names the host, whatever `Host` says (RFC 9112, 3.2.2).
    let absolute = "GET http://named.test/echo HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n";
    assert_eq!(status(&exchange(node.proxy(), absolute.as_bytes())), 200);
    let heads = upstream.take();
    assert!(heads[0].to_ascii_lowercase().contains("host: named.test\r\n"), "{heads:?}");
    // It may leave the path out, and then begins with its query.
    for (target, sent) in [("http://open.test", "GET / "), ("http://open.test?a=1", "GET /?a=1 ")] {
        let head = format!("GET {target} HTTP/1.1\r\nHost: open.test\r\nConnection: close\r\n\r\n");
        assert_eq!(status(&exchange(node.proxy(), head.as_bytes())), 200, "{target}");
        let heads = upstream.take();
        assert!(heads[0].starts_with(sent), "{target}: {heads:?}");
    }
    is_well(&node);
}

#[test]
fn hundreds_of_heads_that_never_end_keep_nobody_else_waiting() {
    let (cluster, upstream) = (Cluster::new(GWCTL), Recorder::start());
    let node = serving(&cluster, upstream.port);
    let before = peak_memory(&node);
    let (mut slow, began) = (Vec::new(), Instant::now());
    for port in [node.proxy(), node.admin()] {
        for _ in 0..400 {
            let mut stream = connect(port);
            stream.write_all(b"GET /echo HTTP/1.1\r\nHost: a\r\nX-Slow: ").unwrap();
            slow.push(stream);
        }
    }
    for round in 0..50 {
        // A machine that is slow as well leaves it at fewer: a head has a minute.
        if round >= 5 && began.elapsed() > Duration::from_secs(20) {
            break;
        }
        for stream in &mut slow {
            stream.write_all(b"a").unwrap();
        }
        assert_eq!(get(node.proxy(), "/echo").status, 200);
    }
    is_well(&node);
    let grown = peak_memory(&node) - before;
    assert!(grown < 64, "800 slow heads took {grown} MiB");
    // Those that end their head after all are answered.
    let mut last = slow.pop().unwrap();
    last.write_all(b"\r\nConnection: close\r\n\r\n").unwrap();
    assert_eq!(status(&until_end(&mut last)), 404, "the Admin API has no /echo");
}

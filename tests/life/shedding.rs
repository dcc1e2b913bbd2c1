//! When connections, descriptors or memory run out, clients are turned away and the node lives.

use crate::{GWCTL, figure, route_to, wait_for_log};
use gwctl_testkit::{Cluster, LIMIT, Node, Upstream, get, wait_until};
use std::io::{Read, Write};
use std::net::TcpStream;

/// What a new client hears.
fn hears(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let _ = stream.write_all(b"GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn a_node_with_few_descriptors_answers_503_and_recovers() {
    let (cluster, upstream) = (Cluster::new(GWCTL), Upstream::start());
    let options = cluster.options("node", "traditional");
    let wrapper = cluster.path("few.sh");
    std::fs::write(&wrapper, format!("#!/bin/sh\nulimit -n 128\nexec {GWCTL} \"$@\"\n")).unwrap();
    let runnable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&wrapper, runnable).unwrap();
    let node = Node::start(&wrapper, &options);
    route_to(&node, upstream.port);
    let idle: Vec<_> = (0..300).map(|_| TcpStream::connect(("127.0.0.1", node.proxy())).unwrap()).collect();
    wait_for_log(&node, "file descriptors run out");
    let answer = hears(node.proxy());
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("Retry-After: 1"), "{answer}");
    assert_eq!(get(node.status(), "/status").status, 200, "health answers from what is kept back");
    assert!(figure(&node, "gwctl_shed_total{reason=\"files\"}") > 0);
    drop(idle);
    wait_until("the node to serve again", || hears(node.proxy()).starts_with("HTTP/1.1 200 "));
}

#[test]
fn connections_beyond_the_limit_are_answered_503() {
    let (cluster, upstream) = (Cluster::new(GWCTL), Upstream::start());
    let node = cluster.start(&cluster.options("node", "traditional").set("proxy_max_connections", 5));
    route_to(&node, upstream.port);
    let idle: Vec<_> = (0..5).map(|_| TcpStream::connect(("127.0.0.1", node.proxy())).unwrap()).collect();
    wait_until("the limit to be reached", || hears(node.proxy()).starts_with("HTTP/1.1 503 "));
    drop(idle);
    wait_until("the node to serve again", || hears(node.proxy()).starts_with("HTTP/1.1 200 "));
}

#[test]
fn above_its_memory_a_node_answers_503_and_its_health_all_the_same() {
    let cluster = Cluster::new(GWCTL);
    let node = cluster.start(&cluster.options("node", "traditional").set("max_memory", "1m"));
    wait_until("the limit to be noticed", || get(node.proxy(), "/echo").status == 503);
    assert_eq!(get(node.proxy(), "/echo").header("retry-after"), Some("1"));
    assert_eq!(get(node.status(), "/status/ready").status, 200);
    assert!(figure(&node, "gwctl_shed_total{reason=\"memory\"}") > 0);
    wait_for_log(&node, "max_memory is reached");
}

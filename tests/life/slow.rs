//! Clients that stop half way are let go, on every listener.

use crate::{GWCTL, route_to};
use gwctl_testkit::{Cluster, Upstream, get};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Sends the beginning and waits for the other side to end the connection; gives the time that took.
fn let_go_after(port: u16, beginning: &[u8]) -> Duration {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(90))).unwrap();
    stream.write_all(beginning).unwrap();
    let began = Instant::now();
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
    }
    began.elapsed()
}

#[test]
fn heads_bodies_and_handshakes_that_stop_half_way_are_let_go() {
    let (cluster, upstream) = (Cluster::new(GWCTL), Upstream::start());
    let options = cluster.options("node", "traditional");
    let node = cluster
        .start(&options.set("nginx_http_client_header_timeout", "1s").set("nginx_http_client_body_timeout", "1s"));
    route_to(&node, upstream.port);
    let cases: [(&str, &[u8]); 3] = [
        ("nothing", b""),
        ("half a head", b"GET /echo HTTP/1.1\r\nHost: a\r\nX-Slow: "),
        ("half a body", b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf"),
    ];
    for (name, beginning) in cases {
        let took = let_go_after(node.proxy(), beginning);
        assert!(took < Duration::from_secs(15), "{name}: {took:?}");
    }
    assert_eq!(get(node.proxy(), "/echo").status, 200);
}

#[test]
fn a_handshake_with_the_cluster_listener_that_stops_is_let_go() {
    let cluster = Cluster::new(GWCTL);
    let _cp = cluster.start(&cluster.options("cp", "control_plane"));
    let took = let_go_after(cluster.cluster_port(), b"\x16\x03\x01");
    assert!(took < Duration::from_secs(15), "{took:?}");
}

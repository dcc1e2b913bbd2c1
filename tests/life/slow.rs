//! Clients that stop half way are let go, on every listener.

use crate::{GWCTL, route_to};
use gwctl_testkit::{Cluster, Upstream, get};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Far less than the times the settings here do not mention, and far more than those they do.
const PATIENCE: Duration = Duration::from_secs(45);

/// Sends the beginning and waits for the other side to end the connection.
fn is_let_go(port: u16, beginning: &[u8]) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(beginning).unwrap();
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{beginning:?}: {error}"),
    }
}

#[test]
fn heads_bodies_and_handshakes_that_stop_half_way_are_let_go() {
    let (cluster, upstream) = (Cluster::new(GWCTL), Upstream::start());
    let options = cluster.options("node", "traditional");
    let node = cluster
        .start(&options.set("nginx_http_client_header_timeout", "1s").set("nginx_http_client_body_timeout", "1s"));
    route_to(&node, upstream.port);
    // Nothing, half a head, half a body.
    is_let_go(node.proxy(), b"");
    is_let_go(node.proxy(), b"GET /echo HTTP/1.1\r\nHost: a\r\nX-Slow: ");
    is_let_go(node.proxy(), b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf");
    assert_eq!(get(node.proxy(), "/echo").status, 200);
}

#[test]
fn a_handshake_with_the_cluster_listener_that_stops_is_let_go() {
    let cluster = Cluster::new(GWCTL);
    let _cp = cluster.start(&cluster.options("cp", "control_plane"));
    is_let_go(cluster.cluster_port(), b"\x16\x03\x01");
}

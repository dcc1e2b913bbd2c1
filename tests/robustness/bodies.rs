//! Bodies far larger than anything a node takes.

use super::wire::{connect, status, until_end};
use super::{GWCTL, is_well, peak_memory};
use gwctl_testkit::{Cluster, Upstream, get, post, wait_until};
use serde_json::json;
use std::io::Write;

const HUNDRED_MIB: usize = 100 << 20;
/// Memory a node may take while it is sent bodies of 100 MiB, in MiB.
const MEMORY_LIMIT: u64 = 160;

/// Sends 100 MiB, plain or in chunks, until the node has enough; gives its answer.
fn send(port: u16, path: &str, content_type: &str, chunked: bool) -> String {
    let framing =
        if chunked { "Transfer-Encoding: chunked".to_owned() } else { format!("Content-Length: {HUNDRED_MIB}") };
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {content_type}\r\nConnection: close\r\n{framing}\r\n\r\n"
    );
    let mut stream = connect(port);
    stream.write_all(head.as_bytes()).unwrap();
    let data = vec![b'a'; 1 << 16];
    let piece = if chunked { [b"10000\r\n", data.as_slice(), b"\r\n"].concat() } else { data };
    for _ in 0..HUNDRED_MIB >> 16 {
        if stream.write_all(&piece).is_err() {
            break;
        }
    }
    if chunked {
        let _ = stream.write_all(b"0\r\n\r\n");
    }
    until_end(&mut stream)
}

#[test]
fn the_admin_api_refuses_bodies_of_100_mib_without_holding_them() {
    let cluster = Cluster::new(GWCTL);
    let node = cluster.start(&cluster.options("node", "traditional").set("database", "off"));
    let kinds = [
        ("/config", "text/yaml"),
        ("/config", "application/json"),
        ("/services", "application/x-www-form-urlencoded"),
        ("/services", "multipart/form-data; boundary=b"),
        ("/nowhere", "text/plain"),
    ];
    for (path, content_type) in kinds {
        for chunked in [false, true] {
            let answer = send(node.admin(), path, content_type, chunked);
            // A reset may overtake the answer while the rest of the body is still on its way.
            assert!(answer.is_empty() || status(&answer) == 413, "{path} {content_type} {chunked}: {answer}");
        }
    }
    let peak = peak_memory(&node);
    assert!(peak < MEMORY_LIMIT, "{peak} MiB");
    is_well(&node);
}

#[test]
fn the_proxy_streams_bodies_of_100_mib_and_refuses_them_where_they_are_limited() {
    let cluster = Cluster::new(GWCTL);
    let upstream = Upstream::start();
    for (name, limit, expected) in [("free", "0", 200), ("limited", "1m", 413)] {
        let node = cluster.start(&cluster.options(name, "traditional").set("nginx_http_client_max_body_size", limit));
        let service = json!({"name": "echo", "host": "127.0.0.1", "port": upstream.port});
        assert_eq!(post(node.admin(), "/services", &service).status, 201);
        assert_eq!(post(node.admin(), "/services/echo/routes", &json!({"paths": ["/echo"]})).status, 201);
        wait_until("the route to answer", || get(node.proxy(), "/echo").status == 200);
        let answer = send(node.proxy(), "/echo", "text/plain", false);
        assert!(status(&answer) == expected || (expected == 413 && answer.is_empty()), "{name}: {answer}");
        let peak = peak_memory(&node);
        assert!(peak < MEMORY_LIMIT, "{name}: {peak} MiB");
        is_well(&node);
    }
}

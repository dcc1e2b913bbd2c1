//! `cluster_use_proxy`: the way to the control plane leads through an HTTP proxy, by every protocol.

use super::GWCTL;
use gwctl_testkit::{Cluster, Fleet, NodeOptions, Protocol, get, wait_until};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A proxy that opens tunnels and remembers the heads it was asked with.
struct Tunnels {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Tunnels {
    /// Opens tunnels for whoever says who he is.
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let tunnels = Self { port: listener.local_addr().unwrap().port(), heads: Arc::default() };
        let heads = tunnels.heads.clone();
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let heads = heads.clone();
                std::thread::spawn(move || open(near, &heads));
            }
        });
        tunnels
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn open(mut near: TcpStream, heads: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(near.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    heads.lock().unwrap().push(head.clone());
    // "user:s/ecret"
    if !head.contains("Basic dXNlcjpzL2VjcmV0\r\n") {
        let _ = near.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let Ok(far) = TcpStream::connect(target) else { return };
    let _ = near.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n");
    let (mut back, mut out) = (far.try_clone().unwrap(), near.try_clone().unwrap());
    std::thread::spawn(move || pump(&mut back, &mut out));
    pump(&mut reader, &mut &far);
}

fn pump(from: &mut impl Read, to: &mut impl Write) {
    let mut bytes = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
}

fn through(options: NodeOptions, tunnels: &Tunnels, user: &str) -> NodeOptions {
    options.set("cluster_use_proxy", "on").set("proxy_server", format!("http://{user}127.0.0.1:{}", tunnels.port))
}

#[test]
fn every_protocol_goes_through_the_proxy() {
    for (name, protocol) in [("gwctl", Protocol::Gwctl), ("v1", Protocol::V1), ("v2", Protocol::V2)] {
        let (cluster, tunnels) = (Cluster::new(GWCTL), Tunnels::start());
        let cp = cluster.start(&protocol.set(cluster.options("cp", "control_plane")));
        let dp =
            cluster.start(&through(protocol.set(cluster.options("dp", "data_plane")), &tunnels, "user:s%2Fecret@"));
        let fleet = Fleet::of(cluster, protocol, cp, vec![dp]);
        fleet.route("/x");
        fleet.serves("/x", 200);
        assert_eq!(fleet.members()[0]["protocol"], name);
        let heads = tunnels.heads();
        let asked = format!("CONNECT 127.0.0.1:{} HTTP/1.1\r\n", fleet.cluster.cluster_port());
        assert!(!heads.is_empty() && heads.iter().all(|head| head.starts_with(&asked)), "{heads:?}");
        assert!(!fleet.dps[0].log().contains("ecret"), "{}", fleet.dps[0].log());
    }
}

#[test]
fn a_proxy_that_refuses_is_named_and_not_gone_round() {
    let (cluster, tunnels) = (Cluster::new(GWCTL), Tunnels::start());
    let cp = cluster.start(&cluster.options("cp", "control_plane"));
    let dp = cluster.start(&through(cluster.options("dp", "data_plane"), &tunnels, ""));
    wait_until("the refusal to be told", || dp.log().contains("407"));
    assert_eq!(get(cp.admin(), "/clustering/data-planes").json()["data"], json!([]));
    assert_eq!(get(dp.status(), "/status/ready").status, 503);
}

//! Peers with the right certificate and bad manners, at the cluster listener of a control plane.

use super::wire::{connect, until_end};
use super::{GWCTL, is_well, peak_memory};
use gwctl_certs::{Identity, Source, Trust, cluster_client_config};
use gwctl_testkit::{Cluster, Node, NodeOptions, get, post, wait_until};
use rustls::{ClientConnection, RootCertStore, StreamOwned};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;

pub(crate) type Stream = StreamOwned<ClientConnection, TcpStream>;

/// The cluster's own pair, which every data plane has.
pub(crate) fn identity(cluster: &Cluster) -> Identity {
    let read = |name: &str| std::fs::read_to_string(cluster.path(name)).unwrap();
    let (cert, key) = (read("cluster.crt"), read("cluster.key"));
    let source = |setting, pem| Source { setting, place: "test", pem };
    Identity::read(source("cluster_cert", &cert), source("cluster_cert_key", &key)).unwrap()
}

/// Speaks TLS with the cluster listener as a data plane would.
fn dial(cluster: &Cluster) -> Stream {
    let (config, name) =
        cluster_client_config(&identity(cluster), &Trust::Shared, RootCertStore::empty(), "127.0.0.1").unwrap();
    let connection = ClientConnection::new(config, name).unwrap();
    StreamOwned::new(connection, connect(cluster.cluster_port()))
}

/// A link that is open; nothing was said on it yet.
fn upgraded(cluster: &Cluster, node: usize) -> Stream {
    upgraded_by(cluster, node, "v1", "")
}

/// The same by any protocol, with headers of its own.
pub(crate) fn upgraded_by(cluster: &Cluster, node: usize, protocol: &str, headers: &str) -> Stream {
    let mut stream = dial(cluster);
    let target =
        format!("/{protocol}/outlet?node_id=00000000-0000-4000-8000-{node:012}&node_hostname=evil&node_version=3.9.1");
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: \
         dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{headers}\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    stream
}

/// A frame of a client, masked with zeros.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        length @ 0..=125 => frame.push(0x80 | length as u8),
        length => {
            frame.push(0x80 | 127);
            frame.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

pub(crate) const BINARY: u8 = 0x82;
const PING: u8 = 0x89;

pub(crate) struct Attacked {
    pub(crate) cp: Node,
    pub(crate) honest: Node,
    pub(crate) cluster: Cluster,
}

impl Attacked {
    fn start() -> Self {
        Self::start_with(|options| options)
    }

    /// With settings of its own for the control plane.
    pub(crate) fn start_with(set: impl Fn(NodeOptions) -> NodeOptions) -> Self {
        let cluster = Cluster::new(GWCTL);
        let cp = cluster.start(&set(cluster.options("cp", "control_plane")));
        let honest = cluster.start(&cluster.options("dp", "data_plane"));
        Self { cp, honest, cluster }
    }

    /// The control plane still brings changes to a data plane that behaves.
    pub(crate) fn still_serves(&self, name: &str) {
        let route = json!({"name": name, "paths": [format!("/{name}")], "service": null});
        assert_eq!(post(self.cp.admin(), "/routes", &route).status, 201);
        wait_until("the change to arrive", || {
            let hash = get(self.cp.admin(), "/gwctl/fleet").json()["config_hash"].clone();
            hash.is_string() && get(self.honest.status(), "/status").json()["configuration_hash"] == hash
        });
        is_well(&self.cp);
        is_well(&self.honest);
    }
}

#[test]
fn frames_without_sense_end_their_own_link_only() {
    let attacked = Attacked::start();
    attacked.still_serves("before");
    let deep = format!("{{\"type\":\"basic_info\",\"plugins\":{}", "[".repeat(100_000));
    let header = |length: u64| [&[BINARY, 0xFF], length.to_be_bytes().as_slice(), &[0; 4]].concat();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("noise", (0..4096_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect()),
        ("an unmasked frame", vec![BINARY, 3, b'a', b'b', b'c']),
        ("reserved bits", frame(0xF2, b"a")),
        ("a fragment", frame(0x02, b"a")),
        ("an unknown opcode", frame(0x83, b"a")),
        ("a long ping", frame(PING, &[b'a'; 200])),
        ("a length of 1 GiB", header(1 << 30)),
        ("a length beyond memory", header(u64::MAX)),
        ("basic info that is no JSON", frame(BINARY, b"\xff\xfe{")),
        ("basic info of another type", frame(BINARY, b"[1,2,3]")),
        ("basic info without plugins", frame(BINARY, b"{\"type\":\"basic_info\"}")),
        ("basic info with wrong plugins", frame(BINARY, b"{\"type\":\"basic_info\",\"plugins\":{\"a\":[]}}")),
        ("deep basic info", frame(BINARY, deep.as_bytes())),
        (
            "a hash that is none",
            [frame(BINARY, b"{\"type\":\"basic_info\",\"plugins\":[]}"), frame(PING, b"hash"), frame(BINARY, b"x")]
                .concat(),
        ),
    ];
    for (number, (name, bytes)) in cases.iter().enumerate() {
        let mut stream = upgraded(&attacked.cluster, number);
        stream.write_all(bytes).unwrap();
        let _ = stream.flush();
        until_end(&mut stream);
        assert!(!attacked.cp.log().contains("panicked"), "{name}: {}", attacked.cp.log());
    }
    let peak = peak_memory(&attacked.cp);
    assert!(peak < 200, "{peak} MiB");
    attacked.still_serves("after");
}

#[test]
fn heads_without_sense_are_refused_and_long_ones_not_kept() {
    let attacked = Attacked::start();
    let long = format!("GET /v1/outlet?node_id={} HTTP/1.1\r\n\r\n", "a".repeat(1 << 20));
    let cases = [
        "\0\u{1}\u{2}\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /v1/outlet HTTP/1.1\r\nHost: x\r\n\r\n",
        &long,
    ];
    for head in cases {
        let mut stream = dial(&attacked.cluster);
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.flush();
        let answer = until_end(&mut stream);
        assert!(!answer.starts_with("HTTP/1.1 101"), "{answer}");
    }
    let mut plain = connect(attacked.cluster.cluster_port());
    plain.write_all(b"GET /v1/outlet HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    until_end(&mut plain);
    attacked.still_serves("after");
}

#[test]
fn peers_that_say_nothing_or_read_nothing_hold_nobody_up() {
    let attacked = Attacked::start();
    attacked.still_serves("before");
    let before = peak_memory(&attacked.cp);
    // Connections that never begin TLS, links that never speak, and links that take the configuration but read nothing.
    let silent: Vec<TcpStream> = (0..1000).map(|_| connect(attacked.cluster.cluster_port())).collect();
    let mut links: Vec<Stream> = (0..20).map(|number| upgraded(&attacked.cluster, number)).collect();
    for link in &mut links[..10] {
        link.write_all(&frame(BINARY, b"{\"type\":\"basic_info\",\"plugins\":[]}")).unwrap();
        link.flush().unwrap();
    }
    for number in 0..20 {
        let service = json!({"name": format!("s{number}"), "host": "h", "tags": ["x".repeat(1000)]});
        assert_eq!(post(attacked.cp.admin(), "/services", &service).status, 201);
    }
    attacked.still_serves("during");
    drop(silent);
    drop(links);
    attacked.still_serves("after");
    let grown = peak_memory(&attacked.cp) - before;
    assert!(grown < 150, "{grown} MiB");
}

#[test]
fn a_thousand_connects_in_a_row_leave_the_control_plane_as_it_was() {
    let attacked = Attacked::start();
    for _ in 0..1000 {
        drop(connect(attacked.cluster.cluster_port()));
    }
    for number in 0..50 {
        drop(upgraded(&attacked.cluster, number));
    }
    attacked.still_serves("after");
    let files = || std::fs::read_dir(format!("/proc/{}/fd", attacked.cp.id())).unwrap().count();
    wait_until("the connections to be let go", || files() < 100);
}

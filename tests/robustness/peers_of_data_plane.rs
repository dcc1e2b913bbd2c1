//! A control plane with the right certificate that sends a data plane what it should not.

use super::peers_of_control_plane::identity;
use super::{GWCTL, assert_says, is_well, peak_memory};
use flate2::Compression;
use flate2::write::GzEncoder;
use gwctl_certs::{Peers, Trust};
use gwctl_testkit::{Cluster, LIMIT, Node, NodeOptions, Upstream, get, post, wait_until};
use rustls::{ServerConnection, StreamOwned};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

pub(crate) type Stream = StreamOwned<ServerConnection, TcpStream>;

/// Takes the place of the control plane, on its port and with its certificate.
pub(crate) struct Impostor {
    listener: TcpListener,
    peers: Peers,
    /// Headers of its answers to upgrades.
    headers: &'static str,
}

impl Impostor {
    fn of(cluster: &Cluster) -> Self {
        Self::with(cluster, "")
    }

    pub(crate) fn with(cluster: &Cluster, headers: &'static str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", cluster.cluster_port())).unwrap();
        Self { listener, peers: Peers::new(identity(cluster), &Trust::Shared), headers }
    }

    /// The next link a data plane opens. What a killed one left in the listener's queue is passed over.
    fn link(&self) -> Stream {
        self.link_that_says(b"")
    }

    /// The same, with bytes in one piece with the answer to the upgrade.
    fn link_that_says(&self, first: &[u8]) -> Stream {
        loop {
            let (stream, _) = self.listener.accept().unwrap();
            if let Ok(stream) = self.upgrade(stream, first) {
                return stream;
            }
        }
    }

    fn upgrade(&self, stream: TcpStream, first: &[u8]) -> std::io::Result<Stream> {
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let mut stream = StreamOwned::new(ServerConnection::new(self.peers.server_config().unwrap()).unwrap(), stream);
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: x\r\n{}\r\n",
            self.headers
        );
        stream.write_all(&[answer.as_bytes(), first].concat())?;
        stream.flush()?;
        Ok(stream)
    }
}

/// A binary frame of a server.
pub(crate) fn frame(payload: &[u8]) -> Vec<u8> {
    [&[0x82, 127], (payload.len() as u64).to_be_bytes().as_slice(), payload].concat()
}

fn compressed(pieces: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    pieces.into_iter().for_each(|piece| encoder.write_all(&piece).unwrap());
    encoder.finish().unwrap()
}

fn reconfigure(table: &str) -> Vec<u8> {
    let text = format!(
        "{{\"type\":\"reconfigure\",\"timestamp\":1.0,\"config_hash\":\"{}\",\"hashes\":{{}},\"config_table\":{table}}}",
        "b".repeat(32)
    );
    frame(&compressed([text.into_bytes()]))
}

/// A data plane that serves `/good` from its cache and whose control plane is gone.
fn orphan(cluster: &Cluster) -> (Node, Upstream) {
    orphan_with(cluster, |options| options)
}

/// The same with settings of its own.
pub(crate) fn orphan_with(cluster: &Cluster, set: impl Fn(NodeOptions) -> NodeOptions) -> (Node, Upstream) {
    let upstream = Upstream::start();
    let mut cp = cluster.start(&set(cluster.options("cp", "control_plane")));
    let dp = cluster.start(&set(cluster.options("dp", "data_plane")));
    let service = json!({"name": "echo", "host": "127.0.0.1", "port": upstream.port});
    assert_eq!(post(cp.admin(), "/services", &service).status, 201);
    assert_eq!(post(cp.admin(), "/services/echo/routes", &json!({"paths": ["/good"]})).status, 201);
    wait_until("the route to answer", || get(dp.proxy(), "/good").status == 200);
    cp.kill();
    (dp, upstream)
}

/// Starts the data plane anew, so that it dials at once whatever its patience was.
pub(crate) fn redialed(dp: &mut Node, impostor: &Impostor) -> Stream {
    dp.kill();
    dp.restart();
    impostor.link()
}

#[test]
fn payloads_that_are_bombs_or_noise_are_refused_and_the_old_configuration_serves_on() {
    // Over the limit of 512 MiB, which is 32 times cluster_max_payload.
    let bomb = compressed((0..600).map(|_| vec![b' '; 1 << 20]));
    assert!(bomb.len() < 16 << 20, "the bomb passes as a frame: {}", bomb.len());
    let cluster = Cluster::new(GWCTL);
    let (mut dp, _upstream) = orphan(&cluster);
    let impostor = Impostor::of(&cluster);
    let header_only = [&[0x82, 127], (1_u64 << 30).to_be_bytes().as_slice()].concat();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("a bomb", frame(&bomb), "inflates to more than"),
        ("a header of 1 GiB", header_only, "cluster_max_payload"),
        ("noise", frame(&[7; 5000]), "cannot be inflated"),
        ("noise as JSON", frame(&compressed([vec![b'{'; 5000]])), "not readable as JSON"),
        ("deep JSON", reconfigure(&deep), "recursion limit"),
        ("a table that is a list", reconfigure("[]"), "config_table"),
        ("entities without sense", reconfigure("{\"_format_version\":\"3.0\",\"services\":[{\"id\":7}]}"), "services"),
        (
            "a route that no router takes",
            reconfigure(
                "{\"_format_version\":\"3.0\",\"routes\":[{\"id\":\"00000000-0000-4000-8000-000000000001\",\"paths\":[\"~/(\"]}]}",
            ),
            "routes",
        ),
        ("a fragment", vec![0x02, 1, b'a'], "fragmented"),
        ("a masked frame", vec![0x82, 0x81, 0, 0, 0, 0, b'a'], "masked"),
    ];
    for (name, bytes, says) in cases {
        let mut link = redialed(&mut dp, &impostor);
        let before = dp.log().len();
        link.write_all(&bytes).unwrap();
        link.flush().unwrap();
        wait_until(&format!("{name} to be refused"), || dp.log()[before..].contains(says));
        assert_eq!(get(dp.proxy(), "/good").status, 200, "{name}");
        let peak = peak_memory(&dp);
        // 16 MiB inflate to 512 MiB at most before they are refused.
        assert!(peak < 700, "{name}: {peak} MiB");
        is_well(&dp);
    }
}

#[test]
fn a_peer_that_speaks_before_it_is_spoken_to_is_heard() {
    let cluster = Cluster::new(GWCTL);
    let (mut dp, _upstream) = orphan(&cluster);
    let impostor = Impostor::of(&cluster);
    for _ in 0..10 {
        dp.kill();
        let before = dp.log().len();
        dp.restart();
        let _link = impostor.link_that_says(&frame(b"noise"));
        wait_until("the frame to be refused", || dp.log()[before..].contains("cannot be inflated"));
    }
    is_well(&dp);
}

#[test]
fn endless_payloads_from_a_peer_that_never_pongs_do_not_pile_up() {
    let cluster = Cluster::new(GWCTL);
    let (mut dp, _upstream) = orphan(&cluster);
    let impostor = Impostor::of(&cluster);
    let mut link = redialed(&mut dp, &impostor);
    // 1 MiB each, hard to compress, and different: only the newest is worth applying.
    let payload = |number: usize| {
        let mut state = number as u64 + 1;
        let noise: String = (0..1 << 20)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                char::from(b'a' + (state >> 59) as u8 % 26)
            })
            .collect();
        format!("{{\"_format_version\":\"3.0\",\"_comment\":\"{noise}\",\"services\":[{{\"id\":{number}}}]}}")
    };
    let frames: Vec<Vec<u8>> = (0..4).map(|number| reconfigure(&payload(number))).collect();
    for number in 0..200 {
        link.write_all(&frames[number % frames.len()]).unwrap();
        link.flush().unwrap();
        if number % 20 == 0 {
            assert_eq!(get(dp.proxy(), "/good").status, 200);
        }
    }
    wait_until("a refusal", || dp.log().contains("configuration refused"));
    let peak = peak_memory(&dp);
    assert!(peak < 300, "{peak} MiB");
    is_well(&dp);
}

#[test]
fn a_peer_that_is_no_control_plane_is_told_apart_and_dialed_again() {
    let cluster = Cluster::new(GWCTL);
    let (mut dp, _upstream) = orphan(&cluster);
    let listener = TcpListener::bind(("127.0.0.1", cluster.cluster_port())).unwrap();
    for answer in [b"HTTP/1.1 200 OK\r\n\r\n".as_slice(), b"\0\0\0\0\0\0\0\0", b""] {
        dp.kill();
        let before = dp.log().len();
        dp.restart();
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.write_all(answer);
        drop(stream);
        wait_until("the failure to be told", || dp.log()[before..].contains("no connection to control plane"));
        assert_says(&dp.log()[before..], &["retry_in_ms", "serving the configuration at hand"]);
        assert_eq!(get(dp.proxy(), "/good").status, 200);
    }
    is_well(&dp);
}

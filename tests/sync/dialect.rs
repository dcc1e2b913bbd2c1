//! A data plane of Kong 3.10, played by hand: versions are texts, and every change brings everything.

use super::fleet;
use gwctl_certs::{Identity, Source, Trust, cluster_client_config};
use gwctl_link::{DialOptions, Dialed, FrameReader, FrameWriter, dial};
use gwctl_testkit::{Cluster, wait_until};
use gwctl_wire::Frame;
use gwctl_wire::v2::{Deltas, Dialect, Hello, Message, SUBPROTOCOL, Welcome, rpc, sync};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

const NODE: &str = "00000000-0000-4000-8000-000000000310";
const LIMIT: usize = 1 << 24;

/// A link with its runtime.
struct Peer {
    runtime: tokio::runtime::Runtime,
    reader: FrameReader<TlsStream<TcpStream>>,
    writer: FrameWriter<TlsStream<TcpStream>>,
}

impl Peer {
    fn dial(cluster: &Cluster) -> Self {
        let read = |name: &str| std::fs::read_to_string(cluster.path(name)).unwrap();
        let (cert, key) = (read("cluster.crt"), read("cluster.key"));
        let source = |setting, pem| Source { setting, place: "test", pem };
        let identity = Identity::read(source("cluster_cert", &cert), source("cluster_cert_key", &key)).unwrap();
        let roots = rustls::RootCertStore::empty();
        let (tls, server_name) = cluster_client_config(&identity, &Trust::Shared, roots, "127.0.0.1").unwrap();
        let options = DialOptions {
            address: format!("127.0.0.1:{}", cluster.cluster_port()),
            tls: tls.into(),
            server_name,
            target: "/v2/outlet".to_owned(),
            limit: LIMIT,
            proxy: None,
            subprotocol: Some(SUBPROTOCOL),
            extra: None,
        };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let Dialed { reader, writer, .. } = runtime.block_on(dial(&options)).unwrap();
        Self { runtime, reader, writer }
    }

    fn say(&mut self, frame: &Frame) {
        self.runtime.block_on(self.writer.send(frame)).unwrap();
    }

    fn hear(&mut self) -> Frame {
        self.runtime.block_on(self.reader.receive()).unwrap().expect("the control plane goes on")
    }

    fn message(&mut self) -> Message {
        let frame = self.hear();
        Message::decode(&frame, LIMIT).unwrap()
    }

    /// What came after what this node says it has.
    fn pull(&mut self, id: u64, has: &str) -> Deltas {
        self.say(&rpc::call(id, sync::GET_DELTA, &json!({"default": {"version": has}})).unwrap());
        match self.message() {
            Message::Answer { id: answered, outcome } if answered == Some(id) => {
                Deltas::read(outcome.unwrap()).unwrap()
            }
            other => panic!("{other:?}"),
        }
    }
}

fn text(version: u64) -> String {
    Dialect::Texts.hash(version).to_string()
}

#[test]
fn a_data_plane_of_kong_3_10_is_told_and_sent_everything_in_its_dialect() {
    let fleet = fleet(1);
    fleet.route("/x");
    let mut peer = Peer::dial(&fleet.cluster);
    let hello = Hello {
        capabilities: vec![sync::CAPABILITY.to_owned()],
        version: "3.10.0".to_owned(),
        node_id: NODE.to_owned(),
        hostname: "kong".to_owned(),
        conf: json!({"cluster_dp_labels": ["region:eu"]}).as_object().cloned().unwrap(),
    };
    peer.say(&hello.encode());
    let welcome = Welcome::decode(&peer.hear()).unwrap();
    assert_eq!((welcome.capabilities, welcome.cluster_id), (vec![sync::CAPABILITY.to_owned()], None));

    // What it has of protocol v1 leads to nothing.
    let everything = peer.pull(0, "8dd89138b0eac8dc78edbcae31b2d3b9");
    let version = fleet.version();
    assert_eq!((everything.wipe, everything.dialect), (true, Dialect::Texts));
    assert!(everything.deltas.iter().all(|delta| delta.version == version && delta.entity.is_some()));
    let nothing = peer.pull(1, &text(version));
    assert_eq!((nothing.wipe, nothing.deltas.len()), (false, 0));

    fleet.route("/y");
    let Message::Call { id: Some(id), method, params } = peer.message() else { panic!("no news of the change") };
    let news: Value = json!([{"default": {"new_version": text(version + 1)}}]);
    assert_eq!((method.as_str(), params), (sync::NOTIFY, news));
    peer.say(&rpc::answer(&id, "true").unwrap());
    let again = peer.pull(2, &text(version));
    assert!(again.wipe && again.deltas.len() == everything.deltas.len() + 1);

    // Kong 3.10 tells what it has by a call without an id.
    let report = json!({"default": {"version": text(version + 1)}});
    peer.say(&rpc::notification(sync::GET_DELTA, &report).unwrap());
    let row = || fleet.rows().into_iter().find(|row| row["id"] == json!(NODE));
    wait_until("the report to be shown", || row().is_some_and(|row| row["config_hash"] == json!(text(version + 1))));
    let row = row().unwrap();
    assert_eq!((&row["version"], &row["labels"]), (&json!("3.10.0"), &json!({"region": "eu"})));
    assert!(row["cert_details"]["expiry_timestamp"].is_u64(), "{row}");

    let invalid = json!({"version": text(version + 1), "error": {"message": "bad row"}});
    peer.say(&rpc::notification(sync::INVALID, &invalid).unwrap());
    wait_until("the refusal to be shown", || {
        let shown = fleet.document();
        let items = shown["items"].as_array().cloned().unwrap_or_default();
        items.iter().any(|item| item["id"] == json!(NODE) && item["last_error"] == json!("bad row"))
    });
    // The data plane of the other dialect is served beside it.
    fleet.serves("/y", 200);
    fleet.in_sync();
}

//! gRPC as tonic speaks it, on both sides of a node: in the clear to a service of grpc, and over TLS to one of grpcs.

use crate::probe::{Client, Probe, REFUSAL};
use crate::tools::Stage;
use bytes::Bytes;
use gwctl_testkit::{Relay, free_ports};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity, Server};
use tonic::{Code, Request, Status, Streaming};

/// A node between both sides.
struct Scene {
    stage: Stage,
    probe: Probe,
    plain: Channel,
    secure: Channel,
}

/// A service named as the package of gRPC that is routed to it.
fn add(stage: &Stage, name: &str, service: Value, route: Value) {
    let mut rows = [json!({"name": name}), json!({"name": name, "paths": [format!("/probe.{name}/")]})];
    rows[1]["protocols"] = json!(["grpc", "grpcs"]);
    for (row, fields) in rows.iter_mut().zip([service, route]) {
        row.as_object_mut().unwrap().extend(fields.as_object().cloned().unwrap());
    }
    stage.make("/services", &rows[0]);
    stage.make(&format!("/services/{name}/routes"), &rows[1]);
}

impl Scene {
    /// With services for `probe.Plain` and `probe.Secure`, and what is added; told is the port of the former.
    async fn new(more: impl FnOnce(&Stage, u16)) -> Scene {
        Scene::with(Server::builder(), more).await
    }

    /// The same with settings of the server in the clear.
    async fn with(server: Server, more: impl FnOnce(&Stage, u16)) -> Scene {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let pair = gwctl_certs::self_signed(&["localhost".to_owned()], now).unwrap();
        let stage = Stage::new(|options| {
            std::fs::create_dir_all(&options.prefix).unwrap();
            let path = |name: &str, text: &str| {
                let path = options.prefix.join(name);
                std::fs::write(&path, text).unwrap();
                path
            };
            let (certificate, key) = (path("probe.crt", &pair.certificate), path("probe.key", &pair.key));
            options.set("ssl_cert", certificate.display()).set("ssl_cert_key", key.display())
        });
        let probe = Probe::default();
        let clear = probe.serve(server).await;
        let tls = probe.start(Some(Identity::from_pem(&pair.certificate, &pair.key))).await;
        add(&stage, "Plain", json!({"url": format!("grpc://127.0.0.1:{clear}")}), json!({}));
        add(&stage, "Secure", json!({"url": format!("grpcs://127.0.0.1:{tls}")}), json!({}));
        more(&stage, clear);
        stage.settled();
        let channel = |address: String| Channel::from_shared(address).unwrap();
        let trust = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&pair.certificate));
        let secure = channel(format!("https://127.0.0.1:{}", stage.secure));
        let secure = secure.tls_config(trust.domain_name("localhost")).unwrap().connect().await.unwrap();
        let plain = channel(format!("http://127.0.0.1:{}", stage.plain)).connect().await.unwrap();
        Scene { stage, probe, plain, secure }
    }

    /// A client in the clear of a service in the clear, and a client over TLS of a service over TLS.
    fn ways(&self) -> [Client; 2] {
        [Client::new(self.plain.clone(), "probe.Plain"), Client::new(self.secure.clone(), "probe.Secure")]
    }

    fn client(&self, service: &'static str) -> Client {
        Client::new(self.plain.clone(), service)
    }

    /// A call of `Watch` that has had its first message, and what writes the next ones.
    async fn watching(&self, client: &mut Client) -> (mpsc::Sender<Result<Bytes, Status>>, Streaming<Bytes>) {
        let script = self.probe.script();
        let mut watched = client.watch().await;
        script.send(Ok("one".into())).await.unwrap();
        assert_eq!(watched.message().await.unwrap().unwrap(), "one");
        (script, watched)
    }
}

/// A call with `note` in its metadata, as text and as bytes.
fn noted(message: impl Into<Bytes>) -> Request<Bytes> {
    let mut request = Request::new(message.into());
    let metadata = request.metadata_mut();
    metadata.append("note", "first".parse().unwrap());
    metadata.append("note", "second".parse().unwrap());
    metadata.append_bin("note-bin", MetadataValue::from_bytes(&BINARY));
    request
}

const BINARY: [u8; 5] = [0, 0xff, b',', b'\n', 0x80];

#[tokio::test]
async fn a_call_brings_its_message_and_metadata_there_and_back() {
    let scene = Scene::new(|_, _| {}).await;
    for (mut client, scheme) in scene.ways().into_iter().zip(["http", "https"]) {
        let answer = client.unary("Echo", noted("ping")).await.unwrap();
        let metadata = answer.metadata();
        let notes: Vec<_> = metadata.get_all("seen-note").iter().map(|value| value.to_str().unwrap()).collect();
        assert_eq!(notes, ["first", "second"]);
        assert_eq!(metadata.get_bin("seen-note-bin").unwrap().to_bytes().unwrap(), BINARY.as_slice());
        assert_eq!(metadata.get("seen-x-forwarded-proto").unwrap(), scheme);
        assert!(metadata.contains_key("x-kong-proxy-latency"), "{metadata:?}");
        assert_eq!(answer.into_inner(), "ping");
        let empty = client.ask("Echo", "").await.unwrap();
        assert_eq!(empty.into_inner(), "");
        // Larger than the windows of all connections on the way.
        let large: Bytes = (0..1 << 20).map(|place: u32| (place % 251) as u8).collect::<Vec<_>>().into();
        let answer = client.unary("Echo", Request::new(large.clone())).await.unwrap();
        assert!(answer.into_inner() == large, "a large message comes back as it was");
    }
}

#[tokio::test]
async fn messages_go_on_one_by_one() {
    let scene = Scene::new(|_, _| {}).await;
    for mut client in scene.ways() {
        // Each message arrives before the next is there to be sent.
        let script = scene.probe.script();
        let mut watched = client.watch().await;
        for message in ["one", "two", "three"] {
            script.send(Ok(message.into())).await.unwrap();
            assert_eq!(watched.message().await.unwrap().unwrap(), message);
        }
        drop(script);
        assert_eq!(watched.message().await.unwrap(), None);

        let (sender, messages) = mpsc::channel(1);
        let sending = async {
            for message in ["one", "two", ""] {
                sender.send(message.into()).await.unwrap();
            }
            drop(sender);
        };
        let (joined, ()) = tokio::join!(client.join(messages), sending);
        assert_eq!(joined.unwrap(), "one.two..");

        let (sender, messages) = mpsc::channel(1);
        let mut answers = client.talk(messages).await;
        for number in 0..100 {
            let ping = Bytes::from(format!("ping {number}"));
            sender.send(ping.clone()).await.unwrap();
            assert_eq!(answers.message().await.unwrap().unwrap(), ping);
        }
        drop(sender);
        assert_eq!(answers.message().await.unwrap(), None);
    }
}

#[tokio::test]
async fn an_error_keeps_its_message_details_and_metadata() {
    let scene = Scene::new(|_, _| {}).await;
    let is_whole = |status: &Status, details: &[u8]| {
        assert_eq!((status.code(), status.message()), (Code::DataLoss, REFUSAL));
        assert_eq!(status.details(), details);
    };
    for mut client in scene.ways() {
        let status = client.unary("Refuse", noted(BINARY.to_vec())).await.unwrap_err();
        is_whole(&status, &BINARY);
        assert_eq!(status.metadata().get("seen-note").unwrap(), "first");
        assert_eq!(status.metadata().get_bin("seen-note-bin").unwrap().to_bytes().unwrap(), BINARY.as_slice());

        // In trailers proper: after a message.
        let (script, mut watched) = scene.watching(&mut client).await;
        let status = Status::with_details(Code::DataLoss, REFUSAL, BINARY.to_vec().into());
        script.send(Err(status)).await.unwrap();
        is_whole(&watched.message().await.unwrap_err(), &BINARY);

        let status = client.ask("Nothing", "").await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Unimplemented, "Nothing"));
    }
}

#[tokio::test]
async fn the_deadline_of_a_call_and_its_cancellation_reach_the_server() {
    let scene = Scene::new(|_, _| {}).await;
    for mut client in scene.ways() {
        let mut request = noted("ping");
        request.set_timeout(Duration::from_secs(3600));
        let answer = client.unary("Echo", request).await.unwrap();
        assert_eq!(answer.metadata().get("seen-grpc-timeout").unwrap(), "3600000m");

        let script = scene.probe.script();
        let watched = client.watch().await;
        assert!(!script.is_closed());
        drop(watched);
        script.closed().await;
    }
}

#[tokio::test]
async fn what_the_node_answers_itself_is_a_status_of_grpc() {
    let [closed] = free_ports();
    let scene = Scene::new(|stage, _| {
        stage.make("/upstreams", &json!({"name": "empty.test"}));
        add(stage, "Down", json!({"url": format!("grpc://127.0.0.1:{closed}"), "retries": 0}), json!({}));
        add(stage, "Empty", json!({"url": "grpc://empty.test:80"}), json!({}));
        add(stage, "Strict", json!({"url": format!("grpc://127.0.0.1:{closed}")}), json!({"protocols": ["grpcs"]}));
    })
    .await;
    for (service, code, message) in [
        // Kong makes the class of a status of HTTP one of gRPC: 502 is 13, 503 is 14.
        ("probe.Down", Code::Internal, "An invalid response was received from the upstream server"),
        ("probe.Empty", Code::Unavailable, "failure to get a peer from the ring-balancer"),
        ("probe.Nowhere", Code::NotFound, "no Route matched with those values"),
        ("probe.Strict", Code::Cancelled, "gRPC request matched gRPCs route"),
    ] {
        let status = scene.client(service).ask("Echo", "ping").await.unwrap_err();
        assert_eq!((status.code(), status.message()), (code, message), "{service}");
    }
    // A server that does not answer in time.
    scene.stage.change("/services/Plain", &json!({"read_timeout": 50}));
    scene.stage.settled();
    let status = scene.client("probe.Plain").ask("Stall", "").await.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (Code::DeadlineExceeded, "The upstream server is timing out"),
        "{status:?}"
    );
}

#[tokio::test]
async fn an_answer_that_breaks_off_does_not_look_like_a_whole_one() {
    let mut relay = None;
    let scene = Scene::new(|stage, clear| {
        let between = relay.insert(Relay::start(clear));
        add(stage, "Cut", json!({"url": format!("grpc://127.0.0.1:{}", between.port)}), json!({}));
    })
    .await;
    let (_script, mut watched) = scene.watching(&mut scene.client("probe.Cut")).await;
    relay.unwrap().cut();
    let status = watched.message().await.unwrap_err();
    assert_ne!(status.code(), Code::Ok, "{status:?}");
}

#[tokio::test]
async fn a_server_may_refuse_before_it_has_heard_everything() {
    let scene = Scene::new(|_, _| {}).await;
    for mut client in scene.ways() {
        for _ in 0..10 {
            let (sender, messages) = mpsc::channel(1);
            sender.send("one".into()).await.unwrap();
            let status = client.stream("Nothing", messages).await.unwrap_err();
            assert_eq!(status.code(), Code::Unimplemented, "{status:?}");
            assert_eq!(client.ask("Echo", "ping").await.unwrap().into_inner(), "ping");
        }
        // More than the server takes of one message: it says so after the first bytes.
        let status = client.unary("Echo", Request::new(vec![0; 8 << 20].into())).await.unwrap_err();
        assert_eq!(status.code(), Code::OutOfRange, "{status:?}");
    }
}

#[tokio::test]
async fn calls_under_way_end_as_they_should_when_the_node_quits() {
    let scene = Scene::new(|_, _| {}).await;
    let mut open = Vec::new();
    for mut client in scene.ways() {
        open.push(scene.watching(&mut client).await);
    }
    let quit = std::process::Command::new("kill").args(["-QUIT", &scene.stage.node.id().to_string()]).status();
    assert!(quit.unwrap().success());
    let (plain, secure) = (scene.stage.plain, scene.stage.secure);
    gwctl_testkit::wait_until("the node to stop listening", || {
        [plain, secure].iter().all(|port| std::net::TcpStream::connect(("127.0.0.1", *port)).is_err())
    });
    for (script, mut watched) in open {
        script.send(Ok("two".into())).await.unwrap();
        assert_eq!(watched.message().await.unwrap().unwrap(), "two");
        drop(script);
        assert_eq!(watched.message().await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_call_goes_on_to_the_next_target_where_one_is_down() {
    let [closed] = free_ports();
    let scene = Scene::new(|stage, clear| {
        stage.make("/upstreams", &json!({"name": "pair.test"}));
        for port in [closed, clear] {
            stage.make("/upstreams/pair.test/targets", &json!({"target": format!("127.0.0.1:{port}")}));
        }
        add(stage, "Pair", json!({"url": "grpc://pair.test:80"}), json!({}));
    })
    .await;
    let mut client = scene.client("probe.Pair");
    for _ in 0..4 {
        assert_eq!(client.unary("Echo", noted("ping")).await.unwrap().into_inner(), "ping");
        let (sender, messages) = mpsc::channel(1);
        let mut answers = client.talk(messages).await;
        sender.send("one".into()).await.unwrap();
        assert_eq!(answers.message().await.unwrap().unwrap(), "one");
    }
}

#[tokio::test]
async fn a_server_that_renews_its_connections_loses_no_call() {
    let server = Server::builder().max_connection_age(Duration::from_millis(20));
    let scene = Scene::with(server, |_, _| {}).await;
    let calls = (0..4).map(|_| {
        let mut client = scene.client("probe.Plain");
        async move {
            for _ in 0..200 {
                assert_eq!(client.ask("Echo", "ping").await.unwrap().into_inner(), "ping");
            }
        }
    });
    futures_util::future::join_all(calls).await;
}

#[tokio::test]
async fn streams_that_last_leave_room_for_other_calls() {
    let mut relay = None;
    let scene = Scene::with(Server::builder().max_concurrent_streams(2), |stage, clear| {
        let between = relay.insert(Relay::start(clear));
        add(stage, "Few", json!({"url": format!("grpc://127.0.0.1:{}", between.port)}), json!({}));
    })
    .await;
    let mut client = scene.client("probe.Few");
    let mut streams = Vec::new();
    for _ in 0..5 {
        streams.push(scene.watching(&mut client).await);
    }
    for _ in 0..10 {
        assert_eq!(client.ask("Echo", "ping").await.unwrap().into_inner(), "ping");
    }
    assert_eq!(relay.unwrap().connections(), 3, "no more than are needed");
}

#[tokio::test]
async fn a_call_without_a_key_is_unauthenticated() {
    let scene = Scene::new(|stage, _| {
        stage.make("/consumers", &json!({"username": "caller"}));
        stage.make("/consumers/caller/key-auth", &json!({"key": "right"}));
        for service in ["Plain", "Secure"] {
            stage.make(&format!("/services/{service}/plugins"), &json!({"name": "key-auth"}));
        }
    })
    .await;
    for mut client in scene.ways() {
        for (key, answer) in
            [(None, Err("No API key found in request")), (Some("wrong"), Err("Unauthorized")), (Some("right"), Ok(()))]
        {
            let mut request = noted("ping");
            if let Some(key) = key {
                request.metadata_mut().insert("apikey", key.parse().unwrap());
            }
            let seen = client.unary("Echo", request).await;
            let seen = seen.map(drop).map_err(|status| (status.code(), status.message().to_owned()));
            assert_eq!(seen, answer.map_err(|message| (Code::Unauthenticated, message.to_owned())), "{key:?}");
        }
    }
}

#[tokio::test]
async fn calls_that_come_all_at_once_are_answered_however_few_streams_the_server_allows() {
    let scene = Scene::with(Server::builder().max_concurrent_streams(2), |_, _| {}).await;
    let calls = (0..100).map(|_| {
        let mut client = scene.client("probe.Plain");
        async move { client.ask("Echo", "ping").await.map(tonic::Response::into_inner) }
    });
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(answer.unwrap(), "ping");
    }
}

//! TLS and HTTP/2 on both sides.

use crate::stage::{PATIENCE, Stage, Upstream, header, receive, to};
use bytes::Bytes;
use gwctl_certs::{Identity, Source};
use gwctl_proxy::{Listener, Proxy, ProxyOptions};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// A stage whose proxy also listens with TLS and HTTP/2; its address.
fn secure(config: Value) -> (Stage, Proxy, SocketAddr) {
    let stage = Stage::new(config);
    let listeners =
        vec![Listener { addr: "127.0.0.1:0".parse().unwrap(), ssl: true, http2: true, proxy_protocol: false }];
    let options = ProxyOptions { listeners, workers: 1, ..Default::default() };
    let proxy = Proxy::start(options, stage.handle.clone()).unwrap();
    let address = proxy.addresses()[0];
    (stage, proxy, address)
}

pub fn pair(name: &str) -> gwctl_certs::PemPair {
    gwctl_certs::self_signed(&[name.to_owned()], 1_700_000_000).unwrap()
}

pub fn identity(pair: &gwctl_certs::PemPair) -> Identity {
    let source = |pem| Source { setting: "cert", place: "test", pem };
    Identity::read(source(&pair.certificate), source(&pair.key)).unwrap()
}

#[tokio::test]
async fn a_tls_request_is_routed_and_forwarded_as_https() {
    let upstream = Upstream::echo().await;
    let (_stage, _proxy, address) = secure(to(upstream.address, json!({})));
    let mut stream = handshake(address, "a.test", &[b"http/1.1"]).await;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.unwrap();
    let reply = String::from_utf8(reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    assert!(reply.contains("X-Forwarded-Proto: https"));
    assert!(reply.contains(&format!("X-Forwarded-Port: {}", address.port())));
}

#[tokio::test]
async fn the_certificate_follows_the_name_asked_for() {
    let (named, wild) = (pair("one.test"), pair("wild.test"));
    let row = |id: &str, pair: &gwctl_certs::PemPair| json!({"id": id, "cert": pair.certificate, "key": pair.key});
    let config = json!({
        "certificates": [row("c1", &named), row("c2", &wild)],
        "snis": [
            {"id": "n1", "name": "one.test", "certificate": {"id": "c1"}},
            {"id": "n2", "name": "*.wild.test", "certificate": {"id": "c2"}},
        ],
    });
    let (stage, _proxy, address) = secure(config);
    let leaf = |pair: &gwctl_certs::PemPair| identity(pair).leaf().clone().into_owned();
    assert_eq!(presented(address, "one.test").await, leaf(&named));
    assert_eq!(presented(address, "x.wild.test").await, leaf(&wild));
    let own = presented(address, "other.test").await;
    assert!(own != leaf(&named) && own != leaf(&wild));
    // A new certificate serves the next handshake.
    let replaced = pair("one.test");
    stage.reconfigure(json!({
        "certificates": [row("c3", &replaced)],
        "snis": [{"id": "n1", "name": "one.test", "certificate": {"id": "c3"}}],
    }));
    assert_eq!(presented(address, "one.test").await, leaf(&replaced));
}

#[tokio::test]
async fn http2_requests_are_forwarded_over_http1() {
    let upstream = Upstream::echo().await;
    let (stage, _proxy, address) = secure(to(upstream.address, json!({})));
    let stream = handshake(address, "a.test", &[b"h2"]).await;
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::post("https://a.test:8443/x?y")
        .header("cookie", "a=1")
        .header("cookie", "b=2")
        .body(Full::<Bytes>::from("hello"))
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["via"], "1.1 kong/3.9.1");
    let seen = String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
    assert!(seen.starts_with("POST /x?y HTTP/1.1\r\n") && seen.ends_with("hello"), "{seen}");
    assert_eq!(header(&seen, "cookie").unwrap(), "a=1; b=2");
    assert_eq!(header(&seen, "x-forwarded-host").unwrap(), "a.test");
    assert_eq!(header(&seen, "via").unwrap(), "2 kong/3.9.1");
    drop(stage);
}

#[tokio::test]
async fn a_length_without_a_body_goes_to_clients_of_http2_only_where_it_is_that_of_another_answer() {
    for (head, method, told) in [
        ("204 No Content\r\nContent-Length: 5", "GET", None),
        ("204 No Content\r\nContent-Length: 0", "HEAD", None),
        ("304 Not Modified\r\nContent-Length: 5", "GET", Some("5")),
        ("200 OK\r\nContent-Length: 5", "HEAD", Some("5")),
    ] {
        let upstream = Upstream::new(move |mut stream, _| async move {
            while receive(&mut stream).await.is_some() {
                stream.write_all(format!("HTTP/1.1 {head}\r\n\r\n").as_bytes()).await.unwrap();
            }
        })
        .await;
        let (_stage, _proxy, address) = secure(to(upstream.address, json!({})));
        let stream = handshake(address, "a.test", &[b"h2"]).await;
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = http::Request::builder().method(method).uri("https://a.test/").body(Full::<Bytes>::default());
        let response = sender.send_request(request.unwrap()).await.unwrap();
        assert_eq!(response.headers().get("content-length").map(|length| length.to_str().unwrap()), told, "{head}");
        assert!(response.into_body().collect().await.unwrap().to_bytes().is_empty(), "{head}");
    }
}

#[tokio::test]
async fn an_https_upstream_is_asked_by_name() {
    let (address, names) = secure_upstream(pair("any.test")).await;
    let mut config = to(address, json!({"protocol": "https"}));
    config["routes"][0]["preserve_host"] = json!(true);
    let stage = Stage::new(config);
    let reply = stage.raw("GET / HTTP/1.1\r\nHost: sni.test\r\nConnection: close\r\n\r\n").await;
    assert_eq!(reply.status(), 200, "{}", reply.text());
    assert_eq!(names.lock().unwrap().as_slice(), [Some("sni.test".to_owned())]);
}

#[tokio::test]
async fn an_upstream_that_closes_tls_without_saying_so_has_ended_what_has_no_length() {
    for (head, is_whole) in [("", true), ("Content-Length: 9\r\n", false), ("Transfer-Encoding: chunked\r\n", false)] {
        let config: Arc<ServerConfig> = gwctl_certs::listener_config(&[identity(&pair("a.test"))], false).unwrap();
        let acceptor = TlsAcceptor::from(config);
        let upstream = Upstream::new(move |stream, _| {
            let acceptor = acceptor.clone();
            async move {
                let mut stream = acceptor.accept(stream).await.unwrap();
                let mut read = [0; 4096];
                let mut seen = 0;
                while !read[..seen].ends_with(b"\r\n\r\n") {
                    seen += stream.read(&mut read[seen..]).await.unwrap();
                }
                stream.write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n4\r\nbody").as_bytes()).await.unwrap();
                // Dropped, not shut down.
            }
        })
        .await;
        let stage = Stage::new(to(upstream.address, json!({"protocol": "https", "retries": 0})));
        let reply = stage.get("/").await;
        assert_eq!((reply.status(), reply.text().ends_with("0\r\n\r\n")), (200, is_whole), "{head}");
    }
}

#[tokio::test]
async fn an_upstream_that_must_be_verified_is_refused_unless_an_authority_stands_behind_it() {
    let (authority, root) = gwctl_certs::Authority::create("test ca", now(), 10).unwrap();
    let issued = authority.issue_control_plane(&["up.test".to_owned()], now(), 10).unwrap();
    let (address, _) = secure_upstream(issued).await;
    for (trusted, status) in [(root.certificate, 200), (pair("up.test").certificate, 502)] {
        let mut config =
            to(address, json!({"protocol": "https", "tls_verify": true, "ca_certificates": ["ca"], "retries": 0}));
        config["routes"][0]["preserve_host"] = json!(true);
        config["ca_certificates"] = json!([{"id": "ca", "cert": trusted}]);
        let stage = Stage::new(config);
        let reply = stage.raw("GET / HTTP/1.1\r\nHost: up.test\r\nConnection: close\r\n\r\n").await;
        assert_eq!(reply.status(), status, "{}", reply.text());
    }
}

#[tokio::test]
async fn a_route_for_https_only_sends_plain_requests_away() {
    let upstream = Upstream::echo().await;
    let mut config = to(upstream.address, json!({}));
    config["routes"][0]["protocols"] = json!(["https"]);
    let reply = Stage::new(config.clone()).get("/x?y=1").await;
    assert_eq!((reply.status(), reply.header("upgrade").unwrap().as_str()), (426, "TLS/1.2, HTTP/1.1"));
    assert!(reply.text().contains("Please use HTTPS protocol"));
    config["routes"][0]["https_redirect_status_code"] = json!(301);
    let reply = Stage::new(config).get("/x?y=1").await;
    assert_eq!((reply.status(), reply.header("location").unwrap().as_str()), (301, "https://a.test/x?y=1"));
}

pub fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

pub type Names = Arc<std::sync::Mutex<Vec<Option<String>>>>;

/// An echo upstream with TLS; notes the names it is asked by.
pub async fn secure_upstream(pair: gwctl_certs::PemPair) -> (SocketAddr, Names) {
    let config: Arc<ServerConfig> = gwctl_certs::listener_config(&[identity(&pair)], false).unwrap();
    let acceptor = TlsAcceptor::from(config);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let names = Names::default();
    let seen = names.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, seen) = (acceptor.clone(), seen.clone());
            // A client that leaves half way, as a probe of a proxy that ends does, is nobody else's matter.
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                seen.lock().unwrap().push(stream.get_ref().1.server_name().map(str::to_owned));
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { return };
                    head.push(byte);
                }
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
            });
        }
    });
    (address, names)
}

pub async fn handshake(address: SocketAddr, name: &str, protocols: &[&[u8]]) -> TlsStream<TcpStream> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

async fn presented(address: SocketAddr, name: &str) -> CertificateDer<'static> {
    let stream = handshake(address, name, &[]).await;
    stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
}

/// Takes any certificate; the tests look at it themselves.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        aws_lc_rs::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

#[tokio::test]
async fn a_client_that_waits_for_100_over_tls_is_told_at_once() {
    let upstream = Upstream::echo().await;
    for buffered in [true, false] {
        let mut config = to(upstream.address, json!({}));
        config["routes"][0]["request_buffering"] = json!(buffered);
        let (_stage, _proxy, address) = secure(config);
        let mut stream = handshake(address, "a.test", &[b"http/1.1"]).await;
        let head =
            "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut interim = [0; 25];
        tokio::time::timeout(PATIENCE, stream.read_exact(&mut interim)).await.unwrap().unwrap();
        assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(b"hello").await.unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).await.unwrap();
        let reply = String::from_utf8(reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 200") && reply.ends_with("hello"), "{reply}");
    }
}

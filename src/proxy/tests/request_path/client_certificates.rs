//! Certificates presented to upstreams.

use crate::secure::{identity, now};
use crate::stage::{Stage, to};
use gwctl_certs::{Authority, PemPair};
use gwctl_proxy::UpstreamTls;
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Whom each request came from, by certificate.
pub type Seen = Arc<Mutex<Vec<Option<CertificateDer<'static>>>>>;

/// An upstream that asks for certificates of an authority and answers all requests of a connection; `demands` them.
pub async fn asking(authority: &Authority, root: &PemPair, demands: bool) -> (SocketAddr, Seen) {
    let mut roots = RootCertStore::empty();
    roots.add(identity(root).leaf().clone()).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let verifier = if demands { verifier } else { verifier.allow_unauthenticated() }.build().unwrap();
    let own = identity(&authority.issue_control_plane(&["up.test".to_owned()], now(), 10).unwrap()).certified_key();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(own)));
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Seen::default();
    let notes = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, notes) = (acceptor.clone(), notes.clone());
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let presented = stream.get_ref().1.peer_certificates().map(|chain| chain[0].clone().into_owned());
                let mut head = Vec::new();
                while let Ok(byte) = stream.read_u8().await {
                    head.push(byte);
                    if head.ends_with(b"\r\n\r\n") {
                        head.clear();
                        notes.lock().unwrap().push(presented.clone());
                        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
                    }
                }
            });
        }
    });
    (address, seen)
}

pub fn row(id: &str, pair: &PemPair) -> Value {
    json!({"id": id, "cert": pair.certificate, "key": pair.key})
}

pub fn leaf(pair: &PemPair) -> Option<CertificateDer<'static>> {
    Some(identity(pair).leaf().clone())
}

/// A service over TLS whose host is an upstream with one target; fields of both added.
fn behind(address: SocketAddr, service: Value, upstream: Value, certificates: &[Value]) -> Value {
    let mut config = to(address, json!({"protocol": "https", "host": "u.test", "retries": 0}));
    config["services"][0].as_object_mut().unwrap().extend(service.as_object().cloned().unwrap());
    let mut row = json!({"id": "u", "name": "u.test"});
    row.as_object_mut().unwrap().extend(upstream.as_object().cloned().unwrap());
    config["upstreams"] = json!([row]);
    config["targets"] = json!([{"id": "t", "target": address.to_string(), "weight": 1, "upstream": {"id": "u"}}]);
    config["certificates"] = json!(certificates);
    config
}

#[tokio::test]
async fn the_certificate_of_the_service_comes_before_that_of_its_upstream_and_that_before_the_one_of_the_node() {
    let (authority, root) = Authority::create("clients", now(), 10).unwrap();
    let issue = |name: &str| authority.issue_data_plane(name, now(), 10).unwrap();
    let (service, upstream, node, renewed) = (issue("service"), issue("upstream"), issue("node"), issue("renewed"));
    let (address, seen) = asking(&authority, &root, true).await;
    let rows = [row("s", &service), row("p", &upstream)];
    let by_service = json!({"client_certificate": {"id": "s"}});
    let by_upstream = json!({"client_certificate": {"id": "p"}});
    let own = UpstreamTls { client: Some(identity(&node)), ..Default::default() };
    let stage = Stage::towards(behind(address, by_service.clone(), by_upstream.clone(), &rows), own);
    let last = || seen.lock().unwrap().last().cloned().unwrap();

    assert_eq!(stage.get("/").await.status(), 200);
    assert_eq!(last(), leaf(&service));
    stage.reconfigure(behind(address, json!({}), by_upstream.clone(), &rows));
    assert_eq!(stage.get("/").await.status(), 200);
    assert_eq!(last(), leaf(&upstream), "the connection of before presented another certificate");
    // The row stays the same but for its content.
    stage.reconfigure(behind(address, json!({}), by_upstream, &[row("s", &service), row("p", &renewed)]));
    assert_eq!(stage.get("/").await.status(), 200);
    assert_eq!(last(), leaf(&renewed));
    stage.reconfigure(behind(address, json!({}), json!({}), &rows));
    assert_eq!(stage.get("/").await.status(), 200);
    assert_eq!(last(), leaf(&node));
    stage.reconfigure(behind(address, json!({}), json!({"client_certificate": {"id": "p"}}), &rows));
    assert_eq!(stage.get("/").await.status(), 200);
    assert_eq!(last(), leaf(&upstream), "an upstream that changes alone reaches its services");
}

#[tokio::test]
async fn without_any_certificate_none_is_presented_and_an_upstream_that_demands_one_is_a_502() {
    let (authority, root) = Authority::create("clients", now(), 10).unwrap();
    let (address, seen) = asking(&authority, &root, false).await;
    let stage = Stage::new(behind(address, json!({}), json!({}), &[]));
    assert_eq!(stage.get("/").await.status(), 200);
    assert_eq!(*seen.lock().unwrap(), [None]);
    let (address, _) = asking(&authority, &root, true).await;
    let stage = Stage::new(behind(address, json!({}), json!({}), &[]));
    assert_eq!(stage.get("/").await.status(), 502);
}

#[tokio::test]
async fn a_service_that_names_no_authority_is_verified_by_those_of_the_node() {
    let (authority, root) = Authority::create("node", now(), 10).unwrap();
    let (address, _) = asking(&authority, &root, false).await;
    for (trusted, status) in [(vec![("file".to_owned(), root.certificate)], 200), (Vec::new(), 502)] {
        let mut config = to(address, json!({"protocol": "https", "tls_verify": true, "retries": 0}));
        config["routes"][0]["preserve_host"] = json!(true);
        let stage = Stage::towards(config, UpstreamTls { trusted, trust_system: false, client: None });
        let reply = stage.raw("GET / HTTP/1.1\r\nHost: up.test\r\nConnection: close\r\n\r\n").await;
        assert_eq!(reply.status(), status, "{}", reply.text());
    }
}

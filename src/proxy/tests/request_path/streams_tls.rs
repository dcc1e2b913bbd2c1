//! TLS connections that are passed on as bytes: ended here, passed through, begun here.

use crate::secure::{handshake, identity, pair, secure_upstream};
use crate::streams::{read_rest, read_text, stream_to, streaming, talker};
use gwctl_entities::Value;
use gwctl_proxy::ProxyOptions;
use serde_json::json;
use std::net::SocketAddr;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

fn presented(stream: &TlsStream<TcpStream>) -> Vec<u8> {
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

fn leaf(pair: &gwctl_certs::PemPair) -> Vec<u8> {
    identity(pair).leaf().to_vec()
}

/// Ends TLS for `end.test` with a certificate of that name, passes `through.test` on.
fn both(plain: SocketAddr, secure: SocketAddr, certificate: &gwctl_certs::PemPair) -> Value {
    let mut config = stream_to(plain, json!({"protocols": ["tls"], "sources": [], "snis": ["end.test"]}), json!({}));
    let other = stream_to(secure, json!({}), json!({}));
    let (mut route, mut service) = (other["routes"][0].clone(), other["services"][0].clone());
    let id = |digit: char| format!("00000000-0000-4000-8000-00000000001{digit}");
    service["id"] = json!(id('1'));
    route["id"] = json!(id('2'));
    route["service"] = json!({"id": id('1')});
    route["protocols"] = json!(["tls_passthrough"]);
    route["sources"] = json!([]);
    route["snis"] = json!(["*.through.test"]);
    config["services"].as_array_mut().unwrap().push(service);
    config["routes"].as_array_mut().unwrap().push(route);
    config["certificates"] = json!([{"id": "c", "cert": certificate.certificate, "key": certificate.key}]);
    config["snis"] = json!([{"id": "n", "name": "end.test", "certificate": {"id": "c"}}]);
    config
}

#[tokio::test]
async fn one_listener_ends_tls_or_passes_it_through_by_the_name_asked_for() {
    let (ours, theirs) = (pair("end.test"), pair("a.through.test"));
    let plain = talker("hello").await;
    let (secure, names) = secure_upstream(theirs.clone()).await;
    let (_stage, address) = streaming(both(plain.address, secure, &ours), true, ProxyOptions::default());

    let mut ended = handshake(address, "END.test", &[b"mqtt"]).await;
    assert!(presented(&ended) == leaf(&ours), "the certificate of the name");
    assert_eq!(read_text(&mut ended, 5).await, "hello");
    ended.write_all(b"ping").await.unwrap();
    assert_eq!(read_text(&mut ended, 4).await, "ping");
    ended.shutdown().await.unwrap();
    assert_eq!(read_rest(&mut ended).await, "end of 4");

    let mut through = handshake(address, "a.through.test", &[]).await;
    assert!(presented(&through) == leaf(&theirs), "the certificate of the upstream");
    through.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(read_text(&mut through, 15).await.starts_with("HTTP/1.1 200 OK"));
    assert_eq!(*names.lock().unwrap(), [Some("a.through.test".to_owned())]);
}

#[tokio::test]
async fn names_without_a_route_and_bytes_that_are_no_tls_reach_nobody() {
    let upstream = talker("hello").await;
    let config = both(upstream.address, upstream.address, &pair("end.test"));
    let (_stage, address) = streaming(config, true, ProxyOptions::default());
    for name in ["other.test", "through.test"] {
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(&hello(name)).await.unwrap();
        assert_eq!(read_rest(&mut client).await, "", "{name}");
    }
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: end.test\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut client, &mut answer).await;
    assert!(answer.is_empty() || answer[0] == 21, "nothing or an alert: {answer:?}");
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn a_hello_in_pieces_is_understood_and_passed_on_untouched() {
    let upstream = crate::stage::Upstream::new(|mut stream, _| async move {
        let mut sent = [0; 4096];
        let mut total = Vec::new();
        while !total.ends_with(b"after") {
            let read = tokio::io::AsyncReadExt::read(&mut stream, &mut sent).await.unwrap();
            total.extend_from_slice(&sent[..read]);
        }
        stream
            .write_all(format!("{} {}", total.len(), total.iter().map(|b| u64::from(*b)).sum::<u64>()).as_bytes())
            .await
            .unwrap();
    })
    .await;
    let config = both(upstream.address, upstream.address, &pair("end.test"));
    let (_stage, address) = streaming(config, true, ProxyOptions::default());
    let bytes = [hello("a.through.test").as_slice(), b"after"].concat();
    let mut client = TcpStream::connect(address).await.unwrap();
    client.set_nodelay(true).unwrap();
    for part in bytes.chunks(50) {
        client.write_all(part).await.unwrap();
        tokio::task::yield_now().await;
    }
    let expected = format!("{} {}", bytes.len(), bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>());
    assert_eq!(read_rest(&mut client).await, expected);
}

/// The first bytes of a client that asks for a name.
fn hello(name: &str) -> Vec<u8> {
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let name = rustls::pki_types::ServerName::try_from(name.to_owned()).unwrap();
    let mut session = rustls::ClientConnection::new(std::sync::Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    session.write_tls(&mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn a_service_of_tls_is_spoken_to_over_tls() {
    let (address, names) = secure_upstream(pair("up.test")).await;
    let service = json!({"protocol": "tls", "host": "u.test", "retries": 0});
    let mut config = stream_to(address, json!({}), service);
    config["upstreams"] = json!([{"id": "u", "name": "u.test", "host_header": "up.test"}]);
    config["targets"] = json!([{"id": "t", "target": address.to_string(), "weight": 1, "upstream": {"id": "u"}}]);
    let (stage, listener) = streaming(config.clone(), false, ProxyOptions::default());
    let mut client = TcpStream::connect(listener).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(read_text(&mut client, 15).await.starts_with("HTTP/1.1 200 OK"));
    assert_eq!(*names.lock().unwrap(), [Some("up.test".to_owned())]);
    // Its certificate stands behind itself, not behind the other one.
    config["services"][0]["tls_verify"] = json!(true);
    config["services"][0]["ca_certificates"] = json!(["ca"]);
    config["ca_certificates"] = json!([{"id": "ca", "cert": pair("up.test").certificate}]);
    stage.reconfigure(config);
    assert_eq!(read_rest(&mut TcpStream::connect(listener).await.unwrap()).await, "");
}

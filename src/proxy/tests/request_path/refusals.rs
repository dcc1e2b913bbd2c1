//! What is refused before it is a request is in the access log and in the figures.

use crate::stage::{PATIENCE, Reply, Stage};
use gwctl_proxy::{AccessFormat, AccessLogOptions, AccessTarget, Listener, ProxyOptions};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// A proxy that refuses one thing: what it answered, and what it told of it.
struct Told {
    reply: Reply,
    lines: String,
    figures: String,
}

/// Sends bytes to a fresh proxy and closes the sending side when it is told to.
async fn refused(options: ProxyOptions, format: AccessFormat, bytes: &[u8], closes: bool) -> Told {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let target = AccessTarget::File(path.clone());
    let options = ProxyOptions { access_log: Some(AccessLogOptions { target, format, sample: 1.0 }), ..options };
    let mut stage = Stage::with(json!({}), options, Vec::new());
    let mut stream = TcpStream::connect(stage.address).await.unwrap();
    // The proxy may close before all of it is sent.
    let _ = stream.write_all(bytes).await;
    if closes {
        stream.shutdown().await.unwrap();
    }
    let reply = Reply::read(&mut stream).await;
    drop(stream);
    let proxy = stage.proxy.take().unwrap();
    let stats = proxy.stats().clone();
    tokio::time::timeout(PATIENCE, proxy.stop()).await.expect("the proxy stops");
    let mut figures = String::new();
    stats.metrics().write(&mut figures);
    Told { reply, lines: std::fs::read_to_string(&path).unwrap(), figures }
}

#[tokio::test]
async fn each_kind_is_logged_and_counted_with_what_was_wrong() {
    let long = |size: usize| "x".repeat(size);
    let (long_target, long_head) = (
        format!("GET /{} HTTP/1.1\r\n", long(50_000)),
        format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", long(50_000)),
    );
    let cases: [(&str, u16, &str); 12] = [
        ("nonsense\r\n\r\n", 400, "malformed first line"),
        ("GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505, "unknown protocol version"),
        ("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed first line"),
        ("GET / HTTPS/1.1\r\nHost: a\r\n\r\n", 400, "malformed first line"),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            400,
            "malformed or repeated content-length",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
            "both content-length and transfer-encoding",
        ),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501, "unknown transfer coding"),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400, "malformed header name"),
        (&long_target, 414, "first line too long"),
        (&long_head, 400, "head too long"),
        ("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 405, "connect is not served"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "unknown protocol version"),
    ];
    for (bytes, status, reason) in cases {
        let told = refused(ProxyOptions::default(), AccessFormat::Combined, bytes.as_bytes(), false).await;
        let (sent, lines) = (told.reply.body.len(), &told.lines);
        assert_eq!(told.reply.status(), status, "{reason}: {}", told.reply.head);
        assert_eq!(lines.lines().count(), 1, "{reason}: {lines}");
        assert!(lines.starts_with("127.0.0.1 - - ["), "{lines}");
        let id = told.reply.header("x-kong-request-id").unwrap();
        let end = format!("] \"-\" {status} {sent} \"-\" \"-\" kong_request_id: \"{id}\" refused: \"{reason}\"\n");
        assert!(lines.ends_with(&end), "{lines}\nends with\n{end}");
        let count = format!(
            "kong_http_requests_total{{service=\"\",route=\"\",code=\"{status}\",source=\"error\",workspace=\"default\",consumer=\"\"}} 1\n"
        );
        assert!(told.figures.contains(&count), "{reason}: {}", told.figures);
    }
}

#[tokio::test]
async fn heads_that_never_end_are_told_of_though_not_answered() {
    let half = b"GET / HTTP/1.1\r\nHost: a\r\n";
    let options = || ProxyOptions { header_timeout: Duration::from_millis(100), ..Default::default() };
    for (closes, status, reason) in
        [(true, 400, "closed within the head"), (false, 408, "the head did not come in time")]
    {
        // A proxy that is impatient could be before the client that closes.
        let options = if closes { ProxyOptions::default() } else { options() };
        let told = refused(options, AccessFormat::Json, half, closes).await;
        let line: Value = serde_json::from_str(&told.lines).unwrap();
        assert_eq!(line["status"], status, "{line}");
        assert_eq!(
            (&line["refused"], &line["client_ip"], &line["source"]),
            (&json!(reason), &json!("127.0.0.1"), &json!("error"))
        );
        assert!(told.figures.contains(&format!("code=\"{status}\"")), "{}", told.figures);
        assert!(told.reply.head.is_empty(), "{}", told.reply.head);
    }
    for closes in [true, false] {
        let told = refused(options(), AccessFormat::Json, b"", closes).await;
        assert_eq!(told.lines, "", "a connection on which nothing came");
        assert!(!told.figures.contains("code="), "{}", told.figures);
    }
}

#[tokio::test]
async fn plain_http_at_a_listener_with_tls_hears_so() {
    let listener = Listener { addr: "127.0.0.1:0".parse().unwrap(), ssl: true, http2: true, proxy_protocol: false };
    let options = ProxyOptions { listeners: vec![listener], ..Default::default() };
    let told = refused(options, AccessFormat::Combined, b"GET /?key=secret HTTP/1.1\r\nHost: a\r\n\r\n", false).await;
    assert_eq!(told.reply.status(), 400);
    assert!(told.reply.text().contains("The plain HTTP request was sent to HTTPS port"), "{}", told.reply.text());
    assert!(told.lines.ends_with("refused: \"plain http at a listener with tls\"\n"), "{}", told.lines);
    assert!(!told.lines.contains("secret"), "{}", told.lines);
    assert!(told.figures.contains("code=\"400\",source=\"error\""), "{}", told.figures);
}

#[tokio::test]
async fn the_client_is_the_one_that_a_trusted_balancer_names() {
    let listener = Listener { addr: "127.0.0.1:0".parse().unwrap(), ssl: false, http2: false, proxy_protocol: true };
    let options = ProxyOptions {
        listeners: vec![listener],
        trusted_ips: vec![gwctl_proxy::Network::parse("127.0.0.1").unwrap()],
        real_ip_header: "proxy_protocol".to_owned(),
        ..Default::default()
    };
    let bytes = b"PROXY TCP4 203.0.113.7 127.0.0.1 5000 8000\r\nnonsense\r\n\r\n";
    let told = refused(options, AccessFormat::Combined, bytes, false).await;
    assert!(told.lines.starts_with("203.0.113.7 - - ["), "{}", told.lines);
}

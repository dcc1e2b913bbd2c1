//! The access log of streams.

use crate::balancing::nobody;
use crate::secure::{handshake, pair};
use crate::stage::Stage;
use crate::streams::{read_rest, read_text, stream_to, streaming, talker};
use gwctl_entities::Value;
use gwctl_proxy::{AccessFormat, AccessLogOptions, AccessTarget, ProxyOptions};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

fn logging(path: &Path, format: AccessFormat) -> ProxyOptions {
    let log = AccessLogOptions { target: AccessTarget::File(path.to_owned()), format, sample: 1.0 };
    let shutdown_timeout = Duration::from_millis(50);
    ProxyOptions { stream_access_log: Some(log), shutdown_timeout, ..ProxyOptions::default() }
}

/// Stops the proxy, which writes all lines.
async fn lines(mut stage: Stage, path: &Path) -> Vec<String> {
    stage.proxy.take().unwrap().stop().await;
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

async fn json_lines(stage: Stage, path: &Path) -> Vec<Value> {
    lines(stage, path).await.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn each_stream_that_ends_is_one_line_with_bytes_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("streams.log");
    let upstream = talker("hello ").await;
    let config = stream_to(upstream.address, json!({"name": "door"}), json!({}));
    let (stage, address) = streaming(config, false, logging(&path, AccessFormat::Combined));
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"ping").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read_rest(&mut client).await, "hello pingend of 4");
    let lines = lines(stage, &path).await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("127.0.0.1 [") && lines[0].contains("] TCP 200 18 4 "), "{}", lines[0]);
    let seconds = lines[0].split("] TCP 200 18 4 ").nth(1).and_then(|rest| rest.split(' ').next());
    assert!(seconds.is_some_and(|time| time.parse::<f64>().is_ok()), "{}", lines[0]);
    assert!(lines[0].ends_with(&format!(" \"{}\" \"-\" \"door\"", upstream.address)), "{}", lines[0]);
}

#[tokio::test]
async fn the_log_tells_how_a_stream_ended_and_what_was_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("streams.log");
    let upstream = talker("hello").await;
    let elsewhere = stream_to(upstream.address, json!({"sources": [{"ip": "10.0.0.0/8"}]}), json!({}));
    let (stage, address) = streaming(elsewhere, false, logging(&path, AccessFormat::Json));
    let visit = async || read_rest(&mut TcpStream::connect(address).await.unwrap()).await;
    assert_eq!(visit().await, "");
    stage.reconfigure(stream_to(upstream.address, json!({"service": null}), json!({})));
    assert_eq!(visit().await, "");
    let deaf = nobody();
    stage.reconfigure(stream_to(deaf, json!({}), json!({"retries": 0})));
    assert_eq!(visit().await, "");
    stage.reconfigure(stream_to(upstream.address, json!({}), json!({"read_timeout": 3000})));
    assert_eq!(visit().await, "hello");
    stage.reconfigure(stream_to(upstream.address, json!({}), json!({})));
    let mut stays = TcpStream::connect(address).await.unwrap();
    assert_eq!(read_text(&mut stays, 5).await, "hello");
    let lines = json_lines(stage, &path).await;
    let told = |line: &Value| (line["status"].as_u64().unwrap(), line["end"].as_str().unwrap().to_owned());
    let told: Vec<_> = lines.iter().map(told).collect();
    let expected = [(500, "refused"), (503, "refused"), (502, "unreached"), (200, "silent"), (200, "cut")];
    assert_eq!(told, expected.map(|(status, end)| (status, end.to_owned())));
    assert_eq!((lines[2]["upstream"].clone(), lines[2]["bytes_sent"].as_u64()), (json!(deaf.to_string()), Some(0)));
    assert_eq!((lines[4]["bytes_sent"].as_u64(), lines[4]["listener"].clone()), (Some(5), json!(address.to_string())));
    assert!(lines[4]["upstream_connect_ms"].as_f64().is_some_and(|time| time > 0.0), "{}", lines[4]);
}

#[tokio::test]
async fn the_server_name_of_a_tls_stream_is_told_also_where_nobody_serves_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("streams.log");
    let upstream = talker("hello").await;
    let tls = json!({"protocols": ["tls"], "sources": [], "snis": ["end.test"]});
    let mut config = stream_to(upstream.address, tls, json!({}));
    let certificate = pair("end.test");
    config["certificates"] = json!([{"id": "c", "cert": certificate.certificate, "key": certificate.key}]);
    config["snis"] = json!([{"id": "n", "name": "end.test", "certificate": {"id": "c"}}]);
    let (stage, address) = streaming(config, true, logging(&path, AccessFormat::Json));
    let mut ended = handshake(address, "end.test", &[]).await;
    assert_eq!(read_text(&mut ended, 5).await, "hello");
    ended.shutdown().await.unwrap();
    assert_eq!(read_rest(&mut ended).await, "end of 0");
    let mut nonsense = TcpStream::connect(address).await.unwrap();
    nonsense.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut nonsense, &mut answer).await;
    let lines = json_lines(stage, &path).await;
    let told = |line: &Value| [&line["protocol"], &line["sni"], &line["status"], &line["bytes_sent"]].map(Value::clone);
    assert_eq!(told(&lines[0]), [json!("tls"), json!("end.test"), json!(200), json!(13)]);
    assert_eq!(told(&lines[1]), [json!("tls"), json!(null), json!(400), json!(0)]);
}

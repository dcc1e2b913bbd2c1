//! Where one message ends and the next begins: limits, bodies, attempts to smuggle.

use crate::stage::{PATIENCE, Reply, Stage, Upstream, header, receive, to, unbuffered};
use gwctl_proxy::ProxyOptions;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn echo_stage(options: ProxyOptions) -> (Upstream, Stage) {
    let upstream = Upstream::echo().await;
    let stage = Stage::with(to(upstream.address, json!({})), options, Vec::new());
    (upstream, stage)
}

#[tokio::test]
async fn requests_with_two_ways_to_read_them_are_refused() {
    let (upstream, stage) = echo_stage(ProxyOptions::default()).await;
    for framing in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "X: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        "Content-Length: 5, 6\r\n\r\nhello!",
        "Content-Length: +5\r\n\r\nhello",
        "Content-Length: -1\r\n\r\n",
        "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
        "X: a\r\n b\r\n\r\n",
        "Host: b.test\r\n\r\n",
        "X-A: a\0b\r\n\r\n",
    ] {
        let reply = stage
            .raw(format!("POST / HTTP/1.1\r\nHost: a.test\r\n{framing}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"))
            .await;
        assert_eq!(reply.status(), 400, "{framing:?}: {}", reply.head);
        assert!(!reply.text().contains("smuggled"), "{framing:?}");
    }
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn a_broken_chunk_ends_the_request_and_the_connection() {
    let (_upstream, stage) = echo_stage(ProxyOptions::default()).await;
    for chunks in ["zz\r\nhello\r\n0\r\n\r\n", "5\r\nhelloXX0\r\n\r\n", "fffffffffffffffff\r\n"] {
        let reply = stage
            .raw(format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"))
            .await;
        assert!(matches!(reply.status(), 400 | 0), "{chunks:?}: {}", reply.head);
        assert!(!reply.text().contains("smuggled"), "{chunks:?}");
    }
}

#[tokio::test]
async fn a_missing_host_and_an_odd_method_are_refused() {
    let (_upstream, stage) = echo_stage(ProxyOptions::default()).await;
    let reply = stage.raw("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    assert_eq!(reply.status(), 400);
    assert_eq!(reply.header("content-type").unwrap(), "text/plain; charset=utf-8");
    assert!(reply.text().starts_with("Bad request\nrequest_id: "), "{}", reply.text());
    assert_eq!(stage.raw("get / HTTP/1.1\r\nHost: a\r\n\r\n").await.status(), 400);
    assert_eq!(stage.raw("GET / HTTP/1.0\r\n\r\n").await.status(), 200);
}

#[tokio::test]
async fn hostile_targets_are_refused() {
    let (_upstream, stage) = echo_stage(ProxyOptions::default()).await;
    for target in ["/%zz", "/a%00b", "/../x"] {
        assert_eq!(stage.get(target).await.status(), 400, "{target}");
    }
}

#[tokio::test]
async fn heads_over_the_limit_are_refused() {
    let (_upstream, stage) = echo_stage(ProxyOptions::default()).await;
    assert_eq!(stage.get(&format!("/{}", "a".repeat(9000))).await.status(), 414);
    let large = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\nConnection: close\r\n\r\n", "a".repeat(40_000));
    let reply = stage.raw(large).await;
    assert_eq!(reply.status(), 400);
    assert!(reply.text().contains("Request header or cookie too large"));
    let endless = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "a".repeat(2_000_000));
    let mut stream = TcpStream::connect(stage.address).await.unwrap();
    // The proxy stops reading long before the end.
    let _ = stream.write_all(endless.as_bytes()).await;
    assert!(matches!(Reply::read(&mut stream).await.status(), 400 | 0));
}

#[tokio::test]
async fn bodies_over_the_limit_are_refused() {
    let (_upstream, stage) = echo_stage(ProxyOptions { client_max_body_size: 4, ..Default::default() }).await;
    let declared = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
    let chunked =
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    for request in [declared, chunked] {
        assert_eq!(stage.raw(request).await.status(), 413);
    }
    assert_eq!(stage.raw(declared.replace('5', "4")).await.status(), 200);
}

#[tokio::test]
async fn chunks_pass_in_both_directions() {
    let upstream = Upstream::new(|mut stream, _| async move {
        let (head, body) = receive(&mut stream).await.unwrap();
        assert_eq!(header(&head, "transfer-encoding").unwrap(), "chunked");
        let answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n", body.len());
        stream.write_all(&[answer.as_bytes(), &body, b"\r\n0\r\n\r\n"].concat()).await.unwrap();
    })
    .await;
    let stage = Stage::new(unbuffered(to(upstream.address, json!({}))));
    let reply = stage
        .raw("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        .await;
    assert_eq!(reply.header("transfer-encoding").unwrap(), "chunked");
    assert_eq!(reply.text(), "5\r\nabcde\r\n0\r\n\r\n");
}

#[tokio::test]
async fn a_client_that_waits_for_100_is_told_to_go_on() {
    let (_upstream, stage) = echo_stage(ProxyOptions::default()).await;
    let mut stream = TcpStream::connect(stage.address).await.unwrap();
    stream
        .write_all(
            b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n",
        )
        .await
        .unwrap();
    let mut interim = [0; 25];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut interim)).await.unwrap().unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"ok").await.unwrap();
    let reply = Reply::read(&mut stream).await;
    assert!(reply.text().ends_with("ok"));
    assert_eq!(header(&reply.text(), "expect"), None);
}

#[tokio::test]
async fn head_and_bodiless_statuses_keep_the_connection_in_step() {
    let head = Upstream::fixed(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n").await;
    let empty = Upstream::fixed(b"HTTP/1.1 204 No Content\r\n\r\n").await;
    let fresh = Upstream::fixed(b"HTTP/1.1 304 Not Modified\r\nETag: x\r\nContent-Length: 7\r\n\r\n").await;
    for (upstream, method, status) in [(head, "HEAD", 200), (empty, "GET", 204), (fresh, "GET", 304)] {
        let stage = Stage::new(to(upstream.address, json!({})));
        let one = format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n");
        let last = format!("{method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let reply = stage.raw(format!("{one}{last}")).await;
        assert_eq!(reply.status(), status);
        assert!(reply.text().starts_with(&format!("HTTP/1.1 {status}")), "{}", reply.text());
        assert_eq!(upstream.connections(), 1);
    }
}

#[tokio::test]
async fn a_body_larger_than_any_buffer_streams() {
    const LENGTH: usize = 256 << 20;
    const ALONE: &str = "GWCTL_ALONE";
    // In a process of its own, whose memory no other test takes.
    if std::env::var_os(ALONE).is_none() {
        let own = std::env::current_exe().unwrap();
        let name = "framing::a_body_larger_than_any_buffer_streams";
        let output = std::process::Command::new(own).args([name, "--exact"]).env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let upstream = Upstream::new(|mut stream, _| async move {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n").as_bytes()).await.unwrap();
        // What comes in goes out again, so nothing moves unless the proxy streams both ways at once.
        let (mut reading, mut writing) = stream.split();
        let _ = tokio::io::copy(&mut reading, &mut writing).await;
    })
    .await;
    let stage = Stage::new(unbuffered(to(upstream.address, json!({}))));
    let stream = TcpStream::connect(stage.address).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    let before = resident();
    let sending = tokio::spawn(async move {
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {LENGTH}\r\nConnection: close\r\n\r\n");
        writing.write_all(head.as_bytes()).await.unwrap();
        let block = vec![7; 1 << 20];
        for _ in 0..LENGTH >> 20 {
            writing.write_all(&block).await.unwrap();
        }
        // Dropped here it would tell the proxy that the client has gone.
        writing
    });
    let mut buffer = vec![0; 1 << 20];
    let (mut total, mut most) = (0, 0);
    loop {
        let read = tokio::time::timeout(PATIENCE, reading.read(&mut buffer)).await.unwrap().unwrap();
        if read == 0 {
            break;
        }
        total += read;
        most = most.max(resident().saturating_sub(before));
    }
    drop(sending.await.unwrap());
    assert!(total > LENGTH, "{total} bytes came back");
    assert!(most < 64 << 20, "memory grew by {most} bytes");
}

/// Resident memory of this process in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

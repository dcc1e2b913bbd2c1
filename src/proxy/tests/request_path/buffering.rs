//! Bodies that are read whole before they are sent on, and bodies that are not.

use crate::stage::{PATIENCE, Reply, Stage, Upstream, header, receive, to, unbuffered};
use gwctl_proxy::ProxyOptions;
use serde_json::json;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

/// Sizes below and above what is kept in memory.
const SIZES: [usize; 4] = [0, 10, 60_000, 300_000];

fn post(length: usize) -> Vec<u8> {
    let head = format!("PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    [head.into_bytes(), body(length)].concat()
}

fn body(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

/// A stage with a folder for files of its own.
fn spooling(config: serde_json::Value) -> (Stage, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let options = ProxyOptions { spool_folder: folder.path().to_owned(), ..Default::default() };
    (Stage::with(config, options, Vec::new()), folder)
}

#[tokio::test]
async fn a_buffered_body_of_any_size_arrives_whole_and_leaves_no_file() {
    let upstream = Upstream::echo().await;
    let (stage, folder) = spooling(to(upstream.address, json!({})));
    for length in SIZES {
        let reply = stage.raw(post(length)).await;
        assert_eq!(reply.status(), 200, "{length}");
        assert!(reply.body.ends_with(&body(length)), "{length} bytes were changed");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn chunks_that_are_buffered_go_on_with_their_length() {
    let upstream = Upstream::echo().await;
    let stage = Stage::new(to(upstream.address, json!({})));
    let request = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let reply = stage.raw(request).await;
    assert_eq!(header(&reply.text(), "content-length").as_deref(), Some("5"), "{}", reply.text());
    assert_eq!(header(&reply.text(), "transfer-encoding"), None);
    assert!(reply.text().ends_with("abcde"));
}

#[tokio::test]
async fn an_upstream_hears_of_a_request_only_when_its_body_has_come_unless_it_streams() {
    for buffered in [true, false] {
        let (heard, mut hears) = mpsc::unbounded_channel();
        let upstream = Upstream::new(move |mut stream, _| {
            let heard = heard.clone();
            async move {
                let first = stream.read_u8().await.unwrap();
                heard.send(first).unwrap();
                receive(&mut stream).await;
                // The client may be gone by then.
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
            }
        })
        .await;
        let config = to(upstream.address, json!({}));
        let stage = Stage::new(if buffered { config } else { unbuffered(config) });
        let mut client = TcpStream::connect(stage.address).await.unwrap();
        client
            .write_all(
                b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: 4\r\n\r\n",
            )
            .await
            .unwrap();
        let mut interim = [0; 25];
        tokio::time::timeout(PATIENCE, client.read_exact(&mut interim)).await.unwrap().unwrap();
        client.write_all(b"ha").await.unwrap();
        if buffered {
            // Another request is answered meanwhile, so the first one had its time.
            assert_eq!(stage.get("/").await.status(), 200);
            assert_eq!(hears.recv().await, Some(b'G'));
            assert_eq!(hears.try_recv().ok(), None);
        } else {
            let first = tokio::time::timeout(PATIENCE, hears.recv()).await.unwrap();
            assert_eq!(first, Some(b'P'));
        }
        client.write_all(b"lf").await.unwrap();
        assert_eq!(Reply::read(&mut client).await.status(), 200);
    }
}

#[tokio::test]
async fn a_buffered_body_is_sent_again_and_a_streamed_one_is_not() {
    for (buffered, status) in [(true, 200), (false, 502)] {
        // Takes the whole request and leaves.
        let deaf = Upstream::new(|mut stream, _| async move {
            receive(&mut stream).await;
        })
        .await;
        let echo = Upstream::echo().await;
        let mut config = to(deaf.address, json!({"host": "u.test"}));
        config["upstreams"] = json!([{"id": "u", "name": "u.test"}]);
        config["targets"] = json!([
            {"id": "t1", "target": deaf.address.to_string(), "weight": 100, "upstream": {"id": "u"}},
            {"id": "t2", "target": echo.address.to_string(), "weight": 100, "upstream": {"id": "u"}},
        ]);
        let (stage, _folder) = spooling(if buffered { config } else { unbuffered(config) });
        // One of any two requests in turn begins with the deaf target.
        let mut statuses = Vec::new();
        for length in [SIZES[3], SIZES[3], SIZES[1], SIZES[1]] {
            let reply = stage.raw(post(length)).await;
            statuses.push(reply.status());
            assert!(reply.status() != 200 || reply.body.ends_with(&body(length)));
        }
        assert!(deaf.connections() > 0);
        assert_eq!(statuses.contains(&502), status == 502, "{statuses:?}");
    }
}

#[tokio::test]
async fn a_folder_that_takes_no_files_is_a_500_and_small_bodies_pass() {
    let upstream = Upstream::echo().await;
    let options = ProxyOptions { spool_folder: "/nowhere".into(), ..Default::default() };
    let stage = Stage::with(to(upstream.address, json!({})), options, Vec::new());
    assert_eq!(stage.raw(post(SIZES[2])).await.status(), 200);
    // The proxy closes without reading on, so the answer may be lost; it must not be a good one.
    assert!(matches!(stage.raw_to_the_end(post(SIZES[3])).await, 0 | 500));
}

#[tokio::test]
async fn events_reach_the_client_one_by_one() {
    for buffering in [true, false] {
        let (next, turns) = mpsc::unbounded_channel::<()>();
        let turns = std::sync::Arc::new(tokio::sync::Mutex::new(turns));
        let upstream = Upstream::new(move |mut stream, _| {
            let turns = turns.clone();
            async move {
                receive(&mut stream).await;
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").await.unwrap();
                let mut turns = turns.lock().await;
                for number in 0..3 {
                    stream.write_all(format!("data: {number}\n\n").as_bytes()).await.unwrap();
                    turns.recv().await;
                }
            }
        })
        .await;
        let mut config = to(upstream.address, json!({}));
        config["routes"][0]["response_buffering"] = json!(buffering);
        let stage = Stage::new(config);
        let mut client = TcpStream::connect(stage.address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let mut seen = Vec::new();
        for number in 0..3 {
            let event = format!("data: {number}\n\n");
            while !String::from_utf8_lossy(&seen).contains(&event) {
                let byte = tokio::time::timeout(PATIENCE, client.read_u8()).await.unwrap();
                seen.push(byte.unwrap());
            }
            // Only now the upstream may go on.
            next.send(()).unwrap();
        }
    }
}

/// Fits into what is read ahead, and not into what a write takes.
const FITTING: usize = 900_000;

/// A client whose sockets take little at both ends: its segments are small.
async fn narrow(address: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.set_tcp_mss(536).unwrap();
    socket.connect(&address.into()).unwrap();
    socket.set_nonblocking(true).unwrap();
    TcpStream::from_std(socket.into()).unwrap()
}

#[tokio::test]
async fn an_answer_that_fits_is_read_ahead_of_a_slow_client_and_the_upstream_connection_freed() {
    let (ended, mut end) = mpsc::unbounded_channel();
    let upstream = Upstream::new(move |mut stream, _| {
        let ended = ended.clone();
        async move {
            receive(&mut stream).await;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {FITTING}\r\nConnection: close\r\n\r\n");
            stream.write_all(&[head.as_bytes(), &[b'x'; FITTING]].concat()).await.unwrap();
            // The proxy closes what it would put back if it were kept alive.
            stream.read_to_end(&mut Vec::new()).await.unwrap();
            ended.send(()).unwrap();
        }
    })
    .await;
    let stage = Stage::new(to(upstream.address, json!({})));
    let mut client = narrow(stage.address).await;
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
    tokio::time::timeout(PATIENCE, end.recv()).await.expect("the upstream is free").unwrap();
    let reply = Reply::read(&mut client).await;
    assert_eq!((reply.status(), reply.body.len()), (200, FITTING));
}

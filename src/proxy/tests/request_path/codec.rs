//! What a codec of HTTP/1 owes both sides: names as they came, trailers, order, early answers, ends of connections.

use crate::stage::{PATIENCE, Reply, Stage, Upstream, header, receive, to};
use gwctl_proxy::ProxyOptions;
use serde_json::json;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// Reads until these bytes have come.
async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end.as_bytes()) {
        let byte = tokio::time::timeout(PATIENCE, stream.read_u8()).await.expect("in time");
        bytes.push(byte.unwrap_or_else(|_| panic!("closed after {:?}", String::from_utf8_lossy(&bytes))));
    }
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn names_of_headers_keep_their_case_both_ways() {
    let upstream = Upstream::new(|mut stream, _| async move {
        let (head, _) = receive(&mut stream).await.unwrap();
        assert!(head.contains("\r\nX-FANCY: 1\r\n") && head.contains("\r\nx-plain: 2\r\n"), "{head}");
        assert!(head.contains("\r\nX-Real-IP: 127.0.0.1\r\n") && head.contains("\r\nVia: 1.1 kong/"), "{head}");
        let answer =
            b"HTTP/1.1 200 Quite Fine\r\ncontent-LENGTH: 0\r\nX-Odd-CASE: 1\r\nset-cookie: a\r\nSet-Cookie: b\r\n\r\n";
        stream.write_all(answer).await.unwrap();
    })
    .await;
    let stage = Stage::new(to(upstream.address, json!({})));
    let reply = stage.raw("GET / HTTP/1.1\r\nHost: a\r\nX-FANCY: 1\r\nx-plain: 2\r\nConnection: close\r\n\r\n").await;
    assert!(reply.head.starts_with("HTTP/1.1 200 Quite Fine\r\n"), "{}", reply.head);
    for line in ["content-LENGTH: 0", "X-Odd-CASE: 1", "set-cookie: a", "Set-Cookie: b", "Connection: close"] {
        assert!(reply.head.contains(&format!("\r\n{line}\r\n")), "{line}: {}", reply.head);
    }
    assert!(
        reply.head.contains("\r\nX-Kong-Upstream-Latency: ") && reply.head.contains("\r\nDate: "),
        "{}",
        reply.head
    );
}

#[tokio::test]
async fn trailers_pass_in_both_directions() {
    let upstream = Upstream::new(|mut stream, _| async move {
        let head = read_until(&mut stream, "\r\n\r\n").await;
        assert_eq!(header(&head, "te").as_deref(), Some("trailers"));
        let body = read_until(&mut stream, "\r\n\r\n").await;
        assert_eq!(body, "3\r\nabc\r\n0\r\nx-sum: 6\r\n\r\n");
        let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nx-status: 13\r\n\r\n";
        stream.write_all(answer).await.unwrap();
    })
    .await;
    let stage = Stage::new(to(upstream.address, json!({})));
    let reply = stage
        .raw("POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: close, TE\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n")
        .await;
    assert_eq!(reply.text(), "1\r\nx\r\n0\r\nx-status: 13\r\n\r\n");
}

#[tokio::test]
async fn requests_sent_at_once_are_answered_in_order() {
    let upstream = Upstream::echo().await;
    let stage = Stage::new(to(upstream.address, json!({})));
    let mut requests = String::new();
    for number in 0..50 {
        requests += &format!("POST /{number} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
    }
    requests += "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let reply = stage.raw(requests).await;
    let whole = reply.head.clone() + &reply.text();
    let found: Vec<_> = whole.lines().filter_map(|line| line.split_once("POST /")?.1.split(' ').next()).collect();
    let expected: Vec<_> = (0..50).map(|number| number.to_string()).collect();
    assert_eq!(found, expected);
    assert!(whole.contains("GET /last"));
    assert_eq!(upstream.connections(), 1);
}

#[tokio::test]
async fn an_answer_may_come_before_the_body_has_been_sent() {
    let upstream = Upstream::new(|mut stream, _| async move {
        read_until(&mut stream, "\r\n\r\n").await;
        stream.write_all(b"HTTP/1.1 413 Too Much\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno!").await.unwrap();
    })
    .await;
    let mut config = to(upstream.address, json!({}));
    config["routes"][0]["request_buffering"] = json!(false);
    let stage = Stage::new(config);
    let mut stream = TcpStream::connect(stage.address).await.unwrap();
    stream.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\nbegin").await.unwrap();
    let head = read_until(&mut stream, "\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 413"), "{head}");
    assert_eq!(read_until(&mut stream, "no!").await, "no!");
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("the connection ends");
    assert!(rest.is_empty());
}

#[tokio::test]
async fn a_client_that_is_answered_early_may_send_all_of_its_body_and_read_the_answer_then() {
    const LENGTH: usize = 8 << 20;
    let body = vec![b'a'; LENGTH];
    let whole = [format!("Content-Length: {LENGTH}\r\n\r\n").as_bytes(), &body].concat();
    let chunk = [format!("{LENGTH:x}\r\n").as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
    let chunked = [b"Transfer-Encoding: chunked\r\n\r\n".as_slice(), &chunk].concat();
    // Answered by the node, which then closes.
    for body in [&whole, &chunked] {
        let reply = Stage::new(json!({})).raw([b"POST / HTTP/1.1\r\nHost: a\r\n".as_slice(), body].concat()).await;
        assert_eq!((reply.status(), reply.clean), (404, true));
        assert_eq!(reply.header("connection").as_deref(), Some("close"));
    }
    // Answered by an upstream that takes no more: the connection goes on.
    let upstream = Upstream::new(|mut stream, _| async move {
        read_until(&mut stream, "\r\n\r\n").await;
        stream.write_all(b"HTTP/1.1 413 Too Much\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno!").await.unwrap();
    })
    .await;
    for body in [&whole, &chunked] {
        let mut config = to(upstream.address, json!({}));
        config["routes"][0]["request_buffering"] = json!(false);
        let stage = Stage::new(config);
        let mut stream = TcpStream::connect(stage.address).await.unwrap();
        for _ in 0..2 {
            stream.write_all(&[b"POST / HTTP/1.1\r\nHost: a\r\n".as_slice(), body].concat()).await.unwrap();
            let head = read_until(&mut stream, "\r\n\r\n").await;
            assert!(head.starts_with("HTTP/1.1 413") && !head.contains("Connection: close"), "{head}");
            assert_eq!(read_until(&mut stream, "no!").await, "no!");
        }
    }
}

#[tokio::test]
async fn a_refused_body_that_was_not_asked_for_ends_the_connection() {
    let options = ProxyOptions { client_max_body_size: 4, ..Default::default() };
    let upstream = Upstream::echo().await;
    let stage = Stage::with(to(upstream.address, json!({})), options, Vec::new());
    let reply = stage.raw("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n").await;
    assert_eq!((reply.status(), reply.header("connection").as_deref()), (413, Some("close")));
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn a_short_body_that_nobody_wanted_is_skipped() {
    let stage = Stage::new(json!({}));
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nGET /";
    let reply = stage.raw(format!("{post}{post}GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).await;
    let whole = reply.head.clone() + &reply.text();
    assert_eq!(whole.matches("HTTP/1.1 404 Not Found").count(), 3, "{whole}");
}

#[tokio::test]
async fn clients_of_http_1_0_are_told_where_a_body_ends() {
    let upstream = Upstream::new(|mut stream, _| async move {
        while receive(&mut stream).await.is_some() {
            let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
            stream.write_all(answer).await.unwrap();
        }
    })
    .await;
    let stage = Stage::new(to(upstream.address, json!({})));
    let reply = stage.raw("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await;
    assert_eq!((reply.text().as_str(), reply.header("transfer-encoding")), ("hi", None));
    assert_eq!(reply.header("connection").as_deref(), Some("close"));
    let fixed = Upstream::fixed(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi").await;
    let stage = Stage::new(to(fixed.address, json!({})));
    let mut stream = TcpStream::connect(stage.address).await.unwrap();
    for _ in 0..2 {
        stream.write_all(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await.unwrap();
        let reply = read_until(&mut stream, "\r\n\r\nhi").await;
        assert_eq!(header(&reply, "connection").as_deref(), Some("keep-alive"), "{reply}");
    }
}

#[tokio::test]
async fn a_body_until_the_end_of_the_connection_passes_in_chunks() {
    let upstream = Upstream::new(|mut stream, _| async move {
        receive(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nall of it").await.unwrap();
    })
    .await;
    let stage = Stage::new(to(upstream.address, json!({})));
    for _ in 0..2 {
        let reply = stage.get("/").await;
        assert_eq!(reply.text().replace("\r\n", ""), "9all of it0");
    }
    assert_eq!(upstream.connections(), 2);
}

#[tokio::test]
async fn what_follows_a_response_is_not_taken_for_the_next_one() {
    let two = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\noneHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    let upstream = Upstream::fixed(two).await;
    let stage = Stage::new(to(upstream.address, json!({})));
    let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let reply = stage.raw(format!("{get}{get}GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).await;
    assert!(!(reply.head.clone() + &reply.text()).contains("evil"));
    assert_eq!(upstream.connections(), 3);
}

/// An upstream that says this before each answer.
async fn hinting(interim: String) -> Upstream {
    Upstream::new(move |mut stream, _| {
        let interim = interim.clone();
        async move {
            while let Some((_, body)) = receive(&mut stream).await {
                let answer = format!("{interim}HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                stream.write_all(&[answer.as_bytes(), &body].concat()).await.unwrap();
            }
        }
    })
    .await
}

const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 5\r\n\r\n";

#[tokio::test]
async fn interim_responses_are_not_the_answer_and_their_headers_not_passed_on() {
    let interim = format!("HTTP/1.1 100 Continue\r\n\r\n{HINTS}HTTP/1.1 102 Processing\r\n\r\n{HINTS}{HINTS}");
    let upstream = hinting(interim).await;
    let stage = Stage::new(to(upstream.address, json!({})));
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok";
    for expects in ["", "Expect: 100-continue\r\n"] {
        let last = format!("POST / HTTP/1.1\r\nHost: a\r\n{expects}Connection: close\r\nContent-Length: 2\r\n\r\nok");
        // Over one kept connection on both sides.
        let reply = stage.raw(format!("{post}{last}")).await;
        let text = format!("{}{}", reply.head, reply.text());
        assert_eq!(text.matches("HTTP/1.1 ").count(), 2, "{text}");
        assert_eq!(text.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{text}");
        assert!(!text.contains("Link"), "{text}");
        assert_eq!(text.matches("\r\n\r\nok").count(), 2, "{text}");
    }
    assert_eq!(upstream.connections(), 1);
}

#[tokio::test]
async fn interim_responses_without_end_are_an_invalid_answer() {
    for (count, status) in [(16, 200), (17, 502), (10_000, 502)] {
        let upstream = hinting(HINTS.repeat(count)).await;
        let reply = Stage::new(to(upstream.address, json!({"retries": 0}))).get("/").await;
        assert_eq!(reply.status(), status, "{count}");
    }
}

#[tokio::test]
async fn responses_that_could_be_read_in_two_ways_are_not_passed_on() {
    for head in [
        "Content-Length: 2\r\nContent-Length: 3",
        "Content-Length: 2\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked, identity",
        "X : a",
        "X: a\r\n b",
    ] {
        let upstream = Upstream::new(move |mut stream, _| async move {
            receive(&mut stream).await;
            stream.write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\nok").as_bytes()).await.unwrap();
        })
        .await;
        let stage = Stage::new(to(upstream.address, json!({"retries": 0})));
        assert_eq!(stage.get("/").await.status(), 502, "{head:?}");
    }
}

#[tokio::test]
async fn idle_connections_are_closed_at_once_by_a_stop_and_busy_ones_told() {
    let (arrived, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (at_upstream, released) = (arrived.clone(), go_on.clone());
    let upstream = Upstream::new(move |mut stream, number| {
        let (arrived, go_on) = (at_upstream.clone(), released.clone());
        async move {
            receive(&mut stream).await;
            if number > 0 {
                arrived.notify_one();
                go_on.notified().await;
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
        }
    })
    .await;
    let mut stage = Stage::new(to(upstream.address, json!({})));
    let mut idle = TcpStream::connect(stage.address).await.unwrap();
    idle.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    read_until(&mut idle, "\r\n\r\nok").await;
    let mut busy = TcpStream::connect(stage.address).await.unwrap();
    busy.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    arrived.notified().await;
    let stopping = tokio::spawn(stage.proxy.take().unwrap().stop());
    assert_eq!(tokio::time::timeout(PATIENCE, idle.read(&mut [0])).await.unwrap().unwrap(), 0);
    go_on.notify_one();
    let reply = Reply::read(&mut busy).await;
    assert_eq!((reply.text().as_str(), reply.header("connection").as_deref()), ("ok", Some("close")));
    tokio::time::timeout(PATIENCE, stopping).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_first_bytes_after_an_upgrade_are_not_lost() {
    let upstream = Upstream::new(|mut stream, _| async move {
        let head = read_until(&mut stream, "\r\n\r\n").await;
        assert_eq!(header(&head, "upgrade").as_deref(), Some("websocket"));
        let switch =
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfrom upstream";
        stream.write_all(switch).await.unwrap();
        read_until(&mut stream, "from client").await;
        stream.write_all(b", bye").await.unwrap();
    })
    .await;
    let stage = Stage::new(to(upstream.address, json!({})));
    let mut stream = TcpStream::connect(stage.address).await.unwrap();
    let head = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    stream.write_all(format!("{head}from client").as_bytes()).await.unwrap();
    let head = read_until(&mut stream, "\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
    assert_eq!(header(&head, "connection").as_deref(), Some("upgrade"));
    assert_eq!(read_until(&mut stream, ", bye").await, "from upstream, bye");
}

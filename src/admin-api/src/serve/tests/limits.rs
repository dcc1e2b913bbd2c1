//! What a client may use and how long it may take; streams of events.

use super::*;

fn limited(limits: Limits) -> Server {
    start_with(Face::Admin, control_plane(), ServeOptions { limits, ..ServeOptions::default() })
}

const SHORT: Duration = Duration::from_millis(50);

#[tokio::test]
async fn a_client_that_sends_its_head_too_slowly_is_let_go() {
    let server = limited(Limits { head_timeout: SHORT, ..Limits::default() });
    let answer = exchange(server.address, "GET / HTTP/1.1\r\nhost:").await;
    assert!(!answer.contains("200 OK"), "{answer}");
}

#[tokio::test]
async fn a_client_that_sends_its_body_too_slowly_is_answered_408() {
    let limits = Limits { piece_timeout: SHORT, ..Limits::default() };
    let server = limited(limits);
    let head = "POST /services HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
    let answer = exchange(server.address, head).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[tokio::test]
async fn a_body_that_comes_in_drops_is_answered_408_after_the_time_for_a_whole_one() {
    let server = limited(Limits { body_timeout: SHORT, ..Limits::default() });
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head =
        "POST /services HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    let drops = spawn("drops", Phase::Stop, async move {
        while writing.write_all(b"1\r\n \r\n").await.is_ok() {
            tokio::task::yield_now().await;
        }
    });
    let mut answer = [0; 12];
    reading.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
    drop(drops);
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_an_answer_is_let_go() {
    let limits = Limits { write_timeout: SHORT, connections: 1, ..Limits::default() };
    let server = limited(limits);
    // Schemas enough to fill every buffer on the way; the client reads none of them.
    let mut deaf = TcpStream::connect(server.address).await.unwrap();
    let request = "GET /schemas/routes HTTP/1.1\r\nhost: x\r\n\r\n".repeat(4000);
    let sending = spawn("deaf client", Phase::Stop, async move {
        let _ = deaf.write_all(request.as_bytes()).await;
        std::future::pending::<()>().await;
    });
    // The only connection allowed is free again, so it was ended.
    let answer = exchange(server.address, "GET /services HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(sending);
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_until_one_ends() {
    let server = limited(Limits { connections: 1, ..Limits::default() });
    let mut first = TcpStream::connect(server.address).await.unwrap();
    first.write_all(b"GET /services HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut byte = [0; 1];
    first.read_exact(&mut byte).await.unwrap();
    let request = "GET /services HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let mut second = std::pin::pin!(exchange(server.address, request));
    let early = tokio::time::timeout(SHORT, second.as_mut()).await;
    assert!(early.is_err(), "the second connection was served beside the first");
    drop(first);
    assert!(second.await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn without_a_token_a_body_is_not_even_read() {
    let options = ServeOptions { authentication: true, ..ServeOptions::default() };
    let server = start_with(Face::Admin, control_plane(), options);
    let head = "POST /gwctl/changes HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 200000000\r\n\r\n";
    let answer = exchange(server.address, head).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(answer.contains("www-authenticate: Bearer") && answer.contains("connection: close"), "{answer}");
}

#[tokio::test]
async fn changes_may_be_longer_than_other_bodies() {
    let limits = Limits { body: 100, changes_body: 10_000, ..Limits::default() };
    let server = limited(limits);
    let send = async |path: &str, length: usize| {
        let body = " ".repeat(length - 2) + "[]";
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        exchange(server.address, &request).await.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(send("/gwctl/changes", 5000).await, "200");
    assert_eq!(send("/gwctl/changes", 20_000).await, "413");
    assert_eq!(send("/services", 5000).await, "413");
}

/// Reads a stream of events until it holds a text.
async fn until(stream: &mut TcpStream, seen: &mut String, text: &str) {
    while !seen.contains(text) {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.unwrap();
        assert_ne!(read, 0, "the stream ended before {text:?}: {seen}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
}

#[tokio::test]
async fn events_tell_of_changes_and_data_planes_and_end_with_the_node() {
    let backend = control_plane();
    let limits = Limits { heartbeat: SHORT, event_streams: 1, ..Limits::default() };
    let options = ServeOptions { limits, ..ServeOptions::default() };
    let mut server = start_with(Face::Admin, backend.clone(), options);
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /gwctl/events HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut seen = String::new();
    until(&mut stream, &mut seen, "event: hello\nid: 0\ndata: {\"version\":0}").await;
    assert!(seen.contains("content-type: text/event-stream"), "{seen}");
    let body = "{\"username\":\"u\"}";
    let length = body.len();
    let made = exchange(server.address, &format!("POST /consumers HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")).await;
    assert!(made.starts_with("HTTP/1.1 201"), "{made}");
    until(&mut stream, &mut seen, "event: change\nid: 1\n").await;
    until(&mut stream, &mut seen, "\"action\":\"created\",\"entity\":\"consumers\"").await;
    let news = crate::FleetNews { what: "joined", id: "n".to_owned(), ..crate::FleetNews::default() };
    backend.fleet.send(news).unwrap();
    until(&mut stream, &mut seen, "event: joined\n").await;
    until(&mut stream, &mut seen, "\n:\n").await;
    let again = "GET /gwctl/events HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    assert!(exchange(server.address, again).await.starts_with("HTTP/1.1 503"), "one stream was allowed");
    server.stop.take().unwrap().send(()).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    server.task.ended().await.unwrap();
}

#[tokio::test]
async fn a_version_is_told_before_the_data_plane_that_has_it() {
    let backend = control_plane();
    let server = start(Face::Admin, backend.clone());
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /gwctl/events HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    until(&mut stream, &mut String::new(), "event: hello\n").await;
    for number in 1..=30 {
        let id = format!("00000000-0000-4000-8000-{number:012}");
        let row = serde_json::json!({"id": id, "username": format!("u{number}"), "custom_id": null});
        let row = row.as_object().unwrap();
        // Both have happened when the stream comes to its turn.
        let origin = crate::Origin::default();
        let version = backend.write(&origin, &mut |write| write.insert("consumers", row.clone())).unwrap();
        let news = crate::FleetNews { what: "applied", version: Some(version), ..crate::FleetNews::default() };
        backend.fleet.send(news).unwrap();
        let mut seen = String::new();
        until(&mut stream, &mut seen, "event: applied\n").await;
        let (before, _) = seen.split_once("event: applied\n").unwrap();
        assert!(before.contains(&format!("event: change\nid: {version}\n")), "{seen}");
    }
}

#[tokio::test]
async fn a_stream_that_comes_back_is_told_what_it_missed() {
    let server = start(Face::Admin, control_plane());
    let make = "POST /consumers HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 16\r\n\r\n{\"username\":\"u\"}";
    assert!(exchange(server.address, make).await.starts_with("HTTP/1.1 201"));
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /gwctl/events HTTP/1.1\r\nhost: x\r\nlast-event-id: 0\r\n\r\n").await.unwrap();
    until(&mut stream, &mut String::new(), "event: change\nid: 1\n").await;
}

#[tokio::test]
async fn a_stream_of_events_ends_with_the_token_it_was_asked_with() {
    use crate::token::{Role, TOKENS_SETTING, Token, Tokens, token_hash};
    let backend = control_plane();
    let token = Token {
        id: "1".to_owned(),
        name: "watcher".to_owned(),
        role: Role::Read,
        hash: token_hash("sesame"),
        created_at_millis: 0,
        created_by: String::new(),
        expires_at_millis: None,
    };
    backend.set_setting(TOKENS_SETTING, &Tokens(vec![token]).to_setting().unwrap()).unwrap();
    let limits = Limits { heartbeat: SHORT, ..Limits::default() };
    let options = ServeOptions { limits, authentication: true };
    let server = start_with(Face::Admin, backend.clone(), options);
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = b"GET /gwctl/events HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer sesame\r\n\r\n";
    stream.write_all(head).await.unwrap();
    until(&mut stream, &mut String::new(), "\n:\n").await;
    backend.set_setting(TOKENS_SETTING, &Tokens::default().to_setting().unwrap()).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
}

//! Clients of HTTP/2 that want to cost more than they pay: frames made by hand, every cost bounded, others served.

use crate::stage::{PATIENCE, Stage, Upstream, to};
use gwctl_proxy::{Listener, ProxyOptions};
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Error codes of GOAWAY.
const ENHANCE_YOUR_CALM: u32 = 11;

async fn stage() -> (Upstream, Stage) {
    stage_with(ProxyOptions::default()).await
}

async fn stage_with(options: ProxyOptions) -> (Upstream, Stage) {
    stage_at(Upstream::echo().await, options)
}

fn stage_at(upstream: Upstream, options: ProxyOptions) -> (Upstream, Stage) {
    let listener = Listener { addr: "127.0.0.1:0".parse().unwrap(), ssl: false, http2: true, proxy_protocol: false };
    let options = ProxyOptions { listeners: vec![listener], ..options };
    let stage = Stage::with(to(upstream.address, json!({})), options, Vec::new());
    (upstream, stage)
}

async fn connect(stage: &Stage) -> TcpStream {
    connect_with(stage, &[]).await
}

/// Connects with settings of the client's.
async fn connect_with(stage: &Stage, settings: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(stage.address).await.unwrap();
    stream.write_all(&start(settings)).await.unwrap();
    stream
}

/// What a client says first.
fn start(settings: &[u8]) -> Vec<u8> {
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &frame(SETTINGS, 0, 0, settings)].concat()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A header field as a literal that nobody is to remember.
fn field(name: &str, value: &str) -> Vec<u8> {
    let mut field = vec![0];
    for text in [name, value] {
        // A length that does not fit into seven bits goes on in groups of seven, the lowest first.
        match text.len() {
            length @ 0..127 => field.push(length as u8),
            mut rest => {
                field.push(127);
                rest -= 127;
                while rest >= 128 {
                    field.push((rest % 128) as u8 | 128);
                    rest /= 128;
                }
                field.push(rest as u8);
            }
        }
        field.extend_from_slice(text.as_bytes());
    }
    field
}

fn head() -> Vec<u8> {
    let fields = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a.test")];
    fields.iter().flat_map(|(name, value)| field(name, value)).collect()
}

/// Frames that carry one head, split as needed.
fn request(stream: u32, head: &[u8]) -> Vec<u8> {
    let parts: Vec<_> = head.chunks(16_384).collect();
    let mut frames = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let end = if number + 1 == parts.len() { END_HEADERS } else { 0 };
        match number {
            0 => frames.extend(frame(HEADERS, END_STREAM | end, stream, part)),
            _ => frames.extend(frame(CONTINUATION, end, stream, part)),
        }
    }
    frames
}

/// The next frame: kind, stream, payload; None when the connection has ended.
async fn next(stream: &mut TcpStream) -> Option<(u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut head)).await.unwrap().ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    let mut payload = vec![0; length];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut payload)).await.unwrap().ok()?;
    Some((head[3], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload))
}

/// How the connection ended: the error of GOAWAY, None when it was cut without.
async fn ended(stream: &mut TcpStream) -> Option<u32> {
    let mut error = None;
    while let Some((kind, _, payload)) = next(stream).await {
        if kind == GOAWAY {
            error = Some(u32::from_be_bytes([payload[4], payload[5], payload[6], payload[7]]));
        }
    }
    error
}

/// Writes until the proxy takes no more; how many bytes it took.
async fn flood(stream: &mut TcpStream, bytes: &[u8], most: usize) -> usize {
    let mut taken = 0;
    while taken < most {
        match tokio::time::timeout(Duration::from_secs(2), stream.write(bytes)).await {
            Ok(Ok(written)) if written > 0 => taken += written,
            _ => break,
        }
    }
    taken
}

async fn serves_others(stage: &Stage) {
    let reply = stage.get("/").await;
    assert_eq!(reply.status(), 200, "{}", reply.text());
}

#[tokio::test]
async fn requests_that_are_taken_back_at_once_end_the_connection() {
    let (_upstream, stage) = stage().await;
    let mut stream = connect(&stage).await;
    let mut frames = Vec::new();
    for number in 0..5000 {
        frames.extend(request(2 * number + 1, &head()));
        frames.extend(frame(RST_STREAM, 0, 2 * number + 1, &8_u32.to_be_bytes()));
    }
    // The connection may be cut before all of it is sent.
    let _ = stream.write_all(&frames).await;
    assert!(matches!(ended(&mut stream).await, Some(ENHANCE_YOUR_CALM) | None));
    serves_others(&stage).await;
}

#[tokio::test]
async fn a_head_that_never_ends_is_cut_off() {
    let (upstream, stage) = stage().await;
    let mut stream = connect(&stage).await;
    stream.write_all(&frame(HEADERS, END_STREAM, 1, &head())).await.unwrap();
    let part = frame(CONTINUATION, 0, 1, &field("x", &"y".repeat(1000)));
    let taken = flood(&mut stream, &part, 64 << 20).await;
    assert!(taken < 16 << 20, "{taken} bytes of one head were taken");
    let mut stream = connect(&stage).await;
    stream.write_all(&frame(HEADERS, END_STREAM, 1, &head())).await.unwrap();
    let taken = flood(&mut stream, &frame(CONTINUATION, 0, 1, &[]), 64 << 20).await;
    assert!(taken < 16 << 20, "{taken} bytes of empty frames were taken");
    assert_eq!(upstream.connections(), 0);
    serves_others(&stage).await;
}

/// Status of the answer to a head of some size, by the first bytes of its own header block.
async fn status(stage: &Stage, size: usize) -> Option<u16> {
    let mut stream = connect(stage).await;
    let fields: Vec<u8> = (0..size / 1000).flat_map(|number| field(&format!("x-{number}"), &"y".repeat(990))).collect();
    // The connection may be cut before all of it is sent.
    let _ = stream.write_all(&request(1, &[head(), fields].concat())).await;
    let mut seen = None;
    while let Some((kind, number, payload)) = next(&mut stream).await {
        match kind {
            // `:status` of the static table, or a literal of it in Huffman's code or plain.
            HEADERS if number == 1 => {
                seen = Some(match payload.first() {
                    Some(0x88) => 200,
                    Some(0x8c) => 400,
                    _ => 431,
                });
                break;
            }
            DATA | RST_STREAM | GOAWAY if seen.is_some() || kind != DATA => break,
            _ => {}
        }
    }
    seen
}

#[tokio::test]
async fn a_large_head_passes_up_to_the_limit_and_is_refused_beyond_as_over_http1() {
    let (_upstream, stage) = stage().await;
    assert_eq!(status(&stage, 30_000).await, Some(200));
    assert_eq!(status(&stage, 40_000).await, Some(400));
    assert!(matches!(status(&stage, 400_000).await, Some(431) | None));
    serves_others(&stage).await;
}

#[tokio::test]
async fn questions_whose_answers_nobody_reads_are_not_piled_up() {
    let (_upstream, stage) = stage().await;
    for question in [frame(SETTINGS, 0, 0, &[]), frame(PING, 0, 0, &[7; 8])] {
        let mut stream = connect(&stage).await;
        let taken = flood(&mut stream, &question.repeat(1000), 256 << 20).await;
        assert!(taken < 256 << 20, "the proxy took {taken} bytes of questions without an answer being read");
        serves_others(&stage).await;
    }
}

#[tokio::test]
async fn an_answer_of_the_gateway_to_head_has_no_body() {
    let (_upstream, stage) = stage_with(ProxyOptions { max_target_size: 8, ..Default::default() }).await;
    let mut stream = connect(&stage).await;
    let long = |method: &str| {
        let fields =
            [(":method", method), (":scheme", "http"), (":path", "/longer-than-that"), (":authority", "a.test")];
        fields.iter().flat_map(|(name, value)| field(name, value)).collect::<Vec<u8>>()
    };
    stream.write_all(&[request(1, &long("HEAD")), request(3, &long("GET"))].concat()).await.unwrap();
    let (mut heads, mut bodies) = (Vec::new(), Vec::new());
    while bodies.is_empty() || heads.len() < 2 {
        match next(&mut stream).await.expect("the connection stays") {
            (HEADERS, number, _) => heads.push(number),
            (DATA, number, payload) if !payload.is_empty() => bodies.push(number),
            _ => {}
        }
    }
    assert_eq!(bodies, [3], "the page of a HEAD is left out");
}

#[tokio::test]
async fn connect_is_refused_as_over_http1_and_reaches_no_upstream() {
    let (_upstream, stage) = stage().await;
    let mut stream = connect(&stage).await;
    let fields = [(":method", "CONNECT"), (":authority", "a.test:443")];
    let head: Vec<u8> = fields.iter().flat_map(|(name, value)| field(name, value)).collect();
    stream.write_all(&request(1, &head)).await.unwrap();
    let page = loop {
        match next(&mut stream).await.expect("the connection stays") {
            (DATA, 1, payload) => break String::from_utf8(payload).unwrap(),
            (RST_STREAM | GOAWAY, ..) => panic!("there is an answer"),
            _ => {}
        }
    };
    assert!(page.starts_with("Method not allowed"), "{page}");
}

#[tokio::test]
async fn a_target_that_is_an_authority_alone_is_refused() {
    let (_upstream, stage) = stage().await;
    let reply = stage.raw("GET a.test HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").await;
    assert_eq!(reply.status(), 400, "{}", reply.text());
}

#[tokio::test]
async fn a_connection_that_does_not_get_to_its_first_request_is_let_go() {
    let options = ProxyOptions { header_timeout: Duration::from_millis(100), ..Default::default() };
    let (_upstream, stage) = stage_with(options).await;
    for start in [b"PRI".as_slice(), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut stream = TcpStream::connect(stage.address).await.unwrap();
        stream.write_all(start).await.unwrap();
        let mut rest = Vec::new();
        // Whether it is closed or reset does not matter.
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("the proxy lets go");
    }
    serves_others(&stage).await;
}

/// How long the proxy waits for a client that takes nothing.
const PAUSE: Duration = Duration::from_millis(300);
/// The same where the client is to be quicker than that, on a busy machine too.
const LONG_PAUSE: Duration = Duration::from_secs(2);
/// A client that takes something takes it at this pace.
const PACE: Duration = Duration::from_millis(100);
/// An answer that fits neither into a window nor into what is read ahead, one that can be read ahead, and one that fits
/// into a window.
const LARGE: usize = 8_000_000;
const FITTING: usize = 900_000;
const SMALL: usize = 10_000;

/// An upstream with an answer of this size on its first connection and small ones later; tells when a connection has
/// ended.
async fn large(size: usize) -> (Upstream, tokio::sync::mpsc::UnboundedReceiver<()>) {
    let (ended, end) = tokio::sync::mpsc::unbounded_channel();
    let upstream = Upstream::new(move |mut stream, number| {
        let ended = ended.clone();
        let size = if number == 0 { size } else { SMALL };
        async move {
            let _ = crate::stage::receive(&mut stream).await;
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(&[answer.as_bytes(), &vec![b'x'; size]].concat()).await;
            let _ = stream.read_to_end(&mut Vec::new()).await;
            ended.send(()).unwrap();
        }
    });
    (upstream.await, end)
}

fn impatient() -> ProxyOptions {
    ProxyOptions { send_timeout: PAUSE, ..Default::default() }
}

fn window(stream: u32, more: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

/// `SETTINGS_INITIAL_WINDOW_SIZE`
fn initial_window(size: u32) -> Vec<u8> {
    [&4_u16.to_be_bytes()[..], &size.to_be_bytes()].concat()
}

#[tokio::test]
async fn a_stream_whose_window_stays_closed_is_reset_and_its_upstream_connection_freed() {
    let (upstream, mut end) = large(LARGE).await;
    let (_upstream, stage) = stage_at(upstream, impatient());
    let mut stream = connect(&stage).await;
    // The window of the connection is wide, that of the stream is not.
    stream.write_all(&[window(0, 1 << 30), request(1, &head())].concat()).await.unwrap();
    let mut taken = 0;
    loop {
        match next(&mut stream).await.expect("the connection stays") {
            (DATA, 1, payload) => taken += payload.len(),
            (RST_STREAM, 1, payload) => break assert_eq!(payload, 8_u32.to_be_bytes(), "CANCEL"),
            _ => {}
        }
    }
    assert_eq!(taken, 65_535, "as much as the window takes");
    tokio::time::timeout(PATIENCE, end.recv()).await.expect("the upstream connection ends").unwrap();
    // What comes now fits into the window: no client that is late can be to blame.
    stream.write_all(&request(3, &head())).await.unwrap();
    let mut taken = 0;
    while taken < SMALL {
        if let (DATA, 3, payload) = next(&mut stream).await.expect("the connection stays") {
            taken += payload.len();
        }
    }
}

#[tokio::test]
async fn a_client_that_opens_its_window_byte_by_byte_is_slow_but_alive() {
    let (upstream, _end) = large(LARGE).await;
    let (_upstream, stage) = stage_at(upstream, ProxyOptions { send_timeout: LONG_PAUSE, ..Default::default() });
    let mut stream = connect_with(&stage, &initial_window(0)).await;
    stream.write_all(&[window(0, 1 << 30), request(1, &head())].concat()).await.unwrap();
    let (mut pace, mut taken) = (tokio::time::interval(PACE), 0);
    // As long as three times the pause that is allowed.
    while taken < (3 * LONG_PAUSE.as_millis() / PACE.as_millis()) as usize {
        pace.tick().await;
        stream.write_all(&window(1, 1)).await.unwrap();
        loop {
            match next(&mut stream).await.expect("the connection stays") {
                (DATA, 1, payload) => break taken += payload.len(),
                (kind, number, _) => assert!(kind != RST_STREAM && kind != GOAWAY, "{kind} {number}"),
            }
        }
    }
    stream.write_all(&window(1, 1 << 30)).await.unwrap();
    while taken < LARGE {
        if let (DATA, 1, payload) = next(&mut stream).await.expect("the connection stays") {
            taken += payload.len();
        }
    }
}

#[tokio::test]
async fn a_window_that_is_never_opened_holds_no_answer_of_any_size() {
    let (_upstream, stage) = stage_with(impatient()).await;
    let mut stream = connect_with(&stage, &initial_window(0)).await;
    stream.write_all(&request(1, &head())).await.unwrap();
    loop {
        match next(&mut stream).await {
            Some((RST_STREAM, 1, _)) | None => break,
            Some((kind, _, _)) => assert_ne!(kind, DATA),
        }
    }
    serves_others(&stage).await;
}

#[tokio::test]
async fn a_connection_that_takes_nothing_of_what_waits_for_it_is_closed() {
    let (_upstream, stage) = stage_with(impatient()).await;
    // The rest of the answer is with the library, which holds nothing else of the request any more.
    let mut stream = connect_with(&stage, &initial_window(10)).await;
    stream.write_all(&request(1, &head())).await.unwrap();
    let mut taken = 0;
    while let Some((kind, _, payload)) = next(&mut stream).await {
        if kind == DATA {
            taken += payload.len();
        }
    }
    assert_eq!(taken, 10);
    serves_others(&stage).await;
}

#[tokio::test]
async fn an_answer_that_fits_is_read_ahead_of_a_closed_window_and_the_upstream_connection_freed() {
    let (upstream, mut end) = large(FITTING).await;
    let (_upstream, stage) = stage_at(upstream, ProxyOptions::default());
    let mut stream = connect(&stage).await;
    stream.write_all(&[window(0, 1 << 30), request(1, &head())].concat()).await.unwrap();
    tokio::time::timeout(PATIENCE, end.recv()).await.expect("the upstream connection ends").unwrap();
    stream.write_all(&window(1, 1 << 30)).await.unwrap();
    let mut taken = 0;
    while taken < FITTING {
        if let (DATA, 1, payload) = next(&mut stream).await.expect("the connection stays") {
            assert!(payload.iter().all(|byte| *byte == b'x'));
            taken += payload.len();
        }
    }
    assert_eq!(taken, FITTING);
}

#[tokio::test]
async fn a_connection_is_closed_after_its_requests_or_when_it_is_idle() {
    for options in [
        ProxyOptions { keepalive_requests: 2, ..Default::default() },
        ProxyOptions { keepalive_timeout: PAUSE, ..Default::default() },
        ProxyOptions { keepalive_timeout: Duration::ZERO, ..Default::default() },
    ] {
        let (_upstream, stage) = stage_with(options).await;
        let mut stream = TcpStream::connect(stage.address).await.unwrap();
        // Both come at once, before an idle connection could be closed.
        stream.write_all(&[start(&[]), request(1, &head()), request(3, &head())].concat()).await.unwrap();
        let (mut ended, mut error) = (0, None);
        while let Some((kind, _, payload)) = next(&mut stream).await {
            match kind {
                DATA if !payload.is_empty() => ended += 1,
                GOAWAY => error = Some(payload[7]),
                // The proxy waits for its answer before it says which request is the last.
                PING => stream.write_all(&frame(PING, 1, 0, &payload)).await.unwrap(),
                _ => {}
            }
        }
        assert_eq!((ended, error), (2, Some(0)), "both are answered, and the end is no error");
    }
}

#[tokio::test]
async fn a_client_that_is_answered_early_is_not_reset_while_it_sends_its_body() {
    let options = ProxyOptions { client_max_body_size: 4, ..ProxyOptions::default() };
    let (_upstream, stage) = stage_with(options).await;
    let mut stream = connect(&stage).await;
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "a.test"),
        ("content-length", "1048576"),
    ];
    let head: Vec<u8> = fields.iter().flat_map(|(name, value)| field(name, value)).collect();
    // The windows of the proxy hold once they have been acknowledged.
    let acknowledged = frame(SETTINGS, 1, 0, &[]);
    stream.write_all(&[acknowledged, frame(HEADERS, END_HEADERS, 1, &head)].concat()).await.unwrap();
    while !matches!(next(&mut stream).await.expect("the connection stays"), (DATA, 1, page) if !page.is_empty()) {}
    // As much as its window allows: it is opened again while nobody wants the body.
    let parts = 1_048_576 / 16_384;
    for number in 1..=parts {
        let flags = if number == parts { END_STREAM } else { 0 };
        stream.write_all(&frame(DATA, flags, 1, &[0; 16_384])).await.unwrap();
    }
    stream.write_all(&frame(PING, 0, 0, &[7; 8])).await.unwrap();
    let (mut opened, mut heard) = (false, false);
    while !opened || !heard {
        match next(&mut stream).await.expect("the connection stays") {
            (RST_STREAM, _, why) => panic!("reset: {why:?}"),
            (WINDOW_UPDATE, 0, _) => opened = true,
            (PING, _, bytes) => heard |= bytes == [7; 8],
            _ => {}
        }
    }
    stream.write_all(&request(3, &self::head())).await.unwrap();
    while !matches!(next(&mut stream).await.expect("the connection stays"), (HEADERS, 3, _)) {}
}

use super::*;
use gwctl_http1::names::{REFERER, USER_AGENT};
use gwctl_http1::{Headers, Value as HeaderText};
use gwctl_plugins::{Body, Client, EmptyDirectory, Node, Request, Response, Scheme, Source, Times};
use http::{Method, StatusCode, Version};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};

pub(crate) fn answered(status: u16) -> Context {
    let ip = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let client = Client { peer: ip, peer_port: 40000, ip, port: 40000, trusted: false, server_name: None };
    let request = Request {
        method: Method::GET,
        uri: "/".parse().unwrap(),
        version: Version::HTTP_11,
        headers: Headers::new(),
        scheme: Scheme::Http,
        host: "example.test".to_owned(),
        port: 8000,
        body: Body::Empty,
    };
    let node = Arc::new(Node::new("node", "host", Arc::new(EmptyDirectory)));
    let mut context =
        Context::new(node, gwctl_http1::Hex::of(0, 0), client, request, Times::start(std::time::Instant::now(), 0));
    let status = StatusCode::from_u16(status).unwrap();
    context.response = Some(Response { status, headers: Headers::new(), source: Source::Service });
    context.response_size = 12;
    context.times.started_millis = 1_800_000_000_123;
    context
}

fn written(log: AccessLog, collector: Collector, path: &Path) -> String {
    drop(collector);
    log.finish();
    std::fs::read_to_string(path).unwrap()
}

fn options(path: &Path, format: AccessFormat, sample: f64) -> AccessLogOptions {
    AccessLogOptions { target: AccessTarget::File(path.to_owned()), format, sample }
}

#[test]
fn a_line_is_that_of_nginx_and_holds_no_query_and_no_forged_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("logs/access.log");
    let log = AccessLog::start(options(&path, AccessFormat::Combined, 1.0)).unwrap();
    let collector = log.collectors().collector();
    let mut context = answered(200);
    context.request.uri = "/a%20b?apikey=secret".parse().unwrap();
    let headers = &mut context.request.headers;
    headers.insert(USER_AGENT, HeaderText::new(b"ag\"ent\xff").unwrap());
    headers.insert(REFERER, HeaderText::from_static("https://a.example/?token=secret"));
    collector.add(&context);
    let text = written(log, collector, &path);
    assert_eq!(
        text,
        "127.0.0.1 - - [15/Jan/2027:08:00:00 +0000] \"GET /a%20b HTTP/1.1\" 200 12 \"https://a.example/\" \
         \"ag\\x22ent\\xFF\" kong_request_id: \"00000000000000000000000000000000\"\n"
    );
}

#[test]
fn a_json_line_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.json");
    let log = AccessLog::start(options(&path, AccessFormat::Json, 1.0)).unwrap();
    let collector = log.collectors().collector();
    collector.add(&answered(404));
    let line: Value = serde_json::from_str(&written(log, collector, &path)).unwrap();
    assert_eq!((line["status"].as_u64(), line["time"].as_str()), (Some(404), Some("2027-01-15T08:00:00.123Z")));
    assert_eq!((line["source"].as_str(), line["route"].is_null()), (Some("service"), true));
}

#[test]
fn a_part_of_the_requests_is_written_and_every_failure() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let log = AccessLog::start(options(&path, AccessFormat::Combined, 0.25)).unwrap();
    let collector = log.collectors().collector();
    for _ in 0..100 {
        collector.add(&answered(200));
    }
    for _ in 0..10 {
        collector.add(&answered(502));
    }
    let text = written(log, collector, &path);
    let count = |status: &str| text.lines().filter(|line| line.contains(status)).count();
    assert_eq!((count("\" 200 "), count("\" 502 ")), (25, 10));
}

#[test]
fn a_file_that_was_moved_is_opened_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (path, moved) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
    let mut out = Out::open(&AccessTarget::File(path.clone())).unwrap();
    out.write(b"one\n").unwrap();
    assert!(!out.moved());
    std::fs::rename(&path, &moved).unwrap();
    assert!(out.moved());
    let dropped = Arc::default();
    let mut writer =
        Writer { out, target: AccessTarget::File(path.clone()), dropped, reopen: Arc::default(), told: None };
    writer.look();
    writer.out.write(b"two\n").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\n");
    assert_eq!(std::fs::read_to_string(&moved).unwrap(), "one\n");
}

#[test]
fn lines_are_dropped_and_counted_rather_than_waited_for() {
    let (buffers, waiting) = sync_channel(1);
    let dropped = Arc::<AtomicU64>::default();
    let collector = Collector {
        format: AccessFormat::Combined,
        sample: 1.0,
        due: Cell::new(0.0),
        buffer: RefCell::default(),
        buffers,
        dropped: dropped.clone(),
    };
    for _ in 0..3 {
        collector.add(&answered(200));
        collector.flush();
    }
    assert_eq!(dropped.load(Ordering::Relaxed), 2);
    drop(waiting);
}

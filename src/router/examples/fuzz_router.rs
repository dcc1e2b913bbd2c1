//! Random request targets and routes: targets are normalised in one and only one way, routes are compiled or refused, and
//! a router of them finds what it explains.
//!
//! `cargo run -p gwctl-router --example fuzz_router -- --seconds 60 [path|build]`

use gwctl_entities::view::{Route, from_record};
use gwctl_router::{Flavor, NoHeaders, Request, RequestPath, RouteEntry, Router, check_target};
use gwctl_testkit::fuzz::{Target, main as fuzz};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;

const PATHS: &[&str] = &["/a/./b/../c//d?x=1", "/%61%2fb%2F/%2e%2e/%C3%BC", "/a/%2E/..;/%25%32%35/?", "/../..//"];
/// Four lines each: host, path, expression, regex of a header.
const ROUTES: &[&str] = &[
    "*.a.test:80\n/a/b\nhttp.path ^= \"/a\" && http.host == \"b.a.test\"\nv\\d",
    "b.*\n~/a/(?<id>\\w+)$\n!(lower(http.path) ~ \"^/a|b\") || http.path.segments.0_2 =^ \"b/c\"\n",
    "b.a.test\n~/(?!x).*\nnet.src.ip in 10.0.0.0/8 && any(http.headers.x) contains r#\"a\"#\n(?i)a|b",
];
const WORDS: &[&str] = &[
    "/",
    "//",
    ".",
    "..",
    "%2e",
    "%2F",
    "%",
    "%25",
    "%00",
    "%zz",
    "%ff",
    "?",
    "#",
    "\u{fc}",
    "\0",
    "*",
    ":",
    "~",
    "\n",
    "(",
    ")",
    "[",
    "]",
    "|",
    "\\",
    "\\d",
    "{9}",
    "+",
    "^",
    "$",
    "(?<a>",
    "(?=",
    "\"",
    "r#\"",
    "\"#",
    "&&",
    "||",
    "!(",
    "==",
    "!=",
    "^=",
    "=^",
    " in ",
    " not in ",
    " contains ",
    "http.path",
    "http.host",
    "http.headers.a",
    "tls.sni",
    "http.path.segments.1",
    "net.dst.port",
    "lower(",
    "any(",
    "::1/128",
    "0x1F",
    "9999999999999999999",
];

/// Targets that are let through are normalised to what stays as it is.
fn normalise(input: &[u8]) {
    let path = RequestPath::normalise(input);
    if !input.starts_with(b"/") || input.contains(&b'#') || check_target(input).is_err() {
        return;
    }
    let text = path.as_bytes();
    assert!(text.starts_with(b"/"), "lost its first slash");
    assert!(!text.windows(2).any(|pair| pair == b"//"), "slashes in a row");
    let dots = |segment: &[u8]| matches!(segment, b"." | b"..");
    assert!(!text.split(|byte| *byte == b'/').any(dots), "a dot segment is left");
    assert_eq!(RequestPath::normalise(text).as_bytes(), text, "normalised twice it is another path");
}

fn build(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let mut lines = text.splitn(4, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (host, path, expression, header) = (line(), line(), line(), line());
    let row = |number: u32, mut fields: Value| {
        fields["id"] = json!(format!("{number:08}-0000-4000-8000-000000000000"));
        fields["protocols"] = json!(["http", "https"]);
        let record = fields.as_object().expect("an object was made");
        let route: Route = from_record(record).expect("the fields are those of a route");
        RouteEntry { route: Arc::new(route), service: None }
    };
    let rows = [
        row(1, json!({"hosts": [host], "paths": [path]})),
        row(2, json!({"paths": [path, "/a"]})),
        row(3, json!({"expression": expression})),
        row(4, json!({"headers": {"x": [format!("~*{header}")]}})),
    ];
    for flavor in [Flavor::TraditionalCompatible, Flavor::Traditional, Flavor::Expressions] {
        let (router, _) = Router::build(flavor, rows.clone()).expect("the flavor is supported");
        for (host, target) in [("b.a.test", path), (host, "/a/b/c"), ("b.a.test:80", "/a")] {
            let path = RequestPath::normalise(target.as_bytes());
            let request = Request {
                https: false,
                method: "GET",
                host,
                port: 80,
                path: &path,
                headers: &NoHeaders,
                sni: None,
                source: None,
                destination_ip: None,
            };
            let found = router.find(&request).map(|found| (found.upstream_path(), found.route.id.clone()));
            let explained = router.explain(&request);
            let winner = explained.winner().map(|verdict| &verdict.route.id);
            assert_eq!(winner, found.as_ref().map(|(_, id)| id), "found and explained otherwise");
        }
    }
}

fn main() -> ExitCode {
    fuzz(&[
        Target { name: "path", seeds: PATHS, words: WORDS, run: &normalise },
        Target { name: "build", seeds: ROUTES, words: WORDS, run: &build },
    ])
}

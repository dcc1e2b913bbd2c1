//! Declarative configuration that cannot be read or makes no sense: over the Admin API and from a file.

use super::{GWCTL, assert_no_panic, assert_says, is_well, peak_memory};
use gwctl_testkit::{Answer, Cluster, Node, NodeOptions, get};
use std::io::Write;

/// Memory a node may take while it refuses documents of a few MiB, in MiB.
const MEMORY_LIMIT: u64 = 300;

const GOOD: &str = "_format_version: \"3.0\"\nservices:\n- name: kept\n  host: kept.test\n";

/// A document and what its refusal must say.
struct Bad {
    text: Vec<u8>,
    says: &'static [&'static str],
}

fn bad_documents() -> Vec<Bad> {
    let deep = |open: &str, close: &str| format!("a: {}{}", open.repeat(100_000), close.repeat(100_000)).into_bytes();
    let text = |text: &str| text.as_bytes().to_vec();
    let cases: Vec<(Vec<u8>, &'static [&'static str])> = vec![
        (text("_format_version: \"3.0\"\nservices: [\n- a"), &["failed parsing", "3:"]),
        (text("{\"_format_version\": \"3.0\", \"services\": [}"), &["failed parsing", "1:"]),
        (text("a\tb: [}"), &["failed parsing"]),
        (text("just words"), &["expected an object"]),
        (text("- a\n- b\n"), &["expected an object"]),
        (
            text("_format_version: \"3.0\"\nservices:\n- name: x\n  hots: y\n  port: high\n"),
            &["hots", "unknown field", "expected an integer", "required field missing"],
        ),
        (text("_format_version: \"3.0\"\nservices: none\n"), &["services", "expected"]),
        (text("_format_version: \"3.0\"\nsurvices: []\n"), &["survices", "unknown field"]),
        (text("_format_version: \"9.9\"\n"), &["_format_version"]),
        (b"_format_version: \"3.0\"\nservices:\n- name: a\xff\n  host: h\n".to_vec(), &["3:10", "UTF-8"]),
        (deep("[", "]"), &["1:", "limit"]),
        (deep("{a: ", "}"), &["1:", "128 levels"]),
        ("- ".repeat(100_000).into_bytes(), &["1:", "128 levels"]),
        (format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000)).into_bytes(), &["1:", "limit"]),
        (alias_bomb().into_bytes(), &["aliases", "1000000"]),
    ];
    cases.into_iter().map(|(text, says)| Bad { text, says }).collect()
}

/// Nine lists of ten aliases each: a thousand million values in 400 bytes.
fn alias_bomb() -> String {
    let mut text = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (before, name) in ('a'..='i').zip('b'..='j') {
        text += &format!("{name}: &{name} [{}]\n", vec![format!("*{before}"); 10].join(","));
    }
    text
}

fn db_less(cluster: &Cluster, name: &str) -> NodeOptions {
    cluster.options(name, "traditional").set("database", "off")
}

fn load(port: u16, content_type: &str, text: &[u8]) -> Answer {
    let head = format!(
        "POST /config HTTP/1.1\r\nHost: x\r\nContent-Type: {content_type}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        text.len()
    );
    let mut stream = super::wire::connect(port);
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(text).unwrap();
    gwctl_testkit::read_answer(&mut std::io::BufReader::new(stream)).unwrap()
}

#[test]
fn documents_that_make_no_sense_are_refused_with_place_and_reason_and_change_nothing() {
    let cluster = Cluster::new(GWCTL);
    let node = cluster.start(&db_less(&cluster, "node"));
    let good = load(node.admin(), "text/yaml", GOOD.as_bytes());
    assert_eq!(good.status, 201, "{}", good.body);
    let before = get(node.admin(), "/config").body;
    assert_says(&before, &["kept.test"]);
    for Bad { text, says } in bad_documents() {
        let shown = String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned();
        let answer = load(node.admin(), "text/yaml", &text);
        assert_eq!(answer.status, 400, "{shown}: {}", answer.body);
        assert!(answer.body.len() < 10_000, "the refusal of {shown} has {} bytes", answer.body.len());
        assert_says(&answer.body, says);
        assert_eq!(answer.json()["name"], "invalid declarative configuration");
        assert_eq!(get(node.admin(), "/config").body, before, "after {shown}");
    }
    for text in ["{", "{\"a\": \u{1}}", "", "null", "7"] {
        let answer = load(node.admin(), "application/json", text.as_bytes());
        assert_eq!(
            (answer.status, &answer.body[..11]),
            (400, "{\"message\":\""[..11].as_ref()),
            "{text}: {}",
            answer.body
        );
    }
    assert_eq!(get(node.admin(), "/config").body, before);
    let peak = peak_memory(&node);
    assert!(peak < MEMORY_LIMIT, "{peak} MiB");
    is_well(&node);
}

#[test]
fn of_a_repeated_key_the_last_counts_as_in_kong() {
    let cluster = Cluster::new(GWCTL);
    let node = cluster.start(&db_less(&cluster, "node"));
    let text = "_format_version: \"3.0\"\nservices:\n- name: a\n  host: first.test\n  host: second.test\n";
    assert_eq!(load(node.admin(), "text/yaml", text.as_bytes()).status, 201);
    assert_eq!(get(node.admin(), "/services/a").json()["host"], "second.test");
}

#[test]
fn a_node_does_not_start_with_a_declarative_file_that_makes_no_sense() {
    let cluster = Cluster::new(GWCTL);
    let file = cluster.path("kong.yml");
    let mut cases = bad_documents();
    cases.retain(|case| case.text.len() < 1000 || case.text.starts_with(b"{"));
    for (number, Bad { text, says }) in cases.into_iter().enumerate() {
        std::fs::write(&file, &text).unwrap();
        let options = db_less(&cluster, &format!("node-{number}")).set("declarative_config", file.display());
        let mut node = Node::spawn(cluster.executable(), &options);
        assert_eq!(node.ended().code(), Some(1));
        let log = node.log();
        assert_says(&log, &["error: ", "kong.yml", "hint: "]);
        // From a file the byte that is no UTF-8 is told by the reader of files.
        if std::str::from_utf8(&text).is_ok() {
            assert_says(&log, says);
        }
        assert!(log.len() < 20_000, "{} bytes of log", log.len());
        assert_no_panic(&node);
    }
}

#[test]
fn the_mistakes_of_a_declarative_file_are_told_a_line_each_and_expressions_of_deck_are_warned_of() {
    let cluster = Cluster::new(GWCTL);
    let file = cluster.path("kong.yml");
    let text = "_format_version: \"3.0\"\nservices:\n- {name: a, host: a.test, retires: 2, port: x}\n";
    std::fs::write(&file, text).unwrap();
    let options = db_less(&cluster, "node").set("declarative_config", file.display());
    let mut node = Node::spawn(cluster.executable(), &options);
    assert_eq!(node.ended().code(), Some(1));
    assert_says(
        &node.log(),
        &["\n  services.0.retires: unknown field\n", "\n  services.0.port: expected an integer\n"],
    );
    assert!(!node.log().contains('{'), "{}", node.log());
    let text = "_format_version: \"3.0\"\nconsumers:\n- {username: '${{ env \"DECK_NAME\" }}'}\n";
    std::fs::write(&file, text).unwrap();
    let node = cluster.start(&options);
    assert_says(&node.log(), &["WARN", "expressions of decK", "gwctl convert"]);
}

#[test]
fn a_declarative_file_that_cannot_be_read_is_named() {
    let cluster = Cluster::new(GWCTL);
    for path in [cluster.path("missing.yml"), cluster.path("")] {
        let mut node =
            Node::spawn(cluster.executable(), &db_less(&cluster, "node").set("declarative_config", path.display()));
        assert_eq!(node.ended().code(), Some(1));
        assert_says(&node.log(), &["error: ", "declarative_config", &path.display().to_string()]);
        assert_no_panic(&node);
    }
}

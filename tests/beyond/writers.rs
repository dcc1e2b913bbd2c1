//! Several processes that write the same things at once.

use super::{GWCTL, control_plane, version};
use gwctl_testkit::get;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const ROUNDS: usize = 6;
const SERVICES: usize = 12;

/// A file in which some of the same services have routes, consumers and keys; which ones is the writer's own choice.
fn file(folder: &Path, writer: usize, round: usize) -> String {
    let mut text = String::from("_format_version: '3.0'\nservices:\n");
    for number in (0..SERVICES).filter(|number| !(number + round + writer).is_multiple_of(3)) {
        let _ = writeln!(
            text,
            "- {{name: s{number}, host: w{writer}.test, routes: [{{name: r{number}, paths: [/p{number}]}}]}}"
        );
    }
    text += "consumers:\n";
    for number in (0..SERVICES).filter(|number| !(number + round * 2 + writer).is_multiple_of(4)) {
        let _ = writeln!(text, "- {{username: u{number}, keyauth_credentials: [{{key: k{number}}}]}}");
    }
    let path = folder.join(format!("{writer}-{round}.yaml"));
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn apply(admin: u16, path: &str) -> Child {
    let url = format!("http://127.0.0.1:{admin}");
    Command::new(GWCTL)
        .args(["apply", "--addr", &url, "-f", path, "--prune", "--yes"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn rows(admin: u16, path: &str) -> Vec<Value> {
    get(admin, path).json()["data"].as_array().unwrap().clone()
}

fn texts<'a>(rows: &'a [Value], field: &str) -> Vec<&'a str> {
    rows.iter().map(|row| row[field].as_str().unwrap()).collect()
}

/// Every unique value is there once, and whatever refers to something refers to what is there.
fn nothing_is_broken(admin: u16) {
    let (services, routes) = (rows(admin, "/services?size=1000"), rows(admin, "/routes?size=1000"));
    let (consumers, keys) = (rows(admin, "/consumers?size=1000"), rows(admin, "/key-auths?size=1000"));
    for (rows, field) in [(&services, "name"), (&routes, "name"), (&consumers, "username"), (&keys, "key")] {
        let values = texts(rows, field);
        assert_eq!(values.iter().collect::<BTreeSet<_>>().len(), values.len(), "{field}: {values:?}");
    }
    for (children, field, parents) in [(&routes, "service", &services), (&keys, "consumer", &consumers)] {
        let ids = texts(parents, "id");
        assert!(children.iter().all(|child| ids.contains(&child[field]["id"].as_str().unwrap())), "{children:?}");
    }
}

#[test]
fn processes_that_apply_different_files_at_once_break_nothing() {
    let (cp, cluster) = control_plane();
    let before = version(cp.admin());
    for round in 0..ROUNDS {
        let writers: Vec<Child> =
            (0..3).map(|writer| apply(cp.admin(), &file(&cluster.path(""), writer, round))).collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.wait_with_output().unwrap()).collect();
        // One whose plan the others made wrong says so; it has then changed nothing.
        for out in &ended {
            let words = String::from_utf8_lossy(&out.stderr);
            assert!(out.status.success() || words.contains("changed"), "{:?}: {words}", out.status.code());
        }
        assert!(ended.iter().any(|out| out.status.success()), "somebody gets through");
        nothing_is_broken(cp.admin());
    }
    assert!(version(cp.admin()) > before);
    assert!(!cp.log().contains("panicked"), "{}", cp.log());
}

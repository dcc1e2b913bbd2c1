//! Hostile input and failing surroundings: whatever is thrown at a node, it says what is wrong, loses nothing it
//! acknowledged, keeps its memory bounded, and goes on serving.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod bodies;
mod caches;
mod clients;
mod crash;
mod disk;
mod documents;
mod garbage;
mod materials;
mod peers_by_rows;
mod peers_of_control_plane;
mod peers_of_data_plane;
mod stopping;
mod wire;

use gwctl_testkit::{Node, get};

const GWCTL: &str = env!("CARGO_BIN_EXE_gwctl");

/// Most memory the process has ever used, in MiB.
fn peak_memory(node: &Node) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// The node answers and nothing in it has panicked.
fn is_well(node: &Node) {
    let port = node.port("admin_listen").or_else(|| node.port("status_listen")).unwrap();
    assert_eq!(get(port, "/status").status, 200);
    assert_no_panic(node);
}

fn assert_no_panic(node: &Node) {
    assert!(!node.log().contains("panicked"), "{}", node.log());
}

/// Every part is in the text.
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
}

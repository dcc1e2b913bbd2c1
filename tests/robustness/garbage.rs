//! Folders that hold something no node has written, or only a part of it.

use super::{GWCTL, assert_no_panic, assert_says};
use gwctl_testkit::{Cluster, Node, NodeOptions, Request, Upstream, get, post, request, wait_for, wait_until};
use serde_json::json;
use std::path::{Path, PathBuf};

/// The data file below a node's prefix.
fn data_file(prefix: &Path) -> PathBuf {
    let folders = std::fs::read_dir(prefix).unwrap();
    folders.map(|entry| entry.unwrap().path().join("data.mdb")).find(|file| file.exists()).expect("a data file")
}

/// Bytes without meaning, the same at each run.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

/// Ways to ruin a data file.
fn damages(whole: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let overwritten = [&whole[..8192], &noise(whole.len() - 8192)].concat();
    vec![
        ("cut after the meta pages", whole[..8192].to_vec()),
        ("cut in half", whole[..whole.len() / 2].to_vec()),
        ("cut in the first page", whole[..100].to_vec()),
        ("noise", noise(100_000)),
        ("noise behind the meta pages", overwritten),
    ]
}

/// Starts a node as a supervisor does: again when it dies. LMDB maps its file, and touching what a damaged one leads to
/// may end the process; this must not go on for ever.
fn supervised(cluster: &Cluster, options: &NodeOptions) -> Node {
    for _ in 0..3 {
        let mut node = Node::spawn(cluster.executable(), options);
        let ask = Request { method: "GET", path: "/status", ..Request::default() };
        let lives = wait_for("the node to answer or to end", || match node.has_ended() {
            true => Some(false),
            false => request(node.status(), &ask).is_ok().then_some(true),
        });
        if lives {
            return node;
        }
    }
    panic!("the node died at three starts");
}

#[test]
fn a_damaged_store_is_refused_with_the_way_out_and_left_as_it_is() {
    let cluster = Cluster::new(GWCTL);
    let options = cluster.options("node", "traditional");
    let mut node = cluster.start(&options);
    for number in 0..20 {
        assert_eq!(post(node.admin(), "/services", &json!({"name": format!("s{number}"), "host": "h"})).status, 201);
    }
    assert!(node.stop().success());
    let file = data_file(&options.prefix);
    let whole = std::fs::read(&file).unwrap();
    for (damage, bytes) in damages(&whole) {
        std::fs::write(&file, &bytes).unwrap();
        let mut node = Node::spawn(cluster.executable(), &options);
        assert_eq!(node.ended().code(), Some(1), "{damage}: {}", node.log());
        let log = node.log();
        assert_says(&log, &["error: cannot open the store", "is damaged", "hint: move", "restore a backup"]);
        assert_no_panic(&node);
        assert!(std::fs::read(&file).unwrap() == bytes, "{damage}: the evidence was changed");
    }
    std::fs::write(&file, &whole).unwrap();
    let node = cluster.start(&options);
    assert_eq!(get(node.admin(), "/services/s19").status, 200, "the whole file is as good as before");
}

#[test]
fn a_damaged_cache_is_thrown_away_with_a_warning_and_filled_again() {
    let cluster = Cluster::new(GWCTL);
    let upstream = Upstream::start();
    let cp = cluster.start(&cluster.options("cp", "control_plane"));
    let options = cluster.options("dp", "data_plane");
    let mut dp = cluster.start(&options);
    let echo = json!({"name": "echo", "host": "127.0.0.1", "port": upstream.port});
    assert_eq!(post(cp.admin(), "/services", &echo).status, 201);
    assert_eq!(post(cp.admin(), "/services/echo/routes", &json!({"paths": ["/echo"]})).status, 201);
    wait_until("the route to answer", || get(dp.proxy(), "/echo").status == 200);
    dp.kill();
    let file = data_file(&options.prefix);
    let whole = std::fs::read(&file).unwrap();
    for (damage, bytes) in damages(&whole) {
        std::fs::write(&file, &bytes).unwrap();
        let before = dp.log().len();
        dp = supervised(&cluster, &options);
        wait_until("the cache to be filled again", || get(dp.proxy(), "/echo").status == 200);
        assert!(dp.log()[before..].contains("WARN"), "{damage}: {}", &dp.log()[before..]);
        assert_says(&dp.log()[before..], &["cache"]);
        assert_no_panic(&dp);
        dp.kill();
    }
}

//! Damaged caches of data planes, whichever protocol filled them: noticed before anything of them is served, refused
//! with the folder and the way out, and filled again by a control plane.

use super::{GWCTL, assert_no_panic, assert_says};
use gwctl_testkit::{Cluster, Node, NodeOptions, Request, Upstream, get, post, request, wait_until};
use serde_json::json;

/// In a row of every cache here.
const MARK: &[u8] = b"mark-of-the-row";

/// Sets `cluster_rpc` and `cluster_gwctl_sync`.
fn of_protocol(options: NodeOptions, [rpc, own]: [&str; 2]) -> NodeOptions {
    options.set("cluster_rpc", rpc).set("cluster_incremental_sync", rpc).set("cluster_gwctl_sync", own)
}

/// A kind of damage and what it does to the bytes from the mark on; wherever a row was once it is done to.
type Damage = (&'static str, fn(&mut [u8]));

const DAMAGES: [Damage; 3] = [
    ("a flipped bit", |row| row[2] ^= 1),
    ("a row that is cut off", |row| row[4..40].fill(0)),
    ("a row that became another", |row| row[..MARK.len()].copy_from_slice(b"another-row-now")),
];

fn damaged(whole: &[u8], damage: fn(&mut [u8])) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let places: Vec<usize> =
        whole.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK).map(|(place, _)| place).collect();
    assert!(!places.is_empty(), "the row is in the file");
    places.into_iter().for_each(|place| damage(&mut bytes[place..]));
    bytes
}

fn with_key(dp: &Node, key: &str) -> u16 {
    let asked = Request { method: "GET", path: "/guarded", headers: &[("apikey", key)], body: None };
    request(dp.proxy(), &asked).map_or(0, |answer| answer.status)
}

#[test]
fn a_damaged_cache_of_our_own_sync_is_refused_and_the_node_converges() {
    refuse_and_converge("gwctl", ["off", "on"]);
}

#[test]
fn a_damaged_cache_of_protocol_v2_is_refused_and_the_node_converges() {
    refuse_and_converge("v2", ["on", "off"]);
}

#[test]
fn a_damaged_cache_of_protocol_v1_is_refused_and_the_node_converges() {
    refuse_and_converge("v1", ["off", "off"]);
}

fn refuse_and_converge(protocol: &str, settings: [&str; 2]) {
    let upstream = Upstream::start();
    let cluster = Cluster::new(GWCTL);
    let mut cp = cluster.start(&of_protocol(cluster.options("cp", "control_plane"), settings));
    let create = |path: &str, body: serde_json::Value| {
        let answer = post(cp.admin(), path, &body);
        assert_eq!(answer.status, 201, "{path}: {}", answer.body);
    };
    create("/services", json!({"name": "echo", "host": "127.0.0.1", "port": upstream.port}));
    create("/services/echo/routes", json!({"name": "guarded", "paths": ["/guarded"]}));
    create("/routes/guarded/plugins", json!({"name": "key-auth"}));
    create("/consumers", json!({"username": "alice", "custom_id": std::str::from_utf8(MARK).unwrap()}));
    create("/consumers/alice/key-auth", json!({"key": "alices-key"}));
    let options = of_protocol(cluster.options("dp", "data_plane"), settings);
    let mut dp = cluster.start(&options);
    wait_until("the key to be known", || with_key(&dp, "alices-key") == 200);
    assert!(dp.stop().success());
    let (folder, file) = (options.prefix.join("dbless.lmdb"), options.prefix.join("dbless.lmdb/data.mdb"));
    let whole = std::fs::read(&file).unwrap();
    for (kind, damage) in DAMAGES {
        assert!(cp.stop().success());
        std::fs::write(&file, damaged(&whole, damage)).unwrap();
        let before = dp.log().len();
        dp.restart();
        let log = dp.log()[before..].to_owned();
        let place = folder.display().to_string();
        assert_says(&log, &["the cached configuration cannot be used", &place, "put back a copy of the folder"]);
        assert!(!log.contains("serving the cached configuration"), "{protocol}, {kind}: {log}");
        assert_eq!(with_key(&dp, "alices-key"), 404, "{protocol}, {kind}: nothing of it is served");
        let hash = get(dp.status(), "/status").json()["configuration_hash"].clone();
        assert_eq!(hash, serde_json::Value::Null, "{protocol}, {kind}: its hash is gone with it");
        cp.restart();
        wait_until("everything to come again", || with_key(&dp, "alices-key") == 200);
        wait_until("the fleet to be in sync", || {
            let own = get(dp.status(), "/status").json()["configuration_hash"].clone();
            let member = &get(cp.admin(), "/gwctl/fleet").json()["items"][0];
            member["protocol"] == protocol && member["connected"] == true && member["config_hash"] == own
        });
        assert!(dp.stop().success());
        let before = dp.log().len();
        dp.restart();
        assert_eq!(with_key(&dp, "alices-key"), 200, "{protocol}, {kind}: from the cache, filled again");
        assert!(dp.log()[before..].contains("serving the cached configuration"));
        assert_no_panic(&dp);
        assert!(dp.stop().success());
    }
}

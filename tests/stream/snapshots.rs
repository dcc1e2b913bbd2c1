//! Whole configurations: large ones, and nodes that die while one comes in.

use super::fleet;
use gwctl_entities::{NodeKind, Registry, RegistryOptions};
use gwctl_store::{DataPlaneCache, Opening, Portion};
use gwctl_testkit::{Cluster, Fleet, Node, Protocol, Relay, get, post, wait_until};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Consumers of the large configuration: some pieces of a copy.
const CONSUMERS: usize = 6000;

/// Moments at which the node is killed while the configuration comes in.
const KILLS: u32 = 10;
/// Bytes of the link after which it is killed first, twice as many the next time: no copy is as small as that.
const FIRST_KILL: u32 = 8000;

fn consumers(port: u16) {
    for first in (0..CONSUMERS).step_by(2000) {
        let create = |number: usize| {
            let body = json!({"username": format!("consumer-{number}"), "tags": ["x".repeat(100)]});
            json!({"action": "create", "entity": "consumers", "body": body})
        };
        let operations: Vec<Value> = (first..first + 2000).map(create).collect();
        let answer = post(port, "/gwctl/changes?results=none", &json!({"operations": operations}));
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
}

/// What a cache holds: its version, and how many consumers. Everything in it agrees with its digest.
fn cached(folder: &Path) -> (u64, usize) {
    let options = RegistryOptions {
        kind: NodeKind::DataPlane,
        router_flavor: "traditional_compatible".to_owned(),
        plugins: None,
    };
    let registry = Arc::new(Registry::bundled(&options));
    let cache = DataPlaneCache::open(folder, registry, DataPlaneCache::FORMAT).unwrap();
    assert!(!matches!(cache.opening(), Opening::Discarded(_)), "{:?}", cache.opening());
    assert_eq!(cache.damage().unwrap(), None, "the rows are those of the version");
    let loaded = cache.load(Portion::Whole).unwrap().unwrap_or_default();
    let version = cache.stand().unwrap().map_or(0, |stand| stand.version);
    (version, loaded.records.get("consumers").map_or(0, Vec::len))
}

fn version(cp: &Node) -> u64 {
    get(cp.admin(), "/gwctl/fleet").json()["version"].as_u64().unwrap()
}

#[test]
fn a_node_killed_at_any_moment_of_a_copy_has_the_old_configuration_or_the_new_one() {
    let cluster = Cluster::new(super::GWCTL);
    let mut cp = cluster.start(&cluster.options("cp", "control_plane"));
    post(cp.admin(), "/consumers", &json!({"username": "old"}));
    let relay = Relay::start(cluster.cluster_port());
    let options = cluster.options("dp", "data_plane");
    let mut dp = cluster.start(&options.set("cluster_control_plane", format!("127.0.0.1:{}", relay.port)));
    let folder = cluster.path("dp").join("dbless.lmdb");
    wait_until("the old configuration", || dp.log().contains("configuration in force"));
    let old = version(&cp);
    dp.stop();
    cp.stop();
    assert_eq!(cached(&folder), (old, 1));
    // A store of its own, so that the node is given a copy of everything.
    let cp = cluster.start(&cluster.options("other", "control_plane"));
    consumers(cp.admin());
    let new = version(&cp);
    let (mut cut_short, mut finished) = (0, 0);
    for kill in 0..KILLS {
        let logged = dp.log().len();
        // Some die when hardly anything has come, others when almost everything is there.
        relay.hold_after(FIRST_KILL << kill);
        dp.restart();
        wait_until("the copy to be held up", || relay.is_held() || dp.log()[logged..].contains("in force"));
        // Some die at once, others when they have done with what has come.
        let until = Instant::now() + Duration::from_millis(u64::from(kill % 3) * 100);
        wait_until("the moment of the kill", || Instant::now() >= until);
        dp.kill();
        relay.cut();
        relay.hold(false);
        match cached(&folder) {
            (version, 1) if version == old => cut_short += 1,
            (version, CONSUMERS) if version == new => finished += 1,
            other => panic!("kill {kill}: {other:?}, {old} is old and {new} is new\n{}", &dp.log()[logged..]),
        }
        if finished > 0 {
            break;
        }
    }
    assert!(cut_short > 0, "{finished} copies came to their end before the first kill");
    dp.restart();
    let fleet = Fleet::of(cluster, Protocol::Gwctl, cp, vec![dp]);
    fleet.in_sync();
    let mut dp = fleet.dps.into_iter().next().unwrap();
    dp.stop();
    assert_eq!(cached(&folder).1, CONSUMERS);
}

#[test]
fn a_copy_of_rows_that_change_meanwhile_comes_out_right() {
    let mut fleet = fleet(0);
    consumers(fleet.cp.admin());
    let options = fleet.cluster.options("dp", "data_plane");
    fleet.join(&options);
    for number in 0..40 {
        fleet.route(&format!("/r/{number}"));
    }
    fleet.in_sync();
    fleet.serves("/r/39", 200);
    let log = fleet.dps[0].log();
    assert_eq!(fleet.copies(&log), 1, "{log}");
}

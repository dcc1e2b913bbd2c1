//! A cluster that is kept in sync by gwctl's own protocol, as real processes: the default between nodes of gwctl.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod equality;
mod failures;
mod log_level;
mod several;
mod snapshots;

use gwctl_testkit::{Cluster, Fleet, NodeOptions, Protocol, get, wait_until};

const GWCTL: &str = env!("CARGO_BIN_EXE_gwctl");

fn fleet(data_planes: usize) -> Fleet {
    Fleet::start(GWCTL, Protocol::Gwctl, data_planes)
}

#[test]
fn the_fleet_shows_how_each_node_is_kept_up_to_date_and_how_fast() {
    let fleet = fleet(1);
    fleet.in_sync();
    for number in 0..5 {
        fleet.route(&format!("/r/{number}"));
        fleet.in_sync();
    }
    let member = fleet.members().remove(0);
    assert_eq!(member["protocol"], "gwctl", "{member}");
    assert_eq!(member["state"], "online", "{member}");
    assert!(member["protocol_reason"].as_str().unwrap().contains("cluster_gwctl_sync"), "{member}");
    let lags = &member["lags"];
    assert!(lags["reports"].as_u64().unwrap() >= 5, "{member}");
    assert!(lags["p50_millis"].as_u64() <= lags["p99_millis"].as_u64(), "{member}");
    assert!(lags["p99_millis"].as_u64() <= lags["max_millis"].as_u64(), "{member}");
    assert!(member["stored_micros"].as_u64() <= member["active_micros"].as_u64(), "{member}");
    let rows = get(fleet.cp.admin(), "/clustering/data-planes").json();
    assert_eq!(rows["data"][0]["sync_status"], "normal", "{rows}");
    assert_eq!(rows["data"][0]["config_hash"], member["config_hash"], "{rows}");
}

#[test]
fn either_end_can_keep_to_protocol_v1_and_the_reason_is_shown() {
    for (off_at_cp, reason) in [(true, "off on this control plane"), (false, "does not offer")] {
        let cluster = Cluster::new(GWCTL);
        let set = |options: NodeOptions, off: bool| options.set("cluster_gwctl_sync", if off { "off" } else { "on" });
        let cp = cluster.start(&set(cluster.options("cp", "control_plane"), off_at_cp));
        let dp = cluster.start(&set(cluster.options("dp", "data_plane"), !off_at_cp));
        let fleet = Fleet::of(cluster, Protocol::Gwctl, cp, vec![dp]);
        fleet.route("/x");
        fleet.serves("/x", 200);
        let member = fleet.members().remove(0);
        assert_eq!(member["protocol"], "v1", "{member}");
        assert!(member["protocol_reason"].as_str().unwrap().contains(reason), "{member}");
    }
}

#[test]
fn with_protocol_v2_on_it_takes_its_place_and_calls_go_beside_it() {
    let cluster = Cluster::new(GWCTL);
    let v2 = |options: NodeOptions| options.set("cluster_rpc", "on").set("cluster_incremental_sync", "on");
    let cp = cluster.start(&v2(cluster.options("cp", "control_plane")));
    let dp = cluster.start(&v2(cluster.options("dp", "data_plane")));
    let fleet = Fleet::of(cluster, Protocol::Gwctl, cp, vec![dp]);
    fleet.route("/x");
    fleet.serves("/x", 200);
    fleet.in_sync();
    let member = fleet.members().remove(0);
    assert_eq!(member["protocol"], "gwctl", "{member}");
    let path = format!("/clustering/data-planes/{}/log-level", member["id"].as_str().unwrap());
    wait_until("the log level to be told", || get(fleet.cp.admin(), &path).status == 200);
    fleet.route("/y");
    fleet.serves("/y", 200);
    fleet.in_sync();
    assert_eq!(fleet.members()[0]["protocol"], "gwctl");
}

#[test]
fn a_node_goes_from_v1_to_our_own_sync_and_back() {
    let cluster = Cluster::new(GWCTL);
    let cp = cluster.start(&cluster.options("cp", "control_plane"));
    let options = cluster.options("dp", "data_plane");
    let dp = cluster.start(&options.clone().set("cluster_gwctl_sync", "off"));
    let mut fleet = Fleet::of(cluster, Protocol::Gwctl, cp, vec![dp]);
    for (path, setting, protocol) in [("/one", "on", "gwctl"), ("/two", "off", "v1"), ("/three", "on", "gwctl")] {
        fleet.route(path);
        fleet.serves(path, 200);
        fleet.dps[0].stop();
        fleet.dps[0] = fleet.cluster.start(&options.clone().set("cluster_gwctl_sync", setting));
        assert_eq!(fleet.dps[0].ask(path).status, 200, "at once, from the cache");
        wait_until("the node to be back", || {
            let member = fleet.members().remove(0);
            member["connected"] == true && member["protocol"] == protocol
        });
    }
    fleet.route("/four");
    fleet.serves("/four", 200);
    fleet.in_sync();
}

//! Nodes that die and come back.

use super::{Fleet, answer, applied};
use gwctl_testkit::get;

#[test]
fn a_killed_data_plane_serves_at_once_and_catches_up_by_changes_alone() {
    let mut fleet = Fleet::start(1);
    fleet.route("/before");
    fleet.serves("/before", 200);
    fleet.in_sync();
    fleet.dps[0].kill();
    for number in 0..5 {
        fleet.route(&format!("/missed/{number}"));
    }
    let logged = fleet.dps[0].log().len();
    fleet.dps[0].restart();
    assert_eq!(answer(&fleet.dps[0], "/before").status, 200, "at once, from the cache");
    fleet.serves("/missed/4", 200);
    fleet.in_sync();
    let log = fleet.dps[0].log();
    assert_eq!(applied(&log[logged..]), (1, 0), "{}", &log[logged..]);
}

#[test]
fn a_killed_control_plane_comes_back_and_its_changes_go_on() {
    let mut fleet = Fleet::start(2);
    fleet.route("/before");
    fleet.serves("/before", 200);
    fleet.in_sync();
    fleet.cp.kill();
    fleet.serves("/before", 200);
    fleet.cp.restart();
    fleet.route("/after");
    fleet.serves("/after", 200);
    fleet.in_sync();
    for dp in &fleet.dps {
        assert_eq!(applied(&dp.log()).1, 1, "everything once, at the first start:\n{}", dp.log());
    }
    assert_eq!(fleet.rows().len(), 2);
}

#[test]
fn a_data_plane_with_a_lost_cache_is_given_everything() {
    let mut fleet = Fleet::start(1);
    fleet.route("/x");
    fleet.in_sync();
    fleet.dps[0].kill();
    std::fs::remove_dir_all(fleet.cluster.path("dp-0").join("dbless.lmdb")).unwrap();
    fleet.dps[0].restart();
    fleet.serves("/x", 200);
    fleet.in_sync();
    assert_eq!(get(fleet.dps[0].status(), "/status/ready").status, 200);
}

#[test]
fn a_control_plane_with_another_store_replaces_what_its_data_planes_have() {
    let mut fleet = Fleet::start(1);
    for number in 0..4 {
        fleet.route(&format!("/old/{number}"));
    }
    fleet.serves("/old/3", 200);
    fleet.in_sync();
    fleet.cp.kill();
    let prefix = fleet.cluster.path("cp");
    std::fs::rename(&prefix, fleet.cluster.path("cp-before")).unwrap();
    fleet.cp.restart();
    fleet.serves("/old/3", 404);
    fleet.in_sync();
}

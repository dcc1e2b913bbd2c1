//! Nodes that die, refuse, lack something, or say goodbye.

use super::{GWCTL, fleet};
use gwctl_testkit::{Cluster, Fleet, Protocol, delete, post, wait_until};
use serde_json::json;

#[test]
fn a_configuration_that_needs_a_plugin_the_node_lacks_is_withheld_until_it_does_not() {
    let mut fleet = fleet(0);
    let poor = fleet.cluster.options("poor", "data_plane").set("plugins", "key-auth");
    fleet.join(&poor);
    fleet.route("/before");
    fleet.serves("/before", 200);
    let plugin = fleet.post("/plugins", &json!({"name": "cors"}));
    fleet.route("/after");
    wait_until("the node to be withheld the configuration", || {
        let member = fleet.members().remove(0);
        member["sync_status"] == "plugin_set_incompatible"
            && member["sync_detail"].as_str().is_some_and(|words| words.contains("cors"))
    });
    assert_eq!(fleet.dps[0].ask("/before").status, 200);
    assert_eq!(fleet.dps[0].ask("/after").status, 404);
    wait_until("the node to know", || fleet.dps[0].log().contains("withholds its configuration"));
    let path = format!("/plugins/{}", plugin["id"].as_str().unwrap());
    assert_eq!(delete(fleet.cp.admin(), &path).status, 204);
    fleet.serves("/after", 200);
    fleet.in_sync();
    assert_eq!(fleet.members()[0]["sync_status"], "normal");
}

#[test]
fn a_refusal_names_the_row_and_the_next_good_version_leads_on() {
    let cluster = Cluster::new(GWCTL);
    // The two mean different things by a route, which only the data plane can find out.
    let cp = cluster.start(&cluster.options("cp", "control_plane").set("router_flavor", "expressions"));
    let dp = cluster.start(&cluster.options("dp", "data_plane"));
    let fleet = Fleet::of(cluster, Protocol::Gwctl, cp, vec![dp]);
    fleet.in_sync();
    let body = json!({"expression": "http.path ^= \"/x\"", "priority": 1});
    let route = fleet.post("/services/echo/routes", &body);
    let id = route["id"].as_str().unwrap();
    wait_until("the refusal to be shown", || {
        let member = fleet.members().remove(0);
        let refusal = &member["refusal"];
        refusal["entity"] == "routes" && refusal["id"] == id && member["last_error"].as_str().is_some()
    });
    let member = fleet.members().remove(0);
    assert!(member["applied_version"].as_u64() < fleet.document()["version"].as_u64(), "{member}");
    // Another change does not lead on while the bad row is there, and does not hide why.
    post(fleet.cp.admin(), "/consumers", &json!({"username": "alice"}));
    assert_eq!(delete(fleet.cp.admin(), &format!("/routes/{id}")).status, 204);
    fleet.in_sync();
    let member = fleet.members().remove(0);
    assert_eq!((&member["last_error"], &member["refusal"]), (&json!(null), &json!(null)), "{member}");
    assert_eq!(fleet.copies(&fleet.dps[0].log()), 1, "{}", fleet.dps[0].log());
}

#[test]
fn goodbyes_are_told_from_losses() {
    let mut fleet = fleet(2);
    fleet.in_sync();
    let states = |fleet: &Fleet| {
        let mut states: Vec<String> =
            fleet.members().iter().map(|member| member["state"].as_str().unwrap().to_owned()).collect();
        states.sort();
        states
    };
    fleet.dps[0].stop();
    fleet.dps[1].kill();
    wait_until("one to have left and one to be offline", || states(&fleet) == ["left", "offline"]);
    fleet.dps[0].restart();
    fleet.dps[1].restart();
    fleet.in_sync();
    assert_eq!(states(&fleet), ["online", "online"]);
    fleet.cp.stop();
    wait_until("the data planes to hear the goodbye", || {
        fleet.dps.iter().all(|dp| dp.log().contains("the control plane says goodbye"))
    });
    fleet.cp.restart();
    fleet.route("/after");
    fleet.serves("/after", 200);
}

/// A copy of a folder of files.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => _ = std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap(),
        }
    }
}

#[test]
fn a_control_plane_restored_from_a_backup_takes_its_data_planes_back_with_it() {
    let mut fleet = fleet(2);
    fleet.route("/kept");
    fleet.in_sync();
    fleet.cp.stop();
    let (prefix, backup) = (fleet.cluster.path("cp"), fleet.cluster.path("backup"));
    copy(&prefix, &backup);
    fleet.cp.restart();
    for number in 0..5 {
        fleet.route(&format!("/lost/{number}"));
    }
    fleet.serves("/lost/4", 200);
    fleet.in_sync();
    let newest = fleet.version();
    // One node is away meanwhile, the other sees it happen.
    fleet.dps[1].kill();
    fleet.cp.kill();
    std::fs::remove_dir_all(&prefix).unwrap();
    copy(&backup, &prefix);
    fleet.cp.restart();
    // The versions that come now have been given once already, to other changes.
    for number in 0..5 {
        fleet.route(&format!("/new/{number}"));
    }
    assert_eq!(fleet.version(), newest);
    fleet.dps[1].restart();
    fleet.serves("/new/4", 200);
    fleet.serves("/lost/4", 404);
    fleet.serves("/kept", 200);
    fleet.in_sync();
}

#[test]
fn a_cache_of_yesterday_gives_way_to_a_live_control_plane() {
    let mut fleet = fleet(1);
    let old = fleet.route("/yesterday");
    fleet.in_sync();
    fleet.dps[0].stop();
    let (prefix, before) = (fleet.cluster.path("dp-0"), fleet.cluster.path("before"));
    copy(&prefix, &before);
    fleet.dps[0].restart();
    assert_eq!(delete(fleet.cp.admin(), &format!("/routes/{old}")).status, 204);
    fleet.route("/today");
    fleet.in_sync();
    fleet.dps[0].stop();
    std::fs::remove_dir_all(&prefix).unwrap();
    copy(&before, &prefix);
    let logged = fleet.dps[0].log().len();
    fleet.dps[0].restart();
    fleet.serves("/today", 200);
    fleet.serves("/yesterday", 404);
    fleet.in_sync();
    assert_eq!(fleet.copies(&fleet.dps[0].log()[logged..]), 0, "what it lacks is enough");
}

//! What holds by whatever protocol nodes are kept in sync: changes arrive with all they bring about, nodes die and come
//! back, and no client notices.

use super::GWCTL;
use gwctl_testkit::{Fleet, Protocol, Request, delete, get, patch, post, request, wait_until};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Makes a test of each protocol from each of these functions.
macro_rules! by_every_protocol {
    ($($test:ident)*) => {
        mod gwctl { $(#[test] fn $test() { super::$test(super::Protocol::Gwctl); })* }
        mod v2 { $(#[test] fn $test() { super::$test(super::Protocol::V2); })* }
        mod v1 { $(#[test] fn $test() { super::$test(super::Protocol::V1); })* }
    };
}

by_every_protocol! {
    changes_arrive_one_by_one_and_cascades_with_them
    a_service_turned_off_is_not_served
    a_killed_data_plane_serves_at_once_and_gets_what_it_lacks
    a_killed_control_plane_comes_back_and_its_changes_go_on
    a_data_plane_serves_from_its_cache_without_a_control_plane
    a_data_plane_with_a_lost_cache_is_given_everything
    a_control_plane_with_another_store_replaces_what_its_data_planes_have
    the_control_plane_shows_a_killed_data_plane_as_not_connected
    nodes_stop_cleanly_on_sigterm
    no_request_fails_while_a_hundred_changes_go_through_under_load
}

/// Whether a change is sent alone. By protocol v1 each is a whole configuration.
fn sends_changes(protocol: Protocol) -> bool {
    protocol != Protocol::V1
}

fn changes_arrive_one_by_one_and_cascades_with_them(protocol: Protocol) {
    let fleet = Fleet::start(GWCTL, protocol, 2);
    let route = fleet.route("/guarded");
    fleet.serves("/guarded", 200);
    let plugin = fleet.post(&format!("/routes/{route}/plugins"), &json!({"name": "key-auth"}));
    fleet.serves("/guarded", 401);
    fleet.post("/consumers", &json!({"username": "alice"}));
    fleet.post("/consumers/alice/key-auth", &json!({"key": "alices-key"}));
    let with_key = |key: &str| {
        let asked = Request { method: "GET", path: "/guarded", headers: &[("apikey", key)], body: None };
        fleet.dps.iter().map(|dp| request(dp.proxy(), &asked).unwrap().status).collect::<Vec<_>>()
    };
    wait_until("the key to be known", || with_key("alices-key") == [200, 200]);
    assert_eq!(with_key("another"), [401, 401]);
    assert_eq!(delete(fleet.cp.admin(), "/consumers/alice").status, 204);
    wait_until("the key to be gone with its consumer", || with_key("alices-key") == [401, 401]);
    assert_eq!(delete(fleet.cp.admin(), &format!("/routes/{route}")).status, 204);
    fleet.serves("/guarded", 404);
    let gone = get(fleet.cp.admin(), &format!("/plugins/{}", plugin["id"].as_str().unwrap()));
    assert_eq!(gone.status, 404, "the plugin went with its route");
    fleet.in_sync();
    if sends_changes(protocol) {
        for dp in &fleet.dps {
            let (copies, all) = (fleet.copies(&dp.log()), dp.log().matches("configuration in force").count());
            assert!(copies == 1 && all > 4, "{all} times, everything {copies} times:\n{}", dp.log());
        }
        let payloads = fleet.cp.log().matches("configuration ready for data planes").count();
        assert_eq!(payloads, 0, "nobody is sent a payload of protocol v1:\n{}", fleet.cp.log());
    }
}

fn a_service_turned_off_is_not_served(protocol: Protocol) {
    let fleet = Fleet::start(GWCTL, protocol, 1);
    fleet.route("/x");
    fleet.serves("/x", 200);
    assert_eq!(patch(fleet.cp.admin(), "/services/echo", &json!({"enabled": false})).status, 200);
    fleet.serves("/x", 404);
    assert_eq!(patch(fleet.cp.admin(), "/services/echo", &json!({"enabled": true})).status, 200);
    fleet.serves("/x", 200);
}

fn a_killed_data_plane_serves_at_once_and_gets_what_it_lacks(protocol: Protocol) {
    let mut fleet = Fleet::start(GWCTL, protocol, 1);
    fleet.route("/before");
    fleet.serves("/before", 200);
    fleet.in_sync();
    fleet.dps[0].kill();
    for number in 0..5 {
        fleet.route(&format!("/missed/{number}"));
    }
    let logged = fleet.dps[0].log().len();
    fleet.dps[0].restart();
    assert_eq!(fleet.dps[0].ask("/before").status, 200, "at once, from the cache");
    fleet.serves("/missed/4", 200);
    fleet.in_sync();
    let log = fleet.dps[0].log();
    let (copies, all) = (fleet.copies(&log[logged..]), log[logged..].matches("configuration in force").count());
    let whole = if sends_changes(protocol) { 0 } else { 1 };
    assert!(copies == whole && all > 0, "{all} times, everything {copies} times:\n{}", &log[logged..]);
    if protocol == Protocol::V2 {
        assert_eq!(all, 1, "what is missing is pulled at once:\n{}", &log[logged..]);
    }
}

fn a_killed_control_plane_comes_back_and_its_changes_go_on(protocol: Protocol) {
    let mut fleet = Fleet::start(GWCTL, protocol, 2);
    fleet.route("/before");
    fleet.serves("/before", 200);
    fleet.in_sync();
    fleet.cp.kill();
    fleet.serves("/before", 200);
    fleet.cp.restart();
    fleet.route("/after");
    fleet.serves("/after", 200);
    fleet.serves("/before", 200);
    fleet.in_sync();
    if sends_changes(protocol) {
        for dp in &fleet.dps {
            assert_eq!(fleet.copies(&dp.log()), 1, "everything once, at the first start:\n{}", dp.log());
        }
    }
    assert_eq!(fleet.rows().len(), 2, "the restarted control plane knows its data planes");
}

fn a_data_plane_serves_from_its_cache_without_a_control_plane(protocol: Protocol) {
    let mut fleet = Fleet::start(GWCTL, protocol, 1);
    fleet.route("/cached");
    fleet.serves("/cached", 200);
    fleet.in_sync();
    fleet.cp.kill();
    fleet.dps[0].kill();
    fleet.dps[0].restart();
    assert_eq!(fleet.dps[0].ask("/cached").status, 200, "at once, from the cache");
    assert_eq!(get(fleet.dps[0].status(), "/status/ready").status, 200);
}

fn a_data_plane_with_a_lost_cache_is_given_everything(protocol: Protocol) {
    let mut fleet = Fleet::start(GWCTL, protocol, 1);
    fleet.route("/x");
    fleet.in_sync();
    fleet.dps[0].kill();
    std::fs::remove_dir_all(fleet.cluster.path("dp-0").join("dbless.lmdb")).unwrap();
    fleet.dps[0].restart();
    fleet.serves("/x", 200);
    fleet.in_sync();
    assert_eq!(get(fleet.dps[0].status(), "/status/ready").status, 200);
}

fn a_control_plane_with_another_store_replaces_what_its_data_planes_have(protocol: Protocol) {
    let mut fleet = Fleet::start(GWCTL, protocol, 1);
    for number in 0..4 {
        fleet.route(&format!("/old/{number}"));
    }
    fleet.serves("/old/3", 200);
    fleet.in_sync();
    fleet.cp.kill();
    std::fs::rename(fleet.cluster.path("cp"), fleet.cluster.path("cp-before")).unwrap();
    fleet.cp.restart();
    fleet.serves("/old/3", 404);
    fleet.in_sync();
}

fn the_control_plane_shows_a_killed_data_plane_as_not_connected(protocol: Protocol) {
    let mut fleet = Fleet::start(GWCTL, protocol, 2);
    wait_until("both to be connected", || fleet.connected() == 2);
    fleet.dps[1].kill();
    wait_until("one to be gone", || fleet.connected() == 1);
}

fn nodes_stop_cleanly_on_sigterm(protocol: Protocol) {
    let mut fleet = Fleet::start(GWCTL, protocol, 1);
    fleet.route("/x");
    fleet.serves("/x", 200);
    assert!(fleet.dps[0].stop().success());
    assert!(fleet.cp.stop().success());
    assert!(!fleet.cp.log().contains("panicked"), "{}", fleet.cp.log());
    assert!(!fleet.dps[0].log().contains("panicked"), "{}", fleet.dps[0].log());
}

fn no_request_fails_while_a_hundred_changes_go_through_under_load(protocol: Protocol) {
    let fleet = Fleet::start(GWCTL, protocol, 2);
    fleet.route("/steady");
    fleet.serves("/steady", 200);
    let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let load: Vec<_> = fleet
        .dps
        .iter()
        .map(|dp| {
            let (port, stop, sent) = (dp.proxy(), stop.clone(), sent.clone());
            std::thread::spawn(move || {
                let mut failures = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let asked = Request { method: "GET", path: "/steady", ..Request::default() };
                    match request(port, &asked) {
                        Ok(answer) if answer.status == 200 => {}
                        Ok(answer) => failures.push(format!("{} {}", answer.status, answer.body)),
                        Err(error) => failures.push(error.to_string()),
                    }
                    sent.fetch_add(1, Ordering::Relaxed);
                }
                failures
            })
        })
        .collect();
    wait_until("the load to have begun", || sent.load(Ordering::Relaxed) > 0);
    let before = sent.load(Ordering::Relaxed);
    for number in 0..100 {
        let route = json!({"name": format!("r{number}"), "paths": [format!("/change/{number}")]});
        assert_eq!(post(fleet.cp.admin(), "/services/echo/routes", &route).status, 201);
    }
    fleet.serves("/change/99", 200);
    assert!(sent.load(Ordering::Relaxed) > before, "there was no load during the changes");
    stop.store(true, Ordering::Relaxed);
    let failures: Vec<String> = load.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert!(
        failures.is_empty(),
        "{} of {} failed: {:?}",
        failures.len(),
        sent.load(Ordering::Relaxed),
        failures.first()
    );
}

//! Nodes that die and come back.

use super::{Fleet, answer};
use gwctl_testkit::{Request, get, post, request, wait_until};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[test]
fn a_killed_control_plane_comes_back_with_everything_it_acknowledged() {
    let mut fleet = Fleet::start(2);
    fleet.route("/before");
    fleet.serves("/before", 200);
    fleet.cp.kill();
    fleet.serves("/before", 200);
    fleet.cp.restart();
    fleet.route("/after");
    fleet.serves("/after", 200);
    fleet.serves("/before", 200);
    assert_eq!(fleet.rows().len(), 2, "the restarted control plane knows its data planes");
}

#[test]
fn a_killed_data_plane_serves_from_its_cache_without_a_control_plane() {
    let mut fleet = Fleet::start(1);
    fleet.route("/cached");
    fleet.serves("/cached", 200);
    fleet.cp.kill();
    fleet.dps[0].kill();
    fleet.dps[0].restart();
    assert_eq!(answer(&fleet.dps[0], "/cached").status, 200, "at once, from the cache");
    assert_eq!(get(fleet.dps[0].status(), "/status/ready").status, 200);
}

#[test]
fn the_control_plane_shows_a_killed_data_plane_as_not_connected() {
    let mut fleet = Fleet::start(2);
    fleet.route("/x");
    fleet.serves("/x", 200);
    let connected = |fleet: &Fleet| {
        let shown = fleet.fleet();
        let items = shown["items"].as_array().unwrap();
        items.iter().filter(|item| item["connected"] == json!(true)).count()
    };
    wait_until("both to be connected", || connected(&fleet) == 2);
    fleet.dps[1].kill();
    wait_until("one to be gone", || connected(&fleet) == 1);
}

#[test]
fn nodes_stop_cleanly_on_sigterm() {
    let mut fleet = Fleet::start(1);
    fleet.route("/x");
    fleet.serves("/x", 200);
    assert!(fleet.dps[0].stop().success());
    assert!(fleet.cp.stop().success());
    assert!(!fleet.cp.log().contains("panicked"), "{}", fleet.cp.log());
    assert!(!fleet.dps[0].log().contains("panicked"), "{}", fleet.dps[0].log());
}

#[test]
fn no_request_fails_while_a_hundred_changes_go_through_under_load() {
    let fleet = Fleet::start(2);
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

#[test]
fn a_closed_terminal_and_a_log_rotation_do_not_end_a_node() {
    let fleet = Fleet::start(1);
    fleet.route("/x");
    fleet.serves("/x", 200);
    for name in ["HUP", "USR1"] {
        let sent =
            std::process::Command::new("kill").args([format!("-{name}"), fleet.dps[0].id().to_string()]).status();
        assert!(sent.unwrap().success());
        wait_until("the signal to be logged", || fleet.dps[0].log().contains(&format!("SIG{name}")));
    }
    assert_eq!(answer(&fleet.dps[0], "/x").status, 200);
}

//! A control plane killed at any moment of a write.

use super::{GWCTL, assert_no_panic};
use gwctl_testkit::{Cluster, Request, get, request, wait_until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

const ROUNDS: usize = 20;
const WRITERS: usize = 4;

/// Creates services until the node is gone; the names that were acknowledged.
fn write_until_dead(port: u16, label: &str, acknowledged: &AtomicUsize) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let name = format!("{label}-{}", names.len());
        let body = json!({"name": name, "host": "h.test"});
        let asked = Request { method: "POST", path: "/services", headers: &[], body: Some(&body) };
        match request(port, &asked) {
            Ok(answer) if answer.status == 201 => {
                names.push(name);
                acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            Ok(answer) => panic!("{name}: {} {}", answer.status, answer.body),
            Err(_) => return names,
        }
    }
}

fn all_names(port: u16) -> BTreeSet<String> {
    let (mut names, mut next) = (BTreeSet::new(), Some("/services?size=1000".to_owned()));
    while let Some(path) = next {
        let page: Value = get(port, &path).json();
        names.extend(page["data"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()));
        next = page["next"].as_str().map(str::to_owned);
    }
    names
}

#[test]
fn what_a_control_plane_acknowledged_is_there_however_often_it_is_killed() {
    let cluster = Cluster::new(GWCTL);
    let mut cp = cluster.start(&cluster.options("cp", "control_plane"));
    let dp = cluster.start(&cluster.options("dp", "data_plane"));
    let mut expected = BTreeSet::new();
    for round in 0..ROUNDS {
        let (admin, acknowledged) = (cp.admin(), AtomicUsize::new(0));
        let names = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let (label, acknowledged) = (format!("r{round}-w{writer}"), &acknowledged);
                    scope.spawn(move || write_until_dead(admin, &label, acknowledged))
                })
                .collect();
            // A different moment in each round, at no boundary of the writers.
            let target = 3 + round * 7 % 40;
            wait_until("some writes", || acknowledged.load(Ordering::Relaxed) >= target);
            cp.kill();
            writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(!names.is_empty());
        expected.extend(names);
        cp.restart();
        let found = all_names(cp.admin());
        let lost: Vec<_> = expected.difference(&found).collect();
        assert!(lost.is_empty(), "round {round}: {} acknowledged services are gone: {lost:?}", lost.len());
    }
    wait_until("the data plane to hold the newest hash", || {
        let hash = get(cp.admin(), "/gwctl/fleet").json()["config_hash"].clone();
        hash.is_string() && get(dp.status(), "/status").json()["configuration_hash"] == hash
    });
    assert_no_panic(&cp);
    assert_no_panic(&dp);
}

//! Nodes of both protocols.

use super::{GWCTL, fleet, v2};
use gwctl_testkit::{Cluster, Upstream, get, post, wait_until};
use serde_json::json;

#[test]
fn nodes_of_both_protocols_are_served_by_one_control_plane() {
    let mut fleet = fleet(1);
    let old = fleet.cluster.start(&fleet.cluster.options("old", "data_plane"));
    fleet.dps.push(old);
    fleet.route("/both");
    fleet.serves("/both", 200);
    wait_until("both to be shown with their protocol", || {
        let shown = fleet.document();
        let mut seen: Vec<_> = shown["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| {
                (item["protocol"].as_str().unwrap_or_default().to_owned(), item["applied_version"] == shown["version"])
            })
            .collect();
        seen.sort();
        seen == [("v1".to_owned(), true), ("v2".to_owned(), true)]
    });
}

#[test]
fn a_data_plane_that_lacks_a_plugin_refuses_it_and_the_control_plane_shows_why() {
    let mut fleet = fleet(0);
    let poor = fleet.cluster.start(&v2(fleet.cluster.options("poor", "data_plane")).set("plugins", "key-auth"));
    fleet.dps.push(poor);
    fleet.route("/x");
    fleet.serves("/x", 200);
    fleet.post("/plugins", &json!({"name": "cors"}));
    let shown = || fleet.document()["items"][0].clone();
    wait_until("the refusal to be shown", || {
        shown()["last_error"].as_str().is_some_and(|error| error.contains("cors"))
    });
    fleet.serves("/x", 200);
    let plugins = get(fleet.cp.admin(), "/plugins").json();
    let id = plugins["data"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(gwctl_testkit::delete(fleet.cp.admin(), &format!("/plugins/{id}")).status, 204);
    fleet.route("/y");
    fleet.serves("/y", 200);
    fleet.in_sync();
    wait_until("the refusal to be over", || shown()["last_error"].is_null());
}

#[test]
fn a_data_plane_whose_control_plane_offers_no_v2_is_configured_by_v1_and_returns() {
    let cluster = Cluster::new(GWCTL);
    let options = cluster.options("cp", "control_plane");
    let mut cp = cluster.start(&options);
    let dp = cluster.start(&v2(cluster.options("dp", "data_plane")));
    let upstream = Upstream::start();
    let service = json!({"name": "echo", "host": "127.0.0.1", "port": upstream.port});
    assert_eq!(post(cp.admin(), "/services", &service).status, 201);
    assert_eq!(post(cp.admin(), "/services/echo/routes", &json!({"paths": ["/x"]})).status, 201);
    wait_until("the route to arrive by v1", || dp.ask("/x").status == 200);
    let protocol = |cp: &gwctl_testkit::Node| get(cp.admin(), "/gwctl/fleet").json()["items"][0]["protocol"].clone();
    assert_eq!(protocol(&cp), json!("v1"));

    assert!(cp.stop().success());
    let cp = cluster.start(&v2(options));
    assert_eq!(post(cp.admin(), "/services/echo/routes", &json!({"paths": ["/y"]})).status, 201);
    wait_until("the next route to arrive", || dp.ask("/y").status == 200);
    wait_until("the data plane to return to v2", || protocol(&cp) == json!("v2"));
    let version = get(cp.admin(), "/gwctl/fleet").json()["version"].as_u64().unwrap();
    wait_until("it to have the version", || {
        get(dp.status(), "/status").json()["configuration_hash"] == json!(format!("{version:032}"))
    });
    assert_eq!(dp.ask("/x").status, 200);
}

#[test]
fn a_setting_that_cannot_be_honoured_takes_its_route_down_and_nothing_else() {
    let mut fleet = fleet(1);
    let old = fleet.cluster.start(&fleet.cluster.options("old", "data_plane"));
    fleet.dps.push(old);
    let limited = fleet.route("/limited");
    fleet.route("/free");
    fleet.serves("/limited", 200);
    let config = json!({"minute": 5, "policy": "redis", "redis": {"host": "127.0.0.1"}});
    fleet.post(&format!("/routes/{limited}/plugins"), &json!({"name": "rate-limiting", "config": config}));
    fleet.serves("/limited", 503);
    fleet.serves("/free", 200);
    fleet.route("/later");
    fleet.serves("/later", 200);
    for dp in &fleet.dps {
        assert!(dp.log().contains("plugin cannot be run"), "{}", dp.log());
    }
}

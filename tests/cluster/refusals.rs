//! What must not be let in, and how it is told.

use super::{GWCTL, fleet};
use gwctl_testkit::{Cluster, Fleet, Node, Protocol, get, post, wait_until};
use serde_json::json;

#[test]
fn a_data_plane_with_another_certificate_is_refused() {
    let fleet = fleet(0);
    let stranger = Cluster::new(GWCTL);
    let options = fleet
        .cluster
        .options("stranger", "data_plane")
        .set("cluster_cert", stranger.path("cluster.crt").display())
        .set("cluster_cert_key", stranger.path("cluster.key").display());
    let dp = fleet.cluster.start(&options);
    wait_until("the refusal to be logged by the data plane", || dp.log().contains("no connection to control plane"));
    assert!(fleet.rows().is_empty());
    assert_eq!(get(dp.status(), "/status/ready").status, 503);
}

#[test]
fn certificates_that_have_expired_join_nobody_and_what_is_cached_is_served() {
    let mut fleet = fleet(1);
    fleet.route("/x");
    fleet.serves("/x", 200);
    fleet.cp.kill();
    fleet.dps[0].kill();
    let month_ago = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() - 40 * 86_400;
    let pair = gwctl_certs::cluster_pair(month_ago, 30).unwrap();
    std::fs::write(fleet.cluster.path("cluster.crt"), pair.certificate).unwrap();
    std::fs::write(fleet.cluster.path("cluster.key"), pair.key).unwrap();
    fleet.cp.restart();
    fleet.dps[0].restart();
    wait_until("the data plane to say why", || fleet.dps[0].log().contains("expired"));
    fleet.serves("/x", 200);
    let connected = fleet.document()["items"].as_array().unwrap().iter().any(|item| item["connected"] == json!(true));
    assert!(!connected, "{}", fleet.document());
}

#[test]
fn a_data_plane_without_a_configured_plugin_is_sent_nothing_and_the_status_says_so() {
    let fleet = fleet(0);
    fleet.route("/plugged");
    assert_eq!(post(fleet.cp.admin(), "/plugins", &json!({"name": "cors"})).status, 201);
    let poor = fleet.cluster.options("poor", "data_plane").set("plugins", "key-auth");
    let dp = fleet.cluster.start(&poor);
    wait_until("the status to say so", || {
        fleet.rows().first().is_some_and(|row| row["sync_status"] == "plugin_set_incompatible")
    });
    let shown = fleet.document();
    assert!(shown["items"][0]["sync_detail"].as_str().unwrap().contains("cors"), "{shown}");
    assert_eq!(get(dp.status(), "/status/ready").status, 503, "it has no configuration");
}

#[test]
fn two_data_planes_with_one_id_are_told_as_such() {
    let fleet = Fleet::start(GWCTL, Protocol::Gwctl, 0);
    let id = "00000000-0000-4000-8000-00000000c0de";
    let mut nodes =
        ["one", "two"].map(|name| fleet.cluster.start(&fleet.cluster.options(name, "data_plane").set("node_id", id)));
    wait_until("the second to be noticed", || fleet.document()["items"][0]["shared_id"] == json!(true));
    let shown = fleet.document();
    assert!(shown["items"][0]["sync_detail"].as_str().unwrap().contains("under the same id"), "{shown}");
    assert!(fleet.cp.log().contains("under the same id"), "{}", fleet.cp.log());
    nodes[0].stop();
    wait_until("one to be left", || fleet.document()["items"][0].get("shared_id").is_none());
}

#[test]
fn all_mistakes_of_the_settings_are_reported_at_once() {
    let cluster = Cluster::new(GWCTL);
    let options = cluster
        .options("wrong", "data_plane")
        .set("database", "postgres")
        .set("cluster_mtls", "sometimes")
        .set("cluster_max_payload", "1");
    let mut node = Node::spawn(cluster.executable(), &options);
    assert_eq!(node.ended().code(), Some(1));
    let log = node.log();
    for expected in ["KONG_CLUSTER_MTLS", "sometimes", "cluster_max_payload", "database"] {
        assert!(log.contains(expected), "{expected} is missing in:\n{log}");
    }
}

#[test]
fn a_node_that_misses_one_of_its_addresses_names_it_and_answers_at_none() {
    let cluster = Cluster::new(GWCTL);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = (taken.local_addr().unwrap().to_string(), "ss -lt");
    let elsewhere = ("192.0.2.1:8005".to_owned(), "no interface of this machine has the address 192.0.2.1");
    let faces: [(&str, &[&str]); 3] = [
        ("traditional", &["admin_listen", "proxy_listen", "status_listen"]),
        ("data_plane", &["proxy_listen", "status_listen"]),
        ("control_plane", &["admin_listen", "cluster_listen", "status_listen"]),
    ];
    let faces = faces.iter().flat_map(|(role, settings)| settings.iter().map(move |key| (role, key)));
    let cases = faces.flat_map(|(role, setting)| [(role, setting, &taken), (role, setting, &elsewhere)]);
    for (role, setting, (address, hint)) in cases {
        let options = cluster.options(&format!("{role}-{setting}-{address}"), role).set(setting, address);
        let mut node = Node::spawn(cluster.executable(), &options);
        assert_eq!(node.ended().code(), Some(1));
        let log = node.log();
        assert!(log.contains(address) && log.contains(hint) && log.contains(setting), "{role}, {setting}:\n{log}");
        assert!(!log.contains("panicked"), "{role}, {setting}:\n{log}");
        let answers = |line: &str| line.contains("INFO") && (line.contains("listening") || line.contains("listener"));
        assert!(!log.lines().any(answers), "{role}, {setting}:\n{log}");
    }
}

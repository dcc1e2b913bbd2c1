//! The log level of a data plane, set from the control plane.

use super::{GWCTL, fleet};
use gwctl_testkit::{Cluster, delete, get, put, wait_until};
use serde_json::{Value, json};

/// Rows that have the group of methods.
fn reachable(rows: &[Value]) -> Option<String> {
    let row = rows.iter().find(|row| {
        let capabilities = row["rpc_capabilities"].as_array();
        capabilities.is_some_and(|names| names.contains(&json!("kong.debug.log_level.v1")))
    });
    row.map(|row| format!("/clustering/data-planes/{}/log-level", row["id"].as_str().unwrap_or_default()))
}

fn lines(log: &str) -> usize {
    log.matches("changes applied").count()
}

#[test]
fn a_level_is_taken_at_once_and_put_back() {
    let fleet = fleet(1);
    fleet.route("/x");
    fleet.serves("/x", 200);
    fleet.in_sync();
    let path = reachable(&fleet.rows()).expect("the capability is shown");
    let levels = || get(fleet.cp.admin(), &path).json();
    let own = levels()["current_level"].clone();
    assert_eq!(levels(), json!({"current_level": own, "timeout": 0, "original_level": own}));
    wait_until("the route to be logged", || lines(&fleet.dps[0].log()) > 0);

    assert_eq!(put(fleet.cp.admin(), &path, &json!({"current_level": "error", "timeout": 500})).status, 201);
    let now = levels();
    assert_eq!((&now["current_level"], &now["original_level"]), (&json!("error"), &own));
    assert!((1..=500).contains(&now["timeout"].as_u64().unwrap()), "{now}");
    let before = lines(&fleet.dps[0].log());
    fleet.route("/quiet");
    fleet.in_sync();

    assert_eq!(delete(fleet.cp.admin(), &path).status, 204);
    assert_eq!(levels()["current_level"], own);
    fleet.route("/loud");
    wait_until("the log to speak again", || lines(&fleet.dps[0].log()) > before);
    assert_eq!(lines(&fleet.dps[0].log()), before + 1, "the change in between was not logged");
}

#[test]
fn what_cannot_be_set_is_told() {
    let fleet = fleet(1);
    fleet.in_sync();
    let path = reachable(&fleet.rows()).expect("the capability is shown");
    let admin = fleet.cp.admin();
    let refused = put(admin, &path, &json!({"current_level": "loud"}));
    assert_eq!((refused.status, refused.json()["message"].as_str().unwrap()), (500, "unknown log level: loud"));
    assert_eq!(put(admin, &path, &json!({})).status, 400);
    assert_eq!(put(admin, &path, &json!({"current_level": "info", "timeout": -1})).status, 400);
    let nobody = get(admin, "/clustering/data-planes/00000000-0000-4000-8000-00000000dead/log-level");
    assert_eq!(nobody.status, 500);
    assert!(nobody.body.contains("not connected"), "{}", nobody.body);
}

#[test]
fn a_node_with_rpc_alone_is_configured_by_v1_and_answers_calls() {
    let cluster = Cluster::new(GWCTL);
    let rpc =
        |name: &str, role: &str| cluster.options(name, role).set("cluster_rpc", "on").set("cluster_gwctl_sync", "off");
    let cp = cluster.start(&rpc("cp", "control_plane"));
    let dp = cluster.start(&rpc("dp", "data_plane"));
    let rows = || get(cp.admin(), "/clustering/data-planes").json()["data"].as_array().unwrap().clone();
    wait_until("the capability to be shown", || reachable(&rows()).is_some());
    let path = reachable(&rows()).unwrap_or_default();
    assert_eq!(get(cp.admin(), &path).status, 200);
    wait_until("it to be configured by v1", || {
        let shown = get(cp.admin(), "/gwctl/fleet").json()["items"][0].clone();
        shown["protocol"] == "v1" && shown["connected"] == true
    });
    wait_until("it to be ready by v1", || get(dp.status(), "/status/ready").status == 200);
}

//! A cluster that is kept in sync by protocol v2, as real processes: changes arrive as changes, whatever dies.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dialect;
mod equality;
mod log_level;
mod mixed;
mod stopping;

use gwctl_testkit::{Fleet, NodeOptions, Protocol, get, wait_until};
use serde_json::json;

const GWCTL: &str = env!("CARGO_BIN_EXE_gwctl");

fn fleet(data_planes: usize) -> Fleet {
    Fleet::start(GWCTL, Protocol::V2, data_planes)
}

/// Settings of a node with protocol v2.
fn v2(options: NodeOptions) -> NodeOptions {
    Protocol::V2.set(options)
}

/// How often a node has applied changes, and how often everything anew, in this part of its log.
fn applied(log: &str) -> (usize, usize) {
    let anew = Protocol::V2.copies(log);
    (log.matches("changes applied").count() - anew, anew)
}

#[test]
fn the_control_plane_shows_which_version_each_data_plane_has() {
    let fleet = fleet(2);
    fleet.route("/x");
    fleet.in_sync();
    let hash = format!("{:032}", fleet.version());
    wait_until("both rows to show the newest version", || {
        let rows = fleet.rows();
        rows.len() == 2 && rows.iter().all(|row| row["config_hash"] == json!(hash))
    });
    for row in fleet.rows() {
        assert_eq!((&row["sync_status"], &row["version"]), (&json!("normal"), &json!("3.9.1")));
        assert_eq!(
            (&row["hostname"], &row["rpc_capabilities"]),
            (&row["id"], &json!(["kong.sync.v2", "gwctl.apply.v1", "kong.debug.log_level.v1"]))
        );
    }
    let shown = fleet.document();
    for item in shown["items"].as_array().unwrap() {
        assert_eq!((&item["protocol"], &item["connected"]), (&json!("v2"), &json!(true)));
        assert_eq!((&item["applied_version"], &item["lag_millis"]), (&shown["version"], &json!(0)));
    }
    assert_eq!(get(fleet.dps[0].status(), "/status/ready").status, 200);
}

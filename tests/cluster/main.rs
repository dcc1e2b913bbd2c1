//! A cluster of real processes: what one writes on the control plane is what the data planes serve, whatever dies. Where
//! nothing else is said its nodes keep to protocol v1.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod every_protocol;
mod forward_proxy;
mod pki;
mod refusals;

use gwctl_testkit::{Fleet, Protocol, delete, get, wait_until};
use serde_json::{Value, json};

const GWCTL: &str = env!("CARGO_BIN_EXE_gwctl");

fn fleet(data_planes: usize) -> Fleet {
    Fleet::start(GWCTL, Protocol::V1, data_planes)
}

#[test]
fn a_route_made_on_the_control_plane_answers_on_every_data_plane() {
    let fleet = fleet(2);
    fleet.route("/made");
    fleet.serves("/made", 200);
    let seen = fleet.dps[0].ask("/made/deep?x=1").json();
    assert_eq!((&seen["method"], &seen["path"]), (&json!("GET"), &json!("/deep?x=1")));
    assert_eq!(fleet.dps[1].ask("/other").status, 404);

    let routes = get(fleet.cp.admin(), "/services/echo/routes").json();
    let id = routes["data"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(delete(fleet.cp.admin(), &format!("/routes/{id}")).status, 204);
    fleet.serves("/made", 404);
}

#[test]
fn data_planes_report_the_hash_they_serve_and_the_control_plane_shows_it() {
    let fleet = fleet(2);
    fleet.route("/hash");
    wait_until("both data planes to report the newest hash", || {
        let shown = fleet.document();
        let hash = &shown["config_hash"];
        let rows = fleet.rows();
        let current = |item: &Value| item["applied_version"] == shown["version"];
        hash.is_string()
            && rows.len() == 2
            && rows.iter().all(|row| row["config_hash"] == *hash)
            && shown["items"].as_array().unwrap().iter().all(current)
    });
    for row in fleet.rows() {
        assert_eq!(row["sync_status"], "normal");
        assert_eq!(row["version"], "3.9.1");
        assert!(row["cert_details"]["expiry_timestamp"].is_u64(), "{row}");
    }
    let shown = fleet.document();
    for item in shown["items"].as_array().unwrap() {
        assert_eq!(item["connected"], json!(true));
    }
    let status = get(fleet.dps[0].status(), "/status").json();
    assert_eq!(status["configuration_hash"], shown["config_hash"]);
    assert_eq!(get(fleet.dps[0].status(), "/status/ready").status, 200);
}

#[test]
fn both_roles_tell_their_figures_to_prometheus() {
    let fleet = fleet(1);
    fleet.route("/counted");
    fleet.serves("/counted", 200);
    let figures = || get(fleet.dps[0].status(), "/metrics");
    assert_eq!(figures().header("content-type"), Some("text/plain; charset=UTF-8"));
    let counted = |text: &str, code: &str| {
        let label = format!(r#"code="{code}""#);
        let line = text.lines().find(|line| line.starts_with("kong_http_requests_total{") && line.contains(&label));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
    };
    // A request is counted when its answer has been sent.
    wait_until("the request to be counted", || counted(&figures().body, "200") == Some(1));
    let served = figures().body;
    assert!(served.contains(r#"kong_http_requests_total{service="echo",route=""#), "{served}");
    assert!(served.contains("gwctl_request_seconds{quantile=\"0.99\"} "), "{served}");
    let known = get(fleet.cp.admin(), "/metrics").body;
    for name in ["kong_datastore_reachable 1", "kong_data_plane_last_seen{node_id=", "gwctl_data_plane_connected{"] {
        assert!(known.contains(name), "{name} is missing in:\n{known}");
    }
}

#[test]
fn a_closed_terminal_and_a_log_rotation_do_not_end_a_node() {
    let fleet = fleet(1);
    fleet.route("/x");
    fleet.serves("/x", 200);
    for name in ["HUP", "USR1"] {
        let sent =
            std::process::Command::new("kill").args([format!("-{name}"), fleet.dps[0].id().to_string()]).status();
        assert!(sent.unwrap().success());
        wait_until("the signal to be logged", || fleet.dps[0].log().contains(&format!("SIG{name}")));
    }
    assert_eq!(fleet.dps[0].ask("/x").status, 200);
}

//! A cluster of real processes that keeps to protocol v1: what one writes on the control plane is what the data planes
//! serve, whatever dies.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod failures;
mod forward_proxy;
mod pki;
mod refusals;

use gwctl_testkit::{Answer, Cluster, Node, Request, Upstream, delete, get, post, request, wait_until};
use serde_json::{Value, json};

const GWCTL: &str = env!("CARGO_BIN_EXE_gwctl");

/// A control plane and data planes, all connected and serving the same hash.
struct Fleet {
    // Dropped in this order: nodes show their logs before the folder goes.
    cp: Node,
    dps: Vec<Node>,
    upstream: Upstream,
    cluster: Cluster,
}

impl Fleet {
    fn start(data_planes: usize) -> Self {
        let cluster = Cluster::new(GWCTL);
        let cp = cluster.start(&cluster.options("cp", "control_plane").set("cluster_gwctl_sync", "off"));
        let dps = (0..data_planes)
            .map(|number| cluster.start(&cluster.options(&format!("dp-{number}"), "data_plane")))
            .collect();
        let fleet = Self { cp, dps, upstream: Upstream::start(), cluster };
        let service = json!({"name": "echo", "host": "127.0.0.1", "port": fleet.upstream.port});
        assert_eq!(post(fleet.cp.admin(), "/services", &service).status, 201);
        fleet
    }

    /// Makes a route by path to the echo service.
    fn route(&self, path: &str) {
        let answer = post(self.cp.admin(), "/services/echo/routes", &json!({"paths": [path]}));
        assert_eq!(answer.status, 201, "{}", answer.body);
    }

    /// Waits until every data plane answers the path with the status.
    fn serves(&self, path: &str, status: u16) {
        for dp in &self.dps {
            wait_until(&format!("{path} to answer {status}"), || answer(dp, path).status == status);
        }
    }

    fn rows(&self) -> Vec<Value> {
        get(self.cp.admin(), "/clustering/data-planes").json()["data"].as_array().unwrap().clone()
    }

    fn fleet(&self) -> Value {
        get(self.cp.admin(), "/gwctl/fleet").json()
    }
}

fn answer(dp: &Node, path: &str) -> Answer {
    let asked = Request { method: "GET", path, ..Request::default() };
    request(dp.proxy(), &asked).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn a_route_made_on_the_control_plane_answers_on_every_data_plane() {
    let fleet = Fleet::start(2);
    fleet.route("/made");
    fleet.serves("/made", 200);
    let seen = answer(&fleet.dps[0], "/made/deep?x=1").json();
    assert_eq!((&seen["method"], &seen["path"]), (&json!("GET"), &json!("/deep?x=1")));
    assert_eq!(answer(&fleet.dps[1], "/other").status, 404);

    let routes = get(fleet.cp.admin(), "/services/echo/routes").json();
    let id = routes["data"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(delete(fleet.cp.admin(), &format!("/routes/{id}")).status, 204);
    fleet.serves("/made", 404);
}

#[test]
fn data_planes_report_the_hash_they_serve_and_the_control_plane_shows_it() {
    let fleet = Fleet::start(2);
    fleet.route("/hash");
    wait_until("both data planes to report the newest hash", || {
        let shown = fleet.fleet();
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
    let shown = fleet.fleet();
    for item in shown["items"].as_array().unwrap() {
        assert_eq!(item["connected"], json!(true));
    }
    let status = get(fleet.dps[0].status(), "/status").json();
    assert_eq!(status["configuration_hash"], shown["config_hash"]);
    assert_eq!(get(fleet.dps[0].status(), "/status/ready").status, 200);
}

#[test]
fn consumers_and_their_keys_reach_the_data_planes() {
    let fleet = Fleet::start(1);
    fleet.route("/guarded");
    let admin = fleet.cp.admin();
    assert_eq!(post(admin, "/services/echo/plugins", &json!({"name": "key-auth"})).status, 201);
    assert_eq!(post(admin, "/consumers", &json!({"username": "alice"})).status, 201);
    assert_eq!(post(admin, "/consumers/alice/key-auth", &json!({"key": "alices-key"})).status, 201);
    fleet.serves("/guarded", 401);
    let dp = &fleet.dps[0];
    let with_key = |key: &str| {
        let asked = Request { method: "GET", path: "/guarded", headers: &[("apikey", key)], body: None };
        request(dp.proxy(), &asked).unwrap().status
    };
    wait_until("the key to be known", || with_key("alices-key") == 200);
    assert_eq!(with_key("another"), 401);
    assert_eq!(delete(admin, "/consumers/alice").status, 204);
    wait_until("the key to be gone", || with_key("alices-key") == 401);
}

#[test]
fn both_roles_tell_their_figures_to_prometheus() {
    let fleet = Fleet::start(1);
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

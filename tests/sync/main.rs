//! A cluster that is kept in sync by protocol v2, as real processes: changes arrive as changes, whatever dies.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dialect;
mod equality;
mod failures;
mod log_level;
mod mixed;
mod stopping;

use gwctl_testkit::{
    Answer, Cluster, Node, NodeOptions, Request, Upstream, delete, get, patch, post, request, wait_until,
};
use serde_json::{Value, json};

const GWCTL: &str = env!("CARGO_BIN_EXE_gwctl");

/// A control plane and data planes.
struct Fleet {
    // Dropped in this order: nodes show their logs before the folder goes.
    cp: Node,
    dps: Vec<Node>,
    upstream: Upstream,
    cluster: Cluster,
}

/// Settings of a node with protocol v2.
fn v2(options: NodeOptions) -> NodeOptions {
    options.set("cluster_rpc", "on").set("cluster_incremental_sync", "on").set("cluster_gwctl_sync", "off")
}

impl Fleet {
    fn start(data_planes: usize) -> Self {
        let cluster = Cluster::new(GWCTL);
        let cp = cluster.start(&v2(cluster.options("cp", "control_plane")));
        let dps = (0..data_planes)
            .map(|number| cluster.start(&v2(cluster.options(&format!("dp-{number}"), "data_plane"))))
            .collect();
        let fleet = Self { cp, dps, upstream: Upstream::start(), cluster };
        let service = json!({"name": "echo", "host": "127.0.0.1", "port": fleet.upstream.port});
        fleet.post("/services", &service);
        fleet
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let answer = post(self.cp.admin(), path, body);
        assert_eq!(answer.status, 201, "{path}: {}", answer.body);
        answer.json()
    }

    /// Makes a route by path to the echo service; gives its id.
    fn route(&self, path: &str) -> String {
        let route = self.post("/services/echo/routes", &json!({"paths": [path]}));
        route["id"].as_str().unwrap().to_owned()
    }

    /// Waits until every data plane answers the path with the status.
    fn serves(&self, path: &str, status: u16) {
        for dp in &self.dps {
            wait_until(&format!("{path} to answer {status}"), || answer(dp, path).status == status);
        }
    }

    fn version(&self) -> u64 {
        get(self.cp.admin(), "/gwctl/fleet").json()["version"].as_u64().unwrap()
    }

    /// Waits until every data plane has the version of the control plane, by its own account.
    fn in_sync(&self) {
        let hash = format!("{:032}", self.version());
        for dp in &self.dps {
            wait_until("a data plane to have the newest version", || {
                get(dp.status(), "/status").json()["configuration_hash"] == json!(hash)
            });
        }
    }

    fn rows(&self) -> Vec<Value> {
        get(self.cp.admin(), "/clustering/data-planes").json()["data"].as_array().unwrap().clone()
    }
}

fn answer(dp: &Node, path: &str) -> Answer {
    let asked = Request { method: "GET", path, ..Request::default() };
    request(dp.proxy(), &asked).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// How often a node has applied changes, and how often everything anew, in this part of its log.
fn applied(log: &str) -> (usize, usize) {
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("changes applied")).collect();
    let anew = lines.iter().filter(|line| line.contains("wipe=true") || line.contains("\"wipe\":true")).count();
    (lines.len() - anew, anew)
}

#[test]
fn changes_arrive_one_by_one_and_cascades_with_them() {
    let fleet = Fleet::start(2);
    let route = fleet.route("/guarded");
    fleet.serves("/guarded", 200);
    let plugin = fleet.post(&format!("/routes/{route}/plugins"), &json!({"name": "key-auth"}));
    fleet.serves("/guarded", 401);
    fleet.post("/consumers", &json!({"username": "alice"}));
    fleet.post("/consumers/alice/key-auth", &json!({"key": "alices-key"}));
    let with_key = || {
        let asked = Request { method: "GET", path: "/guarded", headers: &[("apikey", "alices-key")], body: None };
        fleet.dps.iter().map(|dp| request(dp.proxy(), &asked).unwrap().status).collect::<Vec<_>>()
    };
    wait_until("the key to be known", || with_key() == [200, 200]);
    assert_eq!(delete(fleet.cp.admin(), "/consumers/alice").status, 204);
    wait_until("the key to be gone with its consumer", || with_key() == [401, 401]);
    assert_eq!(delete(fleet.cp.admin(), &format!("/routes/{route}")).status, 204);
    fleet.serves("/guarded", 404);
    let gone = get(fleet.cp.admin(), &format!("/plugins/{}", plugin["id"].as_str().unwrap()));
    assert_eq!(gone.status, 404, "the plugin went with its route");
    fleet.in_sync();
    let payloads = fleet.cp.log().matches("configuration ready for data planes").count();
    assert_eq!(payloads, 0, "nobody is sent whole configurations\n{}", fleet.cp.log());
    for dp in &fleet.dps {
        let (changes, anew) = applied(&dp.log());
        assert!(changes >= 4 && anew == 1, "{changes} changes, {anew} times everything:\n{}", dp.log());
    }
}

#[test]
fn a_service_turned_off_is_not_served() {
    let fleet = Fleet::start(1);
    fleet.route("/x");
    fleet.serves("/x", 200);
    assert_eq!(patch(fleet.cp.admin(), "/services/echo", &json!({"enabled": false})).status, 200);
    fleet.serves("/x", 404);
    assert_eq!(patch(fleet.cp.admin(), "/services/echo", &json!({"enabled": true})).status, 200);
    fleet.serves("/x", 200);
}

#[test]
fn the_control_plane_shows_which_version_each_data_plane_has() {
    let fleet = Fleet::start(2);
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
    let shown = get(fleet.cp.admin(), "/gwctl/fleet").json();
    for item in shown["items"].as_array().unwrap() {
        assert_eq!((&item["protocol"], &item["connected"]), (&json!("v2"), &json!(true)));
        assert_eq!((&item["applied_version"], &item["lag_millis"]), (&shown["version"], &json!(0)));
    }
    assert_eq!(get(fleet.dps[0].status(), "/status/ready").status, 200);
}

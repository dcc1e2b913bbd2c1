//! A cluster that is kept in sync by gwctl's own protocol, as real processes: the default between nodes of gwctl.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod equality;
mod failures;
mod log_level;
mod several;
mod snapshots;

use gwctl_testkit::{Answer, Cluster, Node, Request, Upstream, delete, get, post, request, wait_until};
use serde_json::{Value, json};

const GWCTL: &str = env!("CARGO_BIN_EXE_gwctl");

/// A control plane and data planes with nothing set that has to do with protocols.
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
        let cp = cluster.start(&cluster.options("cp", "control_plane"));
        let dps = (0..data_planes)
            .map(|number| cluster.start(&cluster.options(&format!("dp-{number}"), "data_plane")))
            .collect();
        let fleet = Self { cp, dps, upstream: Upstream::start(), cluster };
        fleet.service();
        fleet
    }

    fn service(&self) {
        self.post("/services", &json!({"name": "echo", "host": "127.0.0.1", "port": self.upstream.port}));
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

    fn document(&self) -> Value {
        get(self.cp.admin(), "/gwctl/fleet").json()
    }

    fn members(&self) -> Vec<Value> {
        self.document()["items"].as_array().unwrap().clone()
    }

    /// Waits until the control plane knows that every data plane has the newest version, under its digest.
    fn in_sync(&self) {
        wait_until("the fleet to be in sync", || {
            let fleet = self.document();
            let items = fleet["items"].as_array().unwrap();
            items.len() == self.dps.len()
                && items.iter().all(|member| {
                    member["connected"] == true
                        && member["applied_version"] == fleet["version"]
                        && member["config_hash"] == fleet["config_hash"]
                })
        });
        let hash = self.document()["config_hash"].clone();
        for dp in &self.dps {
            wait_until("the data plane to say so too", || {
                get(dp.status(), "/status").json()["configuration_hash"] == hash
            });
        }
    }
}

fn answer(dp: &Node, path: &str) -> Answer {
    let asked = Request { method: "GET", path, ..Request::default() };
    request(dp.proxy(), &asked).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// How often a node was given the whole configuration, in this part of its log.
fn copies(log: &str) -> usize {
    log.matches("the whole configuration is coming").count()
}

#[test]
fn changes_arrive_one_by_one_and_cascades_with_them() {
    let fleet = Fleet::start(2);
    let route = fleet.route("/guarded");
    fleet.serves("/guarded", 200);
    fleet.post(&format!("/routes/{route}/plugins"), &json!({"name": "key-auth"}));
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
    fleet.in_sync();
    for dp in &fleet.dps {
        assert_eq!(copies(&dp.log()), 1, "everything once, at the first start:\n{}", dp.log());
    }
    let payloads = fleet.cp.log().matches("configuration ready for data planes").count();
    assert_eq!(payloads, 0, "nobody is sent a payload of protocol v1:\n{}", fleet.cp.log());
}

#[test]
fn the_fleet_shows_how_each_node_is_kept_up_to_date_and_how_fast() {
    let fleet = Fleet::start(1);
    fleet.in_sync();
    for number in 0..5 {
        fleet.route(&format!("/r/{number}"));
        fleet.in_sync();
    }
    let member = fleet.members().remove(0);
    assert_eq!(member["protocol"], "gwctl", "{member}");
    assert_eq!(member["state"], "online", "{member}");
    assert!(member["protocol_reason"].as_str().unwrap().contains("cluster_gwctl_sync"), "{member}");
    let lags = &member["lags"];
    assert!(lags["reports"].as_u64().unwrap() >= 5, "{member}");
    assert!(lags["p50_millis"].as_u64() <= lags["p99_millis"].as_u64(), "{member}");
    assert!(lags["p99_millis"].as_u64() <= lags["max_millis"].as_u64(), "{member}");
    assert!(member["stored_micros"].as_u64() <= member["active_micros"].as_u64(), "{member}");
    let rows = get(fleet.cp.admin(), "/clustering/data-planes").json();
    assert_eq!(rows["data"][0]["sync_status"], "normal", "{rows}");
    assert_eq!(rows["data"][0]["config_hash"], member["config_hash"], "{rows}");
}

#[test]
fn either_end_can_keep_to_protocol_v1_and_the_reason_is_shown() {
    for (off_at_cp, reason) in [(true, "off on this control plane"), (false, "does not offer")] {
        let cluster = Cluster::new(GWCTL);
        let set = |options: gwctl_testkit::NodeOptions, off: bool| {
            options.set("cluster_gwctl_sync", if off { "off" } else { "on" })
        };
        let cp = cluster.start(&set(cluster.options("cp", "control_plane"), off_at_cp));
        let dp = cluster.start(&set(cluster.options("dp", "data_plane"), !off_at_cp));
        let fleet = Fleet { cp, dps: vec![dp], upstream: Upstream::start(), cluster };
        fleet.service();
        fleet.route("/x");
        fleet.serves("/x", 200);
        let member = fleet.members().remove(0);
        assert_eq!(member["protocol"], "v1", "{member}");
        assert!(member["protocol_reason"].as_str().unwrap().contains(reason), "{member}");
    }
}

#[test]
fn with_protocol_v2_on_it_takes_its_place_and_calls_go_beside_it() {
    let cluster = Cluster::new(GWCTL);
    let v2 =
        |options: gwctl_testkit::NodeOptions| options.set("cluster_rpc", "on").set("cluster_incremental_sync", "on");
    let cp = cluster.start(&v2(cluster.options("cp", "control_plane")));
    let dp = cluster.start(&v2(cluster.options("dp", "data_plane")));
    let fleet = Fleet { cp, dps: vec![dp], upstream: Upstream::start(), cluster };
    fleet.service();
    fleet.route("/x");
    fleet.serves("/x", 200);
    fleet.in_sync();
    let member = fleet.members().remove(0);
    assert_eq!(member["protocol"], "gwctl", "{member}");
    let path = format!("/clustering/data-planes/{}/log-level", member["id"].as_str().unwrap());
    wait_until("the log level to be told", || get(fleet.cp.admin(), &path).status == 200);
    fleet.route("/y");
    fleet.serves("/y", 200);
    fleet.in_sync();
    assert_eq!(fleet.members()[0]["protocol"], "gwctl");
}

#[test]
fn a_node_goes_from_v1_to_our_own_sync_and_back() {
    let cluster = Cluster::new(GWCTL);
    let cp = cluster.start(&cluster.options("cp", "control_plane"));
    let options = cluster.options("dp", "data_plane");
    let dp = cluster.start(&options.clone().set("cluster_gwctl_sync", "off"));
    let mut fleet = Fleet { cp, dps: vec![dp], upstream: Upstream::start(), cluster };
    fleet.service();
    for (path, setting, protocol) in [("/one", "on", "gwctl"), ("/two", "off", "v1"), ("/three", "on", "gwctl")] {
        fleet.route(path);
        fleet.serves(path, 200);
        fleet.dps[0].stop();
        fleet.dps[0] = fleet.cluster.start(&options.clone().set("cluster_gwctl_sync", setting));
        assert_eq!(answer(&fleet.dps[0], path).status, 200, "at once, from the cache");
        wait_until("the node to be back", || {
            let member = fleet.members().remove(0);
            member["connected"] == true && member["protocol"] == protocol
        });
    }
    fleet.route("/four");
    fleet.serves("/four", 200);
    fleet.in_sync();
}

//! Health of targets, from a killed upstream to the Admin API: real processes, real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use gwctl_testkit::{Answer, Cluster, Node, Request, Upstream, get, patch, post, put, request, wait_until};
use serde_json::{Value, json};

const GWCTL: &str = env!("CARGO_BIN_EXE_gwctl");

/// A traditional node that balances over two upstreams.
struct Scene {
    // Dropped in this order: the node shows its log before the folder goes.
    node: Node,
    one: Upstream,
    other: Upstream,
    _cluster: Cluster,
}

impl Scene {
    fn start(healthchecks: &Value, retries: u32) -> Self {
        let cluster = Cluster::new(GWCTL);
        let node = cluster.start(&cluster.options("node", "traditional"));
        let (one, other) = (Upstream::start(), Upstream::start());
        created(post(node.admin(), "/upstreams", &json!({"name": "u.test", "healthchecks": healthchecks})));
        for upstream in [&one, &other] {
            created(post(node.admin(), "/upstreams/u.test/targets", &json!({"target": target(upstream)})));
        }
        created(post(node.admin(), "/services", &json!({"name": "s", "host": "u.test", "retries": retries})));
        created(post(node.admin(), "/services/s/routes", &json!({"paths": ["/"]})));
        let scene = Self { node, one, other, _cluster: cluster };
        wait_until("the route and both targets", || {
            scene.ask().status == 200 && scene.health(&scene.other).is_string()
        });
        scene
    }

    fn ask(&self) -> Answer {
        request(self.node.proxy(), &Request { method: "GET", path: "/", ..Request::default() }).unwrap()
    }

    /// Port that answered.
    fn answered_by(&self) -> u64 {
        let answer = self.ask();
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()["port"].as_u64().unwrap()
    }

    fn health(&self, upstream: &Upstream) -> Value {
        health_on(self.node.admin(), &target(upstream))
    }

    fn balancer(&self) -> Value {
        get(self.node.admin(), "/upstreams/u.test/health?balancer_health=1").json()["data"].clone()
    }

    fn mark(&self, place: &str) -> Answer {
        let path = format!("/upstreams/u.test/targets/{place}");
        let asked = Request { method: "PUT", path: &path, ..Request::default() };
        request(self.node.admin(), &asked).unwrap()
    }
}

fn target(upstream: &Upstream) -> String {
    format!("127.0.0.1:{}", upstream.port)
}

/// `health` of a target, by an Admin or a status listener; null when nothing is known.
fn health_on(port: u16, target: &str) -> Value {
    let page = get(port, "/upstreams/u.test/health").json();
    let rows = page["data"].as_array().cloned().unwrap_or_default();
    rows.iter().find(|row| row["target"] == target).map(|row| row["health"].clone()).unwrap_or_default()
}

fn created(answer: Answer) {
    assert_eq!(answer.status, 201, "{}", answer.body);
}

/// Probes five times a second that turn a target at the first result, which may take its time.
fn active() -> Value {
    json!({"active": {"timeout": 60, "healthy": {"interval": 0.2, "successes": 1},
        "unhealthy": {"interval": 0.2, "tcp_failures": 1, "http_failures": 1, "timeouts": 1}}})
}

/// Passive checks only: nothing but a hand takes a target in again.
fn passive(tcp_failures: u32) -> Value {
    json!({"passive": {"unhealthy": {"tcp_failures": tcp_failures}}})
}

#[test]
fn active_checks_take_a_killed_target_out_and_in_again() {
    let scene = Scene::start(&active(), 0);
    assert_eq!((scene.health(&scene.one), scene.health(&scene.other)), (json!("HEALTHY"), json!("HEALTHY")));
    scene.one.stop();
    wait_until("the killed target to be found", || scene.health(&scene.one) == "UNHEALTHY");
    for _ in 0..20 {
        assert_eq!(scene.answered_by(), u64::from(scene.other.port));
    }
    let balancer = scene.balancer();
    assert_eq!((&balancer["health"], &balancer["balancer_health"]), (&json!("HEALTHY"), &json!("HEALTHY")));
    assert_eq!(balancer["details"]["weight"], json!({"total": 200, "available": 100, "unavailable": 100}));
    let again = Upstream::start_at(scene.one.port);
    wait_until("the target to come back", || scene.health(&scene.one) == "HEALTHY");
    wait_until("requests to reach it", || scene.answered_by() == u64::from(again.port));
}

#[test]
fn passive_checks_take_a_killed_target_out_within_their_limit() {
    let scene = Scene::start(&passive(2), 0);
    scene.one.stop();
    let failed = (0..20).filter(|_| scene.ask().status != 200).count();
    assert_eq!(failed, 2, "as many as the limit says");
    assert_eq!(scene.health(&scene.one), "UNHEALTHY");
    let rows = get(scene.node.admin(), "/upstreams/u.test/health").json();
    let row = rows["data"].as_array().unwrap().iter().find(|row| row["health"] == "UNHEALTHY").cloned().unwrap();
    assert_eq!(row["data"]["addresses"][0]["ip"], "127.0.0.1");
    assert_eq!(row["data"]["weight"], json!({"total": 100, "available": 0, "unavailable": 100}));
}

#[test]
fn with_retries_a_killed_target_costs_no_request() {
    let scene = Scene::start(&passive(1), 1);
    scene.one.stop();
    for _ in 0..20 {
        assert_eq!(scene.answered_by(), u64::from(scene.other.port));
    }
    assert_eq!(scene.health(&scene.one), "UNHEALTHY");
}

#[test]
fn changes_of_the_configuration_keep_what_is_known() {
    let scene = Scene::start(&passive(1), 1);
    scene.one.stop();
    wait_until("the killed target to be found", || {
        scene.answered_by();
        scene.health(&scene.one) == "UNHEALTHY"
    });
    let third = Upstream::start();
    created(post(scene.node.admin(), "/upstreams/u.test/targets", &json!({"target": target(&third)})));
    wait_until("the new target", || scene.health(&third) == "HEALTHY");
    assert_eq!(scene.health(&scene.one), "UNHEALTHY", "after a new target");
    let admin = scene.node.admin();
    assert_eq!(
        patch(admin, "/upstreams/u.test", &json!({"slots": 1234, "healthchecks": {"threshold": 10}})).status,
        200
    );
    assert_eq!(patch(admin, "/services/s", &json!({"retries": 0, "path": "/changed"})).status, 200);
    wait_until("the changed service", || {
        scene.ask().json()["path"].as_str().is_some_and(|path| path.starts_with("/changed"))
    });
    for _ in 0..20 {
        assert_ne!(scene.answered_by(), u64::from(scene.one.port));
    }
    assert_eq!(scene.health(&scene.one), "UNHEALTHY", "after changes of the upstream and the service");
}

#[test]
fn the_admin_api_sets_health_by_hand() {
    let scene = Scene::start(&passive(1), 0);
    let one = target(&scene.one);
    assert_eq!(scene.mark(&format!("{one}/unhealthy")).status, 204);
    assert_eq!(scene.health(&scene.one), "UNHEALTHY");
    for _ in 0..10 {
        assert_eq!(scene.answered_by(), u64::from(scene.other.port));
    }
    assert_eq!(scene.mark(&format!("{one}/{one}/healthy")).status, 204);
    assert_eq!(scene.health(&scene.one), "HEALTHY");
    for upstream in [&scene.one, &scene.other] {
        assert_eq!(scene.mark(&format!("{}/unhealthy", target(upstream))).status, 204);
    }
    let answer = scene.ask();
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("failure to get a peer from the ring-balancer"), "{}", answer.body);
    assert_eq!(scene.balancer()["balancer_health"], "UNHEALTHY");
    assert_eq!(scene.mark("127.0.0.1:1/healthy").status, 404);
}

#[test]
fn without_checks_health_is_off_and_cannot_be_set() {
    let scene = Scene::start(&json!({}), 0);
    assert_eq!(scene.health(&scene.one), "HEALTHCHECKS_OFF");
    assert_eq!(scene.balancer()["health"], "HEALTHCHECKS_OFF");
    let answer = scene.mark(&format!("{}/unhealthy", target(&scene.one)));
    assert_eq!((answer.status, answer.json()), (400, json!({"message": "no healthchecker found for u.test"})));
}

#[test]
fn a_data_plane_shows_its_own_view_and_its_control_plane_none() {
    let cluster = Cluster::new(GWCTL);
    let cp = cluster.start(&cluster.options("cp", "control_plane"));
    let dp = cluster.start(&cluster.options("dp", "data_plane"));
    let (one, other) = (Upstream::start(), Upstream::start());
    created(post(cp.admin(), "/upstreams", &json!({"name": "u.test", "healthchecks": active()})));
    for upstream in [&one, &other] {
        created(post(cp.admin(), "/upstreams/u.test/targets", &json!({"target": target(upstream)})));
    }
    one.stop();
    wait_until("the data plane to find the killed target", || {
        get(dp.status(), "/upstreams/u.test/health").status == 200
            && health_on(dp.status(), &target(&one)) == "UNHEALTHY"
            && health_on(dp.status(), &target(&other)) == "HEALTHY"
    });
    assert_eq!(health_on(cp.admin(), &target(&one)), Value::Null);
    let path = format!("/upstreams/u.test/targets/{}/unhealthy", target(&one));
    assert_eq!(put(cp.admin(), &path, &json!({})).status, 404);
}

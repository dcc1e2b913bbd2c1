//! The life of a node's process: reload, change of the binary, graceful stop, shedding. Real processes under real load.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod activation;
mod certificates;
mod folder;
mod load;
mod reload;
mod shedding;
mod slow;
mod stopping;
mod upgrade;

use gwctl_testkit::{Cluster, Node, Upstream, get, post, wait_until};
use serde_json::json;

const GWCTL: &str = env!("CARGO_BIN_EXE_gwctl");

/// Another program beside the nodes, which ends with the test.
struct Beside(std::process::Child);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal to a process of this test.
fn signal(process: u32, name: &str) {
    let sent = std::process::Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Waits for a text in the log of a node.
fn wait_for_log(node: &Node, text: &str) {
    wait_until(&format!("`{text}` in the log"), || node.log().contains(text));
}

/// Gives a node a service with the route `/echo`, and waits until it answers.
fn route_to(node: &Node, upstream: u16) {
    let service = json!({"name": "echo", "host": "127.0.0.1", "port": upstream});
    assert_eq!(post(node.admin(), "/services", &service).status, 201);
    assert_eq!(post(node.admin(), "/services/echo/routes", &json!({"name": "echo", "paths": ["/echo"]})).status, 201);
    wait_until("the route to answer", || get(node.proxy(), "/echo").status == 200);
}

/// A traditional node with a route to an upstream.
fn serving(cluster: &Cluster) -> (Node, Upstream) {
    let upstream = Upstream::start();
    let node = cluster.start(&cluster.options("node", "traditional"));
    route_to(&node, upstream.port);
    (node, upstream)
}

/// A figure of `GET /metrics`, by the whole name with its labels.
fn figure(node: &Node, name: &str) -> u64 {
    let text = get(node.status(), "/metrics").body;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name} in {text}"));
    line.trim().parse().unwrap()
}

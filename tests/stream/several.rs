//! Data planes with more than one control plane.

use super::GWCTL;
use gwctl_testkit::{Cluster, Node, Upstream, free_ports, get, post, wait_until};
use serde_json::json;

fn with_route(cp: &Node, upstream: &Upstream, path: &str) {
    let service = json!({"name": "echo", "host": "127.0.0.1", "port": upstream.port});
    assert_eq!(post(cp.admin(), "/services", &service).status, 201);
    assert_eq!(post(cp.admin(), "/services/echo/routes", &json!({"paths": [path]})).status, 201);
}

fn connected(cp: &Node) -> usize {
    let fleet = get(cp.admin(), "/gwctl/fleet").json();
    fleet["items"].as_array().unwrap().iter().filter(|member| member["connected"] == true).count()
}

#[test]
fn data_planes_spread_over_control_planes_and_go_to_the_other_when_one_is_gone() {
    let cluster = Cluster::new(GWCTL);
    let upstream = Upstream::start();
    let [second] = free_ports();
    let mut one = cluster.start(&cluster.options("one", "control_plane"));
    let listen = format!("127.0.0.1:{second}");
    let other = cluster.start(&cluster.options("other", "control_plane").set("cluster_listen", &listen));
    with_route(&one, &upstream, "/one");
    with_route(&other, &upstream, "/other");
    let both = format!("127.0.0.1:{},{listen}", cluster.cluster_port());
    // With eight nodes all on one side would happen once in 128 runs; so it does not matter which side that is.
    let dps: Vec<Node> = (0..8)
        .map(|number| {
            let options = cluster.options(&format!("dp-{number}"), "data_plane");
            cluster.start(&options.set("cluster_control_plane", &both))
        })
        .collect();
    wait_until("every node to be connected", || connected(&one) + connected(&other) == dps.len());
    one.kill();
    wait_until("every node to be at the other", || connected(&other) == dps.len());
    for dp in &dps {
        wait_until("the other's configuration", || dp.ask("/other").status == 200);
        assert_eq!(dp.ask("/one").status, 404);
    }
}

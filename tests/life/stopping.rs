//! SIGQUIT lets what is in flight end, SIGTERM soon, and what is cut is named.

use crate::load::{Load, Upgraded, echoing_upstream};
use crate::{GWCTL, route_to, serving, signal, wait_for_log};
use gwctl_testkit::{Cluster, get, post, wait_until};
use serde_json::json;
use std::net::TcpStream;

#[test]
fn a_websocket_has_the_time_for_draining_and_the_node_ends_with_it() {
    let cluster = Cluster::new(GWCTL);
    let mut node = cluster.start(&cluster.options("node", "traditional").set("shutdown_grace", 3600));
    route_to(&node, echoing_upstream());
    let mut socket = Upgraded::open(node.proxy(), "/echo");
    assert!(socket.echoes());
    signal(node.id(), "QUIT");
    wait_until("the listener to be closed", || TcpStream::connect(("127.0.0.1", node.proxy())).is_err());
    assert!(socket.echoes() && !node.has_ended());
    drop(socket);
    assert!(node.ended().success());
    assert!(!node.log().contains("cut at the end"), "{}", node.log());
}

#[test]
fn a_websocket_that_outlives_its_time_is_named_with_route_client_and_age() {
    let cluster = Cluster::new(GWCTL);
    let mut node = cluster.start(&cluster.options("node", "traditional").set("shutdown_grace", 1));
    route_to(&node, echoing_upstream());
    let mut socket = Upgraded::open(node.proxy(), "/echo");
    assert!(socket.echoes());
    signal(node.id(), "QUIT");
    assert!(node.ended().success());
    let log = node.log();
    let line = log.lines().find(|line| line.contains("cut at the end of the deadline")).expect("it is named");
    for part in ["127.0.0.1:", "by route echo", "age_s=", "bytes=8"] {
        assert!(line.contains(part), "`{part}` in {line}");
    }
}

#[test]
fn a_request_that_outlives_its_time_is_named_with_route_client_and_age() {
    let cluster = Cluster::new(GWCTL);
    let mut node = cluster.start(&cluster.options("node", "traditional").set("shutdown_grace", 1));
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let service = json!({"name": "silent", "host": "127.0.0.1", "port": silent.local_addr().unwrap().port()});
    assert_eq!(post(node.admin(), "/services", &service).status, 201);
    let route = json!({"name": "never", "paths": ["/never"]});
    assert_eq!(post(node.admin(), "/services/silent/routes", &route).status, 201);
    let arrived = std::thread::spawn(move || silent.accept().map(|(stream, _)| stream));
    // Changes are seen in order: with a route that was made later the one before is known.
    let page = json!({"name": "request-termination", "config": {"status_code": 418}});
    assert_eq!(post(node.admin(), "/routes", &json!({"name": "later", "paths": ["/later"]})).status, 201);
    assert_eq!(post(node.admin(), "/routes/later/plugins", &page).status, 201);
    wait_until("the route to be known", || get(node.proxy(), "/later").status == 418);
    let proxy = node.proxy();
    let client = std::thread::spawn(move || {
        let asked = gwctl_testkit::Request { method: "GET", path: "/never", ..Default::default() };
        gwctl_testkit::request(proxy, &asked).is_err()
    });
    let held = arrived.join().unwrap().unwrap();
    signal(node.id(), "QUIT");
    assert!(node.ended().success());
    drop(held);
    assert!(client.join().unwrap(), "the request is cut");
    let log = node.log();
    let line = log.lines().find(|line| line.contains("request cut at the end")).unwrap_or_else(|| panic!("{log}"));
    for part in ["route=never", "client=127.0.0.1", "path=/never"] {
        assert!(line.contains(part), "`{part}` in {line}");
    }
    let age = line.split("age_ms=").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
    assert!(age.is_some_and(|age| age >= 1000), "{line}");
}

#[test]
fn sigterm_cuts_websockets_at_once_and_hastens_a_slow_end() {
    let cluster = Cluster::new(GWCTL);
    let mut node = cluster.start(&cluster.options("node", "traditional").set("shutdown_grace", 600));
    route_to(&node, echoing_upstream());
    let mut socket = Upgraded::open(node.proxy(), "/echo");
    assert!(socket.echoes());
    signal(node.id(), "QUIT");
    wait_until("the listener to be closed", || TcpStream::connect(("127.0.0.1", node.proxy())).is_err());
    assert!(socket.echoes());
    signal(node.id(), "TERM");
    assert!(node.ended().success(), "{}", node.log());
    assert!(!socket.echoes());
}

#[test]
fn a_thousand_changes_fail_no_request_and_cut_no_websocket() {
    let cluster = Cluster::new(GWCTL);
    let (node, _upstream) = serving(&cluster);
    let service = json!({"name": "socket", "host": "127.0.0.1", "port": echoing_upstream()});
    assert_eq!(post(node.admin(), "/services", &service).status, 201);
    assert_eq!(post(node.admin(), "/services/socket/routes", &json!({"paths": ["/socket"]})).status, 201);
    wait_until("the route to answer", || get(node.proxy(), "/socket").status == 200);
    let mut socket = Upgraded::open(node.proxy(), "/socket");
    let load = Load::start(node.proxy());
    for number in 0..1000 {
        let route = json!({"name": format!("r{}", number % 50), "paths": [format!("/other-{number}")]});
        let answer = gwctl_testkit::put(node.admin(), &format!("/services/echo/routes/r{}", number % 50), &route);
        assert!(matches!(answer.status, 200 | 201), "{}", answer.body);
        if number % 100 == 0 {
            assert!(socket.echoes());
            signal(node.id(), "HUP");
        }
    }
    wait_for_log(&node, "settings reloaded");
    wait_until("the last change to be served", || get(node.proxy(), "/other-999").status == 200);
    assert!(socket.echoes());
    let (answered, failures) = load.end();
    assert!(failures.is_empty(), "{failures:?} beside {answered} answers");
}

//! Which route answers, by files and by a control plane.

use super::live::Live;
use super::{Ran, gwctl, path};
use serde_json::{Value, json};

const ROUTES: &str = r#"
_format_version: "3.0"
services:
- name: orders
  url: http://orders.internal:9/x
  routes:
  - {name: list, paths: [/orders], methods: [GET]}
  - {name: gold, paths: [/orders], methods: [GET], headers: {x-tier: [gold]}}
  - {name: any, paths: [/]}
  - {name: shop, paths: [/orders], hosts: [shop.example], snis: [shop.example], protocols: [https]}
  - {name: tls, paths: [/tls], protocols: [https]}
- {name: idle, url: "http://h:9", enabled: false, routes: [{name: sleeping, paths: [/orders]}]}
"#;

fn by_file(arguments: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let file = path(folder.path(), "kong.yaml");
    std::fs::write(&file, ROUTES).unwrap();
    gwctl(&[&["explain"], arguments, &["-f", &file]].concat())
}

#[test]
fn the_route_and_the_reasons_against_the_others_are_told() {
    let ran = by_file(&["GET", "/orders/1?x=2"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let expected =
        "GET /orders/1?x=2 is answered by route list\n  service orders, sent on to http://orders.internal:9/x/1?x=2\n";
    assert!(ran.out.starts_with(expected), "{}", ran.out);
    for line in [
        "list   answers    path /orders",
        "any    outranked  path /, but comes later in the order",
        "gold   no fit     headers.x-tier: gold; the request has none",
        "! route sleeping is not served: its service idle is disabled",
    ] {
        assert!(ran.out.lines().any(|shown| shown == line), "{line}:\n{}", ran.out);
    }
    let gold = by_file(&["/orders", "-H", "X-Tier: gold", "--expect", "gold"]);
    assert_eq!(gold.code, 0, "{}{}", gold.out, gold.err);
    let other = by_file(&["POST", "/orders", "--expect", "gold"]);
    assert!(other.code == 6 && other.err.contains("by route any, expected route gold"), "{}", other.err);
}

#[test]
fn a_url_says_host_scheme_and_server_name() {
    let ran = by_file(&["https://shop.example/orders", "-o", "json"]);
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&told["answer"]["route"], &told["request"]["sni"]), (&json!("shop"), &json!("shop.example")));
    let plain: Value = serde_json::from_str(&by_file(&["/tls", "--host", "shop.example", "-o", "json"]).out).unwrap();
    let answer = &plain["answer"];
    assert!(answer["route"] == "tls" && answer["refused"].as_str().unwrap().starts_with("426"), "{answer}");
    let list = plain["routes"].as_array().unwrap().iter().find(|route| route["route"] == "gold").unwrap();
    assert_eq!((&list["field"], &list["wants"]), (&json!("paths"), &json!(["/orders"])));
}

#[test]
fn a_control_plane_is_asked_when_no_file_is_given() {
    let live = Live::start();
    let none = live.run(&["explain", "/orders"]);
    assert!(
        none.code == 0 && none.out.contains("GET /orders is answered by no route: 404"),
        "{}{}",
        none.out,
        none.err
    );
    assert_eq!(live.run(&["apply", "-f", &live.file("kong.yaml", ROUTES)]).code, 0);
    let ran = live.run(&["explain", "/orders", "--expect", "list"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
}

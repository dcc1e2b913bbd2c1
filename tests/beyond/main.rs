//! What gwctl's Admin API has beyond Kong's, with real processes: changes, dry runs, events, history, tokens.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod rollback;
mod tokens;
mod writers;

use gwctl_testkit::{Answer, Cluster, LIMIT, Node, Request, delete, get, patch, post, request, wait_until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

const GWCTL: &str = env!("CARGO_BIN_EXE_gwctl");

fn control_plane() -> (Node, Cluster) {
    let cluster = Cluster::new(GWCTL);
    let node = cluster.start(&cluster.options("cp", "control_plane"));
    (node, cluster)
}

fn version(port: u16) -> u64 {
    get(port, "/gwctl/history?size=1").json()["version"].as_u64().unwrap()
}

/// As many services as asked for, each with a route and a plugin.
fn operations(count: usize) -> Value {
    let each = (0..count).flat_map(|number| {
        let id = format!("aaaaaaaa-0000-4000-8000-{number:012}");
        let service = json!({"name": format!("s{number}"), "host": "a.test"});
        let route = json!({"name": format!("r{number}"), "paths": [format!("/p{number}")], "service": {"id": id}});
        let plugin = json!({"name": "key-auth", "service": {"id": id}});
        [
            json!({"action": "create", "entity": "services", "id": id, "body": service}),
            json!({"action": "create", "entity": "routes", "body": route}),
            json!({"action": "create", "entity": "plugins", "body": plugin}),
        ]
    });
    json!({ "operations": each.collect::<Vec<_>>() })
}

#[test]
fn many_operations_are_one_version_and_one_push() {
    let (cp, cluster) = control_plane();
    let dp = cluster.start(&cluster.options("dp", "data_plane"));
    let before = version(cp.admin());
    let done = post(cp.admin(), "/gwctl/changes", &operations(400));
    assert_eq!((done.status, &done.json()["created"]), (200, &json!(1200)), "{}", done.body);
    assert_eq!(version(cp.admin()), before + 1);
    wait_until("the data plane to serve the last route", || get(dp.proxy(), "/p399").status != 404);
    assert_eq!(version(cp.admin()), before + 1);
}

#[test]
fn a_batch_with_a_mistake_changes_nothing_and_tells_where_it_is() {
    let (cp, _cluster) = control_plane();
    let mut batch = operations(50);
    batch["operations"][75]["body"]["paths"] = json!(["no slash"]);
    batch["operations"][120]["body"]["host"] = json!(7);
    let before = version(cp.admin());
    let refused = post(cp.admin(), "/gwctl/changes", &batch);
    assert_eq!(refused.status, 400);
    let errors = refused.json()["errors"].clone();
    let indexes: Vec<u64> = errors.as_array().unwrap().iter().map(|error| error["index"].as_u64().unwrap()).collect();
    assert!(indexes.contains(&75) && indexes.contains(&120), "{indexes:?}");
    assert_eq!(version(cp.admin()), before);
    assert_eq!(get(cp.admin(), "/services").json()["data"], json!([]));
}

#[test]
fn a_dry_run_is_taken_back_and_a_stale_write_is_refused() {
    let (cp, _cluster) = control_plane();
    let port = cp.admin();
    let made = post(port, "/services", &json!({"name": "a", "host": "a.test"}));
    let tag = made.header("etag").unwrap().to_owned();
    let tried = post(port, "/gwctl/changes?dry_run=1", &operations(10));
    assert_eq!((tried.status, &tried.json()["created"], &tried.json()["dry_run"]), (200, &json!(30), &json!(true)));
    assert_eq!(patch(port, "/services/a?dry_run=1", &json!({"retries": 9})).json()["retries"], 9);
    assert_eq!(delete(port, "/services/a?dry_run=1").status, 204);
    let now = get(port, "/services/a");
    assert_eq!((now.header("etag"), &now.json()["retries"]), (Some(&*tag), &json!(5)));
    let guarded = |body: &Value| {
        let headers = [("If-Match", &*tag)];
        let asked = Request { method: "PATCH", path: "/services/a", headers: &headers, body: Some(body) };
        request(port, &asked).unwrap().status
    };
    assert_eq!(guarded(&json!({"retries": 1})), 200);
    assert_eq!(guarded(&json!({"retries": 2})), 412);
    assert_eq!(get(port, "/services/a").json()["retries"], 1);
}

#[test]
fn a_declarative_file_can_be_tried_on_a_node_without_a_store() {
    let cluster = Cluster::new(GWCTL);
    let node = cluster.start(&cluster.options("node", "traditional").set("database", "off"));
    let file = json!({"_format_version": "3.0", "services": [{"name": "a", "host": "a.test"}]});
    assert_eq!(post(node.admin(), "/config?dry_run=1", &file).status, 201);
    assert_eq!(get(node.admin(), "/services").json()["data"], json!([]));
    let wrong = json!({"_format_version": "3.0", "services": [{"name": "a"}]});
    assert_eq!(post(node.admin(), "/config?dry_run=1", &wrong).status, 400);
    assert_eq!(post(node.admin(), "/config", &file).status, 201);
    assert_eq!(get(node.admin(), "/services").json()["data"][0]["name"], "a");
}

/// A stream of events.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(port: u16, query: &str) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        write!(stream, "GET /gwctl/events{query} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut events = Self(BufReader::new(stream));
        events.until("hello");
        events
    }

    /// Reads on to the next event of this name; its data.
    fn until(&mut self, name: &str) -> Value {
        let mut current = String::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the stream ended before {name}");
            if let Some(event) = line.strip_prefix("event: ") {
                current = event.trim().to_owned();
            }
            if let Some(data) = line.strip_prefix("data: ").filter(|_| current == name) {
                return serde_json::from_str(data).unwrap();
            }
        }
    }
}

#[test]
fn events_tell_of_changes_and_of_data_planes_that_join_apply_and_leave() {
    let (cp, cluster) = control_plane();
    let mut events = Events::open(cp.admin(), "");
    let dp = cluster.start(&cluster.options("dp", "data_plane"));
    let id = events.until("joined")["id"].clone();
    let made = post(cp.admin(), "/services", &json!({"name": "a", "host": "a.test"}));
    assert_eq!(made.status, 201);
    let change = events.until("change");
    assert_eq!((&change["records"][0]["entity"], &change["counts"]), (&json!("services"), &json!({"created": 1})));
    loop {
        let applied = events.until("applied");
        assert_eq!(applied["id"], id);
        if applied["version"] == change["version"] {
            break;
        }
    }
    drop(dp);
    assert_eq!(events.until("left")["id"], id);
    let since = change["version"].as_u64().unwrap() - 1;
    let again = Events::open(cp.admin(), &format!("?since={since}")).until("change");
    assert_eq!(again, change, "a stream that comes back is told what it missed");
}

#[test]
fn the_past_can_be_read_and_survives_a_restart() {
    let (mut cp, _cluster) = control_plane();
    let port = cp.admin();
    post(port, "/services", &json!({"name": "a", "host": "one.test"}));
    let first = version(port);
    let asked = json!({"host": "two.test"});
    let headers = [("Gwctl-User", "ada")];
    let change = Request { method: "PATCH", path: "/services/a", headers: &headers, body: Some(&asked) };
    assert_eq!(request(port, &change).unwrap().status, 200);
    post(port, "/consumers", &json!({"username": "u"}));
    post(port, "/consumers/u/key-auth", &json!({"key": "hidden-key"}));
    assert!(cp.stop().success());
    cp.restart();
    let port = cp.admin();
    let then = get(port, &format!("/gwctl/versions/{first}")).json();
    assert_eq!(then["entities"]["services"][0]["host"], "one.test");
    assert!(then["entities"].get("consumers").is_none(), "{then}");
    let row = get(port, "/gwctl/history").json()["data"][2].clone();
    assert_eq!((&row["who"], &row["changes"]), (&json!("ada"), &json!(1)));
    assert!(row["from"].as_str().unwrap().contains("127.0.0.1"), "{row}");
    let last = first + 3;
    let changes = get(port, &format!("/gwctl/versions/{first}..{last}"));
    assert_eq!((changes.status, changes.json()["data"].as_array().unwrap().len()), (200, 3));
    assert!(!changes.body.contains("hidden-key"), "{}", changes.body);
    assert!(get(port, &format!("/gwctl/versions/{last}?secrets=1")).body.contains("hidden-key"));
}

#[test]
fn the_description_of_the_api_names_the_server_that_gave_it() {
    let (cp, _cluster) = control_plane();
    let described: Answer = get(cp.admin(), "/gwctl/openapi.json");
    let document = described.json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["servers"][0]["url"], format!("http://127.0.0.1:{}", cp.admin()));
    assert!(document["paths"]["/services/{key}"]["patch"].is_object());
}

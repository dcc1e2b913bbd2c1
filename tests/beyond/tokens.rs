//! An Admin API that asks for tokens.

use crate::GWCTL;
use gwctl_testkit::{Answer, Cluster, Node, Request, request, wait_until};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// A control plane that asks for tokens, and the first of them.
fn guarded(cluster: &Cluster) -> (Node, String) {
    let options = cluster.options("cp", "control_plane").set("admin_auth", "token");
    let node = Node::spawn(cluster.executable(), &options);
    let asked = Request { method: "GET", path: "/", ..Request::default() };
    wait_until("the Admin API to answer", || request(node.admin(), &asked).is_ok());
    let secret = std::fs::read_to_string(cluster.path("cp").join("admin-token")).unwrap();
    (node, secret.trim().to_owned())
}

fn send(node: &Node, token: &str, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str())];
    let headers = if token.is_empty() { &[][..] } else { &headers[..] };
    request(node.admin(), &Request { method, path, headers, body }).unwrap()
}

#[test]
fn nobody_comes_in_without_a_token_and_each_does_what_its_role_may() {
    let cluster = Cluster::new(GWCTL);
    let (cp, first) = guarded(&cluster);
    let file = cluster.path("cp").join("admin-token");
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!cp.log().contains(&first), "a secret in the log");
    let refused = send(&cp, "", "GET", "/services", None);
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer realm=\"gwctl\"")));
    assert!(refused.json()["message"].as_str().unwrap().contains("Authorization: Bearer"), "{}", refused.body);

    let make = |name: &str, role: &str| {
        let made = send(&cp, &first, "POST", "/gwctl/tokens", Some(&json!({"name": name, "role": role})));
        assert_eq!(made.status, 201, "{}", made.body);
        made.json()["token"].as_str().unwrap().to_owned()
    };
    let (reader, writer) = (make("watcher", "read"), make("ci", "write"));
    let service = json!({"name": "a", "host": "a.test"});
    assert_eq!(send(&cp, &reader, "GET", "/services", None).status, 200);
    let refused = send(&cp, &reader, "POST", "/services", Some(&service));
    assert_eq!(refused.status, 403);
    assert_eq!(refused.json()["message"], "Forbidden: token 'watcher' has the role read, POST /services needs write");
    assert_eq!(send(&cp, &writer, "POST", "/services", Some(&service)).status, 201);
    assert_eq!(send(&cp, &writer, "GET", "/gwctl/tokens", None).status, 403);

    let history = send(&cp, &reader, "GET", "/gwctl/history?size=1", None).json();
    assert_eq!(history["data"][0]["who"], "ci", "the history names the token");
    let headers = [("Kong-Admin-Token", reader.as_str())];
    let asked = Request { method: "GET", path: "/services/a", headers: &headers, body: None };
    assert_eq!(request(cp.admin(), &asked).unwrap().status, 200);
}

#[test]
fn a_revoked_token_is_refused_at_once_and_tokens_survive_a_restart() {
    let cluster = Cluster::new(GWCTL);
    let (mut cp, first) = guarded(&cluster);
    let made = send(&cp, &first, "POST", "/gwctl/tokens", Some(&json!({"name": "ci", "role": "write"}))).json();
    let secret = made["token"].as_str().unwrap().to_owned();
    assert_eq!(send(&cp, &secret, "GET", "/", None).status, 200);
    assert!(cp.stop().success());
    drop(cp);
    let (cp, again) = guarded(&cluster);
    assert_eq!(again, first, "the file of the first token is left alone");
    assert_eq!(send(&cp, &secret, "GET", "/", None).status, 200);
    assert_eq!(send(&cp, &first, "DELETE", "/gwctl/tokens/ci", None).status, 204);
    assert_eq!(send(&cp, &secret, "GET", "/", None).status, 401);
    assert_eq!(send(&cp, &first, "DELETE", "/gwctl/tokens/first", None).status, 409);
}

/// A file with masks in it would put them in the place of the secrets.
#[test]
fn whoever_may_only_read_gets_no_files_with_masks() {
    let cluster = Cluster::new(GWCTL);
    let (cp, first) = guarded(&cluster);
    let made = send(&cp, &first, "POST", "/gwctl/tokens", Some(&json!({"name": "watcher", "role": "read"}))).json();
    assert_eq!(send(&cp, &first, "POST", "/consumers", Some(&json!({"username": "u"}))).status, 201);
    assert_eq!(send(&cp, &first, "POST", "/consumers/u/key-auth", Some(&json!({"key": "sesame"}))).status, 201);
    let dump = |token: &str| {
        let mut command = std::process::Command::new(GWCTL);
        let address = format!("http://127.0.0.1:{}", cp.admin());
        command.args(["dump", "--addr", &address]).env("GWCTL_TOKEN", token).output().unwrap()
    };
    let refused = dump(made["token"].as_str().unwrap());
    assert_eq!(refused.status.code(), Some(4), "{}", String::from_utf8_lossy(&refused.stderr));
    assert_eq!(String::from_utf8_lossy(&refused.stdout), "");
    let allowed = dump(&first);
    assert!(allowed.status.success() && String::from_utf8_lossy(&allowed.stdout).contains("sesame"));
}

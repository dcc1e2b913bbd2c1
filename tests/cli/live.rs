//! The commands against a control plane.

use super::{Ran, command, gwctl, path};
use gwctl_testkit::{Cluster, Node, get, wait_for};
use std::fs;
use tempfile::TempDir;

const FILE: &str = r#"
_format_version: "3.0"
services:
- name: orders
  url: http://127.0.0.1:9/x
  routes: [{name: list, paths: [/orders]}]
  plugins: [{name: key-auth}]
upstreams: [{name: pool, targets: [{target: "127.0.0.1:81", weight: 10}]}]
consumers: [{username: bob, keyauth_credentials: [{key: sesame-open}]}]
"#;

pub(crate) struct Live {
    pub(crate) cp: Node,
    files: TempDir,
    _cluster: Cluster,
}

impl Live {
    pub(crate) fn start() -> Live {
        let cluster = Cluster::new(env!("CARGO_BIN_EXE_gwctl"));
        let cp = cluster.start(&cluster.options("cp", "control_plane"));
        Live { cp, files: tempfile::tempdir().unwrap(), _cluster: cluster }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        gwctl(&[arguments, &["--addr", &format!("http://127.0.0.1:{}", self.cp.admin())]].concat())
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let file = path(self.files.path(), name);
        fs::write(&file, text).unwrap();
        file
    }
}

#[test]
fn apply_does_what_diff_said_and_nothing_is_left_to_do() {
    let live = Live::start();
    let file = live.file("kong.yaml", FILE);
    let before = live.run(&["diff", "-f", &file]);
    assert_eq!(before.code, 2, "{}", before.err);
    assert!(before.out.contains("+ create services orders") && before.out.contains("7 to create"), "{}", before.out);
    let dry = live.run(&["apply", "-f", &file, "--dry-run"]);
    assert_eq!((dry.code, live.run(&["get", "services"]).out.lines().count()), (2, 1));
    let applied = live.run(&["apply", "-f", &file]);
    assert_eq!(applied.code, 0, "{}", applied.err);
    for ran in [&before, &dry, &applied] {
        assert!(!ran.out.contains("sesame-open") && !ran.err.contains("sesame-open"), "a key is shown: {}", ran.out);
    }
    let after = live.run(&["diff", "-f", &file, "--prune"]);
    assert_eq!((after.code, after.out.as_str()), (0, "no differences\n"));
    let rows = live.run(&["get", "targets", "--of", "pool"]);
    assert!(rows.out.contains("127.0.0.1:81  10"), "{}", rows.out);
    let routes = live.run(&["get", "Route/list"]);
    assert!(routes.out.contains("orders") && !routes.out.contains(" ID"), "{}", routes.out);
    assert_eq!(live.run(&["get", "services", "-o", "name"]).out, "services/orders\n");
    assert!(live.run(&["get", "routes", "--tag", "no"]).err.contains("no routes found with tag no"));
    let table = live.run(&["get", "key-auths"]);
    assert!(table.code == 0 && !table.out.contains("sesame-open"), "{}", table.out);
    let missing = live.run(&["get", "route", "nope"]);
    assert!(missing.code == 1 && missing.err.contains("\"nope\""), "{}", missing.err);
}

#[test]
fn a_dump_applies_without_a_difference_here_and_elsewhere() {
    let live = Live::start();
    assert_eq!(live.run(&["apply", "-f", &live.file("kong.yaml", FILE)]).code, 0);
    for form in [&["--format", "deck"][..], &["-o", "json"], &["--defaults"], &["--no-ids"]] {
        let dumped = live.run(&[&["dump"], form].concat());
        assert_eq!(dumped.code, 0, "{}", dumped.err);
        assert!(dumped.err.contains("1 secret in clear text"), "{}", dumped.err);
        let file = live.file("dump.yaml", &dumped.out);
        let diff = live.run(&["diff", "-f", &file, "--prune"]);
        assert_eq!((diff.code, diff.out.as_str()), (0, "no differences\n"), "{form:?}: {}{}", diff.err, dumped.out);
        assert_eq!(live.run(&[&["dump"], form].concat()).out, dumped.out);
    }
    let other = Live::start();
    let file = live.file("kong.yaml", &live.run(&["dump"]).out);
    let applied = other.run(&["apply", "-f", &file]);
    assert_eq!(applied.code, 0, "{}", applied.err);
    assert_eq!(other.run(&["dump"]).out, live.run(&["dump"]).out);
    let online = other.run(&["validate", "--online", "-f", &file]);
    assert_eq!((online.code, online.out.as_str()), (0, "valid: 7 entities\n"), "{}", online.err);
}

#[test]
fn a_dump_with_passwords_applies_elsewhere_and_they_still_let_in() {
    let (live, other) = (Live::start(), Live::start());
    let text = "_format_version: \"3.0\"\nconsumers: [{username: bob, basicauth_credentials: [{username: bob, password: open-sesame}]}]\n";
    assert_eq!(live.run(&["apply", "-f", &live.file("kong.yaml", text)]).code, 0);
    let hash = |live: &Live| get(live.cp.admin(), "/consumers/bob/basic-auth/bob").json()["password"].clone();
    for form in [&[][..], &["--no-ids"], &["--defaults", "-o", "json"]] {
        let dumped = live.run(&[&["dump"], form].concat());
        assert!(dumped.out.contains("_transform") && dumped.err.contains("hashes"), "{}{}", dumped.out, dumped.err);
        let file = live.file("dump.yaml", &dumped.out);
        let applied = other.run(&["apply", "-f", &file]);
        assert_eq!(applied.code, 0, "{}", applied.err);
        assert_eq!(hash(&other), hash(&live), "{form:?}");
        assert_eq!(other.run(&["diff", "--prune", "-f", &file]).code, 0);
        // A change of something else sends the password again.
        let retagged = other.run(&["apply", "-f", &file, "--select-tag", "team-a"]);
        assert!(retagged.code == 0 && retagged.err.contains("applied 2 changes"), "{}", retagged.err);
        assert_eq!(hash(&other), hash(&live), "{form:?}");
        let none = live.file("none.yaml", "_format_version: \"3.0\"");
        assert_eq!(other.run(&["apply", "--prune", "--yes", "-f", &none]).code, 0);
    }
}

#[test]
fn a_server_that_would_hash_a_hash_again_is_not_sent_it() {
    let live = Live::start();
    let hash = "a".repeat(40);
    let text = format!(
        "_format_version: \"3.0\"\n_transform: false\nconsumers: [{{username: bob, basicauth_credentials: [{{username: bob, password: {hash}}}]}}]\n"
    );
    let file = live.file("kong.yaml", &text);
    let address = super::history::without_batches(live.cp.admin());
    let ran = gwctl(&["apply", "-f", &file, "--addr", &address]);
    assert!(ran.code == 1 && ran.err.contains("would hash them again; nothing was sent"), "{}", ran.err);
    assert!(!ran.err.contains(&hash) && !ran.out.contains(&hash));
    assert_eq!(get(live.cp.admin(), "/consumers").json()["data"], serde_json::json!([]));
    let plain = live.file("plain.yaml", &text.replace("_transform: false\n", "").replace(&hash, "p"));
    assert_eq!(gwctl(&["apply", "-f", &plain, "--addr", &address]).code, 0);
}

#[test]
fn values_of_the_environment_are_masked_in_a_diff() {
    let live = Live::start();
    let head = "_format_version: \"3.0\"\n";
    let file = live
        .file("env.yaml", &format!("{head}services: [{{name: a, host: ${{{{ env \"DECK_HOST\" }}}}, port: 81}}]\n"));
    let address = format!("http://127.0.0.1:{}", live.cp.admin());
    let diff = Ran::of(
        super::command(&["diff", "-f", &file, "--addr", &address]).env("DECK_HOST", "hidden.example").output().unwrap(),
    );
    assert!(diff.code == 2 && diff.out.contains("host: \"[masked]\""), "{}{}", diff.out, diff.err);
    assert!(!diff.out.contains("hidden.example"), "{}", diff.out);
}

#[test]
fn a_token_comes_from_a_file_or_the_environment() {
    let cluster = Cluster::new(env!("CARGO_BIN_EXE_gwctl"));
    let node = Node::spawn(cluster.executable(), &cluster.options("cp", "control_plane").set("admin_auth", "token"));
    let address = format!("http://127.0.0.1:{}", node.admin());
    let run = |arguments: &[&str]| gwctl(&[&["get", "services", "--addr", &address], arguments].concat());
    let refused = wait_for("the Admin API", || Some(run(&[])).filter(|ran| ran.code != 69));
    assert!(refused.code == 4 && refused.err.contains("--token-file"), "{}", refused.err);
    let file = path(&cluster.path("cp"), "admin-token");
    assert_eq!(run(&["--token-file", &file]).code, 0);
    let secret = fs::read_to_string(&file).unwrap();
    let by_environment =
        Ran::of(command(&["get", "services", "--addr", &address]).env("GWCTL_TOKEN", secret.trim()).output().unwrap());
    assert_eq!(by_environment.code, 0, "{}", by_environment.err);
}

#[test]
fn a_file_is_one_version_or_nothing() {
    let live = Live::start();
    let applied = live.run(&["apply", "-f", &live.file("kong.yaml", FILE)]);
    assert!(applied.code == 0 && applied.err.contains("applied 7 changes, version 2"), "{}", applied.err);
    let many: String = (0..2000)
        .map(|n| format!("- {{name: s{n}, url: \"http://h:9/x\", routes: [{{name: r{n}, paths: [/r{n}]}}]}}\n"))
        .collect();
    let many = live.file("many.yaml", &format!("_format_version: \"3.0\"\nservices:\n{many}"));
    let applied = live.run(&["apply", "-f", &many]);
    assert!(applied.err.contains("applied 4000 changes, version 3"), "{}", applied.err);
}

#[test]
fn nothing_is_deleted_without_prune_and_a_yes() {
    let live = Live::start();
    assert_eq!(live.run(&["apply", "-f", &live.file("kong.yaml", FILE)]).code, 0);
    let small =
        live.file("small.yaml", "{_format_version: \"3.0\", services: [{name: orders, url: \"http://h:9/x\"}]}");
    let kept = live.run(&["apply", "-f", &small]);
    assert!(kept.code == 0 && kept.out.contains("left as they are"), "{}{}", kept.out, kept.err);
    let asked = live.run(&["apply", "-f", &small, "--prune"]);
    assert!(asked.code == 5 && asked.err.contains("--yes"), "{}", asked.err);
    assert_eq!(live.run(&["get", "route", "list"]).code, 0, "nothing was sent");
    let pruned = live.run(&["apply", "-f", &small, "--prune", "--yes"]);
    assert_eq!(pruned.code, 0, "{}", pruned.err);
    assert_eq!(live.run(&["get", "consumers"]).out.lines().count(), 1);
    assert_eq!(live.run(&["diff", "-f", &small, "--prune"]).code, 0);
}

#[test]
fn select_tags_leave_what_others_own() {
    let live = Live::start();
    let team = |tag: &str, name: &str| {
        let head = format!("_format_version: \"3.0\"\n_info: {{select_tags: [{tag}]}}\n");
        live.file(&format!("{tag}.yaml"), &format!("{head}services: [{{name: {name}, url: \"http://h:9\"}}]\n"))
    };
    for file in [team("a", "one"), team("b", "two")] {
        let ran = live.run(&["apply", "-f", &file, "--prune", "--yes"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
    }
    let empty = live.file("empty.yaml", "_format_version: \"3.0\"\n");
    assert_eq!(live.run(&["apply", "-f", &empty, "--select-tag", "a", "--prune", "--yes"]).code, 0);
    let left = live.run(&["get", "services"]).out;
    assert!(left.contains("two") && !left.contains("one"), "{left}");
}

#[test]
fn a_fleet_without_data_planes_is_no_error() {
    let live = Live::start();
    let list = live.run(&["dp", "list"]);
    assert_eq!((list.code, list.out.lines().count()), (0, 1), "{}", list.err);
    let document: serde_json::Value = serde_json::from_str(&live.run(&["dp", "list", "-o", "json"]).out).unwrap();
    assert_eq!(document["kind"], "fleet");
    let frame = live.run(&["top"]);
    assert!(frame.code == 0 && frame.out.contains("0 data planes"), "{}{}", frame.out, frame.err);
    assert!(!frame.out.contains('\x1b'), "off a terminal it prints one frame");
}

//! Commands about data planes, with real ones.

use super::{Ran, gwctl, path};
use gwctl_testkit::{Cluster, get, wait_until};
use serde_json::Value;

#[test]
fn apply_waits_for_a_share_of_the_fleet_and_names_who_is_missing() {
    let cluster = Cluster::new(env!("CARGO_BIN_EXE_gwctl"));
    let cp = cluster.start(&cluster.options("cp", "control_plane"));
    let _good = cluster.start(&cluster.options("good", "data_plane"));
    let _poor = cluster.start(&cluster.options("poor", "data_plane").set("plugins", "cors"));
    wait_until("both data planes to be connected", || {
        let rows = get(cp.admin(), "/gwctl/fleet").json();
        rows["items"].as_array().is_some_and(|items| items.iter().filter(|item| item["connected"] == true).count() == 2)
    });
    let address = format!("http://127.0.0.1:{}", cp.admin());
    let run = |arguments: &[&str]| -> Ran { gwctl(&[arguments, &["--addr", &address]].concat()) };
    let folder = tempfile::tempdir().unwrap();
    let file = path(folder.path(), "kong.yaml");
    let write = |host: &str| {
        let text = format!(
            "_format_version: \"3.0\"\nservices:\n- {{name: a, url: \"http://{host}:9\", plugins: [{{name: key-auth}}]}}\n"
        );
        std::fs::write(&file, text).unwrap();
    };
    write("one.test");
    let first = run(&["apply", "-f", &file, "--wait=50%"]);
    assert_eq!(first.code, 0, "{}", first.err);
    wait_until("the other one to be withheld it", || {
        let rows = get(cp.admin(), "/gwctl/fleet").json();
        let items = rows["items"].as_array().cloned().unwrap_or_default();
        items.iter().any(|item| item["sync_status"] == "plugin_set_incompatible")
    });
    // Nothing is left to change; it waits all the same.
    let missing = run(&["apply", "-f", &file, "--wait", "--timeout", "3s"]);
    assert_eq!(missing.code, 3, "{}", missing.err);
    assert!(missing.err.contains("error: 1 of 2 data planes do not have version 2 after 3 s"), "{}", missing.err);
    assert!(missing.err.contains("plugin_set_incompatible") && missing.err.contains("key-auth"), "{}", missing.err);
    write("two.test");
    let late = run(&["apply", "-f", &file, "--wait", "--timeout", "3s"]);
    assert_eq!(late.code, 3, "{}", late.err);
    assert!(late.err.contains("of 2 data planes do not have version 3 after 3 s"), "{}", late.err);
    write("three.test");
    let enough = run(&["apply", "-f", &file, "--wait=50%"]);
    assert_eq!(enough.code, 0, "{}", enough.err);
    assert!(enough.err.contains("DP 1/2 have version 4"), "{}", enough.err);

    let list: Value = serde_json::from_str(&run(&["dp", "list", "-o", "json"]).out).unwrap();
    let items = list["items"].as_array().unwrap();
    let poor = items.iter().find(|item| item["sync_status"] == "plugin_set_incompatible").unwrap();
    let id = poor["id"].as_str().unwrap();
    let page = run(&["dp", "describe", id]);
    assert_eq!(page.code, 0, "{}", page.err);
    assert!(page.out.contains(&format!("id              {id}")) && page.out.contains("refused"), "{}", page.out);
    assert!(page.out.contains("plugins         1: cors"), "{}", page.out);
    let document: Value = serde_json::from_str(&run(&["dp", "describe", &id[..13], "-o", "json"]).out).unwrap();
    assert_eq!((document["id"].as_str(), &document["state"]), (Some(id), &Value::from("refused")));
    let twice = run(&["dp", "describe", poor["name"].as_str().unwrap()]);
    assert!(twice.code == 1 && twice.err.contains("2 data planes are called"), "{}", twice.err);
    let nobody = run(&["dp", "describe", "nobody"]);
    assert!(nobody.code == 1 && nobody.err.contains("`gwctl dp list`"), "{}", nobody.err);
}

#[test]
fn apply_is_not_content_with_a_fleet_that_is_lost() {
    let cluster = Cluster::new(env!("CARGO_BIN_EXE_gwctl"));
    let cp = cluster.start(&cluster.options("cp", "control_plane"));
    let mut dp = cluster.start(&cluster.options("dp", "data_plane"));
    let state = |awaited: &str| {
        wait_until(awaited, || get(cp.admin(), "/gwctl/fleet").json()["items"][0]["state"] == awaited);
    };
    state("online");
    let address = format!("http://127.0.0.1:{}", cp.admin());
    let folder = tempfile::tempdir().unwrap();
    let file = path(folder.path(), "kong.yaml");
    std::fs::write(&file, "_format_version: \"3.0\"\nservices:\n- {name: a, url: \"http://one.test:9\"}\n").unwrap();
    let apply = |limit: &str| gwctl(&["apply", "-f", &file, "--wait", "--timeout", limit, "--addr", &address]);
    dp.kill();
    state("offline");
    let lost = apply("1s");
    assert_eq!(lost.code, 3, "{}", lost.err);
    assert!(lost.err.contains("no data plane is connected after 1 s to confirm version 2"), "{}", lost.err);
    dp.restart();
    let found = apply("60s");
    assert_eq!(found.code, 0, "{}", found.err);
    assert!(found.err.contains("DP 1/1 have version 2"), "{}", found.err);
    dp.stop();
    state("left");
    let left = apply("60s");
    assert_eq!(left.code, 0, "{}", left.err);
    assert!(left.err.contains("no data plane is connected"), "{}", left.err);
}

//! A crate may import crates on lower floors only, and only those its row of the table allows (ARCHITECTURE.md).

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Crate -> crates of ours it may depend on. Test support (`gwctl-testkit`) is free as a dev-dependency.
const ALLOWED: &[(&str, &[&str])] = &[
    ("entities", &[]),
    ("wire", &["entities"]),
    ("websocket", &[]),
    ("http1", &[]),
    ("traces", &["http1"]),
    ("router", &["entities"]),
    ("declarative", &["entities"]),
    ("certs", &[]),
    ("conf", &[]),
    ("lifecycle", &[]),
    ("store", &["entities", "lifecycle"]),
    ("link", &["wire", "websocket"]),
    ("plugins", &["entities", "http1", "traces", "lifecycle"]),
    ("lua", &["entities", "plugins", "lifecycle"]),
    ("admin-client", &["entities"]),
    ("admin-api", &["entities", "declarative", "lifecycle"]),
    ("proxy", &["entities", "http1", "router", "certs", "plugins", "lifecycle"]),
    ("discovery", &["entities", "admin-client", "lifecycle"]),
    ("control-plane", &[FLOOR_0, "store", "link", "plugins", "lua", "admin-api", "discovery"]),
    ("data-plane", &[FLOOR_0, "store", "link", "plugins", "lua", "admin-api", "proxy"]),
    ("tui", &["entities"]),
    ("gwctl", &["*"]),
    ("testkit", &["*"]),
];
const FLOOR_0: &str = "floor 0";
const PURE: &[&str] =
    &["entities", "wire", "websocket", "http1", "traces", "router", "declarative", "certs", "conf", "lifecycle"];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--locked", "--offline"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

fn short(name: &str) -> &str {
    name.strip_prefix("gwctl-").unwrap_or(name)
}

fn allowed_for(name: &str, table: &BTreeMap<&str, &[&str]>) -> Option<BTreeSet<String>> {
    let row = table.get(name)?;
    Some(
        row.iter()
            .flat_map(|entry| if *entry == FLOOR_0 { PURE.to_vec() } else { vec![*entry] })
            .map(str::to_owned)
            .collect(),
    )
}

/// (crate, dependency of ours, is it a dev-dependency), for every package of the workspace.
fn edges(metadata: &Value) -> Vec<(String, String, bool)> {
    let packages = metadata["packages"].as_array().expect("packages");
    let ours: BTreeSet<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut edges = Vec::new();
    for package in packages {
        let name = package["name"].as_str().expect("package name");
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let target = dependency["name"].as_str().expect("dependency name");
            if ours.contains(target) {
                edges.push((short(name).to_owned(), short(target).to_owned(), dependency["kind"] == "dev"));
            }
        }
    }
    edges
}

#[test]
fn no_crate_imports_upwards() {
    let table: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let mut wrong = Vec::new();
    for (from, to, dev) in edges(&metadata()) {
        let Some(allowed) = allowed_for(&from, &table) else {
            wrong.push(format!("{from} has no row in the table of floors"));
            continue;
        };
        let free = allowed.contains("*") || allowed.contains(&to) || (dev && to == "testkit");
        if !free {
            wrong.push(format!("{from} may not import {to}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_crate_of_the_workspace_has_a_row() {
    let table: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() >= 10, "only {} packages seen", packages.len());
    for package in packages {
        let name = short(package["name"].as_str().expect("name"));
        assert!(table.contains_key(name), "{name} has no row in the table of floors");
    }
}

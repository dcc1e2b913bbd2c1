//! Completions and man pages are what this gwctl writes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const REFRESH: &str = "run scripts/generate and commit what it changes";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn gwctl(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_gwctl")).args(arguments).env_remove("GWCTL_ADDR").output().unwrap();
    assert!(output.status.success(), "gwctl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}; {REFRESH}", folder.display()));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn completions_are_fresh() {
    let folder = root().join("completions");
    let shells = [("gwctl.bash", "bash"), ("_gwctl", "zsh"), ("gwctl.fish", "fish"), ("gwctl.ps1", "powershell")];
    assert_eq!(names(&folder), shells.iter().map(|(file, _)| (*file).to_owned()).collect());
    for (file, shell) in shells {
        let fresh = gwctl(&["completions", shell]) == fs::read(folder.join(file)).unwrap();
        assert!(fresh, "completions/{file} is stale: {REFRESH}");
    }
}

#[test]
fn man_pages_are_fresh_and_there_is_one_for_each_command() {
    let made = tempfile::tempdir().unwrap();
    gwctl(&["man", "--dir", made.path().to_str().unwrap()]);
    let folder = root().join("man");
    assert_eq!(names(&folder), names(made.path()), "{REFRESH}");
    for name in names(made.path()) {
        let fresh = fs::read(made.path().join(&name)).unwrap() == fs::read(folder.join(&name)).unwrap();
        assert!(fresh, "man/{name} is stale: {REFRESH}");
    }
}

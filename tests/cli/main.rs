//! The binary as people and scripts meet it: help, exit codes, errors, output forms, changes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod explain;
mod files;
mod fleet;
mod help;
mod history;
mod live;

use gwctl_testkit::free_ports;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What a run left behind.
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    fn of(output: Output) -> Ran {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gwctl"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

fn gwctl(arguments: &[&str]) -> Ran {
    Ran::of(command(arguments).output().unwrap())
}

fn gwctl_with_input(arguments: &[&str], input: &str) -> Ran {
    let mut command = command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Ran::of(child.wait_with_output().unwrap())
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

/// An address where nobody listens.
fn nobody() -> String {
    let [port] = free_ports();
    format!("http://127.0.0.1:{port}")
}

#[test]
fn an_unreachable_control_plane_exits_with_69_and_a_hint() {
    let address = nobody();
    let folder = tempfile::tempdir().unwrap();
    let file = path(folder.path(), "kong.yaml");
    std::fs::write(&file, "_format_version: \"3.0\"\n").unwrap();
    let commands: [&[&str]; 7] = [
        &["history"],
        &["rollback", "1"],
        &["dp", "list"],
        &["get", "services"],
        &["top", "--once"],
        &["diff", "-f", &file],
        &["apply", "-f", &file],
    ];
    for arguments in commands {
        let ran = gwctl(&[arguments, &["--addr", &address]].concat());
        assert_eq!(ran.code, 69, "{arguments:?}: {}", ran.err);
        assert!(ran.err.starts_with("error: ") && ran.err.contains(&address), "{}", ran.err);
        assert!(ran.err.contains("\nhint: "), "{}", ran.err);
        assert_eq!(ran.out, "", "{arguments:?}");
    }
}

#[test]
fn the_address_comes_from_the_flag_of_deck_and_from_the_environment_too() {
    let address = nobody();
    let by_flag = gwctl(&["dp", "list", "--kong-addr", &address]);
    let by_environment = Ran::of(command(&["dp", "list"]).env("GWCTL_ADDR", &address).output().unwrap());
    for ran in [by_flag, by_environment] {
        assert!(ran.code == 69 && ran.err.contains(&address), "{}", ran.err);
    }
}

#[test]
fn an_address_that_is_none_is_wrong_usage() {
    let ran = gwctl(&["dp", "list", "--addr", "ftp://x"]);
    assert_eq!(ran.code, 64, "{}", ran.err);
    assert!(ran.err.contains("neither http nor https"), "{}", ran.err);
}

#[test]
fn output_in_a_pipe_has_no_colour() {
    for arguments in [&["--help"][..], &["config", "show"], &["get", "servces"], &["dp", "list", "--addr", &nobody()]] {
        let ran = Ran::of(command(arguments).env("TERM", "xterm-256color").output().unwrap());
        assert!(!ran.out.contains('\x1b') && !ran.err.contains('\x1b'), "{arguments:?}");
    }
}

#[test]
fn a_reader_that_has_gone_changes_nothing_about_what_a_command_does() {
    let folder = tempfile::tempdir().unwrap();
    let (file, address) = (path(folder.path(), "kong.yaml"), nobody());
    std::fs::write(&file, "_format_version: \"3.0\"\nservices: [{name: a, url: 'http://a'}]\n").unwrap();
    let commands: [(i32, &[&str]); 11] = [
        (0, &["help", "exit-codes"]),
        (0, &["version"]),
        (0, &["completions", "bash"]),
        (0, &["certs", "init", "--dir", &path(folder.path(), "new")]),
        (0, &["config", "show", "--set", "nginx_http_foo=1"]),
        (0, &["validate", "-f", &file]),
        (0, &["convert", "-f", &file, "--to", "deck", "-w", &path(folder.path(), "deck.yaml")]),
        (1, &["validate", "-f", "nowhere.yaml"]),
        (64, &["appply"]),
        (69, &["apply", "-f", &file, "--addr", &address]),
        (69, &["top", "--once", "--addr", &address]),
    ];
    for (code, arguments) in commands {
        let closed = || std::io::pipe().unwrap().1;
        let status = command(arguments).stdout(closed()).stderr(closed()).status().unwrap();
        assert_eq!(status.code(), Some(code), "{arguments:?}");
    }
    assert!(folder.path().join("new/cluster.key").exists() && folder.path().join("deck.yaml").exists());
}

#[test]
fn settings_are_shown_as_table_and_as_documents() {
    let table = gwctl(&["config", "show", "--origin", "--set", "admin_listen=127.0.0.1:9001"]);
    let line = table.out.lines().find(|line| line.starts_with("admin_listen ")).unwrap();
    assert!(line.contains("127.0.0.1:9001") && line.contains('#'), "{line}");
    let changed = gwctl(&["config", "show", "--changed", "-o", "json", "--set", "admin_listen=127.0.0.1:9001"]);
    let document: serde_json::Value = serde_json::from_str(&changed.out).unwrap();
    assert_eq!(document["kind"], "settings");
    assert_eq!(document["items"].as_array().unwrap().len(), 1, "{document}");
    let yaml = gwctl(&["config", "show", "-o", "yaml"]);
    assert!(yaml.out.contains("kind: settings"), "{}", yaml.out);
}

#[test]
fn shown_settings_are_a_settings_file_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(folder.path(), "shown.conf");
    let set = ["--set", "pg_password=hunter2", "--set", "cluster_cert_key=some/cluster.key"];
    let first = gwctl(&[&["config", "show", "--origin"], &set[..]].concat());
    assert!(!first.out.contains("hunter2") && first.out.contains("= some/cluster.key"), "{}", first.out);
    std::fs::write(&file, &first.out).unwrap();
    let second = gwctl(&["config", "show", "-c", &file]);
    assert_eq!(second.code, 0, "{}", second.err);
    let values = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.split("  #").next().unwrap().trim_end().to_owned()).collect()
    };
    assert_eq!(values(&second.out), values(&first.out));
}

#[test]
fn an_unknown_setting_as_a_flag_is_wrong_usage_with_a_suggestion() {
    let ran = gwctl(&["config", "show", "--set", "admin_lisen=127.0.0.1:1"]);
    assert!(ran.code == 64 && ran.err.contains("`admin_listen`"), "{}", ran.err);
}

#[test]
fn a_wrong_setting_is_named_with_its_place() {
    let ran = gwctl(&["config", "show", "--set", "role=boss"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("role") && ran.err.contains("boss"), "{}", ran.err);
}

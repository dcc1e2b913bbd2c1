//! `gwctl quickstart` as a newcomer meets it: it comes up, serves, ends by itself, leaves nothing running, and comes up again.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use gwctl_testkit::wait_until;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const GWCTL: &str = env!("CARGO_BIN_EXE_gwctl");

fn quickstart(folder: &Path, seconds: u32) -> Command {
    let mut command = Command::new(GWCTL);
    command.args(["quickstart", "--exit-after", &seconds.to_string(), "--dir"]).arg(folder);
    command.stdin(Stdio::null());
    command
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Processes whose command line names the folder.
fn processes_of(folder: &Path) -> Vec<String> {
    let needle = folder.display().to_string();
    let running = std::fs::read_dir("/proc").unwrap().flatten();
    running
        .filter_map(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            (line.contains("gwctl") && line.contains(&needle)).then_some(line)
        })
        .collect()
}

#[test]
fn a_cluster_comes_up_serves_and_ends_twice_in_the_same_folder() {
    let folder = tempfile::tempdir().unwrap();
    for round in ["first", "second"] {
        let output = quickstart(folder.path(), 1).output().unwrap();
        let (lines, words) = texts(&output);
        assert_eq!(output.status.code(), Some(0), "{round} run:\n{words}\n{lines}");
        assert!(words.contains("all answered as configured"), "{words}");
        assert!(words.contains("curl -i http://127.0.0.1:"), "{words}");
        assert!(words.contains(&format!("\n  {GWCTL} top --addr http://127.0.0.1:")), "{words}");
        assert!(lines.contains("online 2/2 in sync 2/2 GET /orders 200 200"), "{lines}");
        assert_eq!(processes_of(folder.path()), Vec::<String>::new(), "{round} run left processes");
    }
    let key = std::fs::metadata(folder.path().join("cluster.key")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&key.permissions()) & 0o777, 0o600);
}

#[test]
fn nothing_stays_behind_when_it_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = quickstart(folder.path(), 600).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let parts = ["cp.log", "dp-1.log", "dp-2.log"];
    wait_until("the nodes to run", || parts.iter().all(|part| folder.path().join(part).exists()));
    running.kill().unwrap();
    running.wait().unwrap();
    wait_until("its nodes to end", || processes_of(folder.path()).is_empty());
}

#[test]
fn an_interrupt_and_the_end_of_the_terminal_stop_everything() {
    for signal in ["-INT", "-HUP"] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = quickstart(folder.path(), 600);
        // A terminal that is gone takes no words either.
        let (gone, screen) = std::io::pipe().unwrap();
        let mut running = command.stdout(screen.try_clone().unwrap()).stderr(screen).spawn().unwrap();
        drop(command);
        drop(gone);
        wait_until("the control plane to run", || folder.path().join("cp.log").exists());
        let sent = Command::new("kill").args([signal, &running.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let mut ended = None;
        wait_until("it to end", || {
            ended = running.try_wait().unwrap();
            ended.is_some()
        });
        assert_eq!(ended.unwrap().code(), Some(0), "{signal}");
        assert_eq!(processes_of(folder.path()), Vec::<String>::new(), "{signal}");
    }
}

/// Starts without --dir, interrupts it once the control plane runs; what it says and the folders that are left.
fn in_a_fresh_folder(arguments: &[&str]) -> (String, usize) {
    let state = tempfile::tempdir().unwrap();
    let below = state.path().join("gwctl");
    let mut command = Command::new(GWCTL);
    command.arg("quickstart").args(arguments).env("XDG_STATE_HOME", state.path());
    let running = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let folders = || std::fs::read_dir(&below).into_iter().flatten().flatten().collect::<Vec<_>>();
    wait_until("the control plane to run", || folders().iter().any(|folder| folder.path().join("cp.log").exists()));
    assert!(Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap().success());
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    (texts(&output).1, folders().len())
}

#[test]
fn a_fresh_folder_goes_with_the_cluster_unless_it_is_to_be_kept() {
    let (said, left) = in_a_fresh_folder(&[]);
    assert!(said.contains("was made for this run and is removed") && left == 0, "{left}: {said}");
    let (said, left) = in_a_fresh_folder(&["--keep"]);
    assert!(said.contains("remove them with `rm -r ") && left == 1, "{left}: {said}");
}

//! `gwctl top` in a real terminal: tmux runs it, types into it and reads its screen.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use gwctl_testkit::{Cluster, Node, wait_for, wait_until};
use std::process::Command;

const GWCTL: &str = env!("CARGO_BIN_EXE_gwctl");

/// A tmux server of its own with one window of 120 by 40.
struct Terminal {
    socket: String,
}

impl Terminal {
    fn run(name: &str, command: &str) -> Self {
        let terminal = Self { socket: format!("gwctl-{name}-{}", std::process::id()) };
        // `exec` so that the pane ends with the program; the status line would take a row.
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", &format!("exec {command}")]);
        terminal
    }

    fn tmux(&self, words: &[&str]) -> String {
        let output = Command::new("tmux").args(["-L", &self.socket]).args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn shows(&self, what: &str) {
        wait_for(&format!("the screen to show {what}; it shows\n{}", self.screen()), || {
            self.screen().contains(what).then_some(())
        });
    }

    fn line_with(&self, words: &[&str]) -> bool {
        self.screen().lines().any(|line| words.iter().all(|word| line.contains(word)))
    }

    fn running(&self) -> bool {
        !self.tmux(&["list-sessions"]).is_empty()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- screen\n{}", self.screen());
        }
        self.tmux(&["kill-server"]);
    }
}

struct Fleet {
    cp: Node,
    dps: Vec<Node>,
    _cluster: Cluster,
}

fn fleet() -> Fleet {
    let cluster = Cluster::new(GWCTL);
    let cp = cluster.start(&cluster.options("cp", "control_plane"));
    let label = |number: usize| format!("zone:z{number}");
    let start = |number: usize| {
        let options = cluster.options(&format!("dp-{number}"), "data_plane");
        cluster.start(&options.set("cluster_dp_labels", label(number)))
    };
    let dps = (1..=2).map(start).collect();
    Fleet { cp, dps, _cluster: cluster }
}

#[test]
fn a_killed_data_plane_goes_offline_on_the_screen() {
    let mut fleet = fleet();
    let terminal = Terminal::run("offline", &format!("{GWCTL} top --addr http://127.0.0.1:{}", fleet.cp.admin()));
    wait_until("both data planes to be online", || {
        terminal.line_with(&["z1", "online"]) && terminal.line_with(&["z2", "online"])
    });
    fleet.dps[1].kill();
    wait_until("the second to be offline, and the first not", || {
        terminal.line_with(&["z2", "offline"]) && terminal.line_with(&["z1", "online"])
    });
    assert!(!terminal.line_with(&["z2", "normal"]), "a dead node is never shown as normal");
}

#[test]
fn the_last_data_stay_with_their_age_when_the_control_plane_goes() {
    let mut fleet = fleet();
    let terminal = Terminal::run("stale", &format!("{GWCTL} top --addr http://127.0.0.1:{}", fleet.cp.admin()));
    wait_until("a data plane to be online", || terminal.line_with(&["z1", "online"]));
    fleet.cp.kill();
    terminal.shows("ago");
    wait_until("the banner beside the last data", || {
        let screen = terminal.screen().to_lowercase();
        (screen.contains("no answer") || screen.contains("unreachable")) && screen.contains("z1")
    });
    fleet.cp.restart();
    wait_until("the data to be live again", || {
        let screen = terminal.screen().to_lowercase();
        !screen.contains("unreachable") && !screen.contains("no answer") && terminal.line_with(&["z1", "online"])
    });
}

#[test]
fn keys_filter_help_and_quit() {
    let fleet = fleet();
    let terminal = Terminal::run("keys", &format!("{GWCTL} top --addr http://127.0.0.1:{}", fleet.cp.admin()));
    wait_until("both data planes", || terminal.screen().contains("z1") && terminal.screen().contains("z2"));
    terminal.keys(&["/", "z", "o", "n", "e", "=", "z", "2", "Enter"]);
    wait_until("only the second", || terminal.line_with(&["z2"]) && !terminal.line_with(&["z1", "online"]));
    // Escape is a key by itself only when nothing follows before it is read, as with any terminal.
    terminal.keys(&["Escape"]);
    wait_until("both again", || terminal.line_with(&["z1"]) && terminal.line_with(&["z2"]));
    terminal.keys(&["?"]);
    terminal.shows("quit at once");
    terminal.keys(&["Escape"]);
    wait_until("the help to go", || {
        let screen = terminal.screen();
        screen.contains("z1") && !screen.contains("quit at once")
    });
    terminal.keys(&["q"]);
    wait_until("it to end", || !terminal.running());
}

#[test]
fn the_quickstart_ends_in_the_dashboard_and_q_stops_everything() {
    let folder = tempfile::tempdir().unwrap();
    let terminal = Terminal::run("quickstart", &format!("{GWCTL} quickstart --dir {}", folder.path().display()));
    wait_until("both data planes to be online", || {
        terminal.line_with(&["dp-1", "online"]) && terminal.line_with(&["dp-2", "online"])
    });
    terminal.keys(&["q"]);
    wait_until("it to end", || !terminal.running());
    for log in ["cp.log", "dp-1.log", "dp-2.log"] {
        let text = std::fs::read_to_string(folder.path().join(log)).unwrap();
        assert!(text.contains("stopped"), "{log}:\n{text}");
    }
}

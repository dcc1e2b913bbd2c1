//! Child processes that never outlive this one.

use crate::failure::Failure;
use std::ffi::OsStr;
use std::io::{Read as _, Seek as _, Write as _};
use std::net::TcpListener;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};

/// Time a child has to stop by itself.
const GRACE: Duration = Duration::from_secs(15);

/// Lines of a log shown when its process ends by itself.
const TAIL: usize = 12;

/// The running children. Each has a pipe as standard input and stops when it closes: also when this process is killed.
pub(crate) struct Children {
    folder: PathBuf,
    running: Vec<(String, Child)>,
}

impl Children {
    /// Logs go to files of this folder.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), running: Vec::new() }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    /// Starts `gwctl` with these words.
    pub(crate) fn spawn<W: AsRef<OsStr>>(&mut self, name: &str, words: &[W]) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::because(format!("cannot start {name}"), &error);
        let log = std::fs::File::create(self.log(name)).map_err(failed)?;
        let child = Command::new(executable()?)
            .args(words)
            .env_clear()
            .envs(std::env::vars_os().filter(|(key, _)| !is_setting(key)))
            .stdin(Stdio::piped())
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        self.running.push((name.to_owned(), child));
        Ok(())
    }

    /// Runs `gwctl` with these words on this terminal until it ends by itself.
    pub(crate) async fn foreground<W: AsRef<OsStr>>(&mut self, name: &str, words: &[W]) -> Result<ExitStatus, Failure> {
        let failed = |error: std::io::Error| Failure::because(format!("cannot run {name}"), &error);
        let child = Command::new(executable()?).args(words).kill_on_drop(true).spawn().map_err(failed)?;
        self.running.push((name.to_owned(), child));
        match self.running.last_mut() {
            Some((_, child)) => child.wait().await.map_err(failed),
            None => Err(Failure::new(format!("{name} is not running"))),
        }
    }

    /// Runs `gwctl` with these words to its end.
    pub(crate) async fn run<W: AsRef<OsStr>>(&self, name: &str, words: &[W]) -> Result<(), Failure> {
        let output = Command::new(executable()?).args(words).stdin(Stdio::null()).kill_on_drop(true).output().await;
        let output = output.map_err(|error| Failure::because(format!("cannot run {name}"), &error))?;
        if output.status.success() {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&output.stderr);
        Err(Failure::new(format!("{name} ended with {}\n{}", output.status, words.trim_end())))
    }

    /// Fails when a child has ended by itself; shows the end of its log.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        for (name, child) in &mut self.running {
            if let Ok(Some(status)) = child.try_wait() {
                let log = self.folder.join(format!("{name}.log"));
                let text = tail(&log).unwrap_or_default();
                return Err(Failure::new(format!("{name} ended with {status}\n{text}"))
                    .hint(format!("its whole log is {}", log.display())));
            }
        }
        Ok(())
    }

    /// Stops all children, last started first, and waits for their ends.
    pub(crate) async fn stop(&mut self) {
        for (_, child) in self.running.iter_mut().rev() {
            match child.stdin.take() {
                Some(stdin) => drop(stdin),
                // One in the foreground has the terminal to put back in order.
                None => terminate(child),
            }
        }
        while let Some((name, mut child)) = self.running.pop() {
            if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
                tell!("warning: {name} did not stop in {} s and is killed", GRACE.as_secs());
                let _ = child.kill().await;
            }
        }
    }
}

/// SIGTERM to a child that has not ended.
fn terminate(child: &Child) {
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(id) = id {
        // It may end at this moment; then there is nothing to stop.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    }
}

/// Settings of the surrounding shell are not meant for the nodes of the quickstart.
fn is_setting(key: &OsStr) -> bool {
    key.to_str().is_some_and(|key| key.starts_with("KONG_") || key.starts_with("GWCTL_"))
}

/// This program.
pub(crate) fn executable() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::because("cannot find the gwctl program", &error))
}

/// Ports that connections do not take for their own end, on any system with its usual settings: until its node listens
/// there, nobody comes to one by chance.
const PORTS: Range<u32> = 10_000..32_000;

/// Free ports of loopback. They are let go together, so that none is given twice; processes begin to look at different
/// places.
pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N], Failure> {
    let first = std::process::id().wrapping_mul(211);
    let mut numbers = PORTS.map(|number| PORTS.start + first.wrapping_add(number) % (PORTS.end - PORTS.start));
    let mut ports = [0; N];
    let mut held = Vec::with_capacity(N);
    for port in &mut ports {
        let found = numbers.by_ref().filter_map(|number| u16::try_from(number).ok());
        let mut free = found.filter_map(|number| Some((number, TcpListener::bind(("127.0.0.1", number)).ok()?)));
        let none = || Failure::new(format!("cannot find a free port on 127.0.0.1 from {} on", PORTS.start));
        let (number, socket) = free.next().ok_or_else(none)?;
        *port = number;
        held.push(socket);
    }
    Ok(ports)
}

/// Writes a file that only its owner can read.
pub(crate) fn write_secret(file: &Path, text: &str) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(file)?.write_all(text.as_bytes())
}

fn tail(file: &Path) -> std::io::Result<String> {
    const MOST: u64 = 16 * 1024;
    let mut log = std::fs::File::open(file)?;
    let length = log.metadata()?.len();
    log.seek(std::io::SeekFrom::Start(length.saturating_sub(MOST)))?;
    let mut bytes = Vec::new();
    log.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(TAIL)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_are_several_and_none_that_the_system_gives_to_connections() {
        let ports: [u16; 20] = free_ports().expect("ports");
        assert_eq!(ports.iter().collect::<std::collections::BTreeSet<_>>().len(), ports.len());
        let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
        // A machine may have a range of its own; the usual one begins behind ours.
        let first = range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(32_768);
        assert!(first < PORTS.end || ports.iter().all(|port| u32::from(*port) < first), "{ports:?}");
    }
}

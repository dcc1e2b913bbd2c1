//! Nodes as real processes that never outlive the test.

use crate::{Answer, Request, request, wait_for, wait_until};
use std::fs::File;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

/// Ports that connections do not take for their own end, on any system with its usual settings.
const PORTS: std::ops::Range<u16> = 10_000..32_000;

/// Free ports of loopback; none is given twice by one process.
pub fn free_ports<const N: usize>() -> [u16; N] {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // Tests that run at the same time look in different places.
    let first = std::process::id().wrapping_mul(211);
    std::array::from_fn(|_| {
        loop {
            let number = first.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % u32::from(PORTS.end - PORTS.start);
            let port = PORTS.start + u16::try_from(number).expect("it is less than their number");
            if TcpListener::bind(("127.0.0.1", port)).is_ok() {
                return port;
            }
        }
    })
}

/// What a node is started with.
#[derive(Debug, Clone, Default)]
pub struct NodeOptions {
    /// Folder of the node; kept over restarts.
    pub prefix: PathBuf,
    /// Settings by their key in kong.conf.
    pub settings: Vec<(String, String)>,
}

impl NodeOptions {
    /// Sets a setting in place of any value it had.
    pub fn set(mut self, key: &str, value: impl ToString) -> Self {
        self.settings.retain(|(name, _)| name != key);
        self.settings.push((key.to_owned(), value.to_string()));
        self
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.settings.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

/// A running `gwctl start`. Dropping it kills the process.
#[derive(Debug)]
pub struct Node {
    child: Child,
    options: NodeOptions,
    log: PathBuf,
    executable: PathBuf,
}

impl Node {
    /// Starts a node without waiting for anything.
    pub fn spawn(executable: &Path, options: &NodeOptions) -> Self {
        std::fs::create_dir_all(&options.prefix).unwrap();
        let log = options.prefix.with_extension("log");
        let out = File::options().create(true).append(true).open(&log).unwrap();
        let variables = options.settings.iter().map(|(key, value)| (format!("KONG_{}", key.to_uppercase()), value));
        let mut command = Command::new(executable);
        let command = command
            .arg("start")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("KONG_PREFIX", &options.prefix)
            .envs(variables)
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out);
        // A script that was just written is busy while a process that another test starts has not got rid of it.
        let child = wait_for("the program not to be busy", || match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => None,
            spawned => Some(spawned.unwrap()),
        });
        Self { child, options: options.clone(), log, executable: executable.to_owned() }
    }

    /// Starts a node and waits until its Admin API and its status listener answer, which come after everything else.
    pub fn start(executable: &Path, options: &NodeOptions) -> Self {
        let mut node = Self::spawn(executable, options);
        let ports: Vec<u16> = ["admin_listen", "status_listen"].iter().filter_map(|key| node.port(key)).collect();
        assert!(!ports.is_empty(), "a listener to ask");
        let ask = Request { method: "GET", path: "/status", ..Request::default() };
        wait_until("the node to answer", || {
            if let Some(status) = node.child.try_wait().unwrap() {
                panic!("the node ended with {status}:\n{}", node.log());
            }
            ports.iter().all(|port| request(*port, &ask).is_ok_and(|answer| answer.status == 200))
        });
        node
    }

    /// Port of a listener from the settings.
    pub fn port(&self, key: &str) -> Option<u16> {
        self.options.get(key)?.split([' ', ',']).next()?.rsplit(':').next()?.parse().ok()
    }

    /// Port of the Admin API.
    pub fn admin(&self) -> u16 {
        self.port("admin_listen").expect("admin_listen")
    }

    /// Port of the proxy.
    pub fn proxy(&self) -> u16 {
        self.port("proxy_listen").expect("proxy_listen")
    }

    /// Port of the status listener.
    pub fn status(&self) -> u16 {
        self.port("status_listen").expect("status_listen")
    }

    /// Asks the proxy for a path, which it has to answer.
    pub fn ask(&self, path: &str) -> Answer {
        let asked = Request { method: "GET", path, ..Request::default() };
        request(self.proxy(), &asked).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Everything the node has logged, in whole lines: one that it is writing now may be there by half.
    pub fn log(&self) -> String {
        let mut log = std::fs::read(&self.log).unwrap_or_default();
        log.truncate(log.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
        String::from_utf8(log).expect("a log in UTF-8")
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and the end it comes to.
    pub fn stop(&mut self) -> ExitStatus {
        let sent = Command::new("kill").args(["-TERM", &self.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let mut ended = None;
        wait_until("the node to stop", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.expect("it ended")
    }

    /// Whether the process is gone.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for an end the node comes to by itself.
    pub fn ended(&mut self) -> ExitStatus {
        let mut ended = None;
        wait_until("the node to end", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.expect("it ended")
    }

    /// The same node again, after a kill or stop.
    pub fn restart(&mut self) {
        *self = Self::start(&self.executable.clone(), &self.options.clone());
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- log of {}\n{}", self.options.prefix.display(), self.log());
        }
    }
}

/// A folder with a cluster certificate, and the settings of nodes that use it.
#[derive(Debug)]
pub struct Cluster {
    folder: TempDir,
    executable: PathBuf,
    cluster_port: u16,
}

impl Cluster {
    /// A new folder; nothing runs yet.
    pub fn new(executable: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let pair = gwctl_certs::cluster_pair(now, 30).unwrap();
        std::fs::write(folder.path().join("cluster.crt"), pair.certificate).unwrap();
        std::fs::write(folder.path().join("cluster.key"), pair.key).unwrap();
        let [cluster_port] = free_ports();
        Self { folder, executable: executable.into(), cluster_port }
    }

    /// Path below the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program under test.
    pub fn executable(&self) -> &Path {
        &self.executable
    }

    /// Port of the cluster listener.
    pub fn cluster_port(&self) -> u16 {
        self.cluster_port
    }

    /// Settings of a node of any role on ports of its own.
    pub fn options(&self, name: &str, role: &str) -> NodeOptions {
        let [admin, proxy, status] = free_ports();
        let options = NodeOptions { prefix: self.path(name), settings: Vec::new() }
            .set("role", role)
            .set("status_listen", format!("127.0.0.1:{status}"))
            .set("nginx_worker_processes", 1);
        let options = match role {
            "data_plane" => options,
            _ => options.set("admin_listen", format!("127.0.0.1:{admin}")),
        };
        let options = match role {
            "control_plane" => options.set("cluster_listen", format!("127.0.0.1:{}", self.cluster_port)),
            _ => options.set("proxy_listen", format!("127.0.0.1:{proxy}")),
        };
        match role {
            "traditional" => options,
            _ => options
                .set("cluster_cert", self.path("cluster.crt").display())
                .set("cluster_cert_key", self.path("cluster.key").display())
                .set("cluster_control_plane", format!("127.0.0.1:{}", self.cluster_port)),
        }
    }

    /// Starts a node.
    pub fn start(&self, options: &NodeOptions) -> Node {
        Node::start(&self.executable, options)
    }
}

//! A control plane under measurement: one kept connection to its Admin API, and what its process weighs.

use gwctl_testkit::{Answer, Cluster, Node, read_answer};
use serde_json::Value;
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the memory of the node is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// A large batch may take this long on a slow machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A control plane without data planes, alone in its cluster.
pub(crate) struct ControlPlane {
    pub(crate) node: Node,
    connection: BufReader<TcpStream>,
    cluster: Cluster,
}

impl ControlPlane {
    pub(crate) fn start(gwctl: &str) -> Self {
        let cluster = Cluster::new(gwctl);
        let node = cluster.start(&cluster.options("cp", "control_plane").set("log_level", "warn"));
        let connection = connect(node.admin());
        Self { node, connection, cluster }
    }

    /// The same node again, after an orderly end.
    pub(crate) fn restart(&mut self) {
        assert!(self.node.stop().success(), "the node did not end well");
        self.node.restart();
        self.connection = connect(self.node.admin());
    }

    /// A file beside the node.
    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.cluster.path(name)
    }

    pub(crate) fn send(&mut self, method: &str, path: &str, body: &str) -> Answer {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        let stream = self.connection.get_mut();
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        read_answer(&mut self.connection).unwrap()
    }

    /// Sends a batch of operations and gives the time it took, without that of writing it down.
    pub(crate) fn apply(&mut self, operations: &[Value]) -> Duration {
        let body = Value::from(operations).to_string();
        let (answer, took) = timed(|| self.send("POST", "/gwctl/changes?results=none", &body));
        assert_eq!(answer.status, 200, "{}", answer.body);
        took
    }

    /// Median time of a request, over so many of them.
    pub(crate) fn median(&mut self, times: usize, method: &str, ask: impl Fn(usize) -> (String, String)) -> Duration {
        let mut took: Vec<Duration> = (0..times)
            .map(|number| {
                let (path, body) = ask(number);
                let (answer, took) = timed(|| self.send(method, &path, &body));
                assert!(matches!(answer.status, 200 | 201), "{method} {path}: {}", answer.body);
                took
            })
            .collect();
        took.sort();
        took[took.len() / 2]
    }

    /// A line of `/proc/PID/status` in MiB.
    pub(crate) fn weight(&self, line: &str) -> f64 {
        weight(self.node.id(), line)
    }

    /// See [`worked`].
    pub(crate) fn worked(&self) -> Duration {
        worked(&self.node.id().to_string())
    }

    /// Bytes on disk of the store, in MiB.
    pub(crate) fn stored(&self) -> f64 {
        let file = self.cluster.path("cp").join("store.lmdb/data.mdb");
        std::fs::metadata(file).map_or(0.0, |data| data.len() as f64 / MIB)
    }
}

const MIB: f64 = 1024.0 * 1024.0;

fn connect(port: u16) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    BufReader::with_capacity(1 << 20, stream)
}

/// A line of `/proc/PID/status` in MiB; 0 when the process is gone.
pub(crate) fn weight(process: u32, line: &str) -> f64 {
    let status = std::fs::read_to_string(Path::new("/proc").join(process.to_string()).join("status"));
    let status = status.unwrap_or_default();
    let found = status.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
    let kilobytes = found.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or_default() / 1024.0
}

/// Time that processors have worked for a process (`self` or its number): on a busy machine it says more than the clock
/// on the wall.
pub(crate) fn worked(process: &str) -> Duration {
    let stat = std::fs::read_to_string(Path::new("/proc").join(process).join("stat")).unwrap();
    // The name of the program may hold spaces; the fields behind it are counted from its end.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let began = Instant::now();
    let done = work();
    (done, began.elapsed())
}

/// Looks at the memory a process holds for itself (`RssAnon`: no page of the store's map) and keeps the most.
pub(crate) struct Watch {
    most: Arc<AtomicU64>,
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(crate) fn begin(process: u32) -> Self {
        let (most, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (seen, end) = (most.clone(), done.clone());
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                seen.fetch_max((weight(process, "RssAnon") * 1024.0) as u64, Ordering::Relaxed);
                std::thread::sleep(LOOK);
            }
        });
        Self { most, done, thread: Some(thread) }
    }

    /// The most so far, in MiB.
    pub(crate) fn most(&self) -> f64 {
        self.most.load(Ordering::Relaxed) as f64 / 1024.0
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

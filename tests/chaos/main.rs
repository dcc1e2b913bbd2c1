//! A cluster whose link and nodes fail at any moment while somebody writes: afterwards the data plane serves exactly what
//! was acknowledged.
//!
//! GWCTL_CUTS is how often links are cut (default 200), GWCTL_CHAOS how often each other test does its worst (default
//! 6); the more the longer.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod nodes;
mod wire;
mod writer;

use gwctl_testkit::{Cluster, Node, NodeOptions, Random, Relay, Request, Upstream, get, post, request, wait_until};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use writer::{Outcome, Writer};

const GWCTL: &str = env!("CARGO_BIN_EXE_gwctl");
/// Most memory of its own a node may have after all that, in MiB: it holds a few hundred routes.
const MEMORY_LIMIT: u64 = 250;

/// How often the worst is done.
fn times() -> usize {
    environment("GWCTL_CHAOS").unwrap_or(6)
}

fn environment(name: &str) -> Option<usize> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// A data plane and the wire it has to the control plane.
struct Link {
    dp: Node,
    relay: Relay,
}

impl Link {
    fn status(&self, path: &str) -> u16 {
        let asked = Request { method: "GET", path, ..Request::default() };
        request(self.dp.proxy(), &asked).map_or(0, |answer| answer.status)
    }
}

/// A control plane, data planes, and a relay to each.
struct World {
    // Dropped in this order: nodes show their logs before the folder goes.
    cp: Node,
    links: Vec<Link>,
    upstream: Upstream,
    #[expect(dead_code, reason = "its folder holds the nodes")]
    cluster: Cluster,
}

impl World {
    fn start(links: usize) -> Self {
        let cluster = Cluster::new(GWCTL);
        let cp = cluster.start(&cluster.options("cp", "control_plane"));
        let link = |number: usize| {
            let relay = Relay::start(cluster.cluster_port());
            let address = format!("127.0.0.1:{}", relay.port);
            let options: NodeOptions = cluster.options(&format!("dp-{number}"), "data_plane");
            let dp = Node::spawn(cluster.executable(), &options.set("cluster_control_plane", address));
            Link { dp, relay }
        };
        let links = (0..links).map(link).collect();
        let world = Self { cp, links, upstream: Upstream::start(), cluster };
        let service = json!({"name": "echo", "host": "127.0.0.1", "port": world.upstream.port});
        assert_eq!(post(world.cp.admin(), "/services", &service).status, 201);
        world.in_sync();
        world
    }

    /// The newest version with its digest, and the rows of the data planes.
    fn fleet(&self) -> (u64, Value, Vec<Value>) {
        let fleet = get(self.cp.admin(), "/gwctl/fleet").json();
        let rows = fleet["items"].as_array().unwrap().clone();
        (fleet["version"].as_u64().unwrap(), fleet["config_hash"].clone(), rows)
    }

    /// Waits until every data plane has the newest version under its digest, by its own account.
    fn in_sync(&self) {
        wait_until("the data planes to have the newest version", || {
            let (version, digest, rows) = self.fleet();
            let has_it = |row: &Value| {
                row["connected"] == true
                    && row["applied_version"] == version
                    && row["config_hash"] == digest
                    && row["last_error"].is_null()
            };
            rows.len() == self.links.len() && rows.iter().all(has_it)
        });
        let (_, digest, _) = self.fleet();
        for link in &self.links {
            wait_until("the data plane to say so as well", || {
                get(link.dp.status(), "/status").json()["configuration_hash"] == digest
            });
        }
    }

    /// What was acknowledged is served, what was deleted is not, and nothing was broken on the way.
    fn holds(&self, outcome: &Outcome) {
        self.in_sync();
        // All serve the same rows, as their digests say: each path is asked for once.
        let mut asked = self.links.iter().cycle();
        for (paths, status) in [(&outcome.present, 200), (&outcome.absent, 404)] {
            for (path, link) in paths.iter().zip(&mut asked) {
                assert_eq!(link.status(path), status, "{path}");
            }
        }
        assert!(!outcome.present.is_empty(), "something was written");
        for node in self.links.iter().map(|link| &link.dp).chain([&self.cp]) {
            assert!(!node.log().contains("panicked"), "{}", node.log());
            assert!(memory(node) < MEMORY_LIMIT, "{} MiB", memory(node));
        }
        self.versions_follow_each_other();
    }

    fn versions_follow_each_other(&self) {
        let history = get(self.cp.admin(), "/gwctl/history?size=1000").json();
        let versions: Vec<u64> =
            history["data"].as_array().unwrap().iter().map(|row| row["version"].as_u64().unwrap()).collect();
        assert!(versions.windows(2).all(|pair| pair[0] == pair[1] + 1), "no version is skipped: {versions:?}");
    }
}

/// Memory of its own in MiB.
fn memory(node: &Node) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// A row of choices by a seed that is printed.
fn random(name: &str) -> Random {
    static OFFSET: AtomicU64 = AtomicU64::new(0);
    let seed = std::env::var("GWCTL_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) + OFFSET.fetch_add(1 << 32, Ordering::Relaxed));
    eprintln!("{name}: GWCTL_SEED={seed}");
    Random(seed)
}

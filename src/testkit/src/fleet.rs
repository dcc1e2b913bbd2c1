//! A control plane, its data planes, and an upstream that echoes.

use crate::{Cluster, Node, NodeOptions, Upstream, get, post, wait_until};
use serde_json::{Value, json};

/// How nodes are kept in sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// gwctl's own, which is used between nodes of gwctl that are set nothing.
    Gwctl,
    /// Kong's incremental sync.
    V2,
    /// Kong's whole configurations.
    V1,
}

impl Protocol {
    /// Settings of a node that uses it.
    pub fn set(self, options: NodeOptions) -> NodeOptions {
        match self {
            Self::Gwctl => options,
            Self::V2 => {
                options.set("cluster_rpc", "on").set("cluster_incremental_sync", "on").set("cluster_gwctl_sync", "off")
            }
            Self::V1 => options.set("cluster_gwctl_sync", "off"),
        }
    }

    /// How often a data plane was given the whole configuration, in this part of its log.
    pub fn copies(self, log: &str) -> usize {
        match self {
            Self::Gwctl => log.matches("the whole configuration is coming").count(),
            Self::V2 => {
                let applied = log.lines().filter(|line| line.contains("changes applied"));
                applied.filter(|line| line.contains("wipe=true") || line.contains("\"wipe\":true")).count()
            }
            Self::V1 => log.matches("configuration in force").count(),
        }
    }
}

/// A control plane and data planes named `dp-0` and so on, with a service `echo` that leads to the upstream.
#[derive(Debug)]
pub struct Fleet {
    // Dropped in this order: nodes show their logs before the folder goes.
    /// The control plane, named `cp`.
    pub cp: Node,
    /// The data planes.
    pub dps: Vec<Node>,
    /// What the service leads to.
    pub upstream: Upstream,
    /// Where they live.
    pub cluster: Cluster,
    protocol: Protocol,
}

impl Fleet {
    /// Starts so many data planes.
    pub fn start(executable: &str, protocol: Protocol, data_planes: usize) -> Self {
        let cluster = Cluster::new(executable);
        let cp = cluster.start(&protocol.set(cluster.options("cp", "control_plane")));
        let mut fleet = Self::of(cluster, protocol, cp, Vec::new());
        for number in 0..data_planes {
            let options = protocol.set(fleet.cluster.options(&format!("dp-{number}"), "data_plane"));
            fleet.join(&options);
        }
        fleet
    }

    /// Of nodes that run already.
    pub fn of(cluster: Cluster, protocol: Protocol, cp: Node, dps: Vec<Node>) -> Self {
        let fleet = Self { cp, dps, upstream: Upstream::start(), cluster, protocol };
        fleet.post("/services", &json!({"name": "echo", "host": "127.0.0.1", "port": fleet.upstream.port}));
        fleet
    }

    /// Starts another data plane.
    pub fn join(&mut self, options: &NodeOptions) {
        self.dps.push(self.cluster.start(options));
    }

    /// Makes something; gives it as the control plane shows it.
    pub fn post(&self, path: &str, body: &Value) -> Value {
        let answer = post(self.cp.admin(), path, body);
        assert_eq!(answer.status, 201, "{path}: {}", answer.body);
        answer.json()
    }

    /// Makes a route by path to the echo service; gives its id.
    pub fn route(&self, path: &str) -> String {
        let route = self.post("/services/echo/routes", &json!({"paths": [path]}));
        route["id"].as_str().expect("an id").to_owned()
    }

    /// Waits until every data plane answers the path with the status.
    pub fn serves(&self, path: &str, status: u16) {
        for dp in &self.dps {
            wait_until(&format!("{path} to answer {status}"), || dp.ask(path).status == status);
        }
    }

    /// What the control plane says of itself and its data planes.
    pub fn document(&self) -> Value {
        get(self.cp.admin(), "/gwctl/fleet").json()
    }

    /// Version of its configuration.
    pub fn version(&self) -> u64 {
        self.document()["version"].as_u64().expect("a version")
    }

    /// What it says of each data plane.
    pub fn members(&self) -> Vec<Value> {
        self.document()["items"].as_array().expect("a list").clone()
    }

    /// Data planes that it can hear.
    pub fn connected(&self) -> usize {
        self.members().iter().filter(|member| member["connected"] == true).count()
    }

    /// The rows that it shows to Kong's clients.
    pub fn rows(&self) -> Vec<Value> {
        get(self.cp.admin(), "/clustering/data-planes").json()["data"].as_array().expect("a list").clone()
    }

    /// Waits until every data plane has the newest version under one hash, by its own account and the control plane's.
    pub fn in_sync(&self) {
        wait_until("the fleet to be in sync", || {
            let shown = self.document();
            let (version, members) = (&shown["version"], shown["items"].as_array().expect("a list"));
            // Rows of Kong's incremental sync bear the version where others bear the hash.
            let hash = match self.protocol {
                Protocol::V2 => json!(format!("{:032}", version.as_u64().unwrap_or_default())),
                Protocol::Gwctl | Protocol::V1 => shown["config_hash"].clone(),
            };
            let current = |member: &Value| {
                member["connected"] == true && member["applied_version"] == *version && member["config_hash"] == hash
            };
            // There may be members that are no processes of the fleet.
            members.iter().filter(|member| current(member)).count() == self.dps.len()
                && self.dps.iter().all(|dp| get(dp.status(), "/status").json()["configuration_hash"] == hash)
        });
    }

    /// How often a data plane was given the whole configuration, in this part of its log.
    pub fn copies(&self, log: &str) -> usize {
        self.protocol.copies(log)
    }
}

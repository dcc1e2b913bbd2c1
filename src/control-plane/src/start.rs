//! Starting the role.

use crate::answers::Answers;
use crate::credentials::ClusterCredentials;
use crate::fleet::FleetTable;
use crate::listener::{self, ClusterListener};
use crate::payload::{self, Payloads};
use crate::publisher::Publisher;
use crate::revocation::Revocation;
use crate::session::Shared;
use gwctl_certs::CertError;
use gwctl_conf::{Materials, NodeConf};
use gwctl_entities::{DEFAULT_WORKSPACE, EntityError, Map, Value};
use gwctl_lifecycle::{Phase, Shutdown, Task, TaskSet, spawn};
use gwctl_store::{Origin, Store, unix_millis};
use gwctl_wire::compat::Version;
use serde_json::json;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Version of Kong this control plane stands for.
const OWN_VERSION: &str = "3.9.1";

/// How often changed rows of the fleet table are written down.
const FLEET_SAVE_INTERVAL: Duration = Duration::from_secs(5);

/// How often rows whose time to live has passed are deleted, and how many at once.
const PURGE_INTERVAL: Duration = Duration::from_secs(10);
const PURGE_BATCH: usize = 1000;

/// Why the cluster listener does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{setting} is not set")]
    ConfigMissing { setting: &'static str },
    #[error(transparent)]
    Certificate(#[from] CertError),
    #[error("cannot listen on {address} (cluster_listen)")]
    Bind { address: SocketAddr, source: std::io::Error },
    #[error("the store does not answer")]
    Store(#[from] EntityError),
    #[error("bug: {0}")]
    Bug(String),
}

impl StartError {
    /// What to try.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::ConfigMissing { .. } => Some("`gwctl certs init` makes a cluster certificate and key".to_owned()),
            Self::Bind { address, source } => Some(gwctl_lifecycle::listen_hint("cluster_listen", *address, source)),
            Self::Certificate(_) | Self::Store(_) | Self::Bug(_) => None,
        }
    }
}

/// Where the sockets of the cluster listener come from and go to when one process takes the place of another.
pub trait ClusterSockets: Send + Sync {
    /// The socket of this address that the process before has handed over.
    fn handed(&self, address: SocketAddr) -> Option<std::net::TcpListener>;

    /// A socket that listens, once more: to be handed over.
    fn opened(&self, socket: std::net::TcpListener);

    /// Ends when the process before writes no more: until then nobody is accepted.
    fn turn(&self) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// Makes sure that the store holds what every configuration holds: the default workspace and the cluster's id.
pub fn bootstrap(store: &dyn Store) -> Result<(), EntityError> {
    let workspace = store.setting_or_set("default_workspace", DEFAULT_WORKSPACE)?;
    let cluster = store.setting_or_set("cluster_id", &uuid::Uuid::new_v4().to_string())?;
    let now = unix_millis() / 1000;
    store.write(&Origin::new("", "first start"), &mut |write| {
        if write.get("workspaces", &workspace)?.is_none() {
            let row = json!({
                "id": workspace, "name": "default", "comment": null, "config": {}, "meta": {},
                "created_at": now, "updated_at": now,
            });
            write.insert("workspaces", object(row))?;
        }
        if write.get("parameters", "cluster_id")?.is_none() {
            write.insert("parameters", object(json!({"key": "cluster_id", "value": cluster, "created_at": null})))?;
        }
        Ok(())
    })?;
    Ok(())
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Keeps a store tidy: rows whose time to live has passed are deleted, so that data planes hear of it.
/// It begins when this process may write (`turn`).
pub fn purge_expired(
    store: Arc<dyn Store>,
    turn: impl Future<Output = ()> + Send + 'static,
    shutdown: Shutdown,
) -> Task {
    spawn("purge expired rows", Phase::Drain, async move {
        if shutdown.until(Phase::StopAccepting, turn).await.is_none() {
            return;
        }
        while shutdown.until(Phase::StopAccepting, tokio::time::sleep(PURGE_INTERVAL)).await.is_some() {
            let store = store.clone();
            let purged = tokio::task::spawn_blocking(move || store.purge_expired(PURGE_BATCH)).await;
            if let Ok(Err(error)) = purged {
                tracing::error!(%error, "cannot delete expired rows");
            }
        }
    })
}

/// Starts the cluster listener, the maker of payloads and the keeper of the fleet table.
pub async fn start_cluster(
    conf: &NodeConf,
    materials: &Materials,
    store: Arc<dyn Store>,
    sockets: &dyn ClusterSockets,
    shutdown: &Shutdown,
    tasks: &mut TaskSet,
) -> Result<Cluster, StartError> {
    let credentials = ClusterCredentials::read(conf, materials)?;
    let fleet = Arc::new(FleetTable::load(&*store, conf.cluster.data_plane_purge_delay)?);
    let limit = conf.cluster.max_payload;
    let payloads = Payloads::new();
    let own_version = Version::parse(OWN_VERSION).ok_or_else(|| StartError::Bug("own version".to_owned()))?;
    let answers = match conf.cluster.rpc {
        true => Some(Arc::new(Answers::new(store.clone(), conf.cluster.incremental_sync)?)),
        false => None,
    };
    let publisher = match conf.cluster.gwctl_sync {
        true => Some(Arc::new(publisher(&store, own_version, fleet.clone())?)),
        false => None,
    };
    tasks.add(match publisher.clone() {
        Some(publisher) => spawn("publisher", Phase::Stop, publisher.run(shutdown.clone())),
        None => watch_commits(&*store, fleet.clone(), shutdown.clone()),
    });
    let shared = Arc::new(Shared {
        payloads: payloads.clone(),
        fleet: fleet.clone(),
        store: store.clone(),
        own_version,
        limit,
        answers,
        publisher,
    });
    // All of them are open before one of them answers.
    for (address, socket) in open(conf, sockets).await? {
        tracing::info!(%address, "cluster listener");
        let listener = ClusterListener {
            socket,
            credentials: credentials.clone(),
            revocation: Revocation::of(conf.cluster.ocsp),
            shared: shared.clone(),
        };
        tasks.add(listener::start(listener, sockets.turn(), shutdown));
    }
    let maker = payload::Maker {
        store: store.clone(),
        fleet: fleet.clone(),
        payloads,
        limit,
        longest_cooldown: conf.db_update_frequency,
        expressions: conf.router_flavor == gwctl_conf::Flavor::Expressions,
    };
    tasks.add(spawn("payload maker", Phase::Stop, maker.run(shutdown.clone())));
    tasks.add(keep_fleet(fleet.clone(), store, shutdown.clone()));
    Ok(Cluster { fleet, credentials })
}

/// What data planes of our own sync are sent; the table learns of each version.
fn publisher(store: &Arc<dyn Store>, own_version: Version, table: Arc<FleetTable>) -> Result<Publisher, StartError> {
    let position = store.position()?;
    table.digest(position.version, position.digest.to_string());
    let committed = move |version, millis, digest: Option<String>| {
        table.committed_at(version, millis);
        if let Some(digest) = digest {
            table.digest(version, digest);
        }
    };
    Ok(Publisher::new(store.clone(), own_version, committed)?)
}

/// Lets the table learn of each version where there is no publisher to tell it.
fn watch_commits(store: &dyn Store, table: Arc<FleetTable>, shutdown: Shutdown) -> Task {
    let mut versions = store.watch();
    versions.mark_unchanged();
    spawn("commits", Phase::Stop, async move {
        while let Some(Ok(())) = shutdown.until(Phase::Stop, versions.changed()).await {
            table.committed(*versions.borrow_and_update());
        }
    })
}

/// The sockets of the cluster listeners, handed over or new.
async fn open(conf: &NodeConf, sockets: &dyn ClusterSockets) -> Result<Vec<(SocketAddr, TcpListener)>, StartError> {
    let mut opened = Vec::new();
    for address in conf.cluster_listen.iter().map(|listen| listen.address) {
        let failed = |source| StartError::Bind { address, source };
        let socket = match sockets.handed(address) {
            Some(socket) => TcpListener::from_std(socket),
            None => TcpListener::bind(address).await,
        };
        let socket = socket.map_err(failed)?;
        sockets.opened(socket.as_fd().try_clone_to_owned().map_err(failed)?.into());
        opened.push((address, socket));
    }
    Ok(opened)
}

/// A cluster listener that runs.
pub struct Cluster {
    /// What is known of the data planes.
    pub fleet: Arc<FleetTable>,
    /// The certificates of the listener.
    pub credentials: ClusterCredentials,
}

fn keep_fleet(fleet: Arc<FleetTable>, store: Arc<dyn Store>, shutdown: Shutdown) -> Task {
    spawn("fleet table", Phase::Stop, async move {
        let mut running = true;
        while running {
            running = shutdown.until(Phase::Stop, tokio::time::sleep(FLEET_SAVE_INTERVAL)).await.is_some();
            let (fleet, store) = (fleet.clone(), store.clone());
            let saved = tokio::task::spawn_blocking(move || fleet.save(&*store)).await;
            if let Ok(Err(error)) = saved {
                tracing::error!(%error, "cannot write down the table of data planes");
            }
        }
    })
}

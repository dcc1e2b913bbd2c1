//! Nodes with an Admin API: control planes, traditional nodes, and nodes without a store of their own.

use super::Node;
use super::life::Running;
use super::listeners::{facts, open};
use super::process::NodeProcess;
use super::serving::{plugin_hosts, registry, renew_upstream_tls, router_flavor, start_proxy, upstream_tls};
use crate::failure::Failure;
use gwctl_admin_api::{Backend, DeclarativeDocument, DeclarativeOptions, Face};
use gwctl_conf::{AdminAuth, Database, NodeConf, Role};
use gwctl_control_plane::declarative::DeclarativeState;
use gwctl_control_plane::{ClusterCredentials, StoreBackend, bootstrap, first_token, purge_expired, start_cluster};
use gwctl_data_plane::{Gateway, RecordDirectory};
use gwctl_entities::{EntityError, Value};
use gwctl_lifecycle::{Phase, Shutdown, Task, TaskSet, spawn};
use gwctl_proxy::SnapshotOptions;
use gwctl_store::{Changes, LmdbOptions, LmdbStore, MapSize, Store};
use std::sync::Arc;

/// Folder of the configuration of a node without a store, below the prefix.
const DECLARATIVE_FOLDER: &str = "declarative";

/// Mistakes of a declarative document that are told one by one.
const MISTAKES_SHOWN: usize = 50;

/// Changes of the store taken over one by one; more are read as a whole.
const INCREMENTAL_LIMIT: usize = 1000;

/// Starts the node.
pub(crate) async fn start(node: Node, tasks: &mut TaskSet) -> Result<Running, Failure> {
    let lmdb = open_store(&node)?;
    let store: Arc<dyn Store> = lmdb.clone();
    tasks.add(follow_predecessor(&node, lmdb.clone()));
    let stored = |error: EntityError| Failure::because("the store does not answer", &error);
    let declarative = match node.conf.database {
        Database::Off => Some(DeclarativeState::open(&*store).map_err(stored)?),
        _ => {
            bootstrap(&*store).map_err(stored)?;
            tasks.add(purge_expired(store.clone(), node.holdings.turn(), node.shutdown.clone()));
            None
        }
    };
    let (admin, status) = (open(&node, Face::Admin)?, open(&node, Face::Status)?);
    let fleet = match node.conf.role {
        Role::ControlPlane => {
            let started =
                start_cluster(&node.conf, &node.materials, store.clone(), &*node.holdings, &node.shutdown, tasks);
            let cluster = started.await.map_err(|error| {
                let failure = Failure::because("cannot start the cluster listener", &error);
                match error.hint() {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                }
            })?;
            renew_with(&node, cluster.credentials);
            Some(cluster.fleet)
        }
        _ => None,
    };
    make_first_token(&node, &*store)?;
    let process = Arc::new(NodeProcess::new(node.logging.clone(), node.identity.clone(), node.expiries.clone()));
    let backend: Arc<dyn Backend> =
        Arc::new(StoreBackend::new(store.clone(), facts(&node), process.clone(), fleet, declarative));
    let alone = node.holdings.is_alone();
    if alone {
        load_file(&node.conf, &*backend)?;
    }
    let loading = backend.clone();
    // The file is checked and loaded in one go; a bad one changes nothing.
    node.parts.set_last(move |conf| load_file(conf, &*loading));
    let proxy = match node.conf.runs_proxy() {
        true => Some(serve(&node, &store, &process, tasks)?),
        false => None,
    };
    admin.serve(&node, &backend, tasks);
    status.serve(&node, &backend, tasks);
    // The process before goes on should anything above fail, so its store was left alone until here.
    if !alone {
        load_file(&node.conf, &*backend)?;
    }
    Ok(Running::new(proxy, move || lmdb.close()))
}

/// Lets somebody in when the Admin API asks for tokens and there is none yet.
fn make_first_token(node: &Node, store: &dyn Store) -> Result<(), Failure> {
    if node.conf.admin_auth == AdminAuth::Off {
        return Ok(());
    }
    let made = first_token(store, &node.conf.prefix);
    let made = made.map_err(|error| Failure::because("the Admin API would let nobody in", &error))?;
    if let Some(path) = made {
        tracing::warn!(file = %path.display(), "first token of the Admin API written, with the role operate: keep it safe and remove the file");
    }
    Ok(())
}

/// Lets a reload replace the certificates of the cluster listener.
fn renew_with(node: &Node, credentials: ClusterCredentials) {
    let mtls = node.conf.cluster.mtls;
    node.parts.add(move |conf, materials| {
        // Another mode needs a restart.
        if conf.cluster.mtls != mtls {
            return Ok(Box::new(|| {}));
        }
        let renewal = credentials.renewal(conf, materials);
        let failed = |error| Failure::because("the cluster listener keeps its certificates", &error);
        Ok(Box::new(renewal.map_err(failed)?))
    });
}

/// Takes over what the process before has written between the start of this one and its own end.
fn follow_predecessor(node: &Node, store: Arc<LmdbStore>) -> Task {
    let (turn, shutdown) = (node.holdings.turn(), node.shutdown.clone());
    spawn("hand-over of the store", Phase::Stop, async move {
        if shutdown.until(Phase::Stop, turn).await.is_none() {
            return;
        }
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || store.refresh()).await {
            tracing::error!(%error, "cannot read the store again");
        }
    })
}

fn open_store(node: &Node) -> Result<Arc<LmdbStore>, Failure> {
    let folder = match node.conf.database {
        Database::Off => node.conf.prefix.join(DECLARATIVE_FOLDER),
        _ => node.conf.store_path.clone(),
    };
    let opened = node.holdings.claim(&folder);
    let options = LmdbOptions { map_size: MapSize::up_to(node.conf.lmdb_map_size), ..LmdbOptions::default() };
    let opened = opened.and_then(|lock| LmdbStore::open_locked(&folder, registry(node), options, lock));
    let store = opened.map_err(|error| {
        let failure = Failure::because(format!("cannot open the store {}", folder.display()), &error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    Ok(Arc::new(store))
}

/// Loads `declarative_config` or `declarative_config_string` of a node without a store.
fn load_file(conf: &NodeConf, backend: &dyn Backend) -> Result<(), Failure> {
    let (text, name) = match (&conf.declarative_config, &conf.declarative_config_string) {
        _ if conf.database != Database::Off => return Ok(()),
        (Some(path), _) => {
            let text = std::fs::read_to_string(path).map_err(|error| {
                Failure::because(format!("cannot read declarative_config {}", path.display()), &error)
                    .hint("give the path of a YAML or JSON file in UTF-8 that this user can read")
            })?;
            (text, path.display().to_string())
        }
        (None, Some(text)) => (text.clone(), "declarative_config_string".to_owned()),
        (None, None) => return Ok(()),
    };
    if text.contains("${{") {
        tracing::warn!(
            file = name,
            "expressions of decK (${{{{ env ... }}}}) are taken literally here, as in Kong; `gwctl convert --to kong` writes their values out"
        );
    }
    let loaded = backend.load_declarative(DeclarativeDocument::Text(text), DeclarativeOptions::default());
    loaded.map(drop).map_err(|error| {
        Failure::new(refusal(&name, &error.body()))
            .hint("nothing of it was loaded; `gwctl validate -f FILE` shows the line of each mistake")
    })
}

/// What a declarative document was refused for, a mistake a line.
fn refusal(name: &str, body: &Value) -> String {
    let mut text = format!("{name} is not valid");
    let mut mistakes = crate::client::mistakes::lines(&body["fields"], &|path| path.join("."));
    if mistakes.is_empty() {
        mistakes.push(body["message"].as_str().map_or_else(|| body.to_string(), str::to_owned));
    }
    for mistake in mistakes.iter().take(MISTAKES_SHOWN) {
        text += &format!("\n  {mistake}");
    }
    if mistakes.len() > MISTAKES_SHOWN {
        text += &format!("\n  and {} more", mistakes.len() - MISTAKES_SHOWN);
    }
    text
}

/// Starts the proxy and keeps its snapshot equal to the store.
fn serve(
    node: &Node,
    store: &Arc<dyn Store>,
    process: &NodeProcess,
    tasks: &mut TaskSet,
) -> Result<gwctl_proxy::Proxy, Failure> {
    let directory = Arc::new(RecordDirectory::new(Arc::new(store.clone())));
    let shared = gwctl_plugins::Node::new(&*node.identity.id, &*node.identity.hostname, directory);
    let authorities = node.materials.all("lua_ssl_trusted_certificate").iter().map(|(_, pem)| pem.as_str());
    let shared = Arc::new(shared.trusting(authorities));
    let options = SnapshotOptions {
        flavor: router_flavor(&node.conf),
        hosts: plugin_hosts(),
        node: shared,
        upstream_tls: Arc::new(upstream_tls(&node.conf, &node.materials)?),
    };
    let gateway = Arc::new(Gateway::new(options));
    renew_upstream_tls(node, &gateway);
    let follower = Follower { store: store.clone(), gateway: gateway.clone() };
    let version = follower.catch_up(None);
    tasks.add(follow(Arc::new(follower), version, node.shutdown.clone()));
    let proxy = start_proxy(node, gateway.handle().clone(), tasks)?;
    // Both are set once, here.
    let _ = process.stats.set(proxy.stats().clone());
    let _ = process.snapshots.set(gateway.handle().clone());
    Ok(proxy)
}

/// Takes the store's changes over into the snapshot.
struct Follower {
    store: Arc<dyn Store>,
    gateway: Arc<Gateway>,
}

impl Follower {
    /// Brings the snapshot to the newest version; the version it shows, None when it could not be built.
    fn catch_up(&self, shown: Option<u64>) -> Option<u64> {
        match self.advance(shown) {
            Ok(version) => Some(version),
            Err(fault) => {
                tracing::error!(error = fault, "cannot serve the newest configuration, the one before stays in force");
                None
            }
        }
    }

    fn advance(&self, shown: Option<u64>) -> Result<u64, String> {
        let words = |error: EntityError| error.to_string();
        if let Some(shown) = shown
            && let Changes::Deltas(changes) = self.store.changes_since(shown, INCREMENTAL_LIMIT).map_err(words)?
            && changes.len() < INCREMENTAL_LIMIT
        {
            let newest = changes.last().map_or(shown, |change| change.version);
            let prepared = self.gateway.prepare_changes(changes.iter().flat_map(|change| change.deltas.iter()))?;
            tracing::debug!(version = newest, took = ?prepared.took, "snapshot built from changes");
            self.gateway.install(prepared);
            return Ok(newest);
        }
        let read = self.store.read().map_err(words)?;
        let mut failed = None;
        let prepared = self.gateway.prepare(|entity| {
            read.all_rows(entity).unwrap_or_else(|error| {
                failed = Some(error.to_string());
                Vec::new()
            })
        });
        if let Some(fault) = failed {
            return Err(fault);
        }
        let prepared = prepared?;
        tracing::info!(version = read.version(), took = ?prepared.took, "snapshot built");
        self.gateway.install(prepared);
        Ok(read.version())
    }
}

fn follow(follower: Arc<Follower>, mut shown: Option<u64>, shutdown: Shutdown) -> Task {
    spawn("snapshot of the store", Phase::Stop, async move {
        let mut versions = follower.store.watch();
        while let Some(Ok(())) = shutdown.until(Phase::Stop, versions.changed()).await {
            versions.mark_unchanged();
            let follower = follower.clone();
            shown = tokio::task::spawn_blocking(move || follower.catch_up(shown)).await.unwrap_or(None);
        }
    })
}

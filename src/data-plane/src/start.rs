//! Starting the role.

use crate::apply::Configured;
use crate::directory::RecordDirectory;
use crate::gateway::Gateway;
use crate::link::{self, LinkOptions};
use crate::status::StatusBackend;
use crate::stream::StreamOptions;
use crate::sync::{self, LogLevels, SyncOptions};
use bytes::Bytes;
use gwctl_admin_api::{Backend, NodeFacts, StatusFacts};
use gwctl_certs::{
    CertError, Identity, SHARED_NAME, Source, Trust, cluster_client_config, cluster_server_name, read_certificates,
    read_roots,
};
use gwctl_conf::{Materials, Mtls, NodeConf};
use gwctl_entities::Registry;
use gwctl_lifecycle::{Phase, Shutdown, SystemClock, Task, spawn};
use gwctl_link::{ClientTls, DialOptions, ForwardProxy};
use gwctl_plugins::Node;
use gwctl_proxy::SnapshotOptions;
use gwctl_store::{DataPlaneCache, FolderLock, MapSize, StoreError};
use gwctl_wire::v1::dp_link::Settings;
use gwctl_wire::v1::reconfigure::{DEFAULT_EXPANSION, Limits};
use gwctl_wire::v1::{BasicInfo, PluginVersion};
use gwctl_wire::v2::sync::CAPABILITY;
use gwctl_wire::v2::{Hello, SUBPROTOCOL, log_level, report};
use gwctl_wire::{ConfigHash, stream};
use rustls::ClientConfig;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Version of Kong this data plane stands for.
const OWN_VERSION: &str = "3.9.1";

/// Why a data plane does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{setting} is not set")]
    ConfigMissing { setting: &'static str },
    #[error("proxy_server: only proxies with http:// are supported for the cluster link")]
    ConfigProxy,
    #[error(transparent)]
    Certificate(#[from] CertError),
    #[error("cannot open the cache of the data plane")]
    Cache(#[from] StoreError),
}

/// Who the node is and what it runs with.
pub struct DataPlaneOptions<'a> {
    pub conf: &'a NodeConf,
    pub materials: &'a Materials,
    pub node_id: &'a str,
    pub hostname: &'a str,
    pub registry: Arc<Registry>,
    /// Whether it can run the plugin; the control plane learns what it lacks.
    pub can_run: fn(&str) -> bool,
    /// The lock of the cache's folder, `lmdb_environment_path`; None: it is taken.
    pub lock: Option<FolderLock>,
    /// The levels of its log, which a control plane may set (`cluster_rpc`).
    pub log_levels: Arc<dyn LogLevels>,
}

/// A node that is configured by a control plane.
pub struct DataPlane {
    configured: Arc<Configured>,
    connected: Arc<AtomicBool>,
}

impl DataPlane {
    /// Opens the cache and serves what it holds. `snapshot` makes the settings of snapshots for a node.
    pub fn open(
        options: &mut DataPlaneOptions<'_>,
        snapshot: impl FnOnce(Arc<Node>) -> SnapshotOptions,
    ) -> Result<Self, StartError> {
        let cache = Arc::new(open_cache(options.conf, options.registry.clone(), options.lock.take())?);
        let directory = Arc::new(RecordDirectory::new(cache.clone()));
        let authorities = options.materials.all("lua_ssl_trusted_certificate").iter().map(|(_, pem)| pem.as_str());
        let node = Node::new(options.node_id, options.hostname, directory).trusting(authorities);
        let node = Arc::new(node);
        let gateway = Arc::new(Gateway::new(snapshot(node)));
        let limits = Limits::new(options.conf.cluster.max_payload, DEFAULT_EXPANSION);
        let configured = Arc::new(Configured::new(options.registry.clone(), cache, gateway, limits));
        configured.start_from_cache();
        Ok(Self { configured, connected: Arc::default() })
    }

    /// The serving part.
    pub fn gateway(&self) -> &Arc<Gateway> {
        &self.configured.gateway
    }

    /// Ends the writing into the cache; see [`DataPlaneCache::close`].
    pub fn closing(&self) -> impl FnOnce() + Send + 'static {
        let cache = self.configured.cache.clone();
        move || cache.close()
    }

    /// What the status listener answers from.
    pub fn status(
        &self,
        facts: NodeFacts,
        counters: impl Fn() -> StatusFacts + Send + Sync + 'static,
        metrics: impl Fn() -> String + Send + Sync + 'static,
    ) -> Arc<dyn Backend> {
        let configured = self.configured.clone();
        Arc::new(StatusBackend {
            configured,
            facts,
            counters: Arc::new(counters),
            metrics: Arc::new(metrics),
            draining: AtomicBool::new(false),
        })
    }

    /// Joins the control plane once its `turn` has come, and stays with it.
    pub fn join(
        &self,
        options: &DataPlaneOptions<'_>,
        turn: impl Future<Output = ()> + Send + 'static,
        shutdown: &Shutdown,
    ) -> Result<Joined, StartError> {
        let (configured, stop) = (self.configured.clone(), shutdown.clone());
        let turn = async move {
            let came = stop.until(Phase::Stop, turn).await.is_some();
            // Until now another process may have written into the cache.
            let read = tokio::task::spawn_blocking(move || configured.follow_cache());
            came && read.await.is_ok()
        };
        let tls = LinkTls(ClientTls::from(link_tls(options.conf, options.materials)?));
        let target = format!(
            "/v1/outlet?node_id={}&node_hostname={}&node_version={OWN_VERSION}",
            options.node_id, options.hostname
        );
        let seed = seed();
        let offer = options.conf.cluster.gwctl_sync;
        let control_planes = dials(options, &tls, &target, None, seed, offer)?;
        let hash = self.configured.hash().unwrap_or_else(ConfigHash::zero);
        let settings = Settings { control_planes: control_planes.len(), basic_info: basic_info(options), hash, seed };
        let (apply, connected) = (self.configured.clone(), self.connected.clone());
        let stream = StreamOptions {
            hello: stream_hello(options),
            configured: self.configured.clone(),
            connected: connected.clone(),
            shutdown: shutdown.clone(),
            log_levels: options.log_levels.clone(),
        };
        let mut link = LinkOptions { control_planes, settings, apply, connected, stream };

        if !options.conf.cluster.rpc {
            let (configured, shutdown) = (self.configured.clone(), shutdown.clone());
            let task = spawn("link to the control plane", Phase::Stop, async move {
                if turn.await {
                    // The process before may have put another one in force since.
                    link.settings.hash = configured.hash().unwrap_or_else(ConfigHash::zero);
                    link::run(link, shutdown).await;
                }
            });
            return Ok(Joined { task, tls });
        }
        // A node that wants calls only of v2 is offered everything else on its v1 link.
        let sync = options.conf.cluster.incremental_sync;
        let control_planes = dials(options, &tls, "/v2/outlet", Some(SUBPROTOCOL), seed, offer && sync)?;
        let limit = Limits::new(options.conf.cluster.max_payload, DEFAULT_EXPANSION).max_inflated;
        let settings = gwctl_wire::v2::dp_link::Settings {
            control_planes: control_planes.len(),
            hello: hello(options),
            version: self.configured.version(),
            limit,
            sync,
            seed,
        };
        let (configured, log_levels) = (self.configured.clone(), options.log_levels.clone());
        let fallback = Some(link.clone());
        let sync = SyncOptions { control_planes, settings, configured, link, fallback, log_levels };
        let shutdown = shutdown.clone();
        let task = spawn("link to the control plane", Phase::Stop, async move {
            if turn.await {
                sync::run(sync, shutdown).await;
            }
        });
        Ok(Joined { task, tls })
    }
}

/// A data plane that keeps to its control planes.
pub struct Joined {
    /// The link.
    pub task: Task,
    /// Its certificates.
    pub tls: LinkTls,
}

/// Certificates of the link to the control planes. Clones share them.
#[derive(Debug, Clone)]
pub struct LinkTls(ClientTls);

impl LinkTls {
    /// Reads the certificates and checks them; what is given back puts them in force: connections to come use them, the
    /// one that is up stays.
    ///
    /// # Errors
    /// Whatever is wrong with them, by setting and place.
    pub fn renewal(&self, conf: &NodeConf, materials: &Materials) -> Result<impl FnOnce() + use<>, StartError> {
        let (tls, config) = (self.0.clone(), link_tls(conf, materials)?);
        Ok(move || tls.renew(config))
    }
}

/// One dial for each address of `cluster_control_plane`, which is a list here. Nodes with our own sync begin anywhere in
/// it, so that a fleet spreads over its control planes. `offer`: that sync is offered.
fn dials(
    options: &DataPlaneOptions<'_>,
    tls: &LinkTls,
    target: &str,
    subprotocol: Option<&'static str>,
    seed: u64,
    offer: bool,
) -> Result<Vec<DialOptions>, StartError> {
    let conf = options.conf;
    let proxy = match &conf.proxy_server {
        Some(url) if conf.cluster.use_proxy => Some(ForwardProxy::parse(url).ok_or(StartError::ConfigProxy)?),
        _ => None,
    };
    let addresses = conf.cluster.control_plane.split(',').map(str::trim);
    let mut addresses: Vec<&str> = addresses.filter(|address| !address.is_empty()).collect();
    if conf.cluster.gwctl_sync && !addresses.is_empty() {
        let first = seed % u64::try_from(addresses.len()).unwrap_or(1);
        addresses.rotate_left(usize::try_from(first).unwrap_or(0));
    }
    addresses
        .into_iter()
        .map(|address| {
            let server_name = cluster_server_name(conf.cluster.mtls == Mtls::Shared, name_of(conf, address))?;
            let tls = tls.0.clone();
            let (address, limit) = (address.to_owned(), conf.cluster.max_payload);
            let (target, proxy) = (target.to_owned(), proxy.clone());
            let extra = offer.then_some((stream::HEADER, stream::GENERATION));
            Ok(DialOptions { address, tls, server_name, target, limit, proxy, subprotocol, extra })
        })
        .collect()
}

/// TLS of the link: own certificate, and what is believed of the control planes.
fn link_tls(conf: &NodeConf, materials: &Materials) -> Result<Arc<ClientConfig>, StartError> {
    let identity = Identity::read(source(materials, "cluster_cert")?, source(materials, "cluster_cert_key")?)?;
    let trust = match conf.cluster.mtls {
        Mtls::Shared => Trust::Shared,
        Mtls::Pki => Trust::Pki(match materials.text("cluster_ca_cert") {
            Some(_) => read_certificates(source(materials, "cluster_ca_cert")?)?,
            None => Vec::new(),
        }),
    };
    let trusted: Vec<_> = materials
        .all("lua_ssl_trusted_certificate")
        .iter()
        .map(|(place, pem)| Source { setting: "lua_ssl_trusted_certificate", place, pem })
        .collect();
    let roots = read_roots(&trusted)?;
    // The name is asked for again with each dial: the configuration does not depend on it.
    Ok(cluster_client_config(&identity, &trust, roots, SHARED_NAME)?.0)
}

/// The name the certificate of the control plane at this address must carry.
fn name_of<'a>(conf: &'a NodeConf, address: &'a str) -> &'a str {
    conf.cluster.server_name.as_deref().unwrap_or_else(|| host_of(address))
}

/// The host of an address; an IPv6 one without its brackets.
fn host_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn open_cache(
    conf: &NodeConf,
    registry: Arc<Registry>,
    lock: Option<FolderLock>,
) -> Result<DataPlaneCache, StoreError> {
    let folder = &conf.lmdb_environment_path;
    let lock = lock.map_or_else(|| FolderLock::claim(folder), Ok)?;
    let (size, clock) = (MapSize::up_to(conf.lmdb_map_size), Arc::new(SystemClock));
    DataPlaneCache::open_locked(folder, registry, DataPlaneCache::FORMAT, size, clock, lock)
}

/// Every plugin this node can run.
fn plugins(options: &DataPlaneOptions<'_>) -> Vec<PluginVersion> {
    let plugin = |name: &str| {
        let version = options.registry.plugin_facts(name).map(|(version, _)| version.to_owned());
        PluginVersion { name: name.to_owned(), version }
    };
    options.registry.plugin_names().filter(|name| (options.can_run)(name)).map(plugin).collect()
}

fn stream_hello(options: &DataPlaneOptions<'_>) -> stream::Hello {
    stream::Hello {
        node_id: options.node_id.to_owned(),
        hostname: options.hostname.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kong_version: OWN_VERSION.to_owned(),
        labels: options.conf.cluster.dp_labels.clone(),
        plugins: plugins(options),
        configuration: options.conf.configuration_json(),
        held: None,
    }
}

fn basic_info(options: &DataPlaneOptions<'_>) -> Bytes {
    let info = BasicInfo {
        plugins: plugins(options),
        filters: Default::default(),
        labels: options.conf.cluster.dp_labels.clone(),
    };
    info.encode(&options.conf.configuration_json())
}

fn hello(options: &DataPlaneOptions<'_>) -> Hello {
    let capabilities: &[&str] = match options.conf.cluster.incremental_sync {
        true => &[CAPABILITY, report::CAPABILITY, log_level::CAPABILITY],
        false => &[log_level::CAPABILITY],
    };
    Hello {
        capabilities: capabilities.iter().map(|name| (*name).to_owned()).collect(),
        version: OWN_VERSION.to_owned(),
        node_id: options.node_id.to_owned(),
        hostname: options.hostname.to_owned(),
        conf: options.conf.configuration_json(),
    }
}

fn source<'a>(materials: &'a Materials, setting: &'static str) -> Result<Source<'a>, StartError> {
    let pem = materials.text(setting).ok_or(StartError::ConfigMissing { setting })?;
    Ok(Source { setting, place: materials.place(setting), pem })
}

/// Randomness for the jitter of redials, so that nodes do not come back all at once.
fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_plane_may_have_an_ipv6_address() {
        assert_eq!(["cp.test:8005", "[::1]:8005", "10.0.0.1:1"].map(host_of), ["cp.test", "::1", "10.0.0.1"]);
    }
}

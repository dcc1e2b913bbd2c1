//! The configuration as data planes get it: exported, hashed and compressed once for each version of the store, and
//! rewritten once for each older version of Kong that asks.

use crate::fleet::FleetTable;
use bytes::Bytes;
use gwctl_entities::EntityError;
use gwctl_lifecycle::{Phase, Shutdown};
use gwctl_store::{Store, unix_millis};
use gwctl_wire::compat::{PayloadProfile, Variant, Version, rewrite};
use gwctl_wire::export;
use gwctl_wire::v1::reconfigure::{self, DEFAULT_EXPANSION, EncodeError, Limits};
use gwctl_wire::{ConfigHash, ConfigTable, Hashes};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

/// Shortest time between two payloads while changes keep coming. The first change of a burst goes out at once.
const SHORTEST_COOLDOWN: Duration = Duration::from_millis(100);

/// Wait after a payload could not be made, for example because the store did not answer.
const RETRY: Duration = Duration::from_secs(1);

/// One configuration, ready to be sent.
#[derive(Debug)]
pub(crate) struct Payload {
    /// Version of the store it shows.
    pub(crate) version: u64,
    pub(crate) hash: ConfigHash,
    pub(crate) profile: Arc<PayloadProfile>,
    table: ConfigTable,
    hashes: Hashes,
    timestamp: f64,
    limits: Limits,
    bytes: Bytes,
    /// Payloads for other versions of Kong.
    variants: Mutex<BTreeMap<Variant, Bytes>>,
}

impl Payload {
    /// The compressed message for a node of this version. Blocks while a variant is made for the first time.
    pub(crate) fn for_version(&self, version: &str) -> Result<Bytes, EncodeError> {
        // A version that cannot be read was refused before; what is sent to it does not matter.
        let variant = Version::parse(version).map_or(Variant::CURRENT, Variant::of);
        let mut variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = variants.get(&variant) {
            return Ok(bytes.clone());
        }
        let bytes = match rewrite(&self.table, variant) {
            None => self.bytes.clone(),
            Some(rewritten) => {
                for notice in &rewritten.notices {
                    tracing::warn!(version, notice, "configuration adapted to an older data plane");
                }
                reconfigure::encode(&rewritten.table, &self.hashes, self.timestamp, &self.limits)?
            }
        };
        variants.insert(variant, bytes.clone());
        Ok(bytes)
    }
}

/// The newest payload, for those who wait for the next.
#[derive(Debug, Clone)]
pub(crate) struct Payloads {
    newest: watch::Sender<Option<Arc<Payload>>>,
    /// Somebody waits for the next payload: the cooldown is cut short.
    wanted: Arc<Notify>,
}

impl Payloads {
    pub(crate) fn new() -> Self {
        Self { newest: watch::Sender::new(None), wanted: Arc::default() }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<Arc<Payload>>> {
        self.newest.subscribe()
    }

    /// The newest payload if it shows this version of the store; else it is asked for and comes as the next one.
    pub(crate) fn at_version(&self, newest: Option<Arc<Payload>>, version: u64) -> Option<Arc<Payload>> {
        let current = newest.filter(|payload| payload.version >= version);
        if current.is_none() {
            self.wanted.notify_one();
        }
        current
    }
}

/// Makes a payload whenever the store has a new version.
pub(crate) struct Maker {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) fleet: Arc<FleetTable>,
    pub(crate) payloads: Payloads,
    pub(crate) limit: usize,
    /// `db_update_frequency`: Kong's own cooldown, and the longest there is here.
    pub(crate) longest_cooldown: Duration,
    pub(crate) expressions: bool,
}

impl Maker {
    /// Runs until the node stops.
    pub(crate) async fn run(self, shutdown: Shutdown) {
        let maker = Arc::new(self);
        let mut versions = maker.store.watch();
        let mut previous = None;
        // Where a data plane is known that is sent whole configurations, one is ready when it comes back. Elsewhere a
        // large store costs nothing at the start.
        if !maker.fleet.expects_payloads() {
            let wanted = maker.next_is_needed(&mut versions, None);
            if shutdown.until(Phase::Stop, wanted).await != Some(true) {
                return;
            }
        }
        loop {
            versions.mark_unchanged();
            let cooldown = maker.clone().publish(&mut previous).await;
            let next = async {
                tokio::select! {
                    () = tokio::time::sleep(cooldown.unwrap_or(RETRY)) => {}
                    () = maker.payloads.wanted.notified(), if cooldown.is_some() => {}
                }
                // After a failure the same version is tried again.
                cooldown.is_none() || maker.next_is_needed(&mut versions, previous.as_deref()).await
            };
            if shutdown.until(Phase::Stop, next).await != Some(true) {
                return;
            }
        }
    }

    /// Waits until there is a new version and somebody who is sent whole configurations. A fleet that is sent changes
    /// (protocol v2), or an empty one, costs no payload. False when the store is gone.
    async fn next_is_needed(&self, versions: &mut watch::Receiver<u64>, previous: Option<&Payload>) -> bool {
        loop {
            tokio::select! {
                changed = versions.changed() => match changed {
                    Err(_) => return false,
                    Ok(()) if self.payloads.newest.receiver_count() > 0 => return true,
                    Ok(()) => self.fleet.payload_not_made(),
                },
                () = self.payloads.wanted.notified() => {
                    if previous.is_none_or(|previous| previous.version < self.store.version()) {
                        return true;
                    }
                }
            }
        }
    }

    /// Makes and publishes one payload; how long to let changes gather before the next, None when it failed.
    async fn publish(self: Arc<Self>, previous: &mut Option<Arc<Payload>>) -> Option<Duration> {
        let began = Instant::now();
        let (maker, before) = (self.clone(), previous.clone());
        let made = tokio::task::spawn_blocking(move || maker.make(before.as_deref())).await;
        let payload = match made {
            Ok(Ok(payload)) => Arc::new(payload),
            Ok(Err(error)) => {
                tracing::error!(%error, "cannot make the configuration for data planes; they keep the one they have");
                self.fleet.payload_failed(error.to_string());
                // What is too large stays too large until it is changed.
                let too_large = matches!(error, MakeError::Encode(EncodeError::ConfigTooLarge { .. }));
                return too_large.then_some(self.longest_cooldown.max(SHORTEST_COOLDOWN));
            }
            Err(error) => {
                tracing::error!(%error, "cannot make the configuration for data planes; they keep the one they have");
                return None;
            }
        };
        let took = began.elapsed();
        tracing::info!(
            version = payload.version,
            hash = %payload.hash,
            bytes = payload.bytes.len(),
            took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "configuration ready for data planes"
        );
        self.fleet.payload_made(&payload.hash, payload.version);
        *previous = Some(payload.clone());
        self.payloads.newest.send_replace(Some(payload));
        // The maker takes at most a third of the time, so a large configuration does not occupy the node.
        Some((took * 2).max(SHORTEST_COOLDOWN).min(self.longest_cooldown.max(SHORTEST_COOLDOWN)))
    }

    fn make(&self, previous: Option<&Payload>) -> Result<Payload, MakeError> {
        let registry = self.store.registry();
        let cluster_id = self.store.setting("cluster_id")?.unwrap_or_default();
        let (version, table) = {
            let read = self.store.read()?;
            let table = export::build(
                registry.entities(),
                |schema| {
                    let rows = read.all_rows(&schema.name)?;
                    Ok::<_, EntityError>(rows.iter().map(|row| registry.export_row(&schema.name, row)).collect())
                },
                &cluster_id,
            )?;
            (read.version(), table)
        };
        let hashes = table.hashes();
        let plugin_version = |name: &str| registry.plugin_facts(name).map(|(version, _)| version.to_owned());
        let profile = Arc::new(table.profile(plugin_version, Default::default(), self.expressions));
        let limits = Limits::new(self.limit, DEFAULT_EXPANSION);
        let timestamp = unix_millis() as f64 / 1000.0;
        let bytes = match previous.filter(|before| before.hashes == hashes) {
            Some(before) => before.bytes.clone(),
            None => reconfigure::encode(&table, &hashes, timestamp, &limits)?,
        };
        let variants = Mutex::default();
        Ok(Payload { version, hash: hashes.config.clone(), profile, table, hashes, timestamp, limits, bytes, variants })
    }
}

#[derive(Debug, thiserror::Error)]
enum MakeError {
    #[error(transparent)]
    Store(#[from] EntityError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start::bootstrap;
    use gwctl_entities::{NodeKind, Registry, RegistryOptions};
    use gwctl_store::{LmdbOptions, LmdbStore};

    #[tokio::test]
    async fn a_configuration_over_the_limit_is_not_tried_again_before_it_changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = Arc::new(Registry::bundled(&RegistryOptions {
            kind: NodeKind::ControlPlane,
            router_flavor: "traditional_compatible".to_owned(),
            plugins: None,
        }));
        let store = LmdbStore::open(folder.path(), registry, LmdbOptions::default()).expect("a store");
        let store: Arc<dyn Store> = Arc::new(store);
        bootstrap(&*store).expect("the first rows");
        let fleet = Arc::new(FleetTable::load(&*store, Duration::from_secs(60)).expect("a table"));
        for (limit, made) in [(100, false), (1 << 22, true)] {
            let payloads = Payloads::new();
            let maker = Arc::new(Maker {
                store: store.clone(),
                fleet: fleet.clone(),
                payloads: payloads.clone(),
                limit,
                longest_cooldown: Duration::from_secs(5),
                expressions: false,
            });
            let mut previous = None;
            assert!(maker.publish(&mut previous).await.is_some(), "nothing to be tried again");
            assert_eq!((previous.is_some(), payloads.subscribe().borrow().is_some()), (made, made));
        }
    }
}

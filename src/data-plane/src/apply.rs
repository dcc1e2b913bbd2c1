//! From a payload to the configuration in force: verify, build, store, swap, in this order, so that whatever fails
//! leaves everything as it was.

use crate::gateway::Gateway;
use crate::link::Apply;
use gwctl_declarative::{LoadOptions, Loaded, Mode, load};
use gwctl_entities::{EntityError, Registry, Value};
use gwctl_proxy::Tables;
use gwctl_store::{CachedConfiguration, DataPlaneCache, StoreError, SystemFill, unix_millis};
use gwctl_wire::ConfigHash;
use gwctl_wire::v1::dp_link::Outcome;
use gwctl_wire::v1::reconfigure::{Examined, Limits, Reconfigure, examine};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::sync::{Mutex, MutexGuard, RwLock};
use std::time::{Duration, Instant};

/// Age above which a cached configuration is worth a warning.
const OLD: Duration = Duration::from_secs(24 * 3600);

/// A gateway with its cache and the hash of what is in force.
pub struct Configured {
    pub(crate) registry: Arc<Registry>,
    pub(crate) cache: Arc<DataPlaneCache>,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) limits: Limits,
    hash: RwLock<Option<ConfigHash>>,
    /// One configuration at a time is applied.
    applying: Mutex<()>,
    /// Protocol v2 keeps this node up to date; what protocol v1 still brings is too late.
    synced: AtomicBool,
}

impl Configured {
    pub(crate) fn new(
        registry: Arc<Registry>,
        cache: Arc<DataPlaneCache>,
        gateway: Arc<Gateway>,
        limits: Limits,
    ) -> Self {
        let (hash, applying, synced) = Default::default();
        Self { registry, cache, gateway, limits, hash, applying, synced }
    }

    /// Hash of the configuration in force; None when there never was one.
    pub fn hash(&self) -> Option<ConfigHash> {
        self.hash.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_hash(&self, hash: ConfigHash) {
        *self.hash.write().unwrap_or_else(PoisonError::into_inner) = Some(hash);
    }

    /// The right to apply a configuration, one at a time.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        // It guards no value; one that panicked while applying left the configuration before in force.
        self.applying.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says by which protocol the node is kept up to date: v2 (true) or v1.
    pub(crate) fn set_synced(&self, synced: bool) {
        self.synced.store(synced, Ordering::Relaxed);
    }

    /// Serves what the cache holds, if that is another configuration than the one in force: the process before this one
    /// may have written it.
    pub(crate) fn follow_cache(&self) {
        if let Err(error) = self.cache.written_elsewhere() {
            tracing::error!(%error, hint = error.hint(), "the cached configuration has no checksum");
        }
        let cached = self.cache.hash().ok().flatten();
        if cached.is_some() && cached != self.hash().map(|hash| hash.to_string()) {
            self.start_from_cache();
        }
    }

    /// Puts what the cache holds in force, so that the node serves before any control plane answers.
    pub(crate) fn start_from_cache(&self) {
        let began = Instant::now();
        let scanned = self.gateway.prepare_stored(|visit| self.cache.scan(&Tables::ENTITIES, visit));
        let (hash, prepared) = match scanned {
            Ok((Some(hash), prepared)) => (hash, prepared),
            Ok((None, _)) => return,
            Err(error) => {
                tracing::error!(%error, "cannot read the cached configuration, waiting for the control plane");
                return;
            }
        };
        match prepared {
            Ok(prepared) => {
                self.gateway.install(prepared);
                self.set_hash(ConfigHash::from(hash.as_str()));
                tracing::info!(hash, took_ms = millis(began.elapsed()), "serving the cached configuration");
                self.tell_age();
            }
            Err(fault) => {
                tracing::error!(
                    error = fault,
                    "the cached configuration cannot be served, waiting for the control plane"
                );
            }
        }
    }

    /// A node that was away for long, or whose control plane is, serves what was right then.
    fn tell_age(&self) {
        let (Ok(Some(written)), Ok(stand)) = (self.cache.written_millis(), self.cache.stand()) else { return };
        let age = Duration::from_millis(unix_millis().saturating_sub(written));
        if age >= OLD {
            let (hours, version) = (age.as_secs() / 3600, stand.map(|stand| stand.version));
            tracing::warn!(version, hours, "the cached configuration is old");
        }
    }

    fn change(&self, change: Reconfigure) -> Result<ConfigHash, Outcome> {
        let began = Instant::now();
        let loaded = self.verify(Value::Object(change.config_table)).map_err(Outcome::Refused)?;
        let verified = began.elapsed();
        let records: BTreeMap<_, _> = loaded.tables.into_iter().map(|table| (table.entity, table.records)).collect();
        let prepared = self.gateway.prepare(|entity| records.get(entity).into_iter().flatten());
        let prepared = prepared.map_err(Outcome::Refused)?;
        let built = prepared.took;
        let hash = change.config_hash;
        let stored = self
            .cache
            .apply(&CachedConfiguration { hash: hash.to_string(), records })
            .map_err(|error| not_stored(&error, Outcome::Refused, Outcome::NotStored))?;
        self.gateway.install(prepared);
        self.set_hash(hash.clone());
        tracing::info!(
            %hash,
            verify_ms = millis(verified),
            build_ms = millis(built),
            store_ms = millis(stored),
            total_ms = millis(began.elapsed()),
            "configuration applied"
        );
        Ok(hash)
    }

    pub(crate) fn verify(&self, table: Value) -> Result<Loaded, String> {
        let options = LoadOptions::of(Mode::DataPlane);
        load(&self.registry, table, &options, &mut SystemFill).map_err(|error| match &error {
            EntityError::InvalidDeclarative { fields, .. } => Value::Object(fields.clone()).to_string(),
            other => other.to_string(),
        })
    }
}

impl Apply for Configured {
    fn apply(&self, payload: &[u8], in_force: &ConfigHash) -> Outcome {
        let _turn = self.turn();
        if self.synced.load(Ordering::Relaxed) {
            return Outcome::Refused("protocol v2 keeps this node up to date by now".to_owned());
        }
        match examine(payload, in_force, &self.limits) {
            Err(error) => error.into(),
            Ok(Examined::OtherType) => Outcome::Skipped,
            Ok(Examined::Unchanged) => Outcome::Unchanged,
            Ok(Examined::Change(change)) => match self.change(change) {
                Ok(hash) => Outcome::Applied(hash),
                Err(outcome) => outcome,
            },
        }
    }
}

/// What came of a failed attempt to store a configuration: it breaks a rule of the store, or there is no room.
pub(crate) fn not_stored<O>(error: &StoreError, refused: impl Fn(String) -> O, failed: impl Fn(String) -> O) -> O {
    if let StoreError::Refused(refusal) = error {
        return refused(format!("cannot store the configuration: {refusal}"));
    }
    let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    failed(format!("cannot store the configuration: {error}{hint}"))
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 100_000.0).round() / 100.0
}

//! What a data plane says of itself on its status listener.

use crate::apply::Configured;
use gwctl_admin_api::{Backend, NodeFacts, Origin, StatusFacts};
use gwctl_entities::{EntityError, Fill, Read, Registry, Value, Write};
use gwctl_store::{SystemFill, unix_millis};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// [`Backend`] of the status listener.
pub(crate) struct StatusBackend {
    pub(crate) configured: Arc<Configured>,
    pub(crate) facts: NodeFacts,
    pub(crate) counters: Arc<dyn Fn() -> StatusFacts + Send + Sync>,
    /// Figures of the process, for Prometheus.
    pub(crate) metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub(crate) draining: AtomicBool,
}

impl Backend for StatusBackend {
    fn registry(&self) -> Arc<Registry> {
        self.configured.registry.clone()
    }

    fn node(&self) -> NodeFacts {
        self.facts.clone()
    }

    fn read(&self) -> Result<Box<dyn Read + '_>, EntityError> {
        self.configured.cache.read()
    }

    fn write(
        &self,
        _origin: &Origin,
        _work: &mut dyn FnMut(&mut dyn Write) -> Result<(), EntityError>,
    ) -> Result<u64, EntityError> {
        Err(EntityError::Unsupported("a data plane is configured by its control plane only".to_owned()))
    }

    fn now_millis(&self) -> u64 {
        unix_millis()
    }

    fn new_uuid(&self) -> String {
        SystemFill.uuid()
    }

    fn new_token(&self) -> String {
        SystemFill.token()
    }

    fn status(&self) -> StatusFacts {
        let mut facts = (self.counters)();
        facts.configuration_hash = self.configured.hash().map(|hash| hash.to_string());
        facts
    }

    fn readiness(&self) -> Result<(), String> {
        if self.draining.load(Ordering::Relaxed) {
            return Err("draining".to_owned());
        }
        match self.configured.hash() {
            None => Err("no configuration available (configuration hash is not present)".to_owned()),
            Some(hash) if hash.is_zero() => Err("no configuration available (empty configuration present)".to_owned()),
            Some(_) => Ok(()),
        }
    }

    fn upstream_health(&self, upstream_id: &str) -> Option<BTreeMap<String, Value>> {
        self.configured.gateway.handle().load().upstream_health(upstream_id)
    }

    fn balancer_health(&self, upstream_id: &str) -> Option<Value> {
        self.configured.gateway.handle().load().balancer_health(upstream_id)
    }

    fn metrics(&self) -> Option<String> {
        Some((self.metrics)())
    }

    fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }
}

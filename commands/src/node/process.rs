//! What the process answers for the Admin API: counters, readiness, log level.

use super::certificates::Expiries;
use super::identity::NodeIdentity;
use super::logging::Logging;
use gwctl_admin_api::{MarkRefusal, StatusFacts};
use gwctl_control_plane::Process;
use gwctl_entities::Value;
use gwctl_lifecycle::Family;
use gwctl_proxy::{Shed, SnapshotHandle, Stats};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// [`Process`] of a node.
pub(crate) struct NodeProcess {
    logging: Arc<Logging>,
    identity: NodeIdentity,
    expiries: Expiries,
    /// Counters of the proxy, once it runs.
    pub(crate) stats: OnceLock<Arc<Stats>>,
    /// What the proxy serves by, once it runs.
    pub(crate) snapshots: OnceLock<SnapshotHandle>,
}

impl NodeProcess {
    pub(crate) fn new(logging: Arc<Logging>, identity: NodeIdentity, expiries: Expiries) -> Self {
        Self { logging, identity, expiries, stats: OnceLock::new(), snapshots: OnceLock::new() }
    }
}

/// Panics since the start.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Writes panics to the log as everything else is, and counts them.
pub(crate) fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
        let place = panic.location().map(ToString::to_string);
        let thread = std::thread::current().name().map(str::to_owned);
        tracing::error!(error = text, place, thread, "panicked, a bug of gwctl");
    }));
}

/// Counters of a proxy in the words of the status answers.
pub(crate) fn facts_of(stats: Option<&Stats>) -> StatusFacts {
    let now = stats.map(Stats::now).unwrap_or_default();
    StatusFacts {
        connections_accepted: now.connections_accepted,
        connections_handled: now.connections_handled,
        connections_active: now.connections_active,
        connections_writing: now.requests_in_flight,
        connections_waiting: now.connections_active.saturating_sub(now.streams_active + now.requests_in_flight),
        total_requests: now.total_requests,
        ..StatusFacts::default()
    }
}

/// Figures of a process, under the names of Kong's plugin where it has one.
pub(crate) fn metrics_of(
    stats: Option<&Stats>,
    snapshots: Option<&SnapshotHandle>,
    identity: &NodeIdentity,
    expiries: &Expiries,
) -> String {
    let mut text = String::new();
    let node = ("node_id", &*identity.id);
    let info = [node, ("hostname", &*identity.hostname), ("version", env!("CARGO_PKG_VERSION"))];
    Family::gauge(&mut text, "kong_node_info", "What this node is.", &info, 1);
    expiries.write(&mut text);
    let help = "Panics, each a bug: it cost one request or connection.";
    Family::begin(&mut text, "gwctl_panics_total", "counter", help).line("", &[], PANICS.load(Ordering::Relaxed));
    let Some(stats) = stats else { return text };
    let help = "Clients or requests answered 503 or closed for want of means.";
    let mut family = Family::begin(&mut text, "gwctl_shed_total", "counter", help);
    for reason in Shed::ALL {
        family.line("", &[("reason", reason.name())], stats.shed_for(reason));
    }
    let help = "Workers that died and were started again.";
    Family::begin(&mut text, "gwctl_worker_restarts_total", "counter", help).line("", &[], stats.worker_restarts());
    let now = stats.now();
    let active = now.connections_active.saturating_sub(now.streams_active);
    let connections = [
        ("http", "accepted", now.connections_accepted.saturating_sub(now.streams_accepted)),
        ("http", "handled", now.connections_handled.saturating_sub(now.streams_handled)),
        ("http", "active", active),
        ("http", "writing", now.requests_in_flight),
        ("http", "waiting", active.saturating_sub(now.requests_in_flight)),
        ("stream", "accepted", now.streams_accepted),
        ("stream", "handled", now.streams_handled),
        ("stream", "active", now.streams_active),
    ];
    let mut family = Family::begin(&mut text, "kong_nginx_connections_total", "gauge", "Client connections by state.");
    for (subsystem, state, count) in connections {
        family.line("", &[node, ("subsystem", subsystem), ("state", state)], count);
    }
    let help = "Requests begun.";
    let labels = [node, ("subsystem", "http")];
    Family::begin(&mut text, "kong_nginx_requests_total", "counter", help).line("", &labels, now.total_requests);
    stats.metrics().write(&mut text);
    if let Some(snapshots) = snapshots {
        let snapshot = snapshots.load();
        snapshot.write_target_metrics(&mut text);
        let exported = snapshot.exported();
        let help =
            "Spans that plugins have sent to other servers, or lost: pushed out of a full queue, refused, given up.";
        let mut family = Family::begin(&mut text, "gwctl_exports_total", "counter", help);
        family.line("", &[("result", "sent")], exported.sent);
        family.line("", &[("result", "dropped")], exported.dropped);
        Family::gauge(
            &mut text,
            "gwctl_exports_waiting",
            "Spans on their way to other servers.",
            &[],
            exported.waiting,
        );
    }
    text
}

impl Process for NodeProcess {
    fn metrics(&self) -> String {
        metrics_of(self.stats.get().map(|stats| &**stats), self.snapshots.get(), &self.identity, &self.expiries)
    }

    fn status(&self) -> StatusFacts {
        facts_of(self.stats.get().map(|stats| &**stats))
    }

    fn readiness(&self) -> Result<(), String> {
        Ok(())
    }

    fn upstream_health(&self, upstream_id: &str) -> Option<BTreeMap<String, Value>> {
        self.snapshots.get()?.load().upstream_health(upstream_id)
    }

    fn balancer_health(&self, upstream_id: &str) -> Option<Value> {
        self.snapshots.get()?.load().balancer_health(upstream_id)
    }

    fn set_target_health(
        &self,
        upstream_id: &str,
        target_id: &str,
        address: Option<&str>,
        healthy: bool,
    ) -> Result<(), MarkRefusal> {
        let snapshot = self.snapshots.get().ok_or(MarkRefusal::NoBalancer)?.load();
        snapshot.set_target_health(upstream_id, target_id, address, healthy).map_err(|refusal| match refusal {
            gwctl_proxy::MarkRefusal::NoBalancer => MarkRefusal::NoBalancer,
            gwctl_proxy::MarkRefusal::NoChecks => MarkRefusal::NoChecks,
        })
    }

    fn log_level(&self) -> String {
        self.logging.level()
    }

    fn set_log_level(&self, level: &str, seconds: u64) -> Result<(), String> {
        self.logging.set_level(level, seconds)
    }
}

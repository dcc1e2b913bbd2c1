//! One address of an upstream, and what is known of it over all configurations.

use crate::balancer::health::Health;
use crate::balancer::host_value;
use crate::balancer::latency::{Latency, clock};
use gwctl_plugins::Scheme;
use http::HeaderValue;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// An address to try. Immutable; `state` is shared by all configurations that have the same address.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Name or literal of the target, as `Host` shows it.
    pub(crate) host: Arc<str>,
    pub(crate) port: u16,
    /// None: the name is resolved for each request.
    pub(crate) address: Option<IpAddr>,
    /// 0: listed, never chosen.
    pub(crate) weight: u32,
    /// Position of its target in the rows of the upstream.
    pub(crate) row: usize,
    pub(crate) state: Arc<PeerState>,
    /// `Host` for it over TCP and over TLS.
    pub(crate) values: HostValues,
}

/// Made when they are first asked for.
#[derive(Debug, Default)]
pub(crate) struct HostValues([OnceLock<Option<HeaderValue>>; 2]);

impl Peer {
    /// `Host` for it, when it is reached at its own port.
    pub(crate) fn host_value(&self, scheme: Scheme) -> Option<&HeaderValue> {
        let [plain, secure] = &self.values.0;
        let value = if scheme == Scheme::Http { plain } else { secure };
        value.get_or_init(|| host_value(&self.host, self.port, scheme.default_port())).as_ref()
    }

    /// The address as Kong shows it: a literal target as it was given, a name that is resolved for each request as the
    /// name.
    pub(crate) fn literal(&self) -> String {
        match self.address {
            Some(IpAddr::V6(_)) if self.host.contains(':') => format!("[{}]", self.host),
            Some(IpAddr::V6(address)) => format!("[{address}]"),
            Some(address) => address.to_string(),
            None => self.host.to_string(),
        }
    }
}

/// What is known of an address; it survives changes of the configuration.
#[derive(Debug, Default)]
pub(crate) struct PeerState {
    pub(crate) health: Health,
    pub(crate) latency: Latency,
    connections: AtomicU32,
    /// How often a request passed it by because it had as many as it may have.
    refused: AtomicU64,
    /// Since when it has come to take requests among others that did before, as the bits of seconds; 0: from the start.
    since: AtomicU64,
}

impl PeerState {
    /// It begins to take requests now, beside others that do already.
    pub(crate) fn begin(&self) {
        self.since.store(clock().to_bits(), Ordering::Relaxed);
    }

    /// The part of its share it takes while its share rises over some seconds; 1: the whole.
    pub(crate) fn part(&self, slow_start: f64) -> f64 {
        let since = f64::from_bits(self.since.load(Ordering::Relaxed));
        if since == 0.0 { 1.0 } else { ((clock() - since) / slow_start).clamp(LEAST_PART, 1.0) }
    }

    /// How often it was passed by.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Counts a request unless there are `limit` already.
    pub(crate) fn lease_below(self: &Arc<Self>, limit: u32) -> Option<Lease> {
        let more = |count| Some(count + 1).filter(|_| count < limit);
        match self.connections.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Some(Lease(self.clone())),
            Err(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    /// Requests in flight, counted by [`Lease`].
    pub(crate) fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Counts a request until the lease is dropped.
    pub(crate) fn lease(self: &Arc<Self>) -> Lease {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Lease(self.clone())
    }
}

/// With less than this part of its share an address would hardly be tried at all.
const LEAST_PART: f64 = 0.01;

/// A request in flight at an address; only taken where the balancer counts them.
#[derive(Debug)]
pub(crate) struct Lease(Arc<PeerState>);

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// `host:port` or `[v6]:port`; a missing port is 8000, as the schema fills it.
pub(crate) fn split_target(target: &str) -> (&str, u16) {
    let (host, port) = match target.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?))) {
        Some((host, port)) => (host, port),
        None => (target, 8000),
    };
    (host.trim_start_matches('[').trim_end_matches(']'), port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_split_at_their_port() {
        assert_eq!(split_target("[::1]:80"), ("::1", 80));
        assert_eq!(split_target("a.test:8080"), ("a.test", 8080));
        assert_eq!(split_target("a.test"), ("a.test", 8000));
    }

    #[test]
    fn leases_stop_at_their_limit_and_go_on_below_it() {
        let state = Arc::<PeerState>::default();
        let first = state.lease_below(2);
        let second = state.lease_below(2);
        assert!(first.is_some() && second.is_some() && state.lease_below(2).is_none());
        drop(first);
        assert!(state.lease_below(2).is_some());
        assert_eq!(state.refused(), 1);
    }

    #[test]
    fn a_dropped_lease_is_not_counted() {
        let state = Arc::<PeerState>::default();
        let leases = [state.lease(), state.lease()];
        assert_eq!(state.connections(), 2);
        drop(leases);
        assert_eq!(state.connections(), 0);
    }
}

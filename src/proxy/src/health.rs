//! What the balancers know of the targets, as the Admin API shows it, and setting it by hand.

use crate::balancer::{Balancer, Members, Peer, split_target};
use crate::snapshot::Snapshot;
use gwctl_entities::view::Target;
use gwctl_lifecycle::Family;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Port of an address that names none.
const DEFAULT_PORT: u16 = 8000;

/// Why the health of a target cannot be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkRefusal {
    /// No balancer knows the upstream.
    NoBalancer,
    /// Its health checks are off.
    NoChecks,
}

impl Snapshot {
    /// By target id, what is added to the row of a target: `health`, `data`. None when there is no such upstream.
    pub fn upstream_health(&self, upstream_id: &str) -> Option<BTreeMap<String, Value>> {
        let balancer = self.balancer(upstream_id)?;
        let view = View::of(balancer);
        let rows = balancer.rows.iter().enumerate().map(|(row, target)| {
            let data = view.target(row, target, |peer| ("health", view.health(peer).into()));
            let more = json!({ "health": view.summary(row), "data": data });
            (target.id.to_string(), more)
        });
        Some(rows.collect())
    }

    /// The upstream as a whole. None when there is no such upstream.
    pub fn balancer_health(&self, upstream_id: &str) -> Option<Value> {
        let balancer = self.balancer(upstream_id)?;
        let view = View::of(balancer);
        let healthy = balancer.is_healthy();
        let word = if healthy { "HEALTHY" } else { "UNHEALTHY" };
        let hosts = balancer.rows.iter().enumerate();
        let hosts =
            hosts.map(|(row, target)| view.target(row, target, |peer| ("healthy", view.available(peer).into())));
        Some(json!({
            "id": upstream_id,
            "health": if view.checked { word } else { "HEALTHCHECKS_OFF" },
            "balancer_health": word,
            "details": {
                "healthy": healthy,
                "weight": view.weight(|_| true),
                "hosts": hosts.collect::<Vec<_>>(),
            },
        }))
    }

    /// Sets the health of a target, or of one of its addresses (`ip` or `ip:port`).
    ///
    /// # Errors
    /// When there is no such upstream or its health checks are off. An address that the target does not have changes
    /// nothing and is no error, as in Kong.
    pub fn set_target_health(
        &self,
        upstream_id: &str,
        target_id: &str,
        address: Option<&str>,
        healthy: bool,
    ) -> Result<(), MarkRefusal> {
        let balancer = self.balancer(upstream_id).ok_or(MarkRefusal::NoBalancer)?;
        if !balancer.checks.are_on() {
            return Err(MarkRefusal::NoChecks);
        }
        let address = address.and_then(socket_address);
        let members = balancer.members();
        let is_meant = |peer: &&Arc<Peer>| {
            &*balancer.rows[peer.row].id == target_id
                && peer.weight > 0
                && address.is_none_or(|address| peer.address == Some(address.ip()) && peer.port == address.port())
        };
        members.peers.iter().filter(is_meant).for_each(|peer| balancer.force(peer, healthy));
        Ok(())
    }

    /// What is known of each target for Prometheus, at the end of `out`; under the name of Kong's plugin.
    ///
    /// Source: Kong 3.9.1 `kong/plugins/prometheus/exporter.lua`, `upstream_target_health`.
    pub fn write_target_metrics(&self, out: &mut String) {
        let mut balancers: Vec<_> = self.balancers.all().values().collect();
        if balancers.is_empty() {
            return;
        }
        balancers.sort_by(|one, other| one.upstream.name.cmp(&other.upstream.name));
        let help = "Health of the addresses of targets; 1 for the state that each is in.";
        let mut family = Family::begin(out, "kong_upstream_target_health", "gauge", help);
        for balancer in &balancers {
            let view = View::of(balancer);
            for (row, target) in balancer.rows.iter().enumerate() {
                let mut states: Vec<_> = view.of_row(row).map(|peer| (address(peer), view.health(peer))).collect();
                if states.is_empty() {
                    states.push((String::new(), "DNS_ERROR"));
                }
                for (address, found) in states {
                    for state in ["healthchecks_off", "healthy", "unhealthy", "dns_error"] {
                        let labels = [
                            ("upstream", &*balancer.upstream.name),
                            ("target", &*target.target),
                            ("address", &address),
                            ("state", state),
                            ("subsystem", "http"),
                        ];
                        family.line("", &labels, u8::from(found.eq_ignore_ascii_case(state)));
                    }
                }
            }
        }
        let figures: [(&str, &str, &str, Figure); 2] = [
            (
                "gwctl_upstream_target_connections",
                "gauge",
                "Requests and connections with an address at this moment, where they are counted.",
                |peer| u64::from(peer.state.connections()),
            ),
            (
                "gwctl_upstream_target_refused_total",
                "counter",
                "Times that an address was passed by with as many requests as it may have.",
                |peer| peer.state.refused(),
            ),
        ];
        for (name, kind, help, figure) in figures {
            let mut family = Family::begin(out, name, kind, help);
            for balancer in &balancers {
                for peer in &balancer.members().peers {
                    let (upstream, target) = (&*balancer.upstream.name, &*balancer.rows[peer.row].target);
                    let labels = [("upstream", upstream), ("target", target), ("address", &*address(peer))];
                    family.line("", &labels, figure(peer));
                }
            }
        }
    }

    fn balancer(&self, upstream_id: &str) -> Option<&Arc<Balancer>> {
        self.balancers.get(&self.tables().upstreams.get(upstream_id)?.name)
    }
}

/// A number of an address.
type Figure = fn(&Peer) -> u64;

fn address(peer: &Peer) -> String {
    format!("{}:{}", peer.literal(), peer.port)
}

/// None for what is no address: then the whole target is meant.
fn socket_address(text: &str) -> Option<SocketAddr> {
    let bare = |text: &str| text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
    text.parse().ok().or_else(|| Some(SocketAddr::new(bare(text)?, DEFAULT_PORT)))
}

/// The members of a balancer at one moment.
struct View {
    members: Arc<Members>,
    checked: bool,
}

impl View {
    fn of(balancer: &Balancer) -> View {
        View { members: balancer.members(), checked: balancer.checks.are_on() }
    }

    fn available(&self, peer: &Peer) -> bool {
        !self.checked || peer.weight == 0 || peer.state.health.is_healthy()
    }

    fn health(&self, peer: &Peer) -> &'static str {
        match self.available(peer) {
            _ if !self.checked || peer.weight == 0 => "HEALTHCHECKS_OFF",
            true => "HEALTHY",
            false => "UNHEALTHY",
        }
    }

    fn of_row(&self, row: usize) -> impl Iterator<Item = &Arc<Peer>> {
        self.members.peers.iter().filter(move |peer| peer.row == row)
    }

    /// Where the addresses of a target are from, in Kong's words.
    fn source(&self, row: usize, target: &Target) -> String {
        match self.members.names.get(split_target(&target.target).0) {
            Some(Ok(answer)) if !answer.each_time => answer.kind.as_str().to_owned(),
            Some(Err(error)) => error.to_string(),
            _ => match self.of_row(row).next().map(|peer| peer.address) {
                Some(Some(IpAddr::V4(_))) => "A".to_owned(),
                Some(Some(IpAddr::V6(_))) => "AAAA".to_owned(),
                _ => "ttl=0, virtual SRV".to_owned(),
            },
        }
    }

    /// A target is as healthy as the best of its addresses.
    fn summary(&self, row: usize) -> &'static str {
        let states: Vec<_> = self.of_row(row).map(|peer| self.health(peer)).collect();
        let best = ["HEALTHY", "UNHEALTHY", "HEALTHCHECKS_OFF"].into_iter().find(|state| states.contains(state));
        best.unwrap_or("DNS_ERROR")
    }

    fn weight(&self, accept: impl Fn(&Peer) -> bool) -> Value {
        let sum = |available: bool| -> u64 {
            let peers = self.members.peers.iter().filter(|peer| accept(peer) && self.available(peer) == available);
            peers.map(|peer| u64::from(peer.weight)).sum()
        };
        let (available, unavailable) = (sum(true), sum(false));
        json!({ "total": available + unavailable, "available": available, "unavailable": unavailable })
    }

    /// `state` gives the member of an address that tells its health.
    fn target(&self, row: usize, target: &Target, state: impl Fn(&Peer) -> (&'static str, Value)) -> Value {
        let (host, port) = target.target.rsplit_once(':').unwrap_or((&target.target, ""));
        let port = port.parse().unwrap_or(DEFAULT_PORT);
        let address = |peer: &Arc<Peer>| {
            let mut address = json!({ "ip": peer.literal(), "port": peer.port, "weight": peer.weight });
            let (name, value) = state(peer);
            address[name] = value;
            address
        };
        json!({
            "host": host,
            "port": port,
            "dns": self.source(row, target),
            "nodeWeight": target.weight,
            "weight": self.weight(|peer| peer.row == row),
            "addresses": self.of_row(row).map(address).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::SnapshotOptions;
    use crate::tables::Tables;
    use gwctl_plugins::{EmptyDirectory, Node};
    use gwctl_router::Flavor;

    fn snapshot(healthchecks: Value) -> Snapshot {
        let mut tables = Tables::default();
        let upstream = json!({"id": "u", "name": "u.test", "healthchecks": healthchecks});
        tables.put("upstreams", upstream.as_object().unwrap()).unwrap();
        for (id, target, weight) in [
            ("t1", "10.0.0.1:80", 10),
            ("t2", "[0000:0000:0000:0000:0000:0000:0000:0001]:81", 20),
            ("t3", "10.0.0.3:80", 0),
        ] {
            let row = json!({"id": id, "target": target, "weight": weight, "upstream": {"id": "u"}});
            tables.put("targets", row.as_object().unwrap()).unwrap();
        }
        let node = Arc::new(Node::new("node", "host", Arc::new(EmptyDirectory)));
        let options = SnapshotOptions {
            flavor: Flavor::TraditionalCompatible,
            hosts: Vec::new(),
            node,
            upstream_tls: Arc::default(),
        };
        Snapshot::build(&tables, &options, None).unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    fn on() -> Value {
        json!({"passive": {"unhealthy": {"tcp_failures": 1}}})
    }

    #[test]
    fn metrics_tell_the_state_of_each_address() {
        let snapshot = snapshot(json!({"passive": {"unhealthy": {"tcp_failures": 1}}}));
        snapshot.set_target_health("u", "t1", None, false).unwrap();
        let mut text = String::new();
        snapshot.write_target_metrics(&mut text);
        let line = |state: &str, value: u8| {
            let labels = r#"upstream="u.test",target="10.0.0.1:80",address="10.0.0.1:80""#;
            format!("kong_upstream_target_health{{{labels},state=\"{state}\",subsystem=\"http\"}} {value}\n")
        };
        for (state, value) in [("healthy", 0), ("unhealthy", 1), ("healthchecks_off", 0), ("dns_error", 0)] {
            assert!(text.contains(&line(state, value)), "{state}: {text}");
        }
        assert!(text.contains("# TYPE gwctl_upstream_target_refused_total counter"), "{text}");
    }

    #[test]
    fn targets_are_shown_as_kong_shows_them() {
        let snapshot = snapshot(on());
        snapshot.set_target_health("u", "t1", None, false).unwrap();
        let health = snapshot.upstream_health("u").unwrap();
        let first = json!({"health": "UNHEALTHY", "data": {"host": "10.0.0.1", "port": 80, "dns": "A", "nodeWeight": 10,
            "weight": {"total": 10, "available": 0, "unavailable": 10},
            "addresses": [{"ip": "10.0.0.1", "port": 80, "weight": 10, "health": "UNHEALTHY"}]}});
        assert_eq!(health["t1"], first);
        assert_eq!(health["t2"]["health"], "HEALTHY");
        assert_eq!(health["t2"]["data"]["host"], "[0000:0000:0000:0000:0000:0000:0000:0001]");
        assert_eq!(health["t2"]["data"]["dns"], "AAAA");
        assert_eq!(health["t3"]["health"], "HEALTHCHECKS_OFF", "it has no weight");
    }

    #[test]
    fn the_upstream_as_a_whole_tells_its_weights() {
        let snapshot = snapshot(on());
        snapshot.set_target_health("u", "t1", Some("10.0.0.1:80"), false).unwrap();
        let health = snapshot.balancer_health("u").unwrap();
        assert_eq!((&health["health"], &health["balancer_health"]), (&json!("HEALTHY"), &json!("HEALTHY")));
        assert_eq!(health["details"]["weight"], json!({"total": 30, "available": 20, "unavailable": 10}));
        assert_eq!(health["details"]["hosts"][0]["addresses"][0]["healthy"], false);
        snapshot.set_target_health("u", "t2", Some("[::1]:81"), false).unwrap();
        assert_eq!(snapshot.balancer_health("u").unwrap()["health"], "UNHEALTHY");
    }

    #[test]
    fn without_checks_nothing_is_said_and_nothing_can_be_set() {
        let snapshot = snapshot(Value::Null);
        assert_eq!(snapshot.set_target_health("u", "t1", None, false), Err(MarkRefusal::NoChecks));
        assert_eq!(snapshot.set_target_health("v", "t1", None, false), Err(MarkRefusal::NoBalancer));
        assert_eq!(snapshot.upstream_health("u").unwrap()["t1"]["health"], "HEALTHCHECKS_OFF");
        let whole = snapshot.balancer_health("u").unwrap();
        assert_eq!((&whole["health"], &whole["balancer_health"]), (&json!("HEALTHCHECKS_OFF"), &json!("HEALTHY")));
        assert_eq!((snapshot.upstream_health("v"), snapshot.balancer_health("v")), (None, None));
    }

    #[test]
    fn an_address_that_the_target_does_not_have_changes_nothing() {
        let snapshot = snapshot(on());
        for address in ["10.0.0.1:81", "10.0.0.1", "10.0.0.2:80"] {
            snapshot.set_target_health("u", "t1", Some(address), false).unwrap();
        }
        assert_eq!(snapshot.upstream_health("u").unwrap()["t1"]["health"], "HEALTHY");
    }
}

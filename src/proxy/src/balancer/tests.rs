use super::*;
use crate::balancers::Balancers;
use crate::tables::Tables;
use serde_json::{Value, json};

fn upstream(settings: Value) -> Arc<Upstream> {
    let mut row = json!({"id": "u", "name": "u"});
    row.as_object_mut().unwrap().extend(settings.as_object().cloned().unwrap());
    Arc::new(serde_json::from_value(row).unwrap())
}

fn rows(targets: &[(&str, u32)]) -> Vec<Arc<Target>> {
    let row = |(target, weight): &(&str, u32)| {
        Arc::new(serde_json::from_value(json!({"id": target, "target": target, "weight": weight})).unwrap())
    };
    targets.iter().map(row).collect()
}

fn balancer(settings: Value, targets: &[(&str, u32)]) -> Balancer {
    Balancer::new(upstream(settings), rows(targets), None)
}

fn passive() -> Value {
    json!({"passive": {"healthy": {"successes": 1, "http_statuses": [200]},
        "unhealthy": {"http_failures": 2, "http_statuses": [500], "tcp_failures": 1, "timeouts": 3}}})
}

fn ports(balancer: &Balancer, count: usize) -> Vec<u16> {
    (0..count).filter_map(|_| balancer.choose(None, &[]).map(|peer| peer.port)).collect()
}

fn peer(balancer: &Balancer, port: u16) -> Arc<Peer> {
    balancer.members().peers.iter().find(|peer| peer.port == port).cloned().unwrap()
}

fn observe(balancer: &Balancer, port: u16, outcome: Outcome) {
    balancer.observe(&peer(balancer, port), outcome, || Duration::from_millis(1));
}

const ALGORITHMS: [&str; 4] = ["round-robin", "least-connections", "consistent-hashing", "latency"];

#[test]
fn targets_without_weight_are_never_chosen() {
    for algorithm in ALGORITHMS {
        let balancer = balancer(json!({"algorithm": algorithm}), &[("a:1", 0), ("b:2", 5), ("c:3", 5)]);
        for hash in 0..500_u32 {
            let chosen = balancer.choose(Some(hash.wrapping_mul(0x9E37_79B1)), &[]).unwrap();
            assert_ne!(chosen.port, 1, "{algorithm}");
        }
    }
}

#[test]
fn without_weight_there_is_no_target() {
    for algorithm in ALGORITHMS {
        assert!(balancer(json!({"algorithm": algorithm}), &[]).choose(Some(1), &[]).is_none());
        assert!(balancer(json!({"algorithm": algorithm}), &[("a:1", 0)]).choose(Some(1), &[]).is_none());
    }
}

#[test]
fn a_retry_goes_to_each_other_target_before_one_again() {
    for algorithm in ALGORITHMS {
        let balancer = balancer(json!({"algorithm": algorithm}), &[("a:1", 1), ("b:2", 70), ("c:3", 1)]);
        for _ in 0..20 {
            let mut tried = Vec::new();
            for _ in 0..3 {
                let next = balancer.choose(Some(7), &tried).unwrap();
                tried.push(next);
            }
            let mut ports: Vec<_> = tried.iter().map(|peer| peer.port).collect();
            ports.sort_unstable();
            assert_eq!(ports, [1, 2, 3], "{algorithm}");
            assert!(balancer.choose(Some(7), &tried).is_some(), "{algorithm}: more retries than targets");
        }
    }
}

#[test]
fn an_unhealthy_target_is_left_out_by_every_algorithm() {
    for algorithm in ALGORITHMS {
        let settings = json!({"algorithm": algorithm, "healthchecks": passive()});
        let balancer = balancer(settings, &[("a:1", 1), ("b:2", 1), ("c:3", 1)]);
        observe(&balancer, 2, Outcome::Failed(Fault::Tcp));
        for hash in 0..200_u32 {
            assert_ne!(balancer.choose(Some(hash.wrapping_mul(0x9E37_79B1)), &[]).unwrap().port, 2, "{algorithm}");
        }
        for port in [1, 2, 3] {
            observe(&balancer, port, Outcome::Status(200));
        }
        let back =
            (0..200_u32).any(|hash| balancer.choose(Some(hash.wrapping_mul(0x9E37_79B1)), &[]).unwrap().port == 2);
        assert!(back, "{algorithm}");
    }
}

#[test]
fn the_rest_keeps_its_weights_while_one_is_out() {
    let balancer = balancer(json!({"healthchecks": passive()}), &[("a:1", 10), ("b:2", 20), ("c:3", 30)]);
    observe(&balancer, 3, Outcome::Failed(Fault::Tcp));
    let ports = ports(&balancer, 30);
    assert_eq!(ports.iter().filter(|port| **port == 1).count(), 10);
    assert_eq!(ports.iter().filter(|port| **port == 2).count(), 20);
}

#[test]
fn results_count_by_their_limits() {
    let balancer = balancer(json!({"healthchecks": passive()}), &[("a:1", 1), ("b:2", 1)]);
    let healthy = |port| peer(&balancer, port).state.health.is_healthy();
    observe(&balancer, 1, Outcome::Status(500));
    observe(&balancer, 1, Outcome::Status(404));
    assert!(healthy(1), "404 is no failure here");
    observe(&balancer, 1, Outcome::Status(500));
    assert!(!healthy(1));
    observe(&balancer, 2, Outcome::Status(504));
    observe(&balancer, 2, Outcome::Failed(Fault::Timeout));
    observe(&balancer, 2, Outcome::Unknown);
    assert!(healthy(2));
    observe(&balancer, 2, Outcome::Failed(Fault::Timeout));
    assert!(!healthy(2));
}

#[test]
fn checks_that_are_off_never_take_a_target_out() {
    let off = json!({"passive": {"unhealthy": {"http_failures": 0, "tcp_failures": 0, "timeouts": 0, "http_statuses": [500]}}});
    let balancer = balancer(json!({"healthchecks": off}), &[("a:1", 1)]);
    for _ in 0..300 {
        observe(&balancer, 1, Outcome::Failed(Fault::Tcp));
        observe(&balancer, 1, Outcome::Status(500));
    }
    assert_eq!(ports(&balancer, 3), [1, 1, 1]);
}

#[test]
fn too_little_healthy_weight_closes_the_upstream() {
    let mut checks = passive();
    checks["threshold"] = json!(50);
    let balancer = balancer(json!({"healthchecks": checks}), &[("a:1", 10), ("b:2", 10), ("c:3", 20)]);
    assert!(balancer.is_healthy());
    observe(&balancer, 1, Outcome::Failed(Fault::Tcp));
    assert!(balancer.choose(None, &[]).is_some(), "three quarters are left");
    observe(&balancer, 2, Outcome::Failed(Fault::Tcp));
    assert!(balancer.choose(None, &[]).is_none(), "a half is not more than a half");
    observe(&balancer, 1, Outcome::Status(200));
    assert!(balancer.choose(None, &[]).is_some());
}

#[test]
fn without_a_healthy_target_there_is_none() {
    let balancer = balancer(json!({"healthchecks": passive()}), &[("a:1", 10), ("b:2", 10)]);
    observe(&balancer, 1, Outcome::Failed(Fault::Tcp));
    observe(&balancer, 2, Outcome::Failed(Fault::Tcp));
    assert!(balancer.choose(None, &[]).is_none());
}

#[test]
fn least_connections_follow_the_weights() {
    let balancer = balancer(json!({"algorithm": "least-connections"}), &[("a:1", 10), ("b:2", 30)]);
    let mut leases = Vec::new();
    for _ in 0..40 {
        let peer = balancer.choose(None, &[]).unwrap();
        leases.push((peer.port, peer.state.lease()));
    }
    assert_eq!(leases.iter().filter(|(port, _)| *port == 2).count(), 30);
    leases.retain(|(port, _)| *port == 2);
    assert!((0..10).all(|_| {
        let peer = balancer.choose(None, &[]).unwrap();
        leases.push((peer.port, peer.state.lease()));
        peer.port == 1
    }));
}

#[test]
fn idle_targets_of_least_connections_take_turns() {
    let balancer = balancer(json!({"algorithm": "least-connections"}), &[("a:1", 1), ("b:2", 1)]);
    let ports = ports(&balancer, 10);
    assert_eq!(ports.iter().filter(|port| **port == 1).count(), 5);
}

#[test]
fn the_quick_target_gets_the_requests() {
    let balancer = balancer(json!({"algorithm": "latency"}), &[("a:1", 1), ("b:2", 1), ("c:3", 1)]);
    for (port, millis) in [(1, 500), (2, 5), (3, 500)] {
        balancer.observe(&peer(&balancer, port), Outcome::Status(200), || Duration::from_millis(millis));
    }
    let quick = ports(&balancer, 300).iter().filter(|port| **port == 2).count();
    // It is one of two drawn out of three in two thirds of the cases.
    assert!(quick > 150, "{quick} of 300 requests to the target that is a hundred times as quick");
}

#[test]
fn one_value_always_finds_one_target() {
    let settings = json!({"algorithm": "consistent-hashing", "hash_on": "ip"});
    let balancer = balancer(settings.clone(), &[("a:1", 1), ("b:2", 1), ("c:3", 1)]);
    let again = Balancer::new(upstream(settings), rows(&[("c:3", 1), ("a:1", 1), ("b:2", 1)]), None);
    let mut found = std::collections::BTreeSet::new();
    for hash in (0..200_u32).map(|number| number.wrapping_mul(0x9E37_79B1)) {
        let port = balancer.choose(Some(hash), &[]).unwrap().port;
        assert_eq!(balancer.choose(Some(hash), &[]).unwrap().port, port);
        assert_eq!(again.choose(Some(hash), &[]).unwrap().port, port, "the order of the targets says nothing");
        found.insert(port);
    }
    assert_eq!(found.len(), 3);
}

#[test]
fn requests_without_a_hash_take_turns() {
    let balancer = balancer(json!({"algorithm": "consistent-hashing"}), &[("a:1", 1), ("b:2", 1)]);
    let ports = ports(&balancer, 10);
    assert_eq!(ports.iter().filter(|port| **port == 1).count(), 5);
}

fn tables(upstream: Value, targets: &[(&str, u32)]) -> Tables {
    let mut tables = Tables::default();
    let mut row = json!({"id": "u", "name": "u.test"});
    row.as_object_mut().unwrap().extend(upstream.as_object().cloned().unwrap());
    assert!(tables.put("upstreams", row.as_object().unwrap()).unwrap());
    for (target, weight) in targets {
        let row = json!({"id": target, "target": target, "weight": weight, "upstream": {"id": "u"}});
        assert!(tables.put("targets", row.as_object().unwrap()).unwrap());
    }
    tables
}

/// Balancers as one configuration follows on another.
#[derive(Default)]
struct Configuration {
    tables: Tables,
    balancers: Balancers,
}

impl Configuration {
    fn then(&self, tables: Tables) -> Configuration {
        let tables = tables.settled(&self.tables);
        Configuration { balancers: self.balancers.changed(&self.tables, &tables), tables }
    }

    fn get(&self, name: &str) -> Arc<Balancer> {
        self.balancers.get(name).cloned().unwrap()
    }

    fn only(&self) -> Arc<Balancer> {
        let row = self.tables.upstreams.values().next().unwrap();
        self.get(&row.name)
    }
}

#[test]
fn what_is_known_survives_changes() {
    let checks = json!({"healthchecks": passive(), "algorithm": "least-connections"});
    let first = Configuration::default().then(tables(checks, &[("a:1", 1), ("b:2", 1)]));
    let old = first.get("u.test");
    observe(&old, 1, Outcome::Failed(Fault::Tcp));
    observe(&old, 2, Outcome::Status(500));
    let lease = peer(&old, 2).state.lease();
    let mut changed = passive();
    changed["threshold"] = json!(10);
    let changed = json!({"healthchecks": changed, "algorithm": "least-connections"});
    // A target more, other checks, another name, another weight: each in place of the one before.
    let mut now = first;
    for tables in [
        tables(
            json!({"healthchecks": passive(), "algorithm": "least-connections"}),
            &[("a:1", 1), ("b:2", 1), ("c:3", 1)],
        ),
        tables(changed.clone(), &[("a:1", 1), ("b:2", 1), ("c:3", 1)]),
        tables(
            json!({"healthchecks": changed["healthchecks"], "name": "v.test"}),
            &[("a:1", 1), ("b:2", 1), ("c:3", 1)],
        ),
        tables(json!({"healthchecks": changed["healthchecks"]}), &[("a:1", 7), ("b:2", 1)]),
    ] {
        now = now.then(tables);
        let balancer = &now.only();
        assert!(!peer(balancer, 1).state.health.is_healthy());
        assert!(!peer(balancer, 2).state.health.is_clean());
        assert_eq!(peer(balancer, 2).state.connections(), 1);
        assert!(ports(balancer, 10).iter().all(|port| *port != 1));
    }
    drop(lease);
    let new = now.get("u.test");
    assert_eq!(peer(&new, 2).state.connections(), 0);
    // A request that began with the old configuration reports to the new one.
    observe(&old, 2, Outcome::Status(500));
    assert!(new.choose(None, &[]).is_none());
}

#[test]
fn a_target_that_was_away_starts_afresh() {
    let checks = || json!({"healthchecks": passive()});
    let first = Configuration::default().then(tables(checks(), &[("a:1", 1), ("b:2", 1)]));
    observe(&first.get("u.test"), 1, Outcome::Failed(Fault::Tcp));
    let without = first.then(tables(checks(), &[("b:2", 1)]));
    let again = without.then(tables(checks(), &[("a:1", 1), ("b:2", 1)]));
    assert!(peer(&again.get("u.test"), 1).state.health.is_clean());
}

#[test]
fn upstreams_do_not_share_what_is_known_of_a_target() {
    let mut tables = tables(json!({"healthchecks": passive()}), &[("a:1", 1)]);
    let other = json!({"id": "v", "name": "v.test", "healthchecks": passive()});
    tables.put("upstreams", other.as_object().unwrap()).unwrap();
    let row = json!({"id": "v1", "target": "a:1", "weight": 1, "upstream": {"id": "v"}});
    tables.put("targets", row.as_object().unwrap()).unwrap();
    let both = Configuration::default().then(tables);
    observe(&both.get("u.test"), 1, Outcome::Failed(Fault::Tcp));
    assert!(both.get("u.test").choose(None, &[]).is_none());
    assert!(both.get("v.test").choose(None, &[]).is_some());
}

#[test]
fn turning_checks_off_lets_every_target_in_again() {
    let on = tables(json!({"healthchecks": passive()}), &[("a:1", 1)]);
    let first = Configuration::default().then(on.clone());
    observe(&first.get("u.test"), 1, Outcome::Failed(Fault::Tcp));
    let off = first.then(tables(json!({}), &[("a:1", 1)]));
    assert!(off.get("u.test").choose(None, &[]).is_some());
    let again = off.then(on);
    assert!(again.get("u.test").choose(None, &[]).is_some());
}

#[test]
fn hosts_are_written_with_their_port_unless_it_is_the_usual() {
    assert_eq!(host_value("::1", 81, 80).unwrap(), "[::1]:81");
    assert_eq!(host_value("a", 80, 80).unwrap(), "a");
}

fn limited(limit: u32) -> BalancerOptions {
    BalancerOptions { max_connections_per_target: limit, ..BalancerOptions::default() }
}

fn slow(seconds: u64) -> BalancerOptions {
    BalancerOptions { slow_start: Duration::from_secs(seconds), ..BalancerOptions::default() }
}

#[test]
fn full_targets_leave_their_requests_to_others_and_then_to_none() {
    for algorithm in ALGORITHMS {
        let balancer = balancer(json!({"algorithm": algorithm}), &[("a:1", 90), ("b:2", 10)]);
        let taken: Vec<_> = (0..4).map(|_| balancer.take(Some(7), &[], &limited(2)).unwrap()).collect();
        for port in [1, 2] {
            assert_eq!(taken.iter().filter(|(peer, _)| peer.port == port).count(), 2, "{algorithm}");
        }
        assert!(balancer.take(Some(7), &[], &limited(2)).is_none(), "{algorithm}");
        drop(taken);
        assert!(balancer.take(Some(7), &[], &limited(2)).is_some(), "{algorithm}");
        let refused: u64 = balancer.members().peers.iter().map(|peer| peer.state.refused()).sum();
        assert!(refused >= 2, "{algorithm}: {refused}");
    }
}

#[test]
fn a_tried_target_is_tried_again_when_the_others_are_full() {
    let balancer = balancer(json!({}), &[("a:1", 1), ("b:2", 1)]);
    let _full = peer(&balancer, 2).state.lease();
    let (chosen, _) = balancer.take(None, &[peer(&balancer, 1)], &limited(1)).unwrap();
    assert_eq!(chosen.port, 1);
}

#[test]
fn without_a_limit_only_least_connections_counts() {
    for (algorithm, counts) in ALGORITHMS.into_iter().zip([false, true, false, false]) {
        let balancer = balancer(json!({"algorithm": algorithm}), &[("a:1", 1)]);
        assert_eq!(balancer.take(Some(1), &[], &limited(0)).unwrap().1.is_some(), counts, "{algorithm}");
    }
}

#[test]
fn a_newcomer_comes_to_its_share_slowly_where_that_is_asked_for() {
    for algorithm in ALGORITHMS {
        let old = balancer(json!({"algorithm": algorithm}), &[("a:1", 1), ("b:2", 1)]);
        [1, 2].into_iter().for_each(|port| observe(&old, port, Outcome::Status(200)));
        let all = rows(&[("a:1", 1), ("b:2", 1), ("c:3", 1)]);
        let new = Balancer::new(upstream(json!({"algorithm": algorithm})), all, Some(&old));
        let share = |options: &BalancerOptions| {
            let hash = |turn: u32| Some(turn.wrapping_mul(0x9E37_79B1));
            let mut taken: Vec<_> = (0..900).map(|turn| new.take(hash(turn), &[], options).unwrap()).collect();
            taken.retain(|(peer, _)| peer.port == 3);
            taken.len()
        };
        assert!(share(&slow(3600)) < 60, "{algorithm}");
        if algorithm != "latency" {
            assert!(share(&slow(0)) > 200, "{algorithm}");
        }
    }
}

#[test]
fn a_target_that_is_healthy_again_starts_slowly_and_one_alone_takes_all() {
    let balancer = balancer(json!({"healthchecks": passive()}), &[("a:1", 1), ("b:2", 1)]);
    let count = |port: u16| {
        (0..400).filter(|_| balancer.take(None, &[], &slow(3600)).is_some_and(|(peer, _)| peer.port == port)).count()
    };
    assert_eq!(count(2), 200);
    observe(&balancer, 2, Outcome::Failed(Fault::Tcp));
    observe(&balancer, 2, Outcome::Status(200));
    assert!(count(2) < 40, "its share begins near nothing");
    observe(&balancer, 1, Outcome::Failed(Fault::Tcp));
    assert_eq!(count(2), 400);
}

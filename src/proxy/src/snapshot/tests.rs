//! A snapshot that came about by changes answers as one that is built from scratch, and refuses the same.

use super::*;
use gwctl_entities::Record;
use gwctl_plugins::{EmptyDirectory, Natives};
use gwctl_router::{NoHeaders, Request, RequestPath};
use http::HeaderValue;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A row put (Some) or removed.
type Step = (&'static str, usize, Option<Value>);

fn id(kind: u32, number: usize) -> String {
    format!("{kind:08x}-0000-4000-8000-{number:012}")
}

fn reference(kind: u32, number: Option<usize>) -> Value {
    number.map_or(Value::Null, |number| json!({"id": id(kind, number)}))
}

/// Pairs of certificate and key; the last is none.
fn pairs() -> &'static [(String, String); 3] {
    static PAIRS: OnceLock<[(String, String); 3]> = OnceLock::new();
    let pair = || {
        let pair = gwctl_certs::self_signed(&["a.test".to_owned()], 1_700_000_000).unwrap();
        (pair.certificate, pair.key)
    };
    PAIRS.get_or_init(|| [pair(), pair(), ("no".to_owned(), "no".to_owned())])
}

fn maybe(most: usize) -> impl Strategy<Value = Option<usize>> {
    prop::option::weighted(0.7, 0..most)
}

fn any_row() -> impl Strategy<Value = (&'static str, usize, Value)> {
    let secure = prop::option::weighted(0.3, (maybe(2), prop::option::weighted(0.3, 0..2_usize)));
    let service = (0..3_usize, 0..3_u32, secure, prop::bool::weighted(0.8)).prop_map(|(number, host, secure, on)| {
        let (certificate, authority) = secure.unwrap_or_default();
        let row = json!({
            "id": id(1, number), "protocol": if secure.is_some() { "https" } else { "http" }, "port": 80,
            "host": format!("u{host}.test"), "path": format!("/{host}"), "enabled": on,
            "client_certificate": reference(6, certificate),
            "ca_certificates": authority.map(|number| vec![id(8, number)]),
        });
        ("services", number, row)
    });
    let paths = prop::sample::subsequence(vec!["/", "/a", "/a/b", "/b", "~/a.*", "~/(a|b)", "~/("], 1..=2);
    let hosts = prop::sample::subsequence(vec!["a.test", "*.test", "b.test"], 0..=2);
    let route =
        (0..5_usize, maybe(3), paths, hosts, 0..3_u32).prop_map(|(number, service, paths, hosts, created_at)| {
            let row = json!({
                "id": id(2, number), "service": reference(1, service), "paths": paths, "hosts": hosts,
                "protocols": ["http", "https"], "created_at": created_at,
            });
            ("routes", number, row)
        });
    let place = (0..5_usize, 0..3_usize, 1..3_usize);
    let plugin = (0..8_usize, place, prop::bool::weighted(0.8), 199..205_u16).prop_map(
        |(number, (route, service, consumer), enabled, status)| {
            // Each number is bound to other kinds of rows: no two take the same place, as in a store.
            let bound = |bit: usize, to: usize| Some(to).filter(|_| number & bit != 0);
            let name = ["request-termination", "no-such-plugin"][usize::from(number == 7 && status == 204)];
            let row = json!({
                "id": id(3, number), "name": name, "enabled": enabled,
                "route": reference(2, bound(1, route)), "service": reference(1, bound(2, service)),
                "consumer": reference(9, bound(4, consumer)),
                "config": {"status_code": status, "message": null, "content_type": null, "body": null, "echo": false,
                           "trigger": null},
            });
            ("plugins", number, row)
        },
    );
    let upstream = (0..2_usize, 0..2_u32).prop_map(|(number, slots)| {
        let row = json!({"id": id(4, number), "name": format!("u{number}.test"), "slots": 10 + slots});
        ("upstreams", number, row)
    });
    let target = (0..4_usize, maybe(2), 0..3_u32).prop_map(|(number, upstream, weight)| {
        let target = format!("10.0.0.{number}:80");
        let row = json!({"id": id(5, number), "upstream": reference(4, upstream), "target": target, "weight": weight});
        ("targets", number, row)
    });
    let certificate = (0..2_usize, 0..3_usize).prop_map(|(number, pair)| {
        let (cert, key) = &pairs()[pair];
        ("certificates", number, json!({"id": id(6, number), "cert": cert, "key": key}))
    });
    let sni = (0..3_usize, maybe(2)).prop_map(|(number, certificate)| {
        let name = ["a.test", "*.test", "b.*"][number];
        ("snis", number, json!({"id": id(7, number), "name": name, "certificate": reference(6, certificate)}))
    });
    let authority = (0..2_usize, 0..2_usize)
        .prop_map(|(number, pair)| ("ca_certificates", number, json!({"id": id(8, number), "cert": pairs()[pair].0})));
    prop_oneof![
        3 => service, 5 => route, 4 => plugin, 1 => upstream, 2 => target, 1 => certificate, 1 => sni, 1 => authority
    ]
}

/// Batches of rows.
fn any_steps() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let step = (any_row(), prop::bool::weighted(0.75))
        .prop_map(|((entity, number, row), put)| (entity, number, put.then_some(row)));
    prop::collection::vec(prop::collection::vec(step, 1..5), 1..25)
}

fn kind(entity: &str) -> u32 {
    let order = ["services", "routes", "plugins", "upstreams", "targets", "certificates", "snis", "ca_certificates"];
    order.iter().position(|name| *name == entity).unwrap() as u32 + 1
}

fn options(flavor: Flavor) -> SnapshotOptions {
    let node = Arc::new(Node::new("node", "host", Arc::new(EmptyDirectory)));
    SnapshotOptions { flavor, hosts: vec![Arc::new(Natives)], node, upstream_tls: Arc::default() }
}

fn record(row: &Value) -> Record {
    row.as_object().unwrap().clone()
}

/// What a snapshot does with some requests and names.
fn answers(snapshot: &Snapshot) -> Vec<String> {
    let mut answers = Vec::new();
    for host in ["a.test", "b.test", "c.test", "x"] {
        for target in ["/", "/a", "/a/b/c", "/b", "/c"] {
            answers.push(answer(snapshot, host, target));
        }
    }
    for name in ["u0.test", "u1.test", "u2.test"] {
        let balancer = snapshot.balancers.get(name);
        let peers = balancer.map(|balancer| {
            let members = balancer.members();
            let peers = members.peers.iter().map(|peer| format!("{}:{} {}", peer.host, peer.port, peer.weight));
            (balancer.upstream.slots, peers.collect::<Vec<_>>())
        });
        answers.push(format!("{name}: {peers:?}"));
    }
    for name in ["a.test", "x.test", "b.example", "c"] {
        let cert = snapshot.certificates.find(name).map(|pairs| &pairs[0].cert);
        answers.push(format!("{name}: {cert:?}"));
    }
    answers
}

fn answer(snapshot: &Snapshot, host: &str, target: &str) -> String {
    let path = RequestPath::normalise(target.as_bytes());
    let request = Request {
        https: false,
        method: "GET",
        host,
        port: 80,
        path: &path,
        headers: &NoHeaders,
        sni: None,
        source: None,
        destination_ip: None,
    };
    let found = snapshot.router.find(&request);
    let chain = found.as_ref().map_or_else(
        || snapshot.chains.global().clone(),
        |found| snapshot.chains.of_route(&found.route.id, found.service.map(|service| &*service.id)),
    );
    let rows = |consumer: Option<&str>| -> Vec<_> {
        let rows = chain.rows(consumer).map(|row| (row.facts.id.clone(), row.row.config["status_code"].to_string()));
        rows.collect()
    };
    let plan = found.as_ref().and_then(|found| snapshot.plans.of(&found.service?.id)).map(|plan| {
        let tls = plan.tls.as_ref().map(|tls| tls.pool_name(&HeaderValue::from_static("h")));
        (plan.host.clone(), plan.scheme, tls)
    });
    let way = found.as_ref().map(|found| (found.route.id.clone(), found.upstream_path(), found.service.cloned()));
    let consumers = (rows(None), rows(Some(&id(9, 1))));
    format!("{host} {target}: {way:?} {plan:?} {consumers:?} {:?} {:?}", chain.phases(), chain.needs())
}

fn sorted(problems: Vec<Problem>) -> Vec<String> {
    let mut problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    problems.sort();
    problems
}

fn changes_agree(flavor: Flavor, steps: Vec<Vec<Step>>) -> Result<(), TestCaseError> {
    let options = options(flavor);
    let mut snapshot = Snapshot::build(&Tables::default(), &options, None).unwrap();
    let mut model: BTreeMap<(&str, usize), Value> = BTreeMap::new();
    for batch in steps {
        let (mut tables, mut changed) = (snapshot.tables().clone(), model.clone());
        for (entity, number, row) in batch {
            match row {
                Some(row) => {
                    tables.put(entity, &record(&row)).unwrap();
                    changed.insert((entity, number), row);
                }
                None => {
                    let held = tables.remove(entity, &id(kind(entity), number));
                    prop_assert_eq!(held, changed.remove(&(entity, number)).is_some());
                }
            }
        }
        let rows = |entity: &str| -> Vec<Record> {
            changed.iter().filter(|((of, _), _)| *of == entity).map(|(_, row)| record(row)).collect()
        };
        let fresh = Tables::read(rows).unwrap();
        let built = Snapshot::build(&fresh, &options, None);
        // Once by the rows that changed and once by tables that share nothing with those before.
        let read_anew = Snapshot::build(&fresh, &options, Some(&snapshot));
        match (Snapshot::build(&tables, &options, Some(&snapshot)), built) {
            (Ok(next), Ok(built)) => {
                prop_assert_eq!(answers(&next), answers(&built));
                prop_assert_eq!(answers(&read_anew.map_err(sorted).unwrap()), answers(&built));
                (snapshot, model) = (next, changed);
            }
            (Err(problems), Err(expected)) => {
                let expected = sorted(expected);
                prop_assert_eq!(sorted(problems), expected.clone());
                prop_assert_eq!(read_anew.err().map(sorted), Some(expected));
            }
            (changed, built) => {
                let problems = (changed.err().map(sorted), built.err().map(sorted));
                prop_assert!(false, "only one is refused: {:?}", problems);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changes_lead_where_building_leads(steps in any_steps()) {
        changes_agree(Flavor::TraditionalCompatible, steps)?;
    }

    #[test]
    fn so_they_do_in_the_other_flavors(steps in any_steps(), traditional: bool) {
        changes_agree(if traditional { Flavor::Traditional } else { Flavor::Expressions }, steps)?;
    }
}

#[test]
fn a_change_is_refused_for_all_that_is_wrong_with_it() {
    let options = options(Flavor::default());
    let mut tables = Tables::default();
    let service = json!({"id": id(1, 0), "protocol": "http", "host": "h", "port": 80});
    let route = json!({"id": id(2, 0), "service": {"id": id(1, 0)}, "paths": ["/a"], "protocols": ["http"]});
    tables.put("services", &record(&service)).unwrap();
    tables.put("routes", &record(&route)).unwrap();
    let snapshot = Snapshot::build(&tables, &options, None).unwrap();
    let in_force = answers(&snapshot);
    let mut tables = snapshot.tables().clone();
    let bad = json!({"id": id(2, 1), "paths": ["~/(", "~/["], "protocols": ["http"]});
    tables.put("routes", &record(&bad)).unwrap();
    tables.put("plugins", &record(&json!({"id": id(3, 0), "name": "none"}))).unwrap();
    tables.remove("services", &id(1, 0));
    let problems = sorted(Snapshot::build(&tables, &options, Some(&snapshot)).err().unwrap());
    let found: Vec<_> = problems.iter().map(|problem| problem.split(' ').next().unwrap()).collect();
    assert_eq!(found, ["plugins", "routes", "routes", "routes"], "{problems:?}");
    assert_eq!(answers(&snapshot), in_force);
}

#[test]
fn a_renewed_certificate_reaches_the_services_that_present_it() {
    let options = options(Flavor::default());
    let certificate = |pair: usize| json!({"id": id(6, 0), "cert": pairs()[pair].0, "key": pairs()[pair].1});
    let mut tables = Tables::default();
    tables.put("certificates", &record(&certificate(0))).unwrap();
    for number in 0..3 {
        let own = reference(6, Some(0).filter(|_| number < 2));
        let service = json!({
            "id": id(1, number), "protocol": "https", "host": "h", "port": 443, "client_certificate": own,
        });
        let route =
            json!({"id": id(2, number), "service": {"id": id(1, number)}, "paths": ["/"], "protocols": ["http"]});
        tables.put("services", &record(&service)).unwrap();
        tables.put("routes", &record(&route)).unwrap();
    }
    let old = Snapshot::build(&tables, &options, None).unwrap();
    tables.put("certificates", &record(&certificate(1))).unwrap();
    let new = Snapshot::build(&tables, &options, Some(&old)).unwrap();
    let settings = |snapshot: &Snapshot, number| snapshot.plans.of(&id(1, number)).unwrap().tls.clone().unwrap();
    assert!(Arc::ptr_eq(&settings(&old, 0), &settings(&old, 1)));
    assert!(!Arc::ptr_eq(&settings(&old, 0), &settings(&new, 0)));
    assert!(Arc::ptr_eq(&settings(&new, 0), &settings(&new, 1)));
    assert!(Arc::ptr_eq(&settings(&old, 2), &settings(&new, 2)));
}

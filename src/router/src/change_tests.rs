//! A router that came about by changes answers as one that is built from scratch, whatever the flavor, and both as
//! plain scans over all routes do. `GWCTL_ROUTER_PAIRS=1000000` asks for so many pairs of a configuration and a request.

use crate::tests::{Asked, any_request, any_route, route};
use crate::*;
use gwctl_entities::view::{Service, from_record};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Pairs that are tried when nobody asks for more.
const PAIRS: usize = 6_000;
const REQUESTS: usize = 20;

#[derive(Debug, Clone)]
enum Step {
    Put { number: usize, fields: Value, service: Option<usize>, created_at: Option<u32> },
    Remove { number: usize },
    Service { number: usize, enabled: bool },
}

const EXPRESSIONS: &[&str] = &[
    r#"http.path ^= "/a""#,
    r#"http.path ^= "/a" && http.host == "a.test""#,
    r#"http.path == "/a/b" || http.host =^ ".test""#,
    r#"http.path ~ "^/[ab]+" && http.method == "GET""#,
    r#"any(http.headers.x_a) == "1""#,
    r#"!(http.host ^= "a")"#,
];

/// Routes with fields, or of the flavor `expressions` some with an expression.
fn any_fields(flavor: Flavor) -> BoxedStrategy<Value> {
    let expressions = (prop::sample::select(EXPRESSIONS), 0..3_u32)
        .prop_map(|(text, priority)| json!({"expression": text, "priority": priority, "protocols": ["http", "https"]}));
    match flavor {
        Flavor::Expressions => prop_oneof![any_route(), expressions].boxed(),
        _ => any_route().boxed(),
    }
}

fn any_step(flavor: Flavor) -> impl Strategy<Value = Step> {
    let created_at = prop_oneof![8 => (0..3_u32).prop_map(Some), 1 => Just(None)];
    let put = (0..12_usize, any_fields(flavor), prop::option::of(0..3_usize), created_at)
        .prop_map(|(number, fields, service, created_at)| Step::Put { number, fields, service, created_at });
    prop_oneof![
        6 => put,
        2 => (0..12_usize).prop_map(|number| Step::Remove { number }),
        1 => (0..3_usize, any::<bool>()).prop_map(|(number, enabled)| Step::Service { number, enabled }),
    ]
}

fn id(number: usize) -> String {
    format!("{:08x}-0000-4000-8000-000000000000", (number as u32).wrapping_mul(0x9e37_79b9))
}

fn service(number: usize, enabled: bool) -> Arc<Service> {
    let path = format!("/{number}");
    let record =
        json!({"id": id(number), "protocol": "http", "host": "h", "port": 80, "path": path, "enabled": enabled});
    Arc::new(from_record(record.as_object().unwrap()).unwrap())
}

/// What a configuration amounts to after some steps.
struct Model {
    services: BTreeMap<usize, Arc<Service>>,
    routes: BTreeMap<usize, (RouteEntry, Option<usize>)>,
}

impl Model {
    fn new() -> Self {
        Model { services: (0..3).map(|number| (number, service(number, true))).collect(), routes: BTreeMap::new() }
    }

    /// Takes a step and says what changes.
    fn step(&mut self, step: Step) -> Vec<Change> {
        match step {
            Step::Put { number, mut fields, service, created_at } => {
                fields["id"] = json!(id(number));
                fields["created_at"] = json!(created_at);
                let service_row = service.map(|service| self.services[&service].clone());
                let entry = RouteEntry { service: service_row, ..route(fields) };
                self.routes.insert(number, (entry.clone(), service));
                vec![Change::Put(entry)]
            }
            Step::Remove { number } => {
                self.routes.remove(&number);
                vec![Change::Remove(id(number).into())]
            }
            Step::Service { number, enabled } => {
                let row = service(number, enabled);
                self.services.insert(number, row.clone());
                let mut changes = vec![Change::PutService(row.clone())];
                for (entry, _) in self.routes.values_mut().filter(|(_, service)| *service == Some(number)) {
                    entry.service = Some(row.clone());
                    changes.push(Change::Put(entry.clone()));
                }
                changes
            }
        }
    }

    fn build(&self, flavor: Flavor) -> Router {
        Router::build(flavor, self.routes.values().map(|(entry, _)| entry.clone())).unwrap().0
    }
}

/// Everything that an answer says: id, path taken, path sent on, captures.
type View = (Arc<str>, Option<String>, String, Option<UriCaptures>);

fn view(found: Option<Match<'_, '_>>) -> Option<View> {
    let found = found?;
    let path = found.matched_path().map(str::to_owned);
    Some((found.route.id.clone(), path, found.upstream_path(), found.uri_captures()))
}

fn agree(changed: &Router, built: &Router, asked: &Asked) -> Result<(), TestCaseError> {
    asked.with(|request| {
        let found = view(changed.find(request));
        prop_assert_eq!(&found, &view(built.find(request)), "{:?}", asked);
        let scanned = changed.find_by_scan(request).map(|found| found.route.id.clone());
        prop_assert_eq!(found.map(|(id, ..)| id), scanned, "{:?}", asked);
        Ok(())
    })
}

fn changes_agree_with_building(flavor: Flavor) {
    let pairs = std::env::var("GWCTL_ROUTER_PAIRS").ok().and_then(|pairs| pairs.parse().ok()).unwrap_or(PAIRS);
    let cases = (pairs / REQUESTS).max(1) as u32;
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let steps = prop::collection::vec(any_step(flavor), 1..40);
    let requests = prop::collection::vec(any_request(), REQUESTS);
    let outcome = TestRunner::new(config).run(&(steps, requests), |(steps, requests)| {
        let (mut router, _) = Router::build(flavor, []).unwrap();
        let mut model = Model::new();
        let mut copies = Vec::new();
        let half = steps.len() / 2;
        for (number, step) in steps.into_iter().enumerate() {
            if number == half {
                copies.push((router.clone(), model.build(flavor)));
            }
            router = router.change(model.step(step)).0;
        }
        copies.push((router, model.build(flavor)));
        // The copy from half way too: later changes must not have reached it.
        for (changed, built) in copies {
            prop_assert_eq!(changed.len(), built.len());
            requests.iter().try_for_each(|asked| agree(&changed, &built, asked))?;
        }
        Ok(())
    });
    if let Err(fault) = outcome {
        panic!("{fault}");
    }
}

#[test]
fn changes_of_traditional_compatible_agree_with_building() {
    changes_agree_with_building(Flavor::TraditionalCompatible);
}

#[test]
fn changes_of_traditional_agree_with_building() {
    changes_agree_with_building(Flavor::Traditional);
}

#[test]
fn changes_of_expressions_agree_with_building() {
    changes_agree_with_building(Flavor::Expressions);
}

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use crate::{EmptyDirectory, Node, PluginError, PluginHost, Step, context::Context};
use gwctl_entities::{Record, Value};
use proptest::prelude::*;
use serde_json::json;
use std::future::Future;
use std::pin::pin;
use std::task::{Poll, Waker};

/// Adds its id to a list; exits, fails or names a consumer when its settings say so.
struct Probe {
    id: String,
    config: Record,
}

#[derive(Default)]
struct Seen(Vec<String>);

impl Probe {
    fn note(&self, context: &mut Context, phase: &str) {
        let mut seen = context.slots.take::<Seen>().unwrap_or_default();
        seen.0.push(format!("{phase}:{}", self.id));
        context.slots.put(seen);
    }
}

impl Plugin for Probe {
    fn phases(&self) -> Phases {
        Phases::ACCESS | Phases::LOG
    }

    fn access<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        self.note(context, "access");
        if let Some(consumer) = self.config.get("consumer").and_then(Value::as_str) {
            let record = json!({"id": consumer}).as_object().cloned().unwrap();
            context.authenticate(Some(Arc::new(record)), None);
        }
        match self.config.get("do").and_then(Value::as_str) {
            Some("exit") => crate::Exit::empty(http::StatusCode::IM_A_TEAPOT).into(),
            Some("fail") => PluginError("asked to".to_owned()).into(),
            Some("wait") => Step::Wait(Box::pin(async { Step::Next })),
            _ => Step::Next,
        }
    }

    fn log(&self, context: &mut Context) {
        self.note(context, "log");
    }
}

struct Probes;

impl PluginHost for Probes {
    fn priority(&self, name: &str) -> Option<i64> {
        match name {
            "auth" => Some(1000),
            "late" | "later" => Some(10),
            _ => None,
        }
    }

    fn build(&self, _name: &str, config: &Record, facts: &PluginFacts) -> Result<Arc<dyn Plugin>, PluginError> {
        Ok(Arc::new(Probe { id: facts.id.to_string(), config: config.clone() }))
    }
}

fn rows(rows: Value) -> Vec<Arc<view::Plugin>> {
    serde_json::from_value::<Vec<view::Plugin>>(rows).unwrap().into_iter().map(Arc::new).collect()
}

fn node() -> Arc<Node> {
    Arc::new(Node::new("node", "host", Arc::new(EmptyDirectory)))
}

fn build(list: Value, previous: Option<&Chains>) -> Result<Chains, Vec<ChainProblem>> {
    let rows = rows(list);
    let empty = Chains::default();
    let previous = previous.unwrap_or(&empty);
    let gone = previous.rows().map(|row| row.facts.id.clone()).filter(|id| rows.iter().all(|row| row.id != *id));
    let changes = gone.map(|id| (id, None)).chain(rows.iter().map(|row| (row.id.clone(), Some(row.clone()))));
    let hosts: [Arc<dyn PluginHost>; 1] = [Arc::new(Probes)];
    let service_of = |route: &str| (route == "r").then(|| Some("s".into()));
    previous.change(changes, ["r".into()], &Builder { hosts: &hosts, node: &node(), service_of: &service_of })
}

fn ids(chain: &Chain, consumer: Option<&str>) -> Vec<String> {
    chain.rows(consumer).map(|row| row.facts.id.to_string()).collect()
}

fn poll<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut std::task::Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a future without sockets must be ready"),
    }
}

fn walk(list: Value) -> (Vec<String>, Result<bool, Failure>) {
    let chains = build(list, None).unwrap();
    let mut context = crate::context::tests::sample();
    let mut run = Run::new(chains.global().clone());
    run.route(chains.of_route("r", Some("s")));
    let answer = poll(run.access(&mut context)).map(|exit| exit.is_some());
    run.log(&mut context);
    (context.slots.take::<Seen>().unwrap_or_default().0, answer)
}

#[test]
fn the_most_specific_row_of_a_name_runs() {
    let mut list = json!([
        {"id": "rsc", "name": "late", "route": {"id": "r"}, "service": {"id": "s"}, "consumer": {"id": "c"}},
        {"id": "rc", "name": "late", "route": {"id": "r"}, "consumer": {"id": "c"}},
        {"id": "sc", "name": "late", "service": {"id": "s"}, "consumer": {"id": "c"}},
        {"id": "rs", "name": "late", "route": {"id": "r"}, "service": {"id": "s"}},
        {"id": "c", "name": "late", "consumer": {"id": "c"}},
        {"id": "r", "name": "late", "route": {"id": "r"}},
        {"id": "s", "name": "late", "service": {"id": "s"}},
        {"id": "g", "name": "late"}
    ]);
    // Without the winner the next one wins, down to the global row.
    for winner in ["rsc", "rc", "sc", "rs", "c", "r", "s", "g"] {
        let chains = build(list.clone(), None).unwrap();
        assert_eq!(ids(&chains.of_route("r", Some("s")), Some("c")), [winner]);
        list.as_array_mut().unwrap().remove(0);
    }
}

#[test]
fn rows_of_other_routes_services_and_consumers_do_not_run() {
    let chains = build(
        json!([
            {"id": "1", "name": "late", "route": {"id": "other"}},
            {"id": "2", "name": "later", "consumer": {"id": "other"}},
            {"id": "3", "name": "auth", "service": {"id": "s"}, "enabled": false}
        ]),
        None,
    )
    .unwrap();
    assert!(ids(&chains.of_route("r", Some("s")), Some("c")).is_empty());
}

#[test]
fn higher_priority_runs_first_and_equals_by_name_descending() {
    let chains =
        build(json!([{"id": "1", "name": "late"}, {"id": "2", "name": "auth"}, {"id": "3", "name": "later"}]), None)
            .unwrap();
    assert_eq!(ids(chains.global(), None), ["2", "3", "1"]);
}

#[test]
fn a_consumer_found_on_the_way_chooses_the_rows_that_follow() {
    let (seen, answer) = walk(json!([
        {"id": "auth", "name": "auth", "config": {"consumer": "c"}},
        {"id": "plain", "name": "late"},
        {"id": "own", "name": "late", "consumer": {"id": "c"}}
    ]));
    assert_eq!(answer, Ok(false));
    assert_eq!(seen, ["access:auth", "access:own", "log:auth", "log:own"]);
}

#[test]
fn an_exit_skips_access_of_the_rest_but_not_their_log() {
    for consumer in [json!(null), json!({"id": "c"})] {
        let (seen, answer) = walk(json!([
            {"id": "auth", "name": "auth", "config": {"do": "exit", "consumer": "c"}},
            {"id": "late", "name": "late", "consumer": consumer}
        ]));
        assert_eq!(answer, Ok(true));
        assert_eq!(seen, ["access:auth", "log:auth", "log:late"]);
    }
}

#[test]
fn a_failure_ends_access_and_a_wait_does_not() {
    let (seen, answer) = walk(json!([
        {"id": "auth", "name": "auth", "config": {"do": "wait"}},
        {"id": "later", "name": "later", "config": {"do": "fail"}},
        {"id": "late", "name": "late"}
    ]));
    assert_eq!(answer, Err(Failure));
    assert_eq!(seen, ["access:auth", "access:later", "log:auth", "log:later", "log:late"]);
}

#[test]
fn an_unchanged_row_keeps_its_plugin_object() {
    let first = build(json!([{"id": "1", "name": "late"}, {"id": "2", "name": "auth"}]), None).unwrap();
    let list = json!([{"id": "1", "name": "late"}, {"id": "2", "name": "auth", "config": {"a": 1}}]);
    let second = build(list, Some(&first)).unwrap();
    assert!(Arc::ptr_eq(&first.rows["1"].plugin, &second.rows["1"].plugin));
    assert!(!Arc::ptr_eq(&first.rows["2"].plugin, &second.rows["2"].plugin));
}

#[test]
fn all_rows_of_unknown_plugins_are_named() {
    let problems = build(json!([{"id": "1", "name": "x"}, {"id": "2", "name": "y"}]), None).err().unwrap();
    assert_eq!(problems.len(), 2);
}

/// A row by the place it takes: name, route, service and consumer, each from a few or none.
fn row_at(place: usize, text: u8) -> (Arc<str>, Value) {
    let (id, name) = (format!("{place:03}"), ["auth", "late", "later"][place % 3]);
    let one_of = |names: &[Option<&str>], at: usize| names[at % names.len()].map(|id| json!({"id": id}));
    let row = json!({
        "id": id,
        "name": name,
        "route": one_of(&[None, Some("r"), Some("q")], place / 3),
        "service": one_of(&[None, Some("s"), Some("t")], place / 9),
        "consumer": one_of(&[None, Some("c")], place / 27),
        "enabled": text != 0,
        "config": {"text": text},
    });
    (id.into(), row)
}

/// Routes and the services they lead to.
type Asked = (&'static str, Option<&'static str>);

const ASKED: [Asked; 5] = [("q", None), ("q", Some("s")), ("r", Some("s")), ("x", Some("t")), ("x", None)];

fn answers(chains: &Chains, asked: &[Asked]) -> Vec<(Vec<String>, Vec<String>, Phases, Needs)> {
    let answer = |(route, service): &Asked| {
        let chain = chains.of_route(route, *service);
        (ids(&chain, None), ids(&chain, Some("c")), chain.phases(), chain.needs())
    };
    asked.iter().map(answer).collect()
}

proptest! {
    #[test]
    fn changes_lead_where_building_leads(
        steps in prop::collection::vec((0..54_usize, prop::option::of(0..3_u8), prop::option::of(0..4_u8)), 1..40),
    ) {
        let (mut chains, mut model) = (Chains::default(), std::collections::BTreeMap::new());
        let (mut route_of, node) = ([None, Some(Some("s"))], node());
        let mut before: Option<(Chains, Vec<Asked>, _)> = None;
        let hosts: [Arc<dyn PluginHost>; 1] = [Arc::new(Probes)];
        for (place, text, moved) in steps {
            // Routes come, go and lead to other services meanwhile.
            if let Some(moved) = moved {
                route_of[usize::from(moved) % 2] = [None, Some(None), Some(Some("s")), Some(Some("t"))][place % 4];
            }
            let (id, row) = row_at(place, text.unwrap_or(0));
            let row: Option<Arc<view::Plugin>> = text.map(|_| Arc::new(serde_json::from_value(row).unwrap()));
            let service_of = |route: &str| route_of[usize::from(route == "r")].map(|service| service.map(Arc::from));
            let builder = Builder { hosts: &hosts, node: &node, service_of: &service_of };
            let routes = || ["q".into(), "r".into()];
            chains = chains.change([(id.clone(), row.clone())], routes(), &builder).unwrap();
            match row {
                Some(row) => _ = model.insert(id, row),
                None => _ = model.remove(&id),
            }
            let all = model.iter().map(|(id, row): (&Arc<str>, &Arc<view::Plugin>)| (id.clone(), Some(row.clone())));
            let built = Chains::default().change(all, routes(), &builder).unwrap();
            let led = |route: &str, service: Option<&str>| service_of(route).is_none_or(|to| to.as_deref() == service);
            let asked: Vec<_> = ASKED.iter().copied().filter(|(route, service)| led(route, *service)).collect();
            prop_assert_eq!(answers(&chains, &asked), answers(&built, &asked));
            // A request may use older chains for a while, whatever newer ones have been asked for.
            if let Some((older, asked, told)) = before.replace((chains.clone(), asked.clone(), answers(&chains, &asked))) {
                prop_assert_eq!(answers(&older, &asked), told);
            }
        }
    }
}

//! Plans from stored records and a document.

use super::*;
use crate::load;
use crate::load::tests::{Counter, document, registry};
use gwctl_entities::Registry;
use serde_json::json;

const STORED: &str = "services:\n- {name: a, host: h, routes: [{name: r, paths: [/a], plugins: [{name: cors}]}]}\n\
    consumers:\n- {username: u, basicauth_credentials: [{username: b, password: p}], keyauth_credentials: [{key: k}]}\n\
    upstreams:\n- {name: up.local, targets: [{target: 10.0.0.1, weight: 5}]}\n";

/// Stored under ids of its own, as a store would have drawn them.
fn stored(registry: &Registry, text: &str) -> Vec<Table> {
    let mut document = document(text);
    number(&mut document, &mut 0);
    load(registry, document, &LoadOptions::of(Mode::Partial), &mut Counter(0)).unwrap().tables
}

fn number(value: &mut Value, count: &mut u32) {
    match value {
        Value::Array(list) => {
            for item in list {
                if let Value::Object(record) = item {
                    *count += 1;
                    record.insert("id".to_owned(), json!(format!("dddddddd-0000-4000-8000-{count:012}")));
                }
                number(item, count);
            }
        }
        Value::Object(map) => map.values_mut().for_each(|value| number(value, count)),
        _ => {}
    }
}

fn planned(current: &str, target: &str, options: &DiffOptions) -> Plan {
    let registry = registry();
    let tables = stored(registry, current);
    plan(registry, &tables, document(target), options, &mut Counter(500)).unwrap()
}

fn steps(plan: &Plan) -> Vec<(Action, &str, &str)> {
    plan.operations.iter().map(|step| (step.action, step.entity.as_str(), step.name.as_str())).collect()
}

fn pruning() -> DiffOptions {
    DiffOptions { prune: true, ..DiffOptions::default() }
}

#[test]
fn a_file_that_says_what_is_stored_makes_no_difference() {
    let plan = planned(STORED, STORED, &pruning());
    assert_eq!(steps(&plan), []);
    assert_eq!(plan.to_text(), "no differences\n");
}

#[test]
fn creates_go_parents_first_and_deletes_children_first() {
    let create = planned("services: []\n", STORED, &pruning());
    let order: Vec<&str> = create.operations.iter().map(|step| step.entity.as_str()).collect();
    let at = |entity: &str| order.iter().position(|other| *other == entity).unwrap();
    assert!(at("services") < at("routes") && at("routes") < at("plugins") && at("upstreams") < at("targets"));
    let delete = planned(STORED, "services: []\n", &pruning());
    let mut reversed: Vec<&str> = delete.operations.iter().map(|step| step.entity.as_str()).collect();
    reversed.reverse();
    assert_eq!(reversed, order);
    assert!(delete.operations.iter().all(|step| step.method() == "DELETE" && step.body_for_put.is_none()));
}

#[test]
fn a_record_of_the_same_name_keeps_its_id_and_children_follow() {
    let plan = planned(
        "services:\n- {name: a, host: h}\n",
        "services:\n- {name: a, host: i, routes: [{name: r, paths: [/a]}]}\n",
        &pruning(),
    );
    assert_eq!(steps(&plan), [(Action::Update, "services", "a"), (Action::Create, "routes", "r")]);
    let id = "dddddddd-0000-4000-8000-000000000001";
    assert_eq!(plan.operations[0].path, format!("/services/{id}"));
    assert_eq!(plan.operations[0].changes.len(), 1);
    let body = plan.operations[1].body(0).unwrap();
    assert_eq!(body["service"], json!({ "id": id }));
    assert!(!body.contains_key("created_at"));
    assert_eq!(plan.operations[1].parent.as_ref().unwrap().name, "a");
}

#[test]
fn without_pruning_what_is_not_in_the_file_is_left() {
    let plan = planned(STORED, "services:\n- {name: a, host: h}\n", &DiffOptions::default());
    assert!(plan.is_empty());
    assert!(plan.left.contains(&("routes".to_owned(), "r".to_owned())));
    assert!(plan.to_text().contains("left as they are (not in the file)"));
}

#[test]
fn selected_tags_bound_what_is_deleted_and_mark_what_is_written() {
    let current = "services:\n- {name: mine, host: h, tags: [team]}\n- {name: other, host: h}\n";
    let options = DiffOptions { prune: true, select_tags: vec!["team".to_owned()], threads: 1 };
    let plan = planned(current, "services:\n- {name: new, host: h}\n", &options);
    assert_eq!(steps(&plan), [(Action::Create, "services", "new"), (Action::Delete, "services", "mine")]);
    assert_eq!(plan.operations[0].after.as_ref().unwrap()["tags"], json!(["team"]));
}

#[test]
fn secrets_are_never_shown() {
    let target = STORED.replace("password: p", "password: topsecret");
    let plan = planned(STORED, &target, &pruning());
    assert_eq!(steps(&plan), [(Action::Update, "basicauth_credentials", "b")]);
    assert!(plan.to_text().contains("password: •••• (changed)"), "{}", plan.to_text());
    for text in [plan.to_text(), plan.to_json().to_string()] {
        assert!(!text.contains("topsecret"), "{text}");
    }
    assert_eq!(plan.operations[0].body(0).unwrap()["password"], "topsecret");
    assert!(plan.operations[0].path.starts_with("/consumers/"));
}

#[test]
fn a_password_that_is_stored_already_is_marked_so() {
    let hash = |tables: &[Table]| {
        let rows = &tables.iter().find(|table| table.entity == "basicauth_credentials").unwrap().records;
        rows[0]["password"].as_str().unwrap().to_owned()
    };
    let hash = hash(&stored(registry(), STORED));
    let dumped = STORED.replace("password: p", &format!("password: {hash}, tags: [new]"));
    // The same hash is meant to stay, whether the file says so or not.
    for head in ["", "_transform: false\n"] {
        let plan = planned(STORED, &format!("{head}{dumped}"), &pruning());
        assert_eq!(steps(&plan), [(Action::Update, "basicauth_credentials", "b")]);
        assert!(plan.operations[0].stored && plan.operations[0].body(0).unwrap()["password"] == hash);
    }
    assert!(!planned(STORED, &STORED.replace("password: p", "password: q"), &pruning()).operations[0].stored);
    // Elsewhere only the file can tell.
    let credential = |plan: &Plan| plan.operations.iter().find(|step| step.name == "b").unwrap().stored;
    assert!(credential(&planned("services: []\n", &format!("_transform: false\n{dumped}"), &pruning())));
    let unmarked = planned("services: []\n", &dumped, &pruning());
    assert!(!credential(&unmarked) && unmarked.warnings[0].contains("`_transform: false`"), "{:?}", unmarked.warnings);
    assert!(!unmarked.warnings[0].contains(&hash));
}

#[test]
fn targets_are_matched_after_normalisation_and_posted_when_new() {
    let plan = planned(STORED, &STORED.replace("weight: 5", "weight: 7"), &pruning());
    assert_eq!(steps(&plan), [(Action::Update, "targets", "10.0.0.1:8000")]);
    assert_eq!(plan.operations[0].changes[0].field, "weight");
    assert!(plan.operations[0].post_path.as_ref().unwrap().ends_with("/targets"));
}

#[test]
fn another_id_under_the_same_name_replaces_the_record() {
    let target = "services:\n- {name: a, host: h, id: cccccccc-0000-4000-8000-000000000009}\n";
    let plan = planned("services:\n- {name: a, host: h}\n", target, &DiffOptions::default());
    assert_eq!(steps(&plan), [(Action::Delete, "services", "a"), (Action::Create, "services", "a")]);
    assert_eq!(plan.warnings.len(), 1);
}

#[test]
fn sets_compare_without_order_and_absent_fields_with_their_default() {
    let current = "routes:\n- {name: r, paths: [/a], methods: [GET, PUT], strip_path: true}\n";
    let target = "routes:\n- {name: r, paths: [/a], methods: [PUT, GET]}\n";
    assert!(planned(current, target, &pruning()).is_empty());
}

#[test]
fn a_saved_plan_reads_back() {
    let plan = planned("services: []\n", STORED, &pruning());
    let saved = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&saved).unwrap(), plan);
}

#[test]
fn the_body_gives_the_seconds_a_credential_has_left() {
    let target = "consumers:\n- {username: u, keyauth_credentials: [{key: k, ttl: 1000}]}\n";
    let plan = planned("services: []\n", target, &pruning());
    assert_eq!(plan.operations[1].body(900_000).unwrap()["ttl"], 100);
    assert_eq!(plan.operations[0].body(900_000).unwrap().get("ttl"), None);
}

#[test]
fn a_salted_secret_makes_no_difference_but_a_warning() {
    let client = "{name: n, client_id: c, client_secret: s, hash_secret: true, redirect_uris: ['http://a.test']}";
    let text = format!("consumers:\n- {{username: u, oauth2_credentials: [{client}]}}\n");
    let plan = planned(&text, &text, &pruning());
    assert_eq!(steps(&plan), []);
    assert!(plan.warnings[0].contains("salted hash"), "{:?}", plan.warnings);
}

#[test]
fn lists_show_elements_and_long_texts_the_words_that_differ() {
    let long = |word: &str| format!("{} {word} {}", "start ".repeat(20), "end ".repeat(20));
    let text = |path: &str, word: &str| {
        format!(
            "routes:\n- {{name: r, paths: [/a, {path}], plugins: [{{name: request-termination, config: {{message: '{}'}}}}]}}\n",
            long(word)
        )
    };
    let shown = planned(&text("/b", "old"), &text("/c", "new"), &pruning()).to_text();
    let expected = "~ change routes r\n    paths: -\"/b\" +\"/c\"\n\
                    ~ change plugins request-termination (routes r)\n    config.message: ... [\"old\" -> \"new\"] ...\n\n\
                    0 to create, 2 to change, 0 to delete\n";
    assert_eq!(shown, expected);
}

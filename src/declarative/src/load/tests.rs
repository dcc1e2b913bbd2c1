//! Whole documents against the bundled schemas.

use super::*;
use crate::text::{Limits, TextForm, parse};
use crate::{config_answer, export_document, export_text};
use gwctl_entities::{NodeKind, RegistryOptions};
use std::sync::LazyLock;

/// Counts instead of drawing random values.
pub(crate) struct Counter(pub(crate) u64);

impl Fill for Counter {
    fn now_millis(&mut self) -> u64 {
        1_700_000_000_000
    }
    fn uuid(&mut self) -> String {
        self.0 += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.0)
    }
    fn token(&mut self) -> String {
        self.0 += 1;
        format!("{:016}{:016}", self.0, 0)
    }
}

pub(crate) fn registry() -> &'static Registry {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
        let flavor = "traditional_compatible".to_owned();
        Registry::bundled(&RegistryOptions { kind: NodeKind::DbLess, router_flavor: flavor, plugins: None })
    });
    &REGISTRY
}

pub(crate) fn document(text: &str) -> Value {
    let whole =
        if text.contains("_format_version") { text.to_owned() } else { format!("_format_version: '3.0'\n{text}") };
    parse(&whole, TextForm::Auto, &Limits::default()).unwrap()
}

fn read(text: &str, options: &LoadOptions<'_>) -> Result<Loaded, EntityError> {
    load(registry(), document(text), options, &mut Counter(0))
}

fn accepted(text: &str) -> Loaded {
    read(text, &LoadOptions::of(Mode::DbLess)).unwrap()
}

fn refused_with(text: &str) -> Value {
    match read(text, &LoadOptions::of(Mode::DbLess)).unwrap_err() {
        EntityError::InvalidDeclarative { fields, flattened: None } => Value::Object(fields),
        other => panic!("{other:?}"),
    }
}

fn flattened(text: &str) -> (Value, Vec<Value>) {
    let options = LoadOptions { flatten_errors: true, ..LoadOptions::of(Mode::DbLess) };
    match read(text, &options).unwrap_err() {
        EntityError::InvalidDeclarative { fields, flattened } => (Value::Object(fields), flattened.unwrap()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nested_and_flat_records_come_out_alike_and_in_order() {
    let nested = accepted("services:\n- {name: a, host: h, routes: [{name: r, paths: [/a]}]}\n");
    let flat = accepted("routes:\n- {name: r, paths: [/a], service: a}\nservices:\n- {name: a, host: h}\n");
    assert_eq!(nested.tables, flat.tables);
    let names: Vec<&str> = nested.tables.iter().map(|table| table.entity.as_str()).collect();
    assert_eq!(names, ["workspaces", "services", "routes"]);
    assert_eq!(nested.records("routes")[0]["service"]["id"], nested.records("services")[0]["id"]);
    assert_eq!(nested.default_workspace, DEFAULT_WORKSPACE);
}

#[test]
fn a_reference_may_be_a_name_an_id_or_an_object_with_an_id() {
    let id = "cccccccc-0000-4000-8000-000000000001";
    for reference in ["a", id, "{id: cccccccc-0000-4000-8000-000000000001}"] {
        let loaded = accepted(&format!(
            "services:\n- {{name: a, id: {id}, host: h}}\nroutes:\n- {{name: r, paths: [/a], service: {reference}}}\n"
        ));
        assert_eq!(loaded.records("routes")[0]["service"], json!({ "id": id }), "{reference}");
    }
    let fields =
        refused_with("services:\n- {name: a, host: h}\nroutes:\n- {name: r, paths: [/a], service: {name: a}}\n");
    assert_eq!(fields, json!({"routes": [{"service": {"id": "missing primary key"}}]}));
}

#[test]
fn a_reference_to_nothing_is_named_by_the_record_or_its_place() {
    let fields = refused_with("routes:\n- {name: r, paths: [/a], service: nope}\n- {paths: [/b], service: nix}\n");
    assert_eq!(fields["routes"]["r"], json!(["invalid reference 'service: nope' (no such entry in 'services')"]));
    assert_eq!(fields["routes"]["2"], json!(["invalid reference 'service: nix' (no such entry in 'services')"]));
}

#[test]
fn errors_stand_where_the_mistakes_are_all_at_once() {
    let fields = refused_with(
        "nopes: []\nservices:\n- {name: a, host: h, routes: [{name: r, paths: [/a]}, {name: q, paths: [a]}]}\n- {name: b}\n- 5\n",
    );
    assert_eq!(fields["nopes"], json!("unknown field"));
    assert_eq!(fields["services"][0]["routes"][0], Value::Null);
    assert!(fields["services"][0]["routes"][1]["paths"].is_array());
    assert_eq!(fields["services"][1], json!({"host": "required field missing"}));
    assert_eq!(fields["services"][2], json!("expected a record"));
}

#[test]
fn the_head_of_a_document_is_checked() {
    for (text, expected) in [
        ("_format_version: '9.9'", json!({"_format_version": "expected one of: 1.1, 2.1, 3.0"})),
        ("_format_version: 3.0", json!({"_format_version": "expected a string"})),
        ("_format_version: '3.0'\n_transform: 1", json!({"_transform": "expected a boolean"})),
        ("_workspace: default", json!({"_workspace": "unknown field"})),
        ("services: {a: 1}", json!({"services": "expected an array"})),
    ] {
        assert_eq!(refused_with(text), expected, "{text}");
    }
    let error = load(registry(), json!({}), &LoadOptions::of(Mode::DbLess), &mut Counter(0)).unwrap_err();
    let EntityError::InvalidDeclarative { fields, .. } = error else { panic!("{error:?}") };
    assert_eq!(Value::Object(fields), json!({"_format_version": "required field missing"}));
}

#[test]
fn annotations_and_empty_lists_are_accepted() {
    let loaded = accepted(
        "_comment: c\n_ignore: [1]\nroutes:\nservices:\n- {_comment: c, _ignore: [], name: a, host: h, routes: ~}\n",
    );
    assert_eq!(loaded.records("services").len(), 1);
    assert!(accepted("services: []\n").is_empty());
}

#[test]
fn duplicates_name_entity_field_and_value() {
    let twice = |entity: &str, field: &str, value: &str| {
        format!("uniqueness violation: '{entity}' entity with {field} set to '{value}' already declared")
    };
    assert_eq!(
        refused_with("services:\n- {name: a, host: h}\n- {name: a, host: i}\n"),
        json!({"services": [null, twice("services", "name", "a")]})
    );
    assert_eq!(
        refused_with("plugins:\n- {name: key-auth}\n- {name: key-auth}\n"),
        json!({"plugins": [null, twice("plugins", "primary key", "6b4f38d1-e026-540b-a5ea-8634739dd2a7")]})
    );
    assert_eq!(
        refused_with("consumers:\n- {username: a, custom_id: c}\n- {username: b, custom_id: c}\n"),
        json!({"consumers": {"b": twice("consumers", "custom_id", "c")}})
    );
}

#[test]
fn a_nested_record_may_name_other_parents_but_they_must_exist() {
    let loaded = accepted(
        "consumers:\n- {username: u}\nservices:\n- {name: a, host: h, plugins: [{name: request-termination, consumer: u}]}\n",
    );
    let plugin = &loaded.records("plugins")[0];
    assert_eq!(plugin["consumer"]["id"], loaded.records("consumers")[0]["id"]);
    assert_eq!(plugin["service"]["id"], loaded.records("services")[0]["id"]);
    let fields = refused_with("services:\n- {name: a, host: h, routes: [{name: r, paths: [/a], service: b}]}\n");
    assert_eq!(fields, json!({"services": [{"routes": [{"service": "value must be null"}]}]}));
}

#[test]
fn passwords_are_hashed_unless_transformation_is_off_and_answers_show_them_as_written() {
    let text = "consumers:\n- {username: u, basicauth_credentials: [{username: b, password: p}]}\n";
    let hashed = accepted(text);
    let stored = hashed.records("basicauth_credentials")[0]["password"].as_str().unwrap();
    assert_eq!(stored.len(), 40);
    let answer = config_answer(registry(), &hashed);
    assert_eq!(answer["basicauth_credentials"].as_object().unwrap().values().next().unwrap()["password"], "p");
    let plain = accepted(&format!("_format_version: '3.0'\n_transform: false\n{text}"));
    assert_eq!(plain.records("basicauth_credentials")[0]["password"], "p");
}

#[test]
fn flattened_errors_list_children_before_parents() {
    let (fields, errors) =
        flattened("consumers:\n- {id: cccccccc-0000-4000-8000-000000000001, tags: [t], acls: [{}]}\n");
    assert_eq!(fields, json!({}));
    assert_eq!(errors[0]["entity_type"], "acl");
    assert_eq!(errors[0]["entity"], json!({"consumer": {"id": "cccccccc-0000-4000-8000-000000000001"}}));
    assert_eq!(errors[0]["errors"], json!([{"type": "field", "field": "group", "message": "required field missing"}]));
    assert_eq!(errors[1]["entity_id"], "cccccccc-0000-4000-8000-000000000001");
    assert_eq!(errors[1]["entity_tags"], json!(["t"]));
    assert_eq!(errors[1]["errors"][0]["type"], "entity");
}

#[test]
fn the_ttl_of_a_credential_is_an_absolute_time() {
    let text = "consumers:\n- {username: u, keyauth_credentials: [{key: k, ttl: 1800000000}]}\n";
    assert_eq!(accepted(text).records("keyauth_credentials")[0]["ttl"], 1_800_000_000);
    let wrong = "consumers:\n- {username: u, keyauth_credentials: [{key: k, ttl: x}]}\n";
    assert_eq!(refused_with(wrong), json!({"consumers": [{"keyauth_credentials": [{"ttl": "expected a number"}]}]}));
}

#[test]
fn an_exported_configuration_loads_to_the_same_records() {
    let first = accepted(
        "services:\n- {name: a, host: h, routes: [{name: r, paths: [/a], plugins: [{name: cors}]}]}\n\
         consumers:\n- {username: u, basicauth_credentials: [{username: b, password: p}], acls: [{group: g}]}\n\
         upstreams:\n- {name: up.local, targets: [{target: 10.0.0.1}]}\n",
    );
    let document = export_document(registry(), &first.tables);
    let again = load(registry(), document, &LoadOptions::of(Mode::DbLess), &mut Counter(0)).unwrap();
    assert_eq!(again.tables, first.tables);
}

#[test]
fn a_pushed_table_is_stored_as_it_is() {
    let source = accepted("services:\n- {name: a, host: h, routes: [{name: r, paths: [/a]}]}\n");
    let Value::Object(mut table) = export_document(registry(), &source.tables) else { panic!("an object") };
    table.insert("filter_chains_of_the_future".to_owned(), Value::Null);
    table["services"][0]["field_of_the_future"] = Value::Null;
    let options = LoadOptions::of(Mode::DataPlane);
    let loaded = load(registry(), Value::Object(table.clone()), &options, &mut Counter(0)).unwrap();
    assert_eq!(loaded.tables, source.tables);
    table["services"][0]["field_of_the_future"] = json!(1);
    let error = load(registry(), Value::Object(table), &options, &mut Counter(0)).unwrap_err();
    let EntityError::InvalidDeclarative { fields, .. } = error else { panic!("{error:?}") };
    assert_eq!(Value::Object(fields), json!({"services": [{"field_of_the_future": "unknown field"}]}));
}

#[test]
fn stored_records_keep_their_ids_and_may_be_referred_to() {
    let stored = accepted("services:\n- {name: a, host: h, id: cccccccc-0000-4000-8000-000000000001}\n");
    let existing = Existing::new(registry(), &stored.tables);
    let options = LoadOptions { existing: Some(&existing), ..LoadOptions::of(Mode::Partial) };
    let loaded = read("services:\n- {name: a, host: i}\n", &options).unwrap();
    assert_eq!(loaded.records("services")[0]["id"], "cccccccc-0000-4000-8000-000000000001");
    let loaded = read("routes:\n- {name: r, paths: [/a], service: a}\n", &options).unwrap();
    assert_eq!(loaded.records("routes")[0]["service"]["id"], "cccccccc-0000-4000-8000-000000000001");
    assert!(loaded.records("workspaces").is_empty());
}

#[test]
fn the_default_workspace_may_be_named() {
    let loaded = accepted("workspaces:\n- {name: default, id: cccccccc-0000-4000-8000-000000000001}\n");
    assert_eq!(loaded.default_workspace, "cccccccc-0000-4000-8000-000000000001");
    assert_eq!(loaded.records("workspaces").len(), 1);
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i32>().prop_map(Value::from),
            prop_oneof![Just("a"), Just("/a"), Just("key-auth"), Just("http"), Just("")].prop_map(Value::from),
        ];
        let names = prop_oneof![
            Just("services"),
            Just("routes"),
            Just("plugins"),
            Just("certificates"),
            Just("snis"),
            Just("consumers"),
            Just("acls"),
            Just("name"),
            Just("username"),
            Just("host"),
            Just("paths"),
            Just("service"),
            Just("id"),
            Just("config"),
            Just("tags"),
            Just("_comment"),
        ];
        leaf.prop_recursive(6, 60, 5, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map(names.clone().prop_map(str::to_owned), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// A service with routes that carry plugins, as a document writes them.
    fn any_service() -> impl Strategy<Value = Value> {
        let route = (
            proptest::option::of("[a-z]{1,8}"),
            "[a-z/]{0,8}",
            proptest::sample::subsequence(vec!["cors", "key-auth"], 0..2),
        );
        let routes = proptest::collection::vec(route, 0..3);
        ("[a-z]{1,8}", proptest::option::of(1..65535_u16), proptest::option::of("[a-z]{1,5}"), routes).prop_map(
            |(host, port, tag, routes)| {
                let routes = routes.into_iter().map(|(name, path, plugins)| {
                    let plugins: Vec<Value> = plugins.into_iter().map(|name| json!({ "name": name })).collect();
                    json!({"name": name, "paths": [format!("/{}", path.replace("//", "/").trim_start_matches('/'))], "plugins": plugins})
                });
                let routes: Vec<Value> = routes.collect();
                let mut service = json!({"host": host, "tags": tag.map(|tag| [tag]), "routes": routes});
                if let Some(port) = port {
                    service["port"] = json!(port);
                }
                service
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_exported_as_text_loads_to_the_same_records(services in proptest::collection::vec(any_service(), 0..4)) {
            let registry = registry();
            let document = json!({"_format_version": "3.0", "services": services});
            let options = LoadOptions::of(Mode::DbLess);
            // Names drawn twice are refused; that is not what is looked at here.
            if let Ok(first) = load(registry, document, &options, &mut Counter(0)) {
                let text = export_text(registry, &first.tables);
                let again = parse(&text, TextForm::Yaml, &Limits::default()).unwrap();
                let again = load(registry, again, &options, &mut Counter(1000)).unwrap();
                let shown = |loaded: &Loaded| loaded.tables.iter().skip(1).cloned().collect::<Vec<_>>();
                prop_assert_eq!(shown(&again), shown(&first), "{}", text);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_document_makes_the_loader_panic(value in any_value(), flatten_errors in any::<bool>(), transform in any::<bool>()) {
            let registry = registry();
            let mut value = value;
            if let Value::Object(map) = &mut value {
                map.insert("_format_version".to_owned(), json!("2.1"));
                map.insert("_transform".to_owned(), json!(transform));
            }
            for mode in [Mode::DbLess, Mode::DataPlane, Mode::Partial] {
                let options = LoadOptions { flatten_errors, ..LoadOptions::of(mode) };
                if let Ok(loaded) = load(registry, value.clone(), &options, &mut Counter(0)) {
                    prop_assert!(config_answer(registry, &loaded).is_object());
                }
            }
        }
    }
}

#[test]
fn a_large_document_reads_the_same_on_any_number_of_threads() {
    let consumer = |number: usize| {
        // Keys that are not given are drawn, and a few items are wrong.
        let key = if number.is_multiple_of(7) { json!({}) } else { json!({"key": format!("k{number}")}) };
        let name = if number == 400 { json!(7) } else { json!(format!("u{number}")) };
        json!({"username": name, "keyauth_credentials": [key], "plugins": [{"name": "cors"}]})
    };
    let read = |count: usize, threads: usize| {
        let document = json!({"_format_version": "3.0", "consumers": (0..count).map(consumer).collect::<Vec<_>>()});
        let options = LoadOptions { threads, ..LoadOptions::of(Mode::Partial) };
        load(registry(), document, &options, &mut Counter(0)).map(|loaded| loaded.tables)
    };
    let (right, wrong) = (read(399, 1).unwrap(), read(800, 1).unwrap_err());
    for threads in [2, 3] {
        assert_eq!(read(399, threads).unwrap(), right, "{threads} threads");
        assert_eq!(read(800, threads).unwrap_err(), wrong, "{threads} threads");
    }
}

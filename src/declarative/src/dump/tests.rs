//! What is dumped applies again without a difference; random records and documents.

use super::*;
use crate::load::NoRecords;
use crate::load::tests::{Counter, registry};
use crate::{Bundle, DiffOptions, Limits, LoadOptions, Mode, TextForm, load, parse, plan, to_yaml};
use proptest::prelude::*;

const TEXT: &str = "_format_version: '3.0'\nservices:\n- {name: a, host: h, tags: [team], routes: [{name: r, paths: [/a], plugins: \
    [{name: cors}, {name: rate-limiting, consumer: u, config: {minute: 5, policy: local}}]}]}\nroutes:\n- {paths: [/lone]}\nconsumers:\n\
    - {username: u, tags: [team], basicauth_credentials: [{username: b, password: p}], keyauth_credentials: [{key: k}], \
    acls: [{group: g}]}\n- {custom_id: c}\nupstreams:\n- {name: up.local, healthchecks: {active: {timeout: 4}}, targets: \
    [{target: 10.0.0.1, weight: 5}]}\nplugins:\n- {name: prometheus}\nvaults:\n- {name: env, prefix: my-env}\n";

fn tables(text: &str) -> Vec<Table> {
    let document = parse(text, TextForm::Yaml, &Limits::default()).unwrap();
    let loaded = load(registry(), document, &LoadOptions::of(Mode::Partial), &mut Counter(0)).unwrap();
    shown(loaded.tables)
}

/// As the Admin API shows them.
fn shown(mut tables: Vec<Table>) -> Vec<Table> {
    for table in &mut tables {
        for record in &mut table.records {
            *record = registry().present(&table.entity, record, 1_700_000_000_000);
        }
    }
    tables
}

fn options(dialect: Dialect) -> DumpOptions {
    DumpOptions { dialect, defaults: false, without_ids: false, select_tags: Vec::new() }
}

fn every_way() -> Vec<DumpOptions> {
    let mut ways = Vec::new();
    for dialect in [Dialect::Kong, Dialect::Deck] {
        for defaults in [false, true] {
            for without_ids in [false, true] {
                ways.push(DumpOptions { defaults, without_ids, ..options(dialect) });
            }
        }
    }
    ways
}

fn bundle(document: &Record) -> Bundle {
    let text = to_yaml(&Value::Object(document.clone()));
    Bundle::read(vec![("dump.yaml".to_owned(), text)], &|_| None, &Limits::default()).unwrap()
}

/// What applying the document would change.
fn changes(stored: &[Table], document: &Record, select_tags: &[String]) -> String {
    let document = Value::Object(bundle(document).document);
    let options = DiffOptions { prune: true, select_tags: select_tags.to_vec(), threads: 1 };
    let plan = plan(registry(), stored, document, &options, &mut Counter(1000)).unwrap();
    let mut text = String::new();
    for operation in &plan.operations {
        text += &format!("{:?} {} {}: {:?}\n", operation.action, operation.entity, operation.name, operation.changes);
    }
    text
}

#[test]
fn a_dump_applies_without_a_difference_in_every_form() {
    let stored = tables(TEXT);
    for options in every_way() {
        let written = dump(registry(), &stored, &options, &mut Counter(500));
        assert_eq!(
            changes(&stored, &written.document, &[]),
            "",
            "{options:?}\n{}",
            to_yaml(&Value::Object(written.document))
        );
        assert_eq!(written.secrets, 2, "{options:?}");
    }
}

#[test]
fn a_dump_says_no_defaults_and_nests_children() {
    let written = dump(
        registry(),
        &tables(TEXT),
        &DumpOptions { without_ids: true, ..options(Dialect::Deck) },
        &mut Counter(500),
    );
    let text = to_yaml(&Value::Object(written.document));
    let expected = "_format_version: '3.0'\nconsumers:\n- custom_id: c\n  id: ";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("  name: up.local\n  targets:\n  - target: "), "{text}");
    for absent in ["retries", "created_at", "protocols", "strip_path"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
    assert!(!text.contains("service:") && text.contains("- config:\n    minute: 5\n  consumer: u\n"), "{text}");
}

#[test]
fn the_same_records_give_the_same_text_whatever_their_order() {
    let stored = tables(TEXT);
    let mut turned = stored.clone();
    turned.reverse();
    turned.iter_mut().for_each(|table| table.records.reverse());
    let text = |tables: &[Table]| dump(registry(), tables, &options(Dialect::Kong), &mut Counter(9)).document;
    assert_eq!(text(&stored), text(&turned));
}

#[test]
fn a_selection_by_tag_dumps_and_applies_alone() {
    let stored = tables(TEXT);
    let tags = vec!["team".to_owned()];
    for dialect in [Dialect::Kong, Dialect::Deck] {
        let written =
            dump(registry(), &stored, &DumpOptions { select_tags: tags.clone(), ..options(dialect) }, &mut Counter(9));
        assert_eq!(written.document["services"].as_array().map(Vec::len), Some(1));
        assert!(!written.document.contains_key("upstreams"));
        assert_eq!(changes(&stored, &written.document, &tags), "");
    }
}

#[test]
fn dialects_become_each_other_and_stay_valid() {
    let stored = tables(TEXT);
    for (from, to) in [(Dialect::Kong, Dialect::Deck), (Dialect::Deck, Dialect::Kong)] {
        let written = dump(registry(), &stored, &options(from), &mut Counter(500));
        let converted = convert(registry(), &bundle(&written.document), to).unwrap();
        assert_eq!(
            changes(&stored, &converted.document, &[]),
            "",
            "{}",
            to_yaml(&Value::Object(converted.document.clone()))
        );
        let back = convert(registry(), &bundle(&converted.document), to).unwrap();
        assert_eq!(back.document, converted.document);
    }
}

#[test]
fn flat_lists_and_old_paths_convert() {
    let text = "_format_version: '2.1'\n_info: {select_tags: [t]}\nroutes:\n- {name: r, paths: ['/a\\d'], service: s}\n\
        services:\n- {name: s, host: h}\nupstreams:\n- {name: u}\ntargets:\n- {target: 'h:1', upstream: u}\n\
        plugins:\n- {name: cors, service: s, route: r}\nkey_sets:\n- {name: ks}\nkeys:\n- {name: k, kid: x, set: ks, jwk: '{}'}\n";
    let bundle = Bundle::read(vec![("a.yaml".to_owned(), text.to_owned())], &|_| None, &Limits::default()).unwrap();
    let deck = convert(registry(), &bundle, Dialect::Deck).unwrap().document;
    assert_eq!(deck["services"][0]["routes"][0]["paths"], json!(["~/a\\d"]));
    assert_eq!(deck["upstreams"][0]["targets"][0]["target"], "h:1");
    assert_eq!(deck["plugins"][0], json!({"name": "cors", "service": "s", "route": "r"}));
    assert_eq!(deck["keys"][0]["set"], json!({"name": "ks"}));
    assert_eq!(deck["_info"], json!({"select_tags": ["t"]}));
    let kong = convert(registry(), &bundle, Dialect::Kong).unwrap().document;
    assert_eq!((&kong["keys"][0]["set"], &kong["services"][0]["tags"]), (&json!("ks"), &json!(["t"])));
}

fn name() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9-]{0,8}"
}

fn maybe<T: Into<Value> + std::fmt::Debug + Clone>(
    value: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<Value>> {
    proptest::option::of(value.prop_map(Into::into))
}

fn record(fields: Vec<(&'static str, Option<Value>)>) -> Value {
    Value::Object(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
}

fn tags() -> impl Strategy<Value = Option<Value>> {
    maybe(proptest::collection::vec("[a-z]{1,4}", 0..3))
}

fn service() -> impl Strategy<Value = Value> {
    let numbers = (maybe(0_u32..65536), maybe(0_u32..32768), maybe(1_u32..1000));
    let plugin = prop_oneof![
        Just(json!({"name": "cors"})),
        (1_u32..99)
            .prop_map(|minute| json!({"name": "rate-limiting", "config": {"minute": minute, "policy": "local"}})),
        any::<bool>().prop_map(|hide| json!({"name": "key-auth", "config": {"hide_credentials": hide}})),
        any::<bool>().prop_map(|enabled| json!({"name": "request-termination", "enabled": enabled})),
    ];
    let plugins = proptest::collection::vec(plugin, 0..2);
    let route = (name(), tags(), any::<bool>(), maybe(0_u32..9)).prop_map(|(name, tags, strip, priority)| {
        let path = format!("/{name}");
        record(vec![
            ("name", Some(name.into())),
            ("paths", Some(json!([path]))),
            ("tags", tags),
            ("strip_path", Some(strip.into())),
            ("regex_priority", priority),
        ])
    });
    (name(), numbers, tags(), plugins, proptest::collection::vec(route, 0..2)).prop_map(
        |(name, (port, retries, timeout), tags, plugins, routes)| {
            record(vec![
                ("name", Some(name.into())),
                ("host", Some("h.example".into())),
                ("port", port),
                ("retries", retries),
                ("read_timeout", timeout),
                ("tags", tags),
                ("plugins", Some(plugins.into())),
                ("routes", Some(routes.into())),
            ])
        },
    )
}

fn consumer() -> impl Strategy<Value = Value> {
    (name(), maybe("[a-z]{1,6}"), proptest::option::of("[a-z0-9]{6,12}"), proptest::option::of("[ -~]{1,12}")).prop_map(
        |(name, custom, key, password)| {
            let keys = key.map(|key| json!([{ "key": key }]));
            let passwords = password.map(|password| json!([{"username": name.clone(), "password": password}]));
            record(vec![
                ("username", Some(name.into())),
                ("custom_id", custom),
                ("keyauth_credentials", keys),
                ("basicauth_credentials", passwords),
            ])
        },
    )
}

fn upstream() -> impl Strategy<Value = Value> {
    (name(), maybe(10_u32..65536), proptest::option::of(1_u32..9), 0_u32..1000).prop_map(
        |(name, slots, timeout, weight)| {
            let checks =
                timeout.map(|timeout| json!({"active": {"timeout": timeout, "healthy": {"interval": timeout}}}));
            record(vec![
                ("name", Some(name.into())),
                ("slots", slots),
                ("healthchecks", checks),
                ("targets", Some(json!([{"target": "10.0.0.1:80", "weight": weight}]))),
            ])
        },
    )
}

fn any_document() -> impl Strategy<Value = Value> {
    let lists = (
        proptest::collection::vec(service(), 0..4),
        proptest::collection::vec(consumer(), 0..4),
        proptest::collection::vec(upstream(), 0..3),
    );
    lists.prop_map(|(services, consumers, upstreams)| {
        json!({"_format_version": "3.0", "services": services, "consumers": consumers, "upstreams": upstreams})
    })
}

/// Any JSON, with members that mean something more often than not.
fn any_junk() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z/~:.]{0,6}".prop_map(Value::from),
        Just(json!("3.0")),
        Just(json!("cors")),
    ];
    let key = prop_oneof![
        Just("services"),
        Just("routes"),
        Just("plugins"),
        Just("consumers"),
        Just("upstreams"),
        Just("targets"),
        Just("name"),
        Just("config"),
        Just("_format_version"),
        Just("_info"),
        Just("defaults"),
        Just("select_tags"),
        Just("_plugin_configs"),
        Just("_config"),
        Just("service"),
        Just("id"),
        Just("snis"),
        Just("certificates"),
        Just("_transform"),
        Just("tags"),
        Just("consumer_groups"),
        Just("keyauth_credentials"),
        Just("ttl"),
    ];
    leaf.prop_recursive(5, 60, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(key.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_valid_records_dump_and_apply_without_a_difference(document in any_document()) {
        let Ok(loaded) = load(registry(), document, &LoadOptions::of(Mode::Partial), &mut Counter(0)) else {
            // Names may occur twice.
            return Ok(());
        };
        let stored = shown(loaded.tables);
        for options in every_way() {
            let written = dump(registry(), &stored, &options, &mut Counter(5000));
            prop_assert_eq!(changes(&stored, &written.document, &[]), "", "{:?}", options);
        }
    }

    #[test]
    fn a_put_of_what_a_get_returned_changes_nothing(document in any_document()) {
        let Ok(loaded) = load(registry(), document, &LoadOptions::of(Mode::Partial), &mut Counter(0)) else {
            return Ok(());
        };
        for table in &loaded.tables {
            for stored in &table.records {
                let mut got = registry().present(&table.entity, stored, 1_700_000_000_000);
                // As in Kong a password that is sent is hashed, whatever it is; null is no time to live.
                let password = got.get("password").cloned();
                got.retain(|name, value| name != "ttl" || !value.is_null());
                let mut put = registry()
                    .process_insert(&table.entity, got, &mut Counter(9000), &NoRecords)
                    .map_err(|error| TestCaseError::fail(format!("{} {error:?}", table.entity)))?;
                if let Some(password) = password {
                    put.insert("password".to_owned(), password);
                }
                prop_assert_eq!(&put, stored, "{}", &table.entity);
            }
        }
    }

    #[test]
    fn no_document_makes_anything_panic(document in any_junk()) {
        let text = document.to_string();
        let Ok(bundle) = Bundle::read(vec![("a.json".to_owned(), text)], &|_| None, &Limits::default()) else {
            return Ok(());
        };
        let value = Value::Object(bundle.document.clone());
        if let Err(refusal) = crate::load_located(registry(), value, &LoadOptions::of(Mode::Partial), &mut Counter(0)) {
            prop_assert!(!refusal.mistakes.is_empty());
            prop_assert_eq!(bundle.find(&refusal.mistakes).len(), refusal.mistakes.len());
        }
        for dialect in [Dialect::Kong, Dialect::Deck] {
            if let Err(mistakes) = convert(registry(), &bundle, dialect) {
                prop_assert!(!mistakes.is_empty());
            }
        }
    }
}

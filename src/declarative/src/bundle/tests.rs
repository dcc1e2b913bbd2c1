//! Files of both dialects, and where their mistakes stand.

use super::*;
use crate::load::tests::{Counter, registry};
use crate::{LoadOptions, Mode, load_located};
use serde_json::json;

fn env(name: &str) -> Option<String> {
    (name == "DECK_SECRET").then(|| "from-outside".to_owned())
}

fn read(files: &[(&str, &str)]) -> Result<Bundle, Vec<Finding>> {
    let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Bundle::read(files, &env, &Limits::default())
}

fn told(findings: &[Finding]) -> Vec<String> {
    let place = |finding: &Finding| match (&finding.file, finding.line, finding.column) {
        (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}: "),
        (Some(file), ..) => format!("{file}: "),
        _ => String::new(),
    };
    let one = |finding: &Finding| format!("{}{}: {}", place(finding), finding.object, finding.message);
    findings.iter().map(one).collect()
}

fn judged(files: &[(&str, &str)]) -> Vec<Finding> {
    let bundle = read(files).unwrap();
    let document = Value::Object(bundle.document.clone());
    let refusal = load_located(registry(), document, &LoadOptions::of(Mode::Partial), &mut Counter(0)).unwrap_err();
    bundle.find(&refusal.mistakes)
}

#[test]
fn mistakes_are_told_with_file_line_and_column() {
    let one = "_format_version: '3.0'\nservices:\n- name: one\n  host: h\n";
    let two = "_format_version: '3.0'\nservices:\n- name: two\n  host: h\n  routes:\n  - name: r\n    paths:\n    - nope\n    foo: 1\n";
    let findings = judged(&[("a.yaml", one), ("b.yaml", two)]);
    assert_eq!(
        told(&findings),
        [
            "b.yaml:9:10: services[0] \"two\" routes[0] \"r\" foo: unknown field",
            "b.yaml:8:7: services[0] \"two\" routes[0] \"r\" paths[0]: should start with: / (fixed path) or ~/ (regex path)",
        ]
    );
    assert_eq!(findings[1].excerpt, Some(("    - nope".to_owned(), 6, 4)));
    assert_eq!(findings[1].pointer, "/services/0/routes/0/paths/0");
}

#[test]
fn references_and_doubles_have_places_too() {
    let text = "_format_version: '3.0'\nroutes:\n- name: r\n  paths: [/a]\n  service: gone\nconsumers:\n- username: u\n\
        - username: u\n- username: v\n  keyauth_credentials: [{key: k1}]\n- {username: w, keyauth_credentials: [{key: k1}]}\n";
    let findings = judged(&[("a.yaml", text)]);
    let lines: Vec<_> = findings.iter().map(|finding| (finding.line, finding.message.contains("k1"))).collect();
    assert_eq!(lines, [(Some(5), false), (Some(8), false), (Some(11), false)], "{:?}", told(&findings));
    assert!(findings[2].excerpt.is_none(), "a line with a key is not shown");
}

#[test]
fn a_plugin_of_a_consumer_that_is_elsewhere_is_a_reference() {
    let text = "_format_version: '3.0'\nservices:\n- name: s\n  host: h\n  plugins: [{name: cors, consumer: bob}]\n";
    let findings = judged(&[("a.yaml", text)]);
    assert_eq!(findings.len(), 1, "{:?}", told(&findings));
    assert!(findings[0].message.starts_with("invalid reference 'consumer: bob'"), "{:?}", told(&findings));
}

#[test]
fn defaults_and_named_settings_fill_what_the_files_leave_open() {
    let text = "_format_version: '3.0'\n_info:\n  select_tags: [team]\n  defaults:\n    service: {port: 81, retries: 2, read_timeout: 9}\n    \
        upstream: {healthchecks: {active: {timeout: 3}}}\n    target: {weight: 7}\n_plugin_configs:\n  slow: {minute: 5, policy: local}\n\
        services:\n- {name: a, host: h, retries: 4, plugins: [{name: rate-limiting, _config: slow, config: {minute: 6}}]}\n\
        - {name: b, url: 'http://x/y'}\nupstreams:\n- {name: u, healthchecks: {active: {concurrency: 2}}, targets: [{target: 'h:1'}]}\n\
        routes:\n- {name: r, paths: [/], service: {name: a}}\ncertificates:\n- {cert: c, key: k, snis: [a.example]}\n";
    let bundle = read(&[("a.yaml", text)]).unwrap();
    assert_eq!(bundle.head.select_tags, ["team"]);
    let document = Value::Object(bundle.document);
    assert_eq!(document["services"][0]["port"], 81);
    assert_eq!(document["services"][0]["retries"], 4);
    assert_eq!(
        document["services"][0]["plugins"][0],
        json!({"name": "rate-limiting", "config": {"minute": 6, "policy": "local"}})
    );
    assert_eq!(document["services"][1], json!({"name": "b", "url": "http://x/y", "retries": 2, "read_timeout": 9}));
    assert_eq!(document["upstreams"][0]["healthchecks"]["active"], json!({"concurrency": 2, "timeout": 3}));
    assert_eq!(document["upstreams"][0]["targets"][0]["weight"], 7);
    assert_eq!(document["routes"][0]["service"], "a");
    assert_eq!(document["certificates"][0]["snis"], json!([{"name": "a.example"}]));
}

#[test]
fn what_only_enterprise_has_is_refused_by_name_with_the_remedy() {
    let text = "_format_version: '3.0'\n_workspace: other\n_konnect: {control_plane_name: x}\nconsumer_groups:\n- name: gold\n\
        licenses: []\nconsumers:\n- username: bob\n  groups: [{name: gold}]\nplugins:\n- {name: cors, consumer_group: gold}\n";
    let told = told(&read(&[("a.yaml", text)]).unwrap_err());
    assert_eq!(told.len(), 5, "{told:#?}");
    assert!(told[0].starts_with("a.yaml:4:1: consumer_groups: consumer_groups exists in Kong Enterprise"), "{told:#?}");
    assert!(told.iter().any(|line| line.starts_with("a.yaml:9:3: consumers[0] \"bob\" groups: ")), "{told:#?}");
    assert!(told.iter().any(|line| line.contains("_konnect") && line.contains("remove")), "{told:#?}");
    assert!(read(&[("a.yaml", "_workspace: default\nconsumer_groups: []\n")]).unwrap().document.is_empty());
}

#[test]
fn files_that_contradict_each_other_are_refused() {
    let told = told(&read(&[("a.yaml", "_transform: true\n"), ("b.yaml", "_transform: false\n")]).unwrap_err());
    assert_eq!(told, ["b.yaml:1:13: _transform: false here, but true in a file before"]);
}

#[test]
fn all_files_that_cannot_be_read_are_told_at_once() {
    let files =
        [("a.yaml", "a: [b\n"), ("b.json", "{\"a\": }"), ("c.yaml", "x: ${{ env \"DECK_NONE\" }}\n"), ("d.yaml", "")];
    let told = told(&read(&files).unwrap_err());
    assert_eq!(told.len(), 4, "{told:#?}");
    assert!(told[2].starts_with("c.yaml:1:4: ") && told[2].contains("DECK_NONE is not set"), "{told:#?}");
}

#[test]
fn values_of_the_environment_are_known_and_never_shown() {
    let text = "_format_version: '3.0'\nservices:\n- {name: a, host: h, port: ${{ env \"DECK_SECRET\" }}}\n";
    let bundle = read(&[("a.yaml", text)]).unwrap();
    assert_eq!(bundle.environment_values(), ["from-outside"]);
    let findings = judged(&[("a.yaml", text)]);
    assert_eq!(findings[0].column, Some(28));
    assert!(findings[0].excerpt.as_ref().unwrap().0.contains("DECK_SECRET"));
}

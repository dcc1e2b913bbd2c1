//! Random files: whatever they hold, they are read or refused, never more.
//!
//! `cargo run -p gwctl-declarative --example fuzz_declarative -- --seconds 60 [document|template]`

use gwctl_declarative::deck::render;
use gwctl_declarative::{
    Bundle, Dialect, Limits, LoadOptions, Mode, TextForm, convert, load_located, parse, records_to_send, to_yaml,
};
use gwctl_entities::{Fill, NodeKind, Registry, RegistryOptions, Value};
use gwctl_testkit::fuzz::{Target, main as fuzz};
use std::process::ExitCode;

struct Counter(u64);

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
        format!("{:032}", self.0)
    }
}

const SEEDS: &[&str] = &[
    "_format_version: '3.0'\nservices:\n- name: a\n  url: http://h:1/x\n  tags: [t]\n  routes:\n  - name: r\n    paths: [/a, ~/b$]\n    plugins:\n    - {name: cors}\n",
    "_format_version: \"2.1\"\n_transform: false\nconsumers:\n- username: u\n  basicauth_credentials: [{username: b, password: p}]\n  acls: [{group: g}]\n",
    "{\"_format_version\": \"3.0\", \"upstreams\": [{\"name\": \"u\", \"targets\": [{\"target\": \"h:1\", \"weight\": 5}]}], \"plugins\": [{\"name\": \"rate-limiting\", \"config\": {\"minute\": 5}}]}",
    "_format_version: '3.0'\n_info:\n  select_tags: [x]\n  defaults: {service: {port: 81}}\n_plugin_configs: {c: {minute: 1}}\nservices: &s\n- &a {name: a, host: h}\n- {<<: *a, name: b}\nplugins:\n- {name: rate-limiting, _config: c}\n",
    "_format_version: '3.0'\ncertificates:\n- {cert: c, key: k, snis: [a.b, {name: c.d}]}\nkeys: [{name: k, kid: x, set: {name: s}, jwk: '{}'}]\nkey_sets: [{name: s}]\nvaults: [{name: env, prefix: e}]\n",
    "services:\n- name: ${{ env \"DECK_A\" }}\n  port: ${{ env \"DECK_B\" | toInt }}\n  host: |\n    ${{ env `DECK_A` | indent 4 }}\n",
];

const WORDS: &[&str] = &[
    "services",
    "routes",
    "plugins",
    "consumers",
    "upstreams",
    "targets",
    "- ",
    ": ",
    "\n",
    "\n  ",
    "{",
    "}",
    "[",
    "]",
    "null",
    "0x1F",
    "1:30",
    ".inf",
    "&a ",
    "*a",
    "<<: ",
    "!!str ",
    "!!int ",
    "|\n",
    ">-\n",
    "'",
    "\"",
    "# ",
    "---\n",
    "\u{feff}",
    "\t",
    "${{ env \"DECK_A\" }}",
    "}}",
    "| toBool",
    "| indent 3",
    "_config: c",
    "consumer_groups",
    "id: ",
    "service: ",
    "@entity",
    "18446744073709551615",
    "\u{1f600}",
    "name",
    "config",
    "tags",
    "snis",
    "keyauth_credentials",
    "ttl",
    "_ignore",
    "\\u0000",
];

fn main() -> ExitCode {
    let router_flavor = "traditional_compatible".to_owned();
    let registry = Registry::bundled(&RegistryOptions { kind: NodeKind::DbLess, router_flavor, plugins: None });
    let env = |name: &str| match name {
        "DECK_A" => Some("a\nb".to_owned()),
        "DECK_B" => Some("80".to_owned()),
        _ => None,
    };
    let document = |input: &[u8]| {
        let text = String::from_utf8_lossy(input).into_owned();
        let Ok(bundle) = Bundle::read(vec![("<fuzz>".to_owned(), text)], &env, &Limits::default()) else { return };
        let value = Value::Object(bundle.document.clone());
        let written = to_yaml(&value);
        let back = parse(&written, TextForm::Yaml, &Limits { bytes: usize::MAX, depth: 200, ..Limits::default() });
        assert_eq!(back, Ok(value.clone()), "what is written reads back");
        for mode in [Mode::Partial, Mode::DbLess, Mode::DataPlane] {
            if let Err(refusal) = load_located(&registry, value.clone(), &LoadOptions::of(mode), &mut Counter(0)) {
                assert!(!refusal.mistakes.is_empty(), "a refusal says why: {:?}", refusal.error);
                assert_eq!(bundle.find(&refusal.mistakes).len(), refusal.mistakes.len());
            }
        }
        records_to_send(&registry, &bundle.document, &mut Counter(0));
        for dialect in [Dialect::Kong, Dialect::Deck] {
            // Refusals are fine, panics are not.
            let _ = convert(&registry, &bundle, dialect);
        }
    };
    let template = |input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        if let Ok(rendered) = render(&text, &env) {
            let lines = rendered.text.lines().count();
            for line in 0..lines + 2 {
                let (at, column) = rendered.source_place(&text, (line, 1 + line % 7));
                assert!(at >= 1 && column >= 1 || line == 0, "places start at 1");
            }
        }
    };
    fuzz(&[
        Target { name: "document", seeds: SEEDS, words: WORDS, run: &document },
        Target { name: "template", seeds: SEEDS, words: WORDS, run: &template },
    ])
}

//! Random bodies and queries: whatever they hold, they are read or refused, never more.
//!
//! `cargo run -p gwctl-admin-api --example fuzz_admin_api -- --seconds 60 [form|json|multipart|query]`

use gwctl_admin_api::fuzzing::{body, target};
use gwctl_entities::{NodeKind, Registry, RegistryOptions};
use gwctl_testkit::fuzz::{Target, main as fuzz};
use std::process::ExitCode;

const FORMS: &[&str] = &[
    "name=rate-limiting&config.minute=5&config.policy=local&tags[]=a&tags[]=b",
    "name=r&paths[1]=/a&paths[2]=~/b&methods=GET&methods=POST&service.id=x&headers.x-a[]=1",
    "hosts%5B%5D=a.b&strip_path=true&regex_priority=1e3&protocols=http,https&sources[1].ip=1.2.3.4&sources[1].port=80",
];
const JSON: &[&str] =
    &["{\"name\": \"a\", \"config\": {\"minute\": 5.0, \"list\": [1, null, {}]}, \"tags\": []}", "[]"];
const PARTS: &[&str] = &[
    "--b\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\ncors\r\n--b\r\nContent-Disposition: form-data; name=\"config.origins[]\"\r\n\
     Content-Type: application/json\r\n\r\n[\"a\"]\r\n--b--\r\n",
];
const QUERIES: &[&str] =
    &["/services/a%20b/routes?size=100&tags=a,b&offset=WyJ4Il0", "/%2e%2e/x//?size=-1&tags=a/b&size"];
const WORDS: &[&str] = &[
    "&",
    "=",
    "[]",
    "[1]",
    "[0]",
    "[99999999999]",
    ".",
    "%",
    "%00",
    "%ff",
    "+",
    "config.",
    "a.b.c.",
    "true",
    "null",
    "1e999",
    "-0",
    "\r\n",
    "--b",
    "--b--",
    "name=\"",
    "Content-Disposition: form-data; ",
    "Content-Type: application/json\r\n",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\u0000",
    "/",
    "//",
    "?",
    "size=",
    "tags=",
    ",",
    "\u{1f600}",
];

fn main() -> ExitCode {
    let router_flavor = "traditional_compatible".to_owned();
    let registry = Registry::bundled(&RegistryOptions { kind: NodeKind::Traditional, router_flavor, plugins: None });
    let every_entity = |content_type: &str, input: &[u8]| {
        for entity in ["plugins", "routes", "upstreams"] {
            body(&registry, entity, content_type, input);
        }
    };
    let form = |input: &[u8]| every_entity("application/x-www-form-urlencoded", input);
    let json = |input: &[u8]| drop(body(&registry, "services", "application/json", input));
    let multipart = |input: &[u8]| every_entity("multipart/form-data; boundary=b", input);
    let query = |input: &[u8]| target(&String::from_utf8_lossy(input));
    fuzz(&[
        Target { name: "form", seeds: FORMS, words: WORDS, run: &form },
        Target { name: "json", seeds: JSON, words: WORDS, run: &json },
        Target { name: "multipart", seeds: PARTS, words: WORDS, run: &multipart },
        Target { name: "query", seeds: QUERIES, words: WORDS, run: &query },
    ])
}

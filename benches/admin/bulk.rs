//! A whole configuration as one batch, and single requests on top of it.

use crate::GWCTL;
use crate::node::{ControlPlane, Watch};
use crate::report::{Report, millis, seconds};
use crate::shape::{EACH, operations};
use serde_json::json;
use std::time::Duration;

/// Single creates whose median is told.
const CREATES: usize = 500;
/// Pages of a list whose median is told.
const PAGES: usize = 200;

pub(crate) fn measure(services: usize, report: &mut Report) {
    let entities = services * EACH;
    report.part(&format!("{entities} entities"));
    let mut cp = ControlPlane::start(GWCTL);
    let empty = creates(&mut cp, "before");
    let operations = operations(services);
    let watch = Watch::begin(cp.node.id());
    let before = cp.worked();
    let took = cp.apply(&operations);
    report.judge("one batch on an empty store", seconds(took), 5.0, "s");
    report.tell("one batch on an empty store, processor time of the node", seconds(cp.worked() - before), "s");
    report.judge("the node at its peak (VmHWM)", cp.weight("VmHWM"), 600.0, "MiB");
    report.tell("the node at its peak, its own memory (RssAnon)", watch.most(), "MiB");
    drop(watch);
    let full = creates(&mut cp, "after");
    report.tell("one create on an empty store, median", millis(empty.0), "ms");
    report.tell("one create on top, median", millis(full.0), "ms");
    let times = full.1.as_secs_f64() / empty.1.as_secs_f64().max(0.01);
    report.judge("one create on top, against the empty store, processor time", times, 1.3, "");
    for list in ["services", "routes", "plugins", "consumers", "key-auths"] {
        let page = page(&mut cp, list);
        report.judge(&format!("a page of {list} (100 rows), median"), millis(page), 2.0, "ms");
    }
}

/// Median time of a create, and the time that processors worked for all of them.
fn creates(cp: &mut ControlPlane, tag: &str) -> (Duration, Duration) {
    let before = cp.worked();
    let median = cp.median(CREATES, "POST", |number| {
        let body = json!({"name": format!("{tag}-{number}"), "host": "single.example"});
        ("/services".to_owned(), body.to_string())
    });
    (median, cp.worked() - before)
}

/// Pages from all over the list.
fn page(cp: &mut ControlPlane, list: &str) -> Duration {
    let path = |number: usize| {
        // The token of a page is the id it begins with, as a list in base64 without padding.
        let id = format!(r#"["{:02x}000000-0000-4000-8000-000000000000"]"#, number % 200);
        (format!("/{list}?offset={}", base64(id.as_bytes())), String::new())
    };
    cp.median(PAGES, "GET", path)
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        text.extend((0..=chunk.len()).map(|place| char::from(ALPHABET[(word >> (18 - 6 * place) & 63) as usize])));
    }
    text
}

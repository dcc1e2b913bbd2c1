//! A large directory of consumers: loaded in batches, listed, looked up.

use crate::GWCTL;
use crate::node::{ControlPlane, Watch};
use crate::report::{Report, millis, seconds};
use crate::shape::{key_text, member, member_name};
use serde_json::Value;
use std::time::Duration;

/// Look-ups whose median is told.
const LOOKS: usize = 1000;
/// Batches at the beginning and at the end that are compared.
const COMPARED: usize = 5;

pub(crate) fn measure(consumers: usize, batch: usize, report: &mut Report) {
    report.part(&format!("{consumers} consumers with {} keys", consumers * 2));
    let mut cp = ControlPlane::start(GWCTL);
    let before = cp.weight("RssAnon");
    let watch = Watch::begin(cp.node.id());
    let each = (batch / 3).clamp(1, consumers);
    let (mut took, mut worked) = (Vec::new(), vec![cp.worked()]);
    let mut quarter = 0.0;
    for first in (0..consumers).step_by(each) {
        let operations: Vec<Value> = (first..consumers.min(first + each)).flat_map(member).collect();
        took.push(cp.apply(&operations));
        worked.push(cp.worked());
        if first <= consumers / 4 {
            quarter = watch.most();
        }
    }
    let total: Duration = took.iter().sum();
    report.tell(&format!("load, {} batches of {}", took.len(), each * 3), seconds(total), "s");
    report.tell("entities a second", consumers as f64 * 3.0 / seconds(total), "");
    let compared = COMPARED.min(took.len());
    let (early, late) = (median(&took[..compared]), median(&took[took.len() - compared..]));
    report.tell("one of the first batches, median", millis(early), "ms");
    report.tell("one of the last batches, median", millis(late), "ms");
    let of = |first: usize, last: usize| (worked[last] - worked[first]) / u32::try_from((last - first).max(1)).unwrap();
    let (early, late) = (of(0, compared), of(took.len() - compared, took.len()));
    report.tell("one of the first batches, processor time of the node", millis(early), "ms");
    report.tell("one of the last batches, processor time of the node", millis(late), "ms");
    // Pages of a tree that outgrew the batch are touched once each: more, but no longer growing with the store.
    report.judge("the last batches against the first, processor time", millis(late) / millis(early).max(1.0), 4.0, "");
    report.tell("own memory (RssAnon) before", before, "MiB");
    report.tell("own memory at its peak, first quarter", quarter, "MiB");
    // A batch costs memory by its own size, up to 20 KB for each operation; what is stored costs none.
    report.judge("own memory at its peak, all of the load", watch.most(), 20.0 + (each * 3) as f64 / 50.0, "MiB");
    report.tell("the store on disk", cp.stored(), "MiB");
    drop(watch);
    look_up(&mut cp, consumers, report);
    let (_, took) = crate::node::timed(|| cp.restart());
    report.tell("stop and start over", seconds(took), "s");
    let watch = Watch::begin(cp.node.id());
    look_up(&mut cp, consumers, report);
    report.judge("own memory at its peak, after the start and look-ups", watch.most(), 100.0, "MiB");
}

fn look_up(cp: &mut ControlPlane, consumers: usize, report: &mut Report) {
    let any = |number: usize| number * 7919 % consumers;
    let get = |path: String| (path, String::new());
    let name = cp.median(LOOKS, "GET", |number| get(format!("/consumers/{}", member_name(any(number)))));
    report.judge("a consumer by username, median", millis(name), 1.0, "ms");
    let key = cp.median(LOOKS, "GET", |number| get(format!("/key-auths/{}", key_text(any(number), 1))));
    report.judge("a key by its text, median", millis(key), 1.0, "ms");
    let below = cp.median(LOOKS, "GET", |number| get(format!("/consumers/{}/key-auth", member_name(any(number)))));
    report.judge("the keys of a consumer, median", millis(below), 1.0, "ms");
    let page = cp.median(LOOKS, "GET", |_| get("/consumers?size=100".to_owned()));
    report.judge("the first page of consumers (100 rows), median", millis(page), 2.0, "ms");
    let history = cp.median(10, "GET", |_| get("/gwctl/history".to_owned()));
    report.judge("the first page of the history, median", millis(history), 5.0, "ms");
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    times[times.len() / 2]
}

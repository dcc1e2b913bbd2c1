//! Whole screens, behaviour over events, and random sessions.

mod behaviour;
mod random;
mod screens;

use crate::{Event, Key, Model, Options, update};
use gwctl_entities::fleet::{Fleet, FleetMember};

const NOW: u64 = 1_790_000_000_000;
const HASH: &str = "8e1f2a3b4c5d6e7f8091a2b3c4d5e6f7";

fn options() -> Options {
    Options { address: "127.0.0.1:8001".into(), interval: 2000, colour: false, ascii: false, note: None, whole: false }
}

fn model() -> Model {
    Model::new(options())
}

fn member(name: &str, seen_ago: u64) -> FleetMember {
    FleetMember {
        id: format!("00000000-0000-4000-8000-{name:0>12}"),
        name: name.into(),
        hostname: format!("{name}.example"),
        labels: [("region".to_owned(), "eu".to_owned())].into(),
        address: "192.0.2.7".into(),
        version: "3.9.1".into(),
        sync_status: "normal".into(),
        connected: true,
        protocol: Some("v1".into()),
        last_seen_millis: NOW - seen_ago,
        config_hash: Some(HASH.into()),
        target_version: Some(811),
        lag_millis: Some(0),
        certificate_expires_at: Some(NOW / 1000 + 86_400 * 300 + 60),
        ..FleetMember::default()
    }
}

/// One data plane of each kind.
fn fleet() -> Fleet {
    let stale = Some("0123456789abcdef0123456789abcdef".to_owned());
    let own = FleetMember { protocol: Some("gwctl".into()), applied_version: Some(811), ..member("dp-own", 400) };
    let behind = FleetMember {
        config_hash: stale.clone(),
        applied_version: Some(808),
        lag_millis: Some(61_000),
        ..member("dp-behind", 12_000)
    };
    let refused = FleetMember {
        sync_status: "plugin_set_incompatible".into(),
        sync_detail: Some("plugin foo is not installed".into()),
        config_hash: stale,
        ..member("dp-refused", 3000)
    };
    let gone = FleetMember { connected: false, lag_millis: None, ..member("dp-gone", 7_300_000) };
    let items = vec![member("dp-1", 20_000), own, behind, refused, gone, member("dp-silent", 60_000)];
    Fleet { kind: "fleet".into(), version: 811, config_hash: Some(HASH.into()), now_millis: NOW, items }
}

fn answered(now: u64, fleet: Fleet) -> Event {
    Event::Answer { now, fleet: Ok(Box::new(fleet)) }
}

fn sized(width: u16, height: u16) -> Event {
    Event::Resize { width, height }
}

/// The model after these events.
fn after(mut model: Model, events: impl IntoIterator<Item = Event>) -> Model {
    for event in events {
        update(&mut model, event);
    }
    model
}

fn keys(text: &str) -> Vec<Event> {
    text.chars().map(|letter| Event::Key(if letter == '\n' { Key::Enter } else { Key::Char(letter) })).collect()
}

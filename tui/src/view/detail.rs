//! All about one data plane.

use crate::State;
use crate::format::{age, duration, plain};
use crate::model::Model;
use crate::state::{certificate_days, same_hash, silence, versions_behind};
use gwctl_entities::fleet::{Fleet, FleetMember};
use ratatui::style::Style;

pub(super) fn lines(model: &Model) -> Vec<(String, Style)> {
    let (Some(fleet), Some(member)) = (&model.fleet, model.member()) else {
        return vec![("this data plane is gone".to_owned(), model.theme.quiet())];
    };
    let state = State::of(member, fleet);
    let mut lines = vec![
        (plain(&member.name), model.theme.title()),
        (state.label(model.theme.ascii), model.theme.state(state)),
        (String::new(), Style::new()),
    ];
    for (name, value) in facts(member, fleet) {
        lines.push((format!("{name:<18}{}", plain(&value)), Style::new()));
    }
    lines
}

fn facts(member: &FleetMember, fleet: &Fleet) -> Vec<(&'static str, String)> {
    let unknown = || "not known".to_owned();
    let number = |number: Option<u64>| number.map_or_else(unknown, |number| number.to_string());
    let millis = |millis: Option<u64>| millis.map_or_else(unknown, duration);
    let text = |text: &Option<String>| text.clone().unwrap_or_else(unknown);
    let labels = member.labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ");
    let same = match same_hash(member, fleet) {
        Some(true) => "the control plane's",
        Some(false) => "differs from the control plane's",
        None => "not comparable",
    };
    let end = certificate_days(member, fleet).map_or_else(unknown, |days| match days {
        ..0 => format!("expired {} days ago", days.unsigned_abs()),
        _ => format!("{days} days left"),
    });
    let lags = member.lags.map(|lags| {
        let (p50, p99, max) = (duration(lags.p50_millis), duration(lags.p99_millis), duration(lags.max_millis));
        format!("median {p50}, p99 {p99}, longest {max} of {}", lags.reports)
    });
    let lags = lags.unwrap_or_else(unknown);
    let applied = match (member.stored_micros, member.active_micros) {
        (Some(stored), Some(active)) => {
            format!("{:.1} ms until stored, {:.1} ms until served", stored as f64 / 1000.0, active as f64 / 1000.0)
        }
        _ => millis(member.apply_millis),
    };
    vec![
        ("id", member.id.clone()),
        ("host name", member.hostname.clone()),
        ("address", member.address.clone()),
        ("labels", if labels.is_empty() { "none".to_owned() } else { labels }),
        ("version", member.version.clone()),
        ("protocol", text(&member.protocol)),
        ("because", text(&member.protocol_reason)),
        ("connected", if member.connected { "yes".to_owned() } else { "no".to_owned() }),
        ("last seen", format!("{} ago", age(silence(member, fleet)))),
        ("sync status", member.sync_status.clone()),
        ("sync detail", member.sync_detail.clone().unwrap_or_else(|| "none".to_owned())),
        ("config hash", format!("{} ({same})", text(&member.config_hash))),
        ("applied version", number(member.applied_version)),
        ("target version", number(member.target_version)),
        ("versions behind", number(versions_behind(member, fleet))),
        ("lag", millis(member.lag_millis)),
        ("recent lags", lags),
        ("last apply took", applied),
        ("last refusal", member.last_error.clone().unwrap_or_else(|| "none".to_owned())),
        ("roll-out group", member.rollout_group.clone().unwrap_or_else(|| "none".to_owned())),
        ("certificate", end),
    ]
}

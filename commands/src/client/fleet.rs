//! `gwctl dp list`.

use super::args::FleetListArgs;
use super::connect::{client, failure, run};
use super::look::Look;
use super::table::table;
use crate::cli::Output;
use crate::failure::Failure;
use gwctl_entities::fleet::{Fleet, FleetMember};
use gwctl_tui::State;
use gwctl_tui::format::{age, duration, short_hash};
use gwctl_tui::state::{certificate_days, note, same_hash, silence, slowest, versions_behind};
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::ExitCode;

pub fn list(args: &FleetListArgs) -> Result<ExitCode, Failure> {
    let client = client(&args.connect)?;
    run(async {
        let fleet = client.fleet().await.map_err(|error| failure(&error))?;
        let text = match args.output {
            Output::Table => rows(&fleet, Look::of(&args.look)),
            Output::Json => format!("{:#}\n", document(&fleet)),
            Output::Yaml => gwctl_declarative::to_yaml(&document(&fleet)),
        };
        // A reader that closed the pipe early has what it wanted.
        let _ = std::io::stdout().write_all(text.as_bytes());
        if fleet.items.is_empty() {
            tell!("no data plane has connected yet");
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The fleet document with the state of each data plane, as the table judges it.
fn document(fleet: &Fleet) -> Value {
    let mut document = json!(fleet);
    let items = document.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten();
    for (item, member) in items.zip(&fleet.items) {
        item["state"] = State::of(member, fleet).word().into();
    }
    document
}

fn rows(fleet: &Fleet, look: Look) -> String {
    let differs = if look.ascii { "!=" } else { "≠" };
    let unknown = || "-".to_owned();
    let mut rows = Vec::new();
    for member in &fleet.items {
        let hash = member.config_hash.as_deref().map_or_else(unknown, |hash| {
            let sign = same_hash(member, fleet).map_or("", |same| if same { "=" } else { differs });
            format!("{} {sign}", short_hash(hash)).trim_end().to_owned()
        });
        rows.push(vec![
            member.name.clone(),
            State::of(member, fleet).label(look.ascii),
            member.version.clone(),
            age(silence(member, fleet)),
            hash,
            versions_behind(member, fleet).map_or_else(unknown, |behind| behind.to_string()),
            member.lag_millis.map_or_else(unknown, |lag| if lag == 0 { "0".to_owned() } else { duration(lag) }),
            slowest(member).map_or_else(unknown, duration),
            certificate_days(member, fleet).map_or_else(unknown, |days| format!("{days}d")),
            member.protocol.clone().unwrap_or_else(unknown),
            member.address.clone(),
            labels(member),
            member.id.clone(),
            note(member).unwrap_or_default(),
        ]);
    }
    let head = [
        "NAME", "STATE", "VERSION", "SEEN", "CONFIG", "BEHIND", "LAG", "P99", "CERT", "MODE", "ADDRESS", "LABELS",
        "ID", "NOTE",
    ];
    let plain = table(&head, &rows);
    let mut text = String::new();
    // The head, then one line per data plane.
    for (index, line) in plain.lines().enumerate() {
        let state = index.checked_sub(1).and_then(|row| fleet.items.get(row)).map(|member| State::of(member, fleet));
        text += &match state {
            Some(state) => {
                line.replacen(&state.label(look.ascii), &look.tint(&state.label(look.ascii), code(state)), 1)
            }
            None => line.to_owned(),
        };
        text.push('\n');
    }
    text
}

fn labels(member: &FleetMember) -> String {
    let labels: Vec<String> = member.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    if labels.is_empty() { "-".to_owned() } else { labels.join(",") }
}

/// Colour of the terminal's palette.
pub(super) fn code(state: State) -> u8 {
    match state {
        State::Online => 32,
        State::Late => 33,
        State::Left => 90,
        State::Refused | State::Offline => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_node_is_offline_in_table_and_document() {
        let member = FleetMember {
            id: "i".into(),
            name: "dp-1".into(),
            version: "3.9.1".into(),
            address: "10.0.0.7".into(),
            labels: [("region".to_owned(), "us".to_owned())].into(),
            sync_status: "normal".into(),
            config_hash: Some("0123456789".into()),
            ..FleetMember::default()
        };
        let fleet = Fleet { now_millis: 5000, config_hash: Some("f".into()), items: vec![member], ..Fleet::default() };
        let plain = rows(&fleet, Look { colour: false, ascii: true });
        assert!(
            plain.contains(
                "dp-1  o offline  3.9.1    5s    01234567 !=  -       -    -    -     -     10.0.0.7  region=us  i"
            ),
            "{plain}"
        );
        assert_eq!(document(&fleet)["items"][0]["state"], "offline");
        let coloured = rows(&fleet, Look { colour: true, ascii: false });
        assert!(coloured.contains("\x1b[31m○ offline\x1b[0m"), "{coloured}");
    }
}

//! `gwctl dp describe`: everything a control plane knows of one data plane.

use super::args::{ConnectArgs, LookArgs};
use super::clock;
use super::connect::{client, failure, run};
use super::fleet::code;
use super::history::document;
use super::look::Look;
use super::table::table;
use crate::cli::Output;
use crate::failure::Failure;
use clap::Args;
use gwctl_admin_client::Client;
use gwctl_entities::fleet::{Fleet, FleetMember};
use gwctl_entities::{Record, Value};
use gwctl_tui::State;
use gwctl_tui::format::{age, duration, plain};
use gwctl_tui::state::{certificate_days, note, same_hash, silence, versions_behind};
use serde_json::json;
use std::io::Write as _;
use std::process::ExitCode;

/// Digits that name a node when no other id begins so.
const SHORT_ID: usize = 4;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl dp describe dp-7.example             by its name
  gwctl dp describe 3f2a9c41                 by the first digits of its id
  gwctl dp describe dp-7.example -o json

`gwctl dp list` shows names and ids.")]
pub struct DescribeArgs {
    /// Name or id of a data plane, or the first digits of its id.
    #[arg(value_name = "NAME|ID")]
    pub node: String,
    /// Form of the output.
    #[arg(short, long, value_enum, default_value = "table")]
    pub output: Output,
    #[command(flatten)]
    pub look: LookArgs,
    #[command(flatten)]
    pub connect: ConnectArgs,
}

pub fn describe(args: &DescribeArgs) -> Result<ExitCode, Failure> {
    let client = client(&args.connect)?;
    run(async {
        let fleet = client.fleet().await.map_err(|error| failure(&error))?;
        let member = named(&fleet, &args.node, client.address())?;
        let row = kong_row(&client, &member.id).await;
        let text = match args.output {
            Output::Table => page(member, &fleet, &row, Look::of(&args.look)),
            output => document(output, &item(member, &fleet, &row)),
        };
        // A reader that closed the pipe early has what it wanted.
        let _ = std::io::stdout().write_all(text.as_bytes());
        Ok(ExitCode::SUCCESS)
    })
}

/// The one data plane of this name, id or beginning of an id.
fn named<'f>(fleet: &'f Fleet, wanted: &str, address: &str) -> Result<&'f FleetMember, Failure> {
    let is = |member: &&FleetMember| member.id == wanted || member.name == wanted || member.hostname == wanted;
    let begins = |member: &&FleetMember| wanted.len() >= SHORT_ID && member.id.starts_with(wanted);
    let mut found: Vec<&FleetMember> = fleet.items.iter().filter(is).collect();
    if found.is_empty() {
        found = fleet.items.iter().filter(begins).collect();
    }
    match found.as_slice() {
        [member] => Ok(member),
        [] => Err(Failure::new(format!("no data plane {wanted:?} at {address}"))
            .hint("`gwctl dp list` lists names and ids; a node that is gone for long is forgotten")),
        several => {
            let ids: Vec<String> = several.iter().map(|member| format!("\n  {}", plain(&member.id))).collect();
            let text = format!("{} data planes are called {wanted:?}:{}", several.len(), ids.concat());
            Err(Failure::new(text).hint("name one by its id"))
        }
    }
}

/// What Kong's own list says beside the fleet document; empty when it cannot be read.
async fn kong_row(client: &Client, id: &str) -> Record {
    let rows = client.data_planes().await.unwrap_or_default();
    rows.into_iter().find(|row| row.get("id").and_then(Value::as_str) == Some(id)).unwrap_or_default()
}

fn page(member: &FleetMember, fleet: &Fleet, row: &Record, look: Look) -> String {
    let state = State::of(member, fleet);
    let label = state.label(look.ascii);
    let rows: Vec<Vec<String>> = facts(member, fleet, row, &label)
        .into_iter()
        .map(|(name, value)| vec![name.to_owned(), if value.is_empty() { "-".to_owned() } else { value }])
        .collect();
    // The first row stands where a table has its head.
    let Some((first, rest)) = rows.split_first() else { return String::new() };
    let head: Vec<&str> = first.iter().map(String::as_str).collect();
    table(&head, rest).replacen(&label, &look.tint(&label, code(state)), 1)
}

fn facts(member: &FleetMember, fleet: &Fleet, row: &Record, state: &str) -> Vec<(&'static str, String)> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let millis = |value: Option<u64>| value.map(duration).unwrap_or_default();
    let labels: Vec<String> = member.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let plugins = match &member.plugins {
        Some(plugins) => format!("{}: {}", plugins.len(), plugins.join(", ")),
        None => String::new(),
    };
    let seen = format!("{} ago, {}", age(silence(member, fleet)), clock::rfc3339(member.last_seen_millis));
    let same = match same_hash(member, fleet) {
        Some(true) => "the one in force",
        Some(false) => "not the one in force",
        None => "",
    };
    let certificate = member.certificate_expires_at.map(|end| {
        let days = certificate_days(member, fleet).unwrap_or_default();
        format!("until {}, {days} days left", clock::rfc3339(end.saturating_mul(1000)))
    });
    let capabilities: Vec<&str> =
        row.get("rpc_capabilities").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let lags = member.lags.map(|lags| {
        let (p50, p99, max) = (duration(lags.p50_millis), duration(lags.p99_millis), duration(lags.max_millis));
        format!("median {p50}, p99 {p99}, longest {max} of {} changes in five minutes", lags.reports)
    });
    let lags = lags.unwrap_or_default();
    let applied = match (member.stored_micros, member.active_micros) {
        (Some(stored), Some(active)) => {
            format!("{:.1} ms until stored, {:.1} ms until served", stored as f64 / 1000.0, active as f64 / 1000.0)
        }
        _ => millis(member.apply_millis),
    };
    let refused = member.refusal.as_ref().map(|refusal| {
        let row = [refusal.entity.as_deref(), refusal.id.as_deref()].map(Option::unwrap_or_default).join(" ");
        format!("{} in version {}: {}", row.trim(), refusal.version, refusal.fault)
    });
    let refused = refused.unwrap_or_default();
    let forgotten = row.get("ttl").and_then(Value::as_u64).map(|ttl| duration(ttl.saturating_mul(1000)));
    vec![
        ("name", member.name.clone()),
        ("id", member.id.clone()),
        ("state", state.to_owned()),
        ("note", note(member).unwrap_or_default()),
        ("hostname", member.hostname.clone()),
        ("address", member.address.clone()),
        ("labels", labels.join(", ")),
        ("software", member.version.clone()),
        ("protocol", text(&member.protocol)),
        ("because", text(&member.protocol_reason)),
        ("capabilities", capabilities.join(", ")),
        ("connected", if member.connected { "yes" } else { "no" }.to_owned()),
        ("seen", seen),
        ("sync status", member.sync_status.clone()),
        ("version", versions(member, fleet)),
        ("config hash", format!("{} {same}", text(&member.config_hash)).trim().to_owned()),
        ("lag", millis(member.lag_millis)),
        ("recent lags", lags),
        ("apply time", applied),
        ("last error", text(&member.last_error)),
        ("refused row", refused),
        ("divergences", member.divergences.map(|times| format!("{times} times")).unwrap_or_default()),
        ("roll-out group", text(&member.rollout_group)),
        ("certificate", certificate.unwrap_or_default()),
        ("plugins", plugins),
        ("forgotten in", forgotten.unwrap_or_default()),
    ]
}

/// `41 of 42, 1 behind`.
fn versions(member: &FleetMember, fleet: &Fleet) -> String {
    let target = member.target_version.unwrap_or(fleet.version);
    match (member.applied_version, versions_behind(member, fleet)) {
        (Some(applied), Some(0)) => format!("{applied}, the one in force"),
        (Some(applied), Some(behind)) => format!("{applied} of {target}, {behind} behind"),
        _ => String::new(),
    }
}

fn item(member: &FleetMember, fleet: &Fleet, row: &Record) -> Value {
    let mut item = json!(member);
    item["kind"] = "data_plane".into();
    // `version` is the node's software.
    item["document_version"] = 1.into();
    item["state"] = State::of(member, fleet).word().into();
    item["note"] = note(member).into();
    item["fleet_version"] = fleet.version.into();
    item["fleet_config_hash"] = fleet.config_hash.clone().into();
    item["versions_behind"] = versions_behind(member, fleet).into();
    item["last_seen"] = clock::rfc3339(member.last_seen_millis).into();
    item["certificate_days"] = certificate_days(member, fleet).into();
    item["rpc_capabilities"] = row.get("rpc_capabilities").cloned().unwrap_or_default();
    item["ttl_seconds"] = row.get("ttl").cloned().unwrap_or_default();
    item
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet() -> Fleet {
        let node = |id: &str, name: &str| FleetMember {
            id: id.into(),
            name: name.into(),
            hostname: "host".into(),
            connected: true,
            applied_version: Some(4),
            target_version: Some(5),
            sync_status: "normal".into(),
            last_error: Some("bad\x1b row".into()),
            plugins: Some(vec!["acl".into(), "cors".into()]),
            last_seen_millis: 1000,
            ..FleetMember::default()
        };
        let items = vec![node("aaaa1111", "one"), node("aaaa2222", "two"), node("bbbb1111", "two")];
        Fleet { version: 5, now_millis: 3000, items, ..Fleet::default() }
    }

    #[test]
    fn a_node_is_found_by_name_id_or_the_beginning_of_its_id() {
        let fleet = fleet();
        let id =
            |wanted: &str| named(&fleet, wanted, "cp").map(|member| member.id.as_str()).map_err(|found| found.text());
        assert_eq!(id("one").as_deref(), Ok("aaaa1111"));
        assert_eq!(id("bbbb").as_deref(), Ok("bbbb1111"));
        let twice = id("two").expect_err("two have it");
        assert!(twice.contains("2 data planes") && twice.contains("\n  bbbb1111"), "{twice}");
        assert!(id("aaaa").is_err() && id("bbb").is_err() && id("three").is_err());
    }

    #[test]
    fn a_page_has_all_that_is_known_and_nothing_a_terminal_would_obey() {
        let fleet = fleet();
        let row = json!({"rpc_capabilities": ["kong.sync.v2"], "ttl": 3600}).as_object().cloned().unwrap_or_default();
        let text = page(&fleet.items[0], &fleet, &row, Look { colour: false, ascii: true });
        for line in [
            "state           x refused",
            "version         4 of 5, 1 behind",
            "seen            2s ago, 1970-01-01T00:00:01.000Z",
            "last error      bad  row",
            "plugins         2: acl, cors",
            "capabilities    kong.sync.v2",
            "certificate     -",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
        }
        assert_eq!(item(&fleet.items[0], &fleet, &row)["versions_behind"], 1);
    }
}

//! `gwctl history`: the versions of the configuration, and what one of them did.

use super::args::ConnectArgs;
use super::connect::{client, failure, registry, run};
use super::look::Look;
use super::parents::{self, Parents};
use super::plans::painted;
use super::table::table;
use super::{args::LookArgs, clock};
use crate::cli::Output;
use crate::failure::{Failure, USAGE};
use clap::Args;
use gwctl_admin_client::{Client, HistoryRow, RecordDelta};
use gwctl_declarative::{Plan, Recorded, recorded};
use gwctl_entities::{Record, Registry, Value};
use gwctl_tui::format::{age, plain};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::ExitCode;

/// Rows asked for at once.
const PAGE: usize = 1000;
/// Records named in the summary of a version.
const NAMED: usize = 3;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl history                      the last 20 versions, newest first
  gwctl history --limit 100 -o json  for programs, with time to the millisecond
  gwctl history 42                   what version 42 did, record by record
  gwctl rollback 41                  back to what was before it

Secrets are masked. A plain Kong keeps no history.")]
pub struct HistoryArgs {
    /// Show what this version did.
    #[arg(value_name = "VERSION")]
    pub of: Option<u64>,
    /// Versions to list.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = limit)]
    pub limit: usize,
    /// Form of the output.
    #[arg(short, long, value_enum, default_value = "table")]
    pub output: Output,
    #[command(flatten)]
    pub look: LookArgs,
    #[command(flatten)]
    pub connect: ConnectArgs,
}

fn limit(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|limit| *limit > 0).ok_or_else(|| "expected a number from 1 on".to_owned())
}

pub fn history(args: &HistoryArgs) -> Result<ExitCode, Failure> {
    let client = client(&args.connect)?;
    run(async {
        let text = match args.of {
            None => listed(&client, args).await?,
            Some(version) => one(&client, args, version).await?,
        };
        // A reader that closed the pipe early has what it wanted.
        let _ = std::io::stdout().write_all(text.as_bytes());
        Ok(ExitCode::SUCCESS)
    })
}

/// What to say of a server without a log of changes.
pub(super) fn no_history(client: &Client) -> Failure {
    Failure::new(format!("the Admin API at {} has no history", client.address()))
        .hint("a plain Kong keeps none; `gwctl dump` keeps a configuration as a file")
}

async fn listed(client: &Client, args: &HistoryArgs) -> Result<String, Failure> {
    let mut rows: Vec<HistoryRow> = Vec::new();
    while rows.len() < args.limit {
        let before = rows.last().map(|row| row.version);
        let wanted = PAGE.min(args.limit - rows.len());
        let page = client.history(before, wanted, NAMED).await.map_err(|error| failure(&error))?;
        let page = page.ok_or_else(|| no_history(client))?;
        let last = page.len() < wanted;
        rows.extend(page);
        if last {
            break;
        }
    }
    let items = || rows.iter().map(row_json).collect::<Vec<_>>();
    Ok(match args.output {
        Output::Table => rows_text(&rows, clock::now_millis()),
        output => document(output, &json!({"kind": "history", "version": 1, "items": items()})),
    })
}

fn row_json(row: &HistoryRow) -> Value {
    let mut item = json!(row);
    item["time"] = clock::rfc3339(row.time_millis).into();
    item["summary"] = summary(row).into();
    item
}

fn rows_text(rows: &[HistoryRow], now_millis: u64) -> String {
    let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let cells = rows.iter().map(|row| {
        vec![
            row.version.to_string(),
            format!("{} ago", age(now_millis.saturating_sub(row.time_millis))),
            dash(&row.who),
            dash(&row.from),
            row.changes.to_string(),
            summary(row),
        ]
    });
    table(&["VERSION", "WHEN", "WHO", "FROM", "CHANGES", "SUMMARY"], &cells.collect::<Vec<_>>())
}

/// `+2 ~1 -4 services orders, routes list ... and 5 more`.
fn summary(row: &HistoryRow) -> String {
    let Some(counts) = &row.counts else { return "-".to_owned() };
    let signs = [("+", "created"), ("~", "updated"), ("-", "deleted")];
    let mut words: Vec<String> =
        signs.iter().filter_map(|(sign, action)| counts.get(*action).map(|count| format!("{sign}{count}"))).collect();
    let named = row.records.iter().take(NAMED).map(|record| match &record.name {
        Some(name) => format!("{} {name}", record.entity),
        None => format!("{} {}", record.entity, record.id),
    });
    let named: Vec<String> = named.collect();
    words.push(named.join(", "));
    if row.changes > named.len() {
        words.push(format!("and {} more", row.changes - named.len()));
    }
    plain(words.join(" ").trim_end())
}

async fn one(client: &Client, args: &HistoryArgs, version: u64) -> Result<String, Failure> {
    if version == 0 {
        return Err(Failure::new("version 0 is the empty configuration before the first change")
            .hint("`gwctl history` lists the versions there are")
            .code(USAGE));
    }
    let found = client.version_deltas(version).await.map_err(|error| match error.status() {
        Some(404 | 410) => failure(&error).hint("`gwctl history` lists the versions there are"),
        _ => failure(&error),
    })?;
    let found = found.ok_or_else(|| no_history(client))?;
    let plan = plan_of(client, &found.changes).await;
    let time = clock::rfc3339(found.time_millis);
    if args.output != Output::Table {
        let mut item = plan.to_json();
        item["kind"] = "changes".into();
        item["of"] = json!({
            "version": version, "time": time, "time_millis": found.time_millis, "who": found.who, "from": found.from,
        });
        return Ok(document(args.output, &item));
    }
    let head = format!("version {version} of {time}, by {} from {}\n\n", plain(&found.who), plain(&found.from));
    Ok(head + &painted(&plan.to_past_text(), Look::of(&args.look)))
}

/// Deltas of the log as operations to show, with the names of what they refer to.
pub(super) async fn plan_of(client: &Client, deltas: &[RecordDelta]) -> Plan {
    let registry = registry("traditional_compatible");
    let names = names(client, &registry, deltas).await;
    let changes: Vec<Recorded> = deltas
        .iter()
        .map(|delta| Recorded {
            entity: delta.entity.clone(),
            id: delta.id.clone(),
            old: delta.old.clone(),
            new: delta.new.clone(),
            secrets_changed: delta.secrets_changed.clone(),
        })
        .collect();
    recorded(&registry, &changes, &names)
}

/// Names of the records that the deltas refer to, as they are called now.
async fn names(client: &Client, registry: &Registry, deltas: &[RecordDelta]) -> Parents {
    let mut rows: BTreeMap<&str, Vec<Record>> = BTreeMap::new();
    for delta in deltas {
        rows.entry(&delta.entity).or_default().extend(delta.old.iter().chain(&delta.new).cloned());
    }
    let mut names = Parents::new();
    for (entity, rows) in rows {
        if let Some(schema) = registry.entity(entity) {
            names.extend(parents::read(client, registry, schema, &rows).await);
        }
    }
    names
}

pub(super) fn document(output: Output, value: &Value) -> String {
    match output {
        Output::Yaml => gwctl_declarative::to_yaml(value),
        _ => format!("{value:#}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gwctl_admin_client::NamedRecord;

    #[test]
    fn a_version_is_summed_up_in_a_line() {
        let record = |action: &str, entity: &str, name: Option<&str>| NamedRecord {
            action: action.into(),
            entity: entity.into(),
            id: "id-1".into(),
            name: name.map(str::to_owned),
        };
        let row = HistoryRow {
            version: 7,
            time_millis: 1000,
            changes: 4,
            counts: Some(BTreeMap::from([("created".into(), 1), ("deleted".into(), 3)])),
            records: vec![
                record("deleted", "keyauth_credentials", None),
                record("deleted", "routes", Some("list")),
                record("created", "services", Some("or\x1bders")),
            ],
            ..HistoryRow::default()
        };
        assert_eq!(summary(&row), "+1 -3 keyauth_credentials id-1, routes list, services or ders and 1 more");
        assert!(rows_text(&[row], 61_000).contains("7        60s ago  -    -     4        +1 -3"));
        assert_eq!(summary(&HistoryRow::default()), "-");
    }
}

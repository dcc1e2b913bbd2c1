//! `gwctl diff` and `gwctl apply`.

use super::args::{ApplyArgs, ChangeArgs, DiffArgs};
use super::connect::{client, node, run};
use super::document;
use super::look::Look;
use super::progress::Progress;
use super::send::send;
use super::spread::{wait, warnings};
use super::{connect, current};
use crate::cli::Output;
use crate::failure::{DIFFERS, Failure};
use gwctl_admin_client::Client;
use gwctl_declarative::{
    Action, Bundle, DiffOptions, LoadOptions, Mistake, MistakeKind, Mode, Plan, load_located, plan,
};
use gwctl_entities::{Fill, Value};
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

pub fn diff(args: &DiffArgs) -> Result<ExitCode, Failure> {
    run(async {
        let (client, mut plan) = planned(&args.change).await?;
        warn(&client, &mut plan, &args.change).await;
        print(&plan, &args.change);
        Ok(differs(&plan))
    })
}

pub fn apply(args: &ApplyArgs) -> Result<ExitCode, Failure> {
    run(async {
        let (client, mut plan) = planned(&args.change).await?;
        warn(&client, &mut plan, &args.change).await;
        print(&plan, &args.change);
        if args.dry_run {
            return Ok(differs(&plan));
        }
        confirm(&plan, args.yes)?;
        let mut version = client.version_read();
        if !plan.is_empty() {
            version = send(&client, &plan, now_millis()).await?;
            let told = version.map(|version| format!(", version {version}")).unwrap_or_default();
            eprintln!("applied {}{told}", changes(plan.operations.len()));
        }
        if let Some(limit) = args.wait {
            let version = version.ok_or_else(|| {
                Failure::new("cannot wait: this control plane does not tell the version of its configuration")
                    .hint("a plain Kong has none; `gwctl dp list` shows the hash of each data plane")
            })?;
            wait(&client, version, limit).await?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Tells of plugins that data planes lack: on stderr, and in documents.
async fn warn(client: &Client, plan: &mut Plan, args: &ChangeArgs) {
    if !plan.operations.iter().any(|operation| operation.entity == "plugins") {
        return;
    }
    // A node that knows of no data planes has none to warn of.
    let Ok(fleet) = client.fleet().await else { return };
    for warning in warnings(plan, &fleet) {
        eprintln!("! {}", gwctl_tui::format::plain(&warning));
        if args.output != Output::Table {
            plan.warnings.push(warning);
        }
    }
}

fn differs(plan: &Plan) -> ExitCode {
    if plan.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERS) }
}

fn changes(count: usize) -> String {
    if count == 1 { "1 change".to_owned() } else { format!("{count} changes") }
}

/// Reads the files, then the control plane, and compares.
async fn planned(args: &ChangeArgs) -> Result<(Client, Plan), Failure> {
    let client = client(&args.connect)?;
    let bundle = document::read(&args.files)?;
    // Mistakes that need no control plane to be found are told without one.
    check(&bundle)?;
    let node = node(&client).await?;
    if node.database == "off" {
        return Err(Failure::new(format!(
            "the node at {} has no store: single records cannot change",
            client.address()
        ))
        .hint("load the whole file with POST /config, or give the address of a control plane with --addr"));
    }
    let mut line = Progress::new();
    let tables =
        current::tables(&client, &node.registry, &mut |rows| line.say(&format!("read {rows} records"))).await?;
    line.end();
    let options = DiffOptions { select_tags: selected(&bundle, &args.select_tags)?, prune: args.prune };
    let value = Value::Object(bundle.document.clone());
    let mut plan = plan(&node.registry, &tables, value, &options, &mut Random)
        .map_err(|refusal| document::mistaken(&bundle, &refusal.mistakes))?;
    plan.mask(&bundle.environment_values());
    Ok((client, plan))
}

/// The tags of the flag, else those of the files; they may not contradict each other.
fn selected(bundle: &Bundle, flag: &[String]) -> Result<Vec<String>, Failure> {
    let (mut said, mut given) = (bundle.head.select_tags.clone(), flag.to_vec());
    said.sort_unstable();
    given.sort_unstable();
    if !said.is_empty() && !given.is_empty() && said != given {
        return Err(Failure::new(format!(
            "--select-tag {} contradicts _info.select_tags of the files: {}",
            given.join(", "),
            said.join(", ")
        ))
        .hint("leave the flag out, or make both the same"));
    }
    Ok(if flag.is_empty() { bundle.head.select_tags.clone() } else { flag.to_vec() })
}

/// Validates the files by themselves. References may lead to records that only the control plane has.
fn check(bundle: &Bundle) -> Result<(), Failure> {
    let registry = connect::registry("traditional_compatible");
    let value = Value::Object(bundle.document.clone());
    let Err(refusal) = load_located(&registry, value, &LoadOptions::of(Mode::Partial), &mut Random) else {
        return Ok(());
    };
    let mistakes: Vec<Mistake> = refusal.mistakes.into_iter().filter(|mistake| !needs_control_plane(mistake)).collect();
    if mistakes.is_empty() { Ok(()) } else { Err(document::mistaken(bundle, &mistakes)) }
}

/// Mistakes that the second look, with the control plane's records and settings, may take back.
fn needs_control_plane(mistake: &Mistake) -> bool {
    mistake.kind == MistakeKind::Reference
        || ["not enabled", "expression"].iter().any(|word| mistake.message.contains(word))
}

fn print(plan: &Plan, args: &ChangeArgs) {
    let text = match args.output {
        Output::Table => painted(&plan.to_text(), Look::of(&args.look)),
        Output::Json => format!("{:#}\n", plan.to_json()),
        Output::Yaml => gwctl_declarative::to_yaml(&plan.to_json()),
    };
    // A reader that closed the pipe early has what it wanted.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// The signs at the start of lines, in colour; control characters of values taken out.
fn painted(text: &str, look: Look) -> String {
    let mut painted = String::new();
    for line in text.lines() {
        let line = gwctl_tui::format::plain(line);
        let code = match line.get(..2) {
            Some("+ ") => Some(32),
            Some("~ " | "! ") => Some(33),
            Some("- ") => Some(31),
            _ => None,
        };
        painted += &code.map_or_else(|| line.clone(), |code| look.tint(&line, code));
        painted.push('\n');
    }
    painted
}

/// Asks before records are deleted; without a terminal to ask on, only `--yes` says so.
fn confirm(plan: &Plan, yes: bool) -> Result<(), Failure> {
    let deletes = plan.count(Action::Delete);
    if deletes == 0 || yes {
        return Ok(());
    }
    let what = if deletes == 1 { "1 record".to_owned() } else { format!("{deletes} records") };
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Err(Failure::new(format!("{what} would be deleted and nobody can be asked; nothing was sent"))
            .hint("add --yes to delete without a question"));
    }
    eprint!("Delete {what}? [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    if read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::new("not confirmed; nothing was sent"))
}

fn now_millis() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Clock and randomness of this machine.
pub(super) struct Random;

impl Fill for Random {
    fn now_millis(&mut self) -> u64 {
        now_millis()
    }

    fn uuid(&mut self) -> String {
        uuid::Uuid::new_v4().to_string()
    }

    fn token(&mut self) -> String {
        uuid::Uuid::new_v4().simple().to_string()
    }
}

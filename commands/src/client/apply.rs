//! `gwctl diff` and `gwctl apply`.

use super::args::{ApplyArgs, ChangeArgs, DiffArgs};
use super::connect::{client, failure, node, run};
use super::document;
use super::look::Look;
use super::{connect, current};
use crate::cli::Output;
use crate::failure::{DIFFERS, Failure};
use futures_util::future::join_all;
use gwctl_admin_client::{Client, ClientError};
use gwctl_declarative::{
    Action, Bundle, DiffOptions, LoadOptions, Mistake, MistakeKind, Mode, Operation, Plan, load_located, plan,
};
use gwctl_entities::{Fill, Value};
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Requests on the way at the same time.
const AT_ONCE: usize = 8;

pub fn diff(args: &DiffArgs) -> Result<ExitCode, Failure> {
    run(async {
        let (_, plan) = planned(&args.change).await?;
        print(&plan, &args.change);
        Ok(differs(&plan))
    })
}

pub fn apply(args: &ApplyArgs) -> Result<ExitCode, Failure> {
    run(async {
        let (client, plan) = planned(&args.change).await?;
        print(&plan, &args.change);
        if args.dry_run {
            return Ok(differs(&plan));
        }
        confirm(&plan, args.yes)?;
        send(&client, &plan).await?;
        if !plan.is_empty() {
            eprintln!("applied {}", changes(plan.operations.len()));
        }
        Ok(ExitCode::SUCCESS)
    })
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

/// Sends the operations in order, and stops where one fails.
///
/// Those of one kind on one entity do not depend on each other: a few of them are on the way at once.
async fn send(client: &Client, plan: &Plan) -> Result<(), Failure> {
    let mut line = Progress::new();
    let total = plan.operations.len();
    let mut done = 0;
    for kind in plan.operations.chunk_by(|left, right| (left.action, &left.entity) == (right.action, &right.entity)) {
        for batch in kind.chunks(AT_ONCE) {
            line.say(&format!("{done} of {total} sent"));
            let outcomes = join_all(batch.iter().map(|operation| one(client, operation))).await;
            done += outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            let failed = batch.iter().zip(outcomes).find_map(|(operation, outcome)| Some((operation, outcome.err()?)));
            if let Some((operation, error)) = failed {
                line.end();
                let what = format!("{} {} could not be sent", operation.entity, operation.name);
                let state = format!("{done} of {total} operations are done; `gwctl apply` again continues from there");
                return Err(failure(&error).within(format!("{}\n{state}", gwctl_tui::format::plain(&what))));
            }
        }
    }
    line.end();
    Ok(())
}

async fn one(client: &Client, operation: &Operation) -> Result<(), ClientError> {
    let Some(body) = operation.body(now_millis()) else { return client.delete(&operation.path).await };
    match (client.put(&operation.path, &body).await, &operation.post_path) {
        (Err(error), Some(path)) if error.status() == Some(404) => client.post(path, &body).await.map(drop),
        (outcome, _) => outcome.map(drop),
    }
}

/// A line on stderr that rewrites itself, on a terminal and for long work only.
pub(super) struct Progress {
    on: bool,
    started: Instant,
    last: Option<Instant>,
}

impl Progress {
    pub(super) fn new() -> Progress {
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        Progress { on: std::io::stderr().is_terminal() && !dumb, started: Instant::now(), last: None }
    }

    pub(super) fn say(&mut self, text: &str) {
        let due = self.last.unwrap_or(self.started).elapsed() > Duration::from_millis(200);
        if self.on && due {
            eprint!("\r\x1b[2K{text}");
            self.last = Some(Instant::now());
        }
    }

    pub(super) fn end(&mut self) {
        if self.last.take().is_some() {
            eprint!("\r\x1b[2K");
        }
    }
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

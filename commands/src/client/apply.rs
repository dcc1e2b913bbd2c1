//! `gwctl diff` and `gwctl apply`.

use super::args::{ApplyArgs, ChangeArgs, DiffArgs};
use super::clock::now_millis;
use super::connect::{client, node, run};
use super::document;
use super::look::Look;
use super::plans::{confirm, painted, same};
use super::progress::Progress;
use super::send::{Sent, send};
use super::spread::{wait, warnings};
use super::{connect, current};
use crate::cli::Output;
use crate::failure::{DIFFERS, Failure, GUARD};
use futures_util::future::{Either, select};
use gwctl_admin_client::Client;
use gwctl_declarative::{
    Action, Bundle, DiffOptions, LoadOptions, Mistake, MistakeKind, Mode, Plan, Table, load_located, plan,
};
use gwctl_entities::{Fill, Registry, Value};
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

pub fn diff(args: &DiffArgs) -> Result<ExitCode, Failure> {
    run(async {
        let bundle = Arc::new(document::read(&args.change.files)?);
        let (client, mut plan) = planned(&bundle, &args.change).await?;
        warn(&client, &mut plan, &args.change).await;
        print(&plan, &args.change);
        Ok(differs(&plan))
    })
}

pub fn apply(args: &ApplyArgs) -> Result<ExitCode, Failure> {
    run(async {
        let bundle = Arc::new(document::read(&args.change.files)?);
        let (client, mut plan) = planned(&bundle, &args.change).await?;
        warn(&client, &mut plan, &args.change).await;
        print(&plan, &args.change);
        if args.dry_run {
            return Ok(differs(&plan));
        }
        ask(&plan, args.yes)?;
        let mut version = client.version_read();
        if !plan.is_empty() {
            version = sent(&client, &plan, &bundle, args).await?;
            let told = version.map(|version| format!(", version {version}")).unwrap_or_default();
            tell!("applied {}{told}", changes(plan.operations.len()));
        }
        if let Some(share) = args.wait.share() {
            let version = version.ok_or_else(|| {
                Failure::new("cannot wait: this control plane does not tell the version of its configuration")
                    .hint("a plain Kong has none; `gwctl dp list` shows the hash of each data plane")
            })?;
            wait(&client, version, share, args.wait.limit(&args.change.connect)).await?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Sends the plan. When somebody else wrote since it was made, it is made once more and sent if it is still the same:
/// their change touched nothing of it.
async fn sent(client: &Client, plan: &Plan, bundle: &Arc<Bundle>, args: &ApplyArgs) -> Result<Option<u64>, Failure> {
    if let Sent::Done(version) = send(client, plan, now_millis()).await? {
        return Ok(version);
    }
    let (client, again) = planned(bundle, &args.change).await?;
    if same(plan, &again) {
        tell!("somebody else changed the configuration meanwhile; the plan is the same, going on");
        if let Sent::Done(version) = send(&client, &again, now_millis()).await? {
            return Ok(version);
        }
    }
    let text = "somebody else changed the configuration since the plan was made; nothing was changed";
    Err(Failure::new(text).hint("run it again: the plan is made anew from what is there now").code(GUARD))
}

/// Asks before records are deleted.
fn ask(plan: &Plan, yes: bool) -> Result<(), Failure> {
    match plan.count(Action::Delete) {
        0 => Ok(()),
        1 => confirm("Delete 1 record", yes),
        many => confirm(&format!("Delete {many} records"), yes),
    }
}

/// Tells of plugins that data planes lack: on stderr, and in documents.
async fn warn(client: &Client, plan: &mut Plan, args: &ChangeArgs) {
    if !plan.operations.iter().any(|operation| operation.entity == "plugins") {
        return;
    }
    // A node that knows of no data planes has none to warn of.
    let Ok(fleet) = client.fleet().await else { return };
    for warning in warnings(plan, &fleet) {
        tell!("! {}", gwctl_tui::format::plain(&warning));
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

/// Reads the control plane and compares.
async fn planned(bundle: &Arc<Bundle>, args: &ChangeArgs) -> Result<(Client, Plan), Failure> {
    // A client knows the version of its first answer: another plan needs another client.
    let client = client(&args.connect)?;
    let (registry, tables) = read_and_check(&client, bundle).await?;
    let select_tags = selected(bundle, &args.select_tags)?;
    let options = DiffOptions { select_tags, prune: args.prune, threads: threads() };
    let value = Value::Object(bundle.document.clone());
    let mut plan = plan(&registry, &tables, value, &options, &mut Random)
        .map_err(|refusal| document::mistaken(bundle, &refusal.mistakes))?;
    plan.mask(&bundle.environment_values());
    Ok((client, plan))
}

/// What the control plane has. Mistakes of the files that need no control plane to be found are told without one; it is
/// read while they are looked for.
async fn read_and_check(client: &Client, bundle: &Arc<Bundle>) -> Result<(Registry, Vec<Table>), Failure> {
    let checked = tokio::task::spawn_blocking({
        let bundle = bundle.clone();
        move || check(&bundle)
    });
    match select(checked, std::pin::pin!(records(client))).await {
        Either::Left((checked, read)) => {
            done(checked)?;
            read.await
        }
        Either::Right((read, checked)) => {
            done(checked.await)?;
            read
        }
    }
}

/// The outcome of work on another thread.
fn done(outcome: Result<Result<(), Failure>, tokio::task::JoinError>) -> Result<(), Failure> {
    outcome.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// Threads that may work on a plan together.
pub(super) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The schemas and the records of a control plane.
async fn records(client: &Client) -> Result<(Registry, Vec<Table>), Failure> {
    let node = node(client).await?;
    if node.database == "off" {
        return Err(Failure::new(format!(
            "the node at {} has no store: single records cannot change",
            client.address()
        ))
        .hint("load the whole file with POST /config, or give the address of a control plane with --addr"));
    }
    let mut line = Progress::new();
    let tables = current::tables(client, &node.registry, &mut |rows| line.say(&format!("read {rows} records"))).await?;
    line.end();
    Ok((node.registry, tables))
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
    let options = LoadOptions { threads: threads(), ..LoadOptions::of(Mode::Partial) };
    let Err(refusal) = load_located(&registry, value, &options, &mut Random) else {
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

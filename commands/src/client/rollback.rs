//! `gwctl rollback`: the configuration as it was at a version, as one new version.

use super::args::{ConnectArgs, LookArgs};
use super::connect::{client, failure, run};
use super::history::{document, no_history, plan_of};
use super::look::Look;
use super::plans::{confirm, painted, same};
use super::spread::{WaitArgs, wait};
use crate::cli::Output;
use crate::failure::{DIFFERS, Failure, GUARD};
use clap::Args;
use gwctl_admin_client::{Client, ClientError};
use gwctl_declarative::Plan;
use std::io::Write as _;
use std::process::ExitCode;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl history                              which versions there are
  gwctl rollback 41 --dry-run                what going back to version 41 does
  gwctl rollback 41                          the same, then asks, then does it
  gwctl rollback 41 --yes --wait             from a script, until all have it

All of it is one transaction and one new version, signed
\"rollback to 41\" in the history: rolling back can be rolled back.

Exit codes: 0 done or nothing to do, 1 error (also when the log no longer
reaches that version), 2 differences (--dry-run), 3 not everywhere in time
(--wait), 4 token missing or not allowed, 5 not confirmed or changed by
somebody else meanwhile, 69 control plane unreachable.")]
pub struct RollbackArgs {
    /// Version to go back to, as `gwctl history` lists it.
    #[arg(value_name = "VERSION")]
    pub to: u64,
    /// Print what would be done and do nothing; exit code 2 when there is something to do.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask.
    #[arg(short, long)]
    pub yes: bool,
    #[command(flatten)]
    pub wait: WaitArgs,
    /// Form of the output.
    #[arg(short, long, value_enum, default_value = "table")]
    pub output: Output,
    #[command(flatten)]
    pub look: LookArgs,
    #[command(flatten)]
    pub connect: ConnectArgs,
}

pub fn rollback(args: &RollbackArgs) -> Result<ExitCode, Failure> {
    let client = client(&args.connect)?;
    run(async {
        let (mut from, plan) = tried(&client, args.to).await?;
        print(args, from, &plan);
        if plan.is_empty() {
            tell!("nothing to do: the configuration is as it was at version {}", args.to);
        } else if args.dry_run {
            return Ok(ExitCode::from(DIFFERS));
        } else {
            confirm(&format!("Roll back {} to version {}", client.address(), args.to), args.yes)?;
            from = carried_out(&client, args.to, from, &plan).await?;
            tell!("rolled back to version {}: version {from}", args.to);
        }
        if let Some(share) = args.wait.share() {
            wait(&client, from, share, args.wait.limit(&args.connect)).await?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The version in force and what a rollback from it does.
async fn tried(client: &Client, to: u64) -> Result<(u64, Plan), Failure> {
    let found = client.rollback(to, None, true).await.map_err(|error| refused(&error, to))?;
    let found = found.ok_or_else(|| no_history(client))?;
    Ok((found.version, plan_of(client, &found.changes).await))
}

/// The version it made. Where somebody wrote meanwhile it is tried once more, when that changes nothing of the plan.
async fn carried_out(client: &Client, to: u64, from: u64, plan: &Plan) -> Result<u64, Failure> {
    let overtaken = match client.rollback(to, Some(from), false).await {
        Err(error) if error.status() == Some(412) => error,
        done => {
            return done
                .map_err(|error| refused(&error, to))?
                .map(|done| done.version)
                .ok_or_else(|| no_history(client));
        }
    };
    let (from, again) = tried(client, to).await?;
    if !same(plan, &again) {
        return Err(refused(&overtaken, to));
    }
    tell!("somebody else changed the configuration meanwhile; the plan is the same, going on");
    let done = client.rollback(to, Some(from), false).await.map_err(|error| refused(&error, to))?;
    done.map(|done| done.version).ok_or_else(|| no_history(client))
}

fn refused(error: &ClientError, to: u64) -> Failure {
    match error.status() {
        Some(412) => {
            Failure::new("somebody else changed the configuration since the plan was made; nothing was changed")
                .hint("run it again: the plan is made anew from what is there now")
                .code(GUARD)
        }
        Some(409) => failure(error).code(GUARD),
        Some(400 | 404 | 410) => {
            let failure = failure(error).within(format!("cannot go back to version {to}; nothing was changed"));
            failure.hint("`gwctl history` lists the versions one can go back to")
        }
        _ => failure(error),
    }
}

fn print(args: &RollbackArgs, from: u64, plan: &Plan) {
    let text = if args.output == Output::Table {
        painted(&plan.to_text(), Look::of(&args.look))
    } else {
        let mut value = plan.to_json();
        value["kind"] = "rollback".into();
        value["from_version"] = from.into();
        value["to_version"] = args.to.into();
        document(args.output, &value)
    };
    // A reader that closed the pipe early has what it wanted.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

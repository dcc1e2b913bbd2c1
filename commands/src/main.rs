//! The `gwctl` binary: one module per subcommand. Results go to stdout, everything else to stderr.

#![warn(clippy::print_stderr)]
#![expect(unreachable_pub, reason = "a binary has no outside; pub marks what a module offers to the others")]

#[macro_use]
mod terminal;

mod cli;
mod client;
mod config;
mod failure;
mod generate;
mod node;
mod quickstart;
mod settings;

use clap::Parser;
use cli::{Cli, Command};
use client::args::CertsCommand;
use failure::Failure;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(error),
    };
    match run(cli.command) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Quickstart(args) => quickstart::run(&args),
        Command::DemoUpstream(args) => quickstart::upstream::run(&args),
        Command::Start(args) => node::start(&args.settings, &[]),
        Command::Reload(args) => client::running::reload(&args),
        Command::Upgrade(args) => client::running::upgrade(&args),
        Command::Quit(args) => client::running::quit(&args),
        Command::Stop(args) => client::running::stop(&args),
        Command::Cp(cli::CpCommand::Start(args)) => node::start(&args.settings, &[("role", "control_plane")]),
        Command::Dp(cli::DpCommand::Join(args)) => node::join(&args),
        Command::Dp(cli::DpCommand::List(args)) => client::fleet_list(&args),
        Command::Dp(cli::DpCommand::Describe(args)) => client::describe(&args),
        Command::Certs(CertsCommand::Init(args)) => client::init(&args),
        Command::Certs(CertsCommand::Show(args)) => client::show(&args),
        Command::Apply(args) => client::apply(&args),
        Command::Diff(args) => client::diff(&args),
        Command::History(args) => client::history(&args),
        Command::Rollback(args) => client::rollback(&args),
        Command::Validate(args) => client::validate(&args),
        Command::Dump(args) => client::dump(&args),
        Command::Convert(args) => client::convert(&args),
        Command::Get(args) => client::get(&args),
        Command::Explain(args) => client::explain(&args),
        Command::Top(args) => client::top(&args),
        Command::Config(cli::ConfigCommand::Show(args)) => config::show(&args),
        Command::Completions(args) => generate::completions(&args),
        Command::Man(args) => generate::man(&args),
        Command::ExitCodes => Ok(cli::exit_codes()),
        Command::Version(args) => generate::version(&args),
    }
}

/// Help and version go to stdout with code 0; wrong usage is 64.
fn usage(error: clap::Error) -> ExitCode {
    let error = cli::with_tip(error);
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(failure::USAGE) } else { ExitCode::SUCCESS }
}

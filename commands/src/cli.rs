//! The command line as data: the parser, the help, the completions and the man pages all come from here.

use crate::client::args::{
    ApplyArgs, CertsCommand, ConvertArgs, DiffArgs, DumpArgs, FleetListArgs, GetArgs, TopArgs, ValidateArgs,
};
use crate::client::describe::DescribeArgs;
use crate::client::explain::ExplainArgs;
use crate::client::history::HistoryArgs;
use crate::client::rollback::RollbackArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// The words of `gwctl` with no command.
const OVERVIEW: &str = "\
Examples:
  gwctl quickstart             a cluster with traffic, in one terminal
  gwctl certs init             the certificate of a cluster
  gwctl cp start -c kong.conf  a control plane
  gwctl dp join cp.example:8005 \\
      --cluster-cert cluster.crt --cluster-key cluster.key
  gwctl dump --from http://kong.example:8001 -w kong.yaml
  gwctl validate -f kong.yaml  find its mistakes, offline
  gwctl apply -f kong.yaml     bring the configuration to what the file says
  gwctl top                    watch the fleet

Exit codes: 0 done or no difference, 1 error, 2 differences found, 3 not
everywhere in time, 4 token missing or not allowed, 5 refused by a guard (not
confirmed, changed by somebody else meanwhile), 6 a check failed, 64 wrong
usage, 69 peer unreachable, 130 interrupted. More: gwctl help exit-codes";

/// `gwctl help exit-codes`.
const EXIT_CODES: &str = "\
Every command ends with one of these codes:

    0  done, or no difference
    1  error: the message says what, where, why and what to try
    2  differences found: diff, apply --dry-run, rollback --dry-run
    3  applied but not everywhere in time: --wait
    4  token missing or not allowed
    5  refused by a guard: nobody confirmed, or somebody else changed the
       configuration meanwhile; nothing was changed
    6  a check failed: an expired certificate (certs show), another route
       than expected (explain --expect)
   64  wrong usage: a flag, a name or a value that is none
   69  the Admin API could not be reached, or did not answer in time
  130  interrupted: Ctrl-C";

/// API gateway cluster in one binary: control plane, data plane, and the tool that runs them.
#[derive(Debug, Parser)]
#[command(name = "gwctl", version, about, after_help = OVERVIEW, subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a whole cluster with traffic in this terminal.
    Quickstart(QuickstartArgs),
    /// The upstream of the quickstart.
    #[command(hide = true)]
    DemoUpstream(UpstreamArgs),
    /// Start a node in the role its settings say (traditional, control_plane or data_plane).
    Start(StartArgs),
    /// Let a running node read its settings and certificates again (SIGHUP).
    #[command(after_help = "\
Examples:
  gwctl reload                       the node of the default folder
  gwctl reload -p /var/lib/gwctl-dp1")]
    Reload(NodeArgs),
    /// Let the program on disk take over from a running node, without a lost connection (SIGUSR2).
    #[command(after_help = "\
Examples:
  mv gwctl.new /usr/bin/gwctl && gwctl upgrade")]
    Upgrade(NodeArgs),
    /// Stop a node once what is in flight has ended, within shutdown_grace (SIGQUIT).
    #[command(after_help = "\
Examples:
  gwctl quit -p /var/lib/gwctl --timeout 120")]
    Quit(NodeArgs),
    /// Stop a node soon, within shutdown_fast_grace (SIGTERM).
    #[command(after_help = "\
Examples:
  gwctl stop -c kong.conf")]
    Stop(NodeArgs),
    /// Control planes.
    #[command(subcommand)]
    Cp(CpCommand),
    /// Data planes.
    #[command(subcommand)]
    Dp(DpCommand),
    /// Certificates of a cluster.
    #[command(subcommand)]
    Certs(CertsCommand),
    /// Bring the configuration of a control plane to what files say.
    Apply(ApplyArgs),
    /// Show what `apply` would do.
    Diff(DiffArgs),
    /// List the versions of the configuration: when, who, how much; or show what one did.
    History(HistoryArgs),
    /// Make the configuration what it was at a version.
    Rollback(RollbackArgs),
    /// Find the mistakes of declarative files, with line and column.
    Validate(ValidateArgs),
    /// Write what is configured as a declarative file.
    Dump(DumpArgs),
    /// Turn files of Kong and of decK into each other.
    Convert(ConvertArgs),
    /// List or show what is configured.
    Get(GetArgs),
    /// Tell which route answers a request, and why the others do not.
    Explain(ExplainArgs),
    /// Watch the fleet in the terminal.
    Top(TopArgs),
    /// Settings of a node.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the completion script of a shell.
    Completions(CompletionsArgs),
    /// Write the man pages into a folder.
    Man(ManArgs),
    /// Print version and build facts.
    Version(VersionArgs),
    /// The codes that commands end with.
    #[command(hide = true, long_about = EXIT_CODES)]
    ExitCodes,
}

/// Says how a word is given that stands where none is taken: other tools take files and shares without a flag.
pub fn with_tip(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && word == "start"
        && usage.contains("gwctl dp")
    {
        let tip = "a data plane starts by joining: gwctl dp join HOST:8005".to_owned();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        return error;
    }
    let word = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) if error.kind() == ErrorKind::UnknownArgument => word.clone(),
        _ => return error,
    };
    let tip = match &*word {
        share if waits(&usage) && (share == "all" || share.ends_with('%')) => {
            format!("a share goes behind an equals sign: --wait={share}")
        }
        "-o" | "--output" if usage.contains("gwctl top") => "`gwctl dp list -o json` is for programs".to_owned(),
        file if usage.contains("--file") && !file.starts_with('-') => format!("files go behind -f: -f {file}"),
        _ => return error,
    };
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

/// Whether it is the usage of a command that can wait for data planes.
fn waits(usage: &str) -> bool {
    ["gwctl apply", "gwctl rollback"].iter().any(|command| usage.contains(command))
}

/// Prints the codes, as `gwctl help exit-codes` does.
pub fn exit_codes() -> std::process::ExitCode {
    use std::io::Write as _;
    // A reader that closed the pipe early has what it wanted.
    let _ = writeln!(std::io::stdout(), "{EXIT_CODES}");
    std::process::ExitCode::SUCCESS
}

#[derive(Debug, Subcommand)]
pub enum CpCommand {
    /// Start a control plane: store, Admin API and cluster listener.
    #[command(after_help = "\
Examples:
  gwctl cp start -c kong.conf
  gwctl cp start -p /var/lib/gwctl \\
      --set cluster_cert=cluster.crt --set cluster_cert_key=cluster.key")]
    Start(StartArgs),
}

#[derive(Debug, Subcommand)]
pub enum DpCommand {
    /// Start a data plane that joins a control plane.
    Join(JoinArgs),
    /// List the data planes of a control plane: state, version, configuration, lag.
    List(FleetListArgs),
    /// Show everything a control plane knows of one data plane.
    Describe(DescribeArgs),
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print every effective setting.
    Show(ShowArgs),
}

/// Where settings come from; each source overrides the one before: file, KONG_*, GWCTL_*, flags.
#[derive(Debug, Clone, Default, Args)]
pub struct SettingsArgs {
    /// Settings file in the form of kong.conf.
    #[arg(short = 'c', long = "conf", value_name = "FILE")]
    pub conf: Option<PathBuf>,
    /// Folder of the node: store, cache, node id.
    #[arg(short = 'p', long, value_name = "FOLDER")]
    pub prefix: Option<String>,
    /// Any setting by its key in kong.conf, may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Stop when standard input ends, for whoever starts the node as a child.
    #[arg(long, hide = true)]
    pub until_stdin_ends: bool,
}

/// A node that runs on this machine.
#[derive(Debug, Args)]
pub struct NodeArgs {
    /// Seconds to wait for the node.
    #[arg(long, value_name = "SECONDS", default_value_t = 150)]
    pub timeout: u64,
    #[command(flatten)]
    pub settings: SettingsArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl quickstart  until q or Ctrl-C
  gwctl quickstart --keep
      and leave the folder of the cluster where it is
  gwctl quickstart --dir demo --exit-after 20
      20 seconds in that folder, then stop and exit with code 0")]
pub struct QuickstartArgs {
    /// Folder of the cluster; a fresh one below the user's state folder when not given, removed after a clean end.
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
    /// Keep the fresh folder too.
    #[arg(long)]
    pub keep: bool,
    /// Stop by itself after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    pub exit_after: Option<u64>,
}

#[derive(Debug, Args)]
pub struct UpstreamArgs {
    /// Addresses to listen on.
    #[arg(value_name = "HOST:PORT", required = true)]
    pub addresses: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl start  a single node with the embedded store
  KONG_DATABASE=off gwctl start -c kong.conf
      a node without a store
  gwctl start --set admin_listen=127.0.0.1:9001
      one setting on the command line")]
pub struct StartArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl dp join cp.example:8005 \\
      --cluster-cert cluster.crt --cluster-key cluster.key
  gwctl dp join 127.0.0.1:8005 -c kong.conf -p /var/lib/gwctl-dp1 \\
      --label region:eu --set proxy_listen=0.0.0.0:8000")]
pub struct JoinArgs {
    /// Cluster listener of the control plane; several are tried in turn.
    #[arg(value_name = "HOST:PORT", required = true, value_parser = cluster_listener)]
    pub control_planes: Vec<String>,
    /// Cluster certificate (cluster_cert).
    #[arg(long, value_name = "FILE")]
    pub cluster_cert: Option<String>,
    /// Its key (cluster_cert_key).
    #[arg(long, value_name = "FILE")]
    pub cluster_key: Option<String>,
    /// Label of this data plane (cluster_dp_labels), may be repeated.
    #[arg(long = "label", value_name = "KEY:VALUE", value_parser = label)]
    pub labels: Vec<String>,
    #[command(flatten)]
    pub settings: SettingsArgs,
}

/// `HOST:PORT`, no URL: the cluster's port speaks its own protocol.
fn cluster_listener(text: &str) -> Result<String, String> {
    match text.split_once("://") {
        None => Ok(text.to_owned()),
        Some((_, rest)) => {
            let host = rest.split(['/', ':']).next().unwrap_or_default();
            Err(format!("expected HOST:PORT of the cluster listener (cluster_listen), not a URL; try {host}:8005"))
        }
    }
}

/// `region:us`; `region=us` means the same.
fn label(text: &str) -> Result<String, String> {
    let pair = text.split_once(':').filter(|(key, _)| !key.contains('=')).or_else(|| text.split_once('='));
    match pair {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok(format!("{key}:{value}")),
        _ => Err("expected KEY:VALUE, for example region:us".to_owned()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// One row per item, for people.
    Table,
    Json,
    Yaml,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl config show --origin           every setting and where it comes from
  gwctl config show --changed -o json  only what differs from the default")]
pub struct ShowArgs {
    /// Also print where each value comes from.
    #[arg(long)]
    pub origin: bool,
    /// Only settings that do not stand at their default.
    #[arg(long)]
    pub changed: bool,
    /// Form of the output.
    #[arg(short, long, value_enum, default_value = "table")]
    pub output: Output,
    #[command(flatten)]
    pub settings: SettingsArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl completions bash > /etc/bash_completion.d/gwctl
  gwctl completions zsh > \"${fpath[1]}/_gwctl\"")]
pub struct CompletionsArgs {
    /// Shell to write for.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl man --dir /usr/local/share/man/man1")]
pub struct ManArgs {
    /// Folder to write into; made when missing.
    #[arg(long, value_name = "FOLDER", default_value = "man")]
    pub dir: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl version
  gwctl version -o json")]
pub struct VersionArgs {
    /// Form of the output.
    #[arg(short, long, value_enum, default_value = "table")]
    pub output: Output,
}

#[cfg(test)]
mod texts;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_pairs_with_either_sign() {
        assert_eq!(label("region:us"), Ok("region:us".to_owned()));
        assert_eq!(label("region=us"), Ok("region:us".to_owned()));
        assert_eq!(label("at=10:30"), Ok("at:10:30".to_owned()));
        for wrong in ["", "region", "region:", "=us"] {
            assert!(label(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_line_below_a_help_is_wider_than_a_small_terminal() {
        fn check(command: &clap::Command, name: &str) {
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in after.lines() {
                assert!(line.chars().count() < 80, "{name}: {line}");
            }
            for child in command.get_subcommands() {
                check(child, &format!("{name} {}", child.get_name()));
            }
        }
        use clap::CommandFactory as _;
        check(&Cli::command(), "gwctl");
    }

    #[test]
    fn a_url_is_no_cluster_listener() {
        assert_eq!(cluster_listener("cp:8005"), Ok("cp:8005".to_owned()));
        let told = cluster_listener("https://cp.example:8001/x").expect_err("a URL is refused");
        assert!(told.contains("cp.example:8005"), "{told}");
    }
}

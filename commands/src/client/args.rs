//! Flags and help of the client commands.

use super::names;
use super::spread::WaitArgs;
use crate::cli::Output;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Which Admin API is asked.
#[derive(Debug, Clone, Args)]
pub struct ConnectArgs {
    /// Address of the Admin API.
    #[arg(
        long,
        alias = "kong-addr",
        env = "GWCTL_ADDR",
        value_name = "URL",
        default_value = "http://127.0.0.1:8001",
        help_heading = "Connection"
    )]
    pub addr: String,
    /// File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself.
    #[arg(long, env = "GWCTL_TOKEN_FILE", value_name = "FILE", help_heading = "Connection")]
    pub token_file: Option<PathBuf>,
    /// PEM file of authorities to trust, for https.
    #[arg(long, env = "GWCTL_CACERT", value_name = "FILE", help_heading = "Connection")]
    pub cacert: Option<PathBuf>,
    /// Trust any certificate of https.
    #[arg(long, help_heading = "Connection")]
    pub insecure: bool,
    /// Limit of each request: 500ms, 10s, 2m; 10s when not given.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Connection")]
    pub timeout: Option<Duration>,
}

/// Forms of a list of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListOutput {
    /// One row per record, for people.
    Table,
    /// A table with ids.
    Wide,
    Json,
    Yaml,
    /// ENTITY/NAME, one per line.
    Name,
}

/// When colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColourChoice {
    /// On a terminal, unless NO_COLOR or TERM=dumb speak against it.
    Auto,
    Always,
    Never,
}

/// How things are drawn.
#[derive(Debug, Clone, Args)]
pub struct LookArgs {
    /// When to use colours.
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub colour: ColourChoice,
    /// Only ASCII characters.
    #[arg(long)]
    pub ascii: bool,
}

#[derive(Debug, Subcommand)]
pub enum CertsCommand {
    /// Make the certificates of a cluster.
    Init(InitArgs),
    /// Print what a certificate says.
    Show(ShowCertificateArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl certs init  cluster.crt and cluster.key, shared by all nodes
  gwctl certs init --dir /etc/gwctl --days 365
      somewhere else, for a year
  gwctl certs init --pki --name cp.example
      an authority and a certificate for each role")]
pub struct InitArgs {
    /// Folder to write into; made when missing.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub dir: PathBuf,
    /// Days the certificates are valid.
    #[arg(long, value_name = "N", default_value_t = gwctl_certs::CLUSTER_DAYS, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub days: u32,
    /// An authority that issues one certificate to the control plane and one to data planes (cluster_mtls = pki).
    #[arg(long)]
    pub pki: bool,
    /// Host name or address of the control plane, may be repeated; with --pki.
    #[arg(long = "name", value_name = "HOST", requires = "pki")]
    pub names: Vec<String>,
    /// Replace files that are there.
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl certs show cluster.crt
  gwctl certs show *.crt -o json

Exit codes: 0 all valid now, 1 error, 6 one has expired.")]
pub struct ShowCertificateArgs {
    /// Files with certificates in PEM.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Form of the output.
    #[arg(short, long, value_enum, default_value = "table")]
    pub output: Output,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl dp list  every data plane and how far it is
  gwctl dp list --addr http://cp.example:8001 -o json")]
pub struct FleetListArgs {
    /// Form of the output.
    #[arg(short, long, value_enum, default_value = "table")]
    pub output: Output,
    #[command(flatten)]
    pub look: LookArgs,
    #[command(flatten)]
    pub connect: ConnectArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl get services                       all services
  gwctl get route orders-list -o yaml      one route, by name or id
  gwctl get routes orders-list orders-new  two of them
  gwctl get route/orders-list -o wide      with its id
  gwctl get plugins --of service/orders    the plugins of a service
  gwctl get targets --of echo-pool         the targets of an upstream

Tables never show keys, passwords and other secrets; json and yaml print
records as the Admin API gives them.")]
pub struct GetArgs {
    /// What to list: services, routes, consumers, plugins, upstreams, targets ... singular and short forms work too.
    #[arg(value_name = "ENTITY", value_parser = names::parser(), hide_possible_values = true)]
    pub entity: String,
    /// Names or ids of records; ENTITY/NAME means one too.
    #[arg(value_name = "NAME-OR-ID")]
    pub names: Vec<String>,
    /// Only what hangs below this record.
    #[arg(long, value_name = "[ENTITY/]NAME-OR-ID")]
    pub of: Option<String>,
    /// Only records that carry this tag; several must all be there.
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Form of the output.
    #[arg(short, long, value_enum, default_value = "table")]
    pub output: ListOutput,
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// Where the wanted configuration comes from and what of it counts.
#[derive(Debug, Clone, Args)]
pub struct ChangeArgs {
    /// Declarative file, folder of such files, or - for stdin; may be repeated.
    #[arg(short = 'f', long = "file", value_name = "FILE", required = true, num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// Delete what the files do not have.
    #[arg(long)]
    pub prune: bool,
    /// Only delete records with this tag, and give it to those of the files; may be repeated.
    #[arg(long = "select-tag", value_name = "TAG")]
    pub select_tags: Vec<String>,
    /// Form of the output.
    #[arg(short, long, value_enum, default_value = "table")]
    pub output: Output,
    #[command(flatten)]
    pub look: LookArgs,
    #[command(flatten)]
    pub connect: ConnectArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl diff -f kong.yaml                             what `apply` would do
  gwctl diff -f conf/ --prune                         with what is in the way
  cat kong.yaml | gwctl diff -f - -o json

Exit codes: 0 no difference, 2 differences, 1 error, 69 control plane
unreachable.")]
pub struct DiffArgs {
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl apply -f kong.yaml                   create and change, delete nothing
  gwctl apply -f kong.yaml --prune --yes     make it the whole configuration
  gwctl apply -f team-a.yaml --select-tag team-a --prune
  gwctl apply -f kong.yaml --wait            until all data planes have it
  gwctl apply -f kong.yaml --wait=80% --timeout 2m
  gwctl apply -f kong.yaml --dry-run         the same as `gwctl diff`

Nothing is sent when a file has a mistake. All changes are made at once or
none; a plain Kong gets them one by one. When somebody else changes the
configuration meanwhile, the plan is made once more, and sent if it is the
same.

Exit codes: 0 done, 1 error, 2 differences (--dry-run), 3 not everywhere in
time (--wait), 4 token missing or not allowed, 5 deletion not confirmed or the
configuration changed by somebody else meanwhile, 69 control plane
unreachable.")]
pub struct ApplyArgs {
    #[command(flatten)]
    pub change: ChangeArgs,
    /// Print what would be done and do nothing; exit code 2 when there is something to do.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask before records are deleted.
    #[arg(short, long)]
    pub yes: bool,
    #[command(flatten)]
    pub wait: WaitArgs,
}

/// Dialect of a declarative file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DialectChoice {
    /// Kong's declarative format 3.0: for `POST /config` and declarative_config too.
    Kong,
    /// The files of decK.
    Deck,
}

/// Form of a file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FileOutput {
    Yaml,
    Json,
}

/// Where a document goes.
#[derive(Debug, Clone, Args)]
pub struct TargetArgs {
    /// Form of the output.
    #[arg(short, long, value_enum, default_value = "yaml")]
    pub output: FileOutput,
    /// Write to this file, readable by its owner only, rather than to stdout.
    #[arg(short, long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Replace the file when it is there.
    #[arg(long, requires = "write")]
    pub force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl validate -f kong.yaml      without a control plane
  gwctl validate -f conf/ -o json  for programs: file, line, column, message
  gwctl validate -f kong.yaml --online
      by the schemas of a control plane, with its plugins

Exit codes: 0 valid, 1 mistakes found, 69 control plane unreachable.")]
pub struct ValidateArgs {
    /// Declarative file, folder of such files, or - for stdin; may be repeated.
    #[arg(short = 'f', long = "file", value_name = "FILE", required = true, num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// References may lead to records that the files do not have.
    #[arg(long)]
    pub partial: bool,
    /// Ask a control plane too, one request an entity.
    #[arg(long)]
    pub online: bool,
    /// Form of the output.
    #[arg(short, long, value_enum, default_value = "table")]
    pub output: Output,
    #[command(flatten)]
    pub connect: ConnectArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl dump > kong.yaml                   everything, without defaults
  gwctl dump --from http://kong.example:8001 -w kong.yaml
  gwctl dump --select-tag team-a --no-ids  what one team owns, to use elsewhere
  gwctl dump --format deck -o json         for decK

Keys and passwords are part of a dump.")]
pub struct DumpArgs {
    /// Address of the Admin API of a gwctl or Kong; the same as --addr.
    #[arg(long, value_name = "URL")]
    pub from: Option<String>,
    /// Dialect of the file.
    #[arg(long, value_enum, default_value = "kong")]
    pub format: DialectChoice,
    /// Write fields that stand at their default too.
    #[arg(long)]
    pub defaults: bool,
    /// Leave ids out where names and places say enough.
    #[arg(long)]
    pub no_ids: bool,
    /// Only records with this tag; several must all be there.
    #[arg(long = "select-tag", value_name = "TAG")]
    pub select_tags: Vec<String>,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub connect: ConnectArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl convert -f deck.yaml --to kong  for POST /config and declarative_config
  gwctl convert -f kong-2.yaml --to kong -w kong.yaml
      formats 1.1 and 2.1 to 3.0
  gwctl convert -f kong.yaml --to deck  for decK

Values stay as written; `gwctl validate` judges them.")]
pub struct ConvertArgs {
    /// Declarative file, folder of such files, or - for stdin; may be repeated.
    #[arg(short = 'f', long = "file", value_name = "FILE", required = true, num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// Dialect to write.
    #[arg(long, value_enum)]
    pub to: DialectChoice,
    #[command(flatten)]
    pub target: TargetArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gwctl top         the fleet, live; ? shows the keys
  gwctl top --addr http://cp.example:8001 --interval 5s
  gwctl top --once  one frame as text")]
pub struct TopArgs {
    /// Print one frame and end; so it is wherever there is no terminal.
    #[arg(long)]
    pub once: bool,
    /// Time between two looks.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    pub interval: Duration,
    /// A line above the keys, for whoever starts it as a child.
    #[arg(long, value_name = "TEXT", hide = true)]
    pub note: Option<String>,
    #[command(flatten)]
    pub look: LookArgs,
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// A positive duration with a unit; a bare number means seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        other => return Err(format!("unknown unit {other:?}, expected ms, s, m or h")),
    };
    let number: f64 = digits.parse().map_err(|_| "expected a number with a unit, like 10s".to_owned())?;
    let seconds = number * unit;
    if !(0.001..=86_400.0).contains(&seconds) {
        return Err("expected a time between 1ms and 24h".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::duration;
    use std::time::Duration;

    #[test]
    fn durations_have_units_and_bounds() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("5"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        for wrong in ["", "s", "0s", "-1s", "3d", "1e9h", "nan"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}

//! `gwctl completions`, `gwctl man` and `gwctl version`.

use crate::cli::{Cli, CompletionsArgs, ManArgs, Output, VersionArgs};
use crate::failure::Failure;
use clap::CommandFactory;
use serde_json::json;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

/// Version of Kong whose protocols and schemas are spoken.
const KONG: &str = "3.9.1";

pub fn completions(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "gwctl", &mut script);
    let _ = std::io::stdout().write_all(&script);
    Ok(ExitCode::SUCCESS)
}

pub fn man(args: &ManArgs) -> Result<ExitCode, Failure> {
    let failed = |error: std::io::Error| {
        Failure::because(format!("cannot write man pages to {}", args.dir.display()), &error)
            .hint("give a folder that can be written with --dir")
    };
    std::fs::create_dir_all(&args.dir).map_err(failed)?;
    let mut root = Cli::command();
    root.build();
    pages(&root, "gwctl", &args.dir).map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

/// One page for the command and one for each below it: `gwctl-dp-join.1`.
fn pages(command: &clap::Command, name: &str, folder: &Path) -> std::io::Result<()> {
    let page = command.clone().name(name.to_owned()).display_name(name.to_owned());
    let mut text = Vec::new();
    clap_mangen::Man::new(page).date("").render(&mut text)?;
    std::fs::write(folder.join(format!("{name}.1")), text)?;
    for child in command.get_subcommands().filter(|child| child.get_name() != "help" && !child.is_hide_set()) {
        pages(child, &format!("{name}-{}", child.get_name()), folder)?;
    }
    Ok(())
}

pub fn version(args: &VersionArgs) -> Result<ExitCode, Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let facts = json!({ "kind": "version", "version": version, "kong": KONG, "target": std::env::consts::ARCH });
    let text = match args.output {
        Output::Table => format!("gwctl {version} (speaks Kong {KONG})\n"),
        Output::Json => format!("{facts:#}\n"),
        Output::Yaml => gwctl_declarative::to_yaml(&facts),
    };
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

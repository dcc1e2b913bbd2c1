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
    let mut root = without_help(Cli::command());
    root.build();
    pages(&root, "gwctl", &args.dir).map_err(failed)?;
    tell!("wrote the man pages to {}", args.dir.display());
    Ok(ExitCode::SUCCESS)
}

/// Without the command `help`, which has no page.
fn without_help(command: clap::Command) -> clap::Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

/// One page for the command and one for each below it: `gwctl-dp-join.1`.
fn pages(command: &clap::Command, name: &str, folder: &Path) -> std::io::Result<()> {
    std::fs::write(folder.join(format!("{name}.1")), page(command, name)?)?;
    for child in command.get_subcommands().filter(|child| child.get_name() != "help" && !child.is_hide_set()) {
        pages(child, &format!("{name}-{}", child.get_name()), folder)?;
    }
    Ok(())
}

fn page(command: &clap::Command, name: &str) -> std::io::Result<Vec<u8>> {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let page = command.clone().name(name.to_owned()).display_name(name.to_owned()).after_help(None::<&str>);
    let man = clap_mangen::Man::new(page).date("");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.get_subcommands().any(|child| !child.is_hide_set()) {
        man.render_subcommands_section(&mut text)?;
    }
    let after = After::of(&after);
    let mut section = |title: &str, lines: &[String]| {
        if !lines.is_empty() {
            // Preformatted: an example keeps its line.
            let escaped: Vec<String> = lines.iter().map(|line| escaped(line)).collect();
            text.extend(format!(".SH \"{title}\"\n.nf\n{}\n.fi\n", escaped.join("\n")).into_bytes());
        }
    };
    section("NOTES", &after.notes);
    section("EXIT STATUS", &after.codes);
    section("ENVIRONMENT", &environment(command));
    section("FILES", &files(command));
    section("EXAMPLES", &after.examples);
    Ok(text)
}

/// What stands below the options in a help.
#[derive(Default)]
struct After {
    examples: Vec<String>,
    codes: Vec<String>,
    notes: Vec<String>,
}

impl After {
    fn of(text: &str) -> After {
        let mut after = After::default();
        for paragraph in text.split("\n\n").map(str::trim_end).filter(|paragraph| !paragraph.is_empty()) {
            if let Some(examples) = paragraph.strip_prefix("Examples:\n") {
                after.examples.extend(examples.lines().map(|line| line.strip_prefix("  ").unwrap_or(line).to_owned()));
            } else if let Some(codes) = paragraph.strip_prefix("Exit codes: ") {
                let codes = codes.replace('\n', " ");
                after.codes.extend(codes.trim_end_matches('.').split(", ").map(str::to_owned));
            } else {
                after.notes.extend(paragraph.lines().map(str::to_owned));
            }
        }
        if after.codes.is_empty() {
            after.codes = ["0 done", "1 error", "64 wrong usage"].map(str::to_owned).to_vec();
        }
        after
    }
}

/// Variables that the command reads.
fn environment(command: &clap::Command) -> Vec<String> {
    let variable = |argument: &clap::Arg| {
        let name = argument.get_env()?.to_string_lossy().into_owned();
        Some(format!("{name}  the same as --{}", argument.get_long()?))
    };
    let mut lines: Vec<String> = command.get_arguments().filter_map(variable).collect();
    if has(command, "token-file") {
        lines.push("GWCTL_TOKEN  the token itself".to_owned());
    }
    if has(command, "set") {
        lines.push(
            "KONG_<KEY>, GWCTL_<KEY>  any setting; flags win over GWCTL_, that over KONG_, that over the file"
                .to_owned(),
        );
    }
    if has(command, "color") {
        lines.push("NO_COLOR, CLICOLOR, CLICOLOR_FORCE  whether colours are used".to_owned());
    }
    lines
}

fn files(command: &clap::Command) -> Vec<String> {
    let mut lines = Vec::new();
    if has(command, "set") {
        lines.push(
            "$XDG_STATE_HOME/gwctl, ~/.local/state/gwctl  folder of a node where --prefix gives no other".to_owned(),
        );
        lines.push("PREFIX/admin-token  first token of a control plane with admin_auth = token".to_owned());
    }
    lines
}

fn has(command: &clap::Command, long: &str) -> bool {
    command.get_arguments().any(|argument| argument.get_long() == Some(long))
}

/// A line of text in roff.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    // A dot or quote at the start would be a request.
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_examples_line_by_line_and_name_no_page_that_is_not_there() {
        let mut root = without_help(Cli::command());
        root.build();
        let page = String::from_utf8(page(&root, "gwctl").expect("it is written to memory")).expect("it is text");
        let (_, examples) = page.split_once(".SH \"EXAMPLES\"\n.nf\n").expect("it has examples");
        assert!(examples.starts_with("gwctl quickstart ") && examples.ends_with("\n.fi\n"), "{examples}");
        assert!(page.contains("\n64 wrong usage\n") && !page.contains("gwctl\\-help"), "{page}");
    }
}

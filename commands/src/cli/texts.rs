//! What the documents for users say, held against the program: commands parse, settings exist, links lead somewhere.

use super::Cli;
use clap::CommandFactory as _;
use clap::error::ErrorKind;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every document for users with its name, from the root.
fn documents() -> Vec<(String, String)> {
    let below = std::fs::read_dir(root().join("docs")).expect("docs/").flatten();
    let mut names: Vec<String> = below.map(|entry| format!("docs/{}", entry.file_name().to_string_lossy())).collect();
    names.extend(["README.md", "CHANGELOG.md", "ARCHITECTURE.md"].map(str::to_owned));
    let texts = names.into_iter().map(|name| {
        let text = std::fs::read_to_string(root().join(&name)).expect("a document");
        (name, text)
    });
    texts.collect()
}

/// What stands as code: spans between backticks, and the lines of blocks.
fn code(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if let Some(block) = line.strip_prefix("    ").or_else(|| fenced.then_some(line)) {
            found.push(block.trim());
        }
    }
    // Spans may run over the end of a line.
    found.extend(text.split('`').skip(1).step_by(2));
    found
}

/// The words of the command at the beginning of a line of shell.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in line.split_whitespace() {
        if word.starts_with(['#', '|', '>', '&', ';']) || matches!(word, "..." | "2>&1") {
            break;
        }
        let ends = word.ends_with(';');
        words.push(word.trim_matches(['\'', '"', ';']).to_owned());
        if ends {
            break;
        }
    }
    words
}

#[test]
fn every_command_of_the_documents_is_one() {
    let mut count = 0;
    for (name, text) in documents() {
        for line in code(&text).into_iter().filter(|line| line.starts_with("gwctl ")) {
            count += 1;
            let Err(error) = Cli::command().try_get_matches_from(words(line)) else { continue };
            let wrong = [ErrorKind::UnknownArgument, ErrorKind::InvalidSubcommand, ErrorKind::ArgumentConflict];
            assert!(!wrong.contains(&error.kind()), "{name}: {line}\n{error}");
        }
    }
    assert!(count > 60, "{count} commands found");
}

#[test]
fn every_setting_of_the_documents_is_one() {
    let mut count = 0;
    for (name, text) in documents() {
        let spans = code(&text).into_iter().filter_map(|span| span.split_once(" = "));
        let keys = spans
            .map(|(key, _)| key)
            .filter(|key| key.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_'));
        for key in keys.filter(|key| !key.starts_with("nginx_")) {
            count += 1;
            assert!(gwctl_conf::key(key).is_some(), "{name}: `{key} = ...`; {:?}?", gwctl_conf::nearest_key(key));
        }
    }
    assert!(count > 15, "{count} settings found");
}

#[test]
fn every_link_and_script_of_the_documents_leads_to_a_file() {
    let mut count = 0;
    for (name, text) in documents() {
        let folder = root().join(&name).parent().map(Path::to_owned).unwrap_or_default();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        let links = links.filter(|link| !link.is_empty() && !link.contains("://")).map(|link| folder.join(link));
        let scripts = code(&text).into_iter().filter_map(|line| line.split_whitespace().next());
        let scripts = scripts.filter(|word| word.starts_with("scripts/") || word.starts_with("tests/"));
        for path in links.chain(scripts.map(|word| root().join(word))) {
            count += 1;
            assert!(path.exists(), "{name}: {}", path.display());
        }
    }
    assert!(count > 20, "{count} links found");
}

#[test]
fn the_readme_leads_to_every_document() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("README.md");
    for (name, _) in documents().iter().filter(|(name, _)| name != "README.md") {
        assert!(readme.contains(&format!("]({name})")), "{name}");
    }
}

//! Declarative files to one document, and their mistakes as text.

use super::suggestions::suggested;
use crate::failure::Failure;
use gwctl_declarative::{Bundle, Finding, Limits, Mistake, TextForm};
use gwctl_entities::Value;
use serde_json::json;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Mistakes shown in full; of more only the number is told.
const SHOWN: usize = 50;

/// Reads files, folders of `*.yaml`, `*.yml` and `*.json`, and `-` for stdin. All mistakes of all files at once.
pub fn read(paths: &[PathBuf]) -> Result<Bundle, Failure> {
    let bundle = bundle(paths)?.map_err(|findings| refused(&findings))?;
    for warning in &bundle.warnings {
        tell!("warning: {}", gwctl_tui::format::plain(warning));
    }
    Ok(bundle)
}

/// The files, or all their mistakes.
pub fn bundle(paths: &[PathBuf]) -> Result<Result<Bundle, Vec<Finding>>, Failure> {
    let mut files = Vec::new();
    for path in expand(paths)? {
        let name = if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() };
        let text = text(&path, &name)?;
        files.push((name, text));
    }
    Ok(Bundle::read(files, &|name| std::env::var(name).ok(), &Limits::default()))
}

/// Mistakes of the joined document at their places, with what was meant.
pub fn located(bundle: &Bundle, mistakes: &[Mistake]) -> Vec<Finding> {
    let registry = super::connect::registry("traditional_compatible");
    bundle.find(&suggested(&registry, &bundle.document, mistakes))
}

/// The failure that lists mistakes of the joined document.
pub fn mistaken(bundle: &Bundle, mistakes: &[Mistake]) -> Failure {
    refused(&located(bundle, mistakes))
}

/// The failure that lists the mistakes of files.
pub fn refused(findings: &[Finding]) -> Failure {
    let count = findings.len();
    let mut text =
        format!("{count} {} in the files, nothing was sent", if count == 1 { "mistake" } else { "mistakes" });
    for finding in findings.iter().take(SHOWN) {
        text += "\n\n";
        text += &block(finding);
    }
    if count > SHOWN {
        let _ = write!(text, "\n\n... and {} more", count - SHOWN);
    }
    Failure::new(text)
}

/// A mistake with the place it stands at and the line.
pub fn block(finding: &Finding) -> String {
    let plain = gwctl_tui::format::plain;
    let place = match (&finding.file, finding.line, finding.column) {
        (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}"),
        (Some(file), ..) => file.clone(),
        (None, ..) => String::new(),
    };
    let mut text = plain(&finding.message);
    if !finding.object.is_empty() {
        text = format!("{}: {text}", plain(&finding.object));
    }
    if !place.is_empty() {
        let _ = write!(text, "\n  --> {}", plain(&place));
    }
    if let (Some(line), Some((excerpt, at, width))) = (finding.line, &finding.excerpt) {
        let number = line.to_string();
        let gap = " ".repeat(number.len());
        let (space, mark) = (" ".repeat(*at), "^".repeat(*width));
        let _ = write!(text, "\n {gap} |\n {number} | {}\n {gap} | {space}{mark}", plain(excerpt));
    }
    text
}

/// A mistake for programs.
pub fn finding_json(finding: &Finding) -> Value {
    json!({
        "file": finding.file,
        "line": finding.line,
        "column": finding.column,
        "pointer": finding.pointer,
        "object": finding.object,
        "message": finding.message,
    })
}

fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        descend(path, &mut files)?;
        if files.len() == before {
            return Err(Failure::new(format!("no .yaml, .yml or .json file in the folder {}", path.display())));
        }
    }
    Ok(files)
}

/// The files of a folder and of those below it, by name.
fn descend(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let unreadable = |error: std::io::Error| unreadable(&folder.display().to_string(), &error);
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.sort();
    for path in found {
        // Links to folders are not followed: they may lead in circles.
        if path.is_dir() && !path.is_symlink() {
            descend(&path, files)?;
        } else if path.is_file() && TextForm::of_file(&path.display().to_string()).is_some() {
            files.push(path);
        }
    }
    Ok(())
}

fn text(path: &Path, name: &str) -> Result<String, Failure> {
    let read = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    read.map_err(|error| unreadable(name, &error))
}

fn unreadable(name: &str, error: &std::io::Error) -> Failure {
    Failure::because(format!("cannot read {name}"), error).hint("-f takes a file, a folder of files, or - for stdin")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_points_at_its_line() {
        let finding = Finding {
            file: Some("conf/routes.yaml".to_owned()),
            line: Some(48),
            column: Some(7),
            excerpt: Some(("    - nope".to_owned(), 6, 4)),
            pointer: "/routes/0/paths/0".to_owned(),
            object: "routes[0] \"orders\" paths[0]".to_owned(),
            message: "should start with: /".to_owned(),
        };
        let shown = "routes[0] \"orders\" paths[0]: should start with: /\n  --> conf/routes.yaml:48:7\n    |\n 48 |     - nope\n    |       ^^^^";
        assert_eq!(block(&finding), shown);
    }
}

//! `gwctl config show`.

use crate::cli::{Output, ShowArgs};
use crate::failure::Failure;
use crate::settings;
use serde_json::json;
use std::io::Write as _;
use std::process::ExitCode;

pub fn show(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let loaded = settings::read(&args.settings, &[])?;
    for warning in &loaded.warnings {
        tell!("warning: {}", settings::line(warning));
    }
    let rows = loaded.conf.show(args.changed);
    let text = match args.output {
        Output::Table => table(&rows, args.origin),
        Output::Json | Output::Yaml => {
            let items: Vec<_> = rows.iter().map(|row| item(row, args.origin)).collect();
            let document = json!({ "kind": "settings", "version": 1, "items": items });
            match args.output {
                Output::Json => format!("{document:#}\n"),
                _ => gwctl_declarative::to_yaml(&document),
            }
        }
    };
    // A reader that closed the pipe early has what it wanted.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn item(row: &gwctl_conf::Shown, origin: bool) -> serde_json::Value {
    let mut item = json!({ "key": row.key, "value": row.value });
    if origin {
        item["origin"] = row.origin.to_string().into();
    }
    item
}

fn table(rows: &[gwctl_conf::Shown], origin: bool) -> String {
    let width = rows.iter().map(|row| row.key.len()).max().unwrap_or_default();
    let mut text = String::new();
    for row in rows {
        // A line that sets nothing, or that hides what it sets, is a comment: the output is a settings file again.
        let comment = if row.masked || row.value.is_empty() { "# " } else { "" };
        let value = row.value.replace('\n', "\\n").replace('#', "\\#");
        let line = format!("{comment}{:width$} = {value}", row.key);
        text += line.trim_end();
        if origin {
            text += &format!("  # {}", row.origin);
        }
        text.push('\n');
    }
    text
}

//! `gwctl validate`, `gwctl dump` and `gwctl convert`.

use super::apply::{Random, threads};
use super::args::{ConvertArgs, DialectChoice, DumpArgs, FileOutput, TargetArgs, ValidateArgs};
use super::connect::{client, failure, node, registry, run};
use super::progress::Progress;
use super::{current, document};
use crate::cli::Output;
use crate::failure::Failure;
use futures_util::future::join_all;
use gwctl_admin_client::{Client, ClientError};
use gwctl_declarative::{
    Bundle, Dialect, DumpOptions, Finding, LoadOptions, Mistake, MistakeKind, Mode, Written, convert as converted,
    dump as dumped, load_located, records_to_send, to_yaml,
};
use gwctl_entities::{Registry, Value};
use serde_json::json;
use std::fs::{OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::process::ExitCode;

/// Requests on the way at the same time.
const AT_ONCE: usize = 8;

pub fn validate(args: &ValidateArgs) -> Result<ExitCode, Failure> {
    let bundle = match document::bundle(&args.files)? {
        Ok(bundle) => bundle,
        Err(findings) => return report(args, &findings, 0),
    };
    for warning in &bundle.warnings {
        tell!("warning: {}", gwctl_tui::format::plain(warning));
    }
    if !args.online {
        let (findings, count) = judge(&registry("traditional_compatible"), &bundle, args.partial);
        return report(args, &findings, count);
    }
    run(async {
        let client = client(&args.connect)?;
        let node = node(&client).await?;
        let (mut findings, count) = judge(&node.registry, &bundle, args.partial);
        if findings.is_empty() {
            findings = asked(&client, &node.registry, &bundle).await?;
        }
        report(args, &findings, count)
    })
}

/// The mistakes of the files by our schemas, and the number of entities when there are none.
fn judge(registry: &Registry, bundle: &Bundle, partial: bool) -> (Vec<Finding>, usize) {
    let value = Value::Object(bundle.document.clone());
    let options = LoadOptions { threads: threads(), ..LoadOptions::of(Mode::Partial) };
    match load_located(registry, value, &options, &mut Random) {
        Ok(loaded) => (Vec::new(), loaded.tables.iter().map(|table| table.records.len()).sum()),
        Err(refusal) => {
            let mut mistakes = refusal.mistakes;
            if partial {
                mistakes.retain(|mistake| mistake.kind != MistakeKind::Reference);
            }
            (document::located(bundle, &mistakes), 0)
        }
    }
}

/// The mistakes of the files by the schemas of a server.
async fn asked(client: &Client, registry: &Registry, bundle: &Bundle) -> Result<Vec<Finding>, Failure> {
    let sent = records_to_send(registry, &bundle.document, &mut Random);
    let mut mistakes: Vec<Mistake> = Vec::new();
    let mut line = Progress::new();
    for (number, batch) in sent.chunks(AT_ONCE).enumerate() {
        line.say(&format!("{} of {} asked", number * AT_ONCE, sent.len()));
        let asked = batch.iter().map(|record| async move {
            client.post(&format!("/schemas/{}/validate", record.entity), &record.body).await
        });
        for (record, answer) in batch.iter().zip(join_all(asked).await) {
            match answer {
                Ok(_) => {}
                Err(ClientError::PeerRefused { status: 400, refusal, .. }) if !refusal.fields.is_empty() => {
                    mistakes.extend(record.mistakes(&refusal.fields));
                }
                Err(error @ ClientError::PeerRefused { status: 400 | 404, .. }) => {
                    mistakes.push(Mistake::value(record.path.clone(), error.to_string()));
                }
                Err(error) => return Err(failure(&error)),
            }
        }
    }
    line.end();
    Ok(document::located(bundle, &mistakes))
}

fn report(args: &ValidateArgs, findings: &[Finding], count: usize) -> Result<ExitCode, Failure> {
    if args.output != Output::Table {
        let items: Vec<Value> = findings.iter().map(document::finding_json).collect();
        let value = json!({"kind": "findings", "version": 1, "valid": findings.is_empty(), "items": items});
        print(&text_of(args.output == Output::Yaml, &value));
        return Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    if !findings.is_empty() {
        return Err(document::refused(findings));
    }
    print(&format!("valid: {count} {}\n", if count == 1 { "entity" } else { "entities" }));
    Ok(ExitCode::SUCCESS)
}

pub fn dump(args: &DumpArgs) -> Result<ExitCode, Failure> {
    let mut connect = args.connect.clone();
    if let Some(from) = &args.from {
        connect.addr.clone_from(from);
    }
    let options = DumpOptions {
        dialect: dialect(args.format),
        defaults: args.defaults,
        without_ids: args.no_ids,
        select_tags: args.select_tags.clone(),
    };
    run(async {
        let client = client(&connect)?;
        let node = node(&client).await?;
        let mut line = Progress::new();
        let tables =
            current::tables(&client, &node.registry, &mut |rows| line.say(&format!("read {rows} records"))).await?;
        line.end();
        write(&dumped(&node.registry, &tables, &options, &mut Random), &args.target)
    })
}

pub fn convert(args: &ConvertArgs) -> Result<ExitCode, Failure> {
    let bundle = document::read(&args.files)?;
    let registry = registry("traditional_compatible");
    let written =
        converted(&registry, &bundle, dialect(args.to)).map_err(|mistakes| document::mistaken(&bundle, &mistakes))?;
    write(&written, &args.target)
}

fn dialect(choice: DialectChoice) -> Dialect {
    match choice {
        DialectChoice::Kong => Dialect::Kong,
        DialectChoice::Deck => Dialect::Deck,
    }
}

fn text_of(yaml: bool, value: &Value) -> String {
    if yaml { to_yaml(value) } else { format!("{value:#}\n") }
}

fn print(text: &str) {
    // A reader that closed the pipe early has what it wanted.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Writes the document to stdout or, for its owner only, to a file.
fn write(written: &Written, target: &TargetArgs) -> Result<ExitCode, Failure> {
    for warning in &written.warnings {
        tell!("warning: {}", gwctl_tui::format::plain(warning));
    }
    let text = text_of(target.output == FileOutput::Yaml, &Value::Object(written.document.clone()));
    if let Some(path) = &target.write {
        let failed = |error: std::io::Error| Failure::because(format!("cannot write {}", path.display()), &error);
        let mut options = OpenOptions::new();
        options.write(true).mode(0o600);
        if target.force {
            options.create(true).truncate(true)
        } else {
            options.create_new(true)
        };
        let mut file = options.open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Failure::new(format!("{} is there already", path.display())).hint("--force replaces it")
            }
            _ => failed(error),
        })?;
        // A file that is replaced may have been open to all.
        file.set_permissions(Permissions::from_mode(0o600)).map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        tell!("wrote {} (mode 600)", path.display());
    } else {
        print(&text);
    }
    if written.secrets > 0 {
        let what = if written.secrets == 1 { "1 secret" } else { &format!("{} secrets", written.secrets) };
        tell!("note: it holds {what} in clear text: keep it private");
    }
    Ok(ExitCode::SUCCESS)
}

//! `gwctl certs init` and `gwctl certs show`.

use super::args::{InitArgs, ShowCertificateArgs};
use super::table::table;
use crate::cli::Output;
use crate::failure::{CHECK_FAILED, Failure, USAGE};
use gwctl_certs::{Authority, CertError, Facts, PemPair, Source, cluster_pair, read_certificates};
use serde_json::json;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// A file to write: name, text, whether others may read it.
type NewFile = (&'static str, String, bool);

pub fn init(args: &InitArgs) -> Result<ExitCode, Failure> {
    let files = if args.pki { authority_files(args)? } else { pair("cluster.crt", "cluster.key", shared(args)?) };
    let folder = if args.dir == Path::new(".") { "the current folder".into() } else { args.dir.to_string_lossy() };
    let unwritable = |error: std::io::Error| {
        Failure::because(format!("cannot write the certificates to {folder}"), &error)
            .hint("give a folder that can be written with --dir")
    };
    std::fs::create_dir_all(&args.dir).map_err(unwritable)?;
    refuse_existing(args, &files)?;
    for (name, text, public) in &files {
        let path = args.dir.join(name);
        write(&path, text, *public, args.force).map_err(unwritable)?;
        println(&format!(
            "{}  {}",
            path.display(),
            if *public { "certificate" } else { "private key, keep it secret" }
        ));
    }
    if args.pki && args.names.is_empty() {
        tell!("\nthe control plane's certificate is valid for localhost only: --name HOST makes it valid elsewhere");
    }
    crate::terminal::show(&next_command(args));
    Ok(ExitCode::SUCCESS)
}

fn shared(args: &InitArgs) -> Result<PemPair, Failure> {
    cluster_pair(now(), args.days).map_err(|error| cannot_make(&error))
}

fn pair(certificate: &'static str, key: &'static str, pair: PemPair) -> Vec<NewFile> {
    vec![(certificate, pair.certificate, true), (key, pair.key, false)]
}

/// An authority, and a certificate of each role.
fn authority_files(args: &InitArgs) -> Result<Vec<NewFile>, Failure> {
    let names = if args.names.is_empty() { vec!["localhost".to_owned()] } else { args.names.clone() };
    let make = || -> Result<Vec<NewFile>, CertError> {
        let (authority, own) = Authority::create("gwctl cluster authority", now(), args.days)?;
        let mut files = pair("ca.crt", "ca.key", own);
        files.extend(pair("cp.crt", "cp.key", authority.issue_control_plane(&names, now(), args.days)?));
        files.extend(pair("dp.crt", "dp.key", authority.issue_data_plane("data-plane", now(), args.days)?));
        Ok(files)
    };
    make().map_err(|error| cannot_make(&error))
}

fn cannot_make(error: &CertError) -> Failure {
    let failure = Failure::because("cannot make the certificates", error);
    match error {
        CertError::InputName { .. } => failure.hint("--name takes host names and IP addresses").code(USAGE),
        _ => failure,
    }
}

/// All files that are in the way at once, before anything is written.
fn refuse_existing(args: &InitArgs, files: &[NewFile]) -> Result<(), Failure> {
    let there: Vec<String> = files
        .iter()
        .map(|(name, ..)| args.dir.join(name))
        .filter(|path| path.symlink_metadata().is_ok())
        .map(|path| path.display().to_string())
        .collect();
    if there.is_empty() || args.force {
        return Ok(());
    }
    Err(Failure::new(format!("there already: {}", there.join(", ")))
        .hint("nodes that use them no longer trust each other once they change; --force replaces them"))
}

/// A new file with its mode from the start: a key is never readable by others, not even for a moment.
fn write(path: &Path, text: &str, public: bool, replace: bool) -> std::io::Result<()> {
    if replace {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let mode = if public { 0o644 } else { 0o600 };
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn next_command(args: &InitArgs) -> String {
    let at = |name: &str| args.dir.join(name).display().to_string();
    if !args.pki {
        return format!(
            "\nnext: gwctl cp start --set cluster_cert={crt} --set cluster_cert_key={key}\n\
             then: gwctl dp join HOST:8005 --cluster-cert {crt} --cluster-key {key}\n",
            crt = at("cluster.crt"),
            key = at("cluster.key")
        );
    }
    let name = args.names.first().map_or("localhost", String::as_str);
    format!(
        "\nnext: gwctl cp start --set cluster_mtls=pki --set cluster_ca_cert={ca} \
         --set cluster_cert={cp} --set cluster_cert_key={cp_key}\n\
         then: gwctl dp join {name}:8005 --cluster-cert {dp} --cluster-key {dp_key} \
         --set cluster_mtls=pki --set cluster_ca_cert={ca} --set cluster_server_name={name}\n",
        ca = at("ca.crt"),
        cp = at("cp.crt"),
        cp_key = at("cp.key"),
        dp = at("dp.crt"),
        dp_key = at("dp.key")
    )
}

pub fn show(args: &ShowCertificateArgs) -> Result<ExitCode, Failure> {
    let mut found: Vec<(String, Facts)> = Vec::new();
    for file in &args.files {
        let place = file.display().to_string();
        found.extend(read(file, &place)?.into_iter().map(|facts| (place.clone(), facts)));
    }
    let text = match args.output {
        Output::Table => found.iter().map(|(file, facts)| facts_text(file, facts)).collect::<Vec<_>>().join("\n"),
        output => {
            let items: Vec<_> = found.iter().map(|(file, facts)| facts_json(file, facts)).collect();
            let document = json!({ "kind": "certificates", "version": 1, "items": items });
            if output == Output::Json { format!("{document:#}\n") } else { gwctl_declarative::to_yaml(&document) }
        }
    };
    let _ = std::io::stdout().write_all(text.as_bytes());
    let expired: Vec<&str> =
        found.iter().filter(|(_, facts)| days_left(facts) < 0).map(|(file, _)| file.as_str()).collect();
    if expired.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(Failure::new(format!("expired: {}", expired.join(", "))).code(CHECK_FAILED))
}

fn read(file: &Path, place: &str) -> Result<Vec<Facts>, Failure> {
    let unreadable = |error: &dyn std::error::Error| {
        Failure::because(format!("cannot read {place}"), error).hint("give files with certificates in PEM")
    };
    let pem = std::fs::read_to_string(file).map_err(|error| unreadable(&error))?;
    let source = Source { setting: "certificate", place, pem: &pem };
    let certificates = read_certificates(source).map_err(|error| unreadable(&error))?;
    let facts: Result<Vec<Facts>, CertError> = certificates.iter().map(|der| Facts::read(der)).collect();
    facts.map_err(|error| unreadable(&error))
}

/// `2026-11-30 01:02:03 UTC` of seconds since 1970.
fn date(seconds: i64) -> String {
    let [year, month, day, hour, minute, second] = super::clock::calendar(seconds);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

fn days_left(facts: &Facts) -> i64 {
    (facts.not_after - i64::try_from(now()).unwrap_or(i64::MAX)).div_euclid(86_400)
}

fn facts_text(file: &str, facts: &Facts) -> String {
    let days = days_left(facts);
    let left = if days < 0 { format!("expired {} days ago", -days) } else { format!("{days} days left") };
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let rows = [
        row("file", file.to_owned()),
        row("issuer", facts.issuer.clone()),
        row("names", facts.names.join(", ")),
        row("from", date(facts.not_before)),
        row("until", format!("{}, {left}", date(facts.not_after))),
        row("authority", if facts.authority { "yes" } else { "no" }.to_owned()),
        row("X.509", format!("version {}", facts.version)),
        row("serial", facts.serial.clone()),
        row("sha256", facts.fingerprint()),
    ];
    table(&["subject", &facts.subject], &rows)
}

fn facts_json(file: &str, facts: &Facts) -> serde_json::Value {
    json!({
        "file": file,
        "subject": facts.subject,
        "issuer": facts.issuer,
        "names": facts.names,
        "not_before": facts.not_before,
        "not_after": facts.not_after,
        "days_left": days_left(facts),
        "authority": facts.authority,
        "x509_version": facts.version,
        "serial": facts.serial,
        "sha256": facts.fingerprint(),
    })
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn println(text: &str) {
    // A reader that closed the pipe early has what it wanted.
    let _ = writeln!(std::io::stdout(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(1_709_164_799), "2024-02-28 23:59:59 UTC");
        assert_eq!(date(1_709_164_800), "2024-02-29 00:00:00 UTC");
        assert_eq!(date(-1), "1969-12-31 23:59:59 UTC");
    }
}

//! From the command line to the settings of a node.

use crate::cli::SettingsArgs;
use crate::failure::Failure;
use gwctl_conf::{ConfigError, Flag, Loaded, Materials, NodeConf, Problem, Sources, load};
use std::fmt::Write as _;
use std::path::Path;

/// Reads file, environment and flags. `fixed` are settings that the command itself decides.
pub fn read(args: &SettingsArgs, fixed: &[(&str, &str)]) -> Result<Loaded, Failure> {
    let name = args.conf.as_ref().map(|path| path.display().to_string());
    let text = match (&args.conf, &name) {
        (Some(path), Some(name)) => Some(read_file(path, name)?),
        _ => None,
    };
    let environment: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let flags = flags(args, fixed)?;
    let file = name.as_deref().zip(text.as_deref());
    load(&Sources { file, environment: &environment, flags: &flags }).map_err(|error| mistakes(&error))
}

/// Reads the certificates and keys that the settings name.
pub fn materials(conf: &NodeConf) -> Result<Materials, Failure> {
    conf.read_materials(&|path| std::fs::read_to_string(path)).map_err(|error| mistakes(&error))
}

fn read_file(path: &Path, name: &str) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::because(format!("cannot read the settings file {name}"), &error)
            .hint("give the path of a file in the form of kong.conf with -c")
    })
}

fn flags(args: &SettingsArgs, fixed: &[(&str, &str)]) -> Result<Vec<Flag>, Failure> {
    let flag = |flag: &str, key: &str, value: &str| Flag { flag: flag.into(), key: key.into(), value: value.into() };
    let mut flags: Vec<Flag> = args.prefix.iter().map(|prefix| flag("--prefix", "prefix", prefix)).collect();
    for pair in &args.set {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            Failure::new(format!("--set {pair}: expected KEY=VALUE"))
                .hint("for example --set admin_listen=127.0.0.1:9001")
                .code(crate::failure::USAGE)
        })?;
        known(key.trim(), pair)?;
        flags.push(flag("--set", key.trim(), value.trim()));
    }
    flags.extend(fixed.iter().map(|(key, value)| flag("command", key, value)));
    Ok(flags)
}

/// Directives of nginx are accepted, and anything in a file or the environment; a flag with a slip is wrong usage.
fn known(key: &str, pair: &str) -> Result<(), Failure> {
    if gwctl_conf::key(key).is_some() || key.starts_with("nginx_") {
        return Ok(());
    }
    // The value may be a secret.
    let failure = Failure::new(format!("--set {}: unknown setting", pair.split('=').next().unwrap_or_default()));
    let hint = match gwctl_conf::nearest_key(key) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`gwctl config show` lists every setting".to_owned(),
    };
    Err(failure.hint(hint).code(crate::failure::USAGE))
}

fn mistakes(error: &ConfigError) -> Failure {
    let count = error.problems.len();
    let mut text = format!("{count} {} in the settings", if count == 1 { "mistake" } else { "mistakes" });
    for problem in &error.problems {
        let _ = write!(text, "\n  {}", line(problem));
    }
    Failure::new(text).hint("`gwctl config show --origin` prints every setting and where it comes from")
}

/// One problem on a line: key, value, origin, fault, hint.
pub fn line(problem: &Problem) -> String {
    problem.to_string()
}

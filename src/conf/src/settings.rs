//! Sources of settings, laid over each other.

use std::collections::BTreeMap;
use std::fmt;

use crate::keys::{KEYS, Key, Kind, key};
use crate::near::did_you_mean;
use crate::node::NodeConf;
use crate::problem::{ConfigError, Origin, Problem};
use crate::value::{self, Value};

/// Variables that begin with `GWCTL_` and are read by the command line tool, not by a node.
const TOOL_VARIABLES: &[&str] =
    &["addr", "context", "config_dir", "token", "token_file", "cacert", "conf", "prefix_dir", "log", "color", "output"];

/// Names that later versions of Kong gave to settings, and the names of the same settings here.
const RENAMED: &[(&str, &str)] = &[("cluster_rpc_sync", "cluster_incremental_sync")];

/// Directives that mean the same where they are injected into the server block (`nginx_proxy_...`); they come before those of
/// the http block (`nginx_http_...`), as in nginx.
const DIRECTIVES: &[&str] = &[
    "client_body_buffer_size",
    "client_body_timeout",
    "client_header_timeout",
    "client_max_body_size",
    "keepalive_requests",
    "keepalive_timeout",
    "large_client_header_buffers",
    "send_timeout",
];

/// A setting given on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// The flag as written, with its dashes.
    pub flag: String,
    /// Key it sets.
    pub key: String,
    /// Text of the value.
    pub value: String,
}

/// Everything settings are read from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sources<'a> {
    /// Name and text of the configuration file.
    pub file: Option<(&'a str, &'a str)>,
    /// The whole environment; other variables are passed over.
    pub environment: &'a [(String, String)],
    /// Settings from the command line, the last one counts.
    pub flags: &'a [Flag],
}

/// A configuration without mistakes, and what is doubtful about it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings.
    pub conf: NodeConf,
    /// Doubts to be logged: unknown keys, keys without effect, corrected combinations.
    pub warnings: Vec<Problem>,
}

/// One key in force.
#[derive(Clone, PartialEq)]
pub(crate) struct Setting {
    pub(crate) text: String,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// All keys in force, by name.
#[derive(Clone, Default)]
pub(crate) struct Settings {
    pub(crate) rows: BTreeMap<String, Setting>,
}

impl fmt::Debug for Settings {
    /// Names only, as values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.rows.keys()).finish()
    }
}

/// Reads all sources; fails with every mistake of them all.
///
/// # Errors
/// [`ConfigError`] with the mistakes of the file by line, then those of variables, flags and combinations.
pub fn load(sources: &Sources<'_>) -> Result<Loaded, ConfigError> {
    let mut reader = Reader::default();
    reader.defaults(sources.environment);
    reader.file(sources);
    reader.environment(sources.environment, "KONG_");
    reader.environment(sources.environment, "GWCTL_");
    reader.flags(sources.flags);
    reader.vault_references(sources.environment);
    reader.server_block();
    reader.values();
    reader.without_effect();
    let Reader { settings, mut problems, mut warnings } = reader;
    let mut conf = NodeConf::build(settings, &mut problems);
    crate::check::combinations(&mut conf, &mut problems, &mut warnings);
    problems.sort_by_key(|problem| problem.origin.rank());
    if problems.is_empty() { Ok(Loaded { conf, warnings }) } else { Err(ConfigError { problems }) }
}

#[derive(Default)]
struct Reader {
    settings: Settings,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Reader {
    fn defaults(&mut self, environment: &[(String, String)]) {
        for key in KEYS {
            self.put(key.name, key.default.into(), Origin::Default);
        }
        let variable =
            |name| environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.trim_end_matches('/'));
        let home = variable("HOME").filter(|home| !matches!(*home, "" | "/root" | "/nonexistent"));
        let state = variable("XDG_STATE_HOME").filter(|folder| folder.starts_with('/')).map(Into::into);
        if let Some(state) = home.map(|home| state.unwrap_or_else(|| format!("{home}/.local/state"))) {
            self.put("prefix", format!("{state}/gwctl"), Origin::Default);
        }
    }

    fn file(&mut self, sources: &Sources<'_>) {
        let Some((name, text)) = sources.file else { return };
        let mut lines: BTreeMap<String, usize> = BTreeMap::new();
        for entry in crate::text::parse(name, text, &mut self.problems) {
            let origin = Origin::File { name: name.into(), line: entry.line };
            if let Some(line) = lines.insert(entry.key.clone(), entry.line) {
                let fault = format!("set before in line {line}; the last one counts");
                self.warnings.push(Problem::new(&entry.key, None, &origin, fault));
            }
            self.set(&entry.key, entry.value, origin, true);
        }
    }

    fn environment(&mut self, environment: &[(String, String)], prefix: &str) {
        let mut variables: Vec<_> = environment.iter().filter(|(name, _)| name.starts_with(prefix)).collect();
        variables.sort();
        for (name, value) in variables {
            let key = name[prefix.len()..].to_lowercase();
            let tool = prefix == "GWCTL_" && TOOL_VARIABLES.contains(&key.as_str());
            self.set(&key, value.trim().to_owned(), Origin::Variable(name.clone()), !tool);
        }
    }

    fn flags(&mut self, flags: &[Flag]) {
        for flag in flags {
            self.set(&flag.key, flag.value.clone(), Origin::Flag(flag.flag.clone()), true);
        }
    }

    fn set(&mut self, name: &str, text: String, origin: Origin, warn: bool) {
        let renamed = RENAMED.iter().find(|(newer, _)| *newer == name);
        let name = renamed.map_or(name, |(_, ours)| *ours);
        let known = key(name);
        if known.is_some() || name.starts_with("nginx_") {
            // An empty text means unset, whatever weaker sources say.
            match known.filter(|_| text.is_empty()) {
                Some(key) => self.put(name, key.default.into(), Origin::Default),
                None => self.put(name, text, origin),
            }
        } else if warn {
            let mut warning = Problem::new(name, None, &origin, "unknown setting, passed over");
            warning.hint = did_you_mean(name, KEYS.iter().map(|key| key.name));
            self.warnings.push(warning);
        }
    }

    fn put(&mut self, name: &str, text: String, origin: Origin) {
        self.settings.rows.insert(name.into(), Setting { text, value: Value::Unset, origin });
    }

    /// Replaces `{vault://env/name}` by the variable NAME, as Kong does at its start.
    fn vault_references(&mut self, environment: &[(String, String)]) {
        for (name, setting) in &mut self.settings.rows {
            let Some(reference) = setting.text.strip_prefix("{vault://").and_then(|text| text.strip_suffix('}')) else {
                continue;
            };
            let Some(variable) = reference.strip_prefix("env/").map(|name| name.to_uppercase().replace('-', "_"))
            else {
                let fault = "only the vault `env` can be read before the node runs";
                self.problems.push(Problem::new(name, Some(&setting.text), &setting.origin, fault));
                continue;
            };
            match environment.iter().find(|(name, _)| *name == variable) {
                Some((_, value)) => setting.text = value.clone(),
                None => {
                    let fault = format!("the environment has no variable {variable}");
                    self.problems.push(Problem::new(name, Some(&setting.text), &setting.origin, fault));
                }
            }
        }
    }

    /// Directives of the server block take the place of those of the http block.
    fn server_block(&mut self) {
        for directive in DIRECTIVES {
            if let Some(row) = self.settings.rows.get(&format!("nginx_proxy_{directive}")) {
                let (text, origin) = (row.text.clone(), row.origin.clone());
                self.put(&format!("nginx_http_{directive}"), text, origin);
            }
        }
    }

    fn values(&mut self) {
        let rows = &mut self.settings.rows;
        for key in KEYS {
            let Some(setting) = rows.get_mut(key.name) else { continue };
            let (text, origin) = (setting.text.clone(), setting.origin.clone());
            setting.value = value::parse(key.kind, &text).unwrap_or_else(|fault| {
                self.problems.push(Problem::new(key.name, Some(&text), &origin, fault));
                value::parse(key.kind, key.default).unwrap_or(Value::Unset)
            });
            if key.kind == Kind::Flag && !matches!(text.trim(), "on" | "off" | "true" | "false" | "") {
                let warning = Problem::new(key.name, Some(&text), &origin, "neither on nor off, read as off");
                self.warnings.push(warning);
            }
        }
        for (_, setting) in rows.iter_mut().filter(|(name, _)| key(name).is_none()) {
            setting.value = Value::Text(setting.text.clone());
        }
    }

    /// One warning for all keys that are set and mean nothing to gwctl.
    fn without_effect(&mut self) {
        let injected = |name: &str| name.strip_prefix("nginx_proxy_").is_some_and(|name| DIRECTIVES.contains(&name));
        let used = |name: &str| injected(name) || key(name).is_some_and(|key: &Key| key.roles.used);
        let idle: Vec<_> =
            self.settings.rows.iter().filter(|(name, row)| row.origin != Origin::Default && !used(name)).collect();
        if let Some((_, first)) = idle.first() {
            let names: Vec<&str> = idle.iter().map(|(name, _)| name.as_str()).collect();
            let fault = "known to Kong and accepted, without effect in gwctl";
            self.warnings.push(Problem::new(&names.join(", "), None, &first.origin, fault));
        }
    }
}

/// Values by key. The kind of a key is fixed by the table, so a value of another kind is read as unset.
impl Settings {
    pub(crate) fn flag(&self, key: &str) -> bool {
        matches!(self.rows.get(key), Some(Setting { value: Value::Flag(true), .. }))
    }

    pub(crate) fn number(&self, key: &str) -> f64 {
        match self.rows.get(key) {
            Some(Setting { value: Value::Number(number), .. }) => *number,
            _ => 0.0,
        }
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.rows.get(key) {
            Some(Setting { value: Value::Text(text), .. }) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn list(&self, key: &str) -> &[String] {
        match self.rows.get(key) {
            Some(Setting { value: Value::List(items), .. }) => items,
            _ => &[],
        }
    }

    pub(crate) fn origin(&self, key: &str) -> &Origin {
        self.rows.get(key).map_or(&Origin::Default, |setting| &setting.origin)
    }

    pub(crate) fn problem(&self, key: &str, fault: impl Into<String>) -> Problem {
        let text = self.rows.get(key).map(|setting| setting.text.as_str()).filter(|text| !text.is_empty());
        Problem::new(key, text, self.origin(key), fault)
    }
}

//! What is wrong with a setting, and where it came from.

use std::fmt;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The table of keys, or a rule documented there.
    Default,
    /// A line of the configuration file.
    File {
        /// Name of the file as given.
        name: String,
        /// Line, counted from 1.
        line: usize,
    },
    /// An environment variable, by its full name.
    Variable(String),
    /// A command line flag, with its dashes.
    Flag(String),
    /// Corrected because of another setting, named here.
    Corrected(&'static str),
}

impl Origin {
    /// Order of mistakes: by line of the file, then the other sources.
    pub(crate) fn rank(&self) -> (u8, usize) {
        match self {
            Self::File { line, .. } => (0, *line),
            Self::Variable(_) => (1, 0),
            Self::Flag(_) => (2, 0),
            Self::Default | Self::Corrected(_) => (3, 0),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { name, line } => write!(f, "{name}:{line}"),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
            Self::Corrected(key) => write!(f, "because of {key}"),
        }
    }
}

/// One mistake or doubt. It never holds the value of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Key, or the text that stands where a key should be.
    pub key: String,
    /// Text of the value, masked if the key is a secret; `None` where no single value is at fault.
    pub value: Option<String>,
    /// Where the value came from.
    pub origin: Origin,
    /// What is wrong, without a period.
    pub fault: String,
    /// What to try.
    pub hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(key: &str, value: Option<&str>, origin: &Origin, fault: impl Into<String>) -> Self {
        let value =
            value.map(|value| if crate::key(key).is_some_and(|key| key.kind.secret()) { "******" } else { value });
        Self { key: key.into(), value: value.map(Into::into), origin: origin.clone(), fault: fault.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)?;
        if let Some(value) = &self.value {
            write!(f, " = {}", shortened(value))?;
        }
        write!(f, " ({}): {}", self.origin, self.fault)?;
        self.hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}

/// One line of at most 80 characters, as a value may be a whole file.
fn shortened(value: &str) -> String {
    let line = value.lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(80).collect();
    if short.len() < value.trim_end().len() {
        short.push('…');
    }
    short
}

/// Every mistake of the settings, those of the file first, by line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// The mistakes; never empty.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.problems.len();
        write!(f, "{count} mistake{} in the settings", if count == 1 { "" } else { "s" })?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

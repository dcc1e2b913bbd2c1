//! How a command ends when it does not succeed.

use std::fmt::Write as _;
use std::process::ExitCode;

/// Exit code of an error.
pub const FAILED: u8 = 1;
/// Exit code of `diff` and `apply --dry-run` when there are differences.
pub const DIFFERS: u8 = 2;
/// Exit code of `apply --wait` when data planes lack the configuration in the end.
pub const NOT_EVERYWHERE: u8 = 3;
/// Exit code when a login is missing or may not do it.
pub const NOT_ALLOWED: u8 = 4;
/// Exit code when a guard refused: somebody else changed the configuration meanwhile, nobody confirmed.
pub const GUARD: u8 = 5;
/// Exit code when a check failed.
pub const CHECK_FAILED: u8 = 6;
/// Exit code when a peer could not be reached: nothing has changed there.
pub const UNREACHABLE: u8 = 69;
/// Exit code after ctrl-c.
pub const INTERRUPTED: u8 = 130;
/// Exit code of wrong usage.
pub const USAGE: u8 = 64;

/// What is printed and returned when a command fails: `error:`, its causes, a hint.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl Failure {
    /// A failure with exit code 1.
    pub fn new(message: impl Into<String>) -> Self {
        Self { code: FAILED, message: message.into(), causes: Vec::new(), hint: None }
    }

    /// A failure with the causes of an error.
    pub fn because(message: impl Into<String>, error: &dyn std::error::Error) -> Self {
        let mut failure = Self::new(message);
        let mut cause = Some(error);
        while let Some(error) = cause {
            let text = error.to_string();
            // Some errors say their source at their own end.
            if !failure.causes.last().is_some_and(|before| before.ends_with(&text)) {
                failure.causes.push(text);
            }
            cause = error.source();
        }
        failure
    }

    /// Says first what failed; the message so far becomes its cause.
    pub fn within(mut self, message: impl Into<String>) -> Self {
        let cause = std::mem::replace(&mut self.message, message.into());
        self.causes.insert(0, cause);
        self
    }

    /// Message and causes on one line, for a log.
    pub fn in_words(&self) -> String {
        let parts = std::iter::once(&self.message).chain(&self.causes);
        parts.map(|part| part.replace("\n  ", "; ")).collect::<Vec<_>>().join(": ")
    }

    /// Sets the exit code.
    pub fn code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    /// Adds what to try.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The text for stderr.
    pub fn text(&self) -> String {
        let mut text = format!("error: {}\n", self.message);
        for cause in &self.causes {
            let _ = writeln!(text, "caused by: {cause}");
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "\nhint: {hint}");
        }
        text
    }

    /// Prints the failure and gives its exit code.
    pub fn report(&self) -> ExitCode {
        crate::terminal::show(&self.text());
        ExitCode::from(self.code)
    }
}

//! Logs to stderr, with a level that can be changed while the node runs.

use super::log_level::State;
use gwctl_data_plane::{Levels, LogLevels};
use std::fmt as text;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt};

/// The level in force and the way to change it.
pub(crate) struct Logging {
    handle: Handle<EnvFilter, Registry>,
    state: Mutex<State>,
}

/// nginx's levels are finer than ours: what lies between is taken up or down to the next that logs no less.
fn filter(level: &str) -> EnvFilter {
    let ours = match level {
        "debug" => "debug,hyper=info,h2=info,rustls=info",
        "info" | "notice" => "info",
        "warn" => "warn",
        "off" => "off",
        _ => "error",
    };
    EnvFilter::new(ours)
}

impl Logging {
    /// Starts logging for the whole process; later calls keep the first.
    pub(crate) fn start(level: &str) -> Self {
        let (layer, handle) = reload::Layer::new(filter(level));
        let lines = fmt::layer()
            .with_writer(std::io::stderr)
            .with_target(false)
            .with_ansi(std::io::stderr().is_terminal())
            .fmt_fields(debug_fn(write_field).delimited(" "));
        let _ = tracing_subscriber::registry().with(layer).with(lines).try_init();
        Self { handle, state: Mutex::new(State::new(level)) }
    }

    pub(crate) fn level(&self) -> String {
        self.state().level().to_owned()
    }

    /// Sets the level for so many seconds (0: for good). To be called on the runtime or a thread of it.
    pub(crate) fn set_level(self: &Arc<Self>, level: &str, seconds: u64) -> Result<(), String> {
        let until = Instant::now().checked_add(Duration::from_secs(seconds)).filter(|_| seconds > 0);
        self.reload(level)?;
        let change = self.state().set(level, until);
        if let Some(until) = until {
            let logging = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep_until(until.into()).await;
                logging.end(change);
            });
        }
        Ok(())
    }

    fn end(&self, change: u64) {
        let own = self.state().end(change).map(str::to_owned);
        if let Some(Err(error)) = own.map(|own| self.reload(&own)) {
            tracing::error!(error, "cannot put the log level back");
        }
    }

    fn reload(&self, level: &str) -> Result<(), String> {
        self.handle.reload(filter(level)).map_err(|error| format!("cannot change the log level: {error}"))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // It holds plain values.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The log as the control plane of a data plane sees it.
pub(crate) struct ClusterLogLevels(pub(crate) Arc<Logging>);

impl LogLevels for ClusterLogLevels {
    fn levels(&self) -> Levels {
        self.0.state().levels(Instant::now())
    }

    fn set(&self, level: &str, seconds: u64) -> Result<(), String> {
        let own = self.0.state().own().to_owned();
        if seconds == 0 || level == own { self.0.set_level(&own, 0) } else { self.0.set_level(level, seconds) }
    }
}

/// A field of a line: the message as it is, everything else as `key=value`. A value is quoted when it would not be one
/// word else, so that lines can be taken apart by programs; control characters are escaped everywhere.
fn write_field(out: &mut Writer<'_>, field: &Field, value: &dyn text::Debug) -> text::Result {
    let shown = format!("{value:?}");
    if field.name() == "message" {
        return shown.chars().try_for_each(|letter| match letter.is_control() {
            true => write!(out, "{}", letter.escape_debug()),
            false => out.write_char(letter),
        });
    }
    write!(out, "{}=", field.name())?;
    // Texts come with quotes around them already, things that show themselves without.
    let text = shown.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).filter(|inner| is_word(inner));
    match text {
        Some(word) => out.write_str(word),
        None if is_word(&shown) || is_quoted(&shown) => out.write_str(&shown),
        None => write!(out, "{shown:?}"),
    }
}

/// Whether a value needs no quotes.
fn is_word(text: &str) -> bool {
    let plain = |letter: char| !(letter.is_whitespace() || letter.is_control() || matches!(letter, '"' | '\\' | '='));
    !text.is_empty() && text.chars().all(plain)
}

/// Whether a text stands in quotes as a whole, those within escaped.
fn is_quoted(text: &str) -> bool {
    let Some(inner) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return false };
    let mut escaped = false;
    let ends_early = inner.chars().any(|letter| {
        let ends = letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        ends || letter.is_control()
    });
    !ends_early && !escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::fmt::MakeWriter;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Kept {
        type Writer = Kept;

        fn make_writer(&self) -> Kept {
            self.clone()
        }
    }

    #[test]
    fn values_that_are_no_single_word_are_quoted() {
        let kept = Kept::default();
        let lines = fmt::layer()
            .with_writer(kept.clone())
            .with_ansi(false)
            .with_target(false)
            .without_time()
            .fmt_fields(debug_fn(write_field).delimited(" "));
        let error = std::io::Error::other("a \"b\"\nc");
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            tracing::info!(port = 80, name = "orders", text = "two words", empty = "", %error, "it\x1b[2J went wrong");
            tracing::info!(pair = "a=b", some = ?Some("x"), path = %"/a\\b", took = ?std::time::Duration::from_millis(5), "done");
        });
        let text = String::from_utf8(kept.0.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap_or_default();
        let expected = "INFO it\\u{1b}[2J went wrong port=80 name=orders text=\"two words\" empty=\"\" \
                        error=\"a \\\"b\\\"\\nc\"\nINFO done pair=\"a=b\" some=\"Some(\\\"x\\\")\" path=\"/a\\\\b\" took=5ms\n";
        assert_eq!(text.replace(" INFO", "INFO"), expected);
    }
}

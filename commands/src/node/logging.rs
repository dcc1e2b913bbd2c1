//! Logs to stderr, with a level that can be changed while the node runs.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt};

/// The level in force and the way to change it.
pub(crate) struct Logging {
    handle: Handle<EnvFilter, Registry>,
    level: Mutex<String>,
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
        let lines =
            fmt::layer().with_writer(std::io::stderr).with_target(false).with_ansi(std::io::stderr().is_terminal());
        let _ = tracing_subscriber::registry().with(layer).with(lines).try_init();
        Self { handle, level: Mutex::new(level.to_owned()) }
    }

    pub(crate) fn level(&self) -> String {
        self.level.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, level: &str) -> Result<(), String> {
        self.handle.reload(filter(level)).map_err(|error| format!("cannot change the log level: {error}"))?;
        level.clone_into(&mut self.level.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}

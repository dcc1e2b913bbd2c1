//! The table of native plugins: a new one is a file in this folder and a line here.

use crate::{Plugin, PluginError, PluginFacts, PluginHost};
use gwctl_entities::{Record, view};
use serde::de::DeserializeOwned;
use std::sync::Arc;

mod arguments;
#[cfg(test)]
mod fixtures;
mod identity;
mod key_auth;
mod rate_limiting;

/// What building a plugin gives.
pub type Built = Result<Arc<dyn Plugin>, PluginError>;

/// A native plugin: its facts and how it is made from its settings.
pub struct Native {
    /// Name in configurations.
    pub name: &'static str,
    /// Higher runs first, in every phase.
    pub priority: i64,
    /// As `GET /` shows it.
    pub version: &'static str,
    /// Reads the `config` record (complete, validated) into the plugin.
    pub build: fn(&Record, &PluginFacts) -> Built,
}

/// By priority.
static NATIVES: &[Native] = &[key_auth::NATIVE, rate_limiting::NATIVE];

/// All native plugins.
pub fn natives() -> &'static [Native] {
    NATIVES
}

/// Reads the settings of a plugin into its own type, once, when it is built.
fn settings<T: DeserializeOwned>(config: &Record) -> Result<T, PluginError> {
    view::from_record(config).map_err(|error| PluginError(format!("cannot read its config: {error}")))
}

/// The native table as a host.
#[derive(Debug, Clone, Copy, Default)]
pub struct Natives;

impl Natives {
    fn find(name: &str) -> Option<&'static Native> {
        natives().iter().find(|native| native.name == name)
    }
}

impl PluginHost for Natives {
    fn priority(&self, name: &str) -> Option<i64> {
        Self::find(name).map(|native| native.priority)
    }

    fn build(&self, name: &str, config: &Record, facts: &PluginFacts) -> Built {
        let native = Self::find(name).ok_or_else(|| PluginError(format!("no native plugin '{name}'")))?;
        (native.build)(config, facts)
    }
}

//! The table of native plugins: a new one is a file in this folder and a line here.

use crate::{Plugin, PluginError, PluginFacts, PluginHost};
use gwctl_entities::{Record, view};
use http::header::{HeaderName, HeaderValue};
use serde::de::DeserializeOwned;
use std::sync::Arc;

mod arguments;
mod correlation_id;
mod cors;
#[cfg(test)]
mod fixtures;
mod form;
mod identity;
mod key_auth;
mod opentelemetry;
mod path;
mod rate_limiting;
mod request_termination;

pub use correlation_id::CorrelationId;

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
static NATIVES: &[Native] = &[
    correlation_id::NATIVE,
    cors::NATIVE,
    key_auth::NATIVE,
    rate_limiting::NATIVE,
    opentelemetry::NATIVE,
    request_termination::NATIVE,
];

/// All native plugins.
pub fn natives() -> &'static [Native] {
    NATIVES
}

/// Reads the settings of a plugin into its own type, once, when it is built.
fn settings<T: DeserializeOwned>(config: &Record) -> Result<T, PluginError> {
    view::from_record(config).map_err(|error| PluginError(format!("cannot read its config: {error}")))
}

/// A text of the settings as the value of a header.
fn header_value(field: &str, text: &str) -> Result<HeaderValue, PluginError> {
    HeaderValue::from_bytes(text.as_bytes())
        .map_err(|_| PluginError(format!("'config.{field}' has characters that no header may have")))
}

/// The headers that answer to a name of the settings, tried in order: as written, if that can be found at all, then
/// with hyphens for underscores. Source: OpenResty, the table of `ngx.req.get_headers`.
fn header_names(name: &str) -> Vec<HeaderName> {
    let lower = name.to_ascii_lowercase();
    let hyphens = lower.replace('_', "-");
    let written = (lower == name && hyphens != name).then_some(lower);
    written.into_iter().chain([hyphens]).filter_map(|name| name.parse().ok()).collect()
}

/// A number as Lua writes it.
fn number(value: f64) -> HeaderValue {
    // Whole numbers of up to 15 digits are exact, and written without the general formatter.
    if (0.0..1e15).contains(&value) && value.fract() == 0.0 {
        return HeaderValue::from(value as u64);
    }
    // Digits, a point and a sign are valid in a header.
    HeaderValue::try_from(value.to_string()).unwrap_or(HeaderValue::from_static("0"))
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

//! What a control plane thinks of a data plane.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Whether a data plane can be sent the configuration, in Kong's names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncStatus {
    /// Not judged yet.
    #[default]
    Unknown,
    /// It is sent every configuration. Whether it applied it shows in its hash.
    Normal,
    /// Its Kong version does not fit the control plane's; it is not served.
    KongVersionIncompatible,
    /// It lacks a plugin that is configured.
    PluginSetIncompatible,
    /// It has a configured plugin in a version that does not fit.
    PluginVersionIncompatible,
    /// It lacks a wasm filter the control plane has.
    FilterSetIncompatible,
}

impl SyncStatus {
    /// The name as stored and shown, for example `plugin_set_incompatible`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Normal => "normal",
            Self::KongVersionIncompatible => "kong_version_incompatible",
            Self::PluginSetIncompatible => "plugin_set_incompatible",
            Self::PluginVersionIncompatible => "plugin_version_incompatible",
            Self::FilterSetIncompatible => "filter_set_incompatible",
        }
    }
}

impl fmt::Display for SyncStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

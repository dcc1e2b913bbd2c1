//! Whether a payload may be sent to a node.

use super::{SyncStatus, Version};
use crate::v1::BasicInfo;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What a payload asks of the nodes it is sent to. Made once for each payload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PayloadProfile {
    /// Plugins that occur in the exported table, with the version the control plane knows.
    pub plugins: BTreeMap<String, Option<String>>,
    /// Wasm filters of the control plane; empty with wasm off.
    pub filters: BTreeSet<String>,
    /// The router flavor is `expressions` and some routes have an expression while others have none.
    pub mixed_routes: bool,
}

/// What came out of the check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The node is sent the payload.
    Fits,
    /// The node lacks a configured plugin.
    PluginMissing {
        /// Its name.
        plugin: String,
        /// The control plane's version of it.
        own: Option<String>,
    },
    /// The node has a configured plugin in a version that does not fit.
    PluginVersion {
        /// Its name.
        plugin: String,
        /// The control plane's version of it.
        own: String,
        /// The node's.
        actual: String,
    },
    /// The node lacks a filter of the control plane.
    FilterMissing {
        /// Its name.
        filter: String,
    },
    /// Routes with and without expressions, which nodes before 3.7.0 cannot serve together.
    MixedRoutes {
        /// The node's version.
        actual: String,
    },
}

impl Verdict {
    /// The status the verdict gives the node. Kong keeps quiet about mixed routes.
    pub fn status(&self) -> SyncStatus {
        match self {
            Self::Fits | Self::MixedRoutes { .. } => SyncStatus::Normal,
            Self::PluginMissing { .. } => SyncStatus::PluginSetIncompatible,
            Self::PluginVersion { .. } => SyncStatus::PluginVersionIncompatible,
            Self::FilterMissing { .. } => SyncStatus::FilterSetIncompatible,
        }
    }

    /// Whether the node is sent the payload.
    pub fn allows_push(&self) -> bool {
        *self == Self::Fits
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fits => formatter.write_str("the configuration fits the data plane"),
            Self::PluginMissing { plugin, own } => {
                let own = own.as_deref().unwrap_or("of unknown version");
                write!(formatter, "configured {plugin} plugin {own} is missing from data plane")
            }
            Self::PluginVersion { plugin, own, actual } => write!(
                formatter,
                "configured data plane {plugin} plugin version {actual} is different to control plane plugin version {own}"
            ),
            Self::FilterMissing { filter } => write!(formatter, "filter {filter} is missing from data plane"),
            Self::MixedRoutes { actual } => write!(
                formatter,
                "routes with and without expressions cannot be sent together to data plane version {actual} (before 3.7.0)"
            ),
        }
    }
}

/// Judges whether a node can be sent a payload; the first thing that does not fit is named.
///
/// Source: Kong 3.9.1 `kong/clustering/compat/init.lua`, `check_configuration_compatibility` and
/// `check_mixed_route_entities`.
pub fn vet(profile: &PayloadProfile, info: &BasicInfo, node_version: &str) -> Verdict {
    let actual: BTreeMap<&str, Option<&str>> =
        info.plugins.iter().map(|plugin| (plugin.name.as_str(), plugin.version.as_deref())).collect();
    for (plugin, own) in &profile.plugins {
        let Some(actual) = actual.get(plugin.as_str()) else {
            return Verdict::PluginMissing { plugin: plugin.clone(), own: own.clone() };
        };
        if let (Some(own), Some(actual)) = (own, actual)
            && !plugin_fits(plugin, own, actual)
        {
            return Verdict::PluginVersion { plugin: plugin.clone(), own: own.clone(), actual: (*actual).to_owned() };
        }
    }
    if let Some(filter) = profile.filters.iter().find(|filter| !info.filters.contains(*filter)) {
        return Verdict::FilterMissing { filter: filter.clone() };
    }
    if profile.mixed_routes && Version::parse(node_version).is_some_and(|node| node < Version::new(3, 7, 0)) {
        return Verdict::MixedRoutes { actual: node_version.to_owned() };
    }
    Verdict::Fits
}

/// Versions that cannot be read fit: plugins are free to have none.
fn plugin_fits(plugin: &str, own: &str, actual: &str) -> bool {
    let (Some(own), Some(actual)) = (Version::parse(own), Version::parse(actual)) else {
        return true;
    };
    // Nodes before the plugin took Kong's version number.
    if plugin == "opentelemetry" && (actual.major(), actual.minor()) == (0, 1) {
        return true;
    }
    own.major() == actual.major() && own.minor() >= actual.minor()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::PluginVersion;

    fn verdict(own: Option<&str>, actual: Option<Option<&str>>, plugin: &str) -> SyncStatus {
        let profile = PayloadProfile {
            plugins: BTreeMap::from([(plugin.to_owned(), own.map(str::to_owned))]),
            ..PayloadProfile::default()
        };
        let plugins =
            actual.map(|version| PluginVersion { name: plugin.to_owned(), version: version.map(str::to_owned) });
        let info = BasicInfo { plugins: plugins.into_iter().collect(), ..BasicInfo::default() };
        vet(&profile, &info, "3.9.1").status()
    }

    #[test]
    fn a_configured_plugin_must_be_there_in_a_version_that_fits() {
        assert_eq!(verdict(Some("3.9.1"), None, "acl"), SyncStatus::PluginSetIncompatible);
        assert_eq!(verdict(Some("3.9.1"), Some(Some("3.9.1")), "acl"), SyncStatus::Normal);
        assert_eq!(verdict(Some("3.9.1"), Some(Some("3.8.0")), "acl"), SyncStatus::Normal);
        assert_eq!(verdict(Some("3.9.1"), Some(Some("3.10.0")), "acl"), SyncStatus::PluginVersionIncompatible);
        assert_eq!(verdict(Some("3.9.1"), Some(Some("2.9.1")), "acl"), SyncStatus::PluginVersionIncompatible);
    }

    #[test]
    fn unknown_versions_and_the_first_opentelemetry_fit() {
        assert_eq!(verdict(None, Some(Some("9.0.0")), "mine"), SyncStatus::Normal);
        assert_eq!(verdict(Some("1.0.0"), Some(None), "mine"), SyncStatus::Normal);
        assert_eq!(verdict(Some("1.0.0"), Some(Some("two")), "mine"), SyncStatus::Normal);
        assert_eq!(verdict(Some("3.9.1"), Some(Some("0.1.0")), "opentelemetry"), SyncStatus::Normal);
        assert_eq!(verdict(Some("3.9.1"), Some(Some("0.1.0")), "acl"), SyncStatus::PluginVersionIncompatible);
    }

    #[test]
    fn every_filter_must_be_there() {
        let profile = PayloadProfile { filters: BTreeSet::from(["f".to_owned()]), ..PayloadProfile::default() };
        let status = |info: &BasicInfo| vet(&profile, info, "3.9.1").status();
        assert_eq!(status(&BasicInfo::default()), SyncStatus::FilterSetIncompatible);
        let info = BasicInfo { filters: profile.filters.clone(), ..BasicInfo::default() };
        assert_eq!(status(&info), SyncStatus::Normal);
    }

    #[test]
    fn mixed_routes_are_withheld_from_nodes_before_3_7_without_a_status() {
        let profile = PayloadProfile { mixed_routes: true, ..PayloadProfile::default() };
        let old = vet(&profile, &BasicInfo::default(), "3.6.1");
        assert!(!old.allows_push());
        assert_eq!(old.status(), SyncStatus::Normal);
        assert!(vet(&profile, &BasicInfo::default(), "3.7.0").allows_push());
    }
}

//! Figures of the store and of the fleet, for Prometheus.

use gwctl_entities::fleet::{Fleet, FleetMember};
use gwctl_lifecycle::Family;
use gwctl_store::Store;

/// One family of figures of data planes: name, help, and the figure of one, if it has it.
type Figure = (&'static str, &'static str, fn(&FleetMember) -> Option<u64>);

/// Names beginning with `kong` are those of Kong 3.9.1, `kong/plugins/prometheus/exporter.lua`.
const FIGURES: [Figure; 8] = [
    ("kong_data_plane_last_seen", "When the data plane was last heard of, Unix seconds.", |member| {
        Some(member.last_seen_millis / 1000)
    }),
    ("kong_data_plane_version_compatible", "1: the data plane can take the configuration.", |member| {
        Some(u64::from(!member.sync_status.ends_with("incompatible")))
    }),
    ("kong_data_plane_cluster_cert_expiry_timestamp", "End of its certificate, Unix seconds.", |member| {
        member.certificate_expires_at
    }),
    ("gwctl_data_plane_connected", "1: a connection to this control plane is open.", |member| {
        Some(u64::from(member.connected))
    }),
    ("gwctl_data_plane_version", "Version of the configuration it serves.", |member| member.applied_version),
    ("gwctl_data_plane_versions_behind", "Versions it is behind the one it is meant to have.", |member| {
        Some(member.target_version?.saturating_sub(member.applied_version?))
    }),
    ("gwctl_data_plane_lag_milliseconds", "How long the oldest change it lacks has been waiting.", |member| {
        member.lag_millis
    }),
    ("gwctl_data_plane_refusing", "1: it refused its last configuration.", |member| {
        Some(u64::from(member.last_error.is_some()))
    }),
];

/// Writes them at the end of `out`; the fleet where there is one.
pub(crate) fn write(out: &mut String, store: &dyn Store, fleet: Option<&Fleet>) {
    let reachable = u64::from(store.read().is_ok());
    Family::gauge(out, "kong_datastore_reachable", "1: the store answers.", &[], reachable);
    Family::gauge(out, "gwctl_store_version", "Number of the last committed change.", &[], store.version());
    let Some(fleet) = fleet else { return };
    for (name, help, figure) in FIGURES {
        let mut family = Family::begin(out, name, "gauge", help);
        for member in &fleet.items {
            if let Some(value) = figure(member) {
                let labels = [("node_id", &*member.id), ("hostname", &*member.hostname), ("ip", &*member.address)];
                family.line("", &labels, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_plane_that_is_behind_and_refuses_shows_both() {
        let member = FleetMember {
            id: "a".to_owned(),
            sync_status: "plugin_set_incompatible".to_owned(),
            applied_version: Some(3),
            target_version: Some(5),
            last_error: Some("bad row".to_owned()),
            ..FleetMember::default()
        };
        let value = |name: &str| FIGURES.iter().find(|figure| figure.0 == name).and_then(|figure| figure.2(&member));
        assert_eq!(value("gwctl_data_plane_versions_behind"), Some(2));
        assert_eq!(value("gwctl_data_plane_refusing"), Some(1));
        assert_eq!(value("kong_data_plane_version_compatible"), Some(0));
        assert_eq!(value("gwctl_data_plane_lag_milliseconds"), None, "not known is not zero");
    }
}

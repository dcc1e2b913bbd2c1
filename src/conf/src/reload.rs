//! What a node that runs can take over from new settings.

use crate::keys::KEYS;
use crate::node::{NodeConf, Role};

/// Settings that a reload puts in force; the others are read at the start only.
const RELOADABLE: &[&str] = &[
    "allow_debug_header",
    "admin_ssl_cert",
    "admin_ssl_cert_key",
    "client_max_body_size",
    "client_ssl",
    "client_ssl_cert",
    "client_ssl_cert_key",
    "cluster_ca_cert",
    "cluster_cert",
    "cluster_cert_key",
    "declarative_config",
    "declarative_config_string",
    "error_template_html",
    "error_template_json",
    "error_template_plain",
    "error_template_xml",
    "headers",
    "headers_upstream",
    "log_level",
    "lua_ssl_trusted_certificate",
    "max_memory",
    "nginx_http_client_body_buffer_size",
    "nginx_http_client_body_timeout",
    "nginx_http_client_header_timeout",
    "nginx_http_client_max_body_size",
    "nginx_http_keepalive_requests",
    "nginx_http_keepalive_timeout",
    "nginx_http_large_client_header_buffers",
    "nginx_http_send_timeout",
    "opentelemetry_tracing",
    "opentelemetry_tracing_sampling_rate",
    "proxy_access_log",
    "proxy_access_log_sample",
    "proxy_max_connections",
    "proxy_stream_access_log",
    "proxy_stream_access_log_sample",
    "real_ip_header",
    "real_ip_recursive",
    "shutdown_fast_grace",
    "shutdown_grace",
    "ssl_cert",
    "ssl_cert_key",
    "ssl_protocols",
    "status_ssl_cert",
    "status_ssl_cert_key",
    "stream_max_udp_sessions",
    "tracing_instrumentations",
    "tracing_sampling_rate",
    "trusted_ips",
    "upstream_keepalive_idle_timeout",
    "upstream_keepalive_max_requests",
    "upstream_keepalive_pool_size",
];

/// Whether a reload puts this setting in force.
pub fn is_reloadable(key: &str) -> bool {
    RELOADABLE.contains(&key)
}

impl NodeConf {
    /// The settings of this role that have other values in `other`, in the order of the table.
    pub fn changed(&self, other: &Self) -> Vec<&'static str> {
        let read = |key: &&crate::Key| match self.role {
            Role::Traditional => key.roles.traditional,
            Role::ControlPlane => key.roles.control_plane,
            Role::DataPlane => key.roles.data_plane,
        };
        let value = |conf: &Self, name: &str| conf.settings.rows.get(name).map(|row| row.value.clone());
        let differs = |key: &&crate::Key| value(self, key.name) != value(other, key.name);
        KEYS.iter().filter(read).filter(differs).map(|key| key.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sources, load};

    #[test]
    fn every_reloadable_setting_is_one() {
        for name in RELOADABLE {
            assert!(crate::key(name).is_some_and(|key| key.roles.used), "{name}");
        }
    }

    #[test]
    fn what_changed_is_told_by_value_and_for_the_role_only() {
        let conf = |text: &str| load(&Sources { file: Some(("kong.conf", text)), ..Sources::default() }).unwrap().conf;
        let before = conf("log_level = info\ntrusted_ips = 10.0.0.0/8,  ::1");
        let after =
            conf("log_level = debug\ntrusted_ips = 10.0.0.0/8, ::1\ncluster_ocsp = on\nrouter_flavor = expressions");
        assert_eq!(before.changed(&after), ["log_level", "router_flavor"]);
        assert!(is_reloadable("log_level") && !is_reloadable("router_flavor"));
    }
}

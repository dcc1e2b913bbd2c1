//! Texts in force to the parts of a [`crate::NodeConf`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::listener::{self, Listener};
use crate::material::Material;
use crate::node::{
    AccessForm, AccessLog, Cluster, Dns, HeaderBuffers, Limits, Logs, Lua, MaxMemory, Mtls, Ocsp, RealIp, Tls, TlsPair,
    Tracing, UpstreamKeepalive, Workers,
};
use crate::problem::{Origin, Problem};
use crate::settings::Settings;
use crate::value::size;

/// Parts of [`NodeConf`].
impl Settings {
    pub(crate) fn string(&self, key: &str) -> String {
        self.text(key).unwrap_or_default().into()
    }

    pub(crate) fn seconds(&self, key: &str) -> Duration {
        Duration::from_secs_f64(self.number(key).max(0.0))
    }

    pub(crate) fn count(&self, key: &str) -> usize {
        self.number(key) as usize
    }

    pub(crate) fn bytes(&self, key: &str) -> u64 {
        // The kind of the key has checked the text.
        self.text(key).and_then(|text| size(text).ok()).unwrap_or_default()
    }

    pub(crate) fn listeners(&self, key: &str) -> Vec<Listener> {
        // The kind of the key has checked the list.
        listener::parse_all(self.list(key)).unwrap_or_default()
    }

    pub(crate) fn material(&self, key: &str) -> Option<Material> {
        self.text(key).map(Material::classify)
    }

    pub(crate) fn materials(&self, key: &str) -> Vec<Material> {
        self.list(key).iter().filter(|text| *text != "system").map(|text| Material::classify(text)).collect()
    }

    pub(crate) fn workers(&self, problems: &mut Vec<Problem>) -> Workers {
        let key = if self.text("nginx_main_worker_processes").is_some() {
            "nginx_main_worker_processes"
        } else {
            "nginx_worker_processes"
        };
        match self.text(key) {
            None | Some("auto") => Workers::Auto,
            Some(text) => match text.parse() {
                Ok(count @ 1..=1024) => Workers::Count(count),
                _ => {
                    problems.push(self.problem(key, "expected `auto` or a number from 1 to 1024"));
                    Workers::Auto
                }
            },
        }
    }

    pub(crate) fn max_memory(&self, problems: &mut Vec<Problem>) -> MaxMemory {
        match self.text("max_memory") {
            None | Some("auto") => MaxMemory::Auto,
            Some("off") => MaxMemory::Off,
            Some(text) => match size(text) {
                Ok(bytes) if bytes > 0 => MaxMemory::Bytes(bytes),
                _ => {
                    problems.push(self.problem("max_memory", "expected `auto`, `off` or a size, such as 512m"));
                    MaxMemory::Auto
                }
            },
        }
    }

    /// A time in the form of nginx: seconds, or a number with `ms`, `s`, `m` or `h`.
    pub(crate) fn time(&self, key: &str, problems: &mut Vec<Problem>) -> Duration {
        self.time_from(1, key, problems)
    }

    /// As `time`, or 0.
    pub(crate) fn time_or_none(&self, key: &str, problems: &mut Vec<Problem>) -> Duration {
        self.time_from(0, key, problems)
    }

    fn time_from(&self, least: u64, key: &str, problems: &mut Vec<Problem>) -> Duration {
        let text = self.text(key).unwrap_or_default();
        let (digits, unit) = text.split_at(text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len()));
        let factor = match unit {
            "ms" => Some(1),
            "" | "s" => Some(1000),
            "m" => Some(60_000),
            "h" => Some(3_600_000),
            _ => None,
        };
        let number = digits.parse::<u64>().ok().filter(|number| (least..=1_000_000_000).contains(number));
        number.zip(factor).map_or_else(
            || {
                problems.push(self.problem(key, "expected a time, such as 60s, 500ms or 2m"));
                Duration::from_secs(60)
            },
            |(number, factor)| Duration::from_millis(number * factor),
        )
    }

    /// Requests of a client's connection.
    pub(crate) fn keepalive_requests(&self, problems: &mut Vec<Problem>) -> u64 {
        let key = "nginx_http_keepalive_requests";
        let number = self.text(key).and_then(|text| text.parse().ok());
        number.unwrap_or_else(|| {
            problems.push(self.problem(key, "expected a whole number of requests"));
            0
        })
    }

    /// Number and size of the buffers for a head.
    pub(crate) fn header_buffers(&self, problems: &mut Vec<Problem>) -> HeaderBuffers {
        let key = "nginx_http_large_client_header_buffers";
        let mut words = self.text(key).unwrap_or_default().split_whitespace();
        let number = words.next().and_then(|text| text.parse::<usize>().ok());
        let size = words.next().and_then(|text| size(text).ok()).and_then(|size| usize::try_from(size).ok());
        // The bounds keep one client from taking the memory of all.
        let fits = |(number, size): &(usize, usize)| {
            (1..=1024).contains(number) && (1024..=1 << 20).contains(size) && number * size <= 16 << 20
        };
        let buffers = number.zip(size).filter(|buffers| words.next().is_none() && fits(buffers));
        let (number, size) = buffers.unwrap_or_else(|| {
            let fault =
                "expected a number from 1 to 1024 and a size from 1k to 1m, such as `4 8k`, 16m together at most";
            problems.push(self.problem(key, fault));
            (4, 8192)
        });
        HeaderBuffers { number, size }
    }

    pub(crate) fn port_maps(&self, problems: &mut Vec<Problem>) -> BTreeMap<u16, u16> {
        let mut maps = BTreeMap::new();
        for item in self.list("port_maps") {
            let ports =
                item.split_once(':').map(|(public, inner)| (public.trim().parse::<u16>(), inner.trim().parse::<u16>()));
            match ports {
                Some((Ok(public @ 1..), Ok(inner @ 1..))) => _ = maps.insert(inner, public),
                _ => problems.push(self.problem("port_maps", format!("`{item}` is not of the form 80:8000"))),
            }
        }
        maps
    }

    pub(crate) fn cluster(&self, problems: &mut Vec<Problem>) -> Cluster {
        Cluster {
            control_plane: self.string("cluster_control_plane"),
            cert: self.material("cluster_cert"),
            cert_key: self.material("cluster_cert_key"),
            ca_cert: self.material("cluster_ca_cert"),
            mtls: Mtls::of(self.text("cluster_mtls"), Mtls::Shared),
            server_name: self.text("cluster_server_name").map(Into::into),
            ocsp: Ocsp::of(self.text("cluster_ocsp"), Ocsp::Off),
            data_plane_purge_delay: self.seconds("cluster_data_plane_purge_delay"),
            max_payload: self.count("cluster_max_payload"),
            use_proxy: self.flag("cluster_use_proxy"),
            dp_labels: crate::check::labels(self, problems),
            rpc: self.flag("cluster_rpc"),
            incremental_sync: self.flag("cluster_incremental_sync"),
            gwctl_sync: self.flag("cluster_gwctl_sync"),
        }
    }

    pub(crate) fn pair(&self, cert: &str, key: &str) -> TlsPair {
        TlsPair { cert: self.materials(cert), key: self.materials(key) }
    }

    pub(crate) fn tls(&self) -> Tls {
        let client = TlsPair {
            cert: self.material("client_ssl_cert").into_iter().collect(),
            key: self.material("client_ssl_cert_key").into_iter().collect(),
        };
        Tls {
            proxy: self.pair("ssl_cert", "ssl_cert_key"),
            admin: self.pair("admin_ssl_cert", "admin_ssl_cert_key"),
            status: self.pair("status_ssl_cert", "status_ssl_cert_key"),
            client: if self.flag("client_ssl") { client } else { TlsPair::default() },
            protocols: self.string("ssl_protocols").split_whitespace().map(Into::into).collect(),
            trusted: self.materials("lua_ssl_trusted_certificate"),
            trust_system: self.list("lua_ssl_trusted_certificate").iter().any(|item| item == "system"),
            verify_depth: self.count("lua_ssl_verify_depth"),
        }
    }

    pub(crate) fn lua(&self) -> Lua {
        Lua {
            package_path: self.string("lua_package_path"),
            package_cpath: self.string("lua_package_cpath"),
            socket_pool_size: self.count("lua_socket_pool_size"),
            untrusted_lua: self.string("untrusted_lua"),
            untrusted_lua_sandbox_requires: self.list("untrusted_lua_sandbox_requires").to_vec(),
            untrusted_lua_sandbox_environment: self.list("untrusted_lua_sandbox_environment").to_vec(),
            max_req_headers: self.count("lua_max_req_headers"),
            max_resp_headers: self.count("lua_max_resp_headers"),
            max_uri_args: self.count("lua_max_uri_args"),
            max_post_args: self.count("lua_max_post_args"),
        }
    }

    pub(crate) fn dns(&self, problems: &mut Vec<Problem>) -> Dns {
        let valid_ttl = self.text("dns_valid_ttl").and_then(|text| match text.parse::<u32>() {
            Ok(seconds) => Some(Duration::from_secs(seconds.into())),
            Err(_) => {
                problems.push(self.problem("dns_valid_ttl", "expected whole seconds"));
                None
            }
        });
        let resolver = [self.list("dns_resolver"), self.list("resolver_address")];
        Dns {
            resolver: resolver.into_iter().find(|list| !list.is_empty()).unwrap_or_default().to_vec(),
            hostsfile: self.string("dns_hostsfile").into(),
            order: self.list("dns_order").to_vec(),
            valid_ttl,
            stale_ttl: self.seconds("dns_stale_ttl"),
            cache_size: self.count("dns_cache_size"),
            not_found_ttl: self.seconds("dns_not_found_ttl"),
            error_ttl: self.seconds("dns_error_ttl"),
        }
    }

    pub(crate) fn tracing(&self, problems: &mut Vec<Problem>) -> Tracing {
        let old = self.list("opentelemetry_tracing");
        let chosen = if old.is_empty() { self.list("tracing_instrumentations") } else { old };
        let rate = self.text("opentelemetry_tracing_sampling_rate").and_then(|text| match text.parse::<f64>() {
            Ok(rate) if (0.0..=1.0).contains(&rate) => Some(rate),
            _ => {
                problems.push(self.problem("opentelemetry_tracing_sampling_rate", "expected a number from 0 to 1"));
                None
            }
        });
        Tracing {
            instrumentations: chosen.iter().filter(|item| *item != "off").cloned().collect(),
            sampling_rate: rate.unwrap_or_else(|| self.number("tracing_sampling_rate")),
        }
    }

    /// `proxy_access_log` and `proxy_stream_access_log`: a path and, behind it, the form of a line. Kong's default, a
    /// file below the prefix, means none here: lines are only written where somebody asked for them.
    fn access_log(&self, key: &str, prefix: &Path, problems: &mut Vec<Problem>) -> Option<AccessLog> {
        let of_streams = key == "proxy_stream_access_log";
        let text = self.text(key).unwrap_or_default();
        let (path, form) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let form = match form.trim() {
            "basic" if of_streams => AccessForm::Basic,
            "" | "basic" | "combined" => AccessForm::Combined,
            "json" => AccessForm::Json,
            _ => {
                let forms = if of_streams { "`basic`, `combined` or `json`" } else { "`combined` or `json`" };
                problems.push(self.problem(key, format!("expected a path, then {forms}")));
                return None;
            }
        };
        let none = matches!(path, "" | "off" | "/dev/null") || *self.origin(key) == Origin::Default;
        let sample = self.number(&format!("{key}_sample"));
        (!none).then(|| AccessLog { path: prefix.join(path), form, sample })
    }

    pub(crate) fn logs(&self, prefix: &Path, problems: &mut Vec<Problem>) -> Logs {
        Logs {
            proxy_access: self.access_log("proxy_access_log", prefix, problems),
            proxy_stream_access: self.access_log("proxy_stream_access_log", prefix, problems),
            proxy_error: self.string("proxy_error_log"),
            admin_access: self.string("admin_access_log"),
            admin_error: self.string("admin_error_log"),
            status_access: self.string("status_access_log"),
            status_error: self.string("status_error_log"),
        }
    }

    pub(crate) fn real_ip(&self) -> RealIp {
        RealIp {
            trusted: self.list("trusted_ips").to_vec(),
            header: self.string("real_ip_header"),
            recursive: self.text("real_ip_recursive") == Some("on"),
        }
    }

    pub(crate) fn error_templates(&self) -> BTreeMap<&'static str, PathBuf> {
        let kinds = ["html", "json", "xml", "plain"];
        let path = |kind: &str| self.text(&format!("error_template_{kind}")).map(PathBuf::from);
        kinds.into_iter().filter_map(|kind| Some((kind, path(kind)?))).collect()
    }

    pub(crate) fn limits(&self) -> Limits {
        let short = self.text("client_max_body_size").is_some();
        Limits {
            client_max_body_size: self.bytes(if short {
                "client_max_body_size"
            } else {
                "nginx_http_client_max_body_size"
            }),
            client_body_buffer_size: self.bytes("nginx_http_client_body_buffer_size"),
            admin_max_body_size: self.bytes("nginx_admin_client_max_body_size"),
            admin_changes_max_body_size: self.bytes("admin_changes_max_body_size"),
        }
    }

    pub(crate) fn upstream_keepalive(&self) -> UpstreamKeepalive {
        UpstreamKeepalive {
            pool_size: self.count("upstream_keepalive_pool_size"),
            max_requests: self.count("upstream_keepalive_max_requests"),
            idle_timeout: self.seconds("upstream_keepalive_idle_timeout"),
        }
    }
}

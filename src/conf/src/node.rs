//! The settings as types.

mod materials;
mod words;

pub use words::{AdminAuth, Database, Flavor, LogLevel, Mtls, Ocsp, Role};

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::listener::Listener;
use crate::material::Material;
use crate::names;
use crate::problem::Problem;
use crate::settings::Settings;

/// Number of proxy workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workers {
    /// One for each core.
    Auto,
    /// So many, at least one.
    Count(usize),
}

/// Memory above which new requests are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxMemory {
    /// Nine tenths of what the cgroup allows; none where it allows anything.
    Auto,
    /// None.
    Off,
    /// So many bytes.
    Bytes(u64),
}

/// Settings of the cluster link.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each field is the key `cluster_<name>`, described in the table of keys")]
pub struct Cluster {
    pub control_plane: String,
    pub cert: Option<Material>,
    pub cert_key: Option<Material>,
    pub ca_cert: Option<Material>,
    pub mtls: Mtls,
    pub server_name: Option<String>,
    pub ocsp: Ocsp,
    pub data_plane_purge_delay: Duration,
    pub max_payload: usize,
    pub use_proxy: bool,
    pub dp_labels: BTreeMap<String, String>,
    pub rpc: bool,
    pub incremental_sync: bool,
    pub gwctl_sync: bool,
}

/// Certificates of a listener and their keys, in the same order.
#[derive(Debug, Clone, Default)]
pub struct TlsPair {
    /// Certificates.
    pub cert: Vec<Material>,
    /// Keys.
    pub key: Vec<Material>,
}

/// Settings of TLS.
#[derive(Debug, Clone)]
pub struct Tls {
    /// `ssl_cert` and `ssl_cert_key`.
    pub proxy: TlsPair,
    /// `admin_ssl_cert` and `admin_ssl_cert_key`.
    pub admin: TlsPair,
    /// `status_ssl_cert` and `status_ssl_cert_key`.
    pub status: TlsPair,
    /// `client_ssl_cert` and `client_ssl_cert_key`; empty unless `client_ssl` is on.
    pub client: TlsPair,
    /// `ssl_protocols`, such as `TLSv1.3`.
    pub protocols: Vec<String>,
    /// `lua_ssl_trusted_certificate` without `system`.
    pub trusted: Vec<Material>,
    /// Whether `system` is among them.
    pub trust_system: bool,
    /// `lua_ssl_verify_depth`
    pub verify_depth: usize,
}

/// Settings of Lua.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each field is a key of that name or `lua_<name>`, described in the table of keys")]
pub struct Lua {
    pub package_path: String,
    pub package_cpath: String,
    pub socket_pool_size: usize,
    pub untrusted_lua: String,
    pub untrusted_lua_sandbox_requires: Vec<String>,
    pub untrusted_lua_sandbox_environment: Vec<String>,
    pub max_req_headers: usize,
    pub max_resp_headers: usize,
    pub max_uri_args: usize,
    pub max_post_args: usize,
}

/// Settings of name resolution.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each field is the key `dns_<name>`, described in the table of keys")]
pub struct Dns {
    pub resolver: Vec<String>,
    pub hostsfile: PathBuf,
    pub order: Vec<String>,
    pub valid_ttl: Option<Duration>,
    pub stale_ttl: Duration,
    pub cache_size: usize,
    pub not_found_ttl: Duration,
    pub error_ttl: Duration,
}

/// Idle connections to upstreams.
#[derive(Debug, Clone, Copy)]
pub struct UpstreamKeepalive {
    /// Connections kept per pool and worker; 0 turns pools off.
    pub pool_size: usize,
    /// Requests per connection; 0 for any number.
    pub max_requests: usize,
    /// Longest idle time; zero for ever.
    pub idle_timeout: Duration,
}

/// How the client's address is found behind other proxies.
#[derive(Debug, Clone)]
pub struct RealIp {
    /// `trusted_ips`, addresses and networks.
    pub trusted: Vec<String>,
    /// `real_ip_header`
    pub header: String,
    /// `real_ip_recursive`
    pub recursive: bool,
}

/// Limits on bodies, in bytes; 0 for any length.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest request body through the proxy.
    pub client_max_body_size: u64,
    /// Bytes of a request body kept in memory.
    pub client_body_buffer_size: u64,
    /// Longest body the Admin API accepts.
    pub admin_max_body_size: u64,
    /// Longest body of `POST /gwctl/changes`.
    pub admin_changes_max_body_size: u64,
}

/// Where logs go, as written; `off` is none.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each field is the key `<name>_log`")]
pub struct Logs {
    /// None: no access log.
    pub proxy_access: Option<AccessLog>,
    pub proxy_stream_access: Option<AccessLog>,
    pub proxy_error: String,
    pub admin_access: String,
    pub admin_error: String,
    pub status_access: String,
    pub status_error: String,
}

/// The access log of the proxy: of requests or of streams.
#[derive(Debug, Clone, PartialEq)]
pub struct AccessLog {
    /// A file, `/dev/stdout` or `/dev/stderr`; relative paths of the setting are below the prefix.
    pub path: PathBuf,
    /// The form of a line.
    pub form: AccessForm,
    /// Part of the requests or streams that is written, 0 to 1.
    pub sample: f64,
}

/// The form of a line of an access log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessForm {
    /// Kong's form for streams.
    Basic,
    /// nginx's `combined` for requests; `basic` and more for streams.
    Combined,
    /// One JSON object.
    Json,
}

/// Room for the head of a request (`large_client_header_buffers`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderBuffers {
    /// How many of them.
    pub number: usize,
    /// Bytes of each; the first line fits into one.
    pub size: usize,
}

/// Tracing of requests.
#[derive(Debug, Clone)]
pub struct Tracing {
    /// `tracing_instrumentations`; empty when off.
    pub instrumentations: Vec<String>,
    /// `tracing_sampling_rate`, 0 to 1.
    pub sampling_rate: f64,
}

/// Every setting of a node. Listeners that the role does not open are empty.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each field is the key of that name, described in the table of keys")]
pub struct NodeConf {
    pub role: Role,
    pub prefix: PathBuf,
    pub node_id: Option<String>,
    pub log_level: LogLevel,
    pub logs: Logs,
    pub database: Database,
    /// Resolved against the prefix.
    pub store_path: PathBuf,
    pub shutdown_grace: Duration,
    pub shutdown_fast_grace: Duration,
    pub max_memory: MaxMemory,
    /// 0: any number.
    pub proxy_max_connections: u64,
    /// `stream_max_udp_sessions`
    pub stream_max_udp_sessions: u64,
    pub client_header_timeout: Duration,
    pub client_body_timeout: Duration,
    pub client_send_timeout: Duration,
    /// Zero: every connection is closed after its request.
    pub client_keepalive_timeout: Duration,
    pub client_keepalive_requests: u64,
    pub client_header_buffers: HeaderBuffers,
    pub workers: Workers,
    pub proxy_listen: Vec<Listener>,
    pub admin_listen: Vec<Listener>,
    pub admin_auth: AdminAuth,
    pub admin_max_connections: usize,
    pub status_listen: Vec<Listener>,
    pub cluster_listen: Vec<Listener>,
    pub stream_listen: Vec<Listener>,
    /// Public port by listener's port.
    pub port_maps: BTreeMap<u16, u16>,
    pub cluster: Cluster,
    pub proxy_server: Option<String>,
    pub proxy_server_ssl_verify: bool,
    /// Resolved against the prefix.
    pub lmdb_environment_path: PathBuf,
    /// Bytes.
    pub lmdb_map_size: u64,
    pub declarative_config: Option<PathBuf>,
    pub declarative_config_string: Option<String>,
    pub db_update_frequency: Duration,
    pub db_update_propagation: Duration,
    pub worker_state_update_frequency: Duration,
    pub router_flavor: Flavor,
    /// Names, `bundled` replaced.
    pub plugins: BTreeSet<String>,
    /// Names, `bundled` replaced.
    pub vaults: BTreeSet<String>,
    /// Headers added to responses: names and tokens of Kong, tokens also replaced by their headers.
    pub headers: BTreeSet<&'static str>,
    pub headers_upstream: BTreeSet<&'static str>,
    pub real_ip: RealIp,
    pub allow_debug_header: bool,
    pub request_debug: bool,
    pub request_debug_token: Option<String>,
    pub error_default_type: String,
    /// Template files by the end of the key: html, json, xml, plain.
    pub error_templates: BTreeMap<&'static str, PathBuf>,
    pub limits: Limits,
    pub upstream_keepalive: UpstreamKeepalive,
    /// `upstream_slow_start`
    pub upstream_slow_start: Duration,
    /// `upstream_max_connections_per_target`
    pub upstream_max_connections_per_target: usize,
    pub tls: Tls,
    pub lua: Lua,
    pub dns: Dns,
    pub tracing: Tracing,
    pub(crate) settings: Settings,
}

impl NodeConf {
    /// Whether the node accepts proxy traffic.
    pub fn runs_proxy(&self) -> bool {
        self.role != Role::ControlPlane
    }

    /// Whether the node has an Admin API.
    pub fn runs_admin(&self) -> bool {
        self.role != Role::DataPlane
    }

    /// Whether headers of this name are added to responses, such as `X-Kong-Proxy-Latency`.
    pub fn adds_header(&self, name: &str) -> bool {
        self.headers.iter().any(|header| header.eq_ignore_ascii_case(name))
    }

    pub(crate) fn build(settings: Settings, problems: &mut Vec<Problem>) -> Self {
        let s = &settings;
        let prefix = PathBuf::from(s.string("prefix"));
        let role = Role::of(s.text("role"), Role::Traditional);
        let embedded = if role == Role::DataPlane { Database::Off } else { Database::Lmdb };
        let listen = |key: &str, opened: bool| if opened { s.listeners(key) } else { Vec::new() };
        let (proxy, admin) = (role != Role::ControlPlane, role != Role::DataPlane);
        Self {
            role,
            node_id: s.text("node_id").map(Into::into),
            log_level: LogLevel::of(s.text("log_level"), LogLevel::Notice),
            logs: s.logs(&prefix, problems),
            database: Database::of(s.text("database"), embedded),
            store_path: prefix.join(s.string("store_path")),
            shutdown_grace: s.seconds("shutdown_grace"),
            shutdown_fast_grace: s.seconds("shutdown_fast_grace"),
            max_memory: s.max_memory(problems),
            proxy_max_connections: s.count("proxy_max_connections") as u64,
            stream_max_udp_sessions: s.count("stream_max_udp_sessions") as u64,
            client_header_timeout: s.time("nginx_http_client_header_timeout", problems),
            client_body_timeout: s.time("nginx_http_client_body_timeout", problems),
            client_send_timeout: s.time("nginx_http_send_timeout", problems),
            client_keepalive_timeout: s.time_or_none("nginx_http_keepalive_timeout", problems),
            client_keepalive_requests: s.keepalive_requests(problems),
            client_header_buffers: s.header_buffers(problems),
            workers: s.workers(problems),
            proxy_listen: listen("proxy_listen", proxy),
            admin_listen: listen("admin_listen", admin),
            admin_auth: AdminAuth::of(s.text("admin_auth"), AdminAuth::Off),
            admin_max_connections: s.count("admin_max_connections"),
            status_listen: listen("status_listen", true),
            cluster_listen: listen("cluster_listen", role == Role::ControlPlane),
            stream_listen: listen("stream_listen", proxy),
            port_maps: s.port_maps(problems),
            cluster: s.cluster(problems),
            proxy_server: s.text("proxy_server").map(Into::into),
            proxy_server_ssl_verify: s.flag("proxy_server_ssl_verify"),
            lmdb_environment_path: prefix.join(s.string("lmdb_environment_path")),
            lmdb_map_size: s.bytes("lmdb_map_size"),
            declarative_config: s.text("declarative_config").map(Into::into),
            declarative_config_string: s.text("declarative_config_string").map(Into::into),
            db_update_frequency: s.seconds("db_update_frequency"),
            db_update_propagation: s.seconds("db_update_propagation"),
            worker_state_update_frequency: s.seconds("worker_state_update_frequency"),
            router_flavor: Flavor::of(s.text("router_flavor"), Flavor::TraditionalCompatible),
            plugins: names::expanded(s.list("plugins"), names::BUNDLED_PLUGINS),
            vaults: names::expanded(s.list("vaults"), names::BUNDLED_VAULTS),
            headers: names::headers(s.list("headers"), names::RESPONSE_HEADERS),
            headers_upstream: names::headers(s.list("headers_upstream"), names::UPSTREAM_HEADERS),
            real_ip: s.real_ip(),
            allow_debug_header: s.flag("allow_debug_header"),
            request_debug: s.flag("request_debug"),
            request_debug_token: s.text("request_debug_token").map(Into::into),
            error_default_type: s.string("error_default_type"),
            error_templates: s.error_templates(),
            limits: s.limits(),
            upstream_keepalive: s.upstream_keepalive(),
            upstream_slow_start: s.seconds("upstream_slow_start"),
            upstream_max_connections_per_target: s.count("upstream_max_connections_per_target"),
            tls: s.tls(),
            lua: s.lua(),
            dns: s.dns(problems),
            tracing: s.tracing(problems),
            prefix,
            settings,
        }
    }
}

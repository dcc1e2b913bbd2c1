//! The one table of keys: name, kind, default, roles, meaning.

/// Text form of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// `on` and `true` are true, everything else is false.
    Flag,
    /// A number within bounds.
    Number(f64, f64),
    /// A whole number within bounds.
    Integer(i64, i64),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
    /// Any text that is never shown.
    Secret,
    /// Comma separated texts.
    List,
    /// Comma separated listeners, or `off`.
    Listen,
    /// Bytes: a number with `k`, `m` or `g`.
    Size,
    /// A path, inline PEM, or base64 of PEM.
    Material,
    /// As [`Kind::Material`], never shown.
    PrivateKey,
    /// A comma separated list of materials.
    Materials,
    /// A comma separated list of private keys, never shown.
    PrivateKeys,
}

impl Kind {
    /// Whether values are masked wherever they are shown.
    pub fn secret(self) -> bool {
        matches!(self, Self::Secret | Self::PrivateKey | Self::PrivateKeys)
    }
}

/// The roles in which a key has a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    /// Read by a traditional node.
    pub traditional: bool,
    /// Read by a control plane.
    pub control_plane: bool,
    /// Read by a data plane.
    pub data_plane: bool,
    /// Read by gwctl at all; the other keys mean something for nginx or LuaJIT in Kong only.
    pub used: bool,
}

const fn roles(traditional: bool, control_plane: bool, data_plane: bool) -> Roles {
    Roles { traditional, control_plane, data_plane, used: true }
}

const ALL: Roles = roles(true, true, true);
const CP: Roles = roles(false, true, false);
const DP: Roles = roles(false, false, true);
const CLUSTER: Roles = roles(false, true, true);
const PROXY: Roles = roles(true, false, true);
const ADMIN: Roles = roles(true, true, false);
const NONE: Roles = Roles { traditional: false, control_plane: false, data_plane: false, used: false };

/// A key that may be set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Key {
    /// Name in the file; `KONG_` or `GWCTL_` and the name in upper case is the variable.
    pub name: &'static str,
    /// Text form.
    pub kind: Kind,
    /// Default, as it would be written; empty for unset.
    pub default: &'static str,
    /// Who reads it.
    pub roles: Roles,
    /// What it does, one sentence.
    pub doc: &'static str,
}

/// The key of this name.
pub fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

const fn row(name: &'static str, kind: Kind, default: &'static str, roles: Roles, doc: &'static str) -> Key {
    Key { name, kind, default, roles, doc }
}

use Kind::{
    Choice, Flag, Integer, List, Listen, Material, Materials, Number, PrivateKey, PrivateKeys, Secret, Size, Text,
};

const SECONDS: Kind = Number(0.0, 1e12);
const COUNT: Kind = Integer(0, 1 << 53);
const ON_OFF: Kind = Choice(&["on", "off"]);
const LEVELS: Kind = Choice(&["debug", "info", "notice", "warn", "error", "crit", "alert", "emerg"]);
const CIPHERS: Kind = Choice(&["modern", "intermediate", "old", "fips", "custom"]);
const UNTRUSTED: Kind = Choice(&["on", "off", "sandbox"]);
const FLAVORS: Kind = Choice(&["traditional_compatible", "traditional", "expressions"]);
const DATABASES: Kind = Choice(&["lmdb", "off", "postgres"]);

/// Every key but `nginx_<block>_<directive>`, which may be any.
///
/// Defaults are Kong's, but for: `prefix` (a folder Kong does not use), `database` (the embedded store),
/// `anonymous_reports` (nothing is ever reported) and `admin_gui_listen` (Kong Manager is not part of gwctl).
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    // node
    row("role", Choice(&["traditional", "control_plane", "data_plane"]), "traditional", ALL, "What the node is in a cluster."),
    row("prefix", Text, "/var/lib/gwctl", ALL, "Folder of the node's files; below the home folder for users other than root."),
    row("node_id", Text, "", ALL, "UUID of the node; made once and kept in the prefix if unset."),
    row("log_level", LEVELS, "notice", ALL, "Least severe level that is logged."),
    row("database", DATABASES, "", ALL, "Where entities are kept: `lmdb` is the embedded store, `off` a declarative file or a control plane."),
    row("shutdown_grace", SECONDS, "10", ALL, "Seconds in which what is in flight may end after SIGQUIT (gwctl only)."),
    row("shutdown_fast_grace", SECONDS, "3", ALL, "Seconds in which requests in flight may end after SIGTERM or SIGINT; streams and WebSockets get none (gwctl only)."),
    row("max_memory", Text, "auto", PROXY, "Memory above which new requests are answered 503: a size, `off`, or `auto`, nine tenths of the cgroup's (gwctl only)."),
    row("store_path", Text, "store.lmdb", ADMIN, "Folder of the embedded store, relative to the prefix (gwctl only)."),
    row("anonymous_reports", Flag, "off", NONE, "Accepted; gwctl never reports anything to anybody."),
    row("nginx_worker_processes", Text, "auto", PROXY, "Number of proxy workers; `auto` is one for each core."),
    row("nginx_main_worker_processes", Text, "", PROXY, "Another name of nginx_worker_processes."),
    // logs
    row("proxy_max_connections", COUNT, "0", PROXY, "Client connections of the proxy at once; more are answered 503; 0 for any number (gwctl only)."),
    row("proxy_access_log", Text, "logs/access.log", PROXY, "Access log of the proxy: a file or /dev/stdout, then `combined` or `json`; `off`. Its default writes none."),
    row("proxy_access_log_sample", Number(0.0, 1.0), "1", PROXY, "Share of requests in the access log; answers of 500 and above are always in it (gwctl only)."),
    row("proxy_error_log", Text, "logs/error.log", PROXY, "Error log of the proxy."),
    row("proxy_stream_access_log", Text, "logs/access.log basic", PROXY, "Access log of stream listeners: a file or /dev/stdout, then `basic`, `combined` or `json`; `off`. Its default writes none."),
    row("proxy_stream_access_log_sample", Number(0.0, 1.0), "1", PROXY, "Share of streams in the access log; those that reached no upstream are always in it (gwctl only)."),
    row("proxy_stream_error_log", Text, "logs/error.log", PROXY, "Error log of stream listeners."),
    row("admin_access_log", Text, "logs/admin_access.log", ADMIN, "Access log of the Admin API."),
    row("admin_error_log", Text, "logs/error.log", ADMIN, "Error log of the Admin API."),
    row("status_access_log", Text, "off", ALL, "Access log of the Status API."),
    row("status_error_log", Text, "logs/status_error.log", ALL, "Error log of the Status API."),
    row("admin_gui_access_log", Text, "logs/admin_gui_access.log", NONE, "Access log of Kong Manager."),
    row("admin_gui_error_log", Text, "logs/admin_gui_error.log", NONE, "Error log of Kong Manager."),
    // listeners
    row("proxy_listen", Listen, "0.0.0.0:8000 reuseport backlog=16384, 0.0.0.0:8443 http2 ssl reuseport backlog=16384", PROXY, "Listeners of the proxy."),
    row("admin_listen", Listen, "127.0.0.1:8001 reuseport backlog=16384, 127.0.0.1:8444 http2 ssl reuseport backlog=16384", ADMIN, "Listeners of the Admin API, which asks nobody who it is unless admin_auth is on."),
    row("admin_auth", Choice(&["off", "token"]), "off", ADMIN, "Whether every request to the Admin API must carry a token (gwctl only)."),
    row("admin_max_connections", Integer(1, 1_000_000), "4096", ADMIN, "Connections to the Admin API at once; more wait (gwctl only)."),
    row("admin_changes_max_body_size", Size, "256m", ADMIN, "Longest body of POST /gwctl/changes (gwctl only)."),
    row("status_listen", Listen, "127.0.0.1:8007 reuseport backlog=16384", ALL, "Listeners of the read-only Status API."),
    row("cluster_listen", Listen, "0.0.0.0:8005", CP, "Listeners for data planes; TLS always."),
    row("stream_listen", Listen, "off", PROXY, "Listeners for TCP, TLS (`ssl`) and UDP (`udp`)."),
    row("stream_max_udp_sessions", COUNT, "16384", PROXY, "UDP sessions at once; datagrams of further clients are dropped; 0 for any number (gwctl only)."),
    row("admin_gui_listen", Listen, "off", NONE, "Listeners of Kong Manager."),
    row("port_maps", List, "", PROXY, "Ports as clients see them, `public:listener`."),
    // cluster
    row("cluster_control_plane", Text, "127.0.0.1:8005", DP, "Address of the control plane, host:port."),
    row("cluster_cert", Material, "", CLUSTER, "Certificate of the node for the cluster."),
    row("cluster_cert_key", PrivateKey, "", CLUSTER, "Key of cluster_cert."),
    row("cluster_ca_cert", Material, "", CLUSTER, "Authorities that issue peers' certificates in `pki` mode."),
    row("cluster_mtls", Choice(&["shared", "pki"]), "shared", CLUSTER, "How peers know each other: one shared certificate, or an authority."),
    row("cluster_server_name", Text, "", DP, "Name the control plane's certificate must carry in `pki` mode."),
    row("cluster_ocsp", Choice(&["on", "off", "optional"]), "off", CP, "Whether the revocation of data planes' certificates is checked."),
    row("cluster_data_plane_purge_delay", Number(60.0, 1e12), "1209600", CP, "Seconds after which a data plane not seen is forgotten."),
    row("cluster_max_payload", Integer(4_194_304, 1 << 31), "16777216", CLUSTER, "Longest frame in bytes, as sent."),
    row("cluster_use_proxy", Flag, "off", DP, "Reach the control plane through proxy_server."),
    row("cluster_dp_labels", List, "", DP, "Labels of the data plane, `key:value`."),
    row("cluster_rpc", Flag, "off", CLUSTER, "Speak the second generation of the cluster protocol."),
    row("cluster_incremental_sync", Flag, "off", CLUSTER, "Send changes instead of whole configurations; needs cluster_rpc."),
    row("cluster_gwctl_sync", Flag, "on", CLUSTER, "Use gwctl's own sync with nodes of gwctl that have it on too."),
    row("cluster_cjson", Flag, "off", NONE, "Chooses a JSON library in Kong."),
    row("dedicated_config_processing", Flag, "on", NONE, "A process of its own for configurations in Kong."),
    row("privileged_worker", Text, "", NONE, "Old name of dedicated_config_processing."),
    row("proxy_server", Secret, "", DP, "HTTP proxy towards the control plane, a URL with optional user and password."),
    row("proxy_server_ssl_verify", Flag, "on", DP, "Verify the certificate of an https proxy_server."),
    // storage of a data plane
    row("lmdb_environment_path", Text, "dbless.lmdb", PROXY, "Folder of the configuration cache, relative to the prefix."),
    row("lmdb_map_size", Size, "2048m", ALL, "Largest size of the store or cache; 2048m stands for 256g."),
    row("declarative_config", Text, "", PROXY, "Declarative file loaded at start with `database=off`."),
    row("declarative_config_string", Secret, "", PROXY, "Declarative configuration itself, instead of a file."),
    // updates
    row("db_update_frequency", SECONDS, "5", ALL, "Seconds between polls of a shared database, and between full pushes to Kong data planes."),
    row("db_update_propagation", SECONDS, "0", ADMIN, "Seconds a replicated database takes to become consistent."),
    row("db_cache_ttl", SECONDS, "0", NONE, "Seconds an entity stays in Kong's cache."),
    row("db_cache_neg_ttl", Text, "", NONE, "Seconds a miss stays in Kong's cache."),
    row("db_resurrect_ttl", SECONDS, "30", NONE, "Seconds stale entities outlive a lost database in Kong."),
    row("db_cache_warmup_entities", List, "services", NONE, "Entities Kong loads into its cache at start."),
    row("worker_consistency", Choice(&["strict", "eventual"]), "eventual", NONE, "Deprecated in Kong; gwctl swaps whole snapshots."),
    row("worker_state_update_frequency", SECONDS, "5", PROXY, "Seconds between rebuilds of a Kong worker; gwctl rebuilds at once."),
    // proxy
    row("router_flavor", FLAVORS, "traditional_compatible", ALL, "Language of routes."),
    row("plugins", List, "bundled", ALL, "Plugins that may be used: `bundled`, `off`, names."),
    row("vaults", List, "bundled", ALL, "Vaults that may be used: `bundled`, `off`, names."),
    row("headers", List, "server_tokens, latency_tokens, X-Kong-Request-Id", PROXY, "Headers added to responses, or `off`."),
    row("headers_upstream", List, "X-Kong-Request-Id", PROXY, "Headers added to requests, or `off`."),
    row("trusted_ips", List, "", PROXY, "Addresses and networks whose forwarded headers are believed."),
    row("real_ip_header", Text, "X-Real-IP", PROXY, "Header that names the client, or `proxy_protocol`."),
    row("real_ip_recursive", ON_OFF, "off", PROXY, "Search the header for the last address that is not trusted."),
    row("allow_debug_header", Flag, "off", PROXY, "Answer Kong-Debug with the names of what matched."),
    row("request_debug", Flag, "on", PROXY, "Answer X-Kong-Request-Debug with timings."),
    row("request_debug_token", Secret, "", PROXY, "Token that X-Kong-Request-Debug-Token must carry from afar."),
    row("error_default_type", Choice(&["text/plain", "text/html", "application/json", "application/xml"]), "text/plain", PROXY, "Type of error bodies if the client accepts any."),
    row("error_template_html", Text, "", PROXY, "File with the template of error bodies in HTML."),
    row("error_template_json", Text, "", PROXY, "File with the template of error bodies in JSON."),
    row("error_template_xml", Text, "", PROXY, "File with the template of error bodies in XML."),
    row("error_template_plain", Text, "", PROXY, "File with the template of error bodies in plain text."),
    row("client_max_body_size", Size, "", PROXY, "Longest request body; unset means nginx_http_client_max_body_size."),
    row("nginx_http_client_max_body_size", Size, "0", PROXY, "Longest request body, 0 for any."),
    row("nginx_http_client_body_buffer_size", Size, "8k", PROXY, "Bytes of a request body kept in memory."),
    row("nginx_http_client_header_timeout", Text, "60s", PROXY, "Time a client has for the head of a request, the first one of a connection included."),
    row("nginx_http_client_body_timeout", Text, "60s", PROXY, "Time a client may pause while it sends a body."),
    row("nginx_http_send_timeout", Text, "60s", PROXY, "Time a client may pause while it takes a response."),
    row("nginx_http_keepalive_timeout", Text, "75s", PROXY, "Time a client's connection may stay idle between requests, 0 to close it after each."),
    row("nginx_http_keepalive_requests", Text, "10000", PROXY, "Requests after which a client's connection is closed."),
    row("nginx_http_large_client_header_buffers", Text, "4 8k", PROXY, "Number and size of buffers for a request's head: the first line fits into one, the headers into all."),
    row("client_body_buffer_size", Size, "8k", PROXY, "Old name of nginx_http_client_body_buffer_size."),
    row("nginx_admin_client_max_body_size", Size, "10m", ADMIN, "Longest body the Admin API accepts."),
    row("nginx_admin_client_body_buffer_size", Size, "10m", NONE, "Buffer of the Admin API in Kong."),
    row("upstream_keepalive_pool_size", COUNT, "512", PROXY, "Idle upstream connections kept per pool and worker."),
    row("upstream_keepalive_max_requests", COUNT, "10000", PROXY, "Requests after which an upstream connection is closed, 0 for any number."),
    row("upstream_slow_start", SECONDS, "0", PROXY, "Seconds in which a target that is added or healthy again comes to its full share, 0 for none (gwctl only)."),
    row("upstream_max_connections_per_target", COUNT, "0", PROXY, "Requests at once with one address of a target; beyond it another takes them, else 503; 0 for any number (gwctl only)."),
    row("upstream_keepalive_idle_timeout", SECONDS, "60", PROXY, "Seconds an upstream connection may stay idle, 0 for ever."),
    row("tracing_instrumentations", List, "off", PROXY, "What is traced: `off`, `all`, request, router, balancer, dns_query, http_client, plugin_*, db_query."),
    row("tracing_sampling_rate", Number(0.0, 1.0), "0.01", PROXY, "Share of requests that are traced."),
    row("opentelemetry_tracing", List, "", PROXY, "Old name of tracing_instrumentations."),
    row("opentelemetry_tracing_sampling_rate", Text, "", PROXY, "Old name of tracing_sampling_rate."),
    // TLS
    row("ssl_cert", Materials, "", PROXY, "Default certificates of the proxy; one is made if unset."),
    row("ssl_cert_key", PrivateKeys, "", PROXY, "Keys of ssl_cert, in its order."),
    row("admin_ssl_cert", Materials, "", ADMIN, "Certificates of the Admin API; one is made if unset."),
    row("admin_ssl_cert_key", PrivateKeys, "", ADMIN, "Keys of admin_ssl_cert."),
    row("status_ssl_cert", Materials, "", ALL, "Certificates of the Status API; one is made if unset."),
    row("status_ssl_cert_key", PrivateKeys, "", ALL, "Keys of status_ssl_cert."),
    row("admin_gui_ssl_cert", Materials, "", NONE, "Certificates of Kong Manager."),
    row("admin_gui_ssl_cert_key", PrivateKeys, "", NONE, "Keys of admin_gui_ssl_cert."),
    row("client_ssl", Flag, "off", PROXY, "Present a client certificate to upstreams."),
    row("client_ssl_cert", Material, "", PROXY, "Client certificate for upstreams."),
    row("client_ssl_cert_key", PrivateKey, "", PROXY, "Key of client_ssl_cert."),
    row("ssl_cipher_suite", CIPHERS, "intermediate", PROXY, "Set of cipher suites; rustls offers those of TLS 1.2 and 1.3 that are safe."),
    row("ssl_ciphers", Text, "", NONE, "List of OpenSSL ciphers."),
    row("ssl_protocols", Text, "TLSv1.2 TLSv1.3", PROXY, "Versions of TLS."),
    row("ssl_prefer_server_ciphers", ON_OFF, "on", NONE, "Whose order of ciphers counts."),
    row("ssl_dhparam", Text, "", NONE, "Diffie-Hellman group."),
    row("ssl_session_tickets", ON_OFF, "on", NONE, "Resume sessions by tickets."),
    row("ssl_session_timeout", Text, "1d", NONE, "How long sessions may be resumed."),
    row("ssl_session_cache_size", Size, "10m", NONE, "Size of the session cache."),
    row("lua_ssl_trusted_certificate", Materials, "system", ALL, "Authorities trusted for connections to others; `system` are those of the machine."),
    row("lua_ssl_verify_depth", Integer(0, 100), "1", ALL, "Longest chain of authorities."),
    row("lua_ssl_protocols", Text, "TLSv1.2 TLSv1.3", NONE, "Versions of TLS of Lua sockets."),
    // Lua
    row("lua_package_path", Text, "./?.lua;./?/init.lua;", ALL, "Where Lua plugins are searched."),
    row("lua_package_cpath", Text, "", ALL, "Where native modules of Lua plugins are searched."),
    row("lua_socket_pool_size", COUNT, "256", PROXY, "Idle connections of Lua sockets kept per pool and worker."),
    row("untrusted_lua", UNTRUSTED, "sandbox", ALL, "Whether Lua in plugin settings runs: freely, not at all, in a sandbox."),
    row("untrusted_lua_sandbox_requires", List, "", ALL, "Modules the sandbox may load."),
    row("untrusted_lua_sandbox_environment", List, "", ALL, "Globals the sandbox may see."),
    row("lua_max_req_headers", Integer(1, 1000), "100", PROXY, "Most request headers read by plugins."),
    row("lua_max_resp_headers", Integer(1, 1000), "100", PROXY, "Most response headers read by plugins."),
    row("lua_max_uri_args", Integer(1, 1000), "100", PROXY, "Most query arguments read by plugins."),
    row("lua_max_post_args", Integer(1, 1000), "100", PROXY, "Most form arguments read by plugins."),
    row("pluginserver_names", List, "", NONE, "Plugin servers in other languages."),
    // DNS
    row("dns_resolver", List, "", ALL, "Name servers, ip or ip:port; unset means /etc/resolv.conf."),
    row("dns_hostsfile", Text, "/etc/hosts", ALL, "Hosts file."),
    row("dns_order", List, "LAST,SRV,A,CNAME", ALL, "Order in which record types are asked for."),
    row("dns_valid_ttl", Text, "", ALL, "Seconds that replace the lifetime of answers."),
    row("dns_stale_ttl", SECONDS, "3600", ALL, "Seconds an answer is used after its lifetime."),
    row("dns_cache_size", COUNT, "10000", ALL, "Answers kept."),
    row("dns_not_found_ttl", SECONDS, "30", ALL, "Seconds a missing name is remembered."),
    row("dns_error_ttl", SECONDS, "1", ALL, "Seconds a failed answer is remembered."),
    row("dns_no_sync", Flag, "off", NONE, "Ask once per request instead of once per name in Kong."),
    row("new_dns_client", Flag, "off", NONE, "Chooses a DNS client in Kong."),
    row("resolver_address", List, "", ALL, "Name servers, by the name of Kong's newer client."),
    row("resolver_hosts_file", Text, "/etc/hosts", NONE, "Hosts file of Kong's newer DNS client."),
    row("resolver_family", List, "A,SRV", NONE, "Record types of Kong's newer DNS client."),
    row("resolver_valid_ttl", Text, "", NONE, "As dns_valid_ttl."),
    row("resolver_stale_ttl", SECONDS, "3600", NONE, "As dns_stale_ttl."),
    row("resolver_error_ttl", SECONDS, "1", NONE, "As dns_error_ttl."),
    row("resolver_lru_cache_size", COUNT, "10000", NONE, "Cache of Kong's newer DNS client."),
    row("resolver_mem_cache_size", Size, "5m", NONE, "Cache of Kong's newer DNS client."),
    // accepted for the sake of Kong's files
    row("mem_cache_size", Size, "128m", NONE, "Size of Kong's entity cache."),
    row("nginx_user", Text, "kong kong", NONE, "User of nginx workers."),
    row("nginx_daemon", ON_OFF, "on", NONE, "Run nginx in the background."),
    row("kic", Flag, "off", NONE, "Set by Kong's ingress controller."),
    row("wasm", Flag, "off", NONE, "WebAssembly filters."),
    row("wasm_filters", List, "bundled,user", NONE, "WebAssembly filters that may be used."),
    row("wasm_filters_path", Text, "", NONE, "Folder of WebAssembly filters."),
    row("wasm_dynamic_module", Text, "", NONE, "nginx module for WebAssembly."),
    row("admin_gui_url", List, "", NONE, "Address of Kong Manager."),
    row("admin_gui_path", Text, "/", NONE, "Path of Kong Manager."),
    row("admin_gui_api_url", Text, "", NONE, "Address at which Kong Manager reaches the Admin API."),
    row("worker_events_max_payload", Integer(65_535, 16_777_215), "65535", NONE, "Longest event between Kong's workers."),
    row("max_queued_batches", Text, "", NONE, "Old limit of plugin queues."),
    row("lmdb_validation_tag", Text, "", NONE, "Internal in Kong."),
    row("cluster_proxy_ssl_terminator_sock", Text, "", NONE, "Internal in Kong."),
    row("pg_host", Text, "127.0.0.1", NONE, "Host of PostgreSQL."),
    row("pg_port", Integer(0, 65_535), "5432", NONE, "Port of PostgreSQL."),
    row("pg_timeout", SECONDS, "5000", NONE, "Milliseconds a PostgreSQL operation may take."),
    row("pg_user", Text, "kong", NONE, "User of PostgreSQL."),
    row("pg_password", Secret, "", NONE, "Password of PostgreSQL."),
    row("pg_iam_auth", Flag, "off", NONE, "Sign in to PostgreSQL by AWS IAM."),
    row("pg_database", Text, "kong", NONE, "Database of PostgreSQL."),
    row("pg_schema", Text, "", NONE, "Schema of PostgreSQL."),
    row("pg_ssl", Flag, "off", NONE, "TLS towards PostgreSQL."),
    row("pg_ssl_version", Text, "", NONE, "Version of TLS towards PostgreSQL."),
    row("pg_ssl_required", Flag, "off", NONE, "Refuse PostgreSQL without TLS."),
    row("pg_ssl_verify", Flag, "off", NONE, "Verify the certificate of PostgreSQL."),
    row("pg_ssl_cert", Text, "", NONE, "Client certificate for PostgreSQL."),
    row("pg_ssl_cert_key", PrivateKey, "", NONE, "Key of pg_ssl_cert."),
    row("pg_max_concurrent_queries", COUNT, "0", NONE, "Most queries at once."),
    row("pg_semaphore_timeout", SECONDS, "60000", NONE, "Milliseconds to wait for a free query."),
    row("pg_keepalive_timeout", Text, "", NONE, "Milliseconds a connection may stay idle."),
    row("pg_pool_size", Text, "", NONE, "Connections kept."),
    row("pg_backlog", Text, "", NONE, "Operations that may wait for a connection."),
    row("pg_ro_host", Text, "", NONE, "Host of a read-only PostgreSQL."),
    row("pg_ro_port", Text, "", NONE, "Port of a read-only PostgreSQL."),
    row("pg_ro_timeout", Text, "", NONE, "As pg_timeout."),
    row("pg_ro_user", Text, "", NONE, "As pg_user."),
    row("pg_ro_password", Secret, "", NONE, "As pg_password."),
    row("pg_ro_database", Text, "", NONE, "As pg_database."),
    row("pg_ro_schema", Text, "", NONE, "As pg_schema."),
    row("pg_ro_ssl", Flag, "off", NONE, "As pg_ssl."),
    row("pg_ro_ssl_verify", Flag, "off", NONE, "As pg_ssl_verify."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_stands_once_with_a_sentence_and_a_default_of_its_kind() {
        for (index, key) in KEYS.iter().enumerate() {
            assert!(KEYS[..index].iter().all(|other| other.name != key.name), "{} stands twice", key.name);
            assert!(key.doc.ends_with('.'), "{} needs a sentence", key.name);
            assert!(crate::value::parse(key.kind, key.default).is_ok(), "{} has a default of another kind", key.name);
        }
    }
}

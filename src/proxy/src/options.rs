//! Settings of the request path, read once at start.

use crate::access_log::AccessLogOptions;
use crate::balancer::BalancerOptions;
use gwctl_certs::Identity;
use gwctl_plugins::{Templates, Tracing};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Where requests come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Address; port 0 takes a free one.
    pub addr: SocketAddr,
    /// TLS.
    pub ssl: bool,
    /// HTTP/2: by ALPN with TLS, by prior knowledge without.
    pub http2: bool,
    /// Connections begin with a PROXY header.
    pub proxy_protocol: bool,
}

/// Where connections come in that are passed on as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamListener {
    /// Address; port 0 takes a free one.
    pub addr: SocketAddr,
    /// Clients speak TLS: it ends here or is passed through, as the route says.
    pub ssl: bool,
    /// Connections begin with a PROXY header.
    pub proxy_protocol: bool,
    /// Datagrams come in rather than connections: neither of the two above is for them.
    pub udp: bool,
}

/// Headers the node adds: the `headers` and `headers_upstream` settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddedHeaders {
    /// `Server` on own answers.
    pub server: bool,
    /// `Via` on proxied responses.
    pub via: bool,
    /// `X-Kong-Response-Latency` on own answers.
    pub response_latency: bool,
    /// `X-Kong-Upstream-Latency` on proxied responses.
    pub upstream_latency: bool,
    /// `X-Kong-Proxy-Latency` on proxied responses.
    pub proxy_latency: bool,
    /// `X-Kong-Upstream-Status` on proxied responses.
    pub upstream_status: bool,
    /// `X-Kong-Request-Id` to the client.
    pub request_id: bool,
    /// `X-Kong-Request-Id` to the upstream.
    pub request_id_upstream: bool,
}

impl Default for AddedHeaders {
    fn default() -> Self {
        Self {
            server: true,
            via: true,
            response_latency: true,
            upstream_latency: true,
            proxy_latency: true,
            upstream_status: false,
            request_id: true,
            request_id_upstream: true,
        }
    }
}

impl AddedHeaders {
    /// Reads the tokens of both settings; names are compared without case, unknown ones have no effect here.
    pub fn from_tokens<'a>(
        headers: impl IntoIterator<Item = &'a str>,
        upstream: impl IntoIterator<Item = &'a str>,
    ) -> AddedHeaders {
        let mut added = AddedHeaders {
            server: false,
            via: false,
            response_latency: false,
            upstream_latency: false,
            proxy_latency: false,
            upstream_status: false,
            request_id: false,
            request_id_upstream: false,
        };
        for token in headers {
            match token.trim().to_ascii_lowercase().as_str() {
                "server_tokens" => (added.server, added.via) = (true, true),
                "latency_tokens" => {
                    (added.response_latency, added.upstream_latency, added.proxy_latency) = (true, true, true);
                }
                "server" => added.server = true,
                "via" => added.via = true,
                "x-kong-response-latency" => added.response_latency = true,
                "x-kong-upstream-latency" => added.upstream_latency = true,
                "x-kong-proxy-latency" => added.proxy_latency = true,
                "x-kong-upstream-status" => added.upstream_status = true,
                "x-kong-request-id" => added.request_id = true,
                _ => {}
            }
        }
        added.request_id_upstream =
            upstream.into_iter().any(|token| token.trim().eq_ignore_ascii_case("x-kong-request-id"));
        added
    }
}

/// A network of trusted proxies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: u128,
    mask: u128,
    v4: bool,
}

impl Network {
    /// Reads `10.0.0.0/8`, `::1` and the like; None when it is none of these.
    pub fn parse(text: &str) -> Option<Network> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address.parse::<IpAddr>().ok()?, Some(length.parse::<u32>().ok()?)),
            None => (text.parse::<IpAddr>().ok()?, None),
        };
        let width = if address.is_ipv4() { 32 } else { 128 };
        let length = length.unwrap_or(width);
        if length > width {
            return None;
        }
        // Shifting by the whole width is not allowed; an empty prefix takes everything.
        let mask = (!0_u128).checked_shl(width - length).unwrap_or(0);
        let (number, v4) = number(address);
        Some(Network { address: number & mask, mask, v4 })
    }

    /// Whether the address lies in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (number, v4) = number(address);
        v4 == self.v4 && number & self.mask == self.address
    }
}

fn number(address: IpAddr) -> (u128, bool) {
    match address.to_canonical() {
        IpAddr::V4(address) => (u128::from(u32::from(address)), true),
        IpAddr::V6(address) => (u128::from(address), false),
    }
}

/// A type of records to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsOrder {
    /// Services, with ports and weights.
    Srv,
    /// Addresses of version 4.
    A,
    /// Addresses of version 6.
    Aaaa,
}

/// How names are resolved: the `dns_*` settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsOptions {
    /// Name servers; none: those of the system.
    pub servers: Vec<SocketAddr>,
    /// Names that no server is asked for.
    pub hosts_file: PathBuf,
    /// Types of records in the order they are asked for; aliases are followed in any case.
    pub order: Vec<DnsOrder>,
    /// Replaces the lifetime of answers.
    pub valid_ttl: Option<Duration>,
    /// How long an answer is used after its lifetime while there is no other.
    pub stale_ttl: Duration,
    /// How long a name that does not exist is remembered.
    pub not_found_ttl: Duration,
    /// How long a failure is remembered.
    pub error_ttl: Duration,
    /// Names kept by each thread.
    pub cache_size: usize,
}

impl Default for DnsOptions {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            hosts_file: "/etc/hosts".into(),
            order: vec![DnsOrder::Srv, DnsOrder::A],
            valid_ttl: None,
            stale_ttl: Duration::from_secs(3600),
            not_found_ttl: Duration::from_secs(30),
            error_ttl: Duration::from_secs(1),
            cache_size: 10_000,
        }
    }
}

impl DnsOptions {
    /// Reads the words of `dns_order`; LAST and CNAME say nothing here, since both is done in any case.
    pub fn order_of<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<DnsOrder> {
        let kind = |word: &str| match word.to_ascii_uppercase().as_str() {
            "SRV" => Some(DnsOrder::Srv),
            "A" => Some(DnsOrder::A),
            "AAAA" => Some(DnsOrder::Aaaa),
            _ => None,
        };
        words.into_iter().filter_map(kind).collect()
    }

    /// Reads `ip` or `ip:port` of a name server; None when it is neither.
    pub fn server(text: &str) -> Option<SocketAddr> {
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        let ip = bare.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 53));
        text.parse().ok().or(ip)
    }
}

/// Versions of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsVersions {
    /// 1.2 and 1.3.
    Both,
    /// 1.2 only.
    Only12,
    /// 1.3 only.
    Only13,
}

static ONLY_12: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS12];
static ONLY_13: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS13];

impl TlsVersions {
    /// Reads the words of `ssl_protocols`; older versions are not spoken in any case.
    pub fn of<'a>(words: impl IntoIterator<Item = &'a str>) -> TlsVersions {
        let words: Vec<_> = words.into_iter().collect();
        match (words.contains(&"TLSv1.2"), words.contains(&"TLSv1.3")) {
            (true, false) => TlsVersions::Only12,
            (false, true) => TlsVersions::Only13,
            _ => TlsVersions::Both,
        }
    }

    pub(crate) fn supported(self) -> &'static [&'static rustls::SupportedProtocolVersion] {
        match self {
            TlsVersions::Both => rustls::ALL_VERSIONS,
            TlsVersions::Only12 => ONLY_12,
            TlsVersions::Only13 => ONLY_13,
        }
    }
}

/// Settings of a [`crate::Proxy`].
#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// Where requests come in.
    pub listeners: Vec<Listener>,
    /// Where connections come in that are passed on as bytes.
    pub streams: Vec<StreamListener>,
    /// Worker threads; each listens on every address by itself.
    pub workers: usize,
    /// The node's own certificates (`ssl_cert`), for names that no SNI knows; none: one is made at start.
    pub certificates: Vec<Identity>,
    /// Versions of TLS that clients may speak (`ssl_protocols`).
    pub tls_versions: TlsVersions,
    /// Headers the node adds.
    pub headers: AddedHeaders,
    /// Error pages in place of the built-in ones (`error_template_*`).
    pub error_templates: Templates,
    /// Peers whose `X-Forwarded-*` are believed.
    pub trusted_ips: Vec<Network>,
    /// Header with the client's address from a trusted peer, lower case: `x-real-ip` or `x-forwarded-for`; or
    /// `proxy_protocol`, the PROXY header of the connection.
    pub real_ip_header: String,
    /// Go on to the left in that header while addresses are trusted.
    pub real_ip_recursive: bool,
    /// `Kong-Debug: 1` shows route and service in the response.
    pub allow_debug_header: bool,
    /// Longest request line plus headers in bytes.
    pub max_head_size: usize,
    /// Longest request target in bytes.
    pub max_target_size: usize,
    /// Longest request body in bytes; 0: no limit.
    pub client_max_body_size: u64,
    /// Most bytes of a buffered request body that are kept in memory; a longer one goes to a file.
    pub client_body_buffer_size: u64,
    /// Where these files are made; they have no names.
    pub spool_folder: PathBuf,
    /// Time for the head of a request, the handshake before the first one included.
    pub header_timeout: Duration,
    /// How long a client may pause while sending a body.
    pub client_timeout: Duration,
    /// How long a client may pause while taking a response.
    pub send_timeout: Duration,
    /// How long a client's connection may stay idle between requests; zero: it is closed after each.
    pub keepalive_timeout: Duration,
    /// Requests after which a client's connection is closed.
    pub keepalive_requests: u64,
    /// Idle upstream connections kept per worker and address.
    pub upstream_keepalive_pool_size: usize,
    /// Requests after which an upstream connection is not kept; 0: no limit.
    pub upstream_keepalive_max_requests: u32,
    /// How long an idle upstream connection is kept; zero: as long as the upstream keeps it.
    pub upstream_keepalive_idle_timeout: Duration,
    /// Shares and limits of targets.
    pub balancing: BalancerOptions,
    /// How names are resolved.
    pub dns: DnsOptions,
    /// How long requests in flight may go on after a stop.
    pub shutdown_timeout: Duration,
    /// One line per request.
    pub access_log: Option<AccessLogOptions>,
    /// One line per stream.
    pub stream_access_log: Option<AccessLogOptions>,
    /// What requests are traced by; None: nothing is.
    pub tracing: Option<Tracing>,
    /// Client connections at once over all workers; more are answered 503 and closed. 0: no limit.
    pub max_connections: u64,
    /// UDP sessions at once over all workers; datagrams of further clients are dropped. 0: no limit.
    pub max_udp_sessions: u64,
    /// File descriptors the process may have (`ulimit -n`); clients are turned away before the last ones are taken. 0:
    /// unknown.
    pub max_files: u64,
}

impl Default for ProxyOptions {
    fn default() -> Self {
        Self {
            listeners: Vec::new(),
            streams: Vec::new(),
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            certificates: Vec::new(),
            tls_versions: TlsVersions::Both,
            headers: AddedHeaders::default(),
            error_templates: Templates::default(),
            trusted_ips: Vec::new(),
            real_ip_header: "x-real-ip".to_owned(),
            real_ip_recursive: false,
            allow_debug_header: false,
            max_head_size: 32 * 1024,
            max_target_size: 8 * 1024,
            client_max_body_size: 0,
            client_body_buffer_size: 64 * 1024,
            spool_folder: std::env::temp_dir(),
            header_timeout: Duration::from_secs(60),
            client_timeout: Duration::from_secs(60),
            send_timeout: Duration::from_secs(60),
            keepalive_timeout: Duration::from_secs(75),
            keepalive_requests: 10_000,
            upstream_keepalive_pool_size: 512,
            upstream_keepalive_max_requests: 10_000,
            upstream_keepalive_idle_timeout: Duration::from_secs(60),
            balancing: BalancerOptions::default(),
            dns: DnsOptions::default(),
            shutdown_timeout: Duration::from_secs(10),
            access_log: None,
            stream_access_log: None,
            tracing: None,
            max_connections: 0,
            max_udp_sessions: 16_384,
            max_files: 0,
        }
    }
}

impl ProxyOptions {
    /// Whether the `X-Forwarded-*` of this peer are believed.
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.trusted_ips.iter().any(|network| network.contains(peer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(network: &str, address: &str) -> bool {
        Network::parse(network).unwrap().contains(address.parse().unwrap())
    }

    #[test]
    fn networks_contain_their_addresses() {
        assert!(contains("10.0.0.0/8", "10.255.0.1"));
        assert!(contains("10.0.0.0/8", "::ffff:10.1.1.1"));
        assert!(!contains("10.0.0.0/8", "11.0.0.1"));
        assert!(contains("0.0.0.0/0", "1.2.3.4"));
        assert!(!contains("0.0.0.0/0", "::1"));
        assert!(contains("::/0", "::1"));
        assert!(contains("127.0.0.1", "127.0.0.1"));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in ["10.0.0.0/33", "::/129", "unix:", "", "10.0.0/8", "a/b"] {
            assert_eq!(Network::parse(text), None, "{text}");
        }
    }

    #[test]
    fn header_tokens_switch_single_headers() {
        let off = AddedHeaders::from_tokens(["off"], []);
        assert!(!off.server && !off.via && !off.request_id && !off.request_id_upstream);
        let default =
            AddedHeaders::from_tokens(["server_tokens", "latency_tokens", "X-Kong-Request-Id"], ["x-kong-request-id"]);
        assert_eq!(default, AddedHeaders::default());
    }
}

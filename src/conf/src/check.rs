//! Rules that a single value cannot break.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::names::{RESPONSE_HEADERS, TRACED, UPSTREAM_HEADERS};
use crate::near::did_you_mean;
use crate::node::{Database, Mtls, NodeConf, Role};
use crate::problem::{Origin, Problem};
use crate::settings::Settings;
use crate::value::Value;

/// Prefixes of label names that are kept for the makers of gateways.
const RESERVED_LABELS: [&str; 5] = ["kong", "konnect", "insomnia", "mesh", "kic"];

pub(crate) fn combinations(conf: &mut NodeConf, problems: &mut Vec<Problem>, warnings: &mut Vec<Problem>) {
    match conf.role {
        Role::ControlPlane => control_plane(conf, problems),
        Role::DataPlane => data_plane(conf, problems),
        Role::Traditional => traditional(conf, problems),
    }
    database(conf, problems);
    cluster_pair(conf, problems);
    tls_pairs(&conf.settings, problems);
    listeners(conf, problems);
    words(&conf.settings, problems);
    addresses(&conf.settings, problems);
    identity(&conf.settings, problems);
    sync_needs_rpc(conf, warnings);
    unsupported(conf, problems);
}

fn control_plane(conf: &NodeConf, problems: &mut Vec<Problem>) {
    let settings = &conf.settings;
    for (key, empty) in
        [("admin_listen", conf.admin_listen.is_empty()), ("cluster_listen", conf.cluster_listen.is_empty())]
    {
        if empty {
            problems.push(settings.problem(key, "a control plane needs this listener"));
        }
    }
    if conf.cluster.use_proxy {
        problems.push(settings.problem("cluster_use_proxy", "only a data plane reaches its peer through a proxy"));
    }
    if !conf.cluster.dp_labels.is_empty() {
        problems.push(settings.problem("cluster_dp_labels", "only data planes have labels"));
    }
    if conf.cluster.mtls == Mtls::Pki && conf.cluster.ca_cert.is_none() {
        let problem = settings.problem(
            "cluster_ca_cert",
            "a control plane with cluster_mtls = pki needs the authority of its data planes",
        );
        problems.push(problem.hint("`gwctl certs init --pki` makes one"));
    }
    if conf.database == Database::Off {
        let problem = settings.problem("database", "a control plane needs a store");
        problems.push(problem.hint("leave it unset for the embedded store"));
    }
}

fn data_plane(conf: &NodeConf, problems: &mut Vec<Problem>) {
    let settings = &conf.settings;
    if conf.proxy_listen.is_empty() && conf.stream_listen.is_empty() {
        problems.push(settings.problem("proxy_listen", "a data plane needs a listener for the proxy"));
    }
    if conf.database != Database::Off {
        let problem = settings.problem("database", "a data plane has no database");
        problems.push(problem.hint("set it to off or leave it unset"));
    }
    if conf.cluster.use_proxy && conf.proxy_server.is_none() {
        problems.push(settings.problem("proxy_server", "needed because cluster_use_proxy is on"));
    }
    let fits = |address: &str| {
        let parts = address.trim().rsplit_once(':');
        parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0))
    };
    if !conf.cluster.control_plane.split(',').all(fits) {
        problems.push(settings.problem("cluster_control_plane", "expected host:port, such as cp.example.com:8005"));
    }
    if let Some(fault) = conf.proxy_server.as_deref().and_then(proxy_fault) {
        problems.push(settings.problem("proxy_server", fault));
    }
}

/// Settings of Kong that this version cannot honour: refused where to ignore them would be dangerous or break traffic.
fn unsupported(conf: &NodeConf, problems: &mut Vec<Problem>) {
    let settings = &conf.settings;
    for listener in conf.stream_listen.iter().filter(|listener| listener.udp) {
        if listener.ssl || listener.proxy_protocol {
            let fault = format!("`{}`: ssl and proxy_protocol are for TCP, not with udp", listener.text);
            problems.push(settings.problem("stream_listen", fault).hint("leave the flag out"));
        }
    }
    if conf.admin_listen.iter().any(|listener| listener.proxy_protocol) {
        let fault = "the flag proxy_protocol is for proxy_listen and stream_listen in this version";
        problems.push(settings.problem("admin_listen", fault).hint("leave it out"));
    }
    let https_proxy = conf.proxy_server.as_deref().is_some_and(|url| url.starts_with("https://"));
    if conf.cluster.use_proxy && https_proxy {
        let problem =
            settings.problem("proxy_server", "a proxy that is reached by https is not supported by this version");
        problems.push(problem.hint("the tunnel carries TLS of its own: http:// to the proxy is enough"));
    }
}

fn traditional(conf: &NodeConf, problems: &mut Vec<Problem>) {
    if !conf.cluster.dp_labels.is_empty() {
        problems.push(conf.settings.problem("cluster_dp_labels", "only data planes have labels"));
    }
}

/// A URL of the form `http://user:password@host:port`; the fault does not repeat it, as it may hold a password.
fn proxy_fault(url: &str) -> Option<&'static str> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    match rest.map(|rest| rest.strip_suffix('/').unwrap_or(rest)) {
        None => Some("expected a URL with http:// or https://"),
        Some(rest) if rest.contains(['?', '#', ';']) => Some("expected a URL without query, fragment or parameters"),
        Some(rest) if rest.rsplit('@').next().is_none_or(str::is_empty) => Some("the URL has no host"),
        Some(_) => None,
    }
}

fn database(conf: &NodeConf, problems: &mut Vec<Problem>) {
    if conf.database == Database::Postgres && conf.role != Role::DataPlane {
        let problem = conf
            .settings
            .problem("database", "this version keeps entities in its embedded store, PostgreSQL is not supported yet");
        problems.push(
            problem.hint("leave it unset, and take the content over with a declarative file (`deck gateway dump`)"),
        );
    }
    let declarative = [
        ("declarative_config", conf.declarative_config.is_some()),
        ("declarative_config_string", conf.declarative_config_string.is_some()),
    ];
    for (key, set) in declarative {
        if set && conf.database != Database::Off {
            let problem = conf.settings.problem(key, "read only by a node without a store");
            problems.push(problem.hint("set database to off, or import the file with `gwctl apply`"));
        }
    }
    if declarative.iter().all(|(_, set)| *set) {
        problems.push(
            conf.settings
                .problem("declarative_config_string", "set together with declarative_config, one of them has to go"),
        );
    }
}

fn cluster_pair(conf: &NodeConf, problems: &mut Vec<Problem>) {
    if conf.role == Role::Traditional {
        return;
    }
    for (key, value) in [("cluster_cert", &conf.cluster.cert), ("cluster_cert_key", &conf.cluster.cert_key)] {
        if value.is_none() {
            let fault = format!("a {} needs a cluster certificate and its key", conf.role.as_str().replace('_', " "));
            problems.push(conf.settings.problem(key, fault).hint("`gwctl certs init` makes both"));
        }
    }
}

/// Certificates and keys come in pairs.
fn tls_pairs(settings: &Settings, problems: &mut Vec<Problem>) {
    for cert in ["ssl_cert", "admin_ssl_cert", "status_ssl_cert"] {
        let key = format!("{cert}_key");
        let (certs, keys) = (settings.list(cert).len(), settings.list(&key).len());
        if certs != keys {
            problems.push(
                settings.problem(if keys == 0 { &key } else { cert }, format!("{certs} in {cert} but {keys} in {key}")),
            );
        }
    }
    let (cert, key) = (settings.text("client_ssl_cert").is_some(), settings.text("client_ssl_cert_key").is_some());
    if settings.flag("client_ssl") && !(cert && key) {
        problems.push(settings.problem("client_ssl", "needs client_ssl_cert and client_ssl_cert_key"));
    }
}

/// No two listeners share an address, and each has only flags of its kind.
fn listeners(conf: &NodeConf, problems: &mut Vec<Problem>) {
    let lists = [
        ("proxy_listen", &conf.proxy_listen),
        ("admin_listen", &conf.admin_listen),
        ("status_listen", &conf.status_listen),
        ("cluster_listen", &conf.cluster_listen),
        ("stream_listen", &conf.stream_listen),
    ];
    let mut taken: BTreeMap<(std::net::SocketAddr, bool), &str> = BTreeMap::new();
    for (key, list) in lists {
        for listener in list {
            if listener.udp && key != "stream_listen" {
                problems
                    .push(conf.settings.problem(key, format!("`{}`: udp is for stream_listen only", listener.text)));
            }
            if (listener.http2 || listener.deferred) && key == "stream_listen" {
                problems.push(
                    conf.settings.problem(key, format!("`{}`: http2 and deferred are not for streams", listener.text)),
                );
            }
            // Port 0 lets the system choose, so it is never taken.
            if let Some(other) =
                taken.insert((listener.address, listener.udp), key).filter(|_| listener.address.port() != 0)
            {
                problems.push(conf.settings.problem(key, format!("{} is also in {other}", listener.address)));
            }
        }
    }
}

/// Lists whose elements are known words.
fn words(settings: &Settings, problems: &mut Vec<Problem>) {
    for key in ["tracing_instrumentations", "opentelemetry_tracing"] {
        for item in settings.list(key).iter().filter(|item| !TRACED.contains(&item.as_str())) {
            let mut problem = settings.problem(key, format!("`{item}` is not one of {}", TRACED.join(", ")));
            problem.hint = did_you_mean(item, TRACED.iter().copied());
            problems.push(problem);
        }
    }
    for (key, known) in [("headers", RESPONSE_HEADERS), ("headers_upstream", UPSTREAM_HEADERS)] {
        let list = settings.list(key);
        for item in
            list.iter().filter(|item| !known.iter().any(|(name, _)| name.eq_ignore_ascii_case(item)) && *item != "off")
        {
            let mut problem = settings.problem(
                key,
                format!(
                    "`{item}` is not one of {}",
                    known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
                ),
            );
            problem.hint = did_you_mean(item, known.iter().map(|(name, _)| *name));
            problems.push(problem);
        }
    }
    for key in ["headers", "headers_upstream", "plugins", "vaults", "tracing_instrumentations"] {
        if settings.list(key).len() > 1 && settings.list(key).iter().any(|item| item == "off") {
            problems.push(settings.problem(key, "`off` stands alone"));
        }
    }
    for item in settings
        .list("dns_order")
        .iter()
        .filter(|item| !["LAST", "SRV", "A", "AAAA", "CNAME"].contains(&item.to_uppercase().as_str()))
    {
        problems.push(settings.problem("dns_order", format!("`{item}` is not one of LAST, SRV, A, AAAA, CNAME")));
    }
    let versions = ["SSLv2", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];
    let chosen: Vec<&str> = settings.text("ssl_protocols").unwrap_or_default().split_whitespace().collect();
    for item in chosen.iter().filter(|item| !versions.contains(item)) {
        problems.push(settings.problem("ssl_protocols", format!("`{item}` is not one of {}", versions.join(", "))));
    }
    if !chosen.iter().any(|item| versions[4..].contains(item)) {
        problems.push(settings.problem("ssl_protocols", "TLSv1.2 or TLSv1.3 has to be among them"));
    }
}

fn addresses(settings: &Settings, problems: &mut Vec<Problem>) {
    for item in settings.list("trusted_ips").iter().filter(|item| !network(item) && *item != "unix:") {
        problems.push(
            settings.problem("trusted_ips", format!("`{item}` is not an address or network, such as 10.0.0.0/8")),
        );
    }
    for key in ["dns_resolver", "resolver_address"] {
        let address = |item: &str| {
            item.parse::<IpAddr>().is_ok() || item.parse::<std::net::SocketAddr>().is_ok() || bracketed(item)
        };
        for item in settings.list(key).iter().filter(|item| !address(item)) {
            problems.push(settings.problem(key, format!("`{item}` is not of the form ip or ip:port")));
        }
    }
}

fn bracketed(item: &str) -> bool {
    item.strip_prefix('[').and_then(|item| item.strip_suffix(']')).is_some_and(|item| item.parse::<IpAddr>().is_ok())
}

fn network(text: &str) -> bool {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.is_none_or(|bits| bits.parse::<u8>().is_ok_and(|bits| bits <= most))
}

fn identity(settings: &Settings, problems: &mut Vec<Problem>) {
    let uuid = |text: &str| {
        text.len() == 36
            && text
                .char_indices()
                .all(|(at, sign)| if matches!(at, 8 | 13 | 18 | 23) { sign == '-' } else { sign.is_ascii_hexdigit() })
    };
    if settings.text("node_id").is_some_and(|text| !uuid(text)) {
        problems.push(settings.problem("node_id", "expected a UUID"));
    }
}

/// Kong corrects this silently; here it is said.
fn sync_needs_rpc(conf: &mut NodeConf, warnings: &mut Vec<Problem>) {
    if !conf.cluster.incremental_sync || conf.cluster.rpc {
        return;
    }
    let problem = conf.settings.problem("cluster_incremental_sync", "needs cluster_rpc, turned off");
    warnings.push(problem.hint("set cluster_rpc to on as well"));
    conf.cluster.incremental_sync = false;
    if let Some(setting) = conf.settings.rows.get_mut("cluster_incremental_sync") {
        (setting.value, setting.text) = (Value::Flag(false), "off".into());
        setting.origin = Origin::Corrected("cluster_rpc");
    }
}

/// The labels of a data plane, split at the first colon.
pub(crate) fn labels(settings: &Settings, problems: &mut Vec<Problem>) -> BTreeMap<String, String> {
    let key = "cluster_dp_labels";
    let items = settings.list(key);
    if items.len() > 10 {
        problems.push(settings.problem(key, format!("expected at most 10 labels, found {}", items.len())));
    }
    let mut labels = BTreeMap::new();
    for item in items {
        let Some((name, value)) = item.split_once(':').map(|(name, value)| (name.trim(), value.trim())) else {
            problems.push(settings.problem(key, format!("label `{item}` is not of the form key:value")));
            continue;
        };
        let reserved = RESERVED_LABELS.iter().find(|prefix| name.to_lowercase().starts_with(*prefix));
        if let Some(prefix) = reserved {
            problems.push(settings.problem(key, format!("label key `{name}` begins with the reserved word {prefix}")));
        }
        for (what, text) in [("key", name), ("value", value)].into_iter().filter(|(_, text)| !label_text(text)) {
            let rule = "1 to 63 letters, digits, `_`, `.`, `:`, `-`, with a letter or digit at both ends";
            problems.push(settings.problem(key, format!("label {what} `{text}` is not {rule}")));
        }
        labels.insert(name.to_owned(), value.to_owned());
    }
    labels
}

fn label_text(text: &str) -> bool {
    let ends = |sign: Option<char>| sign.is_some_and(|sign| sign.is_ascii_alphanumeric());
    let inner = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '.' | ':' | '-');
    text.len() <= 63 && text.chars().all(inner) && ends(text.chars().next()) && ends(text.chars().last())
}

//! The serving part of a node: proxy listeners and workers; and the data plane role.

use super::Node;
use super::life::Running;
use super::listeners::{facts, identities, kind, open};
use super::logging::ClusterLogLevels;
use super::memory::watch_memory;
use super::process::{facts_of, metrics_of};
use super::sockets::ProxySockets;
use super::unavailable::{Degraded, Unavailable};
use crate::failure::Failure;
use gwctl_admin_api::Face;
use gwctl_conf::{AccessForm, Flavor, Materials, NodeConf, Workers};
use gwctl_data_plane::{DataPlane, DataPlaneOptions, Gateway};
use gwctl_entities::view::{Route, from_record};
use gwctl_entities::{Fill, Registry, RegistryOptions};
use gwctl_lifecycle::TaskSet;
use gwctl_plugins::{Natives, PageFormat, PluginHost, Templates, Tracing, natives};
use gwctl_proxy::{
    AccessFormat, AccessLogOptions, AccessTarget, AddedHeaders, BalancerOptions, DnsOptions, Listener, Network, Proxy,
    ProxyError, ProxyOptions, SnapshotHandle, SnapshotOptions, StreamListener, TlsVersions, UpstreamTls,
};
use gwctl_store::{StoreError, SystemFill};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::watch;

/// What keeps a data plane from starting, usually.
const HINT: &str =
    "`gwctl certs init` makes a cluster certificate; the prefix must be writable and not in use by another node";

fn cache_in_use(error: StoreError) -> Failure {
    Failure::because("cannot start the data plane", &gwctl_data_plane::StartError::from(error)).hint(HINT)
}

/// Starts a data plane: cache, proxy, status listener, link.
pub(crate) async fn start_data_plane(node: Node, tasks: &mut TaskSet) -> Result<Running, Failure> {
    let mut options = DataPlaneOptions {
        conf: &node.conf,
        materials: &node.materials,
        node_id: &node.identity.id,
        hostname: &node.identity.hostname,
        registry: registry(&node),
        can_run: |name| natives().iter().any(|native| native.name == name),
        lock: Some(node.holdings.claim(&node.conf.lmdb_environment_path).map_err(cache_in_use)?),
        log_levels: Arc::new(ClusterLogLevels(node.logging.clone())),
    };
    let failed =
        |error: gwctl_data_plane::StartError| Failure::because("cannot start the data plane", &error).hint(HINT);
    let flavor = router_flavor(&node.conf);
    let upstream_tls = Arc::new(upstream_tls(&node.conf, &node.materials)?);
    let data_plane = DataPlane::open(&mut options, |shared| SnapshotOptions {
        flavor,
        hosts: plugin_hosts(),
        node: shared,
        upstream_tls,
    })
    .map_err(failed)?;
    renew_upstream_tls(&node, data_plane.gateway());
    let status_listeners = open(&node, Face::Status)?;
    let proxy = start_proxy(&node, data_plane.gateway().handle().clone(), tasks)?;
    let stats = proxy.stats().clone();
    let (counters, identity, expiries) = (stats.clone(), node.identity.clone(), node.expiries.clone());
    let snapshots = data_plane.gateway().handle().clone();
    let metrics = move || metrics_of(Some(&stats), Some(&snapshots), &identity, &expiries);
    let backend = data_plane.status(facts(&node), move || facts_of(Some(&counters)), metrics);
    status_listeners.serve(&node, &backend, tasks);
    let joined = data_plane.join(&options, node.holdings.turn(), &node.shutdown).map_err(failed)?;
    tasks.add(joined.task);
    let mtls = node.conf.cluster.mtls;
    node.parts.add(move |conf, materials| {
        // Another mode needs a restart.
        if conf.cluster.mtls != mtls {
            return Ok(Box::new(|| {}));
        }
        let renewal = joined.tls.renewal(conf, materials);
        let renewal = renewal.map_err(|error| Failure::because("the cluster link keeps its certificates", &error))?;
        Ok(Box::new(renewal))
    });
    Ok(Running::new(Some(proxy), data_plane.closing()))
}

/// Schemas of the node. A data plane knows those of plugins that it cannot run as well: protocol v2 sends them unasked.
pub(crate) fn registry(node: &Node) -> Arc<Registry> {
    let kind = kind(node);
    let plugins: BTreeSet<String> = node.conf.plugins.clone();
    let router_flavor = node.conf.router_flavor.as_str().to_owned();
    let options = RegistryOptions { kind, router_flavor, plugins: Some(plugins) };
    let mut registry = Registry::bundled_with_secret(&options, &default_secret());
    if node.conf.router_flavor != Flavor::Traditional {
        registry.set_route_check(Arc::new(|record| match from_record::<Route>(record) {
            Ok(route) => gwctl_router::expression::check_route(&route),
            // Not for this check to judge: the schema has.
            Err(_) => Ok(()),
        }));
    }
    Arc::new(registry)
}

/// Default of the session plugin's `secret`: 44 random letters and digits, new at each start as in Kong.
fn default_secret() -> String {
    let mut secret = SystemFill.token() + &SystemFill.token();
    secret.truncate(44);
    secret
}

/// What the node says of TLS towards upstreams.
pub(crate) fn upstream_tls(conf: &NodeConf, materials: &Materials) -> Result<UpstreamTls, Failure> {
    let client = if conf.tls.client.cert.is_empty() {
        None
    } else {
        identities(materials, "client_ssl_cert", "client_ssl_cert_key")?.into_iter().next()
    };
    let trusted = materials.all("lua_ssl_trusted_certificate").to_vec();
    Ok(UpstreamTls { trusted, trust_system: conf.tls.trust_system, client })
}

/// Lets a reload change whom the node trusts and what it presents to others.
pub(crate) fn renew_upstream_tls(node: &Node, gateway: &Arc<Gateway>) {
    let gateway = gateway.clone();
    node.parts.add(move |conf, materials| {
        let tls = upstream_tls(conf, materials)?;
        let failed = |error| Failure::because("connections to upstreams keep their authorities", &error);
        tls.check().map_err(failed)?;
        let gateway = gateway.clone();
        Ok(Box::new(move || {
            let authorities = tls.trusted.iter().map(|(_, pem)| pem.as_str());
            gateway.handle().load().node().authorities.set(authorities);
            gateway.renew_upstream_tls(tls);
        }))
    });
}

/// Opens the proxy's listeners and starts its workers.
pub(crate) fn start_proxy(node: &Node, snapshots: SnapshotHandle, tasks: &mut TaskSet) -> Result<Proxy, Failure> {
    let options = options_of(&node.conf, &node.materials)?;
    let (listeners, streams, workers) = (options.listeners.clone(), options.streams.clone(), options.workers);
    let proxy = Proxy::start_on(options, snapshots, &mut ProxySockets(&node.holdings));
    let proxy = proxy.map_err(|error| {
        let hint = match &error {
            ProxyError::IoListen { address, source } => {
                let of_streams = streams.iter().any(|listener| listener.addr == *address);
                let setting = if of_streams { "stream_listen" } else { "proxy_listen" };
                gwctl_lifecycle::listen_hint(setting, *address, source)
            }
            ProxyError::IoAccessLog { .. } => {
                "correct proxy_access_log and proxy_stream_access_log, or make their folders writable".to_owned()
            }
            _ => "correct proxy_listen".to_owned(),
        };
        Failure::because("cannot start the proxy", &error).hint(hint)
    })?;
    for listener in listeners {
        tracing::info!(address = %listener.addr, tls = listener.ssl, workers, "proxy listening");
    }
    for listener in streams {
        tracing::info!(address = %listener.addr, tls = listener.ssl, udp = listener.udp, workers, "listening for streams");
    }
    let (memory, setting) = watch::channel(node.conf.max_memory);
    tasks.add(watch_memory(proxy.stats().clone(), setting, node.shutdown.clone()));
    let control = proxy.control().clone();
    node.parts.add(move |conf, materials| {
        let failed = |error| Failure::because("the proxy keeps its settings", &error);
        let reload = control.reload(options_of(conf, materials)?).map_err(failed)?;
        let (control, memory, limit) = (control.clone(), memory.clone(), conf.max_memory);
        Ok(Box::new(move || {
            control.commit(reload);
            memory.send_replace(limit);
        }))
    });
    Ok(proxy)
}

fn options_of(conf: &NodeConf, materials: &Materials) -> Result<ProxyOptions, Failure> {
    let mut options = proxy_options(conf);
    options.error_templates = error_templates(conf)?;
    if !materials.all("ssl_cert").is_empty() {
        options.certificates = identities(materials, "ssl_cert", "ssl_cert_key")?;
    }
    Ok(options)
}

fn proxy_options(conf: &NodeConf) -> ProxyOptions {
    let listeners = conf
        .proxy_listen
        .iter()
        .map(|listen| Listener {
            addr: listen.address,
            ssl: listen.ssl,
            http2: listen.http2,
            proxy_protocol: listen.proxy_protocol,
        })
        .collect();
    let workers = match conf.workers {
        Workers::Auto => std::thread::available_parallelism().map_or(1, usize::from),
        Workers::Count(count) => count,
    };
    let streams = conf
        .stream_listen
        .iter()
        .map(|listen| StreamListener {
            addr: listen.address,
            ssl: listen.ssl,
            proxy_protocol: listen.proxy_protocol,
            udp: listen.udp,
        })
        .collect();
    ProxyOptions {
        listeners,
        streams,
        workers,
        headers: AddedHeaders::from_tokens(conf.headers.iter().copied(), conf.headers_upstream.iter().copied()),
        trusted_ips: conf.real_ip.trusted.iter().filter_map(|text| Network::parse(text)).collect(),
        real_ip_header: conf.real_ip.header.to_ascii_lowercase(),
        real_ip_recursive: conf.real_ip.recursive,
        allow_debug_header: conf.allow_debug_header,
        tls_versions: TlsVersions::of(conf.tls.protocols.iter().map(String::as_str)),
        dns: dns_options(conf),
        client_max_body_size: conf.limits.client_max_body_size,
        // Kong's default of 8 KiB would send bodies to files that cost less in memory.
        client_body_buffer_size: conf.limits.client_body_buffer_size.max(64 * 1024),
        spool_folder: conf.prefix.clone(),
        upstream_keepalive_pool_size: conf.upstream_keepalive.pool_size,
        upstream_keepalive_max_requests: u32::try_from(conf.upstream_keepalive.max_requests).unwrap_or(0),
        upstream_keepalive_idle_timeout: conf.upstream_keepalive.idle_timeout,
        balancing: BalancerOptions {
            slow_start: conf.upstream_slow_start,
            max_connections_per_target: u32::try_from(conf.upstream_max_connections_per_target).unwrap_or(0),
        },
        shutdown_timeout: conf.shutdown_grace,
        access_log: conf.logs.proxy_access.as_ref().map(access_log),
        stream_access_log: conf.logs.proxy_stream_access.as_ref().map(access_log),
        tracing: Tracing::of(conf.tracing.instrumentations.iter().map(String::as_str), conf.tracing.sampling_rate),
        max_connections: conf.proxy_max_connections,
        max_udp_sessions: conf.stream_max_udp_sessions,
        max_files: rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(0),
        header_timeout: conf.client_header_timeout,
        client_timeout: conf.client_body_timeout,
        send_timeout: conf.client_send_timeout,
        keepalive_timeout: conf.client_keepalive_timeout,
        keepalive_requests: conf.client_keepalive_requests,
        max_target_size: conf.client_header_buffers.size,
        max_head_size: conf.client_header_buffers.number * conf.client_header_buffers.size,
        ..ProxyOptions::default()
    }
}

/// Reads the templates of error pages.
fn error_templates(conf: &NodeConf) -> Result<Templates, Failure> {
    let mut templates = Templates::default();
    for (kind, path) in &conf.error_templates {
        let format = match *kind {
            "html" => PageFormat::Html,
            "xml" => PageFormat::Xml,
            "plain" => PageFormat::Plain,
            _ => PageFormat::Json,
        };
        let failed = |error: &dyn std::error::Error| {
            Failure::because(format!("cannot use error_template_{kind} = {}", path.display()), error)
                .hint("a template has `%s` where the message belongs and a second one for the id of the request")
        };
        let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
        templates.set(format, &text).map_err(|error| failed(&error))?;
    }
    Ok(templates)
}

fn access_log(conf: &gwctl_conf::AccessLog) -> AccessLogOptions {
    let target = match conf.path.to_str() {
        Some("/dev/stdout") => AccessTarget::Stdout,
        Some("/dev/stderr") => AccessTarget::Stderr,
        _ => AccessTarget::File(conf.path.clone()),
    };
    let format = match conf.form {
        AccessForm::Basic => AccessFormat::Basic,
        AccessForm::Combined => AccessFormat::Combined,
        AccessForm::Json => AccessFormat::Json,
    };
    AccessLogOptions { target, format, sample: conf.sample }
}

fn dns_options(conf: &NodeConf) -> DnsOptions {
    let dns = &conf.dns;
    DnsOptions {
        servers: dns.resolver.iter().filter_map(|text| DnsOptions::server(text)).collect(),
        hosts_file: dns.hostsfile.clone(),
        order: DnsOptions::order_of(dns.order.iter().map(String::as_str)),
        valid_ttl: dns.valid_ttl,
        stale_ttl: dns.stale_ttl,
        not_found_ttl: dns.not_found_ttl,
        error_ttl: dns.error_ttl,
        cache_size: dns.cache_size,
    }
}

/// The flavor of routes.
pub(crate) fn router_flavor(conf: &NodeConf) -> gwctl_router::Flavor {
    match conf.router_flavor {
        Flavor::TraditionalCompatible => gwctl_router::Flavor::TraditionalCompatible,
        Flavor::Traditional => gwctl_router::Flavor::Traditional,
        Flavor::Expressions => gwctl_router::Flavor::Expressions,
    }
}

/// What builds the plugins of a node.
pub(crate) fn plugin_hosts() -> Vec<Arc<dyn PluginHost>> {
    vec![Arc::new(Degraded(Natives)), Arc::new(Unavailable)]
}

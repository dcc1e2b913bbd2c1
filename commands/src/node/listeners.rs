//! Admin and status listeners of any role.

use super::Node;
use crate::failure::Failure;
use gwctl_admin_api::{Backend, Face, Limits, ListenOptions, Listener, NodeFacts, ServeOptions, serve_with};
use gwctl_certs::{Identity, Source, listener_config, self_signed};
use gwctl_conf::{AdminAuth, Database, NodeConf, Role};
use gwctl_entities::NodeKind;
use gwctl_lifecycle::{Phase, Shutdown, TaskSet, spawn};
use gwctl_store::unix_millis;
use std::sync::Arc;

/// Version of Kong announced to clients.
pub(crate) const KONG_VERSION: &str = "3.9.1";

/// What the node is, for schemas and answers.
pub(crate) fn kind(node: &Node) -> NodeKind {
    match (node.conf.role, node.conf.database) {
        (Role::ControlPlane, _) => NodeKind::ControlPlane,
        (Role::DataPlane, _) => NodeKind::DataPlane,
        (Role::Traditional, Database::Off) => NodeKind::DbLess,
        (Role::Traditional, _) => NodeKind::Traditional,
    }
}

/// What the node says of itself.
pub(crate) fn facts(node: &Node) -> NodeFacts {
    let conf = &node.conf;
    NodeFacts {
        id: node.identity.id.clone(),
        hostname: node.identity.hostname.clone(),
        version: KONG_VERSION.to_owned(),
        kind: kind(node),
        configuration: conf.configuration_json().into(),
        process_id: std::process::id(),
        worker_ids: vec![std::process::id()],
        admin_gui_origins: Vec::new(),
        server_header: conf.adds_header("server_tokens"),
        latency_header: conf.adds_header("latency_tokens"),
    }
}

/// Opens the listeners of one face and serves them until the node stops.
pub(crate) fn open(
    node: &Node,
    face: Face,
    backend: &Arc<dyn Backend>,
    shutdown: &Shutdown,
    tasks: &mut TaskSet,
) -> Result<(), Failure> {
    let (setting, listeners, cert, key) = match face {
        Face::Admin => ("admin_listen", &node.conf.admin_listen, "admin_ssl_cert", "admin_ssl_cert_key"),
        Face::Status => ("status_listen", &node.conf.status_listen, "status_ssl_cert", "status_ssl_cert_key"),
    };
    for listen in listeners {
        let tls = match listen.ssl {
            true => Some(tls_config(node, cert, key, listen.http2)?),
            false => None,
        };
        let options = ListenOptions { address: listen.address, tls, setting };
        let listener = Listener::bind(&options).map_err(|error| {
            let hint = error.hint();
            Failure::new(error.to_string()).hint(hint)
        })?;
        let guarded = node.conf.admin_auth == AdminAuth::Token;
        if face == Face::Admin && !guarded && !listen.address.ip().is_loopback() {
            tracing::warn!(
                address = %listen.address,
                "the Admin API is reachable from other machines and has no login; set admin_auth = token, or keep admin_listen on a loopback address"
            );
        }
        tracing::info!(address = %listen.address, setting, tls = listen.ssl, "listening");
        let (backend, stop, options) = (backend.clone(), shutdown.clone(), serve_options(&node.conf));
        tasks.add(spawn(setting, Phase::Drain, async move {
            let stopped = async move { stop.reached(Phase::StopAccepting).await };
            serve_with(listener, face, backend, &options, stopped).await;
        }));
    }
    Ok(())
}

/// What clients of the Admin API may use, and whether they must show a token.
fn serve_options(conf: &NodeConf) -> ServeOptions {
    // Zero means any length.
    let bytes = |limit: u64| if limit == 0 { usize::MAX } else { usize::try_from(limit).unwrap_or(usize::MAX) };
    ServeOptions {
        authentication: conf.admin_auth == AdminAuth::Token,
        limits: Limits {
            body: bytes(conf.limits.admin_max_body_size),
            changes_body: bytes(conf.limits.admin_changes_max_body_size),
            connections: conf.admin_max_connections,
            ..Limits::default()
        },
    }
}

/// The certificates of a listener, or one made for this start when none is set.
fn tls_config(node: &Node, cert: &str, key: &str, http2: bool) -> Result<Arc<rustls::ServerConfig>, Failure> {
    let identities = identities(node, cert, key)?;
    listener_config(&identities, http2).map_err(|error| Failure::because("cannot set up TLS", &error))
}

/// The pairs of two settings, in order; a pair made now when they are unset.
pub(crate) fn identities(node: &Node, cert: &str, key: &str) -> Result<Vec<Identity>, Failure> {
    let failed = |error: gwctl_certs::CertError| Failure::new(error.to_string());
    let (certs, keys) = (node.materials.all(cert), node.materials.all(key));
    if certs.is_empty() {
        let pair = self_signed(&["localhost".to_owned()], unix_millis() / 1000).map_err(failed)?;
        let made = |pem| Source { setting: "self-signed certificate", place: "memory", pem };
        return Ok(vec![Identity::read(made(&pair.certificate), made(&pair.key)).map_err(failed)?]);
    }
    let pairs = certs.iter().zip(keys).map(|((cert_place, cert_pem), (key_place, key_pem))| {
        let certificate = Source { setting: cert, place: cert_place, pem: cert_pem };
        Identity::read(certificate, Source { setting: key, place: key_place, pem: key_pem }).map_err(failed)
    });
    pairs.collect()
}

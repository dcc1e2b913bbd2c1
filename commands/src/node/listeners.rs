//! Admin and status listeners of any role.

use super::Node;
use crate::failure::Failure;
use gwctl_admin_api::{
    Backend, BindError, Face, Limits, ListenOptions, Listener, NodeFacts, ServeOptions, ShownSettings, serve_with,
};
use gwctl_certs::{Identity, ListenerPairs, Source, listener_config_of, self_signed};
use gwctl_conf::{AdminAuth, Database, Materials, NodeConf, Role};
use gwctl_entities::NodeKind;
use gwctl_lifecycle::{Phase, TaskSet, spawn};
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
    let configuration = ShownSettings::new(conf.configuration_json().into());
    let (shown, started) = (configuration.clone(), conf.clone());
    node.parts.add(move |conf, _| {
        let (shown, settings) = (shown.clone(), started.configuration_with(conf));
        Ok(Box::new(move || shown.set(settings.into())))
    });
    NodeFacts {
        id: node.identity.id.clone(),
        hostname: node.identity.hostname.clone(),
        version: KONG_VERSION.to_owned(),
        kind: kind(node),
        configuration,
        process_id: std::process::id(),
        worker_ids: vec![std::process::id()],
        admin_gui_origins: Vec::new(),
        server_header: conf.adds_header("server_tokens"),
        latency_header: conf.adds_header("latency_tokens"),
    }
}

/// The listeners of one face: opened, not yet answering.
///
/// A node answers at one of its addresses only once it has them all: one that found another taken would end under the
/// hands of clients it has let in.
pub(crate) struct Opened {
    face: Face,
    setting: &'static str,
    listeners: Vec<(gwctl_conf::Listener, Listener)>,
}

/// Opens the listeners of one face.
pub(crate) fn open(node: &Node, face: Face) -> Result<Opened, Failure> {
    let (setting, listeners, cert, key) = match face {
        Face::Admin => ("admin_listen", &node.conf.admin_listen, "admin_ssl_cert", "admin_ssl_cert_key"),
        Face::Status => ("status_listen", &node.conf.status_listen, "status_ssl_cert", "status_ssl_cert_key"),
    };
    let pairs = match listeners.iter().any(|listen| listen.ssl) {
        true => Some(ListenerPairs::new(&identities(&node.materials, cert, key)?)),
        false => None,
    };
    if let Some(pairs) = pairs.clone() {
        renew_with(node, pairs, cert, key);
    }
    let open = |listen: &gwctl_conf::Listener| {
        let config = |pairs| listener_config_of(pairs, listen.http2);
        let tls = pairs.as_ref().filter(|_| listen.ssl).map(config).transpose();
        let tls = tls.map_err(|error| Failure::because("cannot set up TLS", &error))?;
        let listener = bind(node, &ListenOptions { address: listen.address, tls, setting })?;
        Ok((listen.clone(), listener))
    };
    Ok(Opened { face, setting, listeners: listeners.iter().map(open).collect::<Result<_, Failure>>()? })
}

impl Opened {
    /// Serves them until the node stops.
    pub(crate) fn serve(self, node: &Node, backend: &Arc<dyn Backend>, tasks: &mut TaskSet) {
        let (face, setting) = (self.face, self.setting);
        let guarded = node.conf.admin_auth == AdminAuth::Token;
        for (listen, listener) in self.listeners {
            if face == Face::Admin && !guarded && !listen.address.ip().is_loopback() {
                tracing::warn!(
                    address = %listen.address,
                    "the Admin API is reachable from other machines and has no login; set admin_auth = token, or keep admin_listen on a loopback address"
                );
            }
            tracing::info!(address = %listen.address, setting, tls = listen.ssl, "listening");
            let (backend, stop, options) = (backend.clone(), node.shutdown.clone(), serve_options(&node.conf));
            // What is asked of the Admin API may write; until this node may, its clients wait.
            let turn = (face == Face::Admin).then(|| node.holdings.turn());
            tasks.add(spawn(setting, Phase::Drain, async move {
                if let Some(turn) = turn
                    && stop.until(Phase::StopAccepting, turn).await.is_none()
                {
                    return;
                }
                let stopped = async move { stop.reached(Phase::StopAccepting).await };
                serve_with(listener, face, backend, &options, stopped).await;
            }));
        }
    }
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

/// Binds an address, or takes the socket that was handed over.
fn bind(node: &Node, options: &ListenOptions) -> Result<Listener, Failure> {
    let failed = |error: BindError| Failure::new(error.to_string()).hint(error.hint());
    let at = |source| failed(BindError { setting: options.setting, address: options.address, source });
    let listener = match node.holdings.take(options.address).pop() {
        Some(socket) => Listener::of(socket, options.tls.clone()).map_err(at)?,
        None => Listener::bind(options).map_err(failed)?,
    };
    node.holdings.keep(listener.share().map_err(at)?);
    Ok(listener)
}

/// Lets a reload replace the certificates of a listener. Where none are set, the one made at the start stays.
fn renew_with(node: &Node, pairs: ListenerPairs, cert: &'static str, key: &'static str) {
    node.parts.add(move |_, materials| {
        if materials.all(cert).is_empty() {
            return Ok(Box::new(|| {}));
        }
        let (pairs, identities) = (pairs.clone(), identities(materials, cert, key)?);
        Ok(Box::new(move || pairs.renew(&identities)))
    });
}

/// The pairs of two settings, in order; a pair made now when they are unset.
pub(crate) fn identities(materials: &Materials, cert: &str, key: &str) -> Result<Vec<Identity>, Failure> {
    let failed = |error: gwctl_certs::CertError| Failure::new(error.to_string());
    let (certs, keys) = (materials.all(cert), materials.all(key));
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

//! From a request to its answer. Blocking, without sockets: the HTTP side calls it on a blocking thread.

use crate::answer::Answer;
use crate::backend::{Backend, NodeFacts};
use crate::context::{Context, Memory};
use crate::entity::{self, Below};
use crate::place::{self, Place};
use crate::request::Request;
use crate::{Face, clustering, list, node, schemas, status, tags, target};
use gwctl_entities::EntityError;
use http::Method;
use std::cell::Cell;
use std::sync::Arc;

/// One face of a backend.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) face: Face,
    pub(crate) backend: Arc<dyn Backend>,
    /// Taken once: the settings shown are large, and nothing in them changes while a listener is open.
    pub(crate) node: Arc<NodeFacts>,
    memory: Arc<Memory>,
}

impl Api {
    pub(crate) fn new(face: Face, backend: Arc<dyn Backend>) -> Self {
        let node = Arc::new(backend.node());
        Self { face, backend, node, memory: Arc::default() }
    }

    /// The endpoint of a path, None for an unknown one.
    pub(crate) fn place(&self, segments: &[String]) -> Option<Place> {
        place::resolve_on(self.face, &self.backend.registry(), self.node.kind, segments)
    }

    /// The answer to a request at its place.
    pub(crate) fn answer(&self, place: &Place, request: &Request) -> Answer {
        let context = Context {
            backend: self.backend.as_ref(),
            registry: self.backend.registry(),
            node: &self.node,
            request,
            memory: &self.memory,
            version: Cell::new(None),
        };
        match place {
            Place::Switched => return Answer::not_found(),
            Place::NoWasm => return Answer::message(400, "this endpoint is only available when wasm is enabled"),
            _ => {}
        }
        let methods =
            if self.face == Face::Status && *place != Place::StatusReady { READ_ONLY } else { place.methods() };
        if request.method == Method::OPTIONS {
            return options(&context, place, methods);
        }
        if !methods.contains(&request.method.as_str()) {
            return Answer::message(405, "Method not allowed");
        }
        let answer = Answer::from(dispatch(&context, place));
        match context.version.get() {
            Some(version) => answer.with_header(VERSION_HEADER, version.to_string()),
            None => answer,
        }
    }
}

/// Version of the records an answer shows or has made. A write with `If-Match: "<version>"` fails with 412 when another
/// came first; `GET /gwctl/fleet` tells when a version has arrived.
const VERSION_HEADER: &str = "gwctl-version";

const READ_ONLY: &[&str] = &["GET", "HEAD", "OPTIONS"];

fn options(context: &Context<'_>, place: &Place, methods: &[&str]) -> Answer {
    match entity::options_exist(context, place) {
        Ok(()) => {
            let methods = methods.join(", ");
            Answer::empty(204)
                .with_header("allow", methods.clone())
                .with_header("access-control-allow-methods", methods)
        }
        Err(error) => error.into(),
    }
}

fn dispatch(context: &Context<'_>, place: &Place) -> Result<Answer, EntityError> {
    let posts = context.request.method == Method::POST;
    match place {
        Place::Collection { entity } if posts => entity::post(context, entity, None),
        Place::Collection { entity } => list::collection(context, entity),
        Place::Item { entity, key } => entity::item(context, entity, key),
        Place::Parent { entity, key, field } => entity::parent(context, entity, key, field),
        Place::Nested { parent, parent_key, entity, field } if posts => {
            entity::post(context, entity, Some(Below { parent, segment: parent_key, field }))
        }
        Place::Nested { parent, parent_key, entity, field } => {
            list::nested(context, (parent, parent_key), (entity, field))
        }
        Place::NestedItem { parent, parent_key, entity, field, key } => {
            entity::nested_item(context, Below { parent, segment: parent_key, field }, entity, key)
        }
        Place::AllTargets { upstream } => target::all(context, upstream),
        Place::UpstreamHealth { upstream } => target::health(context, upstream),
        Place::TargetHealth { upstream, target, address, healthy } => {
            target::mark(context, upstream, target, address.as_deref(), *healthy)
        }
        Place::EntitySchema { entity } => schemas::entity(context, entity),
        Place::PluginSchema { name } => schemas::plugin(context, name),
        Place::PluginConfigSchema { name } => schemas::plugin_config(context, name),
        Place::VaultSchema { name } => schemas::vault(context, name),
        Place::ValidateEntity { entity } => schemas::validate(context, entity),
        Place::Tags => tags::all(context),
        Place::Tag { tag } => tags::one(context, tag),
        Place::DataPlanes => clustering::data_planes(context),
        Place::ClusteringStatus => clustering::status(context),
        Place::Fleet => clustering::fleet(context),
        Place::Root => node::root(context),
        Place::Status => status::status(context),
        Place::Config => node::config(context),
        Place::SetLogLevel { cluster, level } => node::set_log_level(context, *cluster, level),
        other => Ok(of_node(context, other)),
    }
}

/// Endpoints that cannot fail.
fn of_node(context: &Context<'_>, place: &Place) -> Answer {
    match place {
        Place::StatusReady => status::ready(context),
        Place::StatusDns => status::dns(),
        Place::Endpoints => {
            let patterns = place::patterns(&context.registry, context.node.kind);
            Answer::ok(serde_json::json!({ "data": patterns }))
        }
        Place::Timers => node::timers(context),
        Place::Robots => node::robots(),
        Place::EnabledPlugins => node::enabled_plugins(context),
        Place::LogLevel => node::log_level(context),
        Place::Metrics => node::metrics(context),
        Place::Cache | Place::ProxyCache => Answer::empty(204),
        Place::CacheEntry | Place::ProxyCacheEntry => node::cache_entry(context),
        Place::FilterSchema { name } => Answer::message(404, &format!("Filter '{name}' not found")),
        // The acme plugin is not configured on this node, and so on for what else has no answer of its own.
        _ => Answer::not_found(),
    }
}

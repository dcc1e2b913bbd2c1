//! From a request to its answer. Blocking, without sockets: the HTTP side calls it on a blocking thread.

use crate::answer::{Answer, Content};
use crate::backend::{Backend, NodeFacts};
use crate::caller::{self, Caller};
use crate::context::{Context, Memory};
use crate::entity::{self, Below};
use crate::place::{self, Place};
use crate::request::Request;
use crate::serve::{Limits, ServeOptions};
use crate::{Face, changes, clustering, history, list, node, openapi, rollback, schemas, status, tags, target};
use gwctl_entities::EntityError;
use http::Method;
use std::cell::Cell;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// One face of a backend.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) face: Face,
    pub(crate) backend: Arc<dyn Backend>,
    /// Taken once: the settings shown are large, and nothing in them changes while a listener is open.
    pub(crate) node: Arc<NodeFacts>,
    memory: Arc<Memory>,
    /// Requests must carry a token.
    pub(crate) authentication: bool,
    pub(crate) limits: Arc<Limits>,
    /// One for each stream of events.
    pub(crate) event_slots: Arc<Semaphore>,
    /// One for each large body that is being read or worked on.
    pub(crate) large_bodies: Arc<Semaphore>,
}

impl Api {
    pub(crate) fn new(face: Face, backend: Arc<dyn Backend>, options: &ServeOptions) -> Self {
        let limits = Arc::new(options.limits.clone());
        Self {
            face,
            node: Arc::new(backend.node()),
            backend,
            memory: Arc::default(),
            authentication: options.authentication && face == Face::Admin,
            event_slots: Arc::new(Semaphore::new(limits.event_streams)),
            large_bodies: Arc::new(Semaphore::new(limits.large_bodies)),
            limits,
        }
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
            asks_for_tokens: self.authentication,
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
        if request.dry_run && !reads(&request.method) && !place.has_dry_run() {
            return Answer::message(400, "dry_run is for changes of the configuration, this is none: nothing was done");
        }
        let answer = Answer::from(dispatch(&context, place));
        // The records shown or made are of this version; `If-Match` with it guards a later write.
        match context.version.get() {
            Some(version) => answer.with_header("etag", format!("\"{version}\"")),
            None => answer,
        }
    }
}

/// Content type of `GET /gwctl/events`.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

const READ_ONLY: &[&str] = &["GET", "HEAD", "OPTIONS"];

pub(crate) fn reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

fn options(context: &Context<'_>, place: &Place, methods: &[&str]) -> Answer {
    let exists = match context.request.caller {
        // Whoever has no token learns nothing of what there is.
        Caller::Nobody => Ok(()),
        _ => entity::options_exist(context, place),
    };
    match exists {
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
        Place::DataPlaneLogLevel { id } => clustering::log_level(context, id),
        Place::ClusteringStatus => clustering::status(context),
        Place::Fleet => clustering::fleet(context),
        Place::Changes => changes::post(context),
        Place::History => history::history(context),
        Place::Rollback => rollback::post(context),
        Place::Versions { text } => history::versions(context, text),
        Place::Tokens => caller::collection(context),
        Place::Token { key } => caller::item(context, key),
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
        Place::OpenApi => openapi::openapi(context),
        Place::Robots => node::robots(),
        // GET is answered by a stream, before it comes here.
        Place::Events => {
            let content = Content::Text { content_type: EVENT_STREAM, text: String::new() };
            Answer { status: 200, content, headers: Vec::new() }
        }
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

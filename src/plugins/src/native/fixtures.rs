//! Requests, records and plugins made by hand, for the tests of this folder.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use super::Natives;
use crate::{
    Body, Context, Directory, DirectoryError, Exit, Node, Plugin, PluginError, PluginFacts, PluginHost, Response,
    Scheme, Source, Step, Upstream,
};
use gwctl_entities::{Record, Value};
use gwctl_http1::{Headers, Name};
use http::header::{HeaderName, HeaderValue};
use http::{Method, StatusCode};
use std::sync::Arc;
use std::time::Duration;

/// Rows of entities.
pub(super) struct Records(pub(super) Vec<(&'static str, Value)>);

impl Records {
    fn first(&self, entity: &str, field: &str, value: &str) -> Result<Option<Arc<Record>>, DirectoryError> {
        let fits = |row: &&(&str, Value)| row.0 == entity && row.1.get(field).and_then(Value::as_str) == Some(value);
        Ok(self.0.iter().find(fits).map(|(_, row)| Arc::new(row.as_object().unwrap().clone())))
    }
}

impl Directory for Records {
    fn get(&self, entity: &str, id: &str) -> Result<Option<Arc<Record>>, DirectoryError> {
        self.first(entity, "id", id)
    }

    fn find(&self, entity: &str, field: &str, value: &str) -> Result<Option<Arc<Record>>, DirectoryError> {
        self.first(entity, field, value)
    }

    fn children(&self, _entity: &str, _field: &str, _id: &str) -> Result<Vec<Arc<Record>>, DirectoryError> {
        Ok(Vec::new())
    }
}

/// A directory whose store fails.
pub(super) struct Broken;

impl Directory for Broken {
    fn get(&self, entity: &str, _id: &str) -> Result<Option<Arc<Record>>, DirectoryError> {
        Err(DirectoryError { entity: entity.to_owned(), reason: "the disk is gone".to_owned() })
    }

    fn find(&self, entity: &str, _field: &str, _value: &str) -> Result<Option<Arc<Record>>, DirectoryError> {
        self.get(entity, "")
    }

    fn children(&self, entity: &str, _field: &str, _id: &str) -> Result<Vec<Arc<Record>>, DirectoryError> {
        self.get(entity, "").map(|_| Vec::new())
    }
}

/// A node over these records.
pub(super) fn node(directory: impl Directory + 'static) -> Arc<Node> {
    Arc::new(Node::new("node-1", "host-1", Arc::new(directory)))
}

/// Facts of a row bound to nothing.
pub(super) fn facts(name: &str) -> PluginFacts {
    PluginFacts {
        id: "row-1".into(),
        name: name.into(),
        instance_name: None,
        service: None,
        route: None,
        consumer: None,
        node: node(Records(Vec::new())),
    }
}

/// The plugin with these settings, `defaults` being those of its schema.
pub(super) fn try_build(name: &str, defaults: Value, changed: Value) -> Result<Arc<dyn Plugin>, PluginError> {
    let mut config = defaults.as_object().unwrap().clone();
    config.extend(changed.as_object().unwrap().clone());
    Natives.build(name, &config, &facts(name))
}

/// A routed request, nobody identified.
pub(super) fn context(method: &str, target: &str) -> Context {
    let mut context = crate::context::tests::sample();
    context.request.method = Method::from_bytes(method.as_bytes()).unwrap();
    context.request.uri = target.parse().unwrap();
    context.upstream = Some(Upstream {
        scheme: Scheme::Http,
        host: "upstream.test".into(),
        port: 80,
        path: context.request.uri.path().to_owned(),
        query: None,
        host_header: None,
        retries: 0,
        connect_timeout: Duration::from_secs(1),
        write_timeout: Duration::from_secs(1),
        read_timeout: Duration::from_secs(1),
    });
    context
}

/// Adds a request header.
pub(super) fn with(mut context: Context, name: &str, value: &str) -> Context {
    let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
    context.request.headers.append(&name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    context
}

/// Adds a request body.
pub(super) fn with_body(context: Context, content_type: &str, body: &'static str) -> Context {
    let mut context = with(context, "content-type", content_type);
    context.request.body = Body::Buffered(body.into());
    context
}

/// The body as it goes to the upstream.
pub(super) fn body(context: &Context) -> &str {
    match &context.request.body {
        Body::Buffered(bytes) => std::str::from_utf8(bytes).unwrap(),
        _ => "",
    }
}

/// A header as text, empty when absent; several values are joined by `|`.
pub(super) fn text(headers: &Headers, name: &str) -> String {
    let values: Vec<_> = headers.get_all(name).map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    values.join("|")
}

/// Runs access of a plugin that does not wait.
pub(super) fn access(plugin: &dyn Plugin, context: &mut Context) -> Result<Option<Box<Exit>>, PluginError> {
    match plugin.access(context) {
        Step::Next => Ok(None),
        Step::Exit(exit) => Ok(Some(exit)),
        Step::Fail(error) => Err(error),
        Step::Wait(_) => panic!("a native plugin without sockets does not wait"),
    }
}
/// Gives the request a response of the upstream and runs header_filter. The headers then.
pub(super) fn respond(plugin: &dyn Plugin, context: &mut Context, headers: &[(&'static str, &'static str)]) -> Headers {
    let pairs = headers.iter().map(|(name, value)| (Name::from_static(name), HeaderValue::from_static(value)));
    let headers = pairs.collect();
    context.response = Some(Response { status: StatusCode::OK, headers, source: Source::Service });
    assert!(plugin.header_filter(context).unwrap().is_none());
    context.response.as_ref().unwrap().headers.clone()
}

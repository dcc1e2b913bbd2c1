//! `request-termination`: the node answers by itself.

use super::arguments::{self, Found};
use super::form::Form;
use super::{Built, Native, header_names, header_value, path, settings};
use crate::{Body, Context, Exit, ExitBody, Needs, Phases, Plugin, PluginError, PluginFacts, Step};
use gwctl_entities::{Map, Record, Value};
use gwctl_http1::Headers;
use gwctl_http1::names::CONTENT_TYPE;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// Line of the table.
pub(super) const NATIVE: Native = Native { name: "request-termination", priority: 2, version: "3.9.1", build };

#[derive(Deserialize)]
struct Config {
    status_code: u16,
    message: Option<String>,
    content_type: Option<String>,
    body: Option<String>,
    echo: bool,
    trigger: Option<String>,
}

struct Termination {
    status: StatusCode,
    message: Option<String>,
    content_type: Option<HeaderValue>,
    body: Option<String>,
    echo: bool,
    trigger: Option<Trigger>,
}

/// A header or an argument of the query that asks for the answer.
struct Trigger {
    argument: String,
    headers: Vec<HeaderName>,
}

fn build(config: &Record, _facts: &PluginFacts) -> Built {
    let config: Config = settings(config)?;
    let status = StatusCode::from_u16(config.status_code)
        .map_err(|_| PluginError("'config.status_code' is not the status of a response".to_owned()))?;
    let content_type = config.content_type.as_deref().map(|text| header_value("content_type", text)).transpose()?;
    let trigger = config.trigger.map(|argument| Trigger { headers: header_names(&argument), argument });
    let message = config.message.or_else(|| default_message(status).map(str::to_owned));
    Ok(Arc::new(Termination { status, message, content_type, body: config.body, echo: config.echo, trigger }))
}

/// Source: Kong 3.9.1 `kong/plugins/request-termination/handler.lua`.
fn default_message(status: StatusCode) -> Option<&'static str> {
    Some(match status.as_u16() {
        401 => "Unauthorized",
        404 => "Not found",
        405 => "Method not allowed",
        500 => "An unexpected error occurred",
        502 => "Bad Gateway",
        503 => "Service unavailable",
        _ => return None,
    })
}

impl Trigger {
    fn is_in(&self, context: &Context) -> bool {
        let header = self.headers.iter().any(|name| context.request.headers.contains(name));
        header || arguments::find(arguments::query(context), &self.argument) != Found::Absent
    }
}

impl Termination {
    /// The request as the node sees it, to find out how it was understood.
    fn echo(&self, context: &Context) -> Value {
        let request = &context.request;
        let raw_body = match &request.body {
            Body::Buffered(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Body::Empty | Body::Stream(_) => String::new(),
        };
        let matched = |entity: &str, id: Option<&str>| {
            let record = id.and_then(|id| context.get(entity, id).ok().flatten());
            record.map_or_else(|| id.map_or(Value::Null, |id| json!({ "id": id })), |record| present(&record))
        };
        present(&object(json!({
            "message": self.message,
            "kong": {
                "node_id": context.node.id,
                "worker_pid": std::process::id(),
                "hostname": context.node.hostname,
            },
            "request": present(&object(json!({
                "scheme": request.scheme.as_str(),
                "host": request.host,
                "port": request.port,
                "headers": headers(&request.headers),
                "query": arguments::to_value(arguments::query(context)),
                "body": Form::read(request).to_value(),
                "raw_body": raw_body,
                "method": request.method.as_str(),
                "path": path::normalise(request.uri.path()),
                "uri_captures": captures(&context.captures),
            }))),
            "matched_route": matched("routes", context.route.as_deref().map(|route| &*route.id)),
            "matched_service": matched("services", context.service.as_deref().map(|service| &*service.id)),
        })))
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// A record without the fields that are not set.
fn present(record: &Map<String, Value>) -> Value {
    record.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn headers(headers: &Headers) -> Value {
    let mut all = Map::new();
    for (name, value) in headers {
        arguments::add(&mut all, name.to_ascii_lowercase(), String::from_utf8_lossy(value.as_bytes()).into());
    }
    Value::Object(all)
}

/// Groups of the path: those with a name stand in both lists.
fn captures(captures: &[(Option<String>, String)]) -> Value {
    let unnamed: Vec<_> = captures.iter().filter(|(name, _)| name.is_none()).map(|(_, text)| text).collect();
    let named: Map<_, _> =
        captures.iter().filter_map(|(name, text)| Some((name.clone()?, Value::from(text.as_str())))).collect();
    json!({ "named": named, "unnamed": unnamed })
}

impl Plugin for Termination {
    fn phases(&self) -> Phases {
        Phases::ACCESS
    }

    fn needs(&self) -> Needs {
        Needs { request_body: self.echo, captures: self.echo }
    }

    fn access<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        if self.trigger.as_ref().is_some_and(|trigger| !trigger.is_in(context)) {
            return Step::Next;
        }
        if self.echo {
            return Exit::json(self.status, &self.echo(context)).into();
        }
        let mut exit = Exit::empty(self.status);
        match (&self.body, &self.message) {
            (Some(body), _) => {
                exit.body = ExitBody::Bytes(body.clone().into());
                if let Some(content_type) = &self.content_type {
                    exit.headers.insert(CONTENT_TYPE, content_type);
                }
            }
            (None, Some(message)) => exit = Exit::json(self.status, &json!({ "message": message })),
            (None, None) => {}
        }
        exit.into()
    }
}

#[cfg(test)]
mod tests;

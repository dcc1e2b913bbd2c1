//! `cors`: answers browsers that ask which origins may read a response.

use super::{Built, Native, header_value, number, settings};
use crate::{Context, Exit, Phases, Plugin, PluginError, PluginFacts, Step};
use gwctl_entities::Record;
use gwctl_http1::names::{ACCESS_CONTROL_ALLOW_ORIGIN, ORIGIN, VARY};
use gwctl_http1::{AsValue, Headers, Name};
use http::header::HeaderValue;
use http::{Method, StatusCode};
use origins::Origins;
use serde::Deserialize;
use std::sync::Arc;

mod origins;

/// Line of the table.
pub(super) const NATIVE: Native = Native { name: "cors", priority: 2000, version: "3.9.1", build };

const ALLOW_CREDENTIALS: Name<'static> = Name::from_static("access-control-allow-credentials");
const ALLOW_HEADERS: Name<'static> = Name::from_static("access-control-allow-headers");
const ALLOW_METHODS: Name<'static> = Name::from_static("access-control-allow-methods");
const ALLOW_PRIVATE_NETWORK: Name<'static> = Name::from_static("access-control-allow-private-network");
const EXPOSE_HEADERS: Name<'static> = Name::from_static("access-control-expose-headers");
const MAX_AGE: Name<'static> = Name::from_static("access-control-max-age");
const REQUEST_HEADERS: Name<'static> = Name::from_static("access-control-request-headers");
const REQUEST_METHOD: Name<'static> = Name::from_static("access-control-request-method");
const REQUEST_PRIVATE_NETWORK: Name<'static> = Name::from_static("access-control-request-private-network");
const DEFAULT_METHODS: &str = "GET,HEAD,PUT,PATCH,POST,DELETE,OPTIONS,TRACE,CONNECT";
const TRUE: HeaderValue = HeaderValue::from_static("true");
const ANY: HeaderValue = HeaderValue::from_static("*");

#[derive(Deserialize)]
struct Config {
    origins: Option<Vec<String>>,
    headers: Option<Vec<String>>,
    exposed_headers: Option<Vec<String>>,
    methods: Option<Vec<String>>,
    max_age: Option<f64>,
    credentials: bool,
    private_network: bool,
    preflight_continue: bool,
}

struct Cors {
    origins: Origins,
    /// None: what the client asks for.
    headers: Option<HeaderValue>,
    exposed: Option<HeaderValue>,
    methods: HeaderValue,
    max_age: Option<HeaderValue>,
    credentials: bool,
    private_network: bool,
    preflight_continue: bool,
}

/// Marks a preflight request: its response is left as it is.
struct Preflight;

fn build(config: &Record, _facts: &PluginFacts) -> Built {
    let config: Config = settings(config)?;
    let joined = |field: &str, list: &Option<Vec<String>>| {
        let list = list.as_ref().filter(|list| !list.is_empty());
        list.map(|list| header_value(field, &list.join(","))).transpose()
    };
    Ok(Arc::new(Cors {
        origins: Origins::new(config.origins.as_deref().unwrap_or_default())?,
        headers: joined("headers", &config.headers)?,
        exposed: joined("exposed_headers", &config.exposed_headers)?,
        methods: match &config.methods {
            Some(methods) => header_value("methods", &methods.join(","))?,
            None => HeaderValue::from_static(DEFAULT_METHODS),
        },
        max_age: config.max_age.map(number),
        credentials: config.credentials,
        private_network: config.private_network,
        preflight_continue: config.preflight_continue,
    }))
}

fn is_preflight(context: &Context) -> bool {
    let headers = &context.request.headers;
    context.request.method == Method::OPTIONS && headers.contains(ORIGIN) && headers.contains(REQUEST_METHOD)
}

impl Cors {
    /// Writes who may read the response and whether with credentials.
    fn allow(&self, request: &Headers, response: &mut Headers) {
        let origin = request.get(ORIGIN);
        let vary = |response: &mut Headers| response.append(VARY, HeaderValue::from_static("Origin"));
        if self.origins.vary() {
            vary(response);
        }
        let allowed = self.origins.allowed(origin);
        let any = allowed.as_ref() == Some(&ANY);
        match allowed {
            Some(allowed) => response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed),
            None => _ = response.remove(ACCESS_CONTROL_ALLOW_ORIGIN),
        }
        if !self.credentials {
            return;
        }
        if !any {
            response.insert(ALLOW_CREDENTIALS, TRUE);
        } else if let Some(origin) = origin {
            // Browsers take no credentials for the star, so the origin is named.
            vary(response);
            response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            response.insert(ALLOW_CREDENTIALS, TRUE);
        }
    }

    fn answer(&self, request: &Headers) -> Exit {
        let mut exit = Exit::empty(StatusCode::OK);
        let headers = &mut exit.headers;
        self.allow(request, headers);
        if headers.contains(VARY) {
            headers.insert(VARY, HeaderValue::from_static("Origin"));
        }
        let configured = self.headers.as_ref().map(AsValue::as_value);
        if let Some(allowed) = configured.or_else(|| request.get(REQUEST_HEADERS)) {
            headers.insert(ALLOW_HEADERS, allowed);
        }
        headers.insert(ALLOW_METHODS, &self.methods);
        if let Some(max_age) = &self.max_age {
            headers.insert(MAX_AGE, max_age);
        }
        if self.private_network && request.get(REQUEST_PRIVATE_NETWORK).is_some_and(|value| value == "true") {
            headers.insert(ALLOW_PRIVATE_NETWORK, TRUE);
        }
        exit
    }
}

impl Plugin for Cors {
    fn phases(&self) -> Phases {
        Phases::ACCESS | Phases::HEADER_FILTER
    }

    fn access<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        if !is_preflight(context) {
            return Step::Next;
        }
        context.slots.put(Preflight);
        if self.preflight_continue {
            return Step::Next;
        }
        self.answer(&context.request.headers).into()
    }

    fn header_filter(&self, context: &mut Context) -> Result<Option<Box<Exit>>, PluginError> {
        if context.slots.get::<Preflight>().is_some() {
            return Ok(None);
        }
        if let Some(response) = &mut context.response {
            self.allow(&context.request.headers, &mut response.headers);
            if let Some(exposed) = &self.exposed {
                response.headers.insert(EXPOSE_HEADERS, exposed);
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;

//! `cors`: answers browsers that ask which origins may read a response.

use super::{Built, Native, header_value, number, settings};
use crate::{Context, Exit, Phases, Plugin, PluginError, PluginFacts, Step};
use gwctl_entities::Record;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderName, HeaderValue, ORIGIN, VARY,
};
use http::{Method, StatusCode};
use origins::Origins;
use serde::Deserialize;
use std::sync::Arc;

mod origins;

/// Line of the table.
pub(super) const NATIVE: Native = Native { name: "cors", priority: 2000, version: "3.9.1", build };

const REQUEST_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");
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
    context.request.method == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

impl Cors {
    /// Writes who may read the response and whether with credentials.
    fn allow(&self, request: &HeaderMap, response: &mut HeaderMap) {
        let origin = request.get(ORIGIN);
        let vary = |response: &mut HeaderMap| _ = response.append(VARY, HeaderValue::from_static("Origin"));
        if self.origins.vary() {
            vary(response);
        }
        let allowed = self.origins.allowed(origin);
        let any = allowed.as_ref() == Some(&ANY);
        match allowed {
            Some(allowed) => _ = response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed),
            None => _ = response.remove(ACCESS_CONTROL_ALLOW_ORIGIN),
        }
        if !self.credentials {
            return;
        }
        if !any {
            response.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, TRUE);
        } else if let Some(origin) = origin {
            // Browsers take no credentials for the star, so the origin is named.
            vary(response);
            response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            response.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, TRUE);
        }
    }

    fn answer(&self, request: &HeaderMap) -> Exit {
        let mut exit = Exit::empty(StatusCode::OK);
        let headers = &mut exit.headers;
        self.allow(request, headers);
        if headers.contains_key(VARY) {
            headers.insert(VARY, HeaderValue::from_static("Origin"));
        }
        if let Some(allowed) = self.headers.as_ref().or_else(|| request.get(ACCESS_CONTROL_REQUEST_HEADERS)) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed.clone());
        }
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, self.methods.clone());
        if let Some(max_age) = &self.max_age {
            headers.insert(ACCESS_CONTROL_MAX_AGE, max_age.clone());
        }
        if self.private_network && request.get(REQUEST_PRIVATE_NETWORK) == Some(&TRUE) {
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
                response.headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed.clone());
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;

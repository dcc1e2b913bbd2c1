//! `key-auth`: an API key in a header, the query or the body names the consumer.

use super::arguments::{self, Found};
use super::form::Form;
use super::identity::{identify, identify_anonymous, owner};
use super::{Built, Native, header_names, header_value, settings};
use crate::{Context, Exit, Needs, Phases, Plugin, PluginError, PluginFacts, Step};
use bytes::Bytes;
use gwctl_entities::{Record, Value};
use gwctl_http1::Headers;
use gwctl_http1::names::WWW_AUTHENTICATE;
use http::header::{HeaderName, HeaderValue};
use http::{Method, StatusCode};
use serde::Deserialize;
use std::sync::Arc;

/// Line of the table.
pub(super) const NATIVE: Native = Native { name: "key-auth", priority: 1250, version: "3.9.1", build };

#[derive(Deserialize)]
struct Config {
    key_names: Vec<String>,
    key_in_header: bool,
    key_in_query: bool,
    key_in_body: bool,
    hide_credentials: bool,
    run_on_preflight: bool,
    anonymous: Option<String>,
    realm: Option<String>,
}

/// A name the key may have.
struct KeyName {
    name: String,
    headers: Vec<HeaderName>,
}

struct KeyAuth {
    config: Config,
    names: Vec<KeyName>,
    challenge: HeaderValue,
}

/// Why a request is not let through. Source: Kong 3.9.1 `kong/plugins/key-auth/handler.lua`.
#[derive(Debug, Clone, Copy)]
enum Refusal {
    NoKey,
    Duplicate,
    Unknown,
}

impl Refusal {
    const fn message(self) -> &'static str {
        match self {
            Self::NoKey => "No API key found in request",
            Self::Duplicate => "Duplicate API key found",
            Self::Unknown => "Unauthorized",
        }
    }
}

fn build(config: &Record, _facts: &PluginFacts) -> Built {
    let config: Config = settings(config)?;
    let challenge = config.realm.as_ref().map_or("Key".to_owned(), |realm| format!("Key realm=\"{realm}\""));
    let challenge = header_value("realm", &challenge)?;
    let names = config.key_names.iter().map(|name| KeyName { name: name.clone(), headers: header_names(name) });
    Ok(Arc::new(KeyAuth { names: names.collect(), challenge, config }))
}

fn in_headers(headers: &Headers, names: &[HeaderName]) -> Found {
    let Some(name) = names.iter().find(|name| headers.contains(*name)) else { return Found::Absent };
    let mut values = headers.get_all(name);
    match (values.next(), values.next()) {
        (Some(value), None) => Found::Text(Bytes::copy_from_slice(value.as_bytes())),
        _ => Found::Many,
    }
}

impl KeyAuth {
    /// The first text among the names; a name found more than once ends the search.
    fn key(&self, context: &Context) -> Result<Option<(&KeyName, Bytes)>, Refusal> {
        let mut form = None;
        for name in &self.names {
            let mut found = Found::Absent;
            if self.config.key_in_header {
                found = in_headers(&context.request.headers, &name.headers);
            }
            if found == Found::Absent && self.config.key_in_query {
                found = arguments::find(arguments::query(context), &name.name);
            }
            if found == Found::Absent && self.config.key_in_body {
                found = form.get_or_insert_with(|| Form::read(&context.request)).find(&name.name);
            }
            match found {
                Found::Text(key) => return Ok(Some((name, key))),
                Found::Many => return Err(Refusal::Duplicate),
                Found::Absent | Found::Other => {}
            }
        }
        Ok(None)
    }

    /// Takes the key out of everything the upstream gets.
    fn hide(&self, context: &mut Context, name: &KeyName) {
        arguments::clear_query_argument(context, &name.name);
        for header in &name.headers {
            context.request.headers.remove(header);
        }
        if self.config.key_in_body {
            let left = Form::read(&context.request).without(&name.name);
            if let Some(left) = left {
                context.request.body = crate::Body::Buffered(left);
            }
        }
    }

    fn authenticate(&self, context: &mut Context) -> Result<Option<Refusal>, PluginError> {
        let (name, key) = match self.key(context) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(Some(Refusal::NoKey)),
            Err(refusal) => return Ok(Some(refusal)),
        };
        if self.config.hide_credentials {
            self.hide(context, name);
        }
        if key.is_empty() {
            return Ok(Some(Refusal::NoKey));
        }
        // Keys are stored as text, so nothing else can be one.
        let Ok(key) = std::str::from_utf8(&key) else { return Ok(Some(Refusal::Unknown)) };
        let credential = context.find("keyauth_credentials", "key", key);
        let Some(credential) = credential.map_err(|error| PluginError(error.to_string()))? else {
            return Ok(Some(Refusal::Unknown));
        };
        let consumer = owner(context, &credential)?;
        let row = credential.clone();
        identify(context, consumer, Some(credential), row.get("id").and_then(Value::as_str));
        Ok(None)
    }

    fn refuse(&self, refusal: Refusal) -> Exit {
        Exit::page(StatusCode::UNAUTHORIZED, refusal.message()).with_header(WWW_AUTHENTICATE, &self.challenge)
    }
}

impl Plugin for KeyAuth {
    fn phases(&self) -> Phases {
        Phases::ACCESS
    }

    fn needs(&self) -> Needs {
        Needs { request_body: self.config.key_in_body, ..Needs::default() }
    }

    fn access<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        let config = &self.config;
        if !config.run_on_preflight && context.request.method == Method::OPTIONS {
            return Step::Next;
        }
        // With an anonymous consumer the authentication plugins are alternatives: one is enough.
        if config.anonymous.is_some() && context.credential.is_some() {
            return Step::Next;
        }
        match (self.authenticate(context), &config.anonymous) {
            (Ok(None), _) => Step::Next,
            (Ok(Some(_)), Some(anonymous)) => {
                identify_anonymous(context, anonymous).map_or_else(Step::from, |()| Step::Next)
            }
            (Ok(Some(refusal)), None) => self.refuse(refusal).into(),
            (Err(error), _) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests;

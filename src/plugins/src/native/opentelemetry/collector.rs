//! The collector: OTLP over HTTP, protocol buffers.

use super::config::{Config, Timeouts};
use crate::export::{Deliver, Delivery, Part, Undelivered};
use crate::native::header_value;
use crate::{Authorities, PluginError, PluginFacts};
use gwctl_traces::{Attribute, otlp};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, ClientBuilder, Url, redirect};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

/// Who tells of the spans.
const SCOPE: (&str, &str) = ("gwctl", env!("CARGO_PKG_VERSION"));

/// Most that is read of an answer.
const MOST_READ: usize = 64 * 1024;

/// Most that is told of a refusal in the collector's own words.
const MOST_WORDS: usize = 300;

pub(super) struct Collector {
    endpoint: Url,
    headers: HeaderMap,
    /// Of the node; those of the settings go before the usual ones.
    resource: BTreeMap<String, String>,
    timeouts: Timeouts,
    authorities: Authorities,
    /// Made when it is first needed, and again for other authorities: reading those of the system takes its time.
    client: Mutex<Option<(Arc<[String]>, Client)>>,
}

impl Collector {
    pub(super) fn new(endpoint: &str, config: &Config, facts: &PluginFacts) -> Result<Collector, PluginError> {
        let endpoint = Url::parse(endpoint)
            .map_err(|error| PluginError(format!("'config.traces_endpoint' is not a URL: {error}")))?;
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"))]);
        for (name, value) in config.headers.iter().flatten() {
            let known: HeaderName = name
                .parse()
                .map_err(|_| PluginError(format!("'{name}' of 'config.headers' is not the name of a header")))?;
            let mut value = header_value(&format!("headers.{name}"), value)?;
            value.set_sensitive(true);
            headers.insert(known, value);
        }
        let mut resource = BTreeMap::from([
            ("service.name".to_owned(), "kong".to_owned()),
            ("service.instance.id".to_owned(), facts.node.id.clone()),
            ("service.version".to_owned(), SCOPE.1.to_owned()),
        ]);
        resource.extend(config.resource_attributes.clone().unwrap_or_default());
        let (timeouts, authorities) = (config.timeouts(), facts.node.authorities.clone());
        Ok(Collector { endpoint, headers, resource, timeouts, authorities, client: Mutex::default() })
    }

    fn client(&self) -> Result<Client, Undelivered> {
        let trusted = self.authorities.now();
        let mut made = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((by, client)) = &*made
            && Arc::ptr_eq(by, &trusted)
        {
            return Ok(client.clone());
        }
        let words = |error: reqwest::Error| Undelivered::Again(in_words(&error));
        let mut own = Vec::new();
        for pem in &*trusted {
            own.extend(Certificate::from_pem_bundle(pem.as_bytes()).map_err(words)?);
        }
        // Without TLS there is nobody to trust, and a system may have no authorities.
        let client = if self.endpoint.scheme() == "http" {
            self.builder().tls_certs_only([]).build()
        } else if own.is_empty() {
            self.builder().build()
        } else {
            let both = self.builder().tls_certs_merge(own.iter().cloned()).build();
            both.or_else(|_| self.builder().tls_certs_only(own).build())
        };
        let client = client.map_err(words)?;
        *made = Some((trusted, client.clone()));
        Ok(client)
    }

    fn builder(&self) -> ClientBuilder {
        let Timeouts { connect, read, whole } = self.timeouts;
        let builder = Client::builder().connect_timeout(connect).read_timeout(read).timeout(whole);
        builder.redirect(redirect::Policy::none()).no_proxy()
    }

    async fn send(&self, batch: &[Part]) -> Result<(), Undelivered> {
        let resource: Vec<Attribute<'_>> =
            self.resource.iter().map(|(name, value)| (name.as_str(), value.as_str().into())).collect();
        let body = otlp::request(&resource, SCOPE, batch.iter().map(|part| part.bytes.as_slice()));
        let request = self.client()?.post(self.endpoint.clone()).headers(self.headers.clone()).body(body);
        let mut answer = request.send().await.map_err(|error| Undelivered::Again(in_words(&error.without_url())))?;
        let status = answer.status();
        // Read to its end, the connection can be used again; what is longer than an answer should be is cut off with it.
        let mut words = Vec::new();
        while words.len() < MOST_READ
            && let Ok(Some(chunk)) = answer.chunk().await
        {
            words.extend_from_slice(&chunk);
        }
        if status.is_success() {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&words[..words.len().min(MOST_WORDS)]).into_owned();
        let told = format!("{} answered {status}: {}", self.endpoint.host_str().unwrap_or_default(), words.trim());
        // What the collector cannot read now it will not read later.
        let later = matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
        Err(if status.is_client_error() && !later { Undelivered::Never(told) } else { Undelivered::Again(told) })
    }
}

impl Deliver for Collector {
    fn deliver<'a>(&'a self, batch: &'a [Part]) -> Delivery<'a> {
        Box::pin(self.send(batch))
    }
}

/// An error and what caused it.
fn in_words(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words.push_str(": ");
        words.push_str(&error.to_string());
        cause = error.source();
    }
    words
}

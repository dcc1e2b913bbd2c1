//! Typed structs of records, made once when a snapshot is built, never per request.
//!
//! Foreign fields are plain ids. Missing optional fields are None or empty.

use crate::Record;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reads a typed view of a record. The error text names the field; a record that passed the engine never fails.
pub fn from_record<T: serde::de::DeserializeOwned>(record: &Record) -> Result<T, serde_json::Error> {
    T::deserialize(record)
}

fn foreign<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Arc<str>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Reference {
        Object { id: Arc<str> },
        Flat(Arc<str>),
    }
    Ok(Option::<Reference>::deserialize(input)?.map(|reference| match reference {
        Reference::Object { id } | Reference::Flat(id) => id,
    }))
}

fn null_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(input: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(input)?.unwrap_or_default())
}

/// An upstream service. Times in milliseconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Service {
    pub id: Arc<str>,
    pub name: Option<Arc<str>>,
    pub protocol: String,
    pub host: String,
    pub port: u16,
    pub path: Option<String>,
    #[serde(default, deserialize_with = "null_default")]
    pub retries: u32,
    pub connect_timeout: Option<u64>,
    pub write_timeout: Option<u64>,
    pub read_timeout: Option<u64>,
    #[serde(default = "yes")]
    pub enabled: bool,
    #[serde(default, deserialize_with = "foreign")]
    pub client_certificate: Option<Arc<str>>,
    pub tls_verify: Option<bool>,
    pub tls_verify_depth: Option<u32>,
    pub ca_certificates: Option<Vec<Arc<str>>>,
}

fn yes() -> bool {
    true
}

/// A source or destination address of a stream route.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Endpoint {
    pub ip: Option<String>,
    pub port: Option<u16>,
}

/// A route: which requests, and how they go to its service.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Route {
    pub id: Arc<str>,
    pub name: Option<Arc<str>>,
    #[serde(default, deserialize_with = "foreign")]
    pub service: Option<Arc<str>>,
    #[serde(default, deserialize_with = "null_default")]
    pub protocols: Vec<String>,
    #[serde(default, deserialize_with = "null_default")]
    pub methods: Vec<String>,
    #[serde(default, deserialize_with = "null_default")]
    pub hosts: Vec<String>,
    #[serde(default, deserialize_with = "null_default")]
    pub paths: Vec<String>,
    #[serde(default, deserialize_with = "null_default")]
    pub headers: BTreeMap<String, Vec<String>>,
    #[serde(default, deserialize_with = "null_default")]
    pub snis: Vec<String>,
    #[serde(default, deserialize_with = "null_default")]
    pub sources: Vec<Endpoint>,
    #[serde(default, deserialize_with = "null_default")]
    pub destinations: Vec<Endpoint>,
    #[serde(default, deserialize_with = "null_default")]
    pub regex_priority: i64,
    #[serde(default = "yes")]
    pub strip_path: bool,
    #[serde(default, deserialize_with = "null_default")]
    pub preserve_host: bool,
    pub path_handling: Option<String>,
    pub https_redirect_status_code: Option<u16>,
    pub request_buffering: Option<bool>,
    pub response_buffering: Option<bool>,
    pub expression: Option<String>,
    pub priority: Option<u64>,
    pub created_at: Option<i64>,
}

/// A consumer of the API.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Consumer {
    pub id: Arc<str>,
    pub username: Option<Arc<str>>,
    pub custom_id: Option<Arc<str>>,
    pub tags: Option<Vec<String>>,
}

/// A configured plugin; `config` has passed the plugin's schema and is complete.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Plugin {
    pub id: Arc<str>,
    pub name: String,
    pub instance_name: Option<String>,
    #[serde(default, deserialize_with = "foreign")]
    pub service: Option<Arc<str>>,
    #[serde(default, deserialize_with = "foreign")]
    pub route: Option<Arc<str>>,
    #[serde(default, deserialize_with = "foreign")]
    pub consumer: Option<Arc<str>>,
    #[serde(default = "yes")]
    pub enabled: bool,
    #[serde(default, deserialize_with = "null_default")]
    pub protocols: Vec<String>,
    #[serde(default, deserialize_with = "null_default")]
    pub config: Record,
}

/// A virtual host name with targets behind it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Upstream {
    pub id: Arc<str>,
    pub name: String,
    pub algorithm: Option<String>,
    pub hash_on: Option<String>,
    pub hash_on_header: Option<String>,
    pub hash_on_cookie: Option<String>,
    pub hash_on_cookie_path: Option<String>,
    pub hash_on_query_arg: Option<String>,
    pub hash_on_uri_capture: Option<String>,
    pub hash_fallback: Option<String>,
    pub hash_fallback_header: Option<String>,
    pub hash_fallback_query_arg: Option<String>,
    pub hash_fallback_uri_capture: Option<String>,
    pub slots: Option<u32>,
    pub use_srv_name: Option<bool>,
    pub host_header: Option<String>,
    #[serde(default, deserialize_with = "foreign")]
    pub client_certificate: Option<Arc<str>>,
    #[serde(default)]
    pub healthchecks: Value,
}

/// One address of an upstream.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Target {
    pub id: Arc<str>,
    #[serde(default, deserialize_with = "foreign")]
    pub upstream: Option<Arc<str>>,
    /// `host:port`, normalised.
    pub target: String,
    #[serde(default = "hundred")]
    pub weight: u32,
    pub created_at: Option<f64>,
}

fn hundred() -> u32 {
    100
}

/// A certificate and key offered to clients or upstreams.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Certificate {
    pub id: Arc<str>,
    pub cert: String,
    pub key: String,
    pub cert_alt: Option<String>,
    pub key_alt: Option<String>,
}

/// A server name and its certificate.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Sni {
    pub id: Arc<str>,
    pub name: String,
    #[serde(default, deserialize_with = "foreign")]
    pub certificate: Option<Arc<str>>,
}

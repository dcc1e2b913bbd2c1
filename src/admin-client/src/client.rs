//! One request and its answer.

use crate::error;
use crate::{ClientError, Refusal};
use gwctl_entities::{Record, Value};
use reqwest::header::{AUTHORIZATION, ETAG, HeaderMap, HeaderValue};
use reqwest::{Certificate, Method, RequestBuilder, Response, Url};
use serde::de::DeserializeOwned;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Secret that the Admin API asks for; never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The secret, without the spaces and line ends around it in a file.
    pub fn new(secret: &str) -> Token {
        Token(secret.trim().to_owned())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(******)")
    }
}

/// How to reach an Admin API.
#[derive(Debug, Clone)]
pub struct Options {
    /// `http://host:port`, with a path where one stands before the API; without a scheme it is http.
    pub address: String,
    /// Limit of each request, connecting included.
    pub timeout: Duration,
    /// Value of `User-Agent`; the control plane's history names it.
    pub user_agent: String,
    /// Sent as `Authorization: Bearer` with every request.
    pub token: Option<Token>,
    /// PEM of authorities to trust beside those of the system, for https.
    pub authorities: Option<Vec<u8>>,
    /// Accept any certificate.
    pub insecure: bool,
}

impl Options {
    /// An address with a limit of 10 s.
    pub fn of(address: impl Into<String>) -> Options {
        Options {
            address: address.into(),
            timeout: Duration::from_secs(10),
            user_agent: concat!("gwctl/", env!("CARGO_PKG_VERSION")).to_owned(),
            token: None,
            authorities: None,
            insecure: false,
        }
    }
}

/// A client of one Admin API. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    address: String,
    timeout: Duration,
    /// Version of the configuration that the first answer told.
    first_version: Arc<OnceLock<u64>>,
}

impl Client {
    /// A client; connects with the first request.
    ///
    /// # Errors
    /// [`ClientError::ConfigAddress`] when the address is none, [`ClientError::ConfigUserinfo`] when it holds a login,
    /// [`ClientError::ConfigOption`] when the token or the authorities are none.
    pub fn new(options: &Options) -> Result<Client, ClientError> {
        let given = options.address.trim();
        let wrong = |why: String| ClientError::ConfigAddress { address: given.to_owned(), why };
        let address = if given.contains("://") { given.to_owned() } else { format!("http://{given}") };
        let url = Url::parse(&address).map_err(|error| wrong(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(format!("the scheme {} is neither http nor https", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ClientError::ConfigUserinfo { host: url.host_str().unwrap_or_default().to_owned() });
        }
        let host = url.host_str().ok_or_else(|| wrong("it has no host".to_owned()))?;
        let mut builder = reqwest::Client::builder().timeout(options.timeout).user_agent(&options.user_agent);
        if is_loopback(host) {
            // A proxy of the environment cannot reach what listens here.
            builder = builder.no_proxy();
        }
        if let Some(token) = &options.token {
            builder = builder.default_headers(login(token)?);
        }
        if let Some(pem) = &options.authorities {
            builder = builder.tls_certs_merge(authorities(pem)?);
        }
        builder = builder.tls_danger_accept_invalid_certs(options.insecure);
        let http = builder.build().map_err(|error| wrong(reason(&error)))?;
        let address = address.trim_end_matches('/').to_owned();
        Ok(Client { http, address, timeout: options.timeout, first_version: Arc::default() })
    }

    /// Version of the configuration before the first thing this client and its clones read of it; None of a plain
    /// Kong, which has no versions.
    pub fn version_read(&self) -> Option<u64> {
        self.first_version.get().copied()
    }

    /// Base URL, without a slash at its end.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// `GET`; path from `/`, with query.
    pub async fn get(&self, path: &str) -> Result<Value, ClientError> {
        self.read(path, self.answer(Method::GET, path, None).await?).await
    }

    /// `GET` of something that may not exist: None for 404.
    pub async fn find(&self, path: &str) -> Result<Option<Value>, ClientError> {
        match self.get(path).await {
            Err(ClientError::PeerRefused { status: 404, .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    /// `PUT`: creates or replaces; the record as stored.
    pub async fn put(&self, path: &str, body: &Record) -> Result<Value, ClientError> {
        self.read(path, self.answer(Method::PUT, path, Some(body)).await?).await
    }

    /// `POST`: creates; the record as stored.
    pub async fn post(&self, path: &str, body: &Record) -> Result<Value, ClientError> {
        self.read(path, self.answer(Method::POST, path, Some(body)).await?).await
    }

    /// `PATCH`: changes some fields; the record as stored.
    pub async fn patch(&self, path: &str, body: &Record) -> Result<Value, ClientError> {
        self.read(path, self.answer(Method::PATCH, path, Some(body)).await?).await
    }

    /// `DELETE`; no error when there was none.
    pub async fn delete(&self, path: &str) -> Result<(), ClientError> {
        match self.answer(Method::DELETE, path, None).await {
            Err(ClientError::PeerRefused { status: 404, .. }) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// `GET /`: what the node says of itself.
    pub async fn node(&self) -> Result<Value, ClientError> {
        self.get("/").await
    }

    /// `GET /status`.
    pub async fn status(&self) -> Result<Value, ClientError> {
        self.get("/status").await
    }

    /// `GET /schemas/{entity}`.
    pub async fn schema(&self, entity: &str) -> Result<Value, ClientError> {
        self.get(&format!("/schemas/{entity}")).await
    }

    /// Sends a request; answers with an error status become [`ClientError::PeerRefused`].
    pub(crate) async fn answer(
        &self,
        method: Method,
        path: &str,
        body: Option<&Record>,
    ) -> Result<Response, ClientError> {
        let mut request = self.request(method.clone(), path);
        if let Some(body) = body {
            request = request.json(body);
        }
        self.send(request, &method, path, self.timeout).await
    }

    /// Sends a request made elsewhere, with its own limit.
    pub(crate) async fn send(
        &self,
        request: RequestBuilder,
        method: &Method,
        path: &str,
        limit: Duration,
    ) -> Result<Response, ClientError> {
        let response = request.timeout(limit).send().await.map_err(|error| self.failed(method, path, limit, &error))?;
        let status = response.status();
        if status.is_success() {
            if let Some(version) = response.headers().get(ETAG).and_then(version_of) {
                // Only the first counts: a later one may hide a change between two reads.
                let _ = self.first_version.set(version);
            }
            return Ok(response);
        }
        // An error answer whose body breaks off is still an error answer.
        let body = response.text().await.unwrap_or_default();
        Err(ClientError::PeerRefused {
            method: method.to_string(),
            path: path.to_owned(),
            status: status.as_u16(),
            refusal: Box::new(Refusal::read(&body, status.canonical_reason().unwrap_or("no reason given"))),
        })
    }

    pub(crate) async fn read<T: DeserializeOwned>(&self, path: &str, response: Response) -> Result<T, ClientError> {
        let bytes = response.bytes().await.map_err(|error| self.failed(&Method::GET, path, self.timeout, &error))?;
        serde_json::from_slice(&bytes).map_err(|error| self.strange(path, format!("not the JSON expected: {error}")))
    }

    pub(crate) fn strange(&self, path: &str, why: String) -> ClientError {
        ClientError::PeerAnswer { address: self.address.clone(), path: path.to_owned(), why }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.address))
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    fn failed(&self, method: &Method, path: &str, limit: Duration, error: &reqwest::Error) -> ClientError {
        let address = self.address.clone();
        if error.is_timeout() && !error.is_connect() {
            let (method, path) = (method.to_string(), path.to_owned());
            return ClientError::PeerSilent { address, method, path, after: limit };
        }
        if error.is_connect() || error.is_request() {
            return ClientError::PeerUnreachable { address, why: reason(error) };
        }
        self.strange(path, reason(error))
    }
}

/// The innermost reason, which is the system's, in words: `Connection refused`.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    in_words(&cause.to_string())
}

/// What libraries say, without their own names for things.
fn in_words(reason: &str) -> String {
    if let Some((_, why)) = reason.split_once("invalid peer certificate: ") {
        let why = match why.split([' ', '(', '{']).next().unwrap_or_default() {
            "UnknownIssuer" => "no known authority issued it",
            "NotValidForName" | "NotValidForNameContext" | "certificate" => "it is for another host",
            "Expired" | "ExpiredContext" => "it has expired",
            "NotValidYet" | "NotValidYetContext" => "it is not valid yet",
            _ => "it cannot be verified, as self-signed ones cannot",
        };
        return format!("its certificate is not trusted: {why}");
    }
    if reason.contains("corrupt message") || reason.contains("UnexpectedMessage") {
        return error::NO_TLS.to_owned();
    }
    if reason.contains("HTTP version parsed") || reason.contains("HTTP/0.9") {
        return error::NO_HTTP.to_owned();
    }
    reason.split(" (os error").next().unwrap_or(reason).to_owned()
}

/// The header of a token, kept out of every log.
fn login(token: &Token) -> Result<HeaderMap, ClientError> {
    let wrong = |why: &str| ClientError::ConfigOption { option: "the token", why: why.to_owned() };
    if token.0.is_empty() {
        return Err(wrong("it is empty"));
    }
    let header = HeaderValue::from_str(&format!("Bearer {}", token.0));
    let mut header = header.map_err(|_| wrong("it has characters that no token has"))?;
    header.set_sensitive(true);
    Ok(HeaderMap::from_iter([(AUTHORIZATION, header)]))
}

fn authorities(pem: &[u8]) -> Result<Vec<Certificate>, ClientError> {
    let wrong = |why: String| ClientError::ConfigOption { option: "the file of authorities", why };
    let found = Certificate::from_pem_bundle(pem).map_err(|error| wrong(reason(&error)))?;
    if found.is_empty() { Err(wrong("it has no certificate in PEM".to_owned())) } else { Ok(found) }
}

/// `"42"` or `W/"42"`.
fn version_of(etag: &HeaderValue) -> Option<u64> {
    etag.to_str().ok()?.trim_start_matches("W/").trim_matches('"').parse().ok()
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

//! One request and its answer.

use crate::{ClientError, Refusal};
use gwctl_entities::{Record, Value};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::de::DeserializeOwned;
use std::error::Error;
use std::time::Duration;

/// How to reach an Admin API.
#[derive(Debug, Clone)]
pub struct Options {
    /// `http://host:port`, with a path where one stands before the API; without a scheme it is http.
    pub address: String,
    /// Limit of each request, connecting included.
    pub timeout: Duration,
    /// Value of `User-Agent`; the control plane's history names it.
    pub user_agent: String,
}

impl Options {
    /// An address with a limit of 10 s.
    pub fn of(address: impl Into<String>) -> Options {
        Options {
            address: address.into(),
            timeout: Duration::from_secs(10),
            user_agent: concat!("gwctl/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// A client of one Admin API. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    address: String,
    timeout: Duration,
}

impl Client {
    /// A client; connects with the first request.
    ///
    /// # Errors
    /// [`ClientError::ConfigAddress`] when the address is none.
    pub fn new(options: &Options) -> Result<Client, ClientError> {
        let given = options.address.trim();
        let wrong = |why: String| ClientError::ConfigAddress { address: given.to_owned(), why };
        let address = if given.contains("://") { given.to_owned() } else { format!("http://{given}") };
        let url = Url::parse(&address).map_err(|error| wrong(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(format!("the scheme {} is neither http nor https", url.scheme())));
        }
        let host = url.host_str().ok_or_else(|| wrong("it has no host".to_owned()))?;
        let mut builder = reqwest::Client::builder().timeout(options.timeout).user_agent(&options.user_agent);
        if is_loopback(host) {
            // A proxy of the environment cannot reach what listens here.
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| wrong(reason(&error)))?;
        Ok(Client { http, address: address.trim_end_matches('/').to_owned(), timeout: options.timeout })
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
        let mut request: RequestBuilder = self.http.request(method.clone(), format!("{}{path}", self.address));
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.map_err(|error| self.failed(&method, path, &error))?;
        let status = response.status();
        if status.is_success() {
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
        let bytes = response.bytes().await.map_err(|error| self.failed(&Method::GET, path, &error))?;
        serde_json::from_slice(&bytes).map_err(|error| self.strange(path, format!("not the JSON expected: {error}")))
    }

    pub(crate) fn strange(&self, path: &str, why: String) -> ClientError {
        ClientError::PeerAnswer { address: self.address.clone(), path: path.to_owned(), why }
    }

    fn failed(&self, method: &Method, path: &str, error: &reqwest::Error) -> ClientError {
        let address = self.address.clone();
        if error.is_timeout() && !error.is_connect() {
            let (method, path) = (method.to_string(), path.to_owned());
            return ClientError::PeerSilent { address, method, path, after: self.timeout };
        }
        if error.is_connect() || error.is_request() {
            return ClientError::PeerUnreachable { address, why: reason(error) };
        }
        self.strange(path, reason(error))
    }
}

/// The innermost reason, which is the system's: `Connection refused (os error 111)`.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

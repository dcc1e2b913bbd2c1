//! A request as the command line describes it.

use super::ExplainArgs;
use crate::failure::{Failure, USAGE};
use gwctl_entities::Value;
use gwctl_router::{Field, Request, RequestPath, check_target, split_host_port};
use serde_json::json;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// The parts of a request that routes can ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) https: bool,
    method: String,
    host: String,
    port: u16,
    /// Path and query as sent.
    pub(super) target: String,
    headers: Vec<(String, String)>,
    sni: Option<String>,
    source: Option<SocketAddr>,
}

impl Asked {
    /// What the arguments say; wrong usage when they say no request.
    pub(super) fn read(args: &ExplainArgs) -> Result<Asked, Failure> {
        let wrong = |text: String| Failure::new(text).code(USAGE);
        let (method, url) = match args.request.as_slice() {
            [url] => ("GET", url.as_str()),
            [method, url] => (method.as_str(), url.as_str()),
            _ => return Err(wrong("expected a method and a URL".to_owned())),
        };
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        let https = match scheme {
            "http" => false,
            "https" => true,
            other => return Err(wrong(format!("the scheme {other} is neither http nor https"))),
        };
        let slash = if url.contains("://") { rest.find('/').unwrap_or(rest.len()) } else { 0 };
        let (authority, target) = rest.split_at(slash);
        let target = if target.is_empty() && slash > 0 { "/" } else { target };
        if !target.starts_with('/') {
            return Err(wrong(format!("{url:?} is neither a URL nor a path from /")));
        }
        check_target(target.as_bytes())
            .map_err(|refusal| wrong(format!("such a request is answered with 400: {refusal}")))?;
        let (mut headers, mut host) = (Vec::new(), authority.to_owned());
        for header in &args.headers {
            let (name, value) = header
                .split_once(':')
                .filter(|(name, _)| !name.trim().is_empty())
                .ok_or_else(|| wrong(format!("-H {header:?}: expected NAME: VALUE")))?;
            if name.trim().eq_ignore_ascii_case("host") {
                value.trim().clone_into(&mut host);
            }
            headers.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        let host = args.host.clone().unwrap_or(host);
        let (plain_host, named_port) = split_host_port(&host);
        let port = named_port.and_then(|port| u16::try_from(port).ok()).unwrap_or(if https { 443 } else { 80 });
        let by_name = https && !plain_host.is_empty() && plain_host.parse::<IpAddr>().is_err();
        let sni = args.sni.clone().or_else(|| by_name.then(|| plain_host.to_owned()));
        let source = args.source.as_deref().map(source).transpose().map_err(wrong)?;
        let (method, target) = (method.to_owned(), target.to_owned());
        Ok(Asked { https: https || args.sni.is_some(), method, host, port, target, headers, sni, source })
    }

    /// The request as the router takes it.
    pub(super) fn with<T>(&self, look: impl FnOnce(&Request<'_>) -> T) -> T {
        let path = RequestPath::normalise(self.target.as_bytes());
        look(&Request {
            https: self.https,
            method: &self.method,
            host: &self.host,
            port: self.port,
            path: &path,
            headers: &self.headers,
            sni: self.sni.as_deref(),
            source: self.source,
            destination_ip: None,
        })
    }

    /// The first value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// What it has where a route asks for a field.
    pub(super) fn value(&self, field: &Field) -> Option<String> {
        let text = match field {
            Field::Sni => self.sni.clone()?,
            Field::Method => self.method.clone(),
            Field::Host => self.host.clone(),
            Field::Path => {
                let path = RequestPath::normalise(self.target.as_bytes());
                String::from_utf8_lossy(path.as_bytes()).into_owned()
            }
            Field::Expression => self.to_string(),
            Field::Header(name) => self.header(name)?.to_owned(),
        };
        Some(text).filter(|text| !text.is_empty())
    }

    pub(super) fn json(&self) -> Value {
        let headers: Vec<Value> =
            self.headers.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        json!({
            "method": self.method,
            "scheme": if self.https { "https" } else { "http" },
            "host": self.host,
            "target": self.target,
            "headers": headers,
            "sni": self.sni,
            "source": self.source.map(|source| source.to_string()),
        })
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.is_empty() {
            return write!(out, "{} {}", self.method, self.target);
        }
        let scheme = if self.https { "https" } else { "http" };
        write!(out, "{} {scheme}://{}{}", self.method, self.host, self.target)
    }
}

fn source(text: &str) -> Result<SocketAddr, String> {
    let alone = || text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 0));
    text.parse().or_else(|_| alone()).map_err(|_| format!("--source {text:?}: expected IP or IP:PORT"))
}

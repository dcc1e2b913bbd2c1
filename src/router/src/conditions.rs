//! What a route asks of a request, field by field.

use crate::pattern::Pattern;
use crate::request::{Request, split_host_port};
use std::borrow::Cow;

/// A name compared as a whole, by its end or by its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Affix {
    Exact(Box<str>),
    Suffix(Box<str>),
    Prefix(Box<str>),
}

impl Affix {
    /// Reads `name`, `*suffix` or `prefix*`.
    pub(crate) fn parse(text: &str) -> Self {
        if let Some(suffix) = text.strip_prefix('*') {
            Affix::Suffix(suffix.into())
        } else if let Some(prefix) = text.strip_suffix('*') {
            Affix::Prefix(prefix.into())
        } else {
            Affix::Exact(text.into())
        }
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        match self {
            Affix::Exact(whole) => **whole == *name,
            Affix::Suffix(suffix) => name.ends_with(&**suffix),
            Affix::Prefix(prefix) => name.starts_with(&**prefix),
        }
    }
}

/// A host of a route, with the port it names.
#[derive(Debug)]
pub(crate) struct HostRule {
    pub(crate) name: Affix,
    pub(crate) port: Option<u32>,
}

impl HostRule {
    pub(crate) fn parse(text: &str) -> Self {
        let (name, port) = split_host_port(text);
        HostRule { name: Affix::parse(name), port }
    }
}

/// A header of a route.
///
/// Kong looks the header up with `_` for `-`, then with `-` for `_`; when the request has the first, the second is not
/// looked at.
#[derive(Debug)]
pub(crate) struct HeaderRule {
    underscored: Box<str>,
    dashed: Box<str>,
    values: Vec<HeaderValue>,
}

/// A value of a header rule, in lower case.
#[derive(Debug)]
pub(crate) enum HeaderValue {
    Equal(Box<str>),
    Regex(Pattern),
}

impl HeaderRule {
    pub(crate) fn new(name: &str, values: Vec<HeaderValue>) -> Self {
        let lower = name.to_ascii_lowercase();
        HeaderRule { underscored: lower.replace('-', "_").into(), dashed: lower.replace('_', "-").into(), values }
    }

    fn matches(&self, request: &Request<'_>) -> bool {
        let mut seen = false;
        let found = request.headers.any_value(&self.underscored, &mut |value| {
            seen = true;
            self.accepts(value)
        });
        found
            || !seen
                && self.underscored != self.dashed
                && request.headers.any_value(&self.dashed, &mut |value| self.accepts(value))
    }

    fn accepts(&self, value: &[u8]) -> bool {
        let Ok(value) = std::str::from_utf8(value) else { return false };
        let lower = if value.bytes().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii()) {
            Cow::Owned(value.to_lowercase())
        } else {
            Cow::Borrowed(value)
        };
        self.values.iter().any(|rule| match rule {
            HeaderValue::Equal(text) => **text == *lower,
            HeaderValue::Regex(pattern) => pattern.is_match(&lower),
        })
    }
}

/// The fields of a route besides its paths; an empty list asks nothing.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) snis: Vec<Affix>,
    pub(crate) methods: Vec<Box<str>>,
    pub(crate) hosts: Vec<HostRule>,
    /// Whether any host names a port.
    pub(crate) asks_port: bool,
    pub(crate) headers: Vec<HeaderRule>,
}

/// A request's host and port, split once for all candidates.
#[derive(Clone, Copy)]
pub(crate) struct Target<'q> {
    pub(crate) host: &'q str,
    pub(crate) port: u32,
}

impl<'q> Target<'q> {
    pub(crate) fn of(request: &Request<'q>) -> Self {
        let (host, port) = split_host_port(request.host);
        Target { host, port: port.unwrap_or(u32::from(request.port)) }
    }
}

impl Conditions {
    pub(crate) fn match_sni(&self, request: &Request<'_>) -> bool {
        self.snis.is_empty()
            || !request.https
            || request.sni.is_some_and(|name| self.snis.iter().any(|rule| rule.matches(name)))
    }

    pub(crate) fn match_method(&self, request: &Request<'_>) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|method| **method == *request.method)
    }

    pub(crate) fn match_host(&self, target: Target<'_>) -> bool {
        self.hosts.is_empty()
            || self
                .hosts
                .iter()
                .any(|rule| rule.port.is_none_or(|port| port == target.port) && rule.name.matches(target.host))
    }

    /// The first header that does not match.
    pub(crate) fn missing_header(&self, request: &Request<'_>) -> Option<&str> {
        self.headers.iter().find(|rule| !rule.matches(request)).map(|rule| &*rule.dashed)
    }

    pub(crate) fn match_headers(&self, request: &Request<'_>) -> bool {
        self.headers.iter().all(|rule| rule.matches(request))
    }
}

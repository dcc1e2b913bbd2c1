//! A match and what follows from it.

use crate::pattern::{Groups, Pattern};
use crate::request::Request;
use crate::router::FiledRoute;
use crate::upstream::{upstream_path, upstream_path_v1};
use gwctl_entities::view::{Route, Service};
use std::sync::Arc;

/// The route chosen for a request. Borrows from the router and from the request.
#[derive(Debug, Clone)]
pub struct Match<'r, 'q> {
    /// The route.
    pub route: &'r Arc<Route>,
    /// Its service; None for a route that only runs plugins.
    pub service: Option<&'r Arc<Service>>,
    filed: &'r FiledRoute,
    host: &'q str,
    path: &'q [u8],
    taken: Taken<'r, 'q>,
    captures: Captures<'r>,
    /// Whether the route's `path_handling` counts.
    joined_by_route: bool,
}

/// What a route's path took of the request's.
#[derive(Debug, Clone)]
pub(crate) enum Taken<'r, 'q> {
    Nothing,
    /// A part of the path.
    Path(&'q str),
    /// The text of the route.
    Written(&'r str),
    /// A part of the path in lower case.
    Lowered(Box<str>),
}

impl<'q> Taken<'_, 'q> {
    /// The first bytes of a path.
    pub(crate) fn part(path: &'q str, length: usize) -> Self {
        path.get(..length).map_or(Taken::Nothing, Taken::Path)
    }
}

/// Where the captures of a match come from.
#[derive(Debug, Clone)]
pub(crate) enum Captures<'r> {
    None,
    /// The groups of an expression over the path.
    Of(&'r Pattern),
    /// The same, but number 0 is the whole path, and groups that took no part count.
    OfWhole(&'r Pattern),
    /// Gathered while matching.
    Kept(Box<UriCaptures>),
}

/// What the protocols of a route make of a request before it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Goes on.
    Pass,
    /// The route is for HTTPS only. 426: answer `Please use HTTPS protocol` with `Connection: Upgrade` and
    /// `Upgrade: TLS/1.2, HTTP/1.1`; 301, 302, 307 and 308: redirect to `https_location`.
    UseHttps {
        /// The status to answer with.
        status: u16,
    },
    /// A gRPC request not over HTTP/2: 426 `Please use HTTP2 protocol`, `connection: Upgrade`, `upgrade: HTTP/2`.
    UseHttp2,
    /// No gRPC request on a gRPC route: 415 `Non-gRPC request matched gRPC route`.
    NotGrpc,
    /// gRPC without TLS on a route for gRPC over TLS: 200 without body, `content-type: application/grpc`,
    /// `grpc-status: 1`, `grpc-message: gRPC request matched gRPCs route`.
    UseGrpcs,
}

/// The groups of a regex path, when it has any.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UriCaptures {
    /// By number, the whole match at 0; None for groups that took no part.
    pub numbered: Vec<Option<String>>,
    /// By name, those that took part.
    pub named: Vec<(String, String)>,
}

impl UriCaptures {
    /// Puts the groups that took part over those known by the same number or name.
    pub(crate) fn overlay(&mut self, groups: &Groups<'_, '_>) {
        self.numbered.resize(self.numbered.len().max(groups.len()), None);
        for (slot, (name, text)) in self.numbered.iter_mut().zip(groups) {
            let Some(text) = text else { continue };
            *slot = Some((*text).to_owned());
            if let Some(name) = name {
                self.named.retain(|(known, _)| known != name);
                self.named.push(((*name).to_owned(), (*text).to_owned()));
            }
        }
    }
}

impl<'r, 'q> Match<'r, 'q> {
    /// The router puts the service in.
    pub(crate) fn new(
        filed: &'r FiledRoute,
        request: &Request<'q>,
        taken: Taken<'r, 'q>,
        captures: Captures<'r>,
    ) -> Self {
        Match {
            route: &filed.route,
            service: None,
            filed,
            host: request.host,
            path: request.path.as_bytes(),
            taken,
            captures,
            joined_by_route: false,
        }
    }

    /// Id of the service.
    pub(crate) fn leads_to(&self) -> Option<&'r Arc<str>> {
        self.filed.service.as_ref()
    }

    /// Lets the route's `path_handling` decide how the paths of service and request are joined.
    pub(crate) fn joined_by_route(self) -> Self {
        Match { joined_by_route: true, ..self }
    }

    /// The part of the path that the route's path took; None when the route has no paths.
    ///
    /// An expression can take something else: the end of the path, or its text in lower case.
    pub fn matched_path(&self) -> Option<&str> {
        match &self.taken {
            Taken::Nothing => None,
            Taken::Path(text) | Taken::Written(text) => Some(text),
            Taken::Lowered(text) => Some(text),
        }
    }

    /// The part of the path that is taken off for the upstream: `strip_path` on a route with paths.
    pub fn stripped_prefix(&self) -> Option<&str> {
        self.matched_path().filter(|_| self.route.strip_path)
    }

    /// The value of `X-Forwarded-Prefix`, unless a trusted client sent one.
    pub fn forwarded_prefix(&self) -> Option<&str> {
        self.stripped_prefix().filter(|prefix| *prefix != "/")
    }

    /// The path to ask the upstream for, escaped, without the query.
    pub fn upstream_path(&self) -> String {
        let base =
            self.service.filter(|service| is_http(&service.protocol)).and_then(|service| service.path.as_deref());
        let prefix = self.stripped_prefix().map_or(1, str::len);
        let join = match self.route.path_handling.as_deref() {
            Some("v1") if self.joined_by_route => upstream_path_v1,
            _ => upstream_path,
        };
        join(base.unwrap_or("/"), self.path, prefix, self.route.strip_path)
    }

    /// The request target to ask the upstream for: the path and the query of the raw target, a bare `?` included.
    pub fn upstream_target(&self, raw_target: &str) -> String {
        let mut target = self.upstream_path();
        if let Some(query) = raw_target.char_indices().skip(1).find(|(_, letter)| *letter == '?') {
            target.push_str(&raw_target[query.0..]);
        }
        target
    }

    /// The `Host` to send when the route preserves it: the request's, port included.
    pub fn preserved_host(&self) -> Option<&'q str> {
        self.route.preserve_host.then_some(self.host)
    }

    /// The groups of the regex that matched; None when it has none or the path was a prefix.
    ///
    /// May run the expression again: call it only when something asks for captures.
    pub fn uri_captures(&self) -> Option<UriCaptures> {
        let path = || std::str::from_utf8(self.path).ok();
        let own = |text: Option<&str>| text.map(str::to_owned);
        let captures = |groups: Groups<'_, '_>| UriCaptures {
            numbered: groups.iter().map(|(_, text)| own(*text)).collect(),
            named: groups.iter().filter_map(|(name, text)| Some((own(*name)?, own(*text)?))).collect(),
        };
        match &self.captures {
            Captures::None => None,
            Captures::Kept(kept) => Some((**kept).clone()),
            Captures::Of(pattern) => {
                let groups = pattern.groups(path()?)?;
                let taken = groups.iter().filter(|(_, text)| text.is_some()).count();
                (taken > 1).then(|| captures(groups))
            }
            Captures::OfWhole(pattern) => {
                let groups = pattern.groups(path()?).filter(|groups| groups.len() > 1)?;
                let mut captures = captures(groups);
                captures.numbered[0] = own(path());
                Some(captures)
            }
        }
    }

    /// Checks the request against the route's protocols.
    ///
    /// `https` is what `X-Forwarded-Proto` says from a trusted client, else whether the connection is TLS.
    /// Source: Kong 3.9.1 `kong/runloop/handler.lua`, `access.before`.
    pub fn gate(&self, https: bool, http2: bool, content_type: Option<&[u8]>) -> Gate {
        let takes = self.filed.protocols;
        if !https && takes.https && !takes.http {
            return Gate::UseHttps { status: self.route.https_redirect_status_code.unwrap_or(426) };
        }
        if !takes.grpc && !takes.grpcs {
            return Gate::Pass;
        }
        if !content_type.is_some_and(|value| value.starts_with(b"application/grpc")) {
            Gate::NotGrpc
        } else if !http2 {
            Gate::UseHttp2
        } else if !https && !takes.grpc {
            Gate::UseGrpcs
        } else {
            Gate::Pass
        }
    }

    /// The `Location` of a redirect to HTTPS. `forwarded_host` has no port; `raw_target` is the target as received.
    pub fn https_location(forwarded_host: &str, raw_target: &str) -> String {
        format!("https://{forwarded_host}{raw_target}")
    }
}

fn is_http(protocol: &str) -> bool {
    matches!(protocol, "http" | "https" | "grpc" | "grpcs")
}

//! What an upstream is asked for.

use gwctl_plugins::{Request, Upstream};
use http::uri::PathAndQuery;

/// Target of a request in origin form, in the parts it is made of: path, question mark, query.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a>([&'a str; 3]);

impl<'a> Target<'a> {
    /// The path of the upstream with its query, else with that of the request, a bare question mark included.
    pub(crate) fn of(upstream: &'a Upstream, request: &'a Request) -> Target<'a> {
        let path = upstream.path.as_str();
        match upstream.query.as_deref() {
            Some("") => Target([path, "", ""]),
            Some(query) => Target([path, "?", query]),
            None => Target(request.uri.query().map_or([path, "", ""], |query| [path, "?", query])),
        }
    }

    /// The parts, to be written one after the other.
    pub(crate) fn parts(&self) -> &[&'a str] {
        &self.0
    }

    /// Whether it can stand in a request: a plugin may have put anything there. The library for HTTP/2 has a mind of its own.
    pub(crate) fn is_sendable(&self, http2: bool) -> bool {
        let is_plain = |byte: u8| byte > b' ' && byte != 0x7f;
        self.0[0].starts_with('/')
            && self.0.iter().all(|part| part.bytes().all(is_plain))
            && (!http2 || PathAndQuery::try_from(self.whole()).is_ok())
    }

    /// In one piece.
    pub(crate) fn whole(&self) -> String {
        self.0.concat()
    }
}

//! What the router asks of a request.

use crate::RequestPath;
use std::net::{IpAddr, SocketAddr};

/// The parts of a request that routes can ask for. Borrowed, made once per request.
#[derive(Clone, Copy)]
pub struct Request<'q> {
    /// Whether the request came over TLS; routes look at `sni` only then.
    pub https: bool,
    /// The method as received; compared letter by letter.
    pub method: &'q str,
    /// The `Host` header as received, with its port if it has one; compared letter by letter. HTTP/2: `:authority`.
    pub host: &'q str,
    /// The listener's port, used for hosts with a port when `host` names none.
    pub port: u16,
    /// The path without the query, normalised.
    pub path: &'q RequestPath<'q>,
    /// The request headers.
    pub headers: &'q dyn HeaderLookup,
    /// The server name of the TLS handshake.
    pub sni: Option<&'q str>,
    /// Address and port of the client; only expressions ask for it.
    pub source: Option<SocketAddr>,
    /// Address of this end of the connection; only expressions ask for it.
    pub destination_ip: Option<IpAddr>,
}

/// Access to the headers of a request, whatever holds them.
pub trait HeaderLookup {
    /// Calls `accept` with the values of the header `name` (lower case) in turn until it answers true.
    ///
    /// Returns whether it did. Names of the request must be compared without regard to case.
    fn any_value(&self, name: &str, accept: &mut dyn FnMut(&[u8]) -> bool) -> bool;
}

/// A request without headers.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHeaders;

impl HeaderLookup for NoHeaders {
    fn any_value(&self, _name: &str, _accept: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        false
    }
}

/// Headers as a list of name and value.
impl HeaderLookup for [(String, String)] {
    fn any_value(&self, name: &str, accept: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.iter().any(|(key, value)| key.eq_ignore_ascii_case(name) && accept(value.as_bytes()))
    }
}

impl HeaderLookup for Vec<(String, String)> {
    fn any_value(&self, name: &str, accept: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.as_slice().any_value(name, accept)
    }
}

/// Splits `host:port` at the first colon; what does not end in a number after it is a host as a whole.
///
/// IPv6 literals therefore keep their port as part of the host, as in Kong.
/// Source: Kong 3.9.1 `kong/router/transform.lua`, `split_host_port`.
pub fn split_host_port(host: &str) -> (&str, Option<u32>) {
    let Some(colon) = host.bytes().position(|byte| byte == b':') else { return (host, None) };
    let (name, port) = (&host[..colon], &host[colon + 1..]);
    match port.parse() {
        Ok(number) if !port.starts_with('+') => (name, Some(number)),
        _ => (host, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_splits_only_before_a_number() {
        for (input, expected) in [
            ("a.test", ("a.test", None)),
            ("a.test:80", ("a.test", Some(80))),
            ("a.*:99999", ("a.*", Some(99999))),
            ("a.test:", ("a.test:", None)),
            ("a.test:http", ("a.test:http", None)),
            ("[::1]", ("[::1]", None)),
            ("[::1]:80", ("[::1]:80", None)),
            ("", ("", None)),
        ] {
            assert_eq!(split_host_port(input), expected, "{input}");
        }
    }
}

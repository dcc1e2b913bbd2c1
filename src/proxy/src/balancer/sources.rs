//! What of a request consistent hashing goes by: `hash_on` and `hash_fallback`.

use crate::balancer::continuum::xxh32;
use gwctl_entities::view::Upstream;
use gwctl_http1::names::{COOKIE, SET_COOKIE};
use gwctl_http1::{Headers, Value as HeaderText};
use gwctl_plugins::Context;
use gwctl_router::RequestPath;
use http::header::{HeaderName, HeaderValue};
use std::borrow::Cow;
use std::net::IpAddr;

/// One source of the hash.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    None,
    Consumer,
    Ip,
    Header(HeaderName),
    Cookie,
    Path,
    QueryArg(String),
    UriCapture(String),
}

/// Both sources of an upstream, and the cookie that either may mean.
#[derive(Debug)]
pub(crate) struct Sources {
    first: Source,
    fallback: Source,
    cookie: String,
    cookie_path: String,
}

/// What a request is hashed to.
#[derive(Debug, Default)]
pub(crate) struct Key {
    /// None: the request has nothing to go by, so targets take turns.
    pub(crate) hash: Option<u32>,
    /// A cookie made for the client, so that it comes back to the same target.
    pub(crate) cookie: Option<HeaderValue>,
}

impl Sources {
    pub(crate) fn read(upstream: &Upstream) -> Sources {
        let first = source(
            upstream.hash_on.as_deref(),
            upstream.hash_on_header.as_deref(),
            upstream.hash_on_query_arg.as_deref(),
            upstream.hash_on_uri_capture.as_deref(),
        );
        let fallback = source(
            upstream.hash_fallback.as_deref(),
            upstream.hash_fallback_header.as_deref(),
            upstream.hash_fallback_query_arg.as_deref(),
            upstream.hash_fallback_uri_capture.as_deref(),
        );
        let cookie = upstream.hash_on_cookie.clone().unwrap_or_default();
        let cookie_path = upstream.hash_on_cookie_path.clone().unwrap_or_else(|| "/".to_owned());
        Sources { first, fallback, cookie, cookie_path }
    }

    /// Whether the groups of the route's path are needed.
    pub(crate) fn need_captures(&self) -> bool {
        [&self.first, &self.fallback].iter().any(|source| matches!(source, Source::UriCapture(_)))
    }

    /// Hashes a request; `new_value` makes the value of a cookie that is missing.
    pub(crate) fn key(&self, context: &Context, new_value: impl FnOnce() -> String) -> Key {
        for source in [&self.first, &self.fallback] {
            if let Some(value) = self.value(source, context) {
                return Key { hash: Some(xxh32(&value)), cookie: None };
            }
            if *source == Source::Cookie {
                let value = new_value();
                // Written as Kong writes it, the misspelt attribute included.
                let cookie = format!("{}={value}; Path={}; Same-Site=Lax; HttpOnly", self.cookie, self.cookie_path);
                let cookie = HeaderValue::from_str(&cookie).ok();
                return Key { hash: Some(xxh32(value.as_bytes())), cookie };
            }
        }
        Key::default()
    }

    /// Hashes a connection without requests: all that is known of it is the client's address.
    pub(crate) fn stream_hash(&self, client: IpAddr) -> Option<u32> {
        [&self.first, &self.fallback]
            .contains(&&Source::Ip)
            .then(|| xxh32(client.to_canonical().to_string().as_bytes()))
    }

    fn value<'c>(&self, source: &'c Source, context: &'c Context) -> Option<Cow<'c, [u8]>> {
        let request = &context.request;
        match source {
            Source::None => None,
            Source::Consumer => {
                let id = context.consumer_id().or_else(|| context.credential_id())?;
                Some(id.as_bytes().into())
            }
            Source::Ip => Some(context.client.ip.to_canonical().to_string().into_bytes().into()),
            Source::Header(name) => joined(&request.headers, name),
            Source::Cookie => cookie(&request.headers, &self.cookie).map(|value| value.as_bytes().into()),
            Source::Path => {
                let path = RequestPath::normalise(request.uri.as_str().as_bytes());
                Some(path.as_bytes().to_vec().into())
            }
            Source::QueryArg(name) => {
                let target = RequestPath::normalise(request.uri.as_str().as_bytes());
                let mut values: Vec<_> = target.query_values(name).collect();
                values.sort_unstable();
                (!values.is_empty()).then(|| values.join(&b','.to_owned()).into())
            }
            Source::UriCapture(group) => capture(context, group).map(|value| value.as_bytes().into()),
        }
    }
}

fn source(kind: Option<&str>, header: Option<&str>, query_arg: Option<&str>, capture: Option<&str>) -> Source {
    let named = |name: Option<&str>, source: fn(String) -> Source| name.map(str::to_owned).map(source);
    let source = match kind {
        Some("consumer") => Some(Source::Consumer),
        Some("ip") => Some(Source::Ip),
        Some("header") => header.and_then(|name| name.parse().ok()).map(Source::Header),
        Some("cookie") => Some(Source::Cookie),
        Some("path") => Some(Source::Path),
        Some("query_arg") => named(query_arg, Source::QueryArg),
        Some("uri_capture") => named(capture, Source::UriCapture),
        _ => None,
    };
    source.unwrap_or(Source::None)
}

/// All values of a header, as nginx joins them.
fn joined<'h>(headers: &'h Headers, name: &'h HeaderName) -> Option<Cow<'h, [u8]>> {
    let mut values = headers.get_all(name).map(HeaderText::as_bytes);
    let first = values.next()?;
    let rest: Vec<_> = values.collect();
    if rest.is_empty() {
        return Some(first.into());
    }
    Some([&[first], rest.as_slice()].concat().join(b", ".as_slice()).into())
}

fn cookie<'h>(headers: &'h Headers, name: &str) -> Option<&'h str> {
    let texts = headers.get_all(COOKIE).filter_map(HeaderText::to_str);
    let mut pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// A group by name or by number.
fn capture<'c>(context: &'c Context, group: &str) -> Option<&'c str> {
    let number = group.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let found = match number {
        Some(number) => context.captures.get(number).filter(|(name, _)| name.is_none()),
        None => context.captures.iter().find(|(name, _)| name.as_deref() == Some(group)),
    };
    found.map(|(_, text)| text.as_str())
}

/// Adds the cookie to a response, in place of one of the same name.
pub(crate) fn set_cookie(headers: &mut Headers, cookie: HeaderValue) {
    let name_end = cookie.as_bytes().iter().position(|byte| *byte == b'=').map_or(0, |end| end + 1);
    let prefix = cookie.as_bytes()[..name_end].to_vec();
    let others: Vec<_> = headers.get_all(SET_COOKIE).map(HeaderText::to_owned).collect();
    headers.remove(SET_COOKIE);
    let kept = others.into_iter().filter(|other| !other.as_bytes().starts_with(&prefix));
    for value in kept.chain([cookie]) {
        headers.append(SET_COOKIE, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gwctl_http1::Name;
    use gwctl_plugins::{Body, Client, EmptyDirectory, Node, Request, Scheme, Times};
    use http::uri::PathAndQuery;
    use http::{Method, Version};
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn context(target: &'static str, headers: &[(&'static str, &'static str)]) -> Context {
        let ip = IpAddr::from([10, 0, 0, 9]);
        let client = Client { peer: ip, peer_port: 1, ip, port: 1, trusted: false, server_name: None };
        let mut map = Headers::new();
        for (name, value) in headers {
            map.append(Name::from_static(name), HeaderValue::from_static(value));
        }
        let request = Request {
            method: Method::GET,
            uri: PathAndQuery::from_static(target),
            version: Version::HTTP_11,
            headers: map,
            scheme: Scheme::Http,
            host: "a.test".to_owned(),
            port: 80,
            body: Body::Empty,
        };
        let node = Arc::new(Node::new("node", "host", Arc::new(EmptyDirectory)));
        Context::new(node, gwctl_http1::Hex::of(0, 0), client, request, Times::start(std::time::Instant::now(), 0))
    }

    fn key(settings: Value, context: &Context) -> Key {
        let mut upstream = json!({"id": "u", "name": "u"});
        upstream.as_object_mut().unwrap().extend(settings.as_object().cloned().unwrap());
        Sources::read(&serde_json::from_value(upstream).unwrap()).key(context, || "made".to_owned())
    }

    fn hash_of(value: &str) -> Option<u32> {
        Some(xxh32(value.as_bytes()))
    }

    #[test]
    fn each_source_gives_its_value() {
        let mut context =
            context("/a/%62//c?x=2&y=0&x=1", &[("x-a", "one"), ("x-a", "two"), ("cookie", "b=1; sid=xyz")]);
        context.captures = vec![(None, "first".to_owned()), (Some("name".to_owned()), "named".to_owned())];
        let consumer = json!({"id": "c-1"});
        context.authenticate(Some(Arc::new(consumer.as_object().cloned().unwrap())), None);
        for (settings, value) in [
            (json!({"hash_on": "ip"}), "10.0.0.9"),
            (json!({"hash_on": "consumer"}), "c-1"),
            (json!({"hash_on": "header", "hash_on_header": "X-A"}), "one, two"),
            (json!({"hash_on": "cookie", "hash_on_cookie": "sid"}), "xyz"),
            (json!({"hash_on": "path"}), "/a/b/c"),
            (json!({"hash_on": "query_arg", "hash_on_query_arg": "x"}), "1,2"),
            (json!({"hash_on": "uri_capture", "hash_on_uri_capture": "1"}), "first"),
            (json!({"hash_on": "uri_capture", "hash_on_uri_capture": "name"}), "named"),
        ] {
            let key = key(settings.clone(), &context);
            assert_eq!(key.hash, hash_of(value), "{settings}");
            assert!(key.cookie.is_none());
        }
    }

    #[test]
    fn the_fallback_stands_in_for_what_is_missing() {
        let context = context("/", &[("x-b", "b")]);
        let header = json!({"hash_on": "header", "hash_on_header": "x-a"});
        assert_eq!(key(header, &context).hash, None);
        let both = json!({"hash_on": "header", "hash_on_header": "x-a", "hash_fallback": "header", "hash_fallback_header": "x-b"});
        assert_eq!(key(both, &context).hash, hash_of("b"));
        assert_eq!(key(json!({"hash_on": "consumer", "hash_fallback": "ip"}), &context).hash, hash_of("10.0.0.9"));
        assert_eq!(key(json!({"hash_on": "none"}), &context).hash, None);
    }

    #[test]
    fn a_missing_cookie_is_made() {
        let context = context("/", &[("cookie", "other=1")]);
        for settings in [
            json!({"hash_on": "cookie", "hash_on_cookie": "sid", "hash_on_cookie_path": "/x"}),
            json!({"hash_on": "consumer", "hash_fallback": "cookie", "hash_on_cookie": "sid", "hash_on_cookie_path": "/x"}),
        ] {
            let key = key(settings, &context);
            assert_eq!(key.hash, hash_of("made"));
            assert_eq!(key.cookie.unwrap(), "sid=made; Path=/x; Same-Site=Lax; HttpOnly");
        }
    }

    #[test]
    fn a_cookie_replaces_its_namesake_only() {
        let mut headers = Headers::new();
        headers.append(SET_COOKIE, HeaderValue::from_static("sid=old"));
        headers.append(SET_COOKIE, HeaderValue::from_static("sidecar=1"));
        set_cookie(&mut headers, HeaderValue::from_static("sid=new; Path=/"));
        let values: Vec<_> = headers.get_all(SET_COOKIE).collect();
        assert_eq!(values, ["sidecar=1", "sid=new; Path=/"]);
    }
}

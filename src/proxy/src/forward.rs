//! What the upstream is sent: headers added, replaced and removed.

use crate::VIA_NAME;
use crate::options::ProxyOptions;
use gwctl_plugins::Context;
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::{HeaderMap as Headers, Version};

pub(crate) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
const X_FORWARDED_PATH: HeaderName = HeaderName::from_static("x-forwarded-path");
const X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
pub(crate) const X_KONG_REQUEST_ID: HeaderName = HeaderName::from_static("x-kong-request-id");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY: HeaderName = HeaderName::from_static("proxy");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Whether the client asks to go on as a WebSocket; other upgrades are not passed on, as in Kong.
pub(crate) fn wants_websocket(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// The headers to send, without `Host` and those that frame the body: they follow from the attempt. `prefix` is the part of the path that the router took off.
pub(crate) fn outgoing_headers(context: &Context, options: &ProxyOptions, prefix: Option<&str>) -> HeaderMap {
    let mut headers = context.request.headers.clone();
    let websocket = wants_websocket(&headers);
    let trailers = contains_token(&headers, &TE, "trailers");
    remove_hop_by_hop(&mut headers);
    headers.remove(HOST);
    headers.remove(EXPECT);
    headers.remove(CONTENT_LENGTH);
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    if websocket {
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    } else {
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
    }
    add_forwarded(&mut headers, context, prefix);
    append_via(&mut headers, context.request.version);
    if options.headers.request_id_upstream {
        headers.insert(X_KONG_REQUEST_ID, context.id.clone());
    }
    headers
}

/// Headers that concern one connection only: those named by `Connection` and the well-known ones.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    if let Some(named) = headers.remove(CONNECTION) {
        let plain =
            named.as_bytes().eq_ignore_ascii_case(b"keep-alive") || named.as_bytes().eq_ignore_ascii_case(b"close");
        if !plain {
            for name in named.to_str().unwrap_or_default().split(',') {
                headers.remove(name.trim());
            }
        }
    }
    for name in [KEEP_ALIVE, PROXY, PROXY_CONNECTION, PROXY_AUTHENTICATE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
}

fn add_forwarded(headers: &mut HeaderMap, context: &Context, prefix: Option<&str>) {
    let (client, request) = (&context.client, &context.request);
    let text = |text: &str| HeaderValue::from_bytes(text.as_bytes()).ok();
    let believed = |name: &HeaderName| client.trusted && request.headers.contains_key(name);
    let mut set = |name: HeaderName, value: Option<HeaderValue>| {
        if believed(&name) {
            return;
        }
        match value {
            Some(value) => _ = headers.insert(name, value),
            None => _ = headers.remove(name),
        }
    };
    set(X_FORWARDED_PROTO, Some(HeaderValue::from_static(request.scheme.as_str())));
    set(X_FORWARDED_HOST, text(&request.host));
    set(X_FORWARDED_PORT, Some(HeaderValue::from(request.port)));
    set(X_FORWARDED_PATH, text(request.uri.path()));
    set(X_FORWARDED_PREFIX, prefix.and_then(text));
    let peer = client.peer.to_canonical().to_string();
    let chain = match joined(&request.headers, &X_FORWARDED_FOR) {
        Some(before) => [before.as_slice(), b", ", peer.as_bytes()].concat(),
        None => client.ip.to_canonical().to_string().into_bytes(),
    };
    headers.insert(
        X_REAL_IP,
        HeaderValue::from_str(&client.ip.to_canonical().to_string()).unwrap_or(HeaderValue::from_static("")),
    );
    match HeaderValue::from_bytes(&chain) {
        Ok(chain) => _ = headers.insert(X_FORWARDED_FOR, chain),
        Err(_) => _ = headers.remove(X_FORWARDED_FOR),
    }
}

fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<Vec<u8>> {
    let mut values = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let mut whole = values.next()?.to_vec();
    for value in values {
        whole.extend_from_slice(b", ");
        whole.extend_from_slice(value);
    }
    Some(whole)
}

/// Adds this node to the way a message came; `version` is that of the message received.
pub(crate) fn append_via(headers: &mut HeaderMap, version: Version) {
    let own = match version {
        Version::HTTP_2 => const { VIA_NAME[1] },
        Version::HTTP_10 => const { VIA_NAME[2] },
        _ => const { VIA_NAME[0] },
    };
    let value = match joined(headers, &VIA) {
        Some(mut way) => {
            way.extend_from_slice(b", ");
            way.extend_from_slice(own.as_bytes());
            HeaderValue::from_bytes(&way).unwrap_or(HeaderValue::from_static(own))
        }
        None => HeaderValue::from_static(own),
    };
    headers.insert(VIA, value);
}

fn contains_token(headers: &Headers, name: &HeaderName, token: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|part| part.split(';').next().is_some_and(|part| part.trim().eq_ignore_ascii_case(token)))
}

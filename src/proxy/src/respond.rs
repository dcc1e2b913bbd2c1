//! Heads of responses to the client.

use crate::SERVER_NAME;
use crate::clock;
use crate::forward::{X_KONG_REQUEST_ID, append_via, remove_hop_by_hop};
use crate::options::ProxyOptions;
use crate::upstream::send::Failure;
use gwctl_plugins::{Context, Exit, Response, Source};
use http::header::{CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, SERVER, UPGRADE, VIA};
use http::{StatusCode, Version};
use std::time::Duration;

const X_KONG_RESPONSE_LATENCY: HeaderName = HeaderName::from_static("x-kong-response-latency");
const X_KONG_UPSTREAM_LATENCY: HeaderName = HeaderName::from_static("x-kong-upstream-latency");
const X_KONG_PROXY_LATENCY: HeaderName = HeaderName::from_static("x-kong-proxy-latency");
const X_KONG_UPSTREAM_STATUS: HeaderName = HeaderName::from_static("x-kong-upstream-status");
const KONG_DEBUG: HeaderName = HeaderName::from_static("kong-debug");

/// Status and page of a failed request.
pub(crate) fn failure_exit(failure: &Failure) -> Exit {
    let (status, message) = match failure {
        Failure::NoPeer => (503, "failure to get a peer from the ring-balancer"),
        Failure::Unresolved => (503, "name resolution failed"),
        Failure::NoService => (503, "no Service found with those values"),
        Failure::Unreachable => (502, "An invalid response was received from the upstream server"),
        Failure::TimedOut => (504, "The upstream server is timing out"),
        Failure::Client(gwctl_plugins::BodyError::InputTooLong(_)) => (413, "Payload too large"),
        Failure::Client(_) => (400, "Bad request"),
        Failure::ClientTimedOut => (408, "Request timeout"),
        Failure::Malformed(_) => (500, "An unexpected error occurred"),
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match failure {
        // Found before anything was sent: an answer on purpose.
        Failure::NoPeer | Failure::Unresolved | Failure::NoService | Failure::Malformed(_) => {
            Exit::page(status, message)
        }
        _ => Exit::fault(status, message),
    }
}

/// Makes the upstream's head one of ours: connection headers removed, `Connection` kept only for an upgrade.
pub(crate) fn from_upstream(mut headers: HeaderMap, status: StatusCode) -> Response {
    let upgrade = (status == StatusCode::SWITCHING_PROTOCOLS).then(|| headers.get(UPGRADE).cloned()).flatten();
    let trailer = headers.get(http::header::TRAILER).cloned();
    remove_hop_by_hop(&mut headers);
    if let Some(upgrade) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, upgrade);
    }
    if let Some(trailer) = trailer {
        headers.insert(http::header::TRAILER, trailer);
    }
    Response { status, headers, source: Source::Service }
}

/// Adds what the node adds to every response, after header_filter.
pub(crate) fn add_headers(context: &mut Context, options: &ProxyOptions, upstream: Option<(Version, StatusCode)>) {
    let added = &options.headers;
    let (times, id) = (&context.times, context.id.clone());
    let debug = options.allow_debug_header && context.request.header(KONG_DEBUG) == Some("1");
    let (waited, before, passed) = (times.waited(), times.proxied, times.until(clock::now()));
    let Some(response) = &mut context.response else { return };
    let headers = &mut response.headers;
    match upstream {
        Some((version, status)) => {
            if added.upstream_status {
                headers.insert(X_KONG_UPSTREAM_STATUS, status_value(status));
            }
            if added.upstream_latency {
                headers.insert(X_KONG_UPSTREAM_LATENCY, millis(waited));
            }
            if added.proxy_latency {
                headers.insert(X_KONG_PROXY_LATENCY, millis(before));
            }
            if added.via {
                append_via(headers, version);
            }
            if added.server && !headers.contains_key(SERVER) {
                headers.insert(SERVER, HeaderValue::from_static(SERVER_NAME));
            }
        }
        None => {
            if added.response_latency {
                headers.insert(X_KONG_RESPONSE_LATENCY, millis(Some(passed)));
            }
            if !(added.via && headers.contains_key(VIA)) {
                if added.server {
                    headers.insert(SERVER, HeaderValue::from_static(SERVER_NAME));
                } else {
                    headers.remove(SERVER);
                }
            }
        }
    }
    if added.request_id {
        headers.insert(X_KONG_REQUEST_ID, id);
    }
    if debug {
        add_debug(context);
    }
}

fn add_debug(context: &mut Context) {
    let route = context.route.as_ref().map(|route| (Some(route.id.clone()), route.name.clone()));
    let service = context.service.as_ref().map(|service| (Some(service.id.clone()), service.name.clone()));
    let Some(response) = &mut context.response else { return };
    for (names, entity) in
        [(["kong-route-id", "kong-route-name"], route), (["kong-service-id", "kong-service-name"], service)]
    {
        let (id, name) = entity.unwrap_or_default();
        for (header, value) in names.into_iter().zip([id, name]) {
            if let Some(value) = value.and_then(|value| HeaderValue::from_bytes(value.as_bytes()).ok()) {
                response.headers.insert(HeaderName::from_static(header), value);
            }
        }
    }
}

/// The usual times and statuses are at hand as text.
fn millis(time: Option<Duration>) -> HeaderValue {
    const SHORT: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];
    let millis = time.map_or(0, |time| time.as_millis() as u64);
    let short = usize::try_from(millis).ok().and_then(|millis| SHORT.get(millis));
    short.map_or_else(|| HeaderValue::from(millis), |text| HeaderValue::from_static(text))
}

fn status_value(status: StatusCode) -> HeaderValue {
    match status {
        StatusCode::OK => HeaderValue::from_static("200"),
        other => HeaderValue::from(other.as_u16()),
    }
}

/// Length of an answer whose body is at hand; statuses without a body have none.
pub(crate) fn set_length(response: &mut Response, length: usize) {
    let bodiless = response.status.is_informational() || matches!(response.status.as_u16(), 204 | 304);
    if bodiless {
        response.headers.remove(CONTENT_LENGTH);
    } else {
        response.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
}

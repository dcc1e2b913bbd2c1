//! Heads of responses to the client.

use crate::SERVER_NAME;
use crate::clock;
use crate::forward::{append_via, remove_hop_by_hop};
use crate::options::ProxyOptions;
use crate::upstream::send::Failure;
use gwctl_http1::names::{
    CONNECTION, CONTENT_LENGTH, KONG_DEBUG, SERVER, TRAILER, UPGRADE, VIA, X_KONG_PROXY_LATENCY, X_KONG_REQUEST_ID,
    X_KONG_RESPONSE_LATENCY, X_KONG_UPSTREAM_LATENCY, X_KONG_UPSTREAM_STATUS,
};
use gwctl_http1::{Digits, Headers, Name, Value};
use gwctl_plugins::{Context, Exit, Response, Source};
use http::{StatusCode, Version};
use std::time::Duration;

/// Status and page of a failed request.
pub(crate) fn failure_exit(failure: &Failure) -> Exit {
    let (status, message) = match failure {
        Failure::NoPeer => (503, "failure to get a peer from the ring-balancer"),
        Failure::Unresolved => (503, "name resolution failed"),
        Failure::NoService => (503, "no Service found with those values"),
        Failure::Unreachable | Failure::Invalid => (502, "An invalid response was received from the upstream server"),
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
pub(crate) fn from_upstream(mut headers: Headers, status: StatusCode) -> Response {
    let upgrade =
        (status == StatusCode::SWITCHING_PROTOCOLS).then(|| headers.get(UPGRADE).map(Value::to_owned)).flatten();
    let trailer = headers.get(TRAILER).map(Value::to_owned);
    remove_hop_by_hop(&mut headers);
    if let Some(upgrade) = upgrade {
        headers.insert(CONNECTION, Value::from_static("upgrade"));
        headers.insert(UPGRADE, upgrade);
    }
    if let Some(trailer) = trailer {
        headers.insert(TRAILER, trailer);
    }
    Response { status, headers, source: Source::Service }
}

const OWN_NAME: Value<'static> = Value::from_static(SERVER_NAME);

/// Adds what the node adds to every response, after header_filter.
pub(crate) fn add_headers(context: &mut Context, options: &ProxyOptions, upstream: Option<(Version, StatusCode)>) {
    let added = &options.headers;
    let times = &context.times;
    let debug = options.allow_debug_header && context.request.header(KONG_DEBUG) == Some("1");
    let (waited, before, passed) = (times.waited(), times.proxied, times.until(clock::now()));
    let Some(response) = &mut context.response else { return };
    let headers = &mut response.headers;
    match upstream {
        Some((version, status)) => {
            if added.upstream_status {
                headers.insert(X_KONG_UPSTREAM_STATUS, Digits::of(u64::from(status.as_u16())));
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
            if added.server && !headers.contains(SERVER) {
                headers.insert(SERVER, OWN_NAME);
            }
        }
        None => {
            if added.response_latency {
                headers.insert(X_KONG_RESPONSE_LATENCY, millis(Some(passed)));
            }
            if !(added.via && headers.contains(VIA)) {
                if added.server {
                    headers.insert(SERVER, OWN_NAME);
                } else {
                    headers.remove(SERVER);
                }
            }
        }
    }
    if added.request_id {
        headers.insert(X_KONG_REQUEST_ID, context.id);
    }
    if debug {
        add_debug(context);
    }
}

const ROUTE_ID: Name<'static> = Name::from_static("kong-route-id");
const ROUTE_NAME: Name<'static> = Name::from_static("kong-route-name");
const SERVICE_ID: Name<'static> = Name::from_static("kong-service-id");
const SERVICE_NAME: Name<'static> = Name::from_static("kong-service-name");

fn add_debug(context: &mut Context) {
    let route = context.route.as_ref().map(|route| (Some(route.id.clone()), route.name.clone()));
    let service = context.service.as_ref().map(|service| (Some(service.id.clone()), service.name.clone()));
    let Some(response) = &mut context.response else { return };
    for (names, entity) in [([ROUTE_ID, ROUTE_NAME], route), ([SERVICE_ID, SERVICE_NAME], service)] {
        let (id, name) = entity.unwrap_or_default();
        for (header, value) in names.into_iter().zip([id, name]) {
            if let Some(value) = value.as_ref().and_then(|value| Value::new(value.as_bytes())) {
                response.headers.insert(header, value);
            }
        }
    }
}

fn millis(time: Option<Duration>) -> Digits {
    Digits::of(time.map_or(0, |time| time.as_millis() as u64))
}

/// Length of an answer whose body is at hand; statuses without a body have none.
pub(crate) fn set_length(response: &mut Response, length: usize) {
    let bodiless = response.status.is_informational() || matches!(response.status.as_u16(), 204 | 304);
    if bodiless {
        response.headers.remove(CONTENT_LENGTH);
    } else {
        response.headers.insert(CONTENT_LENGTH, Digits::of(length as u64));
    }
}

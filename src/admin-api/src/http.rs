//! Between hyper and [`Api`]: reads the body under its limit, adds the headers of every answer.

use crate::Face;
use crate::answer::{Answer, Content};
use crate::api::Api;
use crate::backend::{NodeFacts, Origin};
use crate::place::Place;
use crate::request::{self, Request};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Bytes of a body at most: 10 MiB.
const BODY_LIMIT: usize = 10 * 1024 * 1024;
/// Longest wait for the next piece of a body.
const PIECE_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest time a whole body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(300);

/// Answers one request.
pub(crate) async fn serve_request(
    api: Api,
    peer: SocketAddr,
    request: http::Request<Incoming>,
) -> Response<Full<Bytes>> {
    let began = Instant::now();
    let (parts, body) = request.into_parts();
    let answer = match receive(&api, peer, &parts, body).await {
        Ok((place, request)) => {
            let api = api.clone();
            let handled = tokio::task::spawn_blocking(move || api.answer(&place, &request)).await;
            handled.unwrap_or_else(|error| {
                tracing::error!(%error, "handling a request failed");
                Answer::unexpected()
            })
        }
        Err(answer) => answer,
    };
    let mut response = respond(answer, parts.method == Method::HEAD);
    add_headers(response.headers_mut(), &api, &parts, began);
    if parts.version == http::Version::HTTP_2 {
        // HTTP/2 has its own way to end a connection, and forbids this header.
        response.headers_mut().remove(header::CONNECTION);
    }
    response
}

/// The endpoint and the request with its body, or the answer to one that goes no further.
async fn receive(
    api: &Api,
    peer: SocketAddr,
    parts: &http::request::Parts,
    body: Incoming,
) -> Result<(Place, Request), Answer> {
    let has_body = !body.is_end_stream();
    // Read even where it is ignored: a body left on the connection would end it for the requests that follow.
    let bytes = if has_body { collect(body).await? } else { Bytes::new() };
    let path = parts.uri.path();
    let segments = request::segments(path).ok_or_else(Answer::not_found)?;
    let place = api.place(&segments).ok_or_else(Answer::not_found)?;
    let query = request::parse_query(parts.uri.query().unwrap_or_default())?;
    let body = if matches!(parts.method, Method::POST | Method::PUT | Method::PATCH) {
        let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let kind = request::body_kind(content_type, has_body, place == Place::Config)?;
        request::parse_body(&kind, &bytes)?
    } else {
        request::Body::Empty
    };
    let raw_path = path.strip_suffix('/').unwrap_or(path).to_owned();
    let if_match = parts.headers.get(header::IF_MATCH).and_then(|value| value.to_str().ok());
    let if_version = if_match.and_then(request::version_of);
    let origin = origin(&parts.headers, peer);
    Ok((place, Request { method: parts.method.clone(), raw_path, query, body, origin, if_version }))
}

fn origin(headers: &HeaderMap, peer: SocketAddr) -> Origin {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).filter(|text| !text.is_empty());
    let who = text("gwctl-user").or_else(|| text("user-agent")).unwrap_or("admin-api");
    Origin { who: who.to_owned(), from: peer.ip().to_string() }
}

/// The whole body, refused as soon as it is longer than allowed: what is too long is never held.
async fn collect(mut body: Incoming) -> Result<Bytes, Answer> {
    let too_large = || Answer::page(413, "Request Entity Too Large").with_header("connection", "close");
    let too_slow = || Answer::page(408, "Request Time-out").with_header("connection", "close");
    if body.size_hint().lower() > BODY_LIMIT as u64 {
        return Err(too_large());
    }
    let deadline = tokio::time::Instant::now() + BODY_TIMEOUT;
    let mut collected = BytesMut::new();
    loop {
        let patience = deadline.min(tokio::time::Instant::now() + PIECE_TIMEOUT);
        let piece = tokio::time::timeout_at(patience, body.frame()).await.map_err(|_| too_slow())?;
        match piece {
            None => return Ok(collected.freeze()),
            Some(Err(_)) => return Err(Answer::page(400, "Bad Request").with_header("connection", "close")),
            Some(Ok(frame)) => {
                let Some(data) = frame.data_ref() else { continue };
                if collected.len() + data.len() > BODY_LIMIT {
                    return Err(too_large());
                }
                collected.extend_from_slice(data);
            }
        }
    }
}

/// The answer with its own headers. `HEAD` has those of `GET` and no body.
fn respond(answer: Answer, head: bool) -> Response<Full<Bytes>> {
    let (content_type, body) = match answer.content {
        Content::Empty => (None, Bytes::new()),
        Content::Json(mut value) => {
            crate::answer::tidy_numbers(&mut value);
            (Some("application/json; charset=utf-8"), Bytes::from(value.to_string()))
        }
        Content::Text { content_type, text } => (Some(content_type), Bytes::from(text)),
    };
    let length = body.len();
    let mut response = Response::new(Full::new(if head { Bytes::new() } else { body }));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if let Some(content_type) = content_type {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    for (name, value) in answer.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    response
}

fn add_headers(headers: &mut HeaderMap, api: &Api, parts: &http::request::Parts, began: Instant) {
    let node = &api.node;
    if node.server_header
        && let Ok(server) = HeaderValue::from_str(&format!("kong/{}", node.version))
    {
        headers.insert(header::SERVER, server);
    }
    if api.face == Face::Status {
        return;
    }
    if node.latency_header {
        let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        headers.insert(HeaderName::from_static("x-kong-admin-latency"), HeaderValue::from(millis));
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed_origin(node, parts.headers.get(header::ORIGIN)));
    headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    if parts.method == Method::OPTIONS && headers.contains_key(header::ALLOW) {
        let asked = parts.headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
        let allowed = asked.unwrap_or_else(|| HeaderValue::from_static("Content-Type"));
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
}

/// Which origin may read the answer: the dashboard's where one is configured, else whoever asks.
fn allowed_origin(node: &NodeFacts, asked: Option<&HeaderValue>) -> HeaderValue {
    let any = HeaderValue::from_static("*");
    let configured = &node.admin_gui_origins;
    if configured.is_empty() {
        return asked.cloned().unwrap_or(any);
    }
    let asked = asked.filter(|asked| configured.iter().any(|origin| asked.as_bytes() == origin.as_bytes()));
    let first = || configured.first().and_then(|origin| HeaderValue::from_str(origin).ok());
    asked.cloned().or_else(first).unwrap_or(any)
}

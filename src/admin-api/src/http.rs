//! Between hyper and [`Api`]: reads the body under its limit, adds the headers of every answer.

use crate::Face;
use crate::answer::{Answer, Content};
use crate::api::{Api, EVENT_STREAM};
use crate::backend::{NodeFacts, Origin};
use crate::caller::{self, Caller};
use crate::events::{self, AnswerBody};
use crate::place::Place;
use crate::request::{self, Kind, Request};
use crate::serve::Limits;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use std::net::SocketAddr;
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, watch};

/// Answers one request.
pub(crate) async fn serve_request(
    api: Api,
    peer: SocketAddr,
    request: http::Request<Incoming>,
    stopping: watch::Receiver<bool>,
) -> Response<AnswerBody> {
    let began = Instant::now();
    let (parts, body) = request.into_parts();
    let answer = match receive(&api, peer, &parts, body).await {
        Ok(received) if received.place == Place::Events && parts.method == Method::GET => {
            let last = parts.headers.get("last-event-id").and_then(|value| value.to_str().ok());
            events::open(&api, &received.request, last, stopping).map(AnswerBody::Events)
        }
        Ok(received) => Err(work(&api, received).await),
        Err(answer) => Err(answer),
    };
    let mut response = match answer {
        Ok(stream) => {
            let mut response = Response::new(stream);
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        }
        Err(answer) => respond(answer, parts.method == Method::HEAD),
    };
    add_headers(response.headers_mut(), &api, &parts, began);
    if parts.version == http::Version::HTTP_2 {
        // HTTP/2 has its own way to end a connection, and forbids this header.
        response.headers_mut().remove(header::CONNECTION);
    }
    response
}

/// The answer to a request, made on a blocking thread.
async fn work(api: &Api, received: Received) -> Answer {
    let api = api.clone();
    let handled = tokio::task::spawn_blocking(move || {
        let answer = api.answer(&received.place, &received.request);
        drop(received);
        answer
    });
    handled.await.unwrap_or_else(|error| {
        tracing::error!(%error, "handling a request failed");
        Answer::unexpected()
    })
}

/// A request whose body was read.
struct Received {
    place: Place,
    request: Request,
    /// Held while a large body is in memory.
    _large: Option<OwnedSemaphorePermit>,
}

/// The endpoint and the request with its body, or the answer to one that goes no further.
async fn receive(
    api: &Api,
    peer: SocketAddr,
    parts: &http::request::Parts,
    body: Incoming,
) -> Result<Received, Answer> {
    let has_body = !body.is_end_stream();
    let path = parts.uri.path();
    let segments = request::segments(path);
    let place = segments.as_ref().and_then(|segments| api.place(segments));
    // Before the body: whoever may not come in is not listened to.
    let caller = admitted(api, parts, place.clone()).await.map_err(|refusal| match has_body {
        true => refusal.with_header("connection", "close"),
        false => refusal,
    })?;
    let changes = place == Some(Place::Changes);
    let limits = &api.limits;
    let limit = if changes { limits.changes_body } else { limits.body };
    let large = match changes && has_body {
        true => api.large_bodies.clone().acquire_owned().await.ok(),
        false => None,
    };
    // Read even where it is ignored: a body left on the connection would end it for the requests that follow.
    let bytes = if has_body { collect(body, limit, limits).await? } else { Bytes::new() };
    let place = place.ok_or_else(Answer::not_found)?;
    let query = request::parse_query(parts.uri.query().unwrap_or_default())?;
    let body = if matches!(parts.method, Method::POST | Method::PUT | Method::PATCH) {
        let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let kind = request::body_kind(content_type, has_body, place == Place::Config)?;
        match kind {
            Kind::Json if changes => request::Body::Raw(bytes),
            kind => request::parse_body(&kind, &bytes).map_err(|answer| match place {
                // The recorded answer of Kong's endpoints to a bare string; ours say what is wrong.
                Place::Tokens | Place::Rollback => Answer::message(400, "expected a JSON object"),
                _ => answer,
            })?,
        }
    } else {
        request::Body::Empty
    };
    let raw_path = path.strip_suffix('/').unwrap_or(path).to_owned();
    let if_versions = if_versions(&parts.headers);
    let dry_run = request::dry_run(&query)?;
    let origin = origin(&parts.headers, peer, &caller);
    let method = parts.method.clone();
    let host = parts.headers.get(header::HOST).and_then(|value| value.to_str().ok());
    let host = host.or_else(|| parts.uri.authority().map(|authority| authority.as_str())).map(str::to_owned);
    let request = Request { method, raw_path, query, body, origin, if_versions, dry_run, caller, host };
    Ok(Received { place, request, _large: large })
}

/// Who sends the request, or the refusal.
async fn admitted(api: &Api, parts: &http::request::Parts, place: Option<Place>) -> Result<Caller, Answer> {
    if !api.authentication {
        return Ok(Caller::Open);
    }
    let (api, method, path, headers) =
        (api.clone(), parts.method.clone(), parts.uri.path().to_owned(), parts.headers.clone());
    let admitted =
        tokio::task::spawn_blocking(move || caller::admit(&api, &headers, &method, &path, place.as_ref())).await;
    admitted.unwrap_or_else(|error| {
        tracing::error!(%error, "looking for a token failed");
        Err(Answer::unexpected())
    })
}

/// The versions that `If-Match` names, in one header or in several; None: any. A header that is no text names none,
/// so that it guards all the same.
fn if_versions(headers: &HeaderMap) -> Option<Vec<u64>> {
    let mut named = None::<Vec<u64>>;
    for header in headers.get_all(header::IF_MATCH) {
        let versions = request::versions_of(header.to_str().unwrap_or_default())?;
        named.get_or_insert_default().extend(versions);
    }
    named
}

fn origin(headers: &HeaderMap, peer: SocketAddr, caller: &Caller) -> Origin {
    if let Caller::Token { name, .. } = caller {
        return Origin { who: name.clone(), from: peer.ip().to_string() };
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).filter(|text| !text.is_empty());
    let who = text("gwctl-user").or_else(|| text("user-agent")).unwrap_or("admin-api");
    Origin { who: who.to_owned(), from: peer.ip().to_string() }
}

/// The whole body, refused as soon as it is longer than allowed: what is too long is never held.
async fn collect(mut body: Incoming, limit: usize, limits: &Limits) -> Result<Bytes, Answer> {
    let too_large = || Answer::page(413, "Request Entity Too Large").with_header("connection", "close");
    let too_slow = || Answer::page(408, "Request Time-out").with_header("connection", "close");
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let deadline = tokio::time::Instant::now() + limits.body_timeout;
    // A length announced is believed no further than this; the rest must come first.
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(limit);
    let mut collected = BytesMut::with_capacity(announced.min(limits.body));
    loop {
        let patience = deadline.min(tokio::time::Instant::now() + limits.piece_timeout);
        let piece = tokio::time::timeout_at(patience, body.frame()).await.map_err(|_| too_slow())?;
        match piece {
            None => return Ok(collected.freeze()),
            Some(Err(_)) => return Err(Answer::page(400, "Bad Request").with_header("connection", "close")),
            Some(Ok(frame)) => {
                let Some(data) = frame.data_ref() else { continue };
                if collected.len() + data.len() > limit {
                    return Err(too_large());
                }
                collected.extend_from_slice(data);
            }
        }
    }
}

/// The answer with its own headers. `HEAD` has those of `GET` and no body.
fn respond(answer: Answer, head: bool) -> Response<AnswerBody> {
    let (content_type, body) = match answer.content {
        Content::Empty => (None, Bytes::new()),
        Content::Json(mut value) => {
            crate::answer::tidy_numbers(&mut value);
            (Some("application/json; charset=utf-8"), Bytes::from(value.to_string()))
        }
        Content::Text { content_type, text } => (Some(content_type), Bytes::from(text)),
    };
    let length = body.len();
    let mut response = Response::new(AnswerBody::Whole(Full::new(if head { Bytes::new() } else { body })));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_if_match_header_counts_and_one_that_is_no_text_guards_too() {
        let named = |values: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::IF_MATCH, HeaderValue::from_bytes(value).unwrap());
            }
            if_versions(&headers)
        };
        assert_eq!(named(&[]), None);
        assert_eq!(named(&[b"\"7\"", b"\"8\""]), Some(vec![7, 8]));
        assert_eq!(named(&[b"\xff"]), Some(vec![]));
        assert_eq!(named(&[b"\"7\"", b"*"]), None);
    }
}

//! Answers to clients of gRPC: `grpc-status` and `grpc-message` in the head, and no body.

use super::{Exit, ExitBody};
use bytes::Bytes;
use gwctl_entities::Value;
use gwctl_http1::names::{CONTENT_TYPE, GRPC_MESSAGE, GRPC_STATUS};
use gwctl_http1::{Digits, Headers, Value as HeaderText};
use http::StatusCode;

const MEDIA_TYPE: &str = "application/grpc";

/// Whether the headers are those of a gRPC message.
pub(super) fn is_spoken(headers: &Headers) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(is_named)
}

/// Whether a client wants to be told of a fault in gRPC.
pub(super) fn is_asked_for(request: &Headers) -> bool {
    super::asked_for(request).is_some_and(is_named)
}

fn is_named(value: HeaderText<'_>) -> bool {
    value.as_bytes().starts_with(MEDIA_TYPE.as_bytes())
}

/// Makes it an answer to gRPC; headers that a plugin gave stay.
pub(super) fn answer(exit: &mut Exit) {
    let message = match &exit.body {
        ExitBody::Page(message) | ExitBody::Fault(message) => message.clone(),
        ExitBody::Bytes(bytes) => message(bytes),
    };
    exit.headers.insert(CONTENT_TYPE, HeaderText::from_static(MEDIA_TYPE));
    if !exit.headers.contains(GRPC_STATUS) {
        exit.headers.append(GRPC_STATUS, Digits::of(u64::from(status(exit.status))));
    }
    if !message.is_empty() && !exit.headers.contains(GRPC_MESSAGE) {
        let message = encoded(&message);
        // What is encoded can be a value.
        exit.headers.append(GRPC_MESSAGE, HeaderText::new(message.as_bytes()).unwrap_or_default());
    }
    exit.body = ExitBody::Bytes(Bytes::new());
}

/// `message` of a JSON body, else the body itself.
fn message(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(members)) => members.get("message").and_then(Value::as_str).unwrap_or_default().to_owned(),
        _ => text.into_owned(),
    }
}

/// Source: Kong 3.9.1 `kong/pdk/response.lua`, `HTTP_TO_GRPC_STATUS`.
fn status(status: StatusCode) -> u16 {
    match status.as_u16() {
        401 => 16,
        403 => 7,
        404 => 5,
        409 => 6,
        429 => 8,
        499 => 1,
        501 => 12,
        503 => 14,
        504 => 4,
        200..=299 => 0,
        400..=498 => 3,
        500..=599 => 13,
        _ => 2,
    }
}

/// Everything but printable ASCII as `%XX`, the percent sign as well. Source: gRPC over HTTP/2, `Percent-Encoded`.
fn encoded(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    for byte in message.bytes() {
        match byte {
            b' '..=b'$' | b'&'..=b'~' => out.push(char::from(byte)),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::super::Templates;
    use super::*;
    use gwctl_http1::names::ACCEPT;
    use http::Version;

    fn answered(mut exit: Exit, content_type: &'static str) -> (Bytes, Headers) {
        let mut request = Headers::new();
        request.insert(CONTENT_TYPE, HeaderText::from_static(content_type));
        let body = exit.render_by((Version::HTTP_2, &request), "id", &Templates::default());
        (body, exit.headers)
    }

    #[test]
    fn a_client_of_grpc_reads_status_and_message_in_the_head() {
        for (exit, status, message) in [
            (Exit::page(StatusCode::NOT_FOUND, "no Route matched"), "5", "no Route matched"),
            (Exit::fault(StatusCode::BAD_GATEWAY, "50% down"), "13", "50%25 down"),
            (Exit::json(StatusCode::UNAUTHORIZED, &serde_json::json!({"message": "No API key"})), "16", "No API key"),
            (Exit::bytes(StatusCode::CONFLICT, "text/plain", "ä"), "6", "%C3%A4"),
        ] {
            let (body, headers) = answered(exit, "application/grpc+proto");
            assert_eq!(
                (headers.get_str(GRPC_STATUS).unwrap(), headers.get_str(GRPC_MESSAGE).unwrap()),
                (status, message)
            );
            assert_eq!((headers.get_str(CONTENT_TYPE).unwrap(), body.len()), ("application/grpc", 0));
        }
    }

    #[test]
    fn an_answer_made_for_grpc_and_other_clients_stay_as_they_are() {
        let mut own = Exit::bytes(StatusCode::OK, "application/grpc", "body");
        own.headers.insert(GRPC_STATUS, HeaderText::from_static("1"));
        let (body, headers) = answered(own, "application/grpc");
        assert_eq!((body.as_ref(), headers.get_str(GRPC_STATUS).unwrap()), (b"body".as_slice(), "1"));
        let (body, headers) = answered(Exit::page(StatusCode::NOT_FOUND, "x"), "application/json");
        assert!(!body.is_empty() && !headers.contains(GRPC_STATUS));
    }

    #[test]
    fn over_http_1_only_faults_are_told_in_grpc_and_as_the_client_asks() {
        let asked = |exit: &mut Exit, name, value: &'static str| {
            let mut request = Headers::new();
            request.insert(CONTENT_TYPE, HeaderText::from_static(MEDIA_TYPE));
            request.insert(name, HeaderText::from_static(value));
            let body = exit.render(&request, "id");
            (body.is_empty(), exit.headers.contains(GRPC_STATUS))
        };
        let page = || Exit::page(StatusCode::NOT_FOUND, "x");
        let fault = || Exit::fault(StatusCode::BAD_GATEWAY, "x");
        assert_eq!(asked(&mut page(), CONTENT_TYPE, MEDIA_TYPE), (false, false));
        assert_eq!(asked(&mut fault(), CONTENT_TYPE, MEDIA_TYPE), (true, true));
        assert_eq!(asked(&mut fault(), ACCEPT, MEDIA_TYPE), (true, true));
        assert_eq!(asked(&mut fault(), ACCEPT, "application/json"), (false, false));
    }
}

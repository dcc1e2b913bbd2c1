//! One line. Queries stay out of it: they may carry keys.

use crate::refused::Refused;
use gwctl_http1::names::{REFERER, USER_AGENT};
use gwctl_plugins::{Context, Source};
use http::Version;
use serde_json::{Map, Value};
use std::io::Write;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// `client - consumer [time] "request" status bytes "referer" "agent" kong_request_id: "id"`
pub(super) fn combined(out: &mut Vec<u8>, context: &Context) {
    let request = &context.request;
    let client = context.client.ip.to_canonical();
    let _ = write!(out, "{client} - {} [", context.consumer_username().unwrap_or("-"));
    clock(out, context.times.started_millis);
    let _ = write!(out, "] \"{} ", request.method);
    escaped(out, request.uri.path().as_bytes());
    let _ = write!(out, " {}\" {} {} \"", version(request.version), status(context), context.response_size);
    escaped(out, request.header(REFERER).map_or(b"-", |value| without_query(value).as_bytes()));
    out.extend_from_slice(b"\" \"");
    escaped(out, request.headers.get(USER_AGENT).map_or(b"-", |value| value.as_bytes()));
    let _ = writeln!(out, "\" kong_request_id: \"{}\"", context.id());
}

/// Everything `combined` tells, what the node did, and how long it took.
pub(super) fn json(out: &mut Vec<u8>, context: &Context) {
    let (request, times) = (&context.request, &context.times);
    let mut line = Map::new();
    let mut set = |name: &str, value: Value| _ = line.insert(name.to_owned(), value);
    set("time", moment(times.started_millis));
    set("client_ip", context.client.ip.to_canonical().to_string().into());
    set("method", request.method.as_str().into());
    set("scheme", request.scheme.as_str().into());
    set("host", request.host.as_str().into());
    set("path", request.uri.path().into());
    set("protocol", version(request.version).into());
    set("status", status(context).into());
    set("request_bytes", context.request_size.into());
    set("response_bytes", context.response_size.into());
    set("latency_ms", millis(times.ended));
    set("upstream_latency_ms", millis(times.waited()));
    set("route", context.route.as_ref().map(|route| &*route.id).into());
    set("service", context.service.as_ref().map(|service| &*service.id).into());
    set("consumer", context.consumer_id().into());
    set("upstream", context.upstream.as_ref().map(|upstream| format!("{}:{}", upstream.host, upstream.port)).into());
    set("source", context.response.as_ref().map(|response| source(response.source)).into());
    set("referer", request.header(REFERER).map(without_query).into());
    set("user_agent", request.header(USER_AGENT).into());
    set("request_id", context.id().into());
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(&mut *out, &line);
    out.push(b'\n');
}

/// As `combined`, with an empty request as nginx has it, and behind it what was wrong.
pub(super) fn refused(out: &mut Vec<u8>, refused: &Refused<'_>) {
    let Refused { client, at_millis, status, reason, sent, id } = refused;
    let _ = write!(out, "{client} - - [");
    clock(out, *at_millis);
    let _ = write!(out, "] \"-\" {} {sent} \"-\" \"-\" kong_request_id: \"{id}\" refused: \"", status.as_u16());
    escaped(out, reason.as_bytes());
    out.extend_from_slice(b"\"\n");
}

/// The same as [`json`] has it.
pub(super) fn refused_json(out: &mut Vec<u8>, refused: &Refused<'_>) {
    let Refused { client, at_millis, status, reason, sent, id } = refused;
    let line = serde_json::json!({
        "time": moment(*at_millis),
        "client_ip": client.to_string(),
        "status": status.as_u16(),
        "response_bytes": sent,
        "source": source(Source::Error),
        "refused": reason,
        "request_id": id,
    });
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(&mut *out, &line);
    out.push(b'\n');
}

/// Unix time in milliseconds as text.
pub(super) fn moment(millis: u64) -> Value {
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000);
    at.ok().and_then(|at| at.format(&Rfc3339).ok()).into()
}

pub(super) fn millis(time: Option<Duration>) -> Value {
    time.map(|time| (time.as_secs_f64() * 1_000_000.0).round() / 1000.0).into()
}

/// 499 when the client was gone before there was an answer, as nginx has it.
fn status(context: &Context) -> u16 {
    context.response.as_ref().map_or(499, |response| response.status.as_u16())
}

fn source(source: Source) -> &'static str {
    match source {
        Source::Service => "service",
        Source::Exit => "exit",
        Source::Error => "error",
    }
}

fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        _ => "HTTP/1.1",
    }
}

fn without_query(text: &str) -> &str {
    text.split('?').next().unwrap_or_default()
}

/// `30/Nov/2026:01:54:17 +0000`
pub(super) fn clock(out: &mut Vec<u8>, millis: u64) {
    let seconds = i64::try_from(millis / 1000).unwrap_or(0);
    let at = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let month = &at.month().to_string()[..3];
    let (hour, minute, second) = at.to_hms();
    let _ = write!(out, "{:02}/{month}/{}:{hour:02}:{minute:02}:{second:02} +0000", at.day(), at.year());
}

/// As nginx escapes: quotes, backslashes and what is not printable ASCII as `\xHH`, so that nobody forges lines.
pub(super) fn escaped(out: &mut Vec<u8>, text: &[u8]) {
    for byte in text {
        match byte {
            b'"' | b'\\' | 0..=31 | 127.. => _ = write!(out, "\\x{byte:02X}"),
            plain => out.push(*plain),
        }
    }
}

//! `x-cloud-trace-context: TRACE/SPAN;o=1` of Google Cloud; the id of the span is a decimal number.

use super::{one, set};
use crate::{Format, Incoming, Outgoing, SpanId, TraceId};
use gwctl_http1::{Headers, Name};

const HEADER: Name<'static> = Name::from_static("x-cloud-trace-context");

pub(crate) fn read(headers: &Headers) -> Option<Incoming> {
    let (trace, rest) = one(headers, HEADER)?.split_once('/')?;
    let (span, flag) = match rest.split_once(";o=") {
        Some((span, flag)) => (span, Some(flag)),
        None => (rest, None),
    };
    let lower = trace.len() == 32 && trace.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let decimal = (1..=20).contains(&span.len()) && span.bytes().all(|byte| byte.is_ascii_digit());
    let flagged = flag.is_none_or(|flag| flag.len() == 1 && flag.bytes().all(|byte| byte.is_ascii_digit()));
    if !(lower && decimal && flagged) {
        return None;
    }
    Some(Incoming {
        trace: Some(TraceId::from_hex(trace)?),
        trace_bytes: 16,
        span: SpanId::new(span.parse().ok()?),
        // As in Kong, a header without the flag is one that says no.
        sampled: Some(flag == Some("1")),
        ..Incoming::of(Format::Gcp)
    })
}

pub(crate) fn write(headers: &mut Headers, outgoing: &Outgoing<'_>) {
    let (span, sampled) = (outgoing.span.number(), outgoing.sampled_digit());
    set(headers, HEADER, format!("{}/{span};o={sampled}", outgoing.trace));
}

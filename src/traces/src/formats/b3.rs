//! B3 of Zipkin: `b3: TRACE-SPAN-SAMPLED-PARENT`, or a header `x-b3-*` for each part. Whoever reads one reads the other:
//! what the single header leaves open is taken from the others.
//!
//! Source: Kong 3.9.1 `kong/observability/tracing/propagation/extractors/b3.lua`. Unlike there, a foreign `tracestate`
//! does not count as a trace in this format, so that it does not hide the `traceparent` it belongs to.

use super::{decision, one, set};
use crate::{Format, Incoming, Outgoing, SpanId, TraceId};
use gwctl_http1::{Headers, Name};

const SINGLE: Name<'static> = Name::from_static("b3");
const TRACESTATE: Name<'static> = Name::from_static("tracestate");
const TRACE: Name<'static> = Name::from_static("x-b3-traceid");
const SPAN: Name<'static> = Name::from_static("x-b3-spanid");
const PARENT: Name<'static> = Name::from_static("x-b3-parentspanid");
const SAMPLED: Name<'static> = Name::from_static("x-b3-sampled");
const FLAGS: Name<'static> = Name::from_static("x-b3-flags");

pub(crate) fn read(headers: &Headers) -> Option<Incoming> {
    let several = read_several(headers);
    let Some(single) = single(headers).map(parse) else { return several.said() };
    let mut read = single;
    read.sampled = read.sampled.or(several.sampled);
    read.debug |= several.debug;
    if read.trace.is_none() {
        (read.trace, read.trace_bytes) = (several.trace, several.trace_bytes);
        (read.span, read.parent) = (several.span, several.parent);
    }
    read.said()
}

/// The single header; it may also stand in `tracestate`.
fn single(headers: &Headers) -> Option<&str> {
    let in_state = || headers.get_all(TRACESTATE).find_map(|value| value.to_str()?.strip_prefix("b3="));
    one(headers, SINGLE).or_else(in_state)
}

fn parse(text: &str) -> Incoming {
    let mut read = Incoming::of(Format::B3Single);
    match text {
        "0" => read.sampled = Some(false),
        "1" => read.sampled = Some(true),
        "d" => (read.sampled, read.debug) = (Some(true), true),
        text => {
            let parts: Vec<_> = text.split('-').collect();
            let (ids, sampled, parent) = match *parts.as_slice() {
                [trace, span] => ((trace, span), None, None),
                // The decision may be left out before a parent.
                [trace, span, last] if last.len() > 1 => ((trace, span), None, Some(last)),
                [trace, span, sampled] => ((trace, span), Some(sampled), None),
                [trace, span, sampled, parent] => ((trace, span), Some(sampled), Some(parent)),
                _ => return read,
            };
            let known = sampled.is_none_or(|sampled| matches!(sampled, "0" | "1" | "d"));
            let parent = parent.map(span_id);
            let (Some((trace, bytes)), Some(span), true) = (trace_id(ids.0), span_id(ids.1), known) else {
                return read;
            };
            if parent == Some(None) {
                return read;
            }
            (read.trace, read.trace_bytes, read.span, read.parent) = (Some(trace), bytes, Some(span), parent.flatten());
            read.sampled = sampled.map(|sampled| sampled != "0");
            read.debug = sampled == Some("d");
        }
    }
    read
}

fn read_several(headers: &Headers) -> Incoming {
    let mut read = Incoming::of(Format::B3);
    read.sampled = one(headers, SAMPLED).and_then(decision);
    if one(headers, FLAGS) == Some("1") {
        (read.sampled, read.debug) = (Some(true), true);
    }
    let trace = headers.contains(TRACE).then(|| one(headers, TRACE).and_then(trace_id));
    let id = |name: Name<'static>| headers.contains(name).then(|| one(headers, name).and_then(span_id));
    let (span, parent) = (id(SPAN), id(PARENT));
    // One that is malformed takes the others with it.
    if let Some(Some((trace, bytes))) = trace
        && span != Some(None)
        && parent != Some(None)
    {
        (read.trace, read.trace_bytes) = (Some(trace), bytes);
        (read.span, read.parent) = (span.flatten(), parent.flatten());
    }
    read
}

/// An id of 16 or 32 digits, and its bytes.
fn trace_id(text: &str) -> Option<(TraceId, usize)> {
    matches!(text.len(), 16 | 32).then(|| Some((TraceId::from_hex(text)?, text.len() / 2))).flatten()
}

fn span_id(text: &str) -> Option<SpanId> {
    (text.len() == 16).then(|| SpanId::from_hex(text)).flatten()
}

fn is_debug(outgoing: &Outgoing<'_>) -> bool {
    outgoing.incoming.is_some_and(|incoming| incoming.debug)
}

pub(crate) fn write(headers: &mut Headers, outgoing: &Outgoing<'_>) {
    for name in [PARENT, FLAGS, SAMPLED] {
        headers.remove(name);
    }
    set(headers, TRACE, outgoing.trace_hex(outgoing.came_with(8)));
    set(headers, SPAN, outgoing.span.to_string());
    if let Some(parent) = outgoing.parent {
        set(headers, PARENT, parent.to_string());
    }
    if is_debug(outgoing) {
        set(headers, FLAGS, "1");
    } else {
        set(headers, SAMPLED, outgoing.sampled_digit());
    }
}

pub(crate) fn write_single(headers: &mut Headers, outgoing: &Outgoing<'_>) {
    let sampled = if is_debug(outgoing) { "d" } else { outgoing.sampled_digit() };
    let mut text = format!("{}-{}-{sampled}", outgoing.trace_hex(outgoing.came_with(8)), outgoing.span);
    if let Some(parent) = outgoing.parent {
        text.push_str(&format!("-{parent}"));
    }
    set(headers, SINGLE, text);
}

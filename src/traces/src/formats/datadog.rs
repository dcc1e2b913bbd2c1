//! `x-datadog-trace-id`, `x-datadog-parent-id` and `x-datadog-sampling-priority`; ids are decimal numbers.

use super::{one, set};
use crate::{Format, Incoming, Outgoing, SpanId, TraceId};
use gwctl_http1::{Headers, Name};

const TRACE: Name<'static> = Name::from_static("x-datadog-trace-id");
const PARENT: Name<'static> = Name::from_static("x-datadog-parent-id");
const PRIORITY: Name<'static> = Name::from_static("x-datadog-sampling-priority");

pub(crate) fn read(headers: &Headers) -> Option<Incoming> {
    let sampled = match one(headers, PRIORITY) {
        None => None,
        Some("1" | "2") => Some(true),
        Some("0" | "-1") => Some(false),
        Some(_) => return None,
    };
    // Parsing alone would take a sign as well.
    let digits = |name: Name<'static>| {
        one(headers, name).map(str::trim).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let trace = digits(TRACE).and_then(|text| TraceId::new(text.parse().ok()?));
    let span = digits(PARENT).and_then(|text| SpanId::new(text.parse().ok()?));
    let trace_bytes = trace.map_or(0, |trace| trace.number().ilog2() as usize / 8 + 1);
    let span = span.filter(|_| trace.is_some());
    Incoming { trace, trace_bytes, span, sampled, ..Incoming::of(Format::Datadog) }.said()
}

pub(crate) fn write(headers: &mut Headers, outgoing: &Outgoing<'_>) {
    set(headers, TRACE, outgoing.trace.low().to_string());
    set(headers, PARENT, outgoing.span.number().to_string());
    set(headers, PRIORITY, outgoing.sampled_digit());
}

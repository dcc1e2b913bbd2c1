//! `ot-tracer-traceid`, `ot-tracer-spanid` and `ot-tracer-sampled`, with baggage in `ot-baggage-*`.

use super::{baggage, decision, one, set, set_baggage};
use crate::{Format, Incoming, Outgoing, SpanId, TraceId};
use gwctl_http1::{Headers, Name};

const TRACE: Name<'static> = Name::from_static("ot-tracer-traceid");
const SPAN: Name<'static> = Name::from_static("ot-tracer-spanid");
const SAMPLED: Name<'static> = Name::from_static("ot-tracer-sampled");
const BAGGAGE: &str = "ot-baggage-";

pub(crate) fn read(headers: &Headers) -> Option<Incoming> {
    let mut read = Incoming { sampled: one(headers, SAMPLED).and_then(decision), ..Incoming::of(Format::Ot) };
    let trace = one(headers, TRACE).filter(|text| matches!(text.len(), 16 | 32));
    let span = one(headers, SPAN).filter(|text| text.len() == 16).and_then(SpanId::from_hex);
    if let Some((text, trace)) = trace.and_then(|text| Some((text, TraceId::from_hex(text)?)))
        && (span.is_some() || !headers.contains(SPAN))
    {
        (read.trace, read.trace_bytes, read.span) = (Some(trace), text.len() / 2, span);
    }
    read.baggage = baggage(headers, BAGGAGE);
    read.said()
}

pub(crate) fn write(headers: &mut Headers, outgoing: &Outgoing<'_>) {
    // Its ids have 8 bytes unless longer ones came.
    set(headers, TRACE, outgoing.trace_hex(!outgoing.came_with(16)));
    set(headers, SPAN, outgoing.span.to_string());
    set(headers, SAMPLED, outgoing.sampled_digit());
    set_baggage(headers, BAGGAGE, outgoing);
}

//! `uber-trace-id: TRACE:SPAN:PARENT:FLAGS`, leading zeros left out or not, with baggage in `uberctx-*`.

use super::{baggage, one, set, set_baggage};
use crate::{Format, Incoming, Outgoing, SpanId, TraceId};
use gwctl_http1::{Headers, Name};

const HEADER: Name<'static> = Name::from_static("uber-trace-id");
const BAGGAGE: &str = "uberctx-";

pub(crate) fn read(headers: &Headers) -> Option<Incoming> {
    let mut parts = one(headers, HEADER)?.split(':');
    let [Some(trace), Some(span), Some(parent), Some(flags), None] = std::array::from_fn(|_| parts.next()) else {
        return None;
    };
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex(parent) || !is_hex(flags) || flags.len() > 2 {
        return None;
    }
    let flags = u8::from_str_radix(flags, 16).ok()?;
    Some(Incoming {
        trace: Some(TraceId::from_hex(trace)?),
        trace_bytes: trace.len().div_ceil(2),
        span: Some(SpanId::from_hex(span)?),
        // Deprecated; one that is none is left out.
        parent: SpanId::from_hex(parent),
        sampled: Some(flags & 1 == 1),
        baggage: baggage(headers, BAGGAGE),
        ..Incoming::of(Format::Jaeger)
    })
}

pub(crate) fn write(headers: &mut Headers, outgoing: &Outgoing<'_>) {
    let trace = outgoing.trace_hex(outgoing.came_with(8));
    let parent = outgoing.parent.map_or_else(|| "0".to_owned(), |parent| parent.to_string());
    let flags = if outgoing.sampled { "01" } else { "00" };
    set(headers, HEADER, format!("{trace}:{}:{parent}:{flags}", outgoing.span));
    set_baggage(headers, BAGGAGE, outgoing);
}

//! `traceparent: VERSION-TRACE-SPAN-FLAGS`, with `tracestate` beside it.
//!
//! Source: W3C Trace Context, level 2, section 3.2. Kong 3.9.1 also takes digits in upper case, which the recommendation
//! forbids, and refuses versions it does not know, which the recommendation tells to read as far as they are known.

use super::one;
use crate::tracestate;
use crate::{Format, Incoming, Outgoing, SpanId, TraceId};
use gwctl_http1::{Headers, Name};

const TRACEPARENT: Name<'static> = Name::from_static("traceparent");
pub(crate) const TRACESTATE: Name<'static> = Name::from_static("tracestate");

/// Characters of version 00.
const LENGTH: usize = 55;

pub(crate) fn read(headers: &Headers) -> Option<Incoming> {
    parse(one(headers, TRACEPARENT)?)
}

fn parse(text: &str) -> Option<Incoming> {
    let text = text.trim_matches([' ', '\t']);
    let (known, rest) = (text.get(..LENGTH)?, text.get(LENGTH..)?);
    let mut parts = known.split('-');
    let [Some(version), Some(trace), Some(span), Some(flags), None] = std::array::from_fn(|_| parts.next()) else {
        return None;
    };
    let well_formed = [(version, 2), (trace, 32), (span, 16), (flags, 2)].into_iter().all(|(part, length)| {
        part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    });
    // Later versions may add parts behind those of version 00.
    let complete = rest.is_empty() || (version != "00" && rest.starts_with('-'));
    if !well_formed || version == "ff" || !complete {
        return None;
    }
    let flags = u8::from_str_radix(flags, 16).ok()?;
    Some(Incoming {
        trace: Some(TraceId::from_hex(trace)?),
        trace_bytes: 16,
        span: Some(SpanId::from_hex(span)?),
        sampled: Some(flags & 1 == 1),
        ..Incoming::of(Format::W3c)
    })
}

pub(crate) fn write(headers: &mut Headers, outgoing: &Outgoing<'_>) {
    let flags = if outgoing.sampled { "01" } else { "00" };
    super::set(headers, TRACEPARENT, format!("00-{}-{}-{flags}", outgoing.trace, outgoing.span));
}

/// Whether the request has a state that belongs to this trace and can be passed on.
pub(crate) fn has_state_of(headers: &Headers, trace: TraceId) -> bool {
    let values = || headers.get_all(TRACESTATE);
    let text = values().all(|value| value.to_str().is_some());
    text && read(headers).is_some_and(|incoming| incoming.trace == Some(trace))
        && tracestate::is_valid(values().filter_map(|value| value.to_str()))
}

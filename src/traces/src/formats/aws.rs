//! `x-amzn-trace-id: Root=1-SECONDS-REST;Parent=SPAN;Sampled=1` of AWS X-Ray, in any order and with other parts between.

use super::{one, set};
use crate::{Format, Incoming, Outgoing, SpanId, TraceId};
use gwctl_http1::{Headers, Name};

const HEADER: Name<'static> = Name::from_static("x-amzn-trace-id");

pub(crate) fn read(headers: &Headers) -> Option<Incoming> {
    let mut read = Incoming::of(Format::Aws);
    for part in one(headers, HEADER)?.split(';') {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        match (key.trim(), value.trim()) {
            ("Root", root) => (read.trace, read.trace_bytes) = (Some(trace_id(root)?), 16),
            ("Parent", span) => read.span = Some(SpanId::from_hex(span).filter(|_| span.len() == 16)?),
            ("Sampled", "1") => read.sampled = Some(true),
            ("Sampled", "0") => read.sampled = Some(false),
            // The sender leaves the decision to others.
            ("Sampled", "?") => {}
            ("Sampled", _) => return None,
            _ => {}
        }
    }
    read.span = read.span.filter(|_| read.trace.is_some());
    read.said()
}

fn trace_id(root: &str) -> Option<TraceId> {
    let (seconds, rest) = root.strip_prefix("1-")?.split_once('-')?;
    (seconds.len() == 8 && rest.len() == 24).then(|| TraceId::from_hex(&format!("{seconds}{rest}"))).flatten()
}

pub(crate) fn write(headers: &mut Headers, outgoing: &Outgoing<'_>) {
    let trace = outgoing.trace.to_string();
    let (seconds, rest) = trace.split_at(8);
    let text = format!("Root=1-{seconds}-{rest};Parent={};Sampled={}", outgoing.span, outgoing.sampled_digit());
    set(headers, HEADER, text);
}

//! Spans as OTLP carries them: `ExportTraceServiceRequest` in the wire format of protocol buffers.
//!
//! Source: OpenTelemetry protocol 1.x, `opentelemetry/proto/{trace,common,resource}/v1`. Only what is needed of the wire
//! format is here: numbers, fixed numbers of 64 bits, and fields with a length.

use crate::span::{Attribute, Kind, Span, Value};

/// Fields with a length, which is written once it is known.
const LENGTH: u64 = 2;
const FIXED64: u64 = 1;
const NUMBER: u64 = 0;

/// Status of a span that failed.
const ERROR: u64 = 2;

/// Writes a span behind others of the same scope. The parts of any number of such buffers are one list.
pub fn write_span(out: &mut Vec<u8>, span: &Span<'_>) {
    nested(out, 2, |out| {
        bytes(out, 1, &span.trace.bytes());
        bytes(out, 2, &span.id.bytes());
        if let Some(parent) = span.parent {
            bytes(out, 4, &parent.bytes());
        }
        bytes(out, 5, span.name.as_bytes());
        number(out, 6, kind(span.kind));
        fixed(out, 7, span.started);
        fixed(out, 8, span.ended);
        for attribute in span.attributes {
            write_attribute(out, 9, attribute);
        }
        if let Some(failure) = span.failure {
            nested(out, 15, |out| {
                bytes(out, 2, failure.as_bytes());
                number(out, 3, ERROR);
            });
        }
    });
}

/// The request that sends spans, each part written by [`write_span`], as those of one resource: whose they are.
pub fn request<'a>(
    resource: &[Attribute<'_>],
    scope: (&str, &str),
    parts: impl Iterator<Item = &'a [u8]> + Clone,
) -> Vec<u8> {
    let length: usize = parts.clone().map(<[u8]>::len).sum();
    let mut out = Vec::with_capacity(length + 512);
    nested(&mut out, 1, |out| {
        nested(out, 1, |out| resource.iter().for_each(|attribute| write_attribute(out, 1, attribute)));
        nested(out, 2, |out| {
            nested(out, 1, |out| {
                bytes(out, 1, scope.0.as_bytes());
                bytes(out, 2, scope.1.as_bytes());
            });
            parts.for_each(|part| out.extend_from_slice(part));
        });
    });
    out
}

fn kind(kind: Kind) -> u64 {
    match kind {
        Kind::Internal => 1,
        Kind::Server => 2,
        Kind::Client => 3,
    }
}

fn write_attribute(out: &mut Vec<u8>, field: u64, (key, value): &Attribute<'_>) {
    nested(out, field, |out| {
        bytes(out, 1, key.as_bytes());
        nested(out, 2, |out| match value {
            Value::Text(text) => bytes(out, 1, text.as_bytes()),
            Value::Truth(truth) => number(out, 2, u64::from(*truth)),
            // Negative numbers are written as those of 64 bits that they look like.
            Value::Whole(whole) => number(out, 3, whole.cast_unsigned()),
        });
    });
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        // The cast takes the lowest bits.
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn number(out: &mut Vec<u8>, field: u64, number: u64) {
    varint(out, field << 3 | NUMBER);
    varint(out, number);
}

fn fixed(out: &mut Vec<u8>, field: u64, number: u64) {
    varint(out, field << 3 | FIXED64);
    out.extend_from_slice(&number.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    varint(out, field << 3 | LENGTH);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A message in a message. Its length goes before it and is known behind it, so that what is longer than 127 bytes is
/// moved once.
fn nested(out: &mut Vec<u8>, field: u64, write: impl FnOnce(&mut Vec<u8>)) {
    varint(out, field << 3 | LENGTH);
    let start = out.len();
    out.push(0);
    write(out);
    let length = (out.len() - start - 1) as u64;
    if length < 0x80 {
        out[start] = length as u8;
    } else {
        let mut prefix = Vec::with_capacity(10);
        varint(&mut prefix, length);
        out.splice(start..=start, prefix);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SpanId, TraceId};

    /// Field numbers and contents of a message: a number, or bytes.
    fn fields(mut message: &[u8]) -> Vec<(u64, Result<u64, Vec<u8>>)> {
        let mut found = Vec::new();
        while !message.is_empty() {
            let tag = take(&mut message);
            found.push((
                tag >> 3,
                match tag & 7 {
                    NUMBER => Ok(take(&mut message)),
                    FIXED64 => {
                        let (number, rest) = message.split_first_chunk().unwrap();
                        message = rest;
                        Ok(u64::from_le_bytes(*number))
                    }
                    LENGTH => {
                        let length = take(&mut message);
                        let (content, rest) = message.split_at(usize::try_from(length).unwrap());
                        message = rest;
                        Err(content.to_vec())
                    }
                    other => panic!("wire type {other}"),
                },
            ));
        }
        found
    }

    fn take(message: &mut &[u8]) -> u64 {
        let end = message.iter().position(|byte| *byte < 0x80).unwrap();
        let number = message[..=end].iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f));
        *message = &message[end + 1..];
        number
    }

    fn content(message: &[u8], field: u64) -> Vec<u8> {
        let found = fields(message).into_iter().find(|(number, _)| *number == field).unwrap();
        found.1.unwrap_err()
    }

    #[test]
    fn a_span_is_written_field_by_field() {
        let long = "x".repeat(300);
        let attributes = [("a", Value::Text(&long)), ("b", Value::Whole(-1)), ("c", Value::Truth(true))];
        let span = Span {
            trace: TraceId::new(1).unwrap(),
            id: SpanId::new(2).unwrap(),
            parent: SpanId::new(3),
            name: "kong",
            kind: Kind::Server,
            started: 4,
            ended: 5,
            attributes: &attributes,
            failure: Some("no"),
        };
        let mut part = Vec::new();
        write_span(&mut part, &span);
        write_span(&mut part, &Span { parent: None, failure: None, attributes: &[], ..span.clone() });
        let sent = request(&[("service.name", "kong".into())], ("gwctl", "1"), [part.as_slice()].into_iter());
        let resource_spans = content(&sent, 1);
        let resource = content(&content(&resource_spans, 1), 1);
        assert_eq!(content(&resource, 1), b"service.name");
        let scope_spans = content(&resource_spans, 2);
        assert_eq!(content(&content(&scope_spans, 1), 1), b"gwctl");
        let spans: Vec<_> = fields(&scope_spans).into_iter().filter(|(field, _)| *field == 2).collect();
        assert_eq!(spans.len(), 2);
        let read = fields(spans[0].1.as_ref().unwrap_err());
        let value = |field: u64| read.iter().find(|(number, _)| *number == field).unwrap().1.clone();
        assert_eq!((value(6), value(7), value(8)), (Ok(2), Ok(4), Ok(5)));
        assert_eq!(value(1).unwrap_err(), span.trace.bytes());
        assert_eq!(
            (value(2).unwrap_err(), value(4).unwrap_err()),
            (span.id.bytes().into(), vec![0, 0, 0, 0, 0, 0, 0, 3])
        );
        assert_eq!(fields(&value(15).unwrap_err())[1], (3, Ok(ERROR)));
        let values: Vec<_> = read.iter().filter(|(field, _)| *field == 9).map(|(_, content)| content.clone()).collect();
        let values: Vec<_> =
            values.into_iter().map(|content| fields(&self::content(&content.unwrap_err(), 2))).collect();
        assert_eq!(values[0], [(1, Err(long.into_bytes()))]);
        assert_eq!((&*values[1], &*values[2]), (&[(3, Ok(u64::MAX))][..], &[(2, Ok(1))][..]));
    }
}

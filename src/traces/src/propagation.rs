//! Reading the trace of a request and writing it for the next server.

use crate::formats;
use crate::id::{SpanId, TraceId};
use gwctl_http1::Headers;
use http::header::HeaderName;

/// A way to say in headers which trace a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `traceparent` and `tracestate`, the recommendation of the W3C.
    W3c,
    /// `x-b3-*`, one header for each part, of Zipkin. Read together with [`Format::B3Single`].
    B3,
    /// `b3`, all parts in one header.
    B3Single,
    /// `uber-trace-id` and `uberctx-*`.
    Jaeger,
    /// `ot-tracer-*` and `ot-baggage-*`, of OpenTracing.
    Ot,
    /// `x-datadog-*`, whose ids are decimal numbers of 64 bits.
    Datadog,
    /// `x-amzn-trace-id`.
    Aws,
    /// `x-cloud-trace-context`.
    Gcp,
}

impl Format {
    /// All of them, in the order in which they are looked for when a configuration does not say
    /// (`header_type`: preserve). B3 reads both of its forms.
    ///
    /// Source: Kong 3.9.1 `kong/observability/tracing/propagation/init.lua`.
    pub const READ: [Format; 7] =
        [Format::B3, Format::W3c, Format::Jaeger, Format::Ot, Format::Datadog, Format::Aws, Format::Gcp];

    /// The format of this name in configurations.
    pub fn named(name: &str) -> Option<Format> {
        Some(match name {
            "w3c" => Format::W3c,
            "b3" => Format::B3,
            "b3-single" => Format::B3Single,
            "jaeger" => Format::Jaeger,
            "ot" => Format::Ot,
            "datadog" => Format::Datadog,
            "aws" => Format::Aws,
            "gcp" => Format::Gcp,
            _ => return None,
        })
    }

    fn read(self, headers: &Headers) -> Option<Incoming> {
        match self {
            Format::W3c => formats::w3c::read(headers),
            Format::B3 | Format::B3Single => formats::b3::read(headers),
            Format::Jaeger => formats::jaeger::read(headers),
            Format::Ot => formats::ot::read(headers),
            Format::Datadog => formats::datadog::read(headers),
            Format::Aws => formats::aws::read(headers),
            Format::Gcp => formats::gcp::read(headers),
        }
    }

    fn write(self, headers: &mut Headers, outgoing: &Outgoing<'_>) {
        match self {
            Format::W3c => formats::w3c::write(headers, outgoing),
            Format::B3 => formats::b3::write(headers, outgoing),
            Format::B3Single => formats::b3::write_single(headers, outgoing),
            Format::Jaeger => formats::jaeger::write(headers, outgoing),
            Format::Ot => formats::ot::write(headers, outgoing),
            Format::Datadog => formats::datadog::write(headers, outgoing),
            Format::Aws => formats::aws::write(headers, outgoing),
            Format::Gcp => formats::gcp::write(headers, outgoing),
        }
    }
}

/// What a request says of its trace. It may say less than all: some formats can carry no more than a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// Where it was found; of both forms of B3 the one it was found in.
    pub format: Format,
    /// The trace.
    pub trace: Option<TraceId>,
    /// Bytes of the trace's id as it was sent; systems that know 8 are answered with 8.
    pub trace_bytes: usize,
    /// The span of the sender.
    pub span: Option<SpanId>,
    /// The span above the sender's, where the format tells it.
    pub parent: Option<SpanId>,
    /// Whether the sender keeps this trace; None: it leaves that to others.
    pub sampled: Option<bool>,
    /// The trace is to be kept whatever any rate says; only B3 knows this.
    pub debug: bool,
    /// Names and values that go with the trace, the values escaped as in a URI.
    pub baggage: Vec<(String, String)>,
}

impl Incoming {
    pub(crate) fn of(format: Format) -> Incoming {
        Incoming {
            format,
            trace: None,
            trace_bytes: 0,
            span: None,
            parent: None,
            sampled: None,
            debug: false,
            baggage: Vec::new(),
        }
    }

    /// Itself, when it says anything.
    pub(crate) fn said(self) -> Option<Incoming> {
        (self.trace.is_some() || self.sampled.is_some()).then_some(self)
    }
}

/// What the next server is told.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// The trace.
    pub trace: TraceId,
    /// The span that the next server's belongs below.
    pub span: SpanId,
    /// The span above that one.
    pub parent: Option<SpanId>,
    /// Whether the trace is kept.
    pub sampled: bool,
    /// What the request said; sizes, baggage and the debug flag are passed on.
    pub incoming: Option<&'a Incoming>,
}

impl Outgoing<'_> {
    /// Whether the id of the trace came with this many bytes.
    pub(crate) fn came_with(&self, bytes: usize) -> bool {
        self.incoming.is_some_and(|incoming| incoming.trace.is_some() && incoming.trace_bytes == bytes)
    }

    /// The id of the trace in hexadecimal digits: 16 where `short`, else 32.
    pub(crate) fn trace_hex(&self, short: bool) -> String {
        if short { format!("{:016x}", self.trace.low()) } else { self.trace.to_string() }
    }

    pub(crate) fn sampled_digit(&self) -> &'static str {
        if self.sampled { "1" } else { "0" }
    }
}

/// What is written for the next server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Injection {
    /// The format that was read, else the default one.
    Preserve,
    /// This format.
    As(Format),
}

/// Which formats are read and written.
///
/// Source: Kong 3.9.1 `kong/observability/tracing/propagation`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Propagation {
    /// Looked for in this order; the first that says anything counts. None of them: each request begins a trace.
    pub extract: Vec<Format>,
    /// Written, all of them.
    pub inject: Vec<Injection>,
    /// Headers that are taken off before anything is written.
    pub clear: Vec<HeaderName>,
    /// Written for [`Injection::Preserve`] when nothing was read.
    pub default: Format,
}

impl Propagation {
    /// What the older setting `header_type` means; None when there is no such type.
    pub fn of_header_type(header_type: &str, default: Format) -> Option<Propagation> {
        let (extract, inject) = match header_type {
            "preserve" => (Format::READ.to_vec(), vec![Injection::Preserve]),
            "ignore" => (Vec::new(), vec![Injection::As(default)]),
            name => (Format::READ.to_vec(), vec![Injection::Preserve, Injection::As(Format::named(name)?)]),
        };
        Some(Propagation { extract, inject, clear: Vec::new(), default })
    }

    /// What the request says of its trace.
    pub fn extract(&self, headers: &Headers) -> Option<Incoming> {
        self.extract.iter().find_map(|format| format.read(headers))
    }

    /// Takes headers off and writes those for the next server.
    pub fn inject(&self, headers: &mut Headers, outgoing: &Outgoing<'_>) {
        // Which state belongs to the trace can only be told before its headers are taken off.
        let stateful = formats::w3c::has_state_of(headers, outgoing.trace);
        for name in &self.clear {
            headers.remove(name);
        }
        for injection in &self.inject {
            let format = match injection {
                Injection::As(format) => *format,
                Injection::Preserve => outgoing.incoming.map_or(self.default, |incoming| incoming.format),
            };
            if format == Format::W3c && !stateful {
                headers.remove(formats::w3c::TRACESTATE);
            }
            format.write(headers, outgoing);
        }
    }
}

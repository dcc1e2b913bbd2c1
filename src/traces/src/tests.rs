//! Every format reads what it writes, and nonsense is no trace.

use crate::{Format, Incoming, Injection, Outgoing, Propagation, SpanId, TraceId, tracestate};
use gwctl_http1::{Headers, Value};
use http::header::HeaderName;
use proptest::prelude::*;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";
const ALL: [Format; 8] =
    [Format::W3c, Format::B3, Format::B3Single, Format::Jaeger, Format::Ot, Format::Datadog, Format::Aws, Format::Gcp];

fn headers(pairs: &[(&str, &str)]) -> Headers {
    let mut headers = Headers::new();
    for (name, value) in pairs {
        headers.append(&HeaderName::try_from(*name).unwrap(), Value::new(value.as_bytes()).unwrap());
    }
    headers
}

fn only(format: Format) -> Propagation {
    Propagation { extract: vec![format], inject: vec![Injection::As(format)], clear: Vec::new(), default: Format::W3c }
}

fn read(format: Format, pairs: &[(&str, &str)]) -> Option<Incoming> {
    only(format).extract(&headers(pairs))
}

fn parent(text: &str) -> Option<Incoming> {
    read(Format::W3c, &[("traceparent", text)])
}

fn trace() -> TraceId {
    TraceId::from_hex(TRACE).unwrap()
}

fn span() -> SpanId {
    SpanId::from_hex(SPAN).unwrap()
}

fn text<'a>(headers: &'a Headers, name: &str) -> &'a str {
    headers.get_str(name).unwrap_or_default()
}

#[test]
fn a_traceparent_tells_trace_span_and_decision() {
    let kept = parent(&format!("00-{TRACE}-{SPAN}-01")).unwrap();
    assert_eq!((kept.trace, kept.span, kept.sampled), (Some(trace()), Some(span()), Some(true)));
    // Other flags say nothing of the decision.
    assert_eq!(parent(&format!("00-{TRACE}-{SPAN}-fe")).unwrap().sampled, Some(false));
    assert_eq!(parent(&format!("00-{TRACE}-{SPAN}-03")).unwrap().sampled, Some(true));
}

#[test]
fn later_versions_of_traceparent_are_read_as_far_as_they_are_known() {
    for more in ["", "-", "-what the future will bring"] {
        assert_eq!(parent(&format!("cc-{TRACE}-{SPAN}-01{more}")).unwrap().trace, Some(trace()), "{more}");
    }
    for wrong in [format!("cc-{TRACE}-{SPAN}-01x"), format!("ff-{TRACE}-{SPAN}-01"), format!("00-{TRACE}-{SPAN}-01-")] {
        assert_eq!(parent(&wrong), None, "{wrong}");
    }
}

#[test]
fn a_traceparent_that_breaks_a_rule_is_none() {
    let zeros = "00000000000000000000000000000000";
    for wrong in [
        String::new(),
        format!("00-{TRACE}-{SPAN}"),
        format!("00-{TRACE}-{SPAN}-1"),
        format!("00-{TRACE}-{SPAN}-001"),
        format!("0-{TRACE}-{SPAN}-01"),
        format!("000-{TRACE}-{SPAN}-01"),
        format!("00-{zeros}-{SPAN}-01"),
        format!("00-{TRACE}-{}-01", &zeros[..16]),
        format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
        format!("00-{TRACE}-{}-01", SPAN.to_uppercase()),
        format!("00-{TRACE}-{SPAN}-0A"),
        format!("00-{}-{SPAN}a-01", &TRACE[1..]),
        format!("00-{}g-{SPAN}-01", &TRACE[1..]),
        format!("00_{TRACE}_{SPAN}_01"),
        format!("00-{TRACE}-{SPAN}-01, 00-{TRACE}-{SPAN}-01"),
    ] {
        assert_eq!(parent(&wrong), None, "{wrong}");
    }
    let twice = format!("00-{TRACE}-{SPAN}-01");
    assert_eq!(read(Format::W3c, &[("traceparent", &twice), ("traceparent", &twice)]), None);
}

#[test]
fn a_tracestate_is_a_list_of_at_most_32_entries() {
    for right in ["a=1", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", " a=1 , ,b=2\t", "t0*/_-@sys-1=x y", "a= b"] {
        assert!(tracestate::is_valid([right]), "{right}");
    }
    for wrong in ["", ",", "a", "A=1", "=1", "a=", "a=1=2", "a@=1", "a@b@c=1", "a@9=1", "ä=1", "a=ü", "a b=1"] {
        assert!(!tracestate::is_valid([wrong]), "{wrong}");
    }
    let many = |count: usize| (0..count).map(|number| format!("k{number}=1")).collect::<Vec<_>>().join(",");
    assert!(tracestate::is_valid([many(32).as_str()]) && !tracestate::is_valid([many(33).as_str()]));
    assert!(!tracestate::is_valid([many(30).as_str(), many(3).as_str()]));
}

/// What an upstream is told when these headers come and W3C is read and written.
fn through_w3c(pairs: &[(&str, &str)]) -> Headers {
    let (propagation, mut headers) = (only(Format::W3c), headers(pairs));
    let incoming = propagation.extract(&headers);
    let trace = incoming.as_ref().and_then(|incoming| incoming.trace).unwrap_or(TraceId::new(7).unwrap());
    let outgoing =
        Outgoing { trace, span: SpanId::new(9).unwrap(), parent: None, sampled: true, incoming: incoming.as_ref() };
    propagation.inject(&mut headers, &outgoing);
    headers
}

#[test]
fn a_tracestate_goes_with_its_trace_only() {
    let traceparent = format!("00-{TRACE}-{SPAN}-01");
    let kept = through_w3c(&[("traceparent", &traceparent), ("tracestate", "a=1"), ("tracestate", "b=2")]);
    assert_eq!(text(&kept, "traceparent"), format!("00-{TRACE}-0000000000000009-01"));
    assert_eq!(kept.get_all("tracestate").collect::<Vec<_>>(), ["a=1", "b=2"]);
    for (parent, state) in [("nonsense", "a=1"), (&*traceparent, "A=1")] {
        assert_eq!(text(&through_w3c(&[("traceparent", parent), ("tracestate", state)]), "tracestate"), "", "{state}");
    }
}

#[test]
fn a_foreign_tracestate_hides_no_traceparent() {
    let propagation = Propagation::of_header_type("preserve", Format::W3c).unwrap();
    let traceparent = format!("00-{TRACE}-{SPAN}-01");
    let incoming = propagation.extract(&headers(&[("traceparent", &traceparent), ("tracestate", "a=1")])).unwrap();
    assert_eq!((incoming.format, incoming.trace), (Format::W3c, Some(trace())));
    let incoming = propagation.extract(&headers(&[("tracestate", &format!("b3={TRACE}-{SPAN}-1"))])).unwrap();
    assert_eq!((incoming.format, incoming.trace), (Format::B3Single, Some(trace())));
}

#[test]
fn b3_is_read_in_one_header_and_in_several() {
    let single = |text: &str| read(Format::B3, &[("b3", text)]);
    for (value, sampled, debug) in [("0", Some(false), false), ("1", Some(true), false), ("d", Some(true), true)] {
        let alone = single(value).unwrap();
        assert_eq!((alone.trace, alone.sampled, alone.debug), (None, sampled, debug));
        let full = single(&format!("{TRACE}-{SPAN}-{value}-{SPAN}")).unwrap();
        assert_eq!((full.trace, full.span, full.parent), (Some(trace()), Some(span()), Some(span())));
        assert_eq!((full.sampled, full.debug), (sampled, debug));
    }
    assert_eq!(single(&format!("{TRACE}-{SPAN}")).unwrap().sampled, None);
    assert_eq!(single(&format!("{TRACE}-{SPAN}-{SPAN}")).unwrap().parent, Some(span()));
    for wrong in ["", "2", TRACE, "x-y-1", "-", "----", "0-0-1", &format!("{TRACE}-{SPAN}-2")] {
        assert_eq!(single(wrong), None, "{wrong}");
    }
    let several = [("x-b3-traceid", TRACE), ("x-b3-spanid", SPAN), ("x-b3-sampled", "true")];
    let found = read(Format::B3, &several).unwrap();
    assert_eq!((found.format, found.trace, found.sampled), (Format::B3, Some(trace()), Some(true)));
    // A malformed part takes all ids with it, not the decision.
    let broken = read(Format::B3, &[several[0], ("x-b3-spanid", "short"), several[2]]).unwrap();
    assert_eq!((broken.trace, broken.sampled), (None, Some(true)));
    assert!(read(Format::B3, &[("x-b3-flags", "1"), ("x-b3-sampled", "0")]).unwrap().debug);
    // What one header leaves open the others say.
    let mixed = read(Format::B3, &[("b3", "0"), several[0], several[1], several[2]]).unwrap();
    assert_eq!((mixed.format, mixed.trace, mixed.sampled), (Format::B3Single, Some(trace()), Some(false)));
}

#[test]
fn the_other_formats_are_read_as_kong_reads_them() {
    let jaeger = |text: &str| read(Format::Jaeger, &[("uber-trace-id", text), ("uberctx-user", "a%20b")]);
    let found = jaeger("af7651916cd43dd8448eb211c80319c:b7ad6b7169203331:0:3").unwrap();
    assert_eq!((found.trace, found.parent, found.sampled), (Some(trace()), None, Some(true)));
    assert_eq!(found.baggage, [("user".to_owned(), "a%20b".to_owned())]);
    for wrong in ["0:1:0:1", "1:0:0:1", "1:1:0:001", "1:1:1", "1:1:0:1:1", ":::", "1:1:x:1"] {
        assert_eq!(jaeger(wrong), None, "{wrong}");
    }
    let ot = read(Format::Ot, &[("ot-tracer-traceid", SPAN), ("ot-tracer-spanid", SPAN), ("ot-tracer-sampled", "0")]);
    let ot = ot.unwrap();
    assert_eq!((ot.trace.unwrap().low(), ot.trace_bytes, ot.sampled), (span().number(), 8, Some(false)));
    assert_eq!(read(Format::Ot, &[("ot-tracer-traceid", SPAN), ("ot-tracer-spanid", "1")]), None);
    let datadog = |priority| [("x-datadog-trace-id", " 42 "), ("x-datadog-parent-id", "7"), priority];
    let found = read(Format::Datadog, &datadog(("x-datadog-sampling-priority", "2"))).unwrap();
    assert_eq!((found.trace, found.span, found.sampled), (TraceId::new(42), SpanId::new(7), Some(true)));
    assert_eq!(read(Format::Datadog, &datadog(("x-datadog-sampling-priority", "3"))), None);
    assert_eq!(read(Format::Datadog, &[("x-datadog-trace-id", "+42")]), None);
    let aws = |text: &str| read(Format::Aws, &[("x-amzn-trace-id", text)]);
    let root = format!("Root=1-{}-{}", &TRACE[..8], &TRACE[8..]);
    let found = aws(&format!("Self=1; {root} ;Parent={SPAN};Sampled=1")).unwrap();
    assert_eq!((found.trace, found.span, found.sampled), (Some(trace()), Some(span()), Some(true)));
    assert_eq!(aws(&format!("{root};Sampled=?")).unwrap().sampled, None);
    for wrong in ["Root=2-1-1", "Root=1-0af76519", &format!("{root};Sampled=2"), &format!("{root};Parent=1")] {
        assert_eq!(aws(wrong), None, "{wrong}");
    }
    let gcp = |text: &str| read(Format::Gcp, &[("x-cloud-trace-context", text)]);
    let found = gcp(&format!("{TRACE}/7;o=1")).unwrap();
    assert_eq!((found.trace, found.span, found.sampled), (Some(trace()), SpanId::new(7), Some(true)));
    assert_eq!(gcp(&format!("{TRACE}/7")).unwrap().sampled, Some(false));
    for wrong in
        [TRACE, &format!("{TRACE}/x;o=1"), &format!("{TRACE}/7;o=12"), &format!("{TRACE}/99999999999999999999")]
    {
        assert_eq!(gcp(wrong), None, "{wrong}");
    }
}

#[test]
fn the_first_format_that_says_anything_counts_and_is_preserved() {
    let several =
        headers(&[("traceparent", &format!("00-{TRACE}-{SPAN}-01")), ("b3", "0"), ("uber-trace-id", "1:2:0:1")]);
    let propagation = |extract: &[Format], inject: &[Injection]| Propagation {
        extract: extract.to_vec(),
        inject: inject.to_vec(),
        clear: vec![HeaderName::from_static("b3")],
        default: Format::Gcp,
    };
    let told = |propagation: &Propagation| {
        let incoming = propagation.extract(&several);
        let mut headers = several.clone();
        let (trace, span) = (trace(), SpanId::new(9).unwrap());
        propagation
            .inject(&mut headers, &Outgoing { trace, span, parent: None, sampled: true, incoming: incoming.as_ref() });
        let jaeger = text(&headers, "uber-trace-id").starts_with(TRACE);
        let w3c = text(&headers, "traceparent").contains("0000000000000009");
        (incoming.map(|incoming| incoming.format), jaeger, w3c, headers.contains("x-cloud-trace-context"))
    };
    let preserve = [Injection::Preserve];
    let first = propagation(&[Format::Gcp, Format::Jaeger, Format::W3c], &preserve);
    assert_eq!(told(&first), (Some(Format::Jaeger), true, false, false));
    assert_eq!(told(&propagation(&[], &preserve)), (None, false, false, true));
    assert!(told(&propagation(&[Format::B3], &[Injection::As(Format::W3c)])).2);
    assert_eq!(told(&propagation(&[Format::W3c], &[])), (Some(Format::W3c), false, false, false));
}

#[test]
fn a_header_type_stands_for_the_order_of_old() {
    let of = |name| Propagation::of_header_type(name, Format::W3c);
    let preserve = of("preserve").unwrap();
    assert_eq!((preserve.extract[0], preserve.inject), (Format::B3, vec![Injection::Preserve]));
    let ignore = of("ignore").unwrap();
    assert_eq!((ignore.extract.len(), ignore.inject), (0, vec![Injection::As(Format::W3c)]));
    assert_eq!(of("jaeger").unwrap().inject, [Injection::Preserve, Injection::As(Format::Jaeger)]);
    assert_eq!(of("instana"), None);
}

#[test]
fn the_debug_flag_and_short_ids_of_b3_are_passed_on() {
    let propagation = only(Format::B3);
    let mut headers =
        headers(&[("x-b3-traceid", SPAN), ("x-b3-spanid", SPAN), ("x-b3-flags", "1"), ("x-b3-sampled", "0")]);
    let incoming = propagation.extract(&headers).unwrap();
    let (trace, span) = (incoming.trace.unwrap(), SpanId::new(9).unwrap());
    let outgoing = Outgoing { trace, span, parent: Some(self::span()), sampled: true, incoming: Some(&incoming) };
    propagation.inject(&mut headers, &outgoing);
    assert_eq!((text(&headers, "x-b3-traceid"), text(&headers, "x-b3-parentspanid")), (SPAN, SPAN));
    assert_eq!((text(&headers, "x-b3-flags"), text(&headers, "x-b3-sampled")), ("1", ""));
}

#[test]
fn a_share_of_the_traces_is_chosen_by_their_ids_alone() {
    assert!(trace().is_chosen(1.0) && !trace().is_chosen(0.0));
    let mut number = 1_u128;
    let mut chosen = 0;
    for _ in 0..10_000 {
        number = number.wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645).wrapping_add(0x5851_F42D_4C95_7F2D);
        chosen += u32::from(TraceId::new(number).unwrap().is_chosen(0.25));
    }
    assert!((2300..2700).contains(&chosen), "{chosen}");
}

/// A name of a header of some format.
fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "traceparent",
        "tracestate",
        "b3",
        "x-b3-traceid",
        "x-b3-spanid",
        "x-b3-parentspanid",
        "x-b3-sampled",
        "x-b3-flags",
        "uber-trace-id",
        "uberctx-a",
        "ot-tracer-traceid",
        "ot-tracer-spanid",
        "ot-tracer-sampled",
        "ot-baggage-b",
        "x-datadog-trace-id",
        "x-datadog-parent-id",
        "x-datadog-sampling-priority",
        "x-amzn-trace-id",
        "x-cloud-trace-context",
    ])
}

/// A value that is nonsense, or nearly right.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "00",
        "cc",
        "01",
        "1",
        "0",
        "d",
        "-",
        ":",
        ";",
        "=",
        "/",
        ",",
        "o",
        "Root=1-",
        "Parent=",
        "Sampled=",
        "b3=",
        "18446744073709551616",
        TRACE,
        SPAN,
        "0af76519",
        "16cd43dd8448eb211c80319c",
        "0000000000000000",
        "?",
        " ",
        "G",
    ]);
    let nearly = prop::collection::vec(piece, 0..9).prop_map(|pieces| pieces.concat().into_bytes());
    let nonsense = prop::collection::vec(
        any::<u8>().prop_filter("a header may have it", |byte| *byte >= 32 && *byte != 127),
        0..80,
    );
    prop_oneof![nearly, nonsense]
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        format in prop::sample::select(ALL.to_vec()),
        trace in 1_u128..,
        span in 1_u64..,
        parent in any::<u64>(),
        sampled: bool,
    ) {
        let (propagation, mut headers) = (only(format), Headers::new());
        let (trace, span) = (TraceId::new(trace).unwrap(), SpanId::new(span).unwrap());
        prop_assume!(trace.low() != 0);
        let parent = SpanId::new(parent);
        propagation.inject(&mut headers, &Outgoing { trace, span, parent, sampled, incoming: None });
        let read = propagation.extract(&headers).unwrap();
        let short = matches!(format, Format::Ot | Format::Datadog);
        let seen = if short { u128::from(trace.low()) } else { trace.number() };
        prop_assert_eq!(read.trace.map(TraceId::number), Some(seen));
        prop_assert_eq!((read.span, read.sampled), (Some(span), Some(sampled)));
        if matches!(format, Format::B3 | Format::B3Single | Format::Jaeger) {
            prop_assert_eq!(read.parent, parent);
        }
    }

    #[test]
    fn nonsense_never_panics_and_what_is_read_of_it_can_be_written(
        pairs in prop::collection::vec((name(), value()), 0..6),
        format in prop::sample::select(ALL.to_vec()),
    ) {
        let mut headers = Headers::new();
        for (name, value) in pairs {
            headers.append(&HeaderName::from_static(name), Value::new(&value).unwrap());
        }
        let mut propagation = Propagation::of_header_type("preserve", Format::W3c).unwrap();
        propagation.inject.push(Injection::As(format));
        let incoming = propagation.extract(&headers);
        let trace = incoming.as_ref().and_then(|incoming| incoming.trace).unwrap_or(TraceId::new(1).unwrap());
        let span = SpanId::new(3).unwrap();
        propagation.inject(
            &mut headers,
            &Outgoing { trace, span, parent: None, sampled: false, incoming: incoming.as_ref() },
        );
        let written = only(format).extract(&headers);
        prop_assert_eq!(written.and_then(|written| written.span), Some(span));
    }
}

//! Joining traces, and what is noted of a request.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use gwctl_http1::{Headers, Name, Value};
use gwctl_traces::Format;
use gwctl_traces::Propagation;
use std::time::Instant;

fn tracing(items: &[&str], rate: f64) -> Tracing {
    Tracing::of(items.iter().copied(), rate).unwrap()
}

fn traced(tracing: Tracing) -> Context {
    let mut context = crate::context::tests::sample();
    context.trace = Some(Box::new(Trace::begin(tracing, &context.times)));
    context
}

fn incoming(traceparent: &str) -> Option<Incoming> {
    let value = Value::new(traceparent.as_bytes()).unwrap();
    let headers = Headers::from_iter([(Name::from_static("traceparent"), value)]);
    Propagation::of_header_type("preserve", Format::W3c).unwrap().extract(&headers)
}

#[test]
fn no_item_is_off_and_all_is_everything() {
    assert_eq!(Tracing::of([], 1.0), None);
    let all = tracing(&["all"], 0.5);
    assert!(all.router && all.balancer && all.dns && all.rewrite && all.access && all.header_filter);
    let some = tracing(&["request", "plugin_access", "db_query"], 0.5);
    assert_eq!(some, Tracing { access: true, rate: 0.5, ..Tracing::default() });
}

#[test]
fn a_trace_goes_on_below_the_span_of_its_sender() {
    let mut trace = Trace::begin(tracing(&["all"], 1.0), &Times::start(Instant::now(), 0));
    let sent = incoming("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    assert!(trace.join(sent.as_ref(), None));
    let place = trace.place();
    assert_eq!(place.trace.to_string(), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!((place.span, place.parent), (trace.last_try, Some(trace.root)));
    assert_eq!(trace.parent.unwrap().to_string(), "b7ad6b7169203331");
}

#[test]
fn without_attempts_the_upstream_belongs_below_the_request() {
    let trace = Trace::begin(tracing(&["request"], 1.0), &Times::start(Instant::now(), 0));
    assert_eq!(trace.place().span, trace.root);
}

#[test]
fn a_sender_that_does_not_keep_a_trace_decides_and_one_that_does_leaves_it_to_the_rate() {
    let decide = |flags: &str, rate| {
        let mut trace = Trace::begin(tracing(&["all"], 1.0), &Times::start(Instant::now(), 0));
        trace.join(incoming(&format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flags}")).as_ref(), rate)
    };
    assert!(!decide("00", None));
    assert!(decide("01", None));
    assert!(!decide("01", Some(0.0)));
}

#[test]
fn steps_are_noted_only_when_they_are_wanted_and_the_trace_is_kept() {
    let noted = |tracing| {
        let mut context = traced(tracing);
        context.trace.as_mut().unwrap().join(None, None);
        let step = context.enter(|| Stage::Router);
        context.leave(step);
        let step = context.enter(|| Stage::Access("cors".into()));
        context.leave(step);
        context.trace.unwrap().marks.into_inner().len()
    };
    assert_eq!(noted(tracing(&["all"], 1.0)), 2);
    assert_eq!(noted(tracing(&["router"], 1.0)), 1);
    assert_eq!(noted(tracing(&["all"], 0.0)), 0);
    let untraced = crate::context::tests::sample();
    assert!(untraced.enter(|| panic!("nothing is made")).is_none());
}

#[test]
fn ids_of_workers_and_requests_differ() {
    let ids = || (0..1000).map(|_| random_trace()).collect::<Vec<_>>();
    let mut all = ids();
    all.extend(std::thread::spawn(ids).join().unwrap());
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count);
}

//! The figures of all workers in the text form of Prometheus.

use super::cells::{Buckets, quantile};
use super::streams::{STATUSES, StreamFigures};
use super::{Counted, RouteFigures, lock};
use gwctl_lifecycle::Family;
use gwctl_plugins::Source;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The figures of one route from all workers.
#[derive(Default)]
struct Sum {
    answers: BTreeMap<(u16, &'static str), u64>,
    ingress: u64,
    egress: u64,
    histograms: [Histogram; 3],
}

#[derive(Default)]
struct Histogram {
    bounds: BTreeMap<u32, u64>,
    count: u64,
    sum: f64,
}

impl Histogram {
    fn add<const N: usize>(&mut self, buckets: &Buckets<N>) {
        let (bounds, count, sum) = buckets.read();
        for (bound, below) in bounds {
            *self.bounds.entry(bound).or_default() += below;
        }
        self.count += count;
        self.sum += sum;
    }
}

impl Sum {
    fn add(&mut self, figures: &RouteFigures) {
        for answers in lock(&figures.answers).iter() {
            *self.answers.entry((answers.status, source(answers.source))).or_default() += answers.count.get();
        }
        self.ingress += figures.ingress.get();
        self.egress += figures.egress.get();
        self.histograms[0].add(&figures.total);
        self.histograms[1].add(&figures.upstream);
        self.histograms[2].add(&figures.own);
    }
}

fn source(source: Source) -> &'static str {
    match source {
        Source::Service => "service",
        Source::Exit => "exit",
        Source::Error => "error",
    }
}

/// The streams of one route from all workers.
#[derive(Default)]
struct StreamSum {
    ended: [u64; STATUSES.len()],
    open: u64,
    failures: u64,
    ingress: u64,
    egress: u64,
    duration: Histogram,
}

impl StreamSum {
    fn add(&mut self, figures: &StreamFigures) {
        self.ended.iter_mut().zip(&figures.ended).for_each(|(all, own)| *all += own.get());
        self.open = self.open.wrapping_add(figures.open.get());
        self.failures += figures.failures.get();
        self.ingress += figures.ingress.get();
        self.egress += figures.egress.get();
        self.duration.add(&figures.duration);
    }
}

/// By service and route.
type By<T> = BTreeMap<(Arc<str>, Arc<str>), T>;
type Sums = By<Sum>;
type StreamSums = By<StreamSum>;

pub(super) fn write(out: &mut String, workers: &[Arc<Counted>]) {
    let (mut sums, mut streams) = (Sums::new(), StreamSums::new());
    for worker in workers {
        let routes = lock(&worker.routes).clone();
        for figures in routes {
            sums.entry((figures.service.clone(), figures.route.clone())).or_default().add(&figures);
        }
        let figures_of_streams = lock(&worker.streams).clone();
        for figures in figures_of_streams {
            streams.entry((figures.service.clone(), figures.route.clone())).or_default().add(&figures);
        }
    }
    requests(out, &sums);
    bandwidth(out, &sums, &streams);
    let histograms = [
        ("kong_request_latency_ms", "Time from the first byte of a request to the last of its response."),
        ("kong_upstream_latency_ms", "Time until the upstream's response began."),
        ("kong_kong_latency_ms", "Time this node itself took."),
    ];
    for (number, (name, help)) in histograms.into_iter().enumerate() {
        let of_routes = sums.iter().map(|(key, sum)| (key, &sum.histograms[number]));
        histogram(out, of_routes, name, help);
    }
    if !streams.is_empty() {
        sessions(out, &streams);
    }
    spread(out, workers);
}

fn requests(out: &mut String, sums: &Sums) {
    let mut family = Family::begin(
        out,
        "kong_http_requests_total",
        "counter",
        "HTTP requests by service, route, status and who answered.",
    );
    for ((service, route), sum) in sums {
        for ((status, source), count) in &sum.answers {
            let code = status.to_string();
            let labels = [
                ("service", &**service),
                ("route", route),
                ("code", &code),
                ("source", source),
                ("workspace", "default"),
                ("consumer", ""),
            ];
            family.line("", &labels, count);
        }
    }
}

fn bandwidth(out: &mut String, sums: &Sums, streams: &StreamSums) {
    let help = "Bytes of requests and responses, and of streams both ways.";
    let mut family = Family::begin(out, "kong_bandwidth_bytes", "counter", help);
    let requests = sums.iter().map(|(key, sum)| (key, sum.ingress, sum.egress));
    let streams = streams.iter().map(|(key, sum)| (key, sum.ingress, sum.egress));
    for ((service, route), ingress, egress) in
        requests.chain(streams.filter(|(_, ingress, egress)| ingress + egress > 0))
    {
        for (direction, bytes) in [("ingress", ingress), ("egress", egress)] {
            let labels = [
                ("service", &**service),
                ("route", route),
                ("direction", direction),
                ("workspace", "default"),
                ("consumer", ""),
            ];
            family.line("", &labels, bytes);
        }
    }
}

/// Streams that have ended and that are open.
fn sessions(out: &mut String, streams: &StreamSums) {
    let help = "Streams that have ended, by service, route, status and who decided it.";
    let mut family = Family::begin(out, "kong_stream_sessions_total", "counter", help);
    for ((service, route), sum) in streams {
        for ((status, source), count) in STATUSES.iter().zip(sum.ended).filter(|(_, count)| *count > 0) {
            let (code, workspace) = (status.to_string(), ("workspace", "default"));
            let labels = [("service", &**service), ("route", route), ("code", &code), ("source", source), workspace];
            family.line("", &labels, count);
        }
    }
    let durations = streams.iter().map(|(key, sum)| (key, &sum.duration));
    histogram(out, durations, "kong_session_duration_ms", "Time from the first byte of a stream to its end.");
    let of_route = |out: &mut String, name, kind, help, figure: fn(&StreamSum) -> u64| {
        let mut family = Family::begin(out, name, kind, help);
        for ((service, route), sum) in streams {
            family.line("", &[("service", &**service), ("route", route)], figure(sum));
        }
    };
    of_route(out, "gwctl_stream_sessions_open", "gauge", "Streams that are open.", |sum| sum.open);
    let help = "Attempts to reach a target of a stream that failed.";
    of_route(out, "gwctl_stream_connect_failures_total", "counter", help, |sum| sum.failures);
}

fn histogram<'a>(
    out: &mut String,
    figures: impl Iterator<Item = (&'a (Arc<str>, Arc<str>), &'a Histogram)>,
    name: &'static str,
    help: &str,
) {
    let mut family = Family::begin(out, name, "histogram", help);
    for ((service, route), figures) in figures {
        if figures.count == 0 {
            continue;
        }
        let labels = [("service", &**service), ("route", route), ("workspace", "default")];
        let with = |bound: &str, family: &mut Family<'_>, count: u64| {
            family.line("_bucket", &[labels[0], labels[1], labels[2], ("le", bound)], count);
        };
        for (bound, below) in &figures.bounds {
            with(&bound.to_string(), &mut family, *below);
        }
        with("+Inf", &mut family, figures.count);
        family.line("_count", &labels, figures.count);
        family.line("_sum", &labels, figures.sum);
    }
}

/// Quantiles of all requests since the start, which histograms with wide buckets cannot give.
fn spread(out: &mut String, workers: &[Arc<Counted>]) {
    let (mut counts, mut sum) = (Vec::new(), 0_u64);
    for worker in workers {
        sum = sum.saturating_add(worker.spread.add_to(&mut counts));
    }
    let help = "Time of requests since the start of the node, within an eighth.";
    let mut family = Family::begin(out, "gwctl_request_seconds", "summary", help);
    for (name, part) in [("0.5", 0.5), ("0.9", 0.9), ("0.99", 0.99), ("0.999", 0.999)] {
        if let Some(micros) = quantile(&counts, part) {
            family.line("", &[("quantile", name)], micros as f64 / 1e6);
        }
    }
    family.line("_count", &[], counts.iter().sum::<u64>());
    family.line("_sum", &[], sum as f64 / 1e6);
}

//! The figures of all workers in the text form of Prometheus.

use super::cells::{Buckets, quantile};
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

type Sums = BTreeMap<(Arc<str>, Arc<str>), Sum>;

pub(super) fn write(out: &mut String, workers: &[Arc<Counted>]) {
    let mut sums = Sums::new();
    for worker in workers {
        let routes = lock(&worker.routes).clone();
        for figures in routes {
            sums.entry((figures.service.clone(), figures.route.clone())).or_default().add(&figures);
        }
    }
    requests(out, &sums);
    bandwidth(out, &sums);
    let histograms = [
        ("kong_request_latency_ms", "Time from the first byte of a request to the last of its response."),
        ("kong_upstream_latency_ms", "Time until the upstream's response began."),
        ("kong_kong_latency_ms", "Time this node itself took."),
    ];
    for (number, (name, help)) in histograms.into_iter().enumerate() {
        histogram(out, &sums, number, name, help);
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

fn bandwidth(out: &mut String, sums: &Sums) {
    let mut family = Family::begin(out, "kong_bandwidth_bytes", "counter", "Bytes of requests and responses.");
    for ((service, route), sum) in sums {
        for (direction, bytes) in [("ingress", sum.ingress), ("egress", sum.egress)] {
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

fn histogram(out: &mut String, sums: &Sums, number: usize, name: &'static str, help: &str) {
    let mut family = Family::begin(out, name, "histogram", help);
    for ((service, route), sum) in sums {
        let figures = &sum.histograms[number];
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

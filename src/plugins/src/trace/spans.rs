//! The spans of a request that has ended.
//!
//! Names, and the attributes `http.*`, `net.*`, `dns.*` and `try_count`, are Kong's, so that dashboards go on working; the
//! others follow the semantic conventions of OpenTelemetry 1.2x.

use super::{Mark, Stage, Trace, nanos, random_span};
use crate::{Context, Try};
use gwctl_traces::{Attribute, Kind, Span, SpanId, Value, otlp};
use http::Version;
use std::time::Duration;

impl Trace {
    /// Writes the spans of a request, in the form of [`otlp::write_span`]. How many there are.
    pub fn write(&self, context: &Context, out: &mut Vec<u8>) -> u32 {
        let marks = self.marks.borrow();
        // The times of requests are those of their turns, a little older than those of their steps.
        let end = context.times.ended.unwrap_or_else(|| context.times.started.elapsed());
        let end = marks.iter().filter_map(|mark| mark.ended).fold(end, Duration::max);
        let mut writer = Writer { trace: self, out, end, count: 0 };
        writer.root(context);
        let attempts = marks.iter().filter(|mark| matches!(mark.stage, Stage::Try)).count();
        let (mut attempt, mut number) = (None, 0);
        for mark in marks.iter() {
            match &mark.stage {
                Stage::Try => {
                    number += 1;
                    let last = number == attempts;
                    let id = if last { self.last_try } else { random_span() };
                    attempt = Some(id);
                    writer.attempt(context, mark, id, number, last);
                }
                _ => writer.step(context, mark, attempt, number),
            }
        }
        writer.count
    }
}

struct Writer<'a> {
    trace: &'a Trace,
    out: &'a mut Vec<u8>,
    /// When the request ended.
    end: Duration,
    count: u32,
}

/// What is written of a span beside its trace.
struct Told<'a> {
    id: SpanId,
    parent: Option<SpanId>,
    name: &'a str,
    kind: Kind,
    began: Duration,
    ended: Duration,
    attributes: &'a [Attribute<'a>],
    failure: Option<&'a str>,
}

impl Writer<'_> {
    fn write(&mut self, told: &Told<'_>) {
        let at = |time: Duration| self.trace.began.saturating_add(nanos(time));
        let span = Span {
            trace: self.trace.id,
            id: told.id,
            parent: told.parent,
            name: told.name,
            kind: told.kind,
            started: at(told.began),
            ended: at(told.ended.max(told.began)),
            attributes: told.attributes,
            failure: told.failure,
        };
        otlp::write_span(self.out, &span);
        self.count += 1;
    }

    fn root(&mut self, context: &Context) {
        let (request, client) = (&context.request, &context.client);
        let (scheme, version) = (request.scheme.as_str(), version(request.version));
        // Without its query, in which there may be secrets.
        let url = format!("{scheme}://{}{}", request.host, request.uri.path());
        let (ip, peer) = (client.ip.to_string(), client.peer.to_string());
        let mut attributes: Vec<Attribute<'_>> = vec![
            ("http.request.method", request.method.as_str().into()),
            ("http.method", request.method.as_str().into()),
            ("http.url", url.as_str().into()),
            ("http.host", request.host.as_str().into()),
            ("http.scheme", scheme.into()),
            ("http.flavor", version.into()),
            ("http.client_ip", ip.as_str().into()),
            ("net.peer.ip", peer.as_str().into()),
            ("url.scheme", scheme.into()),
            ("url.path", request.uri.path().into()),
            ("network.protocol.version", version.into()),
            ("network.peer.address", peer.as_str().into()),
            ("client.address", ip.as_str().into()),
            ("server.address", request.host.as_str().into()),
            ("server.port", request.port.into()),
            ("kong.request.id", context.id().into()),
        ];
        let status = context.response.as_ref().map(|response| response.status);
        if let Some(status) = status {
            attributes.push(("http.status_code", status.as_u16().into()));
            attributes.push(("http.response.status_code", status.as_u16().into()));
        }
        add_entities(context, &mut attributes);
        let failure = status.filter(http::StatusCode::is_server_error);
        self.write(&Told {
            id: self.trace.root,
            parent: self.trace.parent,
            name: "kong",
            kind: Kind::Server,
            began: Duration::ZERO,
            ended: self.end,
            attributes: &attributes,
            failure: failure.map(|status| status.canonical_reason().unwrap_or("server error")),
        });
    }

    fn attempt(&mut self, context: &Context, mark: &Mark, id: SpanId, number: usize, last: bool) {
        // Kept since some plugin of the chain logs; one that broke off has none.
        let made = context.tries.get(number - 1);
        let (ip, port, failure) = address(made);
        let mut attributes: Vec<Attribute<'_>> = vec![("try_count", Value::Whole(number as i64))];
        if let Some(ip) = &ip {
            let ip = ip.as_str();
            attributes.extend([("net.peer.ip", ip.into()), ("network.peer.address", Value::from(ip))]);
        }
        if let Some(port) = port {
            attributes.extend([("net.peer.port", port.into()), ("network.peer.port", Value::from(port))]);
        }
        let host = context.upstream.as_ref().map(|upstream| &*upstream.host);
        if let Some(host) = host {
            attributes.extend([("net.peer.name", host.into()), ("server.address", Value::from(host))]);
        }
        let answered = context.times.answered.filter(|_| last && failure.is_none());
        let status = answered.and(context.response.as_ref()).map(|response| response.status.as_u16());
        attributes.extend(status.map(|status| ("http.response.status_code", status.into())));
        let left = mark.ended.unwrap_or(self.end);
        self.write(&Told {
            id,
            parent: Some(self.trace.root),
            name: "kong.balancer",
            kind: Kind::Client,
            began: mark.began,
            // The attempt that was answered goes on until the response has passed.
            ended: if answered.is_some() { self.end } else { left },
            attributes: &attributes,
            failure,
        });
        if let Some(began) = answered {
            self.write(&Told {
                id: random_span(),
                parent: Some(id),
                name: "kong.upstream.read_response",
                kind: Kind::Internal,
                began: began.max(mark.began),
                ended: self.end,
                attributes: &[],
                failure: None,
            });
        }
    }

    fn step(&mut self, context: &Context, mark: &Mark, attempt: Option<SpanId>, number: usize) {
        let of_attempt = matches!(mark.stage, Stage::Dns(..) | Stage::Connect | Stage::Tls | Stage::Wait);
        let parent = attempt.filter(|_| of_attempt).unwrap_or(self.trace.root);
        let mut name = String::new();
        let mut attributes: Vec<Attribute<'_>> = Vec::new();
        let (ip, _, _) = address(number.checked_sub(1).and_then(|number| context.tries.get(number)));
        let mut told = Told {
            id: random_span(),
            parent: Some(parent),
            name: "",
            kind: Kind::Internal,
            began: mark.began,
            ended: mark.ended.unwrap_or(self.end),
            attributes: &[],
            failure: None,
        };
        match &mark.stage {
            Stage::Router => told.name = "kong.router",
            Stage::Rewrite(plugin) => name = format!("kong.rewrite.plugin.{plugin}"),
            Stage::Access(plugin) => name = format!("kong.access.plugin.{plugin}"),
            Stage::HeaderFilter(plugin) => name = format!("kong.header_filter.plugin.{plugin}"),
            Stage::Dns(host, port) => {
                (told.name, told.kind) = ("kong.dns", Kind::Client);
                attributes.extend([("dns.record.domain", (&**host).into()), ("dns.record.port", Value::from(*port))]);
                attributes.extend(ip.iter().map(|ip| ("dns.record.ip", ip.as_str().into())));
                let resolved = attempt.is_none() || ip.is_some();
                told.failure = (!resolved).then_some("the name could not be resolved");
            }
            Stage::Connect => told.name = "kong.upstream.connect",
            Stage::Tls => told.name = "kong.upstream.tls",
            Stage::Wait => told.name = "kong.upstream.ttfb",
            Stage::Try => {}
        }
        if !name.is_empty() {
            told.name = &name;
        }
        told.attributes = &attributes;
        self.write(&told);
    }
}

/// Address, port and failure of an attempt.
fn address(made: Option<&Try>) -> (Option<String>, Option<u16>, Option<&'static str>) {
    let Some(made) = made else { return (None, None, None) };
    (made.ip.map(|ip| ip.to_string()), Some(made.port), made.failure)
}

/// Route, service and consumer of the request.
fn add_entities<'a>(context: &'a Context, attributes: &mut Vec<Attribute<'a>>) {
    let mut add = |name, text: Option<&'a str>| attributes.extend(text.map(|text| (name, text.into())));
    if let Some(route) = context.route.as_deref() {
        add("http.route", Some(route.paths.first().map_or("", String::as_str)));
        add("kong.route.id", Some(&route.id));
        add("kong.route.name", route.name.as_deref());
    }
    if let Some(service) = context.service.as_deref() {
        add("kong.service.id", Some(&service.id));
        add("kong.service.name", service.name.as_deref());
    }
    add("kong.consumer.id", context.consumer_id());
    add("kong.consumer.username", context.consumer_username());
}

/// As Kong writes it.
fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2.0",
        _ => "1.1",
    }
}

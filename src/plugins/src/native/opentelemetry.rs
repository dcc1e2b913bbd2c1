//! `opentelemetry`: passes the trace of a request on and sends its spans to a collector by OTLP over HTTP.
//!
//! What is traced is a matter of the node (`tracing_instrumentations`); without it the trace is passed on as one that is
//! not kept. Unlike Kong, a request that was answered before the turn of this plugin joins the trace of its client, too.

use super::{Built, Native, settings};
use crate::export::{Outlet, Part, Terms};
use crate::trace::Place;
use crate::{Context, Exit, Phases, Plugin, PluginError, PluginFacts, Step};
use collector::Collector;
use config::Config;
use gwctl_entities::Record;
use gwctl_http1::Value;
use gwctl_traces::{Incoming, Outgoing, Propagation, TraceId};
use http::header::HeaderName;
use std::sync::Arc;

mod collector;
mod config;

/// Line of the table.
pub(super) const NATIVE: Native = Native { name: "opentelemetry", priority: 14, version: "3.9.1", build };

struct OpenTelemetry {
    /// None without `traces_endpoint`: then nothing is done at all, as in Kong.
    outlet: Option<Outlet>,
    propagation: Propagation,
    rate: Option<f64>,
    /// Tells the client the id of the trace.
    header: Option<HeaderName>,
}

fn build(config: &Record, facts: &PluginFacts) -> Built {
    let config: Config = settings(config)?;
    let header = config.http_response_header_for_traceid.as_deref().map(str::parse).transpose();
    let header = header
        .map_err(|_| PluginError("'config.http_response_header_for_traceid' is not the name of a header".to_owned()))?;
    if config.logs_endpoint.is_some() {
        tracing::warn!(plugin = "opentelemetry", id = %facts.id, "'config.logs_endpoint' has no effect: logs are not exported");
    }
    let propagation = config.propagation()?;
    let outlet = match &config.traces_endpoint {
        None => None,
        Some(endpoint) => {
            let sender = Collector::new(endpoint, &config, facts)?;
            let terms = Terms { options: config.queue(), sender: Box::new(sender) };
            Some(facts.node.exports.outlet(&facts.id, terms))
        }
    };
    Ok(Arc::new(OpenTelemetry { outlet, propagation, rate: config.sampling_rate, header }))
}

/// The trace that a request has joined.
struct Joined(TraceId);

impl OpenTelemetry {
    /// Joins the trace of the client and decides whether it is kept.
    fn join(&self, context: &mut Context) -> (Option<Incoming>, Place, bool) {
        let incoming = self.propagation.extract(&context.request.headers);
        let (place, kept) = match &mut context.trace {
            Some(trace) => {
                let kept = trace.join(incoming.as_ref(), self.rate);
                (trace.place(), kept)
            }
            None => (Place::propagated(incoming.as_ref()), false),
        };
        context.slots.put(Joined(place.trace));
        (incoming, place, kept)
    }

    /// The trace, joined now when access was not reached.
    fn joined(&self, context: &mut Context) -> TraceId {
        match context.slots.get::<Joined>() {
            Some(Joined(trace)) => *trace,
            None => self.join(context).1.trace,
        }
    }
}

impl Plugin for OpenTelemetry {
    fn phases(&self) -> Phases {
        match (&self.outlet, &self.header) {
            (None, _) => Phases::NONE,
            (Some(_), None) => Phases::ACCESS | Phases::LOG,
            (Some(_), Some(_)) => Phases::ACCESS | Phases::HEADER_FILTER | Phases::LOG,
        }
    }

    fn access<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        let (incoming, Place { trace, span, parent }, sampled) = self.join(context);
        let outgoing = Outgoing { trace, span, parent, sampled, incoming: incoming.as_ref() };
        self.propagation.inject(&mut context.request.headers, &outgoing);
        Step::Next
    }

    fn header_filter(&self, context: &mut Context) -> Result<Option<Box<Exit>>, PluginError> {
        let trace = self.joined(context);
        if let (Some(header), Some(response)) = (&self.header, &mut context.response)
            && let Some(value) = Value::new(trace.to_string().as_bytes())
        {
            response.headers.append(header, value);
        }
        Ok(None)
    }

    fn log(&self, context: &mut Context) {
        self.joined(context);
        let Some((outlet, trace)) = self.outlet.as_ref().zip(context.trace.as_deref()) else { return };
        if trace.is_kept() {
            let mut bytes = Vec::with_capacity(4096);
            let count = trace.write(context, &mut bytes);
            outlet.add(Part { bytes, count });
        }
    }
}

#[cfg(test)]
mod tests;

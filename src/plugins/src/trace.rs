//! What a request is traced by: when its steps began and ended, and the ids they go by.
//!
//! Only points in time are noted while a request is served; what is told of a step is gathered at the end, and only of
//! traces that are kept. A node that traces nothing pays for each step with a look at an empty option.

use crate::{Context, Times};
use gwctl_traces::{Incoming, SpanId, TraceId};
use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

mod spans;

/// What a node traces: its settings `tracing_instrumentations` and `tracing_sampling_rate`. The request as a whole always
/// has a span.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tracing {
    /// Finding the route.
    pub router: bool,
    /// Attempts to reach the upstream, and their parts.
    pub balancer: bool,
    /// Resolving the upstream's name.
    pub dns: bool,
    /// Each plugin's rewrite.
    pub rewrite: bool,
    /// Each plugin's access.
    pub access: bool,
    /// Each plugin's header_filter.
    pub header_filter: bool,
    /// Share of traces that are kept, 0 to 1, unless a plugin has a share of its own.
    pub rate: f64,
}

impl Tracing {
    /// Reads the items of the setting; None when there are none, which is off.
    ///
    /// `db_query` and `http_client` are known and trace nothing: there is no database server, and no plugin that asks
    /// other servers before the upstream.
    pub fn of<'a>(items: impl IntoIterator<Item = &'a str>, rate: f64) -> Option<Tracing> {
        let mut tracing = None;
        for item in items {
            let tracing = tracing.get_or_insert(Tracing { rate, ..Tracing::default() });
            let all = item == "all";
            tracing.router |= all || item == "router";
            tracing.balancer |= all || item == "balancer";
            tracing.dns |= all || item == "dns_query";
            tracing.rewrite |= all || item == "plugin_rewrite";
            tracing.access |= all || item == "plugin_access";
            tracing.header_filter |= all || item == "plugin_header_filter";
        }
        tracing
    }
}

/// A step of a request.
#[derive(Debug, Clone)]
pub enum Stage {
    /// Finding the route.
    Router,
    /// A plugin's rewrite, by its name.
    Rewrite(Arc<str>),
    /// A plugin's access.
    Access(Arc<str>),
    /// A plugin's header_filter.
    HeaderFilter(Arc<str>),
    /// One attempt to reach the upstream; those that follow up to the next one are its parts.
    Try,
    /// Resolving this name.
    Dns(Box<str>, u16),
    /// Connecting to the upstream.
    Connect,
    /// Agreeing on TLS with it.
    Tls,
    /// From the first byte of the request to the head of the response.
    Wait,
}

impl Stage {
    fn is_wanted(&self, tracing: &Tracing) -> bool {
        match self {
            Self::Router => tracing.router,
            Self::Rewrite(_) => tracing.rewrite,
            Self::Access(_) => tracing.access,
            Self::HeaderFilter(_) => tracing.header_filter,
            Self::Try | Self::Connect | Self::Tls | Self::Wait => tracing.balancer,
            Self::Dns(..) => tracing.dns,
        }
    }
}

/// A step that has begun; see [`Context::leave`].
#[derive(Debug)]
#[must_use]
pub struct Entered(usize);

#[derive(Debug)]
struct Mark {
    stage: Stage,
    began: Duration,
    ended: Option<Duration>,
}

/// The trace of one request.
#[derive(Debug)]
pub struct Trace {
    tracing: Tracing,
    /// Its id: that of the client's trace once a plugin has read it.
    id: TraceId,
    /// The span of the whole request, and the client's that it belongs below.
    root: SpanId,
    parent: Option<SpanId>,
    /// The span of the last attempt. The upstream learns of it before any attempt is made.
    last_try: SpanId,
    /// Unix time of the request's begin, in nanoseconds.
    began: u64,
    marks: RefCell<Vec<Mark>>,
    /// Steps are noted until it is decided that the trace is not kept.
    kept: Cell<bool>,
}

/// The place of a request in its trace, as the upstream is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The trace.
    pub trace: TraceId,
    /// The span that those of the upstream belong below.
    pub span: SpanId,
    /// The one above it.
    pub parent: Option<SpanId>,
}

impl Trace {
    /// Begins a trace for a request that began at `times`.
    pub fn begin(tracing: Tracing, times: &Times) -> Trace {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let began = now.saturating_sub(times.started.elapsed());
        let id = random_trace();
        Trace {
            tracing,
            id,
            root: random_span(),
            parent: None,
            last_try: random_span(),
            began: nanos(began),
            marks: RefCell::default(),
            kept: Cell::new(true),
        }
    }

    /// Makes it a part of the trace that the request came with, and decides whether it is kept: not if its sender does
    /// not, else by `rate`, or by that of the node.
    ///
    /// Source: Kong 3.9.1 `kong/pdk/tracing.lua`, `get_sampling_decision`.
    pub fn join(&mut self, incoming: Option<&Incoming>, rate: Option<f64>) -> bool {
        if let Some(incoming) = incoming {
            self.id = incoming.trace.unwrap_or(self.id);
            self.parent = incoming.span.or(incoming.parent);
        }
        let refused = incoming.is_some_and(|incoming| incoming.sampled == Some(false));
        self.kept.set(!refused && self.id.is_chosen(rate.unwrap_or(self.tracing.rate)));
        self.kept.get()
    }

    /// Its id.
    pub fn id(&self) -> TraceId {
        self.id
    }

    /// Whether its spans are to be exported.
    pub fn is_kept(&self) -> bool {
        self.kept.get()
    }

    /// What the upstream is told.
    pub fn place(&self) -> Place {
        if self.tracing.balancer {
            return Place { trace: self.id, span: self.last_try, parent: Some(self.root) };
        }
        Place { trace: self.id, span: self.root, parent: self.parent }
    }

    fn enter(&self, stage: Stage, now: Duration) -> Option<Entered> {
        if !self.kept.get() || !stage.is_wanted(&self.tracing) {
            return None;
        }
        let mut marks = self.marks.borrow_mut();
        marks.push(Mark { stage, began: now, ended: None });
        Some(Entered(marks.len() - 1))
    }

    fn leave(&self, entered: Entered, now: Duration) {
        if let Some(mark) = self.marks.borrow_mut().get_mut(entered.0) {
            mark.ended = Some(now);
        }
    }
}

impl Place {
    /// A place in a trace of which the node itself exports nothing.
    pub fn propagated(incoming: Option<&Incoming>) -> Place {
        let trace = incoming.and_then(|incoming| incoming.trace).unwrap_or_else(random_trace);
        let parent = incoming.and_then(|incoming| incoming.span.or(incoming.parent));
        Place { trace, span: random_span(), parent }
    }
}

impl Context {
    /// Notes that a step of the request begins; None, and nothing is made, when the request is not traced.
    #[inline]
    pub fn enter(&self, stage: impl FnOnce() -> Stage) -> Option<Entered> {
        let trace = self.trace.as_deref()?;
        trace.enter(stage(), self.times.started.elapsed())
    }

    /// Notes that the step ends. One that is never left ends with the request.
    #[inline]
    pub fn leave(&self, entered: Option<Entered>) {
        if let Some((entered, trace)) = entered.zip(self.trace.as_deref()) {
            trace.leave(entered, self.times.started.elapsed());
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

thread_local! {
    /// Of the worker; seeded by the standard library's random hash keys.
    static RANDOM: Cell<[u64; 2]> = Cell::new([1, 2].map(|salt| RandomState::new().hash_one(salt) | 1));
}

/// Unique in practice, not secret (xorshift128+).
fn random() -> u64 {
    RANDOM.with(|state| {
        let [mut one, other] = state.get();
        one ^= one << 23;
        one ^= one >> 17;
        one ^= other ^ (other >> 26);
        state.set([other, one]);
        other.wrapping_add(one)
    })
}

fn random_trace() -> TraceId {
    let number = u128::from(random()) << 64 | u128::from(random());
    // Zero, which is no id, does not come twice.
    TraceId::new(number).unwrap_or_else(random_trace)
}

fn random_span() -> SpanId {
    SpanId::new(random()).unwrap_or_else(random_span)
}

#[cfg(test)]
mod tests;

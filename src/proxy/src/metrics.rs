//! Figures of requests and streams, for Prometheus: under the names of Kong's plugin where it has one, so that dashboards go on
//! working.
//!
//! Each worker counts for itself: its cells have one writer, so that counting takes neither a lock nor an atomic
//! read-modify-write. Reading adds up the workers.

mod cells;
mod streams;
mod text;

pub(crate) use streams::StreamFigures;

use crate::keyed::Own as Map;
use cells::{Buckets, Count, Spread};
use gwctl_plugins::{Context, Source};
use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Routes with figures of their own in one worker; the requests of further ones are counted without a route.
const ROUTES_LIMIT: usize = 10_000;

/// Upper bounds in milliseconds.
///
/// Source: Kong 3.9.1 `kong/plugins/prometheus/exporter.lua`.
const TOTAL_BOUNDS: [u32; 13] = [25, 50, 80, 100, 250, 400, 700, 1000, 2000, 5000, 10_000, 30_000, 60_000];
const OWN_BOUNDS: [u32; 15] = [1, 2, 5, 7, 10, 15, 20, 30, 50, 75, 100, 200, 500, 750, 1000];

/// Figures of all workers.
#[derive(Debug, Default)]
pub struct Metrics {
    workers: Mutex<Vec<Arc<Counted>>>,
}

/// What one worker has counted, as others read it.
#[derive(Debug, Default)]
struct Counted {
    routes: Mutex<Vec<Arc<RouteFigures>>>,
    streams: Mutex<Vec<Arc<StreamFigures>>>,
    /// Microseconds of whole requests.
    spread: Spread,
    begun: Count,
    ended: Count,
}

/// Figures of one route, or of the requests that have none.
#[derive(Debug)]
struct RouteFigures {
    route: Arc<str>,
    service: Arc<str>,
    /// Requests by status and by who answered.
    answers: Mutex<Vec<Arc<Answers>>>,
    ingress: Count,
    egress: Count,
    total: Buckets<13>,
    upstream: Buckets<13>,
    own: Buckets<15>,
}

#[derive(Debug)]
struct Answers {
    status: u16,
    source: Source,
    count: Count,
}

impl Metrics {
    /// The figures as Prometheus reads them, at the end of `out`.
    pub fn write(&self, out: &mut String) {
        let workers = lock(&self.workers).clone();
        text::write(out, &workers);
    }

    /// How many requests have begun, and how many have ended. Who reads this while requests end may find one too few in
    /// flight, never more than there are.
    pub(crate) fn requests(&self) -> (u64, u64) {
        let workers = lock(&self.workers);
        let sum = |count: fn(&Counted) -> &Count| workers.iter().map(|worker| count(worker).get()).sum();
        let begun = sum(|worker| &worker.begun);
        (begun, sum(|worker| &worker.ended))
    }

    /// A recorder for one more worker.
    pub(crate) fn recorder(&self) -> Recorder {
        let counted = Arc::<Counted>::default();
        lock(&self.workers).push(counted.clone());
        Recorder { counted, routes: RefCell::default(), streams: RefCell::default() }
    }
}

/// A worker's own way to its cells.
#[derive(Debug)]
pub(crate) struct Recorder {
    counted: Arc<Counted>,
    routes: RefCell<Map<Arc<str>, Own>>,
    streams: RefCell<Map<Arc<str>, Arc<StreamFigures>>>,
}

#[derive(Debug)]
struct Own {
    figures: Arc<RouteFigures>,
    answers: Vec<Arc<Answers>>,
}

impl Recorder {
    /// Counts a request that begins.
    pub(crate) fn begin(&self) {
        self.counted.begun.add(1);
    }

    /// Counts a request that has ended.
    pub(crate) fn count(&self, context: &Context) {
        let mut routes = self.routes.borrow_mut();
        let id = context.route.as_ref().map_or("", |route| &*route.id);
        match routes.get_mut(id) {
            Some(own) => own.count(context),
            None => {
                let room = routes.len() < ROUTES_LIMIT;
                let id = if room { id } else { "" };
                let add = || self.add(if room { Some(context) } else { None });
                routes.entry(id.into()).or_insert_with(add).count(context);
            }
        }
        if let Some(time) = context.times.ended {
            self.counted.spread.add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        }
        self.counted.ended.add(1);
    }

    /// Counts what was refused before it was a request, among the requests without a route.
    pub(crate) fn refuse(&self, status: u16, sent: u64) {
        let mut routes = self.routes.borrow_mut();
        let own = routes.entry("".into()).or_insert_with(|| self.add(None));
        own.answers(status, Source::Error).count.add(1);
        own.figures.egress.add(sent);
        self.counted.begun.add(1);
        self.counted.ended.add(1);
    }

    fn add(&self, context: Option<&Context>) -> Own {
        let route = context.and_then(|context| context.route.as_ref());
        let service = context.and_then(|context| context.service.as_ref());
        let figures = Arc::new(RouteFigures {
            route: route.map_or_else(|| "".into(), |route| route.name.as_deref().unwrap_or(&*route.id).into()),
            service: service
                .map_or_else(|| "".into(), |service| service.name.as_deref().unwrap_or(&*service.host).into()),
            answers: Mutex::default(),
            ingress: Count::default(),
            egress: Count::default(),
            total: Buckets::new(TOTAL_BOUNDS),
            upstream: Buckets::new(TOTAL_BOUNDS),
            own: Buckets::new(OWN_BOUNDS),
        });
        lock(&self.counted.routes).push(figures.clone());
        Own { figures, answers: Vec::new() }
    }
}

impl Own {
    fn answers(&mut self, status: u16, source: Source) -> &Answers {
        let known = self.answers.iter().position(|answers| answers.status == status && answers.source == source);
        let place = known.unwrap_or_else(|| {
            let answers = Arc::new(Answers { status, source, count: Count::default() });
            lock(&self.figures.answers).push(answers.clone());
            self.answers.push(answers);
            self.answers.len() - 1
        });
        // Found or just pushed.
        &self.answers[place]
    }

    fn count(&mut self, context: &Context) {
        let (status, source) =
            context.response.as_ref().map_or((499, Source::Error), |head| (head.status.as_u16(), head.source));
        self.answers(status, source).count.add(1);
        self.figures.ingress.add(context.request_size);
        self.figures.egress.add(context.response_size);
        let (times, figures) = (&context.times, &self.figures);
        let waited = times.waited();
        if let Some(ended) = times.ended {
            figures.total.add(ended);
            figures.own.add(waited.map_or(ended, |waited| times.proxied.unwrap_or(ended.saturating_sub(waited))));
        }
        if let Some(waited) = waited {
            figures.upstream.add(waited);
        }
    }
}

/// What it guards is lists that only grow; one that panicked while pushing left them whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

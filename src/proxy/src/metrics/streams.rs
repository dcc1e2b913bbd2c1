//! Figures of streams.

use super::cells::{Buckets, Count};
use super::{ROUTES_LIMIT, Recorder, TOTAL_BOUNDS, lock};
use gwctl_entities::view::{Route, Service};
use std::sync::Arc;
use std::time::Duration;

/// The statuses with which streams end, each with who decided it.
pub(super) const STATUSES: [(u16, &str); 5] =
    [(200, "service"), (400, "error"), (500, "exit"), (502, "error"), (503, "exit")];

/// What one worker counts of the streams of one route, or of those that have none.
#[derive(Debug)]
pub(crate) struct StreamFigures {
    pub(super) route: Arc<str>,
    pub(super) service: Arc<str>,
    /// Streams that have ended, in the order of [`STATUSES`].
    pub(super) ended: [Count; STATUSES.len()],
    pub(super) open: Count,
    /// Attempts to reach a target that failed.
    pub(super) failures: Count,
    pub(super) ingress: Count,
    pub(super) egress: Count,
    pub(super) duration: Buckets<13>,
}

impl StreamFigures {
    /// Nothing counted yet.
    pub(super) fn new(service: &str, route: &str) -> StreamFigures {
        StreamFigures {
            route: route.into(),
            service: service.into(),
            ended: Default::default(),
            open: Count::default(),
            failures: Count::default(),
            ingress: Count::default(),
            egress: Count::default(),
            duration: Buckets::new(TOTAL_BOUNDS),
        }
    }

    /// One more is open.
    pub(crate) fn enter(&self) {
        self.open.add(1);
    }

    /// One is open no more, or belongs to another route.
    pub(crate) fn leave(&self) {
        self.open.take(1);
    }

    pub(crate) fn receive(&self, bytes: u64) {
        self.ingress.add(bytes);
    }

    pub(crate) fn send(&self, bytes: u64) {
        self.egress.add(bytes);
    }

    /// One has ended.
    pub(crate) fn end(&self, status: u16, took: Duration, failures: u32) {
        let place = STATUSES.iter().position(|(other, _)| *other == status);
        debug_assert!(place.is_some(), "a status that no stream ends with");
        if let Some(count) = place.and_then(|place| self.ended.get(place)) {
            count.add(1);
        }
        self.failures.add(failures.into());
        self.duration.add(took);
    }
}

impl Recorder {
    /// The figures of a route's streams.
    pub(crate) fn stream(&self, route: Option<&Route>, service: Option<&Service>) -> Arc<StreamFigures> {
        let mut routes = self.streams.borrow_mut();
        let id = route.map_or("", |route| &*route.id);
        let route = route.map_or("", |route| route.name.as_deref().unwrap_or(&route.id));
        let service = service.map_or("", |service| service.name.as_deref().unwrap_or(&service.host));
        // A route may have come to another name or service.
        let known = routes.get(id).filter(|figures| *figures.route == *route && *figures.service == *service);
        if let Some(figures) = known {
            return figures.clone();
        }
        if !id.is_empty() && routes.len() >= ROUTES_LIMIT && !routes.contains_key(id) {
            drop(routes);
            return self.stream(None, None);
        }
        let figures = Arc::new(StreamFigures::new(service, route));
        lock(&self.counted.streams).push(figures.clone());
        routes.insert(id.into(), figures.clone());
        figures
    }
}

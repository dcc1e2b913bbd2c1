//! Where the rows of a plugin name are bound. Persistent: a changed row copies the few nodes on its path.

use super::{Configured, Demands};
use imbl::shared_ptr::DefaultSharedPtr;
use imbl::{GenericHashMap, OrdMap};
use std::sync::Arc;

/// Values by an id or a name of the configuration. Whoever sends requests does not choose these, so that the hash may be a
/// quick one.
pub(super) type ById<V> = GenericHashMap<Arc<str>, V, foldhash::quality::RandomState, DefaultSharedPtr>;

/// Ids of a route and a service.
type Place = (Option<Arc<str>>, Option<Arc<str>>);

/// The rows of one plugin name by the route and the service they are bound to.
#[derive(Clone, Default)]
pub(super) struct Cells(OrdMap<Place, Arc<Cell>>);

/// The rows of one name bound to the same route and service.
#[derive(Clone, Default)]
pub(super) struct Cell {
    pub(super) plain: Option<Arc<Configured>>,
    pub(super) consumers: Consumers,
}

impl Cells {
    pub(super) fn get(&self, route: Option<&Arc<str>>, service: Option<&Arc<str>>) -> Option<&Cell> {
        self.0.get(&(route.cloned(), service.cloned())).map(|cell| &**cell)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn insert(&mut self, row: &Arc<Configured>) {
        let key = (row.facts.route.clone(), row.facts.service.clone());
        let cell = Arc::make_mut(self.0.entry(key).or_default());
        match &row.facts.consumer {
            Some(consumer) => cell.consumers.insert(consumer, row),
            None => cell.plain = Some(row.clone()),
        }
    }

    pub(super) fn remove(&mut self, row: &Arc<Configured>) {
        let key = (row.facts.route.clone(), row.facts.service.clone());
        let Some(cell) = self.0.get_mut(&key).map(Arc::make_mut) else { return };
        match &row.facts.consumer {
            Some(consumer) => cell.consumers.remove(consumer, row),
            None => cell.plain = cell.plain.take().filter(|known| known.facts.id != row.facts.id),
        }
        if cell.plain.is_none() && cell.consumers.is_empty() {
            self.0.remove(&key);
        }
    }
}

/// Rows by consumer, of which there may be millions.
#[derive(Clone, Default)]
pub(super) struct Consumers {
    rows: ById<Arc<Configured>>,
    /// How many rows have the same demands. A name rarely has more than one or two kinds.
    demands: Vec<(Demands, usize)>,
}

impl Consumers {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn get(&self, consumer: &str) -> Option<&Arc<Configured>> {
        self.rows.get(consumer)
    }

    /// What some row may have and need.
    pub(super) fn demands(&self) -> Demands {
        self.demands.iter().map(|(demands, _)| *demands).fold(Demands::default(), Demands::and)
    }

    fn insert(&mut self, consumer: &Arc<str>, row: &Arc<Configured>) {
        let old = self.rows.insert(consumer.clone(), row.clone());
        old.iter().for_each(|old| self.uncount(Demands::of(old)));
        let demands = Demands::of(row);
        match self.demands.iter_mut().find(|(known, _)| *known == demands) {
            Some((_, count)) => *count += 1,
            None => self.demands.push((demands, 1)),
        }
    }

    fn remove(&mut self, consumer: &Arc<str>, row: &Configured) {
        if self.rows.get(consumer).is_some_and(|known| known.facts.id == row.facts.id) {
            self.rows.remove(consumer);
            self.uncount(Demands::of(row));
        }
    }

    fn uncount(&mut self, demands: Demands) {
        self.demands.iter_mut().filter(|(known, _)| *known == demands).for_each(|(_, count)| *count -= 1);
        self.demands.retain(|(_, count)| *count > 0);
    }
}

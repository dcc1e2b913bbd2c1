//! Which plugins a request meets, and calling them in order.
//!
//! For each plugin name the most specific row that fits the request runs, at most one: route, service and consumer;
//! route and consumer; service and consumer; route and service; consumer; route; service; everything. Rows that need a
//! consumer can only be chosen when the turn of their name comes, after authentication; all else is settled when the
//! snapshot is built. Routes without rows of their own share the chain of their service, services that of the node.

use crate::{Needs, Phases, Plugin, PluginFacts};
use cells::{Cells, Consumers};
use gwctl_entities::view;
use std::sync::Arc;

pub use chains::{Builder, Chains};
pub use run::{Failure, Run};

mod cells;
mod chains;
mod run;

/// A row of `plugins` with its plugin object.
pub struct Configured {
    /// Facts of the row.
    pub facts: PluginFacts,
    /// The row; shared with the owner of the configuration.
    pub row: Arc<view::Plugin>,
    /// Higher runs first.
    pub priority: i64,
    /// Copy of [`Plugin::phases`].
    pub phases: Phases,
    /// Copy of [`Plugin::needs`].
    pub needs: Needs,
    /// The plugin.
    pub plugin: Arc<dyn Plugin>,
}

impl Configured {
    /// Whether building the row again would give the same.
    fn is(&self, row: &view::Plugin) -> bool {
        // All but `enabled` and `protocols`, which no plugin sees.
        let known = &*self.row;
        known.name == row.name
            && known.instance_name == row.instance_name
            && known.service == row.service
            && known.route == row.route
            && known.consumer == row.consumer
            && known.config == row.config
    }
}

/// A row that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("plugin '{name}' ({id}): {reason}")]
pub struct ChainProblem {
    /// Plugin name.
    pub name: String,
    /// Id of the row.
    pub id: String,
    /// What is wrong.
    pub reason: String,
}

/// The rows of one plugin name that may run in a chain.
struct Choice {
    /// Rows of a consumer that is also bound to route or service, most specific first.
    close: Vec<Consumers>,
    /// The row that fits without a consumer.
    plain: Option<Arc<Configured>>,
    /// Rows of a consumer alone; absent when the plain row is bound to both route and service, which goes before.
    far: Option<Consumers>,
}

impl Choice {
    fn of(cells: &Cells, route: Option<&Arc<str>>, service: Option<&Arc<str>>) -> Option<Choice> {
        let both = route.and_then(|route| service.and_then(|service| cells.get(Some(route), Some(service))));
        let by_route = route.and_then(|route| cells.get(Some(route), None));
        let by_service = service.and_then(|service| cells.get(None, Some(service)));
        let global = cells.get(None, None);
        let close = [both, by_route, by_service];
        let plain = close.iter().chain([&global]).find_map(|cell| cell.as_ref()?.plain.clone());
        let close = close.into_iter().flatten().map(|cell| &cell.consumers);
        let close: Vec<_> = close.filter(|consumers| !consumers.is_empty()).cloned().collect();
        let hidden = both.is_some_and(|cell| cell.plain.is_some());
        let far = global.filter(|cell| !hidden && !cell.consumers.is_empty()).map(|cell| cell.consumers.clone());
        (plain.is_some() || far.is_some() || !close.is_empty()).then_some(Choice { close, plain, far })
    }

    fn pick(&self, consumer: Option<&str>) -> Option<&Arc<Configured>> {
        let bound = consumer.and_then(|id| self.close.iter().chain(&self.far).find_map(|rows| rows.get(id)));
        bound.or(self.plain.as_ref())
    }

    fn needs_consumer(&self) -> bool {
        !self.close.is_empty() || self.far.is_some()
    }

    /// What some row may have and need.
    fn demands(&self) -> Demands {
        let consumers = self.close.iter().chain(&self.far).map(Consumers::demands);
        consumers.chain(self.plain.iter().map(|row| Demands::of(row))).fold(Demands::default(), Demands::and)
    }
}

/// What rows take part in and ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Demands {
    phases: Phases,
    needs: Needs,
}

impl Demands {
    fn of(row: &Configured) -> Demands {
        Demands { phases: row.phases, needs: row.needs }
    }

    fn and(self, other: Demands) -> Demands {
        let needs = Needs {
            request_body: self.needs.request_body || other.needs.request_body,
            captures: self.needs.captures || other.needs.captures,
        };
        Demands { phases: self.phases | other.phases, needs }
    }
}

/// The plugins of a route, a service or the node, in order.
#[derive(Default)]
pub struct Chain {
    choices: Vec<Choice>,
    /// The rows, when no choice depends on the consumer.
    fixed: Option<Vec<Arc<Configured>>>,
    phases: Phases,
    needs: Needs,
}

impl Chain {
    fn new(choices: Vec<Choice>) -> Chain {
        let Demands { phases, needs } = choices.iter().map(Choice::demands).fold(Demands::default(), Demands::and);
        let settled = !choices.iter().any(Choice::needs_consumer);
        let fixed = settled.then(|| choices.iter().filter_map(|choice| choice.plain.clone()).collect());
        Chain { choices, fixed, phases, needs }
    }

    /// Phases that some plugin of the chain may have.
    pub fn phases(&self) -> Phases {
        self.phases
    }

    /// What some plugin of the chain may need.
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// Whether there is nothing to run.
    pub fn is_empty(&self) -> bool {
        self.choices.is_empty()
    }

    /// The rows that run for this consumer, in order.
    pub fn rows(&self, consumer: Option<&str>) -> impl Iterator<Item = &Arc<Configured>> {
        self.choices.iter().filter_map(move |choice| choice.pick(consumer))
    }
}

#[cfg(test)]
mod tests;

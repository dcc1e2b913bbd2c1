//! Which plugins a request meets, and calling them in order.
//!
//! For each plugin name the most specific row that fits the request runs, at most one: route, service and consumer;
//! route and consumer; service and consumer; route and service; consumer; route; service; everything. Rows that need a
//! consumer can only be chosen when the turn of their name comes, after authentication; all else is settled when the
//! snapshot is built. Routes without rows of their own share the chain of their service, services that of the node.

use crate::{Needs, Node, Phases, Plugin, PluginFacts, PluginHost};
use gwctl_entities::{Record, view};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

pub use run::{Failure, Run};

mod run;

/// A row of `plugins` with its plugin object.
pub struct Configured {
    /// Facts of the row.
    pub facts: PluginFacts,
    /// Its settings.
    pub config: Record,
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
        let facts = &self.facts;
        *facts.name == row.name
            && facts.instance_name.as_deref() == row.instance_name.as_deref()
            && facts.service == row.service
            && facts.route == row.route
            && facts.consumer == row.consumer
            && self.config == row.config
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

type ByConsumer = HashMap<Arc<str>, Arc<Configured>>;

/// The rows of one name bound to the same route and service.
#[derive(Default)]
struct Cell {
    plain: Option<Arc<Configured>>,
    consumers: Arc<ByConsumer>,
}

/// Cells of one name by route and service.
type Cells = HashMap<(Option<Arc<str>>, Option<Arc<str>>), Cell>;

/// The rows of one plugin name that may run in a chain.
struct Choice {
    /// Rows of a consumer that is also bound to route or service, most specific first.
    close: Vec<Arc<ByConsumer>>,
    /// The row that fits without a consumer.
    plain: Option<Arc<Configured>>,
    /// Rows of a consumer alone; absent when the plain row is bound to both route and service, which goes before.
    far: Option<Arc<ByConsumer>>,
}

impl Choice {
    fn of(cells: &Cells, route: Option<&Arc<str>>, service: Option<&Arc<str>>) -> Option<Choice> {
        let (route, service) = (route.cloned(), service.cloned());
        let both =
            if route.is_some() && service.is_some() { cells.get(&(route.clone(), service.clone())) } else { None };
        let by_route = if route.is_some() { cells.get(&(route, None)) } else { None };
        let by_service = if service.is_some() { cells.get(&(None, service)) } else { None };
        let global = cells.get(&(None, None));
        let close = [both, by_route, by_service];
        let plain = close.iter().chain([&global]).find_map(|cell| cell.as_ref()?.plain.clone());
        let close: Vec<_> = close.into_iter().flatten().map(|cell| cell.consumers.clone()).collect();
        let close: Vec<_> = close.into_iter().filter(|consumers| !consumers.is_empty()).collect();
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

    fn rows(&self) -> impl Iterator<Item = &Arc<Configured>> {
        self.close.iter().chain(&self.far).flat_map(|rows| rows.values()).chain(&self.plain)
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
        let mut chain = Chain::default();
        for row in choices.iter().flat_map(Choice::rows) {
            chain.phases = chain.phases | row.phases;
            chain.needs.request_body |= row.needs.request_body;
            chain.needs.captures |= row.needs.captures;
        }
        if !choices.iter().any(Choice::needs_consumer) {
            chain.fixed = Some(choices.iter().filter_map(|choice| choice.plain.clone()).collect());
        }
        chain.choices = choices;
        chain
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

/// All chains of a snapshot.
#[derive(Default)]
pub struct Chains {
    rows: HashMap<Arc<str>, Arc<Configured>>,
    global: Arc<Chain>,
    by_service: HashMap<Arc<str>, Arc<Chain>>,
    by_route: HashMap<Arc<str>, Arc<Chain>>,
}

impl Chains {
    /// Builds the enabled rows and puts them in order. Plugin objects of rows that did not change are taken over from
    /// `previous`. `routes` are ids of routes and their services.
    pub fn build<'a>(
        rows: impl IntoIterator<Item = view::Plugin>,
        routes: impl IntoIterator<Item = (&'a Arc<str>, Option<&'a Arc<str>>)>,
        hosts: &[Arc<dyn PluginHost>],
        node: &Arc<Node>,
        previous: Option<&Chains>,
    ) -> Result<Chains, Vec<ChainProblem>> {
        let mut chains = Chains::default();
        let mut problems = Vec::new();
        for row in rows.into_iter().filter(|row| row.enabled) {
            match configure(row, hosts, node, previous) {
                Ok(configured) => _ = chains.rows.insert(configured.facts.id.clone(), configured),
                Err(problem) => problems.push(problem),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let names = sort_names(&chains.rows);
        chains.global = Arc::new(chain(&names, None, None));
        for service in
            chains.rows.values().filter(|row| row.facts.route.is_none()).filter_map(|row| row.facts.service.as_ref())
        {
            chains.by_service.entry(service.clone()).or_insert_with(|| Arc::new(chain(&names, None, Some(service))));
        }
        let bound: std::collections::HashSet<_> =
            chains.rows.values().filter_map(|row| row.facts.route.as_ref()).collect();
        for (route, service) in routes.into_iter().filter(|(route, _)| bound.contains(route)) {
            chains.by_route.insert(route.clone(), Arc::new(chain(&names, Some(route), service)));
        }
        Ok(chains)
    }

    /// Chain of requests without a route; its rows without consumer are those of rewrite.
    pub fn global(&self) -> &Arc<Chain> {
        &self.global
    }

    /// Chain of a route and its service.
    pub fn of_route(&self, route: &str, service: Option<&str>) -> &Arc<Chain> {
        let of_service = || service.and_then(|service| self.by_service.get(service));
        self.by_route.get(route).or_else(of_service).unwrap_or(&self.global)
    }

    /// All rows, in no order.
    pub fn rows(&self) -> impl Iterator<Item = &Arc<Configured>> {
        self.rows.values()
    }
}

fn configure(
    row: view::Plugin,
    hosts: &[Arc<dyn PluginHost>],
    node: &Arc<Node>,
    previous: Option<&Chains>,
) -> Result<Arc<Configured>, ChainProblem> {
    if let Some(old) = previous.and_then(|chains| chains.rows.get(&row.id)).filter(|old| old.is(&row)) {
        return Ok(old.clone());
    }
    let problem = |reason: String| ChainProblem { name: row.name.clone(), id: row.id.to_string(), reason };
    let host = hosts.iter().find_map(|host| Some((host, host.priority(&row.name)?)));
    let (host, priority) = host.ok_or_else(|| problem("the plugin is not installed on this node".to_owned()))?;
    let facts = PluginFacts {
        id: row.id.clone(),
        name: row.name.as_str().into(),
        instance_name: row.instance_name.as_deref().map(Into::into),
        service: row.service.clone(),
        route: row.route.clone(),
        consumer: row.consumer.clone(),
        node: node.clone(),
    };
    let plugin = host.build(&row.name, &row.config, &facts).map_err(|error| problem(error.to_string()))?;
    let (phases, needs) = (plugin.phases(), plugin.needs());
    Ok(Arc::new(Configured { facts, config: row.config, priority, phases, needs, plugin }))
}

/// The cells of each name, names in the order they run: priority descending, then name descending.
fn sort_names(rows: &HashMap<Arc<str>, Arc<Configured>>) -> Vec<Cells> {
    let mut names: HashMap<(Reverse<i64>, Reverse<Arc<str>>), Cells> = HashMap::new();
    for row in rows.values() {
        let cells = names.entry((Reverse(row.priority), Reverse(row.facts.name.clone()))).or_default();
        let cell = cells.entry((row.facts.route.clone(), row.facts.service.clone())).or_default();
        match &row.facts.consumer {
            // Nobody else holds the map yet.
            Some(consumer) => _ = Arc::make_mut(&mut cell.consumers).insert(consumer.clone(), row.clone()),
            None => cell.plain = Some(row.clone()),
        }
    }
    let mut sorted: Vec<_> = names.into_iter().collect();
    sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
    sorted.into_iter().map(|(_, cells)| cells).collect()
}

fn chain(names: &[Cells], route: Option<&Arc<str>>, service: Option<&Arc<str>>) -> Chain {
    Chain::new(names.iter().filter_map(|cells| Choice::of(cells, route, service)).collect())
}

#[cfg(test)]
mod tests;

//! All chains of a snapshot, and how they change with rows and routes.

use super::cells::{ById, Cells};
use super::{Chain, ChainProblem, Choice, Configured};
use crate::{Node, PluginFacts, PluginHost};
use arc_swap::ArcSwapOption;
use gwctl_entities::view;
use imbl::{OrdMap, OrdSet};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Names in the order they run: priority descending, then name descending.
type Name = (Reverse<i64>, Reverse<Arc<str>>);

/// What rows are bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Bound {
    /// A route, perhaps with a service or a consumer.
    Route,
    /// A service without route.
    Service,
}

/// All chains of a snapshot. A copy costs nothing and shares everything with the original.
#[derive(Clone, Default)]
pub struct Chains {
    pub(super) rows: OrdMap<Arc<str>, Arc<Configured>>,
    names: OrdMap<Name, Cells>,
    /// What has rows of its own: kind, its id, id of the row.
    bound: OrdSet<(Bound, Arc<str>, Arc<str>)>,
    global: Arc<Chain>,
    by_service: ById<Made>,
    by_route: ById<OfRoute>,
    /// Services and their routes with a chain.
    routes: OrdSet<(Arc<str>, Arc<str>)>,
}

/// The chain of a route with rows of its own.
#[derive(Clone)]
struct OfRoute {
    made: Made,
    service: Option<Arc<str>>,
}

/// A chain that is made when it is first asked for, and once more when rows of the node have changed since: then all
/// chains are out of date at once, and most of them may not be asked for soon.
#[derive(Clone, Default)]
struct Made(Arc<ArcSwapOption<MadeWith>>);

struct MadeWith {
    /// The node's chain at the time.
    global: Arc<Chain>,
    chain: Arc<Chain>,
}

impl Made {
    fn get(&self, chains: &Chains, route: Option<&Arc<str>>, service: Option<&Arc<str>>) -> Arc<Chain> {
        let known = self.0.load();
        if let Some(known) = known.as_ref().filter(|known| Arc::ptr_eq(&known.global, &chains.global)) {
            return known.chain.clone();
        }
        let chain = Arc::new(chains.chain(route, service));
        // A request that still uses older chains may put theirs back: then it is made once more.
        self.0.store(Some(Arc::new(MadeWith { global: chains.global.clone(), chain: chain.clone() })));
        chain
    }
}

/// What chains are built with.
#[derive(Clone, Copy)]
pub struct Builder<'a> {
    /// What builds plugins, asked in order.
    pub hosts: &'a [Arc<dyn PluginHost>],
    /// What plugins share between requests.
    pub node: &'a Arc<Node>,
    /// The service of a route; None when there is no such route, `Some(None)` when it has no service.
    pub service_of: &'a dyn Fn(&str) -> Option<Option<Arc<str>>>,
}

/// Whose chains a change of rows reaches.
#[derive(Default)]
struct Reached {
    all: bool,
    services: BTreeSet<Arc<str>>,
    routes: BTreeSet<Arc<str>>,
}

impl Reached {
    fn add(&mut self, row: &Configured) {
        match (&row.facts.route, &row.facts.service) {
            (Some(route), _) => _ = self.routes.insert(route.clone()),
            (None, Some(service)) => _ = self.services.insert(service.clone()),
            (None, None) => self.all = true,
        }
    }
}

impl Chains {
    /// The chains after some changes: `rows` by id with what they are now (None: gone), and ids of `routes` that are
    /// new, gone, or lead to another service. Costs the rows and the routes with rows of their own that lead to a reached
    /// service. Plugin objects of rows that say the same are kept.
    ///
    /// # Errors
    /// All rows that cannot be run.
    pub fn change(
        &self,
        rows: impl IntoIterator<Item = (Arc<str>, Option<Arc<view::Plugin>>)>,
        routes: impl IntoIterator<Item = Arc<str>>,
        builder: &Builder<'_>,
    ) -> Result<Chains, Vec<ChainProblem>> {
        let mut chains = self.clone();
        let mut reached = Reached { routes: routes.into_iter().collect(), ..Reached::default() };
        // All old rows go first: the place of one may pass to another.
        let take = |(id, new): (Arc<str>, Option<Arc<view::Plugin>>)| (chains.take(&id, &mut reached), new);
        let rows: Vec<_> = rows.into_iter().map(take).collect();
        let mut problems = Vec::new();
        for (old, new) in rows {
            let Some(new) = new.filter(|new| new.enabled) else { continue };
            match old.filter(|old| old.is(&new)).map_or_else(|| configure(&new, builder), Ok) {
                Ok(row) => chains.put(row, &mut reached),
                Err(problem) => problems.push(problem),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        chains.renew(reached, builder);
        Ok(chains)
    }

    fn take(&mut self, id: &str, reached: &mut Reached) -> Option<Arc<Configured>> {
        let row = self.rows.remove(id)?;
        let name = name_of(&row);
        if let Some(cells) = self.names.get_mut(&name) {
            cells.remove(&row);
            if cells.is_empty() {
                self.names.remove(&name);
            }
        }
        bound_to(&row).map(|bound| self.bound.remove(&bound));
        reached.add(&row);
        Some(row)
    }

    fn put(&mut self, row: Arc<Configured>, reached: &mut Reached) {
        self.names.entry(name_of(&row)).or_default().insert(&row);
        bound_to(&row).map(|bound| self.bound.insert(bound));
        reached.add(&row);
        self.rows.insert(row.facts.id.clone(), row);
    }

    fn renew(&mut self, mut reached: Reached, builder: &Builder<'_>) {
        if reached.all {
            self.global = Arc::new(self.chain(None, None));
        }
        for service in &reached.services {
            if self.has_rows(Bound::Service, service) {
                self.by_service.insert(service.clone(), Made::default());
            } else {
                self.by_service.remove(service);
            }
            let from = (service.clone(), Arc::from(""));
            let routes = self.routes.range(from..).take_while(|(of, _)| of == service);
            reached.routes.extend(routes.map(|(_, route)| route.clone()));
        }
        if self.bound.is_empty() && self.by_route.is_empty() {
            return;
        }
        for route in reached.routes {
            let old = self.by_route.remove(&route).and_then(|old| old.service);
            old.map(|service| self.routes.remove(&(service, route.clone())));
            if !self.has_rows(Bound::Route, &route) {
                continue;
            }
            let Some(service) = (builder.service_of)(&route) else { continue };
            service.iter().for_each(|service| _ = self.routes.insert((service.clone(), route.clone())));
            self.by_route.insert(route, OfRoute { made: Made::default(), service });
        }
    }

    fn has_rows(&self, bound: Bound, id: &Arc<str>) -> bool {
        let from = (bound, id.clone(), Arc::from(""));
        self.bound.range(from..).next().is_some_and(|(kind, of, _)| *kind == bound && of == id)
    }

    fn chain(&self, route: Option<&Arc<str>>, service: Option<&Arc<str>>) -> Chain {
        Chain::new(self.names.values().filter_map(|cells| Choice::of(cells, route, service)).collect())
    }

    /// Chain of requests without a route; its rows without consumer are those of rewrite.
    pub fn global(&self) -> &Arc<Chain> {
        &self.global
    }

    /// Chain of a route and its service.
    pub fn of_route(&self, route: &str, service: Option<&str>) -> Arc<Chain> {
        if let Some((route, of_route)) = self.by_route.get_key_value(route) {
            return of_route.made.get(self, Some(route), of_route.service.as_ref());
        }
        match service.and_then(|service| self.by_service.get_key_value(service)) {
            Some((service, made)) => made.get(self, None, Some(service)),
            None => self.global.clone(),
        }
    }

    /// All rows, in no order.
    pub fn rows(&self) -> impl Iterator<Item = &Arc<Configured>> {
        self.rows.values()
    }
}

fn name_of(row: &Configured) -> Name {
    (Reverse(row.priority), Reverse(row.facts.name.clone()))
}

fn bound_to(row: &Configured) -> Option<(Bound, Arc<str>, Arc<str>)> {
    let (bound, id) = match (&row.facts.route, &row.facts.service) {
        (Some(route), _) => (Bound::Route, route),
        (None, Some(service)) => (Bound::Service, service),
        (None, None) => return None,
    };
    Some((bound, id.clone(), row.facts.id.clone()))
}

fn configure(row: &Arc<view::Plugin>, builder: &Builder<'_>) -> Result<Arc<Configured>, ChainProblem> {
    let problem = |reason: String| ChainProblem { name: row.name.clone(), id: row.id.to_string(), reason };
    let host = builder.hosts.iter().find_map(|host| Some((host, host.priority(&row.name)?)));
    let (host, priority) = host.ok_or_else(|| problem("the plugin is not installed on this node".to_owned()))?;
    let facts = PluginFacts {
        id: row.id.clone(),
        name: row.name.as_str().into(),
        instance_name: row.instance_name.as_deref().map(Into::into),
        service: row.service.clone(),
        route: row.route.clone(),
        consumer: row.consumer.clone(),
        node: builder.node.clone(),
    };
    let plugin = host.build(&row.name, &row.config, &facts).map_err(|error| problem(error.to_string()))?;
    let (phases, needs) = (plugin.phases(), plugin.needs());
    Ok(Arc::new(Configured { facts, row: row.clone(), priority, phases, needs, plugin }))
}

//! The balancers of a snapshot by upstream name.

use crate::balancer::Balancer;
use crate::keyed::Keyed;
use crate::tables::{Change, Link, Tables, changes};
use gwctl_entities::view::{Target, Upstream};
use std::collections::BTreeMap;
use std::sync::Arc;

/// See the module. A copy costs nothing, a change costs the balancers it makes anew.
#[derive(Clone, Default)]
pub(crate) struct Balancers {
    by_name: Keyed<Arc<Balancer>>,
    /// Those that are probed, by upstream id.
    probed: Keyed<Arc<Balancer>>,
    /// Those with targets that are host names, by upstream id.
    named: Keyed<Arc<Balancer>>,
    /// How many hash groups of the route's path.
    hash_captures: usize,
}

impl Balancers {
    /// The balancer of an upstream name.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Balancer>> {
        self.by_name.get(name)
    }

    /// All balancers, by upstream name.
    pub(crate) fn all(&self) -> &Keyed<Arc<Balancer>> {
        &self.by_name
    }

    /// The balancers whose targets are probed, by upstream id.
    pub(crate) fn probed(&self) -> &Keyed<Arc<Balancer>> {
        &self.probed
    }

    /// The balancers with targets that are host names, by upstream id.
    pub(crate) fn named(&self) -> &Keyed<Arc<Balancer>> {
        &self.named
    }

    /// Whether some balancer hashes groups of the route's path.
    pub(crate) fn hash_captures(&self) -> bool {
        self.hash_captures > 0
    }

    /// The balancers after a change of the tables. Those whose rows stayed the same are taken over, the others follow
    /// on what they were before ([`Balancer::new`]).
    pub(crate) fn changed(&self, old: &Tables, new: &Tables) -> Balancers {
        let mut balancers = self.clone();
        let mut before = BTreeMap::new();
        let upstreams = changes::<Upstream>(old, new).into_iter().map(|change| change.id);
        let ends = |change: Change<Target>| [change.old, change.new].into_iter().flatten();
        let targets = changes::<Target>(old, new).into_iter().flat_map(ends);
        // All old names go first: a name may pass from one upstream to another.
        for id in upstreams.chain(targets.filter_map(|target| target.upstream.clone())) {
            let row = old.upstreams.get(&id);
            let taken = row.and_then(|row| balancers.take(&row.name));
            before
                .entry(id)
                .and_modify(|known: &mut Option<_>| *known = known.take().or(taken.clone()))
                .or_insert(taken);
        }
        for (id, before) in before {
            let Some(row) = new.upstreams.get(&id) else { continue };
            let targets = new.linked(Link::TargetOfUpstream, &id).filter_map(|id| new.targets.get(id).cloned());
            let balancer = Balancer::new(row.clone(), targets.collect(), before.as_deref());
            balancers.put(&row.name, balancer);
        }
        balancers
    }

    fn take(&mut self, name: &str) -> Option<Arc<Balancer>> {
        let taken = self.by_name.remove(name)?;
        self.probed.remove(&taken.upstream.id);
        self.named.remove(&taken.upstream.id);
        self.hash_captures -= usize::from(taken.needs_captures());
        Some(taken)
    }

    fn put(&mut self, name: &str, balancer: Balancer) {
        self.take(name);
        let balancer = Arc::new(balancer);
        self.hash_captures += usize::from(balancer.needs_captures());
        if balancer.checks.probe() {
            self.probed.insert(balancer.upstream.id.clone(), balancer.clone());
        }
        if balancer.names().next().is_some() {
            self.named.insert(balancer.upstream.id.clone(), balancer.clone());
        }
        self.by_name.insert(name.into(), balancer);
    }
}

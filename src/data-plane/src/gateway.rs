//! The serving part of a node: configuration to snapshot to workers.

use gwctl_entities::Record;
use gwctl_proxy::{Problem, Snapshot, SnapshotHandle, SnapshotOptions, Tables, UpstreamTls};
use gwctl_store::Delta;
use std::borrow::Borrow;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Holds the snapshot in force and builds the next one beside it. Workers see a new snapshot at their next request;
/// requests in flight keep the one they began with.
pub struct Gateway {
    handle: SnapshotHandle,
    /// Held for writing while a snapshot with other settings is put in force.
    options: RwLock<SnapshotOptions>,
}

/// A snapshot that is built but not yet in force.
pub struct Prepared {
    snapshot: Snapshot,
    /// How long building it took.
    pub took: Duration,
}

impl Gateway {
    /// A gateway that answers every request with "no route".
    pub fn new(options: SnapshotOptions) -> Self {
        let handle = SnapshotHandle::new(Snapshot::empty(options.node.clone()));
        Self { handle, options: RwLock::new(options) }
    }

    /// The pointer the workers read.
    pub fn handle(&self) -> &SnapshotHandle {
        &self.handle
    }

    /// Builds a snapshot from whole tables, without putting it in force.
    ///
    /// # Errors
    /// Everything that cannot be served, in words.
    pub fn prepare<R>(&self, rows: impl FnMut(&str) -> R) -> Result<Prepared, String>
    where
        R: IntoIterator<Item: Borrow<Record>>,
    {
        let began = Instant::now();
        let tables = Tables::read(rows).map_err(|problems| in_words(&problems))?;
        self.build(&self.handle.load(), &tables, began)
    }

    /// Builds a snapshot from rows as they are stored: `scan` visits them with the name of their entity, as JSON. Gives
    /// what it gave as well.
    ///
    /// # Errors
    /// The fault of `scan`; inside, everything that cannot be served, in words.
    pub fn prepare_stored<T, E>(
        &self,
        scan: impl FnOnce(&mut dyn FnMut(&str, &[u8])) -> Result<T, E>,
    ) -> Result<(T, Result<Prepared, String>), E> {
        let began = Instant::now();
        let (mut tables, mut problems) = (Tables::default(), Vec::new());
        let scanned = scan(&mut |entity, row| problems.extend(tables.put_json(entity, row).err()))?;
        if !problems.is_empty() {
            return Ok((scanned, Err(in_words(&problems))));
        }
        Ok((scanned, self.build(&self.handle.load(), &tables, began)))
    }

    /// Builds a snapshot from the tables in force and what changed since.
    ///
    /// # Errors
    /// Everything that cannot be served, in words.
    pub fn prepare_changes<'a>(&self, deltas: impl IntoIterator<Item = &'a Delta>) -> Result<Prepared, String> {
        let began = Instant::now();
        let in_force = self.handle.load();
        let mut tables = in_force.tables().clone();
        let mut problems = Vec::new();
        for delta in deltas.into_iter().filter(|delta| Tables::ENTITIES.contains(&delta.entity.as_str())) {
            match &delta.new {
                Some(record) => problems.extend(tables.put(&delta.entity, record).err()),
                None => _ = tables.remove(&delta.entity, &delta.id),
            }
        }
        if !problems.is_empty() {
            return Err(in_words(&problems));
        }
        self.build(&in_force, &tables, began)
    }

    fn build(&self, in_force: &Snapshot, tables: &Tables, began: Instant) -> Result<Prepared, String> {
        let options = self.options.read().unwrap_or_else(PoisonError::into_inner);
        let snapshot = Snapshot::build(tables, &options, Some(in_force));
        let snapshot = snapshot.map_err(|problems| in_words(&problems))?;
        Ok(Prepared { snapshot, took: began.elapsed() })
    }

    /// Puts a snapshot in force: from now on every new request uses it.
    pub fn install(&self, Prepared { snapshot, .. }: Prepared) {
        let options = self.options.read().unwrap_or_else(PoisonError::into_inner);
        let outdated = !Arc::ptr_eq(snapshot.upstream_tls(), &options.upstream_tls);
        self.handle.swap(Arc::new(if outdated { renewed(snapshot, &options) } else { snapshot }));
    }

    /// Puts in force what the node says of TLS towards upstreams: connections to come are made by it.
    pub fn renew_upstream_tls(&self, tls: UpstreamTls) {
        let mut options = self.options.write().unwrap_or_else(PoisonError::into_inner);
        if *options.upstream_tls == tls {
            return;
        }
        options.upstream_tls = Arc::new(tls);
        let in_force = self.handle.load();
        if let Some(snapshot) = again(&in_force, &options) {
            self.handle.swap(Arc::new(snapshot));
        }
    }
}

/// The same configuration with other settings; the one before where that fails.
fn renewed(snapshot: Snapshot, options: &SnapshotOptions) -> Snapshot {
    again(&snapshot, options).unwrap_or(snapshot)
}

/// None for what could not be built before either: it is logged.
fn again(snapshot: &Snapshot, options: &SnapshotOptions) -> Option<Snapshot> {
    let built = Snapshot::build(snapshot.tables(), options, Some(snapshot));
    let log = |problems: &Vec<Problem>| {
        tracing::error!(error = in_words(problems), "connections to upstreams keep the settings of tls they had");
    };
    built.inspect_err(log).ok()
}

/// The first problems, and how many there are.
fn in_words(problems: &[Problem]) -> String {
    const SHOWN: usize = 5;
    let mut words: Vec<String> = problems.iter().take(SHOWN).map(ToString::to_string).collect();
    if problems.len() > SHOWN {
        words.push(format!("and {} more", problems.len() - SHOWN));
    }
    words.join("; ")
}

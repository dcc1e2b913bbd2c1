//! From rows of our own sync to the configuration in force: verify, build, store, swap. What the rows lead to is known by
//! its digest, so rules between rows need no check here: the control plane's store has kept them.

use crate::apply::Configured;
use gwctl_entities::Registry;
use gwctl_proxy::Tables;
use gwctl_store::{Applied, Delta, Position, StoreError, SystemFill};
use gwctl_wire::ConfigHash;
use gwctl_wire::stream::dp::{Outcome, Work};
use gwctl_wire::stream::message::Changes;
use gwctl_wire::stream::{Held, Row};
use std::time::Duration;
use tokio::time::Instant;

impl Configured {
    /// Which version of which store is in force; None when none, or something of another protocol.
    pub(crate) fn held(&self) -> Option<Held> {
        let in_force = self.hash()?;
        let stand = self.cache.stand().unwrap_or_else(|error| {
            tracing::error!(%error, "cannot read which configuration is cached; everything is asked for");
            None
        })?;
        let digest = stand.digest.to_string();
        // What is cached but could not be served is not in force.
        (in_force.as_str() == digest).then_some(Held { store_id: stand.store, version: stand.version, digest })
    }

    /// Does what the control plane's rows ask for. Blocks. Moments are counted from `start`.
    pub(crate) fn work(&self, work: Work, start: Instant) -> Outcome {
        let _turn = self.turn();
        let done = match work {
            Work::Change(changes) => self.change_to(changes, start),
            Work::Adopt { held } => self.adopt(held, start),
            Work::Begin => self.cache.begin_incoming().map(|()| Outcome::Taken).map_err(failed),
            Work::Rows(rows) => self.add_rows(rows),
            Work::Finish { held } => self.finish(held, start),
        };
        done.unwrap_or_else(|outcome| outcome)
    }

    fn change_to(&self, changes: Changes, start: Instant) -> Result<Outcome, Outcome> {
        let held = self.held().filter(|held| held.version == changes.from);
        let Some(held) = held else { return Err(Outcome::Diverged { found: "of no version".to_owned() }) };
        let position = position(changes.to, &changes.digest)?;
        let deltas = self.verified(changes.rows)?;
        let prepared = self.gateway.prepare_changes(&deltas).map_err(refused)?;
        stored(self.cache.change(&held.store_id, position, &deltas))?;
        let stored = start.elapsed();
        self.gateway.install(prepared);
        self.set_hash(ConfigHash::from(changes.digest.as_str()));
        let held = Held { version: changes.to, digest: changes.digest, ..held };
        Ok(Outcome::Applied { held, stored, active: start.elapsed() })
    }

    fn adopt(&self, held: Held, start: Instant) -> Result<Outcome, Outcome> {
        stored(self.cache.adopt(&held.store_id, position(held.version, &held.digest)?))?;
        let now = start.elapsed();
        Ok(Outcome::Applied { held, stored: now, active: now })
    }

    fn add_rows(&self, rows: Vec<Row>) -> Result<Outcome, Outcome> {
        let added = self.verified(rows).and_then(|rows| self.cache.add_incoming(&rows).map_err(failed));
        if let Err(outcome) = added {
            self.discard_incoming();
            return Err(outcome);
        }
        Ok(Outcome::Taken)
    }

    fn finish(&self, held: Held, start: Instant) -> Result<Outcome, Outcome> {
        let finished = self.put_in_force(&held, start);
        if finished.is_err() {
            self.discard_incoming();
        }
        let (stored, active) = finished?;
        Ok(Outcome::Applied { held, stored, active })
    }

    fn put_in_force(&self, held: &Held, start: Instant) -> Result<(Duration, Duration), Outcome> {
        let position = position(held.version, &held.digest)?;
        // The rows go into the snapshot one by one; they never are in memory all at once.
        let scanned = self.gateway.prepare_stored(|visit| self.cache.scan_incoming(&Tables::ENTITIES, visit));
        let ((), prepared) = scanned.map_err(failed)?;
        let prepared = prepared.map_err(refused)?;
        stored(self.cache.finish_incoming(&held.store_id, position))?;
        let stored = start.elapsed();
        self.gateway.install(prepared);
        self.set_hash(ConfigHash::from(held.digest.as_str()));
        Ok((stored, start.elapsed()))
    }

    fn discard_incoming(&self) {
        if let Err(error) = self.cache.discard_incoming() {
            tracing::warn!(%error, "cannot give the space of an incoming configuration back");
        }
    }

    /// The rows as the cache takes them, each verified by its schema.
    fn verified(&self, rows: Vec<Row>) -> Result<Vec<Delta>, Outcome> {
        let verify = |row: Row| match fault(&self.registry, &row) {
            None => Ok(Delta { version: 0, entity: row.entity, id: row.id, old: None, new: row.new }),
            Some(fault) => Err(Outcome::Refused { row: Some((row.entity, row.id)), fault }),
        };
        rows.into_iter().map(verify).collect()
    }
}

/// What is wrong with a row.
fn fault(registry: &Registry, row: &Row) -> Option<String> {
    let Some(schema) = registry.entity(&row.entity) else { return Some("no entity this node knows".to_owned()) };
    let record = row.new.as_ref()?;
    if schema.id_of(record).as_deref() != Some(row.id.as_str()) {
        return Some("the row has another primary key".to_owned());
    }
    // Only whether it could be read is of interest: it is kept as it came, so that both ends have the same.
    let read = registry.import_row(&row.entity, registry.export_row(&row.entity, record), &mut SystemFill);
    read.err().map(|error| match error {
        gwctl_entities::EntityError::SchemaViolation { fields } => gwctl_entities::Value::Object(fields).to_string(),
        other => other.to_string(),
    })
}

fn position(version: u64, digest: &str) -> Result<Position, Outcome> {
    let digest = digest.parse().map_err(|error| refused(format!("version {version}: {error}")))?;
    Ok(Position { version, digest })
}

fn stored(outcome: Result<Applied, StoreError>) -> Result<(), Outcome> {
    match outcome {
        Ok(Applied::Stored(_)) => Ok(()),
        Ok(Applied::Diverged(found)) => Err(Outcome::Diverged { found: found.to_string() }),
        Err(error) => Err(failed(error)),
    }
}

fn refused(fault: String) -> Outcome {
    Outcome::Refused { row: None, fault }
}

fn failed(error: StoreError) -> Outcome {
    crate::apply::not_stored(&error, refused, |fault| Outcome::NotStored { fault })
}

#[cfg(test)]
mod tests;

//! Where the cached configuration stands, and a whole new one that comes in pieces beside it.
//!
//! Records and indexes exist twice in the folder: the set in force and a spare one. A configuration that comes in
//! pieces fills the spare set, each piece in a transaction of its own; the last transaction makes the sets change
//! places. So a node that dies at any moment finds either the old configuration or the whole new one, and neither end
//! ever holds the whole in memory.

use super::{DataPlaneCache, HASH};
use crate::checksum::Checksum;
use crate::contract::{Delta, Position};
use crate::digest::{self, Digest};
use crate::fault::{Fault, StoreError};
use crate::lmdb::millis;
use crate::reading::{View, schema_of};
use crate::tables::{Tables, decode, encode};
use gwctl_entities::Record;
use heed::{RoTxn, RwTxn};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Setting that says which set is in force: absent for the first, `second`.
pub(super) const IN_FORCE: &str = "set in force";
const SECOND: &str = "second";
/// Setting with the [`Stand`].
pub(super) const STAND: &str = "stand";
/// Settings with the digest and the checksum of what the spare set holds so far.
const INCOMING: &str = "incoming digest";
const INCOMING_SUM: &str = "incoming checksum";

/// Which version of which store a cache holds, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stand {
    /// The control plane's store ([`crate::Store::id`]).
    pub store: String,
    /// Its version.
    pub version: u64,
    /// Digest of the rows.
    pub digest: Digest,
    /// When it was written, Unix milliseconds of this node's clock.
    pub applied_millis: u64,
}

/// What came of changes that were to lead to a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// They are on disk; how long that took.
    Stored(Duration),
    /// They lead to this digest instead; nothing was changed.
    Diverged(Digest),
}

impl DataPlaneCache {
    /// What the cache holds; None when nothing, or something that came without a version of a store.
    pub fn stand(&self) -> Result<Option<Stand>, StoreError> {
        self.reading(stand)
    }

    /// Brings in changes that lead to `position` of this store, in one transaction; of each delta only entity, id and
    /// the new record count. Changes that lead elsewhere are not kept.
    pub fn change(&self, store: &str, position: Position, deltas: &[Delta]) -> Result<Applied, StoreError> {
        let mut found = Digest::default();
        let stored = self.transaction_if(|tables, txn, sum| {
            let mut digest = stand(tables, txn)?.map(|stand| stand.digest).unwrap_or_default();
            self.put_rows(tables, txn, deltas, &mut digest, sum)?;
            found = digest;
            self.set_stand(tables, txn, store, position)?;
            Ok(digest == position.digest)
        })?;
        Ok(stored.map_or(Applied::Diverged(found), Applied::Stored))
    }

    /// What is held is what this store has as `position`: only the name changes.
    pub fn adopt(&self, store: &str, position: Position) -> Result<Applied, StoreError> {
        self.change(store, position, &[])
    }

    /// Begins a configuration that comes in pieces; what there was of an earlier one goes.
    pub fn begin_incoming(&self) -> Result<(), StoreError> {
        self.spare_transaction(|tables, txn| {
            tables.clear_records(txn)?;
            tables.set_setting(txn, INCOMING_SUM, None)?;
            tables.set_setting(txn, INCOMING, Some(&Digest::default().to_string()))
        })
    }

    /// Adds rows to it, or takes out those without a new record. The same row may come again; the last one counts.
    pub fn add_incoming(&self, rows: &[Delta]) -> Result<(), StoreError> {
        self.spare_transaction(|tables, txn| {
            let (mut digest, mut sum) = (incoming(tables, txn)?, incoming_sum(tables, txn)?);
            for row in rows {
                let schema = schema_of(&self.registry, &row.entity)?;
                let old = tables.record(txn, &row.entity, &row.id)?;
                tables.put_alone(txn, schema, &row.id, (old.as_ref(), row.new.as_ref()), &mut sum)?;
                self.count(&mut digest, row, old.as_ref());
            }
            tables.set_setting(txn, INCOMING_SUM, Some(&sum.to_string()))?;
            tables.set_setting(txn, INCOMING, Some(&digest.to_string()))
        })
    }

    /// Digest of what has come in so far.
    pub fn incoming_digest(&self) -> Result<Digest, StoreError> {
        self.reading(incoming)
    }

    /// Visits the rows of some entities among what has come in, as [`DataPlaneCache::scan`] does those in force.
    pub fn scan_incoming(&self, entities: &[&str], visit: &mut dyn FnMut(&str, &[u8])) -> Result<(), StoreError> {
        let reading = self.environment.reading()?;
        let now = millis(self.clock.as_ref());
        let scanned = self.spare(&reading.txn).and_then(|tables| {
            let view = View { txn: &reading.txn, tables, registry: &self.registry, now };
            entities.iter().try_for_each(|entity| view.each(entity, &mut |bytes| visit(entity, bytes)))
        });
        scanned.map_err(|fault| fault.at(&self.environment.folder))
    }

    /// Puts what has come in in the place of what was there, if it has this digest.
    pub fn finish_incoming(&self, store: &str, position: Position) -> Result<Applied, StoreError> {
        let mut found = Digest::default();
        let stored = self.transaction_if(|old, txn, sum| {
            found = incoming(old, txn)?;
            if found != position.digest {
                return Ok(false);
            }
            *sum = incoming_sum(old, txn)?;
            let second = old.setting(txn, IN_FORCE)?.is_none();
            old.clear_records(txn)?;
            old.set_setting(txn, IN_FORCE, second.then_some(SECOND))?;
            old.set_setting(txn, INCOMING, None)?;
            old.set_setting(txn, INCOMING_SUM, None)?;
            self.set_stand(old, txn, store, position)?;
            Ok(true)
        })?;
        Ok(stored.map_or(Applied::Diverged(found), Applied::Stored))
    }

    /// Gives the space of a configuration back that will not come to its end.
    pub fn discard_incoming(&self) -> Result<(), StoreError> {
        self.spare_transaction(|tables, txn| {
            tables.clear_records(txn)?;
            tables.set_setting(txn, INCOMING_SUM, None)?;
            tables.set_setting(txn, INCOMING, None)
        })
    }

    /// The set in force.
    pub(super) fn in_force(&self, txn: &RoTxn<'_>) -> Result<&Tables, Fault> {
        let first = &self.environment.tables;
        Ok(if first.setting(txn, IN_FORCE)?.is_none() { first } else { &self.second })
    }

    fn spare(&self, txn: &RoTxn<'_>) -> Result<&Tables, Fault> {
        let first = &self.environment.tables;
        Ok(if first.setting(txn, IN_FORCE)?.is_none() { &self.second } else { first })
    }

    fn spare_transaction(&self, work: impl Fn(&Tables, &mut RwTxn<'_>) -> Result<(), Fault>) -> Result<(), StoreError> {
        self.transaction(|_, txn, _| work(self.spare(txn)?, txn)).map(drop)
    }

    /// All removals first: a value may move from one record to another.
    pub(super) fn put_rows(
        &self,
        tables: &Tables,
        txn: &mut RwTxn<'_>,
        deltas: &[Delta],
        digest: &mut Digest,
        sum: &mut Checksum,
    ) -> Result<(), Fault> {
        for delta in deltas {
            let schema = schema_of(&self.registry, &delta.entity)?;
            if let Some(old) = tables.record(txn, &delta.entity, &delta.id)? {
                tables.put(txn, schema, &delta.id, (Some(&old), None), Some(sum))?;
                if digest::counts(&self.registry, &delta.entity) {
                    digest.remove(&delta.entity, &delta.id, &old);
                }
            }
        }
        for delta in deltas {
            let Some(new) = &delta.new else { continue };
            let schema = schema_of(&self.registry, &delta.entity)?;
            tables.put(txn, schema, &delta.id, (None, Some(new)), Some(sum))?;
            self.count(digest, delta, None);
        }
        Ok(())
    }

    fn count(&self, digest: &mut Digest, delta: &Delta, old: Option<&Record>) {
        if digest::counts(&self.registry, &delta.entity) {
            digest.change(&delta.entity, &delta.id, old, delta.new.as_ref());
        }
    }

    fn set_stand(&self, tables: &Tables, txn: &mut RwTxn<'_>, store: &str, position: Position) -> Result<(), Fault> {
        let Position { version, digest } = position;
        let applied_millis = millis(self.clock.as_ref());
        let stand = encode(&Stand { store: store.to_owned(), version, digest, applied_millis })?;
        tables.set_setting(txn, STAND, Some(&String::from_utf8_lossy(&stand)))?;
        tables.set_setting(txn, HASH, Some(&digest.to_string()))
    }
}

/// Forgets the stand, when something is written that has none.
pub(super) fn forget(tables: &Tables, txn: &mut RwTxn<'_>) -> Result<(), Fault> {
    tables.set_setting(txn, STAND, None)
}

pub(super) fn stand(tables: &Tables, txn: &RoTxn<'_>) -> Result<Option<Stand>, Fault> {
    tables.setting(txn, STAND)?.map(|text| decode("stand of the cache", text.as_bytes())).transpose()
}

/// Checksum of what has come in so far.
fn incoming_sum(tables: &Tables, txn: &RoTxn<'_>) -> Result<Checksum, Fault> {
    let Some(text) = tables.setting(txn, INCOMING_SUM)? else { return Ok(Checksum::default()) };
    text.parse().map_err(|_| Fault::Damaged("checksum of the incoming configuration is none".to_owned()))
}

fn incoming(tables: &Tables, txn: &RoTxn<'_>) -> Result<Digest, Fault> {
    let text = tables.setting(txn, INCOMING)?;
    let text = text.ok_or_else(|| Fault::Damaged("no configuration is coming in".to_owned()))?;
    text.parse().map_err(|_| Fault::Damaged("digest of the incoming configuration is no digest".to_owned()))
}

#[cfg(test)]
mod tests;

//! The seal of a cache: what its entries come to and since when it holds them, written in the transaction of every
//! change whatever protocol brought it, and compared before any of it is served.
//!
//! The setting is one line: checksum of records and indexes, Unix milliseconds of the change, and a checksum of these
//! two with the settings that say which configuration it is. So a damaged name is noticed as a damaged row is.

use super::incoming::{IN_FORCE, STAND, stand};
use super::{DataPlaneCache, HASH, TAG, UNSEALED};
use crate::checksum::Checksum;
use crate::fault::{Fault, StoreError};
use crate::log;
use crate::tables::Tables;
use heed::{RoTxn, RwTxn};

/// Setting with the seal.
const SEAL: &str = "seal";
/// Settings that the seal covers.
const COVERED: [&str; 4] = [HASH, TAG, STAND, IN_FORCE];

/// A seal as read.
struct Seal<'s> {
    sum: Checksum,
    millis: u64,
    /// What it says of itself and the settings.
    own: &'s str,
}

fn parse(text: &str) -> Option<Seal<'_>> {
    let mut parts = text.split(' ');
    let (sum, millis, own) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Seal { sum: sum.parse().ok()?, millis: millis.parse().ok()?, own })
}

/// The checksum kept; that of nothing where there is none yet.
pub(super) fn checksum(tables: &Tables, txn: &RoTxn<'_>) -> Result<Checksum, Fault> {
    let text = tables.setting(txn, SEAL)?;
    // One that cannot be read now could at the start. What follows is noticed at the next.
    Ok(text.as_deref().and_then(parse).map(|seal| seal.sum).unwrap_or_default())
}

/// Seals what the tables hold now. A change that only fills the spare set leaves the seal, and with it the age, as it was.
pub(super) fn write(tables: &Tables, txn: &mut RwTxn<'_>, sum: Checksum, millis: u64) -> Result<(), Fault> {
    let before = tables.setting(txn, SEAL)?;
    if let Some(before) = before.as_deref().and_then(parse)
        && before.sum == sum
        && of_settings(tables, txn, sum, before.millis)? == before.own
    {
        return Ok(());
    }
    let own = of_settings(tables, txn, sum, millis)?;
    tables.set_setting(txn, SEAL, Some(&format!("{sum} {millis} {own}")))
}

fn of_settings(tables: &Tables, txn: &RoTxn<'_>, sum: Checksum, millis: u64) -> Result<String, Fault> {
    let mut own = Checksum::default();
    own.add(0, sum.to_string().as_bytes(), &millis.to_be_bytes());
    for (number, name) in (1..).zip(COVERED) {
        own.add(number, name.as_bytes(), tables.setting(txn, name)?.unwrap_or_default().as_bytes());
    }
    Ok(own.to_string())
}

impl DataPlaneCache {
    /// When the configuration held was written, Unix milliseconds of this node's clock; None when none is held.
    pub fn written_millis(&self) -> Result<Option<u64>, StoreError> {
        self.reading(|tables, txn| {
            let seal = tables.setting(txn, HASH)?.map(|_| tables.setting(txn, SEAL)).transpose()?.flatten();
            let sealed = seal.as_deref().and_then(parse).map(|seal| seal.millis);
            // Sealing what had no seal made it no younger.
            Ok(stand(tables, txn)?.map(|stand| stand.applied_millis).or(sealed))
        })
    }

    /// Reads everything and compares it with the seal; in words what does not fit, None: it holds what was written.
    ///
    /// # Errors
    /// When it cannot be read at all.
    pub fn damage(&self) -> Result<Option<String>, StoreError> {
        self.reading(|tables, txn| {
            let tag = tables.setting(txn, TAG)?;
            if tag.is_some_and(|tag| UNSEALED.contains(&tag.as_str())) {
                return self.damage_of_unsealed(tables, txn);
            }
            let Some(text) = tables.setting(txn, SEAL)? else { return Ok(Some("it has no checksum".to_owned())) };
            let Some(Seal { sum, millis, own }) = parse(&text) else {
                return Ok(Some("its checksum cannot be read".to_owned()));
            };
            if of_settings(tables, txn, sum, millis)? != own {
                return Ok(Some("hash, version and checksum do not belong together".to_owned()));
            }
            let found = tables.checksum(txn)?;
            Ok((found != sum).then(|| format!("its rows and indexes come to {found}, {sum} was written")))
        })
    }

    /// Of a cache without a seal only what came by our own sync has something to be compared with.
    fn damage_of_unsealed(&self, tables: &Tables, txn: &RoTxn<'_>) -> Result<Option<String>, Fault> {
        let Some(stand) = stand(tables, txn)? else { return Ok(None) };
        let found = log::digest_from_scratch(txn, tables, &self.registry)?;
        Ok((found != stand.digest).then(|| format!("its rows come to {found}, {} was written", stand.digest)))
    }

    /// Seals what was written by a program that seals nothing.
    pub(super) fn seal_unsealed(&self) -> Result<(), StoreError> {
        let tag = self.reading(|tables, txn| tables.setting(txn, TAG))?;
        if !tag.is_some_and(|tag| UNSEALED.contains(&tag.as_str())) {
            return Ok(());
        }
        let sealed = self.transaction(|tables, txn, sum| {
            *sum = tables.checksum(txn)?;
            tables.set_setting(txn, TAG, Some(Self::FORMAT))
        });
        sealed.map(drop)
    }
}

#[cfg(test)]
mod tests;

//! The change log and the version counter.

use crate::contract::{Change, Changes, Delta, HistoryEntry, Origin, Part, Position};
use crate::digest::{self, Digest};
use crate::fault::Fault;
use crate::keys;
use crate::tables::{Tables, decode, encode};
use gwctl_entities::{Record, Registry};
use heed::{RoTxn, RwTxn};
use serde::{Deserialize, Serialize};
use std::ops::Bound;

/// Key of the version counter in the meta table.
const VERSION: &[u8] = b"version";
/// Key of the digest in the meta table, and of the list of entities it was made of.
const DIGEST: &[u8] = b"digest";
const SCOPE: &[u8] = b"digest scope";
/// Versions one write forgets at most for there being too many.
const FORGOTTEN_AT_ONCE: u64 = 4;
/// Changes of forgotten versions that even the smallest write may sweep up.
const SWEPT_AT_LEAST: usize = 256;

/// Heading of a version as stored.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    time_millis: u64,
    origin: Origin,
    deltas: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<Digest>,
}

/// Newest version and digest.
pub(crate) fn position(txn: &RoTxn<'_>, tables: &Tables) -> Result<Position, Fault> {
    let digest = match tables.meta.get(txn, DIGEST)? {
        None => Digest::default(),
        Some(bytes) => Digest::from_bytes(bytes).ok_or_else(|| Fault::Damaged("digest has not 16 bytes".to_owned()))?,
    };
    Ok(Position { version: version(txn, tables)?, digest })
}

/// Digest after a version; None when the log does not say.
pub(crate) fn digest_at(txn: &RoTxn<'_>, tables: &Tables, version: u64) -> Result<Option<Digest>, Fault> {
    let position = position(txn, tables)?;
    if position.version == version {
        return Ok(Some(position.digest));
    }
    if version == 0 {
        return Ok(Some(Digest::default()));
    }
    let Some(head) = tables.heads.get(txn, &version.to_be_bytes())? else { return Ok(None) };
    Ok(decode::<Head>("heading of a version", head)?.digest)
}

/// The digest made from the records themselves.
pub(crate) fn digest_from_scratch(txn: &RoTxn<'_>, tables: &Tables, registry: &Registry) -> Result<Digest, Fault> {
    let mut digest = Digest::default();
    for schema in registry.entities().filter(|schema| schema.db_export) {
        for entry in tables.records.prefix_iter(txn, &crate::keys::prefix(&[&schema.name]))? {
            let record: Record = decode(&schema.name, entry?.1)?;
            let id = schema.id_of(&record).unwrap_or_default();
            digest.add(&schema.name, &id, &record);
        }
    }
    Ok(digest)
}

/// Whether the stored digest is there and made of the entities that this registry exports.
pub(crate) fn has_digest(txn: &RoTxn<'_>, tables: &Tables, registry: &Registry) -> Result<bool, Fault> {
    let there = tables.meta.get(txn, DIGEST)?.is_some();
    Ok(there && tables.meta.get(txn, SCOPE)? == Some(digest::scope(registry).as_bytes()))
}

/// Makes the digest anew: of a store from before there was one, or when other entities count than did.
pub(crate) fn make_digest(txn: &mut RwTxn<'_>, tables: &Tables, registry: &Registry) -> Result<(), Fault> {
    let digest = digest_from_scratch(txn, tables, registry)?;
    tables.meta.put(txn, DIGEST, &digest.to_bytes())?;
    Ok(tables.meta.put(txn, SCOPE, digest::scope(registry).as_bytes())?)
}

/// Number of the last committed version.
pub(crate) fn version(txn: &RoTxn<'_>, tables: &Tables) -> Result<u64, Fault> {
    match tables.meta.get(txn, VERSION)? {
        None => Ok(0),
        Some(bytes) => number(bytes),
    }
}

fn number(bytes: &[u8]) -> Result<u64, Fault> {
    let bytes = bytes.first_chunk().ok_or_else(|| Fault::Damaged("version number is cut short".into()))?;
    Ok(u64::from_be_bytes(*bytes))
}

/// A record that a batch changed. What it is now lies in the table of records.
pub(crate) struct Changed<'s> {
    pub(crate) entity: &'s str,
    pub(crate) id: Box<str>,
    /// The record before, as stored.
    pub(crate) old: Option<Box<[u8]>>,
    pub(crate) deleted: bool,
}

/// Writes the next version and the digest it leads to. Records are copied as they are stored, one at a time: a version
/// may be larger than anyone wants to hold.
pub(crate) fn append(
    txn: &mut RwTxn<'_>,
    tables: &Tables,
    registry: &Registry,
    version: u64,
    time_millis: u64,
    origin: &Origin,
    changes: &[Changed<'_>],
) -> Result<(), Fault> {
    let key = version.to_be_bytes();
    let mut digest = position(txn, tables)?.digest;
    let mut text = Vec::new();
    for (number, changed) in (0_u32..).zip(changes) {
        let Changed { entity, id, old, .. } = changed;
        let new = tables.records.get(txn, &keys::key(&[entity, id]))?;
        if digest::counts(registry, entity) {
            digest.change_stored(entity, id, old.as_deref(), new);
        }
        text.clear();
        write_delta(&mut text, version, changed, new)?;
        tables.deltas.put(txn, &delta_key(version, number), &text)?;
    }
    let head = Head { time_millis, origin: origin.clone(), deltas: changes.len(), digest: Some(digest) };
    tables.meta.put(txn, DIGEST, &digest.to_bytes())?;
    tables.heads.put(txn, &key, &encode(&head)?)?;
    Ok(tables.meta.put(txn, VERSION, &key)?)
}

/// A [`Delta`] as JSON, made of records that are JSON already.
fn write_delta(text: &mut Vec<u8>, version: u64, changed: &Changed<'_>, new: Option<&[u8]>) -> Result<(), Fault> {
    let head = [encode(&version)?, encode(&changed.entity)?, encode(&changed.id)?];
    let values = [&head[0], &head[1], &head[2], changed.old.as_deref().unwrap_or(b"null"), new.unwrap_or(b"null")];
    for (name, value) in [r#"{"version":"#, r#","entity":"#, r#","id":"#, r#","old":"#, r#","new":"#].iter().zip(values)
    {
        text.extend_from_slice(name.as_bytes());
        text.extend_from_slice(value);
    }
    text.push(b'}');
    Ok(())
}

/// The oldest version the changes since which are all there.
fn oldest(txn: &RoTxn<'_>, tables: &Tables) -> Result<u64, Fault> {
    match tables.heads.first(txn)? {
        Some((key, _)) => Ok(number(key)?.saturating_sub(1)),
        None => version(txn, tables),
    }
}

/// See [`crate::Store::changes_since`].
pub(crate) fn since(txn: &RoTxn<'_>, tables: &Tables, since: u64, limit: usize) -> Result<Changes, Fault> {
    let oldest = oldest(txn, tables)?;
    if since < oldest || since > version(txn, tables)? {
        return Ok(Changes::TooOld { oldest });
    }
    let after = since.to_be_bytes();
    let range = (Bound::Excluded(after.as_slice()), Bound::Unbounded);
    let mut changes = Vec::new();
    for entry in tables.heads.range(txn, &range)?.take(limit) {
        let (key, head) = entry?;
        changes.push(read(txn, tables, number(key)?, head)?);
    }
    Ok(Changes::Deltas(changes))
}

/// One version; None when the log does not hold it.
pub(crate) fn change(txn: &RoTxn<'_>, tables: &Tables, version: u64) -> Result<Option<Change>, Fault> {
    match tables.heads.get(txn, &version.to_be_bytes())? {
        Some(head) => read(txn, tables, version, head).map(Some),
        None => Ok(None),
    }
}

/// See [`crate::Store::part_of_change`].
pub(crate) fn part(
    txn: &RoTxn<'_>,
    tables: &Tables,
    version: u64,
    skip: usize,
    bytes: usize,
) -> Result<Option<Part>, Fault> {
    let Some(head) = tables.heads.get(txn, &version.to_be_bytes())? else { return Ok(None) };
    let Head { time_millis, origin, digest, deltas: total } = decode("heading of a version", head)?;
    let from = delta_key(version, u32::try_from(skip).unwrap_or(u32::MAX));
    let to = delta_key(version, u32::MAX);
    let (mut deltas, mut size) = (Vec::new(), 0);
    for entry in tables.deltas.range(txn, &(Bound::Included(from.as_slice()), Bound::Included(to.as_slice())))? {
        let text = entry?.1;
        size += text.len();
        deltas.push(decode("delta", text)?);
        if size > bytes {
            break;
        }
    }
    let last = skip.saturating_add(deltas.len()) >= total;
    Ok(Some(Part { change: Change { version, time_millis, origin, digest, deltas: deltas.into() }, total, last }))
}

fn delta_key(version: u64, number: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&version.to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn read(txn: &RoTxn<'_>, tables: &Tables, version: u64, head: &[u8]) -> Result<Change, Fault> {
    let head: Head = decode("heading of a version", head)?;
    let mut deltas: Vec<Delta> = Vec::with_capacity(head.deltas);
    for entry in tables.deltas.prefix_iter(txn, &version.to_be_bytes())? {
        deltas.push(decode("delta", entry?.1)?);
    }
    if deltas.len() != head.deltas {
        let (expected, found) = (head.deltas, deltas.len());
        return Err(Fault::Damaged(format!("version {version} has {found} deltas in place of {expected}")));
    }
    let (time_millis, origin, digest) = (head.time_millis, head.origin, head.digest);
    Ok(Change { version, time_millis, origin, digest, deltas: deltas.into() })
}

/// See [`crate::Store::history`].
pub(crate) fn history(
    txn: &RoTxn<'_>,
    tables: &Tables,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<HistoryEntry>, Fault> {
    let end = before.unwrap_or(u64::MAX).to_be_bytes();
    let range = (Bound::Unbounded, Bound::Excluded(end.as_slice()));
    let mut entries = Vec::new();
    for entry in tables.heads.rev_range(txn, &range)?.take(limit) {
        let (key, head) = entry?;
        let head: Head = decode("heading of a version", head)?;
        let (time_millis, origin, deltas) = (head.time_millis, head.origin, head.deltas);
        entries.push(HistoryEntry { version: number(key)?, time_millis, origin, deltas });
    }
    Ok(entries)
}

/// How much of the log is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keep {
    /// Versions, at least one.
    pub(crate) versions: u64,
    /// Changes of records in all versions together; the newest version stays whatever it holds.
    pub(crate) changes: u64,
}

/// Forgets all but the newest `keep` versions; how many it forgot.
pub(crate) fn trim(txn: &mut RwTxn<'_>, tables: &Tables, keep: u64) -> Result<u64, Fault> {
    let surplus = tables.heads.len(txn)?.saturating_sub(keep);
    for _ in 0..surplus {
        forget_oldest(txn, tables)?;
    }
    sweep(txn, tables, usize::MAX)?;
    Ok(surplus)
}

/// What a write that made so many changes forgets in passing.
///
/// A version is forgotten by its heading; its changes are swept up by this write and the next ones, each in proportion
/// to what it wrote itself, so that no small write pays for a large version.
pub(crate) fn trim_in_passing(txn: &mut RwTxn<'_>, tables: &Tables, keep: Keep, written: usize) -> Result<(), Fault> {
    let surplus = tables.heads.len(txn)?.saturating_sub(keep.versions.max(1)).min(FORGOTTEN_AT_ONCE);
    for _ in 0..surplus {
        forget_oldest(txn, tables)?;
    }
    let room = written.saturating_mul(2).max(SWEPT_AT_LEAST);
    let swept = sweep(txn, tables, room)?;
    // While something waits to be swept, what the table holds is no measure.
    if swept < room && tables.deltas.len(txn)? > keep.changes && tables.heads.len(txn)? > 1 {
        forget_oldest(txn, tables)?;
        sweep(txn, tables, room - swept)?;
    }
    Ok(())
}

fn forget_oldest(txn: &mut RwTxn<'_>, tables: &Tables) -> Result<(), Fault> {
    if let Some((key, _)) = tables.heads.first(txn)? {
        let key = key.to_vec();
        tables.heads.delete(txn, &key)?;
    }
    Ok(())
}

/// Deletes changes of forgotten versions, oldest first, at most `limit`; how many there were.
fn sweep(txn: &mut RwTxn<'_>, tables: &Tables, limit: usize) -> Result<usize, Fault> {
    let kept = oldest(txn, tables)?.saturating_add(1).to_be_bytes();
    let forgotten = (Bound::Unbounded, Bound::Excluded(kept.as_slice()));
    let (mut count, mut last) = (0, None);
    for entry in tables.deltas.range(txn, &forgotten)?.take(limit) {
        (count, last) = (count + 1, Some(entry?.0));
    }
    if let Some(last) = last.map(<[u8]>::to_vec) {
        tables.deltas.delete_range(txn, &(Bound::Unbounded, Bound::Included(last.as_slice())))?;
    }
    Ok(count)
}

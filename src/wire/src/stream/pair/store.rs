//! The control plane's store.

use super::{Copied, Cursor, Fetched, FromCp, Held, PIECE, Random, Row, Rows, Start};
use crate::stream::message::Changes;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

pub(super) fn digest(rows: &Rows) -> String {
    let sum = rows.iter().fold(0_u128, |sum, (id, value)| {
        let mut random = Random(id.wrapping_mul(1_000_003) ^ (value << 32));
        sum.wrapping_add(random.between(Duration::ZERO, Duration::from_secs(1 << 40)).as_millis())
    });
    format!("{sum:032x}")
}

/// The control plane's store: every version changes one row.
#[derive(Debug, Clone)]
pub(super) struct Store {
    pub(super) id: u64,
    pub(super) rows: Rows,
    /// What each version left, from version 0 on.
    pub(super) history: Vec<Rows>,
    /// Row and value of each version, from version 1 on; None is a deletion.
    pub(super) log: Vec<(u64, Option<u64>)>,
    pub(super) oldest: u64,
}

impl Store {
    pub(super) fn new(id: u64) -> Self {
        Self { id, rows: Rows::new(), history: vec![Rows::new()], log: Vec::new(), oldest: 0 }
    }

    pub(super) fn name(&self) -> String {
        format!("store {}", self.id)
    }

    pub(super) fn version(&self) -> u64 {
        self.log.len() as u64
    }

    pub(super) fn change(&mut self, row: u64, value: Option<u64>) {
        match value {
            Some(value) => _ = self.rows.insert(row, value),
            None => _ = self.rows.remove(&row),
        }
        self.log.push((row, value));
        self.history.push(self.rows.clone());
    }

    pub(super) fn digest_at(&self, version: u64) -> Option<String> {
        self.history.get(usize::try_from(version).unwrap()).map(digest)
    }

    /// The changes from one version to another.
    fn between(&self, from: u64, to: u64) -> Vec<Row> {
        let (from, to) = (usize::try_from(from).unwrap(), usize::try_from(to).unwrap());
        self.log[from..to].iter().map(|(id, value)| row(*id, *value)).collect()
    }

    pub(super) fn start(&self, held: Option<&Held>) -> Start {
        let Some(held) = held else { return Start::Snapshot { why: "nothing held".to_owned() } };
        if held.store_id == self.name() && self.digest_at(held.version).as_ref() == Some(&held.digest) {
            return Start::From(held.version);
        }
        if held.digest == digest(&self.rows) {
            return Start::Same { version: self.version(), digest: held.digest.clone() };
        }
        Start::Snapshot { why: "another configuration is held".to_owned() }
    }

    pub(super) fn fetch(&self, from: u64) -> Fetched {
        let to = self.version();
        if from < self.oldest || from > to {
            return Fetched::Snapshot { why: "the log does not reach".to_owned() };
        }
        let last: BTreeMap<String, Row> = self.between(from, to).into_iter().map(|row| (row.id.clone(), row)).collect();
        let rows = last.into_values().collect();
        let digest = self.digest_at(to).unwrap();
        let frame = FromCp::Changes(Changes { from, to, digest, committed_millis: 0, rows }).encode();
        Fetched::Changes { to, frame }
    }

    pub(super) fn copy(&self, cursor: Cursor) -> Copied {
        let (rows, next) = match cursor {
            Cursor::Rows { begun, after } => {
                let after = after.map(|(_, id)| id.parse::<u64>().unwrap());
                let behind = self.rows.iter().filter(|(id, _)| after.is_none_or(|after| **id > after));
                let rows: Vec<Row> = behind.take(PIECE).map(|(id, value)| row(*id, Some(*value))).collect();
                let next = match rows.last().filter(|_| rows.len() == PIECE) {
                    Some(last) => Cursor::Rows { begun, after: Some(("rows".to_owned(), last.id.clone())) },
                    None => Cursor::Log { version: begun, sent: 0, until: self.version() },
                };
                (rows, next)
            }
            Cursor::Log { version, until, .. } if version == until => {
                return Copied::End { version, digest: self.digest_at(version).unwrap() };
            }
            Cursor::Log { version, .. } if version < self.oldest => return Copied::Overtaken,
            Cursor::Log { version, until, .. } => {
                let to = until.min(version + PIECE as u64);
                (self.between(version, to), Cursor::Log { version: to, sent: 0, until })
            }
        };
        Copied::Piece { frame: FromCp::SnapshotRows { rows }.encode(), next }
    }
}

fn row(id: u64, value: Option<u64>) -> Row {
    let new = value.and_then(|value| json!({"id": id, "value": value}).as_object().cloned());
    Row { entity: "rows".to_owned(), id: id.to_string(), new }
}

//! The LMDB databases of a store: few, each with composite keys.

use crate::checksum::Checksum;
use crate::fault::Fault;
use crate::index::Entries;
use crate::keys;
use gwctl_entities::{EntitySchema, Record};
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, RoTxn, RwTxn, WithoutTls};

/// A database of bytes.
pub(crate) type Table = Database<'static, Bytes, Bytes>;

/// Places in [`Tables::of_records`].
const RECORDS: usize = 0;
const UNIQUE: usize = 1;
const REFERENCES: usize = 2;
const TAGS: usize = 3;
const EXPIRY: usize = 4;

/// How many databases an environment holds.
pub(crate) const COUNT: u32 = 13;

/// Every database. Those of records and indexes are the same in the store and in the data plane's cache.
#[derive(Clone)]
pub(crate) struct Tables {
    /// entity, id: the record as JSON.
    pub(crate) records: Table,
    /// entity, field, value: the id.
    pub(crate) unique: Table,
    /// entity, field, parent id, id: the id.
    pub(crate) references: Table,
    /// entity, tag, id: the id.
    pub(crate) tags: Table,
    /// Unix millisecond of expiry (8 bytes big-endian), entity, id: entity NUL id.
    pub(crate) expiry: Table,
    /// version (8 bytes big-endian): heading of the version as JSON.
    pub(crate) heads: Table,
    /// version (8 bytes big-endian), number (4 bytes big-endian): delta as JSON.
    pub(crate) deltas: Table,
    /// Version, format and settings.
    pub(crate) meta: Table,
}

impl Tables {
    /// Opens the databases, creating those that are missing.
    pub(crate) fn open(env: &Env<WithoutTls>) -> Result<Tables, heed::Error> {
        let txn = env.write_txn()?;
        let opened = env.create_databases_and_commit(txn, |opener, txn| {
            let mut table = |name| opener.create_database::<Bytes, Bytes>(txn, Some(name));
            let tables = [
                table("records")?,
                table("unique")?,
                table("references")?,
                table("tags")?,
                table("expiry")?,
                table("heads")?,
                table("deltas")?,
                table("meta")?,
            ];
            Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(tables))
        })?;
        let [records, unique, references, tags, expiry, heads, deltas, meta] = opened.unwrap_commit();
        Ok(Tables { records, unique, references, tags, expiry, heads, deltas, meta })
    }

    /// A second set of records and indexes beside the first, with the same log and settings.
    pub(crate) fn open_second(&self, env: &Env<WithoutTls>) -> Result<Tables, heed::Error> {
        let txn = env.write_txn()?;
        let opened = env.create_databases_and_commit(txn, |opener, txn| {
            let mut table = |name| opener.create_database::<Bytes, Bytes>(txn, Some(name));
            let tables =
                [table("records 2")?, table("unique 2")?, table("references 2")?, table("tags 2")?, table("expiry 2")?];
            Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(tables))
        })?;
        let [records, unique, references, tags, expiry] = opened.unwrap_commit();
        Ok(Tables { records, unique, references, tags, expiry, ..self.clone() })
    }

    /// Empties records and indexes; log and settings stay.
    pub(crate) fn clear_records(&self, txn: &mut RwTxn<'_>) -> Result<(), heed::Error> {
        for table in self.of_records() {
            table.clear(txn)?;
        }
        Ok(())
    }

    /// The databases of records and indexes.
    pub(crate) fn of_records(&self) -> [&Table; 5] {
        [&self.records, &self.unique, &self.references, &self.tags, &self.expiry]
    }

    /// Writes, replaces or removes one record with all its index entries. Checks no rule. A sum over all entries, where
    /// there is one, follows.
    pub(crate) fn put(
        &self,
        txn: &mut RwTxn<'_>,
        schema: &EntitySchema,
        id: &str,
        (old, new): (Option<&Record>, Option<&Record>),
        mut sum: Option<&mut Checksum>,
    ) -> Result<(), Fault> {
        let before = old.map(|record| Entries::of(schema, id, record)).unwrap_or_default();
        let after = new.map(|record| Entries::of(schema, id, record)).unwrap_or_default();
        let place = keys::key(&[&schema.name, id]);
        match new {
            Some(record) => self.set(txn, RECORDS, &place, &encode(record)?, sum.as_deref_mut())?,
            None => self.unset(txn, RECORDS, &place, sum.as_deref_mut())?,
        }
        let pairs = [
            (UNIQUE, before.unique_keys(), after.unique_keys()),
            (REFERENCES, before.references, after.references),
            (TAGS, before.tags, after.tags),
        ];
        for (table, before, after) in pairs {
            for key in before.difference(&after) {
                self.unset(txn, table, key, sum.as_deref_mut())?;
            }
            for key in after.difference(&before) {
                self.set(txn, table, key, id.as_bytes(), sum.as_deref_mut())?;
            }
        }
        if before.expiry != after.expiry {
            if let Some(key) = before.expiry {
                self.unset(txn, EXPIRY, &key, sum.as_deref_mut())?;
            }
            if let Some(key) = after.expiry {
                self.set(txn, EXPIRY, &key, &place_text(&schema.name, id), sum)?;
            }
        }
        Ok(())
    }

    /// [`Tables::put`] where other records may hold this one's unique values for a while, or it theirs: rows that were
    /// read one after another while they changed. Once the newest state of each is in, so is every index entry.
    pub(crate) fn put_alone(
        &self,
        txn: &mut RwTxn<'_>,
        schema: &EntitySchema,
        id: &str,
        (old, new): (Option<&Record>, Option<&Record>),
        sum: &mut Checksum,
    ) -> Result<(), Fault> {
        let before = old.map(|record| Entries::of(schema, id, record).unique_keys()).unwrap_or_default();
        let mut others = Vec::new();
        for key in before {
            match self.unique.get(txn, &key)? {
                Some(owner) if owner != id.as_bytes() => others.push((key, owner.to_vec())),
                _ => {}
            }
        }
        self.put(txn, schema, id, (old, new), Some(sum))?;
        for (key, owner) in others {
            self.set(txn, UNIQUE, &key, &owner, Some(sum))?;
        }
        for key in new.map(|record| Entries::of(schema, id, record).unique_keys()).unwrap_or_default() {
            self.set(txn, UNIQUE, &key, id.as_bytes(), Some(sum))?;
        }
        Ok(())
    }

    /// Writes an entry of one of [`Tables::of_records`]. What lay there goes out of the sum.
    fn set(
        &self,
        txn: &mut RwTxn<'_>,
        table: usize,
        key: &[u8],
        value: &[u8],
        sum: Option<&mut Checksum>,
    ) -> Result<(), Fault> {
        let entries = self.of_records()[table];
        let Some(sum) = sum else { return Ok(entries.put(txn, key, value)?) };
        // One way down the tree where nothing lies, as in a configuration that is filled anew.
        if let Some(old) = entries.get_or_put(txn, key, value)? {
            sum.remove(table, key, old);
            entries.put(txn, key, value)?;
        }
        sum.add(table, key, value);
        Ok(())
    }

    fn unset(&self, txn: &mut RwTxn<'_>, table: usize, key: &[u8], sum: Option<&mut Checksum>) -> Result<(), Fault> {
        let entries = self.of_records()[table];
        if let Some(sum) = sum
            && let Some(old) = entries.get(txn, key)?
        {
            sum.remove(table, key, old);
        }
        entries.delete(txn, key)?;
        Ok(())
    }

    /// The sum over every entry of records and indexes.
    pub(crate) fn checksum(&self, txn: &RoTxn<'_>) -> Result<Checksum, Fault> {
        let mut sum = Checksum::default();
        for (number, table) in self.of_records().into_iter().enumerate() {
            for entry in table.iter(txn)? {
                let (key, value) = entry?;
                sum.add(number, key, value);
            }
        }
        Ok(sum)
    }

    /// A value kept outside the configuration.
    pub(crate) fn setting(&self, txn: &RoTxn<'_>, name: &str) -> Result<Option<String>, Fault> {
        Ok(self.meta.get(txn, &keys::key(&["setting", name]))?.map(text).transpose()?.map(str::to_owned))
    }

    /// Sets or removes such a value.
    pub(crate) fn set_setting(&self, txn: &mut RwTxn<'_>, name: &str, value: Option<&str>) -> Result<(), Fault> {
        let key = keys::key(&["setting", name]);
        match value {
            Some(value) => self.meta.put(txn, &key, value.as_bytes())?,
            None => {
                self.meta.delete(txn, &key)?;
            }
        }
        Ok(())
    }

    /// The stored record, expired or not.
    pub(crate) fn record(&self, txn: &RoTxn<'_>, entity: &str, id: &str) -> Result<Option<Record>, Fault> {
        self.records.get(txn, &keys::key(&[entity, id]))?.map(|bytes| decode(entity, bytes)).transpose()
    }
}

/// Value of the expiry table.
pub(crate) fn place_text(entity: &str, id: &str) -> Vec<u8> {
    [entity.as_bytes(), b"\0", id.as_bytes()].concat()
}

/// The reverse of [`place_text`].
pub(crate) fn place_of(bytes: &[u8]) -> Result<(String, String), Fault> {
    let text = text(bytes)?;
    let (entity, id) = text.split_once('\0').ok_or_else(|| Fault::Damaged("expiry entry without an id".into()))?;
    Ok((entity.to_owned(), id.to_owned()))
}

/// Bytes of a table that hold a text.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|_| Fault::Damaged("index entry is no text".into()))
}

/// A value as it is stored.
pub(crate) fn encode<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, Fault> {
    serde_json::to_vec(value).map_err(|error| Fault::Damaged(format!("value cannot be written as JSON: {error}")))
}

/// A stored value. The error names the place and position, never the content.
pub(crate) fn decode<T: serde::de::DeserializeOwned>(place: &str, bytes: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Fault::Damaged(format!("{place}: unreadable JSON at line {line} column {column}"))
    })
}

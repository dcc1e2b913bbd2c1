//! One number that tells two configurations apart: kept beside the version, compared between control plane and data
//! plane.

use gwctl_entities::{Record, Registry};
use md5::{Digest as _, Md5};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// Sum modulo 2^128 over every row that data planes get, of the MD5 of its entity, id and canonical JSON.
///
/// A sum, so that a change costs the rows it touches and the order does not matter. It guards against damage and bugs,
/// not against forgery: peers prove themselves by their certificates. Shown as 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Digest(u128);

impl Digest {
    /// Counts a row in.
    pub fn add(&mut self, entity: &str, id: &str, record: &Record) {
        self.0 = self.0.wrapping_add(of_row(entity, id, record));
    }

    /// Takes a row out again.
    pub fn remove(&mut self, entity: &str, id: &str, record: &Record) {
        self.0 = self.0.wrapping_sub(of_row(entity, id, record));
    }

    /// Replaces a row by another; None is no row.
    pub fn change(&mut self, entity: &str, id: &str, old: Option<&Record>, new: Option<&Record>) {
        if let Some(old) = old {
            self.remove(entity, id, old);
        }
        if let Some(new) = new {
            self.add(entity, id, new);
        }
    }

    /// [`Digest::change`] with records as they are stored, which is their canonical JSON.
    pub(crate) fn change_stored(&mut self, entity: &str, id: &str, old: Option<&[u8]>, new: Option<&[u8]>) {
        let of = |record: &[u8]| of_text(entity, id, record);
        self.0 = self.0.wrapping_sub(old.map_or(0, of)).wrapping_add(new.map_or(0, of));
    }

    pub(crate) fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Digest> {
        bytes.try_into().ok().map(|bytes| Digest(u128::from_be_bytes(bytes)))
    }
}

fn of_row(entity: &str, id: &str, record: &Record) -> u128 {
    let mut hash = of_place(entity, id);
    // Members stand in the order of their names, numbers in their shortest form. Writing into a hash cannot fail.
    let _ = serde_json::to_writer(Sink(&mut hash), record);
    u128::from_be_bytes(hash.finalize().into())
}

fn of_text(entity: &str, id: &str, record: &[u8]) -> u128 {
    u128::from_be_bytes(of_place(entity, id).chain_update(record).finalize().into())
}

/// Lengths stand before the texts, so no two rows read alike.
fn of_place(entity: &str, id: &str) -> Md5 {
    let mut hash = Md5::new();
    for text in [entity, id] {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    hash
}

/// A hash as a writer.
struct Sink<'h>(&'h mut Md5);

impl std::io::Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Whether rows of this entity go to data planes, hence into the digest.
pub(crate) fn counts(registry: &Registry, entity: &str) -> bool {
    registry.entity(entity).is_some_and(|schema| schema.db_export)
}

/// Names of the entities that count. A digest stored under another list was made of other rows.
pub(crate) fn scope(registry: &Registry) -> String {
    let names: Vec<&str> =
        registry.entities().filter(|schema| schema.db_export).map(|schema| schema.name.as_str()).collect();
    names.join(",")
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

/// A text that is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a digest has 32 hexadecimal digits")]
pub struct DigestError;

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Digest, DigestError> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = digits.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        number.map(Digest).ok_or(DigestError)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::fixtures::{id, service};

    #[test]
    fn the_order_of_rows_does_not_matter_and_each_can_be_taken_out() {
        let (mut one, mut other) = (Digest::default(), Digest::default());
        let rows = [("services", id(1), service(1, "a")), ("services", id(2), service(2, "b"))];
        rows.iter().for_each(|(entity, id, row)| one.add(entity, id, row));
        rows.iter().rev().for_each(|(entity, id, row)| other.add(entity, id, row));
        assert_eq!(one, other);
        one.change("services", &id(2), Some(&service(2, "b")), Some(&service(2, "c")));
        assert_ne!(one, other);
        one.remove("services", &id(2), &service(2, "c"));
        one.remove("services", &id(1), &service(1, "a"));
        assert_eq!(one, Digest::default());
    }

    #[test]
    fn entity_id_and_content_all_count() {
        let of = |entity: &str, id: &str, name: &str| {
            let mut digest = Digest::default();
            digest.add(entity, id, &service(1, name));
            digest
        };
        let one = of("ab", "c", "x");
        assert!([of("a", "bc", "x"), of("ab", "d", "x"), of("ab", "c", "y")].iter().all(|other| *other != one));
    }

    #[test]
    fn a_stored_row_counts_as_the_record_does() {
        let stored = |name: &str| crate::tables::encode(&service(1, name)).unwrap();
        let (mut one, mut other) = (Digest::default(), Digest::default());
        one.change("services", &id(1), None, Some(&service(1, "a")));
        other.change_stored("services", &id(1), None, Some(&stored("a")));
        assert_eq!(one, other);
        one.change("services", &id(1), Some(&service(1, "a")), Some(&service(1, "b")));
        other.change_stored("services", &id(1), Some(&stored("a")), Some(&stored("b")));
        assert_eq!(one, other);
        other.change_stored("services", &id(1), Some(&stored("b")), None);
        assert_eq!(other, Digest::default());
    }

    #[test]
    fn the_text_is_read_back() {
        let mut digest = Digest::default();
        assert_eq!(digest.to_string(), "0".repeat(32));
        digest.add("services", "1", &service(1, "a"));
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(Digest::from_bytes(&digest.to_bytes()), Some(digest));
        for bad in ["", "0", "+0000000000000000000000000000000", "g0000000000000000000000000000000"] {
            assert_eq!(bad.parse::<Digest>(), Err(DigestError), "{bad}");
        }
    }
}

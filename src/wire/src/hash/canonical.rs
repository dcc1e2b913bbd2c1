//! The canonical form of a value, digested while it is written.

use super::number::write_number;
use super::{ConfigHash, Record};
use md5::{Digest, Md5};
use serde_json::{Map, Value};
use std::borrow::Borrow;

/// A canonical text longer than this is replaced by its own digest before the next value is added.
const FOLD_ABOVE: usize = 1_000_000;

/// Lists of up to this many elements have no separator after the last one.
const SHORT_LIST: usize = 5;

/// Bytes gathered before they are digested.
const CHUNK: usize = 8 * 1024;

/// Digest of canonical text. The text itself is never kept: 8 KiB of memory whatever the size of the table.
///
/// Source: Kong 3.9.1 `kong/clustering/config_helper.lua`, `to_sorted_string`.
pub(super) struct Canonical {
    digest: Md5,
    /// Length of the text so far, counting a fold as 16 bytes.
    length: usize,
    chunk: Vec<u8>,
}

impl Canonical {
    pub(super) fn new() -> Self {
        Self { digest: Md5::new(), length: 0, chunk: Vec::with_capacity(CHUNK + 1024) }
    }

    /// The digest as lower-case hex text.
    pub(super) fn finish(mut self) -> ConfigHash {
        self.flush();
        ConfigHash::from(hex(&self.digest.finalize()).as_str())
    }

    /// Adds any value.
    pub(super) fn value(&mut self, value: &Value) {
        match value {
            Value::Array(elements) => self.list(elements, Self::value),
            Value::Object(members) => self.object(members),
            scalar => self.scalar(scalar),
        }
    }

    /// Adds a list of rows, one at a time.
    pub(super) fn rows<R: Borrow<Record>>(&mut self, rows: impl IntoIterator<Item = R>) {
        self.list(rows, |canonical, row| canonical.object(row.borrow()));
    }

    /// Adds the key of an object's member; its value and [`Self::end_member`] follow.
    pub(super) fn begin_member(&mut self, key: &str) {
        self.text(key.as_bytes());
        self.text(b":");
    }

    pub(super) fn end_member(&mut self) {
        self.text(b";");
    }

    /// What an empty list or object looks like.
    pub(super) fn empty(&mut self) {
        self.text(b"{}");
    }

    /// To be called at every value before anything of it is added.
    pub(super) fn enter(&mut self) {
        if self.length > FOLD_ABOVE {
            self.flush();
            let folded = self.digest.finalize_reset();
            self.length = 0;
            self.text(&folded);
        }
    }

    fn scalar(&mut self, scalar: &Value) {
        self.enter();
        match scalar {
            Value::String(text) => self.text(text.as_bytes()),
            Value::Number(number) => {
                let before = self.chunk.len();
                write_number(number, &mut self.chunk);
                self.length += self.chunk.len() - before;
            }
            Value::Bool(true) => self.text(b"true"),
            Value::Bool(false) => self.text(b"false"),
            Value::Null | Value::Array(_) | Value::Object(_) => self.text(b"/null/"),
        }
    }

    fn list<E>(&mut self, elements: impl IntoIterator<Item = E>, mut add: impl FnMut(&mut Self, E)) {
        self.enter();
        let mut count = 0;
        for element in elements {
            if count > 0 {
                self.text(b";");
            }
            add(self, element);
            count += 1;
        }
        match count {
            0 => self.empty(),
            1..=SHORT_LIST => {}
            _ => self.text(b";"),
        }
    }

    fn object(&mut self, members: &Map<String, Value>) {
        self.enter();
        if members.is_empty() {
            return self.empty();
        }
        // The map is ordered already, unless some crate of the build turned its order of insertion on.
        if members.keys().is_sorted() {
            members.iter().for_each(|member| self.member(member));
        } else {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            sorted.into_iter().for_each(|member| self.member(member));
        }
    }

    fn member(&mut self, (key, value): (&String, &Value)) {
        self.begin_member(key);
        self.value(value);
        self.end_member();
    }

    fn text(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        if bytes.len() >= CHUNK {
            self.flush();
            self.digest.update(bytes);
            return;
        }
        self.chunk.extend_from_slice(bytes);
        if self.chunk.len() >= CHUNK {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.digest.update(&self.chunk);
        self.chunk.clear();
    }
}

/// MD5 over the hex text of several hashes, as lower-case hex.
pub(super) fn digest_of<'a>(hashes: impl IntoIterator<Item = &'a ConfigHash>) -> ConfigHash {
    let mut digest = Md5::new();
    for hash in hashes {
        digest.update(hash.as_str());
    }
    ConfigHash::from(hex(&digest.finalize()).as_str())
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

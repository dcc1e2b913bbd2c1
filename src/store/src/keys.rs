//! Keys of the tables: texts joined by NUL, each short enough for LMDB's 511 bytes.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Longest text that stands in a key as it is. Four of them and three separators stay below 511 bytes.
const LONGEST: usize = 120;
/// First byte of a text that is replaced by its hash; no text that stands as it is begins so.
const HASHED: char = '\u{1}';

/// The key of these texts.
pub(crate) fn key(parts: &[&str]) -> Vec<u8> {
    let mut key = prefix(parts);
    key.pop();
    key
}

/// What all keys begin with that have these texts first.
pub(crate) fn prefix(parts: &[&str]) -> Vec<u8> {
    let mut prefix = Vec::with_capacity(parts.iter().map(|part| part.len().min(LONGEST) + 1).sum());
    for part in parts {
        push(&mut prefix, part);
        prefix.push(0);
    }
    prefix
}

/// One text as it stands in keys.
pub(crate) fn part(text: &str) -> Vec<u8> {
    key(&[text])
}

fn push(key: &mut Vec<u8>, text: &str) {
    if text.len() <= LONGEST && !text.starts_with(HASHED) && !text.contains('\0') {
        key.extend_from_slice(text.as_bytes());
        return;
    }
    let mut hashed = String::from(HASHED);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hashed, "{byte:02x}");
    }
    key.extend_from_slice(hashed.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_are_readable_in_keys() {
        assert_eq!(key(&["services", "name", "web"]), b"services\0name\0web");
        assert_eq!(prefix(&["services", ""]), b"services\0\0");
    }

    #[test]
    fn long_and_odd_texts_are_hashed_and_stay_apart() {
        let long = "x".repeat(5000);
        assert_eq!(key(&["keyauth_credentials", "key", &long]).len(), "keyauth_credentials\0key\0".len() + 65);
        assert_ne!(part("a\0b"), part("a\0c"));
        let hash_as_text = String::from_utf8(part(&long)).expect("hashes are text");
        assert_ne!(part(&hash_as_text), part(&long), "a text that looks like a hash is no hash");
    }

    #[test]
    fn four_texts_fit_in_a_key() {
        let full = "y".repeat(LONGEST);
        assert!(key(&[&full, &full, &full, &full]).len() <= 511);
    }
}

//! How versions are written on a link. Two generations of Kong say the same with other words under the same names.

use crate::ConfigHash;
use crate::compat::Version;
use serde_json::Value;

/// What texts that are versions begin with.
const PREFIX: &str = "v02_";

/// The words of a link, by the Kong version of the data plane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// Kong 3.9: integers; `wipe` marks an answer that replaces everything. Calls without an id and batches end the link.
    #[default]
    Integers,
    /// Kong 3.10: texts of 32 characters, `v02_` and 28 hexadecimal digits; `full_sync` marks an answer that replaces
    /// everything, and every answer with rows does. There are calls without an id, and batches.
    Texts,
}

impl Dialect {
    /// The dialect of nodes of this Kong version. One that cannot be read is taken for an old one.
    pub fn of(version: &str) -> Self {
        let newer = Version::parse(version).is_some_and(|version| version >= Version::new(3, 10, 0));
        if newer { Self::Texts } else { Self::Integers }
    }

    /// A version as it is written in messages.
    pub fn value(self, version: u64) -> Value {
        match self {
            Self::Integers => Value::from(version),
            Self::Texts => Value::from(text_of(version)),
        }
    }

    /// A version in the place of a configuration hash: 32 decimal digits, or the text.
    pub fn hash(self, version: u64) -> ConfigHash {
        match self {
            Self::Integers => ConfigHash::from(format!("{version:032}").as_str()),
            Self::Texts => ConfigHash::from(text_of(version).as_str()),
        }
    }

    /// Name of the flag that marks an answer that replaces everything.
    pub fn flag(self) -> &'static str {
        match self {
            Self::Integers => "wipe",
            Self::Texts => "full_sync",
        }
    }

    /// A version that must be one, and the dialect it is written in; None for anything else.
    pub fn read(value: &Value) -> Option<(u64, Self)> {
        match value {
            Value::String(text) => version_of_text(text).map(|version| (version, Self::Texts)),
            _ => value.as_u64().map(|version| (version, Self::Integers)),
        }
    }
}

fn text_of(version: u64) -> String {
    format!("{PREFIX}{version:028x}")
}

/// The number of a text of 32 characters; None when it is no version, or one beyond all counting.
fn version_of_text(text: &str) -> Option<u64> {
    let digits = text.strip_prefix(PREFIX).filter(|digits| digits.len() == 28)?;
    let lower = digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    lower.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

/// The version a hash stands for, in either dialect; 0, so that everything is asked for, when it is a real hash.
pub fn version_of(hash: &str) -> u64 {
    // A digest of 32 decimal digits that begins with twelve zeros does not happen.
    let digits = (hash.len() == 32 && hash.bytes().all(|byte| byte.is_ascii_digit())).then(|| hash.parse().ok());
    digits.flatten().or_else(|| version_of_text(hash)).unwrap_or(0)
}

/// The dialect a hash that stands for a version is written in.
pub fn dialect_of(hash: &str) -> Dialect {
    if version_of_text(hash).is_some() { Dialect::Texts } else { Dialect::Integers }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn the_version_of_kong_decides() {
        for version in ["3.7.0", "3.9.1", "3.9.9-enterprise", "", "x"] {
            assert_eq!(Dialect::of(version), Dialect::Integers, "{version}");
        }
        for version in ["3.10.0", "3.12.1", "3.10.0.1-enterprise", "4.0.0"] {
            assert_eq!(Dialect::of(version), Dialect::Texts, "{version}");
        }
    }

    #[test]
    fn versions_stand_in_the_place_of_hashes() {
        assert_eq!(Dialect::Integers.hash(42).as_str(), "00000000000000000000000000000042");
        assert_eq!(Dialect::Texts.hash(42).as_str(), "v02_000000000000000000000000002a");
        assert_eq!(version_of("00000000000000000000000000000042"), 42);
        let hashes = [
            "8dd89138b0eac8dc78edbcae31b2d3b9",
            "99999999999999999999999999999999",
            "v02_00000000000000000000000000002A",
            "v02_0000000000000000000000000000-1",
            "v02_ffffffffffffffffffffffffffff",
            "v02_2a",
            "42",
            "",
        ];
        for hash in hashes {
            assert_eq!(version_of(hash), 0, "{hash}");
        }
    }

    #[test]
    fn texts_sort_like_the_versions_they_stand_for_and_above_every_hash() {
        let texts: Vec<String> = [0, 9, 10, 255, 256, u64::MAX].into_iter().map(text_of).collect();
        assert!(texts.is_sorted() && texts[0].as_str() > "ffffffffffffffffffffffffffffffff");
    }

    proptest! {
        #[test]
        fn every_version_is_found_again(version: u64) {
            for dialect in [Dialect::Integers, Dialect::Texts] {
                let hash = dialect.hash(version);
                prop_assert_eq!((version_of(hash.as_str()), hash.as_str().len()), (version, 32));
                prop_assert_eq!(Dialect::read(&dialect.value(version)), Some((version, dialect)));
            }
            prop_assert_eq!(Dialect::read(&json!(-1)), None);
        }
    }
}

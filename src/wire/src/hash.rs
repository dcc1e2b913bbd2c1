//! Config hash and part hashes.
//!
//! A value is written in a canonical form and digested with MD5; the form and its oddities (it is not injective, long
//! texts fold) are Kong's, because two control planes must agree on the name of a state.

mod canonical;
mod number;
mod table;
#[cfg(test)]
mod tests;

pub use table::{TableHasher, part};

use gwctl_entities::Record;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Name of a state of the configuration: normally the MD5 of its canonical form, 32 characters.
///
/// Opaque on the wire: control planes may choose any text of 32 characters, so none is refused here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConfigHash(Arc<str>);

/// Length of every hash a control plane accepts in a ping.
pub const HASH_LEN: usize = 32;

const ZERO: &str = "00000000000000000000000000000000";

impl ConfigHash {
    /// 32 zeros: nothing is loaded, or the part is absent.
    pub fn zero() -> Self {
        Self(ZERO.into())
    }

    /// Whether it is the zero hash.
    pub fn is_zero(&self) -> bool {
        &*self.0 == ZERO
    }

    /// The text as it travels.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads the payload of a ping; None unless it is exactly 32 bytes. Bytes that are no UTF-8 become `�`.
    pub fn from_ping(payload: &[u8]) -> Option<Self> {
        (payload.len() == HASH_LEN).then(|| Self(String::from_utf8_lossy(payload).into()))
    }
}

impl Default for ConfigHash {
    fn default() -> Self {
        Self::zero()
    }
}

impl From<&str> for ConfigHash {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for ConfigHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The hash of a configuration and of the parts that a data plane rebuilds separately.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hashes {
    /// Of the whole table.
    pub config: ConfigHash,
    /// Of `routes`; zero when the table has none. So for the others.
    pub routes: ConfigHash,
    /// Of `services`.
    pub services: ConfigHash,
    /// Of `plugins`.
    pub plugins: ConfigHash,
    /// Of `upstreams`.
    pub upstreams: ConfigHash,
    /// Of `targets`.
    pub targets: ConfigHash,
}

//! Kong versions: reading, comparing, and which nodes a control plane serves.

use std::fmt;

/// A Kong version: up to four numbers; what follows them does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    parts: [u32; 4],
}

/// Why a control plane does not serve a node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// Not of the form `N.N.N`.
    #[error("data plane version {actual:?} is not of the form N.N.N (control plane version {own})")]
    PeerUnreadable {
        /// What the node announced.
        actual: String,
        /// The control plane's version.
        own: Version,
    },
    /// Another major version.
    #[error(
        "data plane version {actual} is incompatible with control plane version {own} ({}.x.y are accepted)",
        own.major()
    )]
    PeerMajor {
        /// What the node announced.
        actual: Version,
        /// The control plane's version.
        own: Version,
    },
    /// A newer minor version.
    #[error("data plane version {actual} is newer than control plane version {own}: upgrade the control plane first")]
    PeerNewer {
        /// What the node announced.
        actual: Version,
        /// The control plane's version.
        own: Version,
    },
}

impl Version {
    /// A version of three numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { parts: [major, minor, patch, 0] }
    }

    /// Reads at least three numbers separated by dots, and a fourth if there is one: `3.9.1`, `3.9.1.0-enterprise`,
    /// `3.9.1-rc.1`. None otherwise.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = [0; 4];
        let mut rest = text;
        for (index, part) in parts.iter_mut().enumerate() {
            if index > 0 {
                match rest.strip_prefix('.') {
                    Some(after) => rest = after,
                    None if index == 3 => break,
                    None => return None,
                }
            }
            let digits = rest.len() - rest.trim_start_matches(|character: char| character.is_ascii_digit()).len();
            match rest[..digits].parse() {
                Ok(number) => *part = number,
                Err(_) if index == 3 => break,
                Err(_) => return None,
            }
            rest = &rest[digits..];
        }
        Some(Self { parts })
    }

    /// The first number.
    pub fn major(&self) -> u32 {
        self.parts[0]
    }

    /// The second number.
    pub fn minor(&self) -> u32 {
        self.parts[1]
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch, fourth] = self.parts;
        write!(formatter, "{major}.{minor}.{patch}")?;
        if fourth > 0 { write!(formatter, ".{fourth}") } else { Ok(()) }
    }
}

/// Whether a control plane of version `own` serves a node that announces `node`: same major, no newer minor.
///
/// Source: Kong 3.9.1 `kong/clustering/compat/init.lua`, `check_kong_version_compatibility`.
pub fn check_version(node: &str, own: &Version) -> Result<Version, VersionError> {
    let own = *own;
    let Some(actual) = Version::parse(node) else {
        return Err(VersionError::PeerUnreadable { actual: node.to_owned(), own });
    };
    if actual.major() != own.major() {
        return Err(VersionError::PeerMajor { actual, own });
    }
    if actual.minor() > own.minor() {
        return Err(VersionError::PeerNewer { actual, own });
    }
    Ok(actual)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Version = Version::new(3, 9, 1);

    #[test]
    fn older_minors_and_any_patch_are_served() {
        for node in ["3.9.1", "3.9.0", "3.9.9", "3.8.0", "3.0.0", "3.9.1.0", "3.9.1-rc.1", "3.9.1.0-enterprise-edition"]
        {
            assert!(check_version(node, &OWN).is_ok(), "{node}");
        }
    }

    #[test]
    fn newer_minors_other_majors_and_nonsense_are_refused() {
        let is_newer = |node| matches!(check_version(node, &OWN), Err(VersionError::PeerNewer { .. }));
        let is_other = |node| matches!(check_version(node, &OWN), Err(VersionError::PeerMajor { .. }));
        let is_unreadable = |node| matches!(check_version(node, &OWN), Err(VersionError::PeerUnreadable { .. }));
        assert!(is_newer("3.10.0"));
        assert!(is_other("2.8.0") && is_other("4.0.0"));
        assert!(["abc", "3", "3.9", "", "3.9.", ".9.1", "99999999999.1.1"].iter().all(|node| is_unreadable(node)));
    }

    #[test]
    fn four_numbers_order_versions() {
        let version = |text| Version::parse(text).unwrap();
        assert!(version("3.9.1") > version("3.9.0") && version("3.10.0") > version("3.9.9"));
        assert!(version("3.9.1.2") > version("3.9.1"));
        assert_eq!(version("3.9.1-x"), version("3.9.1"));
        assert_eq!(version("3.4.3.12").to_string(), "3.4.3.12");
    }
}

//! Errors of building a router.

use std::str::FromStr;
use std::sync::Arc;

/// A route that cannot be compiled; it is left out of the router and the others serve on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("route {}: {field}: {reason}", .name.as_deref().unwrap_or(.id))]
pub struct RouteProblem {
    /// The route's id.
    pub id: Arc<str>,
    /// The route's name, if it has one.
    pub name: Option<Arc<str>>,
    /// The field at fault, with the index or key inside it: `paths[1]`, `headers.x-a[0]`.
    pub field: String,
    /// What is wrong and what to try.
    pub reason: String,
}

/// How routes are compiled: Kong's `router_flavor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flavor {
    /// Fields of a route turned into expressions with a computed priority; Kong's default.
    #[default]
    TraditionalCompatible,
    /// The router of Kong before 3.0.
    Traditional,
    /// Expressions written by hand.
    Expressions,
}

impl Flavor {
    /// The name as in `router_flavor`.
    pub fn as_str(self) -> &'static str {
        match self {
            Flavor::TraditionalCompatible => "traditional_compatible",
            Flavor::Traditional => "traditional",
            Flavor::Expressions => "expressions",
        }
    }
}

impl FromStr for Flavor {
    type Err = UnknownFlavor;

    fn from_str(text: &str) -> Result<Self, UnknownFlavor> {
        [Flavor::TraditionalCompatible, Flavor::Traditional, Flavor::Expressions]
            .into_iter()
            .find(|flavor| flavor.as_str() == text)
            .ok_or_else(|| UnknownFlavor { text: text.to_owned() })
    }
}

/// A name that is no router flavor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no router flavor; expected traditional_compatible, traditional or expressions")]
pub struct UnknownFlavor {
    /// The name given.
    pub text: String,
}

/// A flavor that this version cannot route by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("router flavor '{}' is not supported yet; use 'traditional_compatible'", .flavor.as_str())]
pub struct UnsupportedFlavor {
    /// The flavor asked for.
    pub flavor: Flavor,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flavors_read_back_from_their_names() {
        for flavor in [Flavor::TraditionalCompatible, Flavor::Traditional, Flavor::Expressions] {
            assert_eq!(flavor.as_str().parse(), Ok(flavor));
        }
        assert!("compatible".parse::<Flavor>().unwrap_err().to_string().contains("'compatible'"));
    }
}

//! The settings as rows for people.

use crate::node::NodeConf;
use crate::problem::Origin;

/// What replaces a secret, in Kong's answers too.
pub(crate) const MASK: &str = "******";

/// One setting in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Key.
    pub key: String,
    /// Text of the value, masked if secret; empty if unset.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
    /// What the key does; none for nginx directives.
    pub doc: Option<&'static str>,
    /// Whether gwctl acts on the key in this role.
    pub used: bool,
}

impl NodeConf {
    /// All settings in the order of their keys, or only those that do not stand at their default.
    pub fn show(&self, changed_only: bool) -> Vec<Shown> {
        let rows = self.settings.rows.iter().filter(|(_, row)| !changed_only || row.origin != Origin::Default);
        rows.map(|(name, row)| {
            let key = crate::key(name);
            let secret = key.is_some_and(|key| key.kind.secret()) && !row.text.is_empty();
            let used = key.is_some_and(|key| match self.role {
                crate::Role::Traditional => key.roles.traditional,
                crate::Role::ControlPlane => key.roles.control_plane,
                crate::Role::DataPlane => key.roles.data_plane,
            });
            let value = if secret { MASK.into() } else { row.text.clone() };
            Shown { key: name.clone(), value, origin: row.origin.clone(), doc: key.map(|key| key.doc), used }
        })
        .collect()
    }
}

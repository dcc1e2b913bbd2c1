//! The settings as rows for people.

use crate::keys::Kind;
use crate::material::Material;
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
    /// The value is not shown, as it is a secret.
    pub masked: bool,
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
            let masked = key.is_some_and(|key| secret(key.kind, &row.text));
            let used = key.is_some_and(|key| match self.role {
                crate::Role::Traditional => key.roles.traditional,
                crate::Role::ControlPlane => key.roles.control_plane,
                crate::Role::DataPlane => key.roles.data_plane,
            });
            let value = if masked { MASK.into() } else { row.text.clone() };
            Shown { key: name.clone(), value, masked, origin: row.origin.clone(), doc: key.map(|key| key.doc), used }
        })
        .collect()
    }
}

/// Whether the text itself must not be shown. The path of a key is no secret, the key is.
fn secret(kind: Kind, text: &str) -> bool {
    match kind {
        Kind::PrivateKey | Kind::PrivateKeys => {
            let is_path = |part: &str| matches!(Material::classify(part), Material::Path(_)) && !looks_like_a_key(part);
            text.contains("-----BEGIN") || !text.split(',').all(is_path)
        }
        kind => kind.secret() && !text.is_empty(),
    }
}

/// Long text of the letters of base64: a key in a form that is not understood, rather than a path.
fn looks_like_a_key(text: &str) -> bool {
    let text = text.trim();
    let base64 = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '/' | '=' | '\n');
    text.len() >= 60 && !text.starts_with('/') && text.chars().all(base64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_keys_are_shown_and_keys_are_not() {
        for path in ["", "cluster.key", "/etc/gwctl/a.key, b.key"] {
            assert!(!secret(Kind::PrivateKeys, path), "{path}");
        }
        let inline = "-----BEGIN PRIVATE KEY-----\\nMC4C\\n-----END PRIVATE KEY-----";
        let der = "MC4CAQAwBQYDK2VwBCIEIGZvb2JhcmJhemZvb2JhcmJhemZvb2JhcmJhejEyMzQ1";
        for key in [inline, der] {
            assert!(secret(Kind::PrivateKey, key), "{key}");
        }
        assert!(secret(Kind::Secret, "x") && !secret(Kind::Secret, "") && !secret(Kind::Text, "x"));
    }
}

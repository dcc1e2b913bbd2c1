//! Certificates and keys that are given as a path, as PEM, or as base64 of PEM.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;

/// Where the PEM text of a certificate or key is.
#[derive(Clone, PartialEq, Eq)]
pub enum Material {
    /// In this file.
    Path(PathBuf),
    /// In the setting itself.
    Pem(String),
}

impl fmt::Debug for Material {
    /// Inline text may be a private key, so it is not shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Self::Pem(_) => f.write_str("Pem(******)"),
        }
    }
}

impl Material {
    /// Tells the three forms apart; base64 is decoded. Whatever is neither PEM nor base64 of PEM is a path.
    pub fn classify(text: &str) -> Self {
        let text = text.trim();
        if text.contains("-----BEGIN") {
            // Variables often carry line ends as the two signs `\n`.
            return Self::Pem(if text.contains('\n') { text.into() } else { text.replace("\\n", "\n") });
        }
        let packed: String = text.split_whitespace().collect();
        let decoded = base64::engine::general_purpose::STANDARD.decode(packed).ok();
        match decoded.and_then(|bytes| String::from_utf8(bytes).ok()).filter(|text| text.contains("-----BEGIN")) {
            Some(pem) => Self::Pem(pem),
            None => Self::Path(PathBuf::from(text)),
        }
    }

    /// The PEM text, read by `read` if it is in a file.
    pub fn pem(&self, read: &dyn Fn(&Path) -> io::Result<String>) -> io::Result<String> {
        match self {
            Self::Path(path) => read(path),
            Self::Pem(text) => Ok(text.clone()),
        }
    }

    /// What to call it in a message: the path, or `inline text`.
    pub fn place(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Pem(_) => "inline text".into(),
        }
    }
}

/// The PEM texts of all settings that hold certificates or keys, by key.
#[derive(Clone, Default)]
pub struct Materials {
    pub(crate) texts: BTreeMap<&'static str, Vec<(String, String)>>,
}

impl fmt::Debug for Materials {
    /// Keys of the settings only; the texts hold private keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.texts.keys()).finish()
    }
}

impl Materials {
    /// Place and PEM text of each element of a setting; none if it is unset.
    pub fn all(&self, key: &str) -> &[(String, String)] {
        self.texts.get(key).map_or(&[], Vec::as_slice)
    }

    /// PEM text of a setting with one value.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.all(key).first().map(|(_, text)| text.as_str())
    }

    /// The settings whose texts differ from those in `other`.
    pub fn changed(&self, other: &Self) -> Vec<&'static str> {
        let differs = |key: &&'static str| self.all(key) != other.all(key);
        self.texts.keys().copied().filter(|key| differs(key)).collect()
    }

    /// Place of a setting with one value, for messages.
    pub fn place(&self, key: &str) -> &str {
        self.all(key).first().map_or("unset", |(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEM: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----";

    #[test]
    fn the_three_forms_are_told_apart() {
        assert_eq!(Material::classify(PEM), Material::Pem(PEM.into()));
        assert_eq!(Material::classify(&PEM.replace('\n', "\\n")), Material::Pem(PEM.into()));
        let packed = base64::engine::general_purpose::STANDARD.encode(PEM);
        assert_eq!(Material::classify(&packed), Material::Pem(PEM.into()));
        assert_eq!(Material::classify(" /etc/cluster.crt "), Material::Path("/etc/cluster.crt".into()));
        assert_eq!(Material::classify("abcd"), Material::Path("abcd".into()));
    }

    #[test]
    fn inline_text_is_not_shown() {
        assert_eq!(format!("{:?}", Material::classify(PEM)), "Pem(******)");
    }
}

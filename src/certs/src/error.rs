//! What can be wrong with a certificate or key.

/// A fault in what a setting holds. Setting and place (a path, or "inline text") say where to look.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertError {
    /// The text has no certificate.
    #[error("{setting}: no certificate in {place}, expected `-----BEGIN CERTIFICATE-----`")]
    ConfigNoCertificate {
        /// Name of the setting.
        setting: String,
        /// Path, or "inline text".
        place: String,
    },
    /// A key stands where a certificate belongs.
    #[error("{setting}: {place} holds a private key, expected a certificate")]
    ConfigKeyForCertificate {
        /// Name of the setting.
        setting: String,
        /// Path, or "inline text".
        place: String,
    },
    /// A certificate stands where a key belongs.
    #[error("{setting}: {place} holds a certificate, expected a private key")]
    ConfigCertificateForKey {
        /// Name of the setting.
        setting: String,
        /// Path, or "inline text".
        place: String,
    },
    /// The text has no private key.
    #[error("{setting}: no private key in {place}, expected PKCS#8, PKCS#1 or SEC1 in PEM")]
    ConfigNoKey {
        /// Name of the setting.
        setting: String,
        /// Path, or "inline text".
        place: String,
    },
    /// The key needs a pass phrase.
    #[error(
        "{setting}: the private key in {place} is encrypted, remove the pass phrase (`openssl pkey -in ... -out ...`)"
    )]
    ConfigEncryptedKey {
        /// Name of the setting.
        setting: String,
        /// Path, or "inline text".
        place: String,
    },
    /// The text is broken.
    #[error("{setting}: cannot read {place}: {why}")]
    ConfigUnreadable {
        /// Name of the setting.
        setting: String,
        /// Path, or "inline text".
        place: String,
        /// What the parser says.
        why: String,
    },
    /// Certificate and key are not a pair.
    #[error("{setting} ({place}) is not the key of the certificate in {other} ({other_place})")]
    ConfigMismatch {
        /// Setting of the key.
        setting: String,
        /// Place of the key.
        place: String,
        /// Setting of the certificate.
        other: String,
        /// Place of the certificate.
        other_place: String,
    },
    /// The certificate of the key does not come first.
    #[error("{setting}: certificate {position} in {place} belongs to the key, it has to stand first")]
    ConfigOrder {
        /// Setting of the certificates.
        setting: String,
        /// Path, or "inline text".
        place: String,
        /// Position of the fitting certificate, counted from 1.
        position: usize,
    },
    /// A name that no certificate can carry.
    #[error("`{name}` is not a host name or address")]
    InputName {
        /// The name.
        name: String,
    },
    /// The text is not a certificate.
    #[error("not an X.509 certificate: {why}")]
    PeerCertificate {
        /// What the parser says.
        why: String,
    },
    /// A bug: a library refused what was made for it.
    #[error("{what}: {why}")]
    BugRefused {
        /// What was tried.
        what: &'static str,
        /// What the library says.
        why: String,
    },
}

impl CertError {
    pub(crate) fn refused(what: &'static str) -> impl Fn(&dyn std::fmt::Display) -> Self {
        move |why| Self::BugRefused { what, why: why.to_string() }
    }
}

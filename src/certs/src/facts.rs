//! Facts of a certificate, of any X.509 version.

use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use crate::CertError;

/// What is read from a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// X.509 version: 1 or 3.
    pub version: u32,
    /// Serial number in hexadecimal, without leading zeros in pairs.
    pub serial: String,
    /// Subject, such as `CN=kong_clustering`.
    pub subject: String,
    /// Issuer, in the same form.
    pub issuer: String,
    /// First common name of the subject.
    pub common_name: Option<String>,
    /// DNS names and addresses of the subjectAltName extension.
    pub names: Vec<String>,
    /// Start of validity, seconds since 1970.
    pub not_before: i64,
    /// End of validity, seconds since 1970.
    pub not_after: i64,
    /// SHA-256 over the DER form.
    pub sha256: [u8; 32],
    /// Whether it may issue certificates.
    pub authority: bool,
}

impl Facts {
    /// Reads the DER form.
    ///
    /// # Errors
    /// [`CertError::PeerCertificate`] when it is no certificate.
    pub fn read(der: &[u8]) -> Result<Self, CertError> {
        let certificate = parse(der)?;
        let names = certificate.subject_alternative_name().ok().flatten();
        let names = names.map(|extension| extension.value.general_names.iter().filter_map(name).collect());
        let common_name = certificate.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
        Ok(Self {
            version: certificate.version().0 + 1,
            serial: certificate.raw_serial().iter().map(|byte| format!("{byte:02x}")).collect(),
            subject: certificate.subject().to_string(),
            issuer: certificate.issuer().to_string(),
            common_name: common_name.map(Into::into),
            names: names.unwrap_or_default(),
            not_before: certificate.validity().not_before.timestamp(),
            not_after: certificate.validity().not_after.timestamp(),
            sha256: Sha256::digest(der).into(),
            authority: certificate.is_ca(),
        })
    }

    /// SHA-256 in lower-case hexadecimal.
    pub fn fingerprint(&self) -> String {
        self.sha256.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether the time, in seconds since 1970, lies within the validity.
    pub fn valid_at(&self, now: u64) -> bool {
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        (self.not_before..=self.not_after).contains(&now)
    }
}

pub(crate) fn parse(der: &[u8]) -> Result<X509Certificate<'_>, CertError> {
    match X509Certificate::from_der(der) {
        Ok(([], certificate)) => Ok(certificate),
        Ok(_) => Err(CertError::PeerCertificate { why: "bytes after the certificate".into() }),
        Err(error) => Err(CertError::PeerCertificate { why: error.to_string() }),
    }
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match **bytes {
            [a, b, c, d] => Some(std::net::Ipv4Addr::new(a, b, c, d).to_string()),
            ref bytes => <[u8; 16]>::try_from(bytes).ok().map(|bytes| std::net::Ipv6Addr::from(bytes).to_string()),
        },
        _ => None,
    }
}

//! A certificate with its key, as read from settings.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::{CertError, Facts, facts};

/// PEM text and where it came from.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// Name of the setting, such as `cluster_cert`.
    pub setting: &'a str,
    /// Path, or "inline text".
    pub place: &'a str,
    /// The text.
    pub pem: &'a str,
}

impl std::fmt::Debug for Source<'_> {
    /// Without the text, which may be a private key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.setting, self.place)
    }
}

/// A node's own certificate chain and key.
#[derive(Debug, Clone)]
pub struct Identity {
    pub(crate) key: Arc<CertifiedKey>,
    facts: Facts,
}

impl Identity {
    /// Reads certificate chain and key and makes sure that they are a pair.
    ///
    /// # Errors
    /// Whatever is wrong with either text, by setting and place.
    pub fn read(certificate: Source<'_>, key: Source<'_>) -> Result<Self, CertError> {
        let chain = read_certificates(certificate)?;
        let facts = Facts::read(&chain[0]).map_err(|error| unreadable(certificate, &error))?;
        let signer = aws_lc_rs::sign::any_supported_type(&read_key(key)?).map_err(|error| unreadable(key, &error))?;
        let public = signer.public_key();
        let fits = |der: &CertificateDer<'_>| {
            facts::parse(der)
                .is_ok_and(|leaf| public.as_ref().is_none_or(|public| public.as_ref() == leaf.public_key().raw))
        };
        match chain.iter().position(fits) {
            Some(0) => Ok(Self { key: Arc::new(CertifiedKey::new(chain, signer)), facts }),
            Some(at) => Err(CertError::ConfigOrder {
                setting: certificate.setting.into(),
                place: certificate.place.into(),
                position: at + 1,
            }),
            None => Err(CertError::ConfigMismatch {
                setting: key.setting.into(),
                place: key.place.into(),
                other: certificate.setting.into(),
                other_place: certificate.place.into(),
            }),
        }
    }

    /// Facts of the leaf certificate.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The leaf certificate.
    pub fn leaf(&self) -> &CertificateDer<'static> {
        &self.key.cert[0]
    }

    /// Chain and signer, for a certificate resolver.
    pub fn certified_key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.key)
    }
}

/// Reads every certificate of a text; there is at least one.
///
/// # Errors
/// The text holds none, holds a key only, or is broken.
pub fn read_certificates(source: Source<'_>) -> Result<Vec<CertificateDer<'static>>, CertError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(source.pem.as_bytes()).collect();
    let certificates = certificates.map_err(|error| unreadable(source, &error))?;
    if !certificates.is_empty() {
        return Ok(certificates);
    }
    let (setting, place) = (source.setting.into(), source.place.into());
    let key = source.pem.contains("PRIVATE KEY-----");
    Err(if key {
        CertError::ConfigKeyForCertificate { setting, place }
    } else {
        CertError::ConfigNoCertificate { setting, place }
    })
}

/// Reads the certificates of authorities.
///
/// # Errors
/// As [`read_certificates`], or one of them cannot be an authority.
pub fn read_roots(sources: &[Source<'_>]) -> Result<RootCertStore, CertError> {
    let mut roots = RootCertStore::empty();
    for source in sources {
        for certificate in read_certificates(*source)? {
            roots.add(certificate).map_err(|error| unreadable(*source, &error))?;
        }
    }
    Ok(roots)
}

fn read_key(source: Source<'_>) -> Result<PrivateKeyDer<'static>, CertError> {
    let (setting, place) = (source.setting.into(), source.place.into());
    if source.pem.contains("BEGIN ENCRYPTED PRIVATE KEY") || source.pem.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(CertError::ConfigEncryptedKey { setting, place });
    }
    match PrivateKeyDer::from_pem_slice(source.pem.as_bytes()) {
        Ok(key) => Ok(key),
        Err(rustls_pki_types::pem::Error::NoItemsFound) if source.pem.contains("BEGIN CERTIFICATE") => {
            Err(CertError::ConfigCertificateForKey { setting, place })
        }
        Err(rustls_pki_types::pem::Error::NoItemsFound) => Err(CertError::ConfigNoKey { setting, place }),
        Err(error) => Err(unreadable(source, &error)),
    }
}

fn unreadable(source: Source<'_>, why: &dyn std::fmt::Display) -> CertError {
    CertError::ConfigUnreadable { setting: source.setting.into(), place: source.place.into(), why: why.to_string() }
}
